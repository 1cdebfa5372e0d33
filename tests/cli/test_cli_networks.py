"""`coopt reproduce` and `coopt bom`: networks without training on them."""

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

import coopt as planner
from coopt.instance.catalog import entries
from coopt.instance.schema import load
from coopt.plan.networks import NetworksBill
from coopt.plan.store import read_plan
from coopt.report.networks import bill_report
from coopt.report.words import rendered
from tests.cli.conftest import Coopt, Solved

INSTANCES = Path(__file__).parents[2] / "instances"
DESIGNS = INSTANCES / "designs"
QUESTIONS = DESIGNS.parent / "questions"
Shipped = Callable[[Path], Path]
PUBLISHED, PRICED = DESIGNS / "published.toml", DESIGNS / "superpod-h100.toml"


@pytest.fixture
def off(tmp_path: Path) -> Path:
    """The priced design with another count published."""
    file = tmp_path / "off.toml"
    file.write_text(PRICED.read_text("utf-8").replace("[32, 16]", "[32, 12]"), "utf-8")
    return file


def test_published_designs_come_out(coopt):
    assert coopt("reproduce", PUBLISHED).stdout.startswith("87 of 87 ")
    found = json.loads(coopt("reproduce", PUBLISHED, "--json").stdout)
    assert found["exact"] == found["of"] == len(found["rows"])
    assert {"id", "published", "counted", "ok", "why"} <= set(found["rows"][0])
    assert found["rows"][0]["counted"] == {"switches": [1024, 512], "links": [32768, 32768], "optics": None}


def test_a_design_that_is_off_says_where_and_exits_5_or_1_where_it_cannot_be_wired(coopt, off):
    done = coopt("reproduce", off)
    assert (done.exit_code, done.stdout[:7], "tier 2 has" in done.stdout) == (5, "0 of 1 ", True)
    (row,) = json.loads(coopt("reproduce", off, "--json").stdout)["rows"]
    assert not row["ok"]
    off.write_text(off.read_text("utf-8").replace("domains = 127", "domains = 512"), "utf-8")
    done = coopt("reproduce", off, "--json")
    assert done.exit_code == 1
    assert "design 'superpod-h100-4su': tiers[1].ports = 64" in done.stderr
    assert json.loads(done.stdout)["rows"][0]["counted"] is None


def test_a_design_is_billed_with_the_products_that_it_names(coopt, tmp_path):
    table = tmp_path / "bill.csv"
    found = json.loads(coopt("bom", PRICED, "--csv", table, "--json").stdout)
    rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
    assert list(rows[0])[:6] == ["part", "description", "quantity", "unit_usd", "usd", "unit_w"]
    quantities = {row["part"]: int(row["quantity"]) for row in rows if row["scope"]}
    assert quantities == {"cx7-400g": 1016, "qm9700": 48, "400g-sr4": 2032, "400g-dr4": 2048}
    assert found["usd"] == pytest.approx(sum(float(row["usd"]) for row in rows))
    assert found["w"] == pytest.approx(sum(float(row["w"]) for row in rows))
    assert [row["part"] for row in rows if row["description"] == "not counted"] == found["not_counted"]
    assert "servers and GPUs" in found["not_counted"]
    assert "Not priced: NICs; switches" in coopt("bom", PUBLISHED, "--design", "dgx-h100-4su").stdout


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("bom", PRICED, "--design", "other"), 1, "--design other: "),
        (("bom", "none.toml"), 1, "no such file"),
        (("reproduce", "none.toml"), 1, "no such file"),
        (("bom", PRICED, "--csv", PRICED), 1, "needs another name"),
        (("bom", "PLAN", "--against", PRICED, "--csv", PRICED), 1, "needs another name"),
        (("bom", "PLAN", "--set", "network.max_tiers=2"), 2, "--set: "),
    ],
)
def test_what_has_no_bill_is_refused(coopt, planned, words, code, says):
    done = coopt(*(planned[1] if word == "PLAN" else word for word in words))
    assert (done.exit_code, done.stdout, says in done.stderr) == (code, "", True), done.stderr


