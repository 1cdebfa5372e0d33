"""The bill as a purchase list: its lines add up, and it has spares, work and the networks beside that of a plan."""

import csv
import io
import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import coopt as planner
from coopt.instance.catalog import entries
from coopt.instance.hardware import Nic, Optic, Switch
from coopt.instance.schema import load
from coopt.instance.texts import InstanceError, both
from coopt.plan.networks import NetworksBill
from coopt.plan.store import read_plan
from coopt.report.csv_files import procurement_csv
from coopt.solving.plan_bills import WORST_PRICES
from tests.cli.conftest import PHASES, Coopt, Solved

INSTANCES = Path(__file__).parents[2] / "instances"
Shipped = Callable[[Path], Path]
QUESTIONS = ("tiny-64", "phased-128", "direct-32", "fleet-core-growth", "questions/two-teams")
BESIDE = """schema = 1

[[design]]
id = "out-of-band"
domains = { per_hb_domain = 1, more = 15 }
gpus_per_domain = 1
leaf_domains = 16
fabric = "clos"
tiers = [{ ports = 52, down = 48, up = 2, switch = "64x400g" }, { ports = 48, down = 8, switch = "64x400g" }]

[[design]]
id = "storage"
domains = { per_hb_domain = 1 }
gpus_per_domain = 1
nic_ports = 2
fabric = "clos"
nic = "cx7-400g"
tiers = [{ ports = 64, switch = "64x400g" }]
"""


def rows_of(bill: NetworksBill) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(procurement_csv(bill))))


def check_sums(bill: NetworksBill) -> None:
    rows = rows_of(bill)
    assert math.fsum(float(row["usd"]) for row in rows) == pytest.approx(bill.usd, rel=1e-12)
    assert math.fsum(item.usd for item in bill.items) == pytest.approx(bill.usd, rel=1e-12)
    assert math.fsum(float(row["w"]) for row in rows) == pytest.approx(bill.w, rel=1e-12)
    for row in rows:
        assert int(row["quantity"]) * float(row["unit_usd"]) == pytest.approx(float(row["usd"]), rel=1e-12)
        assert all(len(row[unit].replace(".", "")) <= 15 for unit in ("unit_usd", "unit_w"))


@pytest.mark.parametrize("name", QUESTIONS)
def test_all_lines_of_a_purchase_list_add_up_to_the_bill(name: str, shipped_plan: Shipped) -> None:
    plan = read_plan(shipped_plan(INSTANCES / f"{name}.toml"))
    bill = planner.bom(load(INSTANCES / f"{name}.toml"), plan)
    assert bill.usd == plan.cost.capex_usd
    check_sums(bill)
    bought = [row["description"] for row in rows_of(bill)]
    assert not [words for words in bought if "per GPU" in words], "HB domains"
    domains = any(item.kind == "hb" and not item.idle for item in bill.items)
    assert any(words.startswith("HB domain of ") for words in bought) == domains


def test_bills_of_networks_that_are_not_what_is_paid_together_say_so(coopt: Coopt, shipped_plan: Shipped) -> None:
    """Phases use again what stands, at prices of their own; islands at one price each add up."""
    said = "list prices."
    for name, differ in (("fleet-3-phases-2-sites", True), ("tiny-64", False)):
        plan = shipped_plan(INSTANCES / f"{name}.toml")
        bill = NetworksBill.model_validate_json(coopt("bom", plan, "--json").stdout)
        paid = math.isclose(bill.usd, math.fsum(one.usd for one in bill.networks), rel_tol=1e-9)
        assert paid is not differ, name
        assert (said in " ".join(coopt("bom", plan).stdout.split())) is differ, name


