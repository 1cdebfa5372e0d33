"""The one design that an instance leaves has the spares of the plan that is found for it."""

from __future__ import annotations

from typing import Any

import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.plan.parts import Design
from tests.conftest import value_of

MAPPING = {
    "tp": 1,
    "pp": 1,
    "dp": 16,
    "micro_batch": 1,
    "interleave": 1,
    "recompute": "none",
    "sequence_parallel": False,
    "zero": 1,
    "offload_percent": 0,
    "outermost": "pp",
}


def interrupted(spares: int | list[int] | None, train_days: float) -> Instance:
    """Sixteen GPUs of two domains that fail so often that spares decide."""
    counts = {} if spares is None else {"spare_domains": spares}
    return Instance.model_validate(
        {
            "schema": 1,
            "name": "interrupted",
            "cluster": {"gpu": {"extends": "h100-sxm", "usd": 100.0}, "gpus": 16},
            "workload": [
                {
                    "name": "w",
                    "model": "gpt-22b",
                    "global_batch": 64,
                    "mapping": MAPPING | {"tp": 4, "dp": 4},
                    "train_tokens": 1e9,
                    "train_days": train_days,
                }
            ],
            "network": {
                "hb_domains": [
                    {
                        "name": "hb12",
                        "size": 12,
                        "gbyte_s": 900.0,
                        "usd_per_gpu": 5000.0,
                        "w_per_gpu": 50.0,
                        "racks": 0.25,
                    }
                ],
                "fabrics": "rail-only",
                "nics": "cx7-400g",
                "switches": "64x400g",
                "optics": "400g-199",
                "max_tiers": 1,
                "oversubscription": 1,
            },
            "objective": {"minimize": "capex"},
            "availability": {"rates": {"name": "mine", "gpu": {"per_year": 100.0}}, **counts},
        }
    )


@pytest.mark.parametrize(
    ("spares", "factor", "standing_by"),
    [(1, 2.0, 1), ([0, 1, 2], 2.0, 0), ([0, 1, 2], 1.0, 1), ([2, 3], 1.0, 2), ([0, 3], 1.0, 3), (None, 1.0, 1)],
)
def test_evaluating_the_one_design_gives_the_spares_of_its_plan(spares: Any, factor: float, standing_by: int) -> None:
    unbound = coopt.evaluate(interrupted(1, 1000.0)).workloads[0]
    assert unbound.uptime is not None
    # as many days as one domain that stands by makes possible, and hardly more
    days = unbound.iteration_time_s / unbound.bound_s * 1000.0 * factor * 1.001
    instance = interrupted(spares, days)
    plan, found = coopt.solve(instance), coopt.evaluate(instance)
    assert isinstance(plan.design, Design)
    assert found.design == plan.design == coopt.mappings(instance).design
    assert found.design.spare_domains == standing_by
    assert found.cost.capex_usd == value_of(plan)
    assert found.workloads == plan.workloads
    assert all(limit.ok for limit in found.limits)


def test_the_fewest_spares_stand_by_where_none_are_enough() -> None:
    found = coopt.evaluate(interrupted([1, 2], 0.001))
    assert found.design.spare_domains == 1
    assert not all(limit.ok for limit in found.limits)


def test_the_bill_without_a_plan_has_the_spares_that_are_asked_for() -> None:
    (with_two, with_none) = (coopt.bom(interrupted(spares, 1000.0)) for spares in (2, 0))
    counts = [{item.item: item.count for item in bill.items}["hb12"] for bill in (with_two, with_none)]
    assert counts == [48, 24]
