"""Fleets whose parts are interrupted: each network by its own failures, in phases, at sites and in doubt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.solving.without_parts import plan_faults
from tests.conftest import value
from tests.solving.fleets import two
from tests.solving.interrupted import in_days
from tests.solving.test_model_files import check

OFTEN = {"rates": {"name": "often", "gpu": {"per_year": 5.0}, "optic": {"per_year": 20.0}}, "repair_hours": 24.0}
GROWING = [{"year": 0, "gpus": 24}, {"year": 2, "gpus": 32}]


def fleet(longer: float, **changes: Any) -> Instance:
    """Two workloads in days, `longer` times what the fastest networks take without failures."""
    table = two(**changes).model_dump(by_alias=True)
    table["workload"] = [in_days(one, 0.05 * longer * one["global_batch"] / 8) for one in table["workload"]]
    return Instance.model_validate(table | {"availability": OFTEN})


def test_each_network_has_the_spares_that_its_own_days_take() -> None:
    plan = coopt.solve(fleet(0.4))
    spares = {part.name: part.design.spare_domains for part in plan.parts if part.design}
    assert spares == {"large": 0, "small": 1}
    goodput = {part.name: run.uptime.goodput for part in plan.parts for run in part.workloads if run.uptime}
    assert goodput["large"] < goodput["small"]
    assert coopt.verify(fleet(0.4), plan).accepted


def test_a_bound_of_a_fleet_with_interruptions_takes_a_proof() -> None:
    instance = fleet(0.4)
    plan = coopt.solve(instance)
    proof = coopt.prove(instance, plan)
    claim = plan.objective.model_copy(update={"bound": 1.01 * (plan.objective.value or 0.0)})
    assert coopt.certify(instance, plan, proof).ok
    assert not coopt.certify(instance, plan).ok
    assert not coopt.certify(instance, plan.model_copy(update={"objective": claim}), proof).ok


NEVER = {"rates": {"name": "never"}}


@pytest.mark.parametrize("changes", [{"phase": GROWING}, {"robust": {"prices": {"gpu": [0.5, 2.0]}}}])
def test_one_network_that_grows_or_is_in_doubt_counts_failures_too(changes: dict[str, Any]) -> None:
    """Failures that never happen change nothing; others cost something, and each phase says what they do."""
    table = fleet(0.2, **changes).model_dump(by_alias=True)
    table |= {"sharing": {}, "workload": [table["workload"][0] | {"gpus": None}]}
    plain, never, often = (Instance.model_validate(table | {"availability": one}) for one in (None, NEVER, OFTEN))
    plan = coopt.solve(often)
    assert value(plain) == value(never) < value(often)
    assert all(run.uptime for part in plan.parts for run in part.workloads)
    assert coopt.verify(often, plan).accepted


def test_the_file_of_the_program_has_the_optimum_with_failures(tmp_path: Path) -> None:
    instance = fleet(0.4)
    plan = coopt.solve(instance)
    free = coopt.solve(instance.model_copy(update={"availability": None}))
    assert plan.objective.value != free.objective.value
    check(instance, plan, "lp", tmp_path)


def test_faults_and_routes_of_a_part_know_its_spares() -> None:
    instance = fleet(0.4, phase=GROWING)
    plan = coopt.solve(instance)
    for part in plan.parts:
        (one,), (run,) = plan_faults(instance, plan, part=part.name).interrupted, part.workloads
        assert one.uptime == run.uptime
        assert coopt.route(instance, plan, part=part.name).workloads[0].bound_s == run.bound_s
