"""What ties parts is shown with its figures: sites, cores, purchases together, phases, losses and prices."""

import io
from functools import cache
from typing import Any

import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.report import words
from coopt.report.couplings import bill_tables, coupling_tables
from coopt.report.facts import tco_sentence
from coopt.report.page.contents import Origin, PageCase, moment, page_html
from coopt.report.plan import headline, plan_report
from coopt.report.words import FactTable, FigureTable, rendered
from coopt.solving.answer import solve
from tests.conftest import ask, small_model
from tests.kinds import solved
from tests.solving.test_partitions import cored as two
from tests.verifier.test_phased_claims import CASES, growing

WORKLOADS = [
    {"name": name, "model": small_model(), "global_batch": 64, "max_iteration_time_s": bound_s, "gpus": 16}
    for name, bound_s in (("first", 0.3), ("second", 0.4))
]
FLEET: dict[str, Any] = {
    "cluster__gpus": 32, "workload": WORKLOADS, "network__hb_domains": "hgx-h100-8", "network__fabrics": "rail-only",
    "objective": {"minimize": "tco", "include": ["hb", "nic", "switch", "optics", "gpu"]},
    "sharing": {
        "mode": "partition", "core": {"switch": "16-port", "gbit_s_per_gpu": 400}, "most_products": {"hb": 1},
        "discount": [{"kind": "nic", "item": "cx7-400g", "from": [8], "off": [0.1], "applies": "incremental"}],
    },
    "limits": {"power_mw": 1.0}, "network__nics_per_gpu": 1,
    "site": [
        {"name": "east", "power_mw": 0.1, "usd_per_kwh": 0.10, "pue": 1.2},
        {"name": "west", "power_mw": 0.1, "usd_per_kwh": 0.05, "pue": 1.1},
    ],
    "phase": [
        {"year": 2026, "gpus": 16, "workloads": {"name": "first", "max_iteration_time_s": 0.8}},
        {"year": 2028, "gpus": 32, "price": {"nic": 0.5}},
    ],
    "robust": {"survive": "nic", "slower": 3.0, "prices": {"switch": [0.5, 2.0]}},
}  # fmt: skip


@cache
def fleet() -> tuple[Instance, Plan]:
    """A fleet with every coupling, and its plan."""
    instance = ask(**FLEET)
    plan = coopt.solve(instance)
    assert plan.status == "optimal"
    return instance, plan


@cache
def grown(case: str = "") -> tuple[Instance, Plan]:
    instance = CASES[case]() if case else growing(network__fabrics="clos", limits__power_mw=1.0)
    return instance, solve(instance)


def text_of(instance: Instance, plan: Plan) -> str:
    return " ".join(rendered(plan_report(instance, plan), io.StringIO()).split())


def tables(instance: Instance, plan: Plan) -> dict[str, dict[str, tuple[str, ...]]]:
    """The rows of each table of couplings and bills by their first cell, by the titles of tables."""
    assert plan.cost is not None
    pieces = [*coupling_tables(instance, plan, plan.cost), *bill_tables(instance, plan, plan.cost)]
    return {
        piece.title: {str(row[0]): tuple(map(str, row)) for row in piece.rows}
        for piece in pieces
        if isinstance(piece, FigureTable | FactTable)
    }


def test_the_headline_counts_the_islands_of_the_last_phase_and_names_their_sites() -> None:
    instance, plan = fleet()
    last = [part for part in plan.parts if part.phase == 2028]
    sites = words.both(dict.fromkeys(part.site for part in last if part.site))
    assert headline(instance, plan).startswith(
        f"Grow in 2 phases to {len(last)} clusters with 32 GPUs in all at {sites},"
    )
    assert headline(instance, plan).count("worst prices") == 1
    assert "worst prices" not in headline(ask(**FLEET | {"robust": {**FLEET["robust"], "aim": "regret"}}), plan)


def test_every_site_core_loss_and_discount_has_its_figures() -> None:
    instance, plan = fleet()
    shown = tables(instance, plan)
    for site in plan.couplings.sites:
        row = shown["Sites"][f"{site.site}, {site.phase:g}"]
        assert row[3:] == (words.power(site.facility_w), words.power(site.facility_limit_w))
    assert plan.couplings.cores
    for shared in plan.couplings.cores:
        rows = shown[f"Links from islands into the core at {shared.site}, {shared.phase:g}"]
        assert {name: row[2] for name, row in rows.items()} == {
            links.workload: words.count(links.links) for links in shared.core.islands
        }
    assert {"cx7-400g, 2026", "cx7-400g, 2028"} == set(shown["Discounts"])
    standing = " ".join(row[1] for row in shown["What the plan withstands"].values())
    assert "worst prices" in standing
    text = text_of(instance, plan)
    assert all(f"{losses.part}: loss of any one NIC" in text for losses in plan.couplings.losses)


@pytest.mark.parametrize("key", ["site", "phase", "robust"])
def test_a_fleet_without_one_coupling_says_nothing_of_it(key: str) -> None:
    instance = ask(**{name: value for name, value in FLEET.items() if name != key})
    plan = coopt.solve(instance)
    titles = set(tables(instance, plan))
    assert ("Sites" in titles) == (key != "site")
    assert ("What the plan withstands" in titles) == (key != "robust")
    assert any(title.startswith("Bill of 2028") for title in titles) == (key != "phase")
    assert headline(instance, plan).startswith("Build" if key == "phase" else "Grow")


