"""Entries that change others, catalog files of one's own, and entries printed as such files hold them."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import coopt
from coopt.instance.catalog import KINDS, entries, find
from coopt.instance.hardware import Switch
from coopt.instance.quotes import CatalogFiles, own_entries
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.report.catalog import entries_json, entries_toml
from tests.conftest import question

EVERY = [(kind, name) for kind in KINDS for name in entries(kind)]
QUOTES = """
[[switch]]
name = "ours"
extends = "qm9700"
usd = 30_000

[[nic]]
name = "cx7-400g"
extends = "cx7-400g"
usd = 1_000
"""


def priced(**changes: Any) -> Instance:
    return coopt.load(question(**changes))


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_an_entry_is_printed_as_a_file_holds_it(kind: str, name: str) -> None:
    entry = entries(kind)[name]
    (row,) = tomllib.loads(entries_toml({kind: entry}))[kind]
    assert KINDS[kind].model_validate(row) == entry
    assert KINDS[kind].model_validate(json.loads(entries_json({kind: entry}))[kind]) == entry


def test_an_entry_that_extends_another_keeps_what_it_does_not_change() -> None:
    (ours,) = priced(network__switches={"extends": "qm9700", "usd": 30_000}).network.switches
    base = entries("switch")["qm9700"]
    assert ours == base.model_copy(update={"usd": 30_000, "sources": ours.sources})
    named = [" ".join(source.fields) for source in ours.sources]
    assert named == ["rack_units", "cages", "radix port_gbit_s", "w", "reduces", "protocol lane_gbit_s"]


def test_tables_inside_change_key_by_key_and_lose_that_source() -> None:
    gpu = priced(cluster__gpu={"extends": "h100-sxm", "efficiency": {"gemm": 0.5}}).cluster.gpu
    base = entries("gpu")["h100-sxm"]
    assert gpu.efficiency == base.efficiency.model_copy(update={"gemm": 0.5})  # type: ignore[attr-defined]
    named = {field for source in gpu.sources for field in source.fields}
    assert "efficiency.gemm" not in named
    assert {"usd", "efficiency.hbm", "efficiency.fp8"} <= named


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"extends": "qm970"}, r"network.switches\[0\]: extends = 'qm970': .* \(closest: qm9700"),
        ({"extends": 3}, r"network.switches\[0\]: extends = 3: "),
        ({"extends": "qm9700", "price": 3}, r"price: unknown key"),
        ({"extends": "qm9700", "usd": "cheap"}, r"usd = 'cheap': needs a number"),
    ],
)
def test_an_entry_that_extends_nothing_or_wrongly_is_refused(table: dict[str, Any], why: str) -> None:
    with pytest.raises(InstanceError, match=why):
        priced(network__switches=[table])


def test_files_come_before_the_catalog(tmp_path: Path) -> None:
    """A line changes the price of a product of one's own; one name may stand for a NIC and for a switch."""
    texts = {
        "quotes.toml": QUOTES,
        "quotes.csv": "kind,name,extends,usd,w,source,part_number\n"
        'switch,ours-2,ours,"$29,000.5",,June,MQM1\noptic,400g-199,,USD 150,,,\n'
        "nic,x,cx7-400g,3,,,\nswitch,x,qm9700,4,,,\n",
        "prices.csv": "kind,name,usd\nswitch,ours,27000\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    files = {"catalog": {"files": [str(tmp_path / name) for name in texts]}}
    instance = priced(**files, network__switches=["qm9700", "ours", "ours-2", "x"], network__nics=["cx7-400g", "x"])
    assert [switch.usd for switch in instance.network.switches] == [36_000, 27_000, 29_000.5, 4]
    assert [nic.usd for nic in instance.network.nics] == [1_000, 3]
    assert instance.network.optics[0].usd == 150
    assert "June, part number MQM1" in {each.source for each in instance.network.switches[2].sources}
    assert instance.network.switches[2].sources[0].source == "June, part number MQM1"
    again = coopt.load(json.loads(instance.model_dump_json(by_alias=True)))
    assert (again, again.sha256) == (instance, instance.sha256)
    with pytest.raises(InstanceError, match=r"none.toml: no such file"):
        priced(catalog={"files": "none.toml"})
    with pytest.raises(ValueError, match=r"catalog.files: .* `coopt.load`"):
        Instance.model_validate(question(catalog={"files": ["quotes.toml"]}))


VENDOR = {"Part No.": "part_number", "Unit Price": "usd"}
PARTS = {"MCX7-NEAT": "cx7-400g", "FREIGHT": ""}


@pytest.mark.parametrize(
    ("columns", "names", "says"),
    [
        (VENDOR, PARTS, ""),
        (VENDOR, PARTS | {"FREIGHT": "freight"}, "no product 'freight' .for 'FREIGHT' in catalog.names"),
        ({"Unit Price": "usd"}, PARTS, "has no column name, needs one that catalog.columns calls 'name' or"),
        ({**VENDOR, "Price": "usd"}, PARTS, "has no column 'Price'"),
        ({**VENDOR, "Unit Price": "us"}, PARTS, "= 'us': .*closest: usd"),
    ],
)
def test_a_table_of_a_vendor_is_read_by_a_map(tmp_path: Path, columns: Any, names: Any, says: str) -> None:
    file = tmp_path / "quote.csv"
    file.write_text('Part No.,Qty,Unit Price\nMCX7-NEAT,64,"$1,480.50"\nFREIGHT,1,$9\n', "utf-8")
    catalog = {"files": str(file), "columns": columns, "names": names}
    if says:
        with pytest.raises(InstanceError, match=says):
            priced(catalog=catalog)
        return
    (nic,) = priced(catalog=catalog, network__nics="cx7-400g").network.nics
    assert nic.usd == 1480.5
    assert "part number MCX7-NEAT" in {each.source for each in nic.sources}
    file.write_text("Part No.,Qty,Unit Price\nMCX7-NEAT,64,1,480\n", "utf-8")
    with pytest.raises(InstanceError, match=r"line 2: has more cells than"):
        priced(catalog=catalog)


@pytest.mark.parametrize(("first", "second"), [("", ""), ("switch,64x800g,70000", ""), ("", "switch,64x800g,70000")])
def test_a_quote_for_a_box_is_one_for_its_names_at_one_rate(tmp_path: Path, first: str, second: str) -> None:
    lines = ["kind,name,usd", first, "switch,51t,50000", second]
    (tmp_path / "quotes.csv").write_text("\n".join(filter(None, lines)), "utf-8")
    own = own_entries(CatalogFiles(files=("quotes.csv",)), tmp_path)["switch"]
    prices = {name: entry.usd for name, entry in own.items() if isinstance(entry, Switch)}
    assert prices == {"51t": 50_000, "128x400g": 50_000, "64x800g": 70_000 if first or second else 50_000}
    catalogued = find("switch", "128x400g")
    assert own["128x400g"] == catalogued.model_copy(update={"usd": 50_000.0, "sources": own["128x400g"].sources})


def test_files_are_found_where_the_instance_stands(tmp_path: Path) -> None:
    (tmp_path / "quotes.toml").write_text(QUOTES, "utf-8")
    text = Path("instances/designs/superpod-h100.toml").read_text("utf-8")
    own = tmp_path / "own.toml"
    own.write_text('catalog.files = "quotes.toml"\n' + text.replace('"qm9700"', '"ours"'), "utf-8")
    assert {item.item: item.unit_usd for item in coopt.bom(own).items}["ours"] == 30_000


WRONG = {
    "quotes.toml": {
        "[[gpus]]\nname = 'x'": "gpus: is no kind of catalog entry, needs one of gpu, hb_domain",
        "gpu = 3": r"gpu: needs tables that begin with \[\[gpu\]\]",
        "[[nic]]\nname = 'x'": "line 1: nic 'x': gbit_s: is missing, needs a value",
        "[[nic]]\nname = 'x'\nextends = 'y'": "line 3: nic 'x': extends = 'y': the catalog has no nic of this name",
        "[[nic]]\nname = 'x'\nextends = 'cx7-400g'\nprice = 3": "line 4: nic 'x': price: unknown key",
        "nic = [{ name = 'x', extends = 'cx7-400g', price = 3 }]": "nic 'x': price: unknown key",
        "[[nic]]\nname = 'x'\nextends = 'cx7-400g'\n\n# dear\n [[ nic ]]\nname = 'y'\nextends = 'x'\nusd = -3": (
            "line 9: nic 'y': usd = -3"
        ),
        "[[nic]]\nname = 'x'\nextends = 'cx7-400g'\n[[nic]]\nextends = 'cx8-800g'\nname = 'x'": (
            "line 6: nic 'x': name = 'x': also appears in line 1, needs each name once"
        ),
        "[[nic]]\nname = 'x'\nextends = 'x'": r"line 3: nic 'x': extends = 'x': [^:]*\('x' extends 'x'\), needs one",
        "[[nic]]\nname = 'x'\nextends = 'y'\n[[nic]]\nname = 'y'\nextends = 'z'\n[[nic]]\nname = 'z'\nextends = 'x'": (
            r"line 3: nic 'x': extends = 'y': [^:]*\('x' extends 'y' extends 'z' extends 'x'\), needs one"
        ),
        "[[nic]]\nname = 'x'\nextends = 'y'\n[[nic]]\nname = 'y'\nextends = 'cx7-400g'": (
            "line 3: nic 'x': extends = 'y': .* in line 4, needs to come before"
        ),
        "nic": "not TOML",
    },
    "quotes.csv": {
        "name,usd\nx,1": "has no column kind, needs the columns kind and name, and figures such as usd, or catalog",
        "kind,nmae,usd\nnic,x,1": r"has no column name \(closest: nmae\), needs the columns kind and name, and figures",
        "kind;name;usd\nnic;cx7-400g;1": "semicolons separate its columns, needs commas",
        "kind\tname\tusd\nnic\tcx7-400g\t1": "tabs separate its columns, needs commas",
        "kind,name,usd\ncable,x,1": "line 2: kind = 'cable': needs one of",
        "kind,name,usd\nnic,cx7-400g,1,2": "line 2: has more cells than there are columns",
        "kind,name,usd\nnic": "line 2: has fewer cells than there are columns",
        "kind,name,usd,usd\nnic,cx7-400g,1,2": "column 'usd' appears more than once, needs each once",
        "kind,name,usd\nnic," + "x" * 140_000: "line 2: field larger than field limit",
        "kind,name,usd\nnic,cx7-400g,cheap": "line 2: usd = 'cheap': needs a number",
        "kind,name,usd\nnic,cx7-400g,€5": "line 2: usd = €5: needs USD",
        "kind,name,w\nnic,cx7-400g,$5": "line 2: w = \\$5: needs a number without a currency",
        "kind,name,usd\nnics,x,1": r"line 2: kind = 'nics': needs one of .* \(closest: nic\)",
        "kind,name,price\nnic,cx7-400g,3": "column 'price': .* kind nic .*, needs one of kind, name, .*usd",
        "kind,name,Usd\nnic,cx7-400g,3": r"column 'Usd': .* kind nic .*, needs one of .* \(closest: usd\)",
        "kind,name,usd\nnic,cx7-400G,3": r"line 2: name = 'cx7-400G': the catalog has no nic .*\(closest: cx7-400g",
        "kind,name,usd\nnic,cx7-400g,1\nnic,cx7-400g,2": "line 3: name = 'cx7-400g': also appears in line 2, needs",
        "kind,name,extends\nnic,x,y\nnic,y,x": r"line 2: extends = 'y': [^:]*\('x' extends 'y' extends 'x'\), needs",
        "kind,name,usd\nnic,ours,3": "line 2: name = 'ours': .* the columns gbit_s and w .* extends",
    },
}


@pytest.mark.parametrize(("file", "text"), [(file, text) for file, texts in WRONG.items() for text in texts])
def test_a_file_that_is_wrong_names_file_entry_and_key(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text, "utf-8")
    with pytest.raises(InstanceError, match=rf"^{file}: {WRONG[file][text]}"):
        priced(catalog={"files": str(tmp_path / file)})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kind,name,price,reach_m\nnic,cx7-400g,3,\nnic,cx8-800g,3,\noptic,400g-199,,80\n", "'price'"),
        (
            "kind,name,usd,date\nnic,cx7-400g,3,May\noptic,400g-199,8,May\nnic,cx8-800g,3,June\n",
            "'date': .* kinds nic and optic .*, needs .*, or 'source' for notes",
        ),
    ],
)
def test_a_column_that_is_unknown_is_named_once_for_all_kinds(tmp_path: Path, text: str, says: str) -> None:
    """One that another kind has may stay empty."""
    (tmp_path / "quotes.csv").write_text(text, "utf-8")
    with pytest.raises(InstanceError, match=rf"^quotes.csv: column {says}[^\n]*$"):
        priced(catalog={"files": str(tmp_path / "quotes.csv")})


