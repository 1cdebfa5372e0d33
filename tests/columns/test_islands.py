"""Sieves drop only what something kept beats, islands are listed at once, and columns need the fewest uplinks."""

import math
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.columns.feasible import fastest_s
from coopt.columns.grid import Context, mappings
from coopt.columns.islands import needs, options
from coopt.columns.islands.coupling import Coupling, Usage
from coopt.columns.islands.listing import Islands, Market
from coopt.columns.islands.options import ListedIslands, islands_of, list_options, within_bounds
from coopt.columns.islands.shapes import quick_degrees, sites_of
from coopt.columns.pools import Pool, Slopes, needed_options, undominated
from coopt.columns.table import columns
from coopt.explain.prices import prices_of
from coopt.instance.schema import Instance, load
from coopt.instance.workload import Workload
from coopt.network.cores import with_core_optics
from coopt.network.space import Space, domain_counts, families
from coopt.perf.mapping import Bools, distinct_rows
from tests.conftest import ask, example_count
from tests.solving.fleets import partitions
from tests.solving.oracle import instances


@settings(max_examples=example_count(200))
@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3, st.integers(0, 2)), max_size=120))
def test_every_dropped_row_has_a_kept_one_that_is_nowhere_larger(rows: list[tuple[int, int, int, int]]) -> None:
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    values, classes = table[:, :3], table[:, 3].astype(np.int64)
    keep = undominated(values, classes)
    for i in np.flatnonzero(~keep):
        assert ((values[keep] <= values[i]).all(axis=1) & (classes[keep] == classes[i])).any()
    for i in np.flatnonzero(keep):
        better = keep & (classes == classes[i]) & (values <= values[i]).all(axis=1)
        assert better.sum() == 1  # few enough rows for the sieve to finish


@settings(max_examples=example_count(100))
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3000), st.integers(0, 3000)), min_size=1, max_size=60),
    st.sampled_from([1, 1 << 20, 1 << 30]),
)
def test_distinct_rows_bring_every_row_back(rows: list[tuple[int, int, int]], unit: int) -> None:
    columns = np.array(rows, dtype=np.int64).T
    # looked up in a table, sorted by one number, or column by column, and by all where one number is too small
    for used in (columns[:2], columns * unit, np.tile(columns * unit, 100), np.tile(columns, (6, 1))):
        found, position = distinct_rows(*used)
        np.testing.assert_array_equal(np.stack(found)[:, position], used)
        assert [*zip(*found, strict=True)] == sorted({*zip(*used, strict=True)})


FLAT = Slopes(min_usd=np.array([5.0, 7.0]), max_usd=np.array([5.0, 7.0]))
ALL_UNITS = Slopes(min_usd=np.array([0.0, 7.0]), max_usd=np.array([5.0, 7.0]))
APART = np.array([[True, False], [False, True]])