def test_modules_of_a_core_are_told_by_phase() -> None:
    values = {"network.buildable": False, "robust.prices": {"optics": [0.3, 2.0]}}
    instance = load(INSTANCES / "fleet-core-growth.toml", values)
    plan = planner.solve(instance)
    notes = [note for note in planner.bom(instance, plan).notes if " of the core " in note]
    modules = {shared.name: -(-shared.core.ports // shared.core.switches) for shared in plan.couplings.cores}
    cores: dict[int, list[str]] = {}
    for name, count in modules.items():
        cores.setdefault(count, []).append(name)
    assert min(cores) > 32
    assert len(cores) > 1
    assert [note.partition(":")[0] for note in notes] == [both(names) for names in cores.values()]
    assert all(f" {count} modules" in note for note, count in zip(notes, cores, strict=True))


def test_lines_of_several_designs_add_up_with_spares_and_work(tmp_path: Path) -> None:
    text = (INSTANCES / "designs" / "superpod-h100.toml").read_text("utf-8")
    rates = "spares = { switch = 0.02, optics = 0.02 }\nwork = { labour_share = 0.05, support_share = 0.06, years = 3 }"
    one = text.replace("[[design]]", f"[[design]]\n{rates}")
    other = one.partition("[[design]]")[2].replace('id = "', 'id = "second-')
    file = tmp_path / "two.toml"
    file.write_text(f"{one}\n[[design]]{other}", "utf-8")
    bill = planner.bom(file)
    check_sums(bill)
    network = bill.networks[0]
    goods = math.fsum(item.usd for item in network.items if item.kind != "labour")
    work = {item.item: item.usd for item in network.items if item.kind == "labour"}
    assert work == {"labour to install": pytest.approx(0.05 * goods), "support, 3 years": pytest.approx(0.18 * goods)}
    assert {row["network"] for row in rows_of(bill) if row["scope"]} == {one.name for one in bill.networks}
    assert not any("installation" in what or "spare" in what for what in bill.not_counted)
    assert "freight" in bill.not_counted


def test_a_plan_has_spares_and_the_work_that_its_total_cost_holds(coopt: Coopt, solved: Solved, tmp_path: Path) -> None:
    """The order is the total cost but for electricity, and for spares, which no plan counts."""
    terms = 'include = ["hb", "nic", "switch", "optics"]\nlabour_share = 0.05\nsupport_share = 0.06'
    question, plan = solved(
        ("[network]", f'[objective]\nminimize = "tco"\n{terms}\n\n[network]\nspares = {{ nic = 0.02, optics = 0.1 }}')
    )
    assert coopt("verify", question, plan).exit_code == 0
    table, cost = tmp_path / "bill.csv", json.loads(plan.read_text("utf-8"))["cost"]
    bill = json.loads(coopt("bom", question, plan, "--csv", table, "--json").stdout)
    spares = {item["item"]: item for item in bill["items"] if item["item"].endswith("(spare)")}
    in_use = {item["item"]: item["count"] for item in cost["items"]}
    assert {name: item["count"] for name, item in spares.items()} == {
        "cx7-400g (spare)": math.ceil(0.02 * in_use["cx7-400g"]),
        "400g-199 (spare)": math.ceil(0.1 * in_use["400g-199"]),
    }
    asked = load(question).objective
    electricity = cost["power_w"] / 1000 * asked.years * 8760 * asked.pue * asked.usd_per_kwh
    spent = sum(item["usd"] for item in spares.values())
    assert bill["usd"] - spent == pytest.approx(cost["tco_usd"] - electricity, rel=1e-12)
    rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
    assert sum(float(row["usd"]) for row in rows) == pytest.approx(bill["usd"], rel=1e-12)
    assert load(question).sha256 == load(question, {"network.spares": {}}).sha256
    said = " ".join(coopt("bom", question, plan).stdout.split())
    assert ("cx7-400g (spare)" in said, "volume and phase prices" in said) == (True, False)


def test_networks_beside_that_of_a_plan_count_by_its_hb_domains(shipped_plan: Shipped, tmp_path: Path) -> None:
    file = tmp_path / "beside.toml"
    file.write_text(BESIDE, "utf-8")
    plan = read_plan(shipped_plan(INSTANCES / "tiny-64.toml"))
    domains = plan.design.hb_domain.count
    bare, bill = planner.bom(plan), planner.bom(plan, beside=file)
    check_sums(bill)
    _, out_of_band, storage = bill.networks
    assert out_of_band.tier[0].switches == -(-(domains + 15) // 16)
    assert out_of_band.tier[0].links == domains + 15
    assert [item.count for item in storage.items if item.kind == "nic"] == [domains]
    assert storage.tier[0].links == 2 * domains
    assert bill.usd == pytest.approx(bare.usd + out_of_band.usd + storage.usd)
    assert any("out-of-band" in what for what in bare.not_counted)
    assert not any("out-of-band" in what for what in bill.not_counted)


def test_domains_counted_by_a_plan_need_one(tmp_path: Path) -> None:
    file = tmp_path / "beside.toml"
    file.write_text(BESIDE, "utf-8")
    with pytest.raises(InstanceError, match="design 'storage': ") as refused:
        planner.bom(file)
    assert len(refused.value.complaints) == 2
    with pytest.raises(InstanceError, match=r"--beside .*: adds designs"):
        planner.bom(INSTANCES / "designs" / "superpod-h100.toml", beside=file)


def test_published_modules_are_counted_again(tmp_path: Path) -> None:
    text = (INSTANCES / "designs" / "superpod-h100.toml").read_text("utf-8")
    file = tmp_path / "modules.toml"
    counts = {"400g-sr4": 2032, "400g-dr4": 2048}
    for told, why in (
        (counts, ""),
        (counts | {"400g-dr4": 2049}, "2,048 modules of 400g-dr4 as counted and 2,049 as published."),
        ({"400g-sr4": 2032}, "2,048 modules of 400g-dr4 as counted and 0 as published."),
    ):
        optics = ", ".join(f'"{name}" = {count}' for name, count in told.items())
        published = f"published = {{ switches = [32, 16], optics = {{ {optics} }} }}\n"
        kept = "\n".join(line for line in text.splitlines() if not line.startswith("published"))
        file.write_text(kept.replace("[[design]]", f"[[design]]\n{published}"), "utf-8")
        (row,) = planner.reproduce(file).rows
        assert (row.ok, row.why) == (not why, why)
        assert row.counted.optics == counts
    file.write_text(file.read_text("utf-8").replace('400g-sr4" = 2032', 'other" = 2032'), "utf-8")
    with pytest.raises(InstanceError, match=r"published.optics: 'other'"):
        planner.bom(file)


CAGES = """schema = 1

[[design]]
id = "single-modules"
domains = 128
gpus_per_domain = 8
fabric = "rail-optimized"
nic = "cx7-400g"
tiers = [
    { ports = 64, switch = "qm9700", optic = "400g-sr4" },
    { ports = 64, switch = "qm9700", optic = "800g-sr8", optic_below = "800g-sr8" },
]
"""


def test_modules_without_a_cage_are_told_on_the_list_of_a_design(tmp_path: Path) -> None:
    """A leaf has 32 single modules down and 16 of two links up, and 32 cages: twin-port ones down take 16 of them."""
    file = tmp_path / "cages.toml"
    file.write_text(CAGES, "utf-8")
    bill = planner.bom(file)
    (leaves,) = bill.notes
    assert "Buy 32 modules" in leaves
    assert [row["part"] for row in rows_of(bill) if row["description"] == "note"] == [leaves]
    check_sums(bill)
    twins = CAGES.replace('optic = "400g-sr4"', 'optic = "800g-sr8", optic_below = "400g-sr4"')
    file.write_text(twins, "utf-8")
    assert not planner.bom(file).notes  # each link has a connector of its own
    file.write_text(twins.replace('optic = "800g-sr8"', 'optic = { extends = "800g-sr8", connectors = 1 }'), "utf-8")
    (splits,) = planner.bom(file).notes
    assert "800g-sr8 (2 links on 1 connector)" in splits


def test_the_list_of_a_plan_has_the_notes_of_its_first_screen(coopt: Coopt, solved: Solved, tmp_path: Path) -> None:
    question, plan = solved(("[network]", "[network]\nhall = { rise_m = 900 }"))
    table = tmp_path / "bill.csv"
    bill = json.loads(coopt("bom", question, plan, "--csv", table, "--json").stdout)
    assert [note for note in bill["notes"] if re.search(r"\(\d+ m\) .* tier \d", note)]
    for shown in (coopt("solve", question).stdout, coopt("bom", question, plan).stdout):
        assert all(note in " ".join(shown.split()) for note in bill["notes"])
    rows = csv.DictReader(table.read_text("utf-8").splitlines())
    assert [row["part"] for row in rows if row["description"] == "note"] == bill["notes"]


def test_panels_of_direct_links_are_bought_by_the_port(shipped_plan: Shipped) -> None:
    plan = read_plan(shipped_plan(INSTANCES / "direct-32.toml"))
    bill = planner.bom(load(INSTANCES / "direct-32.toml"), plan)
    links = plan.parts[0].links.links
    (panel,) = [row for row in rows_of(bill) if "of a panel" in row["description"]]
    assert int(panel["quantity"]) == 2 * links
    assert not [row for row in rows_of(bill) if row["description"] == "switch"]
    assert any(f"cables of {links}" in one for one in bill.not_counted)


def test_worst_prices_are_said_to_be_no_list_prices(coopt: Coopt, solved: Solved) -> None:
    for aim in ("worst-case", "regret"):
        doubt = f'[robust]\naim = "{aim}"\nprices = {{ switch = [0.7, 1.6] }}\n\n[network]'
        question, plan = solved(("[network]", doubt))
        for asked in ((question, plan), (plan,)):
            told = [note for note in json.loads(coopt("bom", *asked, "--json").stdout)["notes"] if "worst" in note]
            assert bool(told) is (aim == "worst-case")


@pytest.mark.parametrize("objective", ["capex", "tco", "power"])
def test_a_plan_that_has_to_stand_losses_alone_is_at_list_prices(objective, coopt, solved, tmp_path):
    """The plan alone says so, and is compared with designs, unless it minimises what no price changes."""
    doubt = f'[robust]\nsurvive = "nic"\nslower = 3\n\n[objective]\nminimize = "{objective}"\n\n[network]'
    (question, plan), file = solved(("[network]", doubt)), tmp_path / "beside.toml"
    file.write_text(BESIDE, "utf-8")
    assert not [note for note in planner.bom(load(question), read_plan(plan)).notes if "worst" in note]
    alone, unclear = planner.bom(read_plan(plan)), objective == "power"
    assert alone.at_worst_prices is unclear
    assert [note for note in alone.notes if "no robust.prices" in note] == list(alone.notes)[:unclear]
    assert WORST_PRICES not in alone.notes
    for option in ("--against", "--beside"):
        assert coopt("bom", plan, option, file).exit_code == int(unclear)


def test_bills_of_networks_at_worst_prices_are_said_to_be_at_these(coopt: Coopt, solved: Solved) -> None:
    """Where all is not bought at once, so that what is paid is something else."""
    doubt = f'[robust]\naim = "worst-case"\nprices = {{ switch = [0.7, 1.6] }}\n{PHASES}'
    for told, table in (("list", PHASES), ("the worst", doubt)):
        question, plan = solved(("[network]", table), ("time_s = 1.0", "time_s = 4.0"))
        for asked in ((question, plan), (plan,)):
            assert f" {told} prices." in " ".join(coopt("bom", *asked).stdout.split())


def test_designs_are_billed_at_the_worst_prices_of_a_plan(coopt: Coopt, solved: Solved, tmp_path: Path) -> None:
    """Beside it and against it; the factors stand in its instance alone."""
    doubt = '[robust]\naim = "worst-case"\nprices = { switch = [0.7, 1.6], nic = [1, 1.2], optics = [0.5, 2] }'
    (question, plan), file = solved(("[network]", f"{doubt}\n\n[network]")), tmp_path / "one.toml"
    file.write_text(
        'schema = 1\n[[design]]\nid = "one"\ndomains = 4\ngpus_per_domain = 8\nfabric = "clos"\nnic = "cx7-400g"\n'
        'tiers = [{ ports = 64, switch = "qm9700", optic = "400g-sr4", optic_below = "400g-199" }]\n',
        "utf-8",
    )
    usd = 1.6 * catalog_price("qm9700", "switch") + 32 * 1.2 * catalog_price("cx7-400g", "nic")
    usd += 2 * 32 * (catalog_price("400g-sr4") + catalog_price("400g-199"))
    bill = planner.bom(load(question), read_plan(plan), against=file, beside=file)
    assert bill.against[0].design.usd == pytest.approx(usd)
    assert bill.networks[1].usd == pytest.approx(usd)
    assert bill.usd == pytest.approx(planner.bom(load(question), read_plan(plan)).usd + usd)
    for option in ("--against", "--beside"):
        refused = coopt("bom", plan, option, file)
        assert refused.exit_code == 1
        assert all(words in refused.stderr for words in (str(file), "the worst prices"))


def test_what_designs_beside_a_plan_leave_out_is_listed_for_them(coopt: Coopt, solved: Solved, tmp_path: Path) -> None:
    """The plan has labour, support and spares; of the designs one has them too."""
    terms = "[objective]\nlabour_share = 0.05\nsupport_share = 0.06\n\n[network]\nspares = { nic = 0.02 }"
    planned, file = solved(("[network]", terms)), tmp_path / "beside.toml"
    rates = "spares = { switch = 0.02 }\nwork = { labour_share = 0.05, support_share = 0.06, years = 3 }"
    file.write_text(BESIDE.replace('id = "storage"', f'id = "storage"\n{rates}'), "utf-8")
    listed = json.loads(coopt("bom", *planned, "--beside", file, "--json").stdout)["not_counted"]
    assert any(one.endswith("of out-of-band") for one in listed)
    assert not [what for what in listed if "of storage" in what]
    assert "freight" in listed


def test_cables_that_come_with_both_ends_are_bought_whole(coopt: Coopt, solved: Solved, tmp_path: Path) -> None:
    """Plans and bills count ends, of which a copper cable has two; spares are whole cables as well."""
    copper = 'optics = ["400g-dac"]\nlink_reach_m = [2, 2, 2]\nspares = { optics = 0.01 }\nhall = { rise_m = 0.1 }'
    question, plan = solved(('optics = "400g-199"', copper))
    table, links = tmp_path / "bill.csv", sum(tier.links for tier in read_plan(plan).design.fabric.tier)
    assert "400g-dac by cable ends" in " ".join(coopt("bom", question, plan, "--csv", table).stdout.split())
    bought, spare = (
        row for row in csv.DictReader(table.read_text("utf-8").splitlines()) if row["part"].startswith("400g-dac")
    )
    assert bought["description"].endswith("at both ends")
    assert (int(bought["quantity"]), float(bought["unit_usd"])) == (links, 2 * catalog_price("400g-dac"))
    assert spare["description"].startswith("spare cable")
    assert int(spare["quantity"]) == math.ceil(links / 100)
    check_sums(planner.bom(load(question), read_plan(plan)))
    assert planner.bom(read_plan(plan)).whole_cables == ("400g-dac",)
    own = load(question, {"network.optics": {"extends": "400g-dac", "whole_cable": False}})
    assert own.sha256 == load(question).sha256
    assert not planner.bom(own, read_plan(plan)).whole_cables


def catalog_price(name: str, kind: str = "optic") -> float:
    product = entries(kind)[name]
    assert isinstance(product, Optic | Switch | Nic)
    return product.usd


def test_cables_of_designs_are_bought_whole(tmp_path: Path) -> None:
    file = tmp_path / "copper.toml"
    text = CAGES.replace('"400g-sr4"', '"400g-dac"').replace(', optic = "800g-sr8", optic_below = "800g-sr8"', "")
    file.write_text(text.replace('nic = "cx7-400g"', 'nic = "cx7-400g"\nspares = { optics = 0.05 }'), "utf-8")
    bill = planner.bom(file)
    assert bill.whole_cables == ("400g-dac",)
    bought, spare = (row for row in rows_of(bill) if row["part"].startswith("400g-dac"))
    assert int(bought["quantity"]) == bill.networks[0].tier[0].links == 1024
    assert int(spare["quantity"]) == math.ceil(0.05 * 1024)
    check_sums(bill)