CONTRADICTIONS = {
    "switch,tor,qm9700,400,99": r"switch 'tor' takes 99 rack units, .* \('tor' stands in line 2 of {file}\)$",
    "switch,tor,qm9700,200,1": r"'tor' 200 Gbit/s \('tor' stands in line 2 of {file}\)$",
    "switch,leaf,qm9700,400,99": r"switch 'leaf' takes 99 rack units, .* \('leaf' stands in line 2 of {file}\)$",
}


@pytest.mark.parametrize("as_csv", [True, False])
@pytest.mark.parametrize("row", CONTRADICTIONS)
def test_what_contradicts_something_else_is_told_with_the_file_that_holds_it(tmp_path, row, as_csv) -> None:
    file, (kind, name, base, rate, units) = tmp_path / f"quotes.{'csv' if as_csv else 'toml'}", row.split(",")
    table = f"port_gbit_s = {rate}\nrack_units = {units}"
    file.write_text(
        f"kind,name,extends,port_gbit_s,rack_units\n{row}\n"
        if as_csv
        else f"# ours\n[[{kind}]]\nname = '{name}'\nextends = '{base}'\n{table}\n",
        "utf-8",
    )
    with pytest.raises(InstanceError, match=CONTRADICTIONS[row].format(file=file.name)) as refused:
        priced(catalog={"files": str(file)}, network__switches=name)
    assert len(refused.value.complaints) == 1
