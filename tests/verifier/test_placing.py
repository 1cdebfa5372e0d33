from __future__ import annotations

import math
from typing import Any

import pytest

from coopt.instance.workload import Workload
from coopt.plan.parts import WorkloadPlan
from coopt.verifier.training.mappings import ScalarMapping
from coopt.verifier.training.placing import Placement, placement_of, placements
from tests.verifier.cases import EXPERTS, split, workload


def placed(here: Workload, cut: ScalarMapping, active: int, **inside: int) -> Placement:
    """The one placement with these parts inside a domain."""
    found = [
        place
        for place in placements(here, cut, active)
        if all(getattr(place, f"{key}_in") == value for key, value in inside.items())
    ]
    assert len(found) == 1
    return found[0]


def test_placements_fill_the_domain() -> None:
    found = {(place.tp_in, place.pp_in, place.dp_in) for place in placements(workload(), split(tp=4, pp=2, dp=6), 12)}
    assert found == {(4, 1, 3), (2, 1, 6), (2, 2, 3), (1, 2, 6)}
    cut = split(tp=2, pp=2, dp=3, cp=4)
    every = placements(workload(), cut, 12)
    assert len(set(every)) == len(every)
    assert {(place.tp_in, place.cp_in, place.pp_in, place.dp_in) for place in every} == {
        (t, c, p, d) for t in (1, 2) for c in (1, 2, 4) for p in (1, 2) for d in (1, 3) if t * c * p * d == 12
    }
    for place in every:
        assert math.prod(place[:8]) == 48
        assert place[8:] == (1, 1, 1, 1, 0, "pp", False)


def test_replicas_lie_outermost_where_a_domain_holds_one_stage_and_tp_stays_inside() -> None:
    cut = split(tp=4, pp=4, dp=8)
    found = {
        (place.tp_in, place.pp_in, place.dp_in)
        for place in placements(workload(), cut, 8, turned=True)
        if place.outermost == "dp"
    }
    assert found == {(4, 1, 2), (2, 1, 4)}
    for allowed in ("pp", "dp"):
        asked = workload(mapping={"outermost": allowed})
        assert {place.outermost for place in placements(asked, cut, 8, turned=True)} == {allowed}


def test_tp_stays_inside_domains_where_it_is_not_to_leave_them() -> None:
    cut = split(tp=4, pp=2, dp=6)
    inside = placements(workload(allow_tp_across=False), cut, 12)
    assert inside == tuple(place for place in placements(workload(), cut, 12) if place.tp_across == 1)
    assert 0 < len(inside) < len(placements(workload(), cut, 12))


def test_an_expert_group_takes_tensor_ranks_then_the_others_of_its_domain() -> None:
    here = workload(model=EXPERTS)
    cut = split(tp=2, dp=8, cp=2, ep=8)
    place = placed(here, cut, 8, tp=2, cp=2, dp=2)
    assert (place.ep_in, place.ep_across, place.copies_in, place.copies_across) == (8, 1, 1, 4)
    place = placed(here, cut, 4, tp=1, cp=2, dp=2)
    assert (place.ep_in, place.ep_across, place.copies_in, place.copies_across) == (4, 2, 1, 4)
    place = placed(here, cut._replace(ep=2), 8, tp=2, cp=2, dp=2)
    assert (place.ep_in, place.ep_across, place.copies_in, place.copies_across) == (2, 1, 4, 4)


def test_experts_that_tp_splits_take_context_and_data_ranks_only() -> None:
    here = workload(model=EXPERTS, options={"expert_tp": True})
    place = placed(here, split(tp=2, dp=8, cp=2, ep=8), 8, tp=2, cp=2, dp=2)
    assert (place.ep_in, place.ep_across, place.copies_in, place.copies_across) == (4, 2, 1, 2)


def test_a_domain_that_experts_do_not_fill_evenly_takes_the_common_part() -> None:
    place = placed(workload(model=EXPERTS), split(dp=12, ep=4), 6, dp=6)
    assert (place.ep_in, place.ep_across, place.copies_in, place.copies_across) == (2, 2, 3, 1)


def claim(placement: dict[str, tuple[int, int]], cut: ScalarMapping) -> WorkloadPlan:
    table: dict[str, Any] = {
        "name": "w",
        "gpus": 32,
        "mapping": cut._asdict(),
        "placement": placement,
        "breakdown_s": {},
    }
    numbers = ("iteration_time_s", "bound_s", "memory_gib", "memory_limit_gib", "mfu", "hfu", "tokens_per_s")
    return WorkloadPlan.model_validate(table | dict.fromkeys(numbers, 1.0))


GOOD = {"tp": (2, 1), "cp": (2, 1), "pp": (1, 1), "dp": (2, 4), "ep": (8, 1)}


def test_the_placement_of_a_plan_is_read() -> None:
    here, cut = workload(model=EXPERTS), split(tp=2, dp=8, cp=2, ep=8)
    assert placement_of(here, claim(GOOD, cut), 8) == placed(here, cut, 8, tp=2, cp=2, dp=2)


@pytest.mark.parametrize(
    "change",
    [
        {"ep": (4, 2)},
        {"ep": (1, 8)},
        {"ep": (8, 2)},
        {"dp": (4, 2)},
        {"dp": (2, 2)},
        {"cp": (1, 2)},
        {"tp": (-2, -1)},
        {"xp": (1, 1)},
    ],
)
def test_a_placement_that_does_not_multiply_out_is_none(change: dict[str, tuple[int, int]]) -> None:
    cut = split(tp=2, dp=8, cp=2, ep=8)
    assert placement_of(workload(model=EXPERTS), claim(GOOD | change, cut), 8) is None
