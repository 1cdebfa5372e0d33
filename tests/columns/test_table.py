"""Columns are what plain counting of uplinks finds, whatever contexts are merged and whatever is not timed."""

from __future__ import annotations

import math
from itertools import count

from hypothesis import given, settings

from coopt.columns.grid import Context
from coopt.columns.pools import Pool
from coopt.columns.table import columns
from coopt.instance.schema import Instance
from coopt.network.space import families
from tests.conftest import example_count
from tests.solving.oracle import instances

MOST = 4096  # no switch has more ports


@settings(max_examples=example_count(60))
@given(instances())
def test_a_column_needs_the_least_uplinks_with_which_a_mapping_is_in_time(instance: Instance) -> None:
    table = columns(instance, tuple(families(instance)), lambda _: None, lambda: None)
    found = {(column.workload, column.context): column for column in table.columns}
    for w, workload in enumerate(instance.workload):
        for k, context in enumerate(table.contexts):
            pool = table.pools[w, context.site]
            column = found.get((w, k))
            if column is None:
                assert not len(pool) or (pool.time_s(context, MOST) > workload.bound_s).all()
            elif context.layout.is_flat:
                assert column.uplinks == 0
            else:
                assert column.uplinks == _offered(least_of(pool, context), context.bundle)


def least_of(pool: Pool, context: Context) -> int:
    """The least uplinks with which a row is in time, found one by one."""
    bound_s = pool.workload.bound_s
    return next(u for u in count(1) if (pool.time_s(context, u) <= bound_s).any())


def _offered(uplinks: int, bundle: int) -> int:
    """The first number from there on whose links fill, with bundles of one size, the fewest switches that hold them."""
    return next(u for u in count(uplinks) if not bundle or u % math.ceil(u / bundle) == 0)