def test_an_instance_of_one_network_is_billed_and_one_that_leaves_a_choice_is_not(coopt, written):
    instance = written(('fabrics = ["rail-only", "clos"]', 'fabrics = "rail-only"'))
    (network,) = json.loads(coopt("bom", instance, "--json").stdout)["networks"]
    assert [item["count"] for item in network["items"] if item["kind"] == "nic"] == [64]
    done = coopt("bom", written())
    assert (done.exit_code, "(rail-only, clos)" in done.stderr) == (1, True)
    assert coopt("bom", written(), "--set", "network.fabrics=clos").exit_code == 0


def test_a_plan_is_billed_with_its_cables_and_lines_that_add_up_to_the_order(coopt, shipped_plan, tmp_path):
    question, table = QUESTIONS / "two-sites.toml", tmp_path / "bill.csv"
    plan = shipped_plan(question)
    done = coopt("bom", question, plan, "--csv", table)
    assert done.exit_code == 0
    assert "Cables" in done.stdout
    assert "servers" not in done.stdout.split("Not counted:")[1]
    rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
    assert sum(float(row["usd"]) for row in rows) == json.loads(plan.read_text("utf-8"))["cost"]["capex_usd"]
    domains = {row["network"]: int(row["quantity"]) for row in rows if row["part"] == "hgx-h100-8"}
    assert domains == {"north": 192, "south": 64}
    assert any(row["part"].startswith("cable ") for row in rows)
    assert "of another instance" in coopt("bom", QUESTIONS / "two-teams.toml", plan).stderr


AGAINST = """schema = 1

[[design]]
id = "same"
domains = 8
gpus_per_domain = 8
fabric = "rail-only"
nic = "cx7-400g"
tiers = [{ ports = 64, switch = "64x400g", optic = "400g-199" }]

[[design]]
id = "twice"
domains = { per_hb_domain = 2 }
gpus_per_domain = 8
fabric = "clos"
nic = "cx7-400g"
bundles = "any"
tiers = [
    { ports = 64, up = 10, switch = "qm9700", optic = "400g-sr4" },
    { ports = 16, switch = "qm9700", optic = "400g-dr4" },
]

[[design]]
id = "counts"
domains = 8
gpus_per_domain = 8
fabric = "clos"
tiers = [{ ports = 64 }]

[[design]]
id = "switches-alone"
domains = 8
gpus_per_domain = 8
fabric = "clos"
spares = { switch = 1.0 }
tiers = [{ ports = 64, switch = "qm9700" }]
"""


def price(kind: str, name: str) -> float:
    return float(entries(kind)[name].usd)


@pytest.fixture
def against(tmp_path: Path) -> Path:
    """Four designs to compare a plan with."""
    file = tmp_path / "against.toml"
    file.write_text(AGAINST, "utf-8")
    return file


def test_what_is_compared_is_in_both_bills(against: Path, shipped_plan: Shipped, tmp_path: Path) -> None:
    """In the plan's own, and in that of each design alone; the bill of the plan stays as it is."""
    instance, plan = load(INSTANCES / "tiny-64.toml"), read_plan(shipped_plan(INSTANCES / "tiny-64.toml"))
    alone = tmp_path / "alone.toml"
    alone.write_text(AGAINST.replace("{ per_hb_domain = 2 }", "16"), "utf-8")
    designs = {one.name: one for one in planner.bom(alone).networks}
    bare, bill = planner.bom(instance, plan), planner.bom(instance, plan, against=against)
    assert bill.model_copy(update={"against": ()}) == bare
    assert planner.bom(plan, against=against).against == bill.against
    assert [pair.design.name for pair in bill.against] == list(designs)
    for pair in bill.against:
        for side, own in ((pair.network, bare.networks[0]), (pair.design, designs[pair.design.name])):
            assert (side.gpus, side.end_points) == (own.gpus, own.tier[0].links)
            assert side.switches == tuple(tier.switches for tier in own.tier)
            assert side.links == sum(tier.links for tier in own.tier)
            lines = [item for item in own.items if item.kind in pair.kinds and not item.spare]
            sums = [math.fsum(item.usd for item in lines), math.fsum(item.w for item in lines)]
            assert [side.usd, side.w] == (sums if pair.kinds else [None, None])


