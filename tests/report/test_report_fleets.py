"""A fleet at sites, in phases and in doubt is told in full: every island, every phase, every site and every loss."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.report.islands import core_tables
from coopt.report.page.contents import Origin, PageCase, moment, page_html
from coopt.report.plan import plan_report
from coopt.report.sentence import headline
from coopt.report.tables import rendered
from coopt.report.words import exact, seconds
from tests.conftest import ask, small_model

WORKLOADS = [
    {"name": name, "model": small_model(), "global_batch": 64, "max_iteration_time_s": bound_s, "gpus": 16}
    for name, bound_s in (("first", 0.3), ("second", 0.4))
]
FLEET: dict[str, Any] = {
    "cluster__gpus": 32,
    "workload": WORKLOADS,
    "network__hb_domains": "hgx-h100-8",
    "network__fabrics": "rail-only",
    "objective": {"minimize": "tco", "include": ["hb", "nic", "switch", "optics", "gpu"]},
    "sharing": {
        "mode": "partition",
        "core": {"switch": "16-port", "gbit_s_per_gpu": 400},
        "most_products": {"hb": 1},
        "discount": [{"kind": "nic", "item": "cx7-400g", "from": [8], "off": [0.1], "applies": "incremental"}],
    },
    "limits": {"power_mw": 1.0},
    "network__nics_per_gpu": 1,
    "site": [
        {"name": "east", "power_mw": 0.1, "usd_per_kwh": 0.10, "pue": 1.2},
        {"name": "west", "power_mw": 0.1, "usd_per_kwh": 0.05, "pue": 1.1},
    ],
    "phase": [
        {"year": 2026, "gpus": 16, "workloads": {"name": "first", "max_iteration_time_s": 0.8}},
        {"year": 2028, "gpus": 32, "price": {"nic": 0.5}},
    ],
    "robust": {"survive": "nic", "slower": 3.0, "prices": {"switch": [0.5, 2.0]}},
}


@cache
def solved() -> tuple[Instance, Plan]:
    """The fleet and its plan."""
    instance = ask(**FLEET)
    plan = coopt.solve(instance)
    assert plan.status == "optimal"
    return instance, plan


def text_of(instance: Instance, plan: Plan) -> str:
    """The report on one line."""
    return " ".join(rendered(plan_report(instance, plan), io.StringIO()).split())


def test_the_decision_counts_the_islands_of_the_last_phase_and_names_their_sites() -> None:
    instance, plan = solved()
    said = headline(instance, plan)
    sites = sorted({part.site for part in plan.parts if part.site})
    assert said.startswith(f"Grow in 2 phases to 2 islands with 32 GPUs in all at {' and '.join(sites)}, for $")
    assert said.endswith(" at the worst prices; proven optimal.")
    regretting = ask(**FLEET | {"robust": {**FLEET["robust"], "aim": "regret"}})
    assert headline(regretting, plan).startswith("Grow in 2 phases to 2 islands with 32 GPUs in all")
    assert ": whatever prices come, no plan is cheaper by more than $" in headline(regretting, plan)


def test_every_island_is_told_in_every_phase() -> None:
    instance, plan = solved()
    text = text_of(instance, plan)
    assert len(plan.parts) == 3
    for part in plan.parts:
        assert part.design is not None
        domain = part.design.hb_domain
        assert f"{part.name} {part.site} {domain.count} x {domain.name}" in text
        for run in part.workloads:
            assert f"{seconds(run.iteration_time_s)} {seconds(run.bound_s)}" in text


def test_every_phase_has_its_bill_and_its_limits() -> None:
    instance, plan = solved()
    text = text_of(instance, plan)
    for phase in plan.couplings.growth:
        assert f"Bill of {phase.year:g}, at its worst prices" in text
        for item in phase.bought:
            kind = "hb/GPU" if item.kind == "hb" else item.kind
            shown = (item.item, kind, f"{item.count:,}", exact(item.unit_usd), exact(item.usd))
            assert " ".join(shown) in text
        assert f"{phase.year:g} GPUs" in text
        assert f"{phase.year:g} power" in text
    for site in plan.couplings.sites:
        assert f"{site.phase:g} facility power, {site.site}" in text


def test_cores_losses_and_prices_are_told() -> None:
    instance, plan = solved()
    text = text_of(instance, plan)
    assert plan.couplings.cores
    for shared in plan.couplings.cores:
        assert f"Links into the core at {shared.site}, {shared.phase:g}" in text
        alone = " ".join(one for one in core_tables(instance, shared) if isinstance(one, str))
        assert ("Only one island stands" in alone) == (len(shared.core.islands) == 1)
    assert "400 Gbit/s between the islands of a site for each GPU that trains." in text
    for losses in plan.couplings.losses:
        assert f"{losses.part}: any one nic lost" in text
    assert plan.couplings.outlooks is not None
    assert "Aim least cost at the worst prices" in text
    assert "cx7-400g, 2028" in text
    assert "wide-area" not in text


@pytest.mark.parametrize("key", ["site", "phase", "robust"])
def test_a_fleet_without_one_coupling_says_nothing_of_it(key: str) -> None:
    instance = ask(**{name: value for name, value in FLEET.items() if name != key})
    text = text_of(instance, coopt.solve(instance))
    assert ("facility power" in text) == (key != "site")
    assert ("All phases together" in text) == (key != "phase")
    assert ("What it stands" in text) == (key != "robust")
    assert text.startswith("Build 2 islands" if key == "phase" else "Grow in 2 phases to 2 islands")


def test_the_page_draws_each_site_with_its_core() -> None:
    """Once for each site, as it stands in the end."""
    instance, plan = solved()
    origin = Origin(
        command="coopt report", instance_file="a", plan_file="b", written=moment({"SOURCE_DATE_EPOCH": "0"})
    )
    page = page_html(PageCase(instance=instance, plan=plan, verdict=coopt.verify(instance, plan), origin=origin))
    sites = {shared.site for shared in plan.couplings.cores}
    assert sites
    for number, site in enumerate(sites):
        assert page.count(f'<svg id="hall-{number}"') == 1
        assert page.count(f"<figcaption>The hall at {site} in the end: ") == 1
    assert f'<svg id="hall-{len(sites)}"' not in page
    assert "of the core " in page
