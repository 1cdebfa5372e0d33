"""A fleet without a plan says which limit, loss or bound is to blame, and what may be left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from tests.explain.changed import way_out
from tests.solving.fleets import growing_at, two


def test_limits_that_nothing_keeps_are_named_where_regret_is_minimised() -> None:
    doubt = {"prices": {"gpu": [0.5, 1.5]}, "aim": "regret"}
    plan = coopt.solve(two(robust=doubt, limits={"power_mw": 0.001}))
    assert plan.status == "infeasible"
    assert plan.explanation[0].startswith("limits.power_mw = 0.001")


def test_a_limit_that_holds_in_every_phase_is_to_blame_alone() -> None:
    """The least power of a site with which the other one may stay as it is, in the phase that takes most."""
    plan = coopt.solve(growing_at(1e-4, 1e-4))
    named = [
        re.fullmatch(r"power_mw of site (\w+) = 0\.0001: needs at least ([\d.]+) .*", text) for text in plan.explanation
    ]
    least = {match[1]: float(match[2]) for match in named if match is not None}
    assert [*least] == ["east", "west"]
    assert len(least) == len(plan.explanation)
    for site, mw in least.items():
        for power_mw, status in ((mw, "optimal"), (mw * (1 - 1e-4), "infeasible")):
            powers = {"east_mw": 1e-4, "west_mw": 1e-4} | {f"{site}_mw": power_mw}
            assert coopt.solve(growing_at(**powers)).status == status, (site, power_mw)


def test_where_no_limit_of_a_fleet_is_to_blame_alone_those_that_the_cheapest_choice_exceeds_are_named() -> None:
    plan = coopt.solve(two(robust={"survive": ["domain"], "slower": 8.0}, limits={"power_mw": 0.001, "racks": 1.0}))
    assert re.search(
        r"the cheapest without limits takes limits\.power_mw [\d.]+, limits\.racks \d+; needs", plan.explanation[0]
    )
    plan = coopt.solve(growing_at(1e-4, 1.0, limits={"racks": 1.0, "power_mw": 1e-4}))
    assert re.search(
        r"takes limits\.power_mw [\d.]+, limits\.racks \d+, power_mw of site east [\d.]+; needs", plan.explanation[0]
    )


def in_turn(**changes: Any) -> Instance:
    """One network that both workloads have in turn, in two phases."""
    table = two().model_dump(mode="json")["workload"]
    workloads = [{key: value for key, value in one.items() if key not in ("gpus", "mapping")} for one in table]
    phases = [{"year": 0, "gpus": 16}, {"year": 2, "gpus": 16}]
    return two(cluster__gpus=16, workload=workloads, phase=phases, sharing={"mode": "time"}, **changes)


@pytest.mark.parametrize(
    ("question", "whose"), [(two, ["workload 'large'", "workload 'small'"]), (in_turn, ["no network that meets"])]
)
def test_the_loss_that_no_island_survives_is_named(question: Callable[..., Instance], whose: list[str]) -> None:
    """A lost Clos leaf cuts whole domains off, however long bounds are; a lost NIC does not."""
    robust = {"survive": ["nic", "leaf"], "slower": 100.0}
    said = coopt.solve(question(robust=robust, network__fabrics="clos")).explanation
    assert len(said) == len(whose)
    for sentence, who in zip(said, whose, strict=True):
        assert sentence.startswith("robust.survive = leaf: no ")
        assert who in sentence
        assert ", 100 times as long, after the loss of any one leaf: needs another fabric " in sentence
        assert sentence.endswith(" (no robust.slower.leaf up to 1000 is enough)")
    assert coopt.solve(question(robust=robust | {"survive": ["nic"]}, network__fabrics="clos")).status == "optimal"


def test_a_larger_factor_is_advised_where_it_helps() -> None:
    """A bound that the fastest NICs just meet, which a lost one does not."""

    def asked(slower: float) -> Plan:
        instance = two(robust={"survive": ["nic"], "slower": slower})
        large, small = instance.workload
        hasty = large.model_copy(update={"max_iteration_time_s": 0.0306})
        return coopt.solve(instance.model_copy(update={"workload": (hasty, small)}))

    (said,) = asked(1.0).explanation
    assert said.startswith("robust.survive = nic: no island of workload 'large' that meets its bound still meets it")
    least = float(said.split("needs robust.slower.nic of at least ")[1].split(",")[0])
    assert asked(least).status == "optimal"
    assert asked(least * (1 - 1e-4)).status == "infeasible"


def test_losses_of_which_islands_survive_each_but_not_all_are_named_together() -> None:
    """A single domain has no leaf to lose, and several have one that cuts whole domains off."""
    sizes = [
        {"name": f"hb{n}", "size": n, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0, "racks": 1} for n in (4, 16)
    ]

    def asked(*lost: str) -> Plan:
        robust = {"survive": lost, "slower": {part: 8.0 for part in lost if part == "domain"}}
        return coopt.solve(two(network__hb_domains=sizes, network__fabrics="clos", robust=robust))

    assert all(asked(lost).status == "optimal" for lost in ("leaf", "domain"))
    large, small = asked("leaf", "domain").explanation
    assert large == (
        "robust.survive = leaf, domain: each of these losses is survived by some island of workload 'large' that meets "
        "its bound, all of them by none: needs a larger robust.slower, or fewer losses to survive"
    )
    assert small == large.replace("'large'", "'small'")


def test_a_bound_that_is_too_short_without_any_loss_is_not_blamed_on_losses() -> None:
    instance = two(robust={"survive": ["leaf"], "slower": 2.0}, network__fabrics="clos")
    large, small = instance.workload
    hasty = small.model_copy(update={"max_iteration_time_s": 1e-4})
    said = coopt.solve(instance.model_copy(update={"workload": (large, hasty)})).explanation
    assert said[0].startswith("robust.survive = leaf: no island of workload 'large' that meets its bound still meets")
    assert said[1].startswith("workload 'small': no island meets its bound on the GPUs there are: needs a bound of")


@pytest.mark.parametrize(
    ("slower", "note"),
    [
        (100.0, ()),
        ({"nic": 100.0, "leaf": 2.0}, ("robust.slower.leaf has to go as well.",)),
        ({"nic": 100.0}, ()),
    ],
)
def test_a_loss_that_need_not_be_survived_is_a_way_out(slower: Any, note: tuple[str, ...]) -> None:
    def asked(lost: list[str], slower: Any) -> Instance:
        return two(robust={"survive": lost, "slower": slower}, network__fabrics="clos")

    way, change = way_out(asked(["nic", "leaf"], slower), "robust.survive")
    assert (change.now, change.to) == ('["nic", "leaf"]', '["nic"]')
    assert way.notes == note
    left = {"nic": slower["nic"]} if isinstance(slower, dict) else slower
    assert coopt.solve(asked(["nic"], left)).objective.value == way.value


def test_a_phase_that_has_too_few_gpus_is_called_by_its_year() -> None:
    phases = [{"year": 2026, "gpus": 8}, {"year": 2028, "gpus": 32}]
    plan = coopt.solve(two(phase=phases))
    assert plan.explanation[0].startswith("phase['2026'].gpus = 8: needs at least 16")