def test_a_design_costs_what_it_does_more_than_the_network(against: Path, shipped_plan: Shipped) -> None:
    plan = read_plan(shipped_plan(INSTANCES / "tiny-64.toml"))
    same, twice, counts, switches = planner.bom(plan, against=against).against
    assert (same.more_usd, same.more, same.more_per_end_point, same.notes) == (0.0, 0.0, 0.0, ())
    assert same.design.model_copy(update={"name": same.network.name}) == same.network
    assert (twice.design.gpus, twice.design.end_points, twice.design.switches) == (128, 128, (4, 3))
    assert (twice.design.oversubscription, twice.design.pair_share) == (3.2, 0.9)
    usd = 128 * price("nic", "cx7-400g") + 7 * price("switch", "qm9700")
    usd += 256 * price("optic", "400g-sr4") + 2 * 40 * price("optic", "400g-dr4")
    assert (twice.design.usd, twice.more_usd) == (usd, usd - same.network.usd)
    assert twice.more == pytest.approx(usd / same.network.usd - 1)
    assert twice.more_per_end_point == pytest.approx(usd / 2 / same.network.usd - 1)
    costs = f"costs ${usd / 128:,.2f} and the plan's network $2,842.00: the design costs 87% more."
    ends, order = twice.notes
    assert "128 end points" in ends
    assert ends.endswith(costs)
    assert "for 42 modules" in order
    assert (counts.kinds, counts.design.usd, counts.more_usd, counts.more) == ((), None, None, None)
    (note,) = counts.notes
    assert "no products" in note
    assert (switches.kinds, switches.design.usd) == (("switch",), price("switch", "qm9700"))
    (note,) = switches.notes
    assert "tier 1" in note


def test_lines_that_a_plan_leaves_out_are_in_no_sum(coopt: Coopt, solved: Solved, against: Path) -> None:
    planned = solved(("[network]", '[objective]\ninclude = ["switch"]\n\n[network]'))
    same = json.loads(coopt("bom", *planned, "--against", against, "--json").stdout)["against"][0]
    assert (same["kinds"], same["more_usd"]) == (["switch"], 0.0)
    (note,) = same["notes"]
    assert "NICs and optics" in note


def test_every_network_of_a_plan_is_compared(coopt: Coopt, against: Path, shipped_plan: Shipped) -> None:
    """But for a core, which has no end points."""
    question = INSTANCES / "fleet-core-growth.toml"
    against.write_text(AGAINST.replace("{ per_hb_domain = 2 }", "16"), "utf-8")
    done = coopt("bom", question, shipped_plan(question), "--against", against, "--json")
    found = NetworksBill.model_validate_json(done.stdout)
    joined = [one.name for one in found.networks if one.fabric != "core"]
    assert 1 < len(joined) < len(found.networks)
    pairs = [(pair.network.name, pair.design.name) for pair in found.against]
    assert pairs == [(name, design) for name in joined for design in ("same", "twice", "counts", "switches-alone")]
    said = rendered(bill_report(found))
    assert [f"Designs beside {name}" in said for name in joined] == [True] * len(joined)


def test_designs_without_a_network_to_compare_with_are_refused(coopt, written, against, shipped_plan):
    tiny = shipped_plan(INSTANCES / "tiny-64.toml")
    for source, told in (
        (
            written(('fabrics = ["rail-only", "clos"]', 'fabrics = "clos"')),
            "needs that plan (coopt bom INSTANCE PLAN.json",
        ),
        (against, "needs that plan (coopt bom INSTANCE PLAN.json"),
        (shipped_plan(INSTANCES / "direct-32.toml"), "network of switches"),
        (tiny, "against.toml: design 'twice': tiers[1].ports = 2: a switch of tier 2 would need 4 "),
    ):
        if source == tiny:
            against.write_text(AGAINST.replace("ports = 16", "ports = 2"), "utf-8")
        done = coopt("bom", source, "--against", against)
        assert (done.exit_code, done.stdout, told in done.stderr) == (1, "", True), done.stderr
