"""The table of `docs/fleets.md` says what goes together: what it allows is read, the rest is refused by key."""

import re
from typing import Any

import pytest
from pydantic import ValidationError

from coopt.cli.answers import solve
from coopt.instance.schema import Instance
from tests.conftest import question
from tests.docs.shown import ROOT
from tests.solving.direct.test_direct_links import linked
from tests.solving.sites.test_sites import apart

Tables = dict[str, Any]
COLUMNS: tuple[Tables, ...] = (question(sharing={"mode": "partition"}), question(), apart(), linked())
SITES = {"site": [{"name": "east", "power_mw": 1.0}, {"name": "west", "power_mw": 1.0}]}
ALL_PARTS = {"include": ["gpu", "hb", "nic", "switch", "optics"]}
DAYS = {"train_days": 100.0, "train_tokens": 1e9}
FAILURES = {"availability": {"rates": "llama-3"}}
LOSS = {"robust": {"survive": "nic"}}


def _grown(gpus: int) -> Tables:
    return {"phase": [{"year": 2026, "gpus": gpus // 2}, {"year": 2028, "gpus": gpus}]}


def _asked(row: str, base: Tables) -> dict[str, Tables]:
    """What a row adds to a question, by the words with which a refusal names it."""
    first, shared, objective = base["workload"][0], base.get("sharing", {}), base.get("objective", {})
    core = {"switch": base["network"]["switches"][0]["name"], "gbit_s_per_gpu": 25}
    core |= {"optic": "400g-199"} if "site" in base else {}
    far = {"name": "far", "gbit_s": 400, "reach_m": 1e5, "usd": 4000, "w": 20}
    ended = {"wan": [link | {"km": 80, "optics": far} for link in base["wan"]]} if "wan" in base else {}
    discount = {"kind": "nic", "item": "cx7-400g", "from": [8], "off": [0.1]}
    in_days = {key: value for key, value in first.items() if key != "max_iteration_time_s"} | DAYS
    tables: dict[str, dict[str, Tables]] = {
        "several workloads": {"one workload": {"workload": [first, first | {"name": "another"}]}},
        "[[site]]": {"[[site]]": SITES | {"objective": objective | ALL_PARTS}},
        "[[phase]]": {"[[phase]]": _grown(base["cluster"]["gpus"])},
        "robust.prices, robust.efficiency": {
            "robust.prices": {"robust": {"prices": {"nic": [0.8, 1.2]}}},
            "robust.efficiency": {"robust": {"efficiency": [0.9, 1.0]}},
        },
        "robust.survive": {"robust.survive": LOSS},
        "[availability]": {"[availability]": FAILURES},
        "[sharing.core]": {"sharing.core": {"sharing": shared | {"core": core}} | ended},
        "[[sharing.discount]], most_products": {
            "sharing.discount": {"sharing": shared | {"discount": [discount]}},
            "sharing.most_products": {"sharing": shared | {"most_products": {"hb": 1}}},
        },
        "solver.top above 1": {"solver.top": {"solver": {"top": 2}}},
        "minimize = time, usd_per_token or carbon": {
            "minimize = 'time'": {"objective": objective | {"minimize": "time"}},
            "minimize = 'usd_per_token'": {"objective": objective | {"minimize": "usd_per_token"}},
            "minimize = 'carbon'": {
                "objective": objective | {"minimize": "carbon", "kg_co2_per_kwh": 0.3},
                "workload": [in_days],
            },
        },
    }
    return tables[row]


def _rows() -> dict[str, list[str]]:
    section = (ROOT / "docs" / "fleets.md").read_text("utf-8").split("## What goes together")[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return {row[0].replace("`", ""): row[1:] for row in cells[2:]}


def _refusal(table: Tables) -> str:
    try:
        Instance.model_validate(table)
    except ValidationError as error:
        return "\n".join(one["msg"].removeprefix("Value error, ") for one in error.errors())
    return ""


@pytest.mark.parametrize("column", range(len(COLUMNS)))
@pytest.mark.parametrize("row", _rows())
def test_what_the_page_allows_is_read_and_the_rest_is_refused(row: str, column: int) -> None:
    base, says = COLUMNS[column], _rows()[row][column].split(",")[0]
    if says == "as the column to the right":
        (changes,) = _asked(row, base).values()
        assert _refusal(base | changes).startswith("cluster.shares: is missing")  # a key of that column
        return
    assert says in ("yes", "no")
    for named, changes in _asked(row, base).items():
        refusal = _refusal(base | changes)
        assert named in refusal if says == "no" else not refusal


@pytest.mark.parametrize(
    ("row", "excluded"),
    [
        ("robust.survive", FAILURES),
        ("[availability]", LOSS),
        *((row, _grown(64)) for row in ("solver.top above 1", "minimize = time, usd_per_token or carbon")),
        *((row, LOSS) for row in ("solver.top above 1", "minimize = time, usd_per_token or carbon")),
    ],
)
def test_what_the_page_allows_only_without_another_is_refused_beside_it(row: str, excluded: Tables) -> None:
    (key,) = excluded
    says = _rows()[row][1]
    assert says.startswith("yes, ")
    assert key in says.split("without")[1] or (excluded is LOSS and "survive" in says)
    for named, changes in _asked(row, question()).items():
        assert named in _refusal(question() | excluded | changes)


PRICES = {"prices": {"nic": [0.8, 1.2]}}
FULL = ALL_PARTS | {"minimize": "tco"}
REFUSED: dict[str, tuple[Tables, str]] = {  # what is asked, and the keys that a refusal names, no others
    "direct links in a partition": (
        linked(sharing={"mode": "partition"}),
        "network.fabrics 'direct' sharing.mode 'partition' 'time'",
    ),
    "direct links that grow in doubt": (
        linked(robust=LOSS["robust"] | PRICES, **_grown(16)),
        "network.fabrics 'direct' [[phase]] robust.prices robust.survive 'nic' [robust]",
    ),
    "direct links with a table that leaves nothing in doubt": (linked(robust={}), "network.fabrics 'direct' [robust]"),
    "sites that grow in doubt in turn": (
        question(robust=PRICES, objective=FULL, **SITES, **_grown(64)),
        "sharing.mode 'time' [[phase]] robust.prices 'partition' [robust]",
    ),
    "runners-up of what grows in doubt": (
        question(robust=PRICES, solver={"top": 2}, **_grown(64)),
        "solver.top [[phase]] [robust]",
    ),
    "runners-up by time": (
        question(objective={"minimize": "time"}, solver={"top": 2}),
        "solver.top objective.minimize 'time'",
    ),
    "losses beside failures": (question(**LOSS, **FAILURES), "robust.survive [availability]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_names_what_was_asked_and_nothing_else(case: str) -> None:
    table, keys = REFUSED[case]
    assert set(re.findall(r"\[+\w+\]+|\b[a-z]+\.[a-z]+\b|'[a-z]+'", _refusal(table))) == set(keys.split())


@pytest.mark.parametrize(
    "named", ["sharing.mode = 'partition'", "sites", "phases", "[robust]", "direct links", "capex"]
)
def test_the_help_of_solve_says_of_what_runners_up_are_searched(named: str) -> None:
    text = " ".join((solve.help or "").split())
    assert named in text.split("--top works")[1].split("Exit codes")[0]
