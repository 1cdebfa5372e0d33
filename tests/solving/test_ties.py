"""Of networks that cost the same and are as fast, the one that joins rails is taken, however they are listed."""

from __future__ import annotations

from itertools import permutations

import pytest

import coopt
from coopt.instance.schema import Instance
from tests.conftest import ask, switch

PAIR = {"name": "pair", "size": 2, "gbyte_s": 450, "usd_per_gpu": 10, "w_per_gpu": 1}


def listing(*fabrics: str, **changes: object) -> Instance:
    """16 domains of 2 GPUs: four leaves a rail and 12 switches in all, whether rails meet above the leaves or not."""
    return ask(
        cluster__gpus=32,
        workload__0__max_iteration_time_s=20.0,
        workload__0__mapping={"tp": 2, "pp": 2},
        network__hb_domains=PAIR,
        network__fabrics=list(fabrics),
        network__switches=switch(8, 5000),
        network__oversubscription=1.0,
        network__charge="loads",
        **changes,
    )


@pytest.mark.parametrize("mode", ["time", "partition"])
@pytest.mark.parametrize("fabrics", list(permutations(("rail-only", "rail-optimized"))))
def test_rails_are_joined_where_it_costs_nothing(fabrics: tuple[str, str], mode: str) -> None:
    sharing = {"sharing": {"mode": mode}, "workload__0__mapping__dp": [8]} if mode == "partition" else {}
    apart, both = (coopt.solve(listing(*names, **sharing)) for names in (("rail-only",), fabrics))
    assert both.objective.value == apart.objective.value
    ((part,), (alone,)) = both.parts, apart.parts
    assert part.design.fabric.tiers == 2
    assert part.design.fabric.kind == "rail-optimized"
    assert part.workloads[0].iteration_time_s == pytest.approx(alone.workloads[0].iteration_time_s, rel=1e-9)