def test_sites_that_train_together_have_shares_channels_and_one_bound() -> None:
    instance, plan = solved("sites")
    ring = plan.couplings.ring
    assert ring is not None
    shown = tables(instance, plan)
    shares = {name: row[1] for name, row in shown["Sites"].items()}
    assert shares == {name: f"{n} of {ring.shares}" for name, n in zip(ring.sites, ring.site_shares, strict=True)}
    (link,) = ring.wan
    assert shown["Wide-area links, each way"][" - ".join(link.between)][1] == str(link.channels)
    (exchange,), (workload,) = ring.exchanges, instance.workload
    assert f"{exchange.sent_bytes / 1e9:.3f} GB" in text_of(instance, plan)
    rate = {"max_iteration_time_s": None, "min_tokens_per_s": workload.tokens_per_iteration / workload.bound_s}
    asked = instance.model_copy(update={"workload": (workload.model_copy(update=rate),)})
    slowest_s = max(run.iteration_time_s for run in plan.runs)
    days = 1e12 / workload.tokens_per_iteration * slowest_s / 86400
    assert f"1 trillion tokens in {days:,.4g} days" in text_of(instance, plan)
    said = f"131,072 tokens/s; this plan reaches {workload.tokens_per_iteration / slowest_s:,.0f} tokens/s."
    assert said in text_of(asked, plan)


def test_an_incremental_bracket_is_reached_by_units_beyond_its_threshold() -> None:
    """Two domains hold 72 GPUs: the last of them is discounted where the discount begins at 71."""
    for applies, begin, reached in (("incremental", 72, 0), ("incremental", 71, 1), ("all-units", 72, 1)):
        discount = {"kind": "gpu", "item": "h100-sxm", "from": [begin], "off": [0.05], "applies": applies}
        instance = two(sharing={"mode": "partition", "discount": [discount]})
        (row,) = tables(instance, coopt.solve(instance))["Discounts"].values()
        assert row[1] == applies
        assert row[2] == (f"from {begin} (1 of 1)" if reached else "list price (0 of 1)")


def test_a_core_of_one_island_or_of_one_domain_is_remarked_on() -> None:
    instance, plan = fleet()
    alone = [shared for shared in plan.couplings.cores if len(shared.core.islands) == 1]
    assert text_of(instance, plan).count("joins only one island") == len(alone) > 0
    instance = two(core={"gbit_s_per_gpu": 100.0})
    text = text_of(instance, coopt.solve(instance))
    assert "no leaf" in text
    assert "joins only one island" not in text


def test_every_phase_has_its_bill_limits_and_stock() -> None:
    instance, plan = grown()
    shown, text = tables(instance, plan), text_of(instance, plan)
    for phase in plan.couplings.growth:
        rows = shown[f"Bill of {phase.year:g}, at the prices of that phase"]
        assert {name: row[4] for name, row in rows.items()} == {
            item.item: words.exact(item.usd) for item in phase.bought
        }
        assert f"{phase.year:g} power" in text
        assert f"{phase.year:g} time, first" in text
        assert all(f"{unit.count} x {unit.item}" in text for unit in phase.stored)
    assert any(phase.stored for phase in plan.couplings.growth)


def test_foresight_is_told_in_money_or_as_a_dead_end() -> None:
    instance, plan = grown()
    myopic = plan.couplings.myopic
    assert myopic is not None
    assert myopic.saving is not None
    assert f"saves {words.money(myopic.saving)}" in text_of(instance, plan)
    same = plan.couplings.model_copy(update={"myopic": myopic.model_copy(update={"saving": 0.0})})
    assert "saves" not in text_of(instance, plan.model_copy(update={"couplings": same}))
    instance, plan = grown("a dead end")
    assert plan.couplings.myopic is not None
    assert str(plan.couplings.myopic.dead_end) in text_of(instance, plan)


def test_sites_that_pay_alike_are_told_what_they_pay() -> None:
    instance, plan = solved("sites")
    assert plan.cost is not None
    alike = [site.model_copy(update={"pue": None, "usd_per_kwh": 0.05}) for site in instance.site]
    for sites, is_told in ((instance.site, False), (tuple(alike), True)):
        text = tco_sentence(instance.model_copy(update={"site": sites}), plan.cost)
        assert ("$0.05 per kWh" in text) is is_told


def test_a_regret_is_never_called_a_cost() -> None:
    instance, plan = solved("regret")
    assert plan.couplings.outlooks is not None
    assert len(tables(instance, plan)["Cost in each price scenario"]) == len(plan.couplings.outlooks.turns)
    claim = plan.objective.model_copy(update={"value": 1000.0, "bound": 400.0, "gap": 0.6})
    for status, figures in (("optimal", ["$1.00 k"]), ("feasible", ["$1.00 k", "60.0%"])):
        said = headline(instance, plan.model_copy(update={"status": status, "objective": claim}))
        assert all(figure in said for figure in figures)
        assert " costs " not in said
        assert "for $1.00 k" not in said
        assert (" at list prices" in said) == (status == "optimal")
    assert "regret of capex: value $0" in text_of(instance, plan)


def test_the_page_draws_each_site_with_its_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each site, as it stands in the end."""
    monkeypatch.setattr("coopt.report.pictures.picture", lambda figure, ending: b"")
    instance, plan = fleet()
    origin = Origin(command="c", instance_file="a", plan_file="b", written=moment({"SOURCE_DATE_EPOCH": "0"}))
    page = page_html(PageCase(instance=instance, plan=plan, verdict=coopt.verify(instance, plan), origin=origin))
    sites = {shared.site for shared in plan.couplings.cores}
    for number, site in enumerate(sites):
        assert page.count(f'<svg id="hall-{number}"') == page.count(f"The hall at {site}") / 2 == 1
    assert f'<svg id="hall-{len(sites)}"' not in page