NO_JOINS, BOTH_JOIN, ONE_JOINS = None, [[True, True], [True, False]], [[True, False], [True, True]]
OPTIONS = {  # USD, use of the one resource, units of two products, slopes, limited kinds joined; what is kept
    "of more everything": ([1, 1, 2], [3, 4, 3], [[1, 0], [1, 0], [2, 0]], FLAT, NO_JOINS, [0]),
    "equal, of which the first is kept": ([1, 1], [3, 3], [[1, 0], [1, 0]], FLAT, NO_JOINS, [0]),
    "less of one resource": ([1, 9], [4, 3], [[1, 0], [1, 0]], FLAT, NO_JOINS, [0, 1]),
    "units of another product that pay": ([0, 0], [3, 3], [[2, 0], [0, 2]], FLAT, NO_JOINS, [0]),
    "another product of a limited kind": ([0, 0], [3, 3], [[2, 0], [0, 2]], FLAT, APART, [0, 1]),
    "fewer products of a limited kind, later": ([0, 0], [3, 3], [[2, 0], [2, 0]], FLAT, BOTH_JOIN, [0, 1]),
    "fewer products of a limited kind, first": ([0, 0], [3, 3], [[2, 0], [2, 0]], FLAT, ONE_JOINS, [0]),
    "units that cost": ([10, 9], [3, 3], [[1, 0], [2, 0]], FLAT, NO_JOINS, [0]),
    "units that may be free": ([10, 9], [3, 3], [[1, 0], [2, 0]], ALL_UNITS, NO_JOINS, [0, 1]),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options_are_dropped_for_those_that_are_nowhere_worse(case: str) -> None:
    usd, uses, quantity, slopes, joins, kept = OPTIONS[case]
    sets = np.zeros((len(usd), 0), dtype=bool) if joins is None else np.asarray(joins)
    rows = np.array(uses, dtype=float).reshape(-1, 1)
    assert needed_options(np.array(usd), rows, np.array(quantity, dtype=float), sets, slopes).tolist() == kept


@pytest.mark.parametrize("slopes", [FLAT, ALL_UNITS])
def test_every_dropped_option_has_a_kept_one_that_dominates_it(slopes: Slopes) -> None:
    rng = np.random.default_rng(0)
    usd, uses = rng.integers(0, 9, 400).astype(float), rng.integers(0, 5, (400, 2)).astype(float)
    quantity, joins = rng.integers(0, 4, (400, 2)).astype(float), rng.random((400, 2)) < 0.5
    found = needed_options(usd, uses, quantity, joins, slopes)
    for b in np.setdiff1d(np.arange(400), found):
        more, less = np.maximum(quantity[found] - quantity[b], 0), np.maximum(quantity[b] - quantity[found], 0)
        dearer = usd[found] - usd[b] + more @ slopes.max_usd - less @ slopes.min_usd
        fits = (uses[found] <= uses[b]).all(axis=1) & ~(joins[found] & ~joins[b]).any(axis=1)
        assert (fits & (dearer <= 0)).any()


def test_sites_are_those_of_the_space_of_designs() -> None:
    domains = ask().network.hb_domains
    for gpus in range(1, 100):
        sites = sites_of(np.array([gpus]), domains)
        found = sorted(zip(sites.hb.tolist(), sites.domains.tolist(), strict=True))
        assert found == sorted((h, d) for h, hb in enumerate(domains) for d in domain_counts(gpus, hb))


@settings(max_examples=example_count(40))
@given(st.floats(0.05, 2.0))
def test_no_split_that_is_quick_enough_is_left_out(bound_s: float) -> None:
    instance = ask(workload__0__max_iteration_time_s=bound_s)
    (workload,) = instance.workload
    quick = {tuple(row) for row in quick_degrees(workload, instance.cluster.gpu, 64).tolist()}
    for gpus in (4, 8, 32, 64):
        whole, _ = mappings(workload, gpus)
        in_time = whole.take(fastest_s(workload, instance.cluster.gpu, whole) <= bound_s)
        columns = (in_time.tp, in_time.cp, in_time.pp, in_time.dp)
        assert {tuple(row) for row in np.stack(columns, axis=1).tolist()} <= quick


def test_a_choice_that_leaves_nothing_leaves_no_mapping() -> None:
    instance = ask(workload__0__mapping={"interleave": 7, "pp": 2})
    whole, uneven = mappings(instance.workload[0], 64)
    assert (len(whole), len(uneven.counts)) == (0, 0)
    assert whole.tp.dtype == np.int64


def test_workloads_alike_share_their_islands() -> None:
    instance = ask(sharing={"mode": "partition"})
    (one,) = instance.workload
    twins = instance.model_copy(update={"workload": (one, one.model_copy(update={"name": "twin"}))})
    found = list_options(twins, lambda _: None, lambda: None)
    first, second = (found.islands.units[found.workload == w] for w in (0, 1))
    assert len(first)
    assert np.array_equal(first, second)


SMALL = {"sharing": {"mode": "partition"}, "cluster__gpus": 32, "workload__0__global_batch": 32}


def test_islands_that_an_earlier_search_listed_are_those_that_would_be_listed() -> None:
    instance, listed, looked_into = ask(**SMALL), ListedIslands(), []
    (one,) = instance.workload
    for slower in (1.0, 1.0, 2.0, 1.0, 3.0):
        other = one.model_copy(update={"name": "other", "max_iteration_time_s": one.bound_s * slower})
        asked = instance.model_copy(update={"workload": (one, other)})
        again = list_options(asked, lambda _: None, lambda: looked_into.append(slower), listed)  # noqa: B023
        alone = list_options(asked, lambda _: None, lambda: None)
        assert np.array_equal(again.islands.units, alone.islands.units)
        assert np.array_equal(again.workload, alone.workload)
        assert again.gated == alone.gated
    assert list(dict.fromkeys(looked_into)) == [1.0, 2.0, 3.0]
    dearer = instance.model_copy(update={"limits": instance.limits.model_copy(update={"power_mw": 1.0})})
    before = len(looked_into)
    list_options(dearer, lambda _: None, lambda: looked_into.append(0.0), listed)
    assert len(looked_into) > before


def test_mappings_in_time_are_kept_for_other_prices_parts_and_shorter_bounds(monkeypatch) -> None:
    instance, listed, calls, looked_into = ask(**SMALL), ListedIslands(), [], []
    gpu, network = instance.cluster.gpu, instance.network
    dearer = instance.cluster.model_copy(update={"gpu": gpu.model_copy(update={"usd": 1.0})})
    smaller = instance.cluster.model_copy(update={"gpu": gpu.model_copy(update={"hbm_gb": gpu.hbm_gb / 2})})
    one_domain = network.model_copy(update={"hb_domains": network.hb_domains[1:]})
    (one,) = instance.workload
    hurried, unhurried = (
        (one.model_copy(update={"max_iteration_time_s": one.bound_s * factor}),) for factor in (0.8, 1.2)
    )
    changes = [{}, {"cluster": dearer}, {"cluster": smaller}, {"network": one_domain}, {"workload": hurried}]
    changes.append({"workload": unhurried})
    changes.append({"cluster": dearer})
    monkeypatch.setattr(options, "rows_of", lambda *given: calls.append(given) or needs.rows_of(*given))
    for change in changes:
        asked, before = instance.model_copy(update=change), len(calls)
        again = list_options(asked, lambda _: None, lambda: None, listed)
        looked_into.append(len(calls) > before)
        alone = list_options(asked, lambda _: None, lambda: None)
        assert np.array_equal(again.islands.units, alone.islands.units)
        assert again.gated == alone.gated
    assert looked_into == [True, False, True, True, False, True, False]


@pytest.mark.parametrize("tiers", ["same", "any"])
def test_networks_of_all_workloads_are_listed_once_for_other_bounds(monkeypatch, tiers) -> None:
    instance, listed, calls, looked_into = ask(network__tier_switches=tiers), ListedIslands(), [], []
    (one,) = instance.workload
    longer = one.model_copy(update={"max_iteration_time_s": one.bound_s * 2})
    deeper = one.model_copy(update={"model": one.model.model_copy(update={"layers": 2 * one.model.layers})})
    dearer = instance.cluster.model_copy(update={"gpu": instance.cluster.gpu.model_copy(update={"usd": 1.0})})
    changes = [{}, {"workload": (longer,)}, {"cluster": dearer}, {"workload": (deeper,)}, {}]
    built = Space.with_any_ends
    monkeypatch.setattr(Space, "with_any_ends", lambda *given: calls.append(given) or built(*given))
    for change in changes:
        asked, before = instance.model_copy(update=change), len(calls)
        again = coopt.solve(asked, listed=listed)
        looked_into.append(len(calls) > before)
        alone = coopt.solve(asked)
        assert (again.objective, again.design, again.cost) == (alone.objective, alone.design, alone.cost)
    assert looked_into == [True, False, False, False, False]  # neither prices nor models make other networks


@settings(max_examples=example_count(20))
@given(st.one_of(partitions(), partitions(core=True)))
def test_an_island_at_a_shorter_bound_is_found_as_if_mappings_were_listed_at_that(instance: Instance) -> None:
    asked = next(iter(with_core_optics(instance)))

    def at(slower: float) -> Workload:
        return asked.workload[0].model_copy(update={"max_iteration_time_s": asked.workload[0].bound_s * slower})

    coupling, is_served = Coupling(market=Market(instance=asked)), within_bounds(asked, at(8.0), lambda: None)
    for slower in (8.0, 0.5, 2.0, 1.0):
        islands, _ = islands_of(coupling, at(slower), lambda: None)
        assert is_served(at(slower).bound_s) == (len(islands) > 0)


@settings(max_examples=example_count(40))
@given(st.one_of(partitions(), partitions(core=True)), st.integers(2, 48))
def test_every_site_on_closed_domains_is_beaten(instance: Instance, gpus: int) -> None:
    coupling = Coupling(market=Market(instance=next(iter(with_core_optics(instance)))))
    kept, _ = islands_of(coupling, instance.workload[0], lambda: None)
    every = sites_of(np.arange(gpus, 100), instance.network.hb_domains)
    closed = coupling.closed_domains(gpus, coupling.of_islands(kept))
    assert coupling.wholly_beaten(every.take(closed[every.hb]), coupling.of_islands(kept)).all()


class LookingIntoAll(Coupling):
    """Leaves no network out before its uplinks are known."""

    def dominated(self, kept: Islands, others: Usage) -> Bools:
        return np.zeros(len(others[0]), dtype=np.bool_)


def leaves_out_what_would_be_dropped(instance: Instance, workload: Workload) -> bool:
    market, listed = Market(instance=instance), ListedIslands()  # with the same mappings in time on each site
    few, _ = islands_of(Coupling(market=market), workload, lambda: None, listed)
    every, _ = islands_of(LookingIntoAll(market=market), workload, lambda: None, listed)
    columns, of_all = ({name: part.tolist() for name, part in vars(one).items()} for one in (few, every))
    return columns == of_all


@settings(max_examples=example_count(40))
@given(st.one_of(partitions(), partitions(core=True)))
def test_networks_that_are_left_out_unseen_are_those_that_would_be_dropped(instance: Instance) -> None:
    assert leaves_out_what_would_be_dropped(next(iter(with_core_optics(instance))), instance.workload[0])


@pytest.mark.parametrize("name", ["fleet-core-growth", "fleet-3-phases-2-sites"])
def test_networks_of_a_fleet_that_are_left_out_unseen_are_those_that_would_be_dropped(name: str) -> None:
    fleet = load(Path(__file__).parents[2] / "instances" / f"{name}.toml")
    assert all(leaves_out_what_would_be_dropped(fleet, workload) for workload in fleet.workload[:2])


@settings(max_examples=example_count(40))
@given(st.one_of(partitions(), partitions(core=True)), st.lists(st.integers(0, 40), min_size=3, max_size=3))
def test_networks_that_are_listed_once_are_those_at_any_prices(instance: Instance, numbers: list[int]) -> None:
    listed, prices = ListedIslands(prices_vary=True), list(prices_of(instance))
    for number in [0, *numbers]:  # prices of nothing, as they are, and twice as high
        price = prices[number % len(prices)]
        asked = price.with_price(instance, price.now * (number % 3))
        for one in with_core_optics(asked):
            alone, again = (list_options(one, lambda _: None, lambda: None, cache) for cache in (None, listed))
            columns, of_cache = ({key: part.tolist() for key, part in vars(x.islands).items()} for x in (alone, again))
            assert columns == of_cache


def test_what_fewer_units_make_dearer_is_listed_at_each_price() -> None:
    instance, listed = ask(sharing={"mode": "partition"}), ListedIslands(prices_vary=True)
    coupling = Coupling(market=Market(instance=instance))
    first, second = (listed.table(coupling, instance.workload[0]) for _ in range(2))
    coupling.__dict__["slopes"] = replace(coupling.slopes, min_usd=coupling.slopes.min_usd - math.inf)
    assert (first, second is None) == (None, False)
    assert listed.table(coupling, instance.workload[0]) is None


def test_domains_are_closed_from_some_size_on() -> None:
    """The property above says something: sites far larger than needed are closed, those of few GPUs are not."""
    instance = ask(sharing={"mode": "partition"})
    coupling = Coupling(market=Market(instance=instance))
    kept = coupling.of_islands(islands_of(coupling, instance.workload[0], lambda: None)[0])
    assert coupling.closed_domains(10_000, kept).any()
    assert not coupling.closed_domains(2, kept).any()


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
