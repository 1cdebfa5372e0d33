"""A mapping that goes before it is placed, or counted on a network, is late wherever its ranks lie."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.columns.context import DomainSet
from coopt.columns.least_times import least_time_s
from coopt.columns.pace import FEW, table_times_s, unbounded, uplinks_asked
from coopt.columns.placements import split_counts
from coopt.columns.pools import fitting, in_orders, in_time, place
from coopt.columns.table import full_bandwidth
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.variants import at_pace
from coopt.instance.workload import Workload
from coopt.network.space import families
from tests.columns.test_pools import flat, questions
from tests.conftest import ask, example_count, switch
from tests.perf.training import gpu

HB_GBYTE_S = 900.0


@settings(max_examples=example_count(60))
@given(questions(), st.integers(0, 2**32 - 1), st.sampled_from([5e10, 5e11, 5e12]))
def test_no_placement_is_faster(asked: tuple[Workload, Gpu, int], seed: int, byte_s: float) -> None:
    workload, device, gpus = asked
    whole = fitting(workload, device, gpus).fit
    rows = whole.take(np.sort(np.random.default_rng(seed).permutation(len(whole))[:200]))
    least_s = least_time_s(workload, device, rows, hb_gbyte_s=HB_GBYTE_S, byte_s=byte_s)
    for active in (1, 4, 8, 16):
        hb = HbDomain(name="hb", size=active, gbyte_s=HB_GBYTE_S, usd_per_gpu=0, w_per_gpu=0)
        site = DomainSet(gpus=gpus, hb="hb", active=active)
        best = flat(site, byte_s)
        placed = place(workload, device, hb, site, rows)
        assert (np.repeat(least_s, split_counts(rows, active)) <= placed.time_s(best, 1)).all()


def test_one_gpu_in_a_domain_takes_what_the_bound_says() -> None:
    """Where nothing has a choice, the bound gives nothing away."""
    instance = ask(workload__0__mapping={"micro_batch": 1, "cp": [1, 2]})
    (workload,), device = instance.workload, gpu(step_s=0.0)
    rows = fitting(workload, device, 16).fit
    hb = HbDomain(name="hb", size=1, gbyte_s=HB_GBYTE_S, usd_per_gpu=0, w_per_gpu=0)
    site = DomainSet(gpus=16, hb="hb", active=1)
    best = flat(site, 5e12)
    alone = place(workload, device, hb, site, rows)
    least_s = least_time_s(workload, device, rows, hb_gbyte_s=HB_GBYTE_S, byte_s=5e12)
    np.testing.assert_allclose(least_s, alone.time_s(best, 1), rtol=2e-9)


@pytest.mark.parametrize("dp_mode", ["sync", "overlap"])
def test_the_fastest_row_is_found_among_those_that_are_looked_at(dp_mode: str) -> None:
    tapered = {"network__fabrics": ["clos"], "network__oversubscription": 6.0, "network__switches": [switch(8, 5000)]}
    instance = ask(**tapered, workload__0__mapping={}, workload__0__options={"dp_mode": dp_mode})
    every = tuple(families(instance))
    table = unbounded(instance, every, lambda site: None)
    asked = uplinks_asked(every)
    found = table_times_s(table, 0, asked)
    assert found.keys() == asked.keys()
    (workload,), device = at_pace(instance, math.inf).workload, instance.cluster.gpu
    source, domains = fitting(workload, device, 64), {family.hb.name: family.hb for family in every}
    for context, uplinks in asked.items():
        rows, _ = in_time(source, device, domains[context.site.hb], context.site, full_bandwidth([context]))
        assert len(rows) > max(FEW, len(table.pools[0, context.site]))
        plain = in_orders(rows, context.discipline).time_s(context, uplinks.reshape(-1, 1)).min(axis=1)
        np.testing.assert_array_equal(found[context], plain)
    assert any(len(uplinks) > 1 for uplinks in asked.values())
