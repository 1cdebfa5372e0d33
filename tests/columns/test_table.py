"""Columns are what plain counting of uplinks finds, whatever contexts are merged and whatever is not timed."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coopt.columns.context import context_of
from coopt.columns.table import columns
from coopt.instance.schema import Instance
from coopt.network.space import families
from tests.solving.oracle import instances

slow = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@settings(slow, max_examples=60)
@given(instances())
def test_a_column_needs_the_least_uplinks_with_which_a_mapping_is_in_time(instance: Instance) -> None:
    table = columns(instance, tuple(families(instance)), lambda _: None, lambda: None)
    found = {(column.workload, column.context): column for column in table.columns}
    for w, workload in enumerate(instance.workload):
        for k, context in enumerate(table.contexts):
            pool = table.pools[w, context.site]
            choices = range(1, context.down + 1) if context.down else range(1)
            enough = [u for u in choices if len(pool) and (pool.time_s(context, u) <= workload.bound_s).any()]
            column = found.get((w, k))
            assert (column.uplinks if column else None) == (_offered(enough[0], context.bundle) if enough else None)


def _offered(uplinks: int, bundle: int) -> int:
    """The first number from there on whose links fill, with bundles of one size, the fewest switches that hold them."""
    return next(u for u in count(uplinks) if not bundle or u % math.ceil(u / bundle) == 0)


@settings(slow, max_examples=60)
@given(instances(), st.integers(1, 4))
def test_contexts_of_spans_that_hold_the_same_blocks_are_timed_alike(instance: Instance, slowdown: int) -> None:
    every = tuple(families(instance))
    table = columns(instance, every, lambda _: None, lambda: None)
    for family in every:
        merged = context_of(family)
        spans = {"pod_span": family.pod_span, "pod_ratio": family.pod_ratio} if family.pods else {}
        own = replace(merged, leaf_span=family.leaf_span if family.tiers > 1 else merged.leaf_span, **spans)
        for w in range(len(instance.workload)):
            pool = table.pools[w, merged.site]
            uplinks = max(merged.down // slowdown, 1)
            np.testing.assert_array_equal(pool.time_s(own, uplinks), pool.time_s(merged, uplinks))
