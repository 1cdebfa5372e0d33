"""What is dropped before it is placed or counted could not have met its bound; flows by closed forms."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.columns import flows, pools
from coopt.columns.algorithm_loads import most_edges
from coopt.columns.feasible import (
    _feasible_mappings,
    compute_s,
    feasible_mappings,
    least_time_s,
    possibly_in_time,
    saves_needlessly,
)
from coopt.columns.flows import NicLayout
from coopt.columns.grid import STYLES, Context, DomainSet, context_of, counts_on, degrees, interleaves, mappings, splits
from coopt.columns.pools import in_orders, in_time, place, timed
from coopt.columns.table import full_bandwidth
from coopt.columns.times import FEW, table_times_s, unbounded, uplinks_by_context
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.network import Discipline
from coopt.instance.schema import Instance
from coopt.instance.variants import with_scaled_bounds
from coopt.instance.workload import Workload
from coopt.network.schedules.textbook import two_trees
from coopt.network.space import families
from coopt.perf.mapping import RECOMPUTE, Mappings, distinct_rows
from coopt.perf.memory import memory_bytes
from tests.conftest import ask, example_count, small_model, switch
from tests.perf.training import gpu, training

DEGREES = ("tp", "cp", "pp", "dp", "ep")
EXPERTS = {"experts": 8, "top_k": 2, "ffn": 4096, "dense_layers": 1, "dense_ffn": 8192, "extra_predictions": 1}


@st.composite
def questions(draw: st.DrawFn) -> tuple[Workload, Gpu, int]:
    """A workload, a GPU whose collectives may take long to step, and how many of them train."""
    gpus = draw(st.sampled_from([16, 32, 48, 64]))
    shape: dict[str, Any] = draw(st.sampled_from([{}, {"layers": 9}, EXPERTS]))
    options = {
        "attention": draw(st.sampled_from(["flash", "unfused"])),
        "dp_mode": draw(st.sampled_from(["sync", "overlap", "stale-1"])),
        "expert_tp": draw(st.sampled_from([False, True, 2] if shape is EXPERTS else [False, True])),
        "collectives": draw(st.sampled_from(["levels", "fastest", "in-network"])),
        "software": draw(st.sampled_from(["megatron-core", "megatron-2021"])),
    }
    mapping = {"micro_batch": [1, 2], "cp": [1, 2, 4], "zero": [0, 1, 2, 3]}
    instance = ask(
        workload__0__model=small_model(**shape), workload__0__global_batch=gpus, workload__0__options=options,
        workload__0__mapping=mapping, network__switches=[switch(8, 5000) | {"reduces": True}],
    )  # fmt: skip
    device = gpu(
        step_s=draw(st.sampled_from([0.0, 1e-6, 1e-4, 1e-2])), hb_reduce=draw(st.sampled_from([None, 0.97])),
        latency_s=draw(st.sampled_from([0.0, 15e-6])), send_s=draw(st.sampled_from([0.0, 1e-4])),
    )  # fmt: skip
    return instance.workload[0], device, gpus


def flat(site: DomainSet, byte_s: float) -> Context:
    """A network where nothing leaves a leaf."""
    layout = NicLayout(domains=site.domains, span=site.domains)
    return Context(site=site, byte_s=byte_s, layout=layout, discipline=Discipline("loads", "spray", 1.0))


@settings(max_examples=example_count(40))
@given(questions(), st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 4]), st.sampled_from([1.0, 1.5]))
def test_no_placement_on_any_network_is_faster_than_the_bound(asked, seed, down, pod_ratio) -> None:
    workload, device, gpus = asked
    found = feasible_mappings(workload, device, gpus)
    some = np.sort(np.random.default_rng(seed).permutation(len(found.fit))[:200])
    rows, fastest_s = found.fit.take(some), found.fastest_s[some]
    for active in (4, 8, 16):
        hb = HbDomain(name="hb", size=active, gbyte_s=900, usd_per_gpu=0, w_per_gpu=0)
        site = DomainSet(gpus=gpus, hb="hb", domains=gpus // active)
        podded = NicLayout(domains=site.domains, span=2, pods=2, pod_span=4, pod_up=down)
        layout = podded if down else flat(site, 1.0).layout
        context = Context(site=site, byte_s=5e11, layout=layout, discipline=Discipline("loads", pod_ratio, 1.0))
        placed = place(workload, device, hb, site, rows)
        degrees = zip(rows.tp.tolist(), rows.cp.tolist(), rows.pp.tolist(), rows.dp.tolist(), strict=True)
        counts = [len(splits(*four, active)) for four in degrees]
        assert len(placed) == sum(counts)
        times = placed.time_s(context, 1)
        assert (np.repeat(fastest_s, counts) <= times).all()
        np.testing.assert_allclose(times, placed.iteration.time_s(placed.reciprocals(context, 1)), rtol=1e-12)


def test_mappings_stand_in_the_order_of_a_product_of_what_the_user_lists() -> None:
    listed = {"ep": [4, 1, 2], "micro_batch": [2, 1], "zero": [3, 0], "offload_percent": [50, 0]}
    instance = ask(workload__0__model=small_model(**EXPERTS), workload__0__mapping=listed)
    (workload,) = instance.workload
    found, _ = mappings(workload, 64)
    degrees = list(zip(found.tp.tolist(), found.cp.tolist(), found.pp.tolist(), found.dp.tolist(), strict=True))
    kept = set(zip(degrees, *(getattr(found, name).tolist() for name in STYLES), strict=True))
    values = {name: sorted(set(getattr(found, name).tolist())) for name in STYLES}
    values |= {name: list(getattr(workload.mapping, name)) for name in ("micro_batch", "offload_percent")}
    product_of_all = itertools.product(dict.fromkeys(degrees), *(values[name] for name in STYLES))
    in_order = zip(degrees, *(getattr(found, name).tolist() for name in STYLES), strict=True)
    assert list(in_order) == [one for one in product_of_all if one in kept]


@pytest.mark.parametrize("schedule", ["1f1b", "dualpipe"])
@pytest.mark.parametrize("shape", [{"layers": 8}, EXPERTS])
def test_combinations_that_do_not_divide_evenly_are_counted(schedule: str, shape: dict[str, Any]) -> None:
    micro_batches = [1, 2, 3, 8]
    instance = ask(
        workload__0__model=small_model(**shape), workload__0__global_batch=96,
        workload__0__options={"schedule": schedule}, workload__0__mapping={"micro_batch": micro_batches, "zero": 0},
    )  # fmt: skip
    (workload,) = instance.workload
    whole, uneven = mappings(workload, 64)
    listed = Counter(zip(*(getattr(whole, name).tolist() for name in DEGREES), strict=True))
    counted = dict(
        zip(zip(*(getattr(uneven.rows, name).tolist() for name in DEGREES), strict=True), uneven.counts, strict=True)
    )
    assert len(counted) == len(uneven.counts) > 0
    for split in listed | counted:
        _, _, p, d, _ = split
        chunks = interleaves(workload.model.layers, p) if schedule == "1f1b" else (1,)
        fits = [_fits(schedule, 96 // d, p, b, v) for b in micro_batches for v in chunks]
        assert listed[split] * fits.count(False) == counted.get(split, 0) * fits.count(True)


def _fits(schedule: str, batch: int, p: int, micro_batch: int, chunks: int) -> bool:
    """Whether micro-batches fit the batch of a replica, and the schedule: half of them run from either end, or they go
    round the stages."""
    number = batch / micro_batch
    if schedule == "dualpipe" and p > 1:
        return p % 2 == 0 and number % 2 == 0 and number >= 2 * p
    return number % 1 == 0 and (chunks == 1 or number % p == 0)


@settings(max_examples=example_count(30))
@given(questions(), st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 100]))
def test_rows_that_are_taken_are_what_they_would_be_alone(asked, seed, count) -> None:
    workload, device, gpus = asked
    hb = HbDomain(name="hb", size=8, gbyte_s=900, usd_per_gpu=0, w_per_gpu=0)
    whole = place(
        workload,
        device,
        hb,
        DomainSet(gpus=gpus, hb="hb", domains=gpus // 8),
        feasible_mappings(workload, device, gpus).fit,
    )
    some = np.sort(np.random.default_rng(seed).permutation(len(whole))[:count])
    taken = whole.take(some)
    alone = timed(workload, device, hb, whole.site, whole.mappings.take(some), whole.placements.take(some))
    assert taken.pieces.kinds == alone.pieces.kinds
    np.testing.assert_array_equal(taken.pieces.coefficients, alone.pieces.coefficients)
    np.testing.assert_array_equal(taken.coefficients(), alone.coefficients())
    for mine, others in zip(taken.groups, alone.groups, strict=True):
        np.testing.assert_array_equal(mine, others)


def test_expert_groups_see_the_block_they_occupy() -> None:
    """Experts of two domains stay on a leaf of four where data parallelism leaves it."""
    instance = ask(
        workload__0__model=small_model(experts=16, top_k=2, ffn=2048),
        workload__0__mapping={"tp": 1, "pp": 1, "ep": 16, "micro_batch": 1, "zero": 0},
        network__hb_domains="hgx-h100-8",
    )
    workload = instance.workload[0]
    whole, _ = mappings(workload, 64)
    site = DomainSet(gpus=64, hb="hgx-h100-8", domains=8)
    found = place(workload, instance.cluster.gpu, instance.network.hb_domains[0], site, whole)
    ratio = Context(
        site=site, byte_s=1.0, layout=NicLayout(domains=8, span=4, down=4), discipline=Discipline("ratio", 1.0, 1.0)
    )
    r = found.reciprocals(ratio, 1)
    assert set(np.asarray(r.dp).tolist()) == {4.0}
    assert set(np.asarray(r.ep).tolist()) == {1.0}
    r = found.reciprocals(replace(ratio, discipline=Discipline("loads", 1.0, 1.0)), 1)
    assert set(np.asarray(r.dp).tolist()) == {1.0}  # of a ring one flow leaves a leaf
    assert set(np.asarray(r.ep).tolist()) == {1.0}
    assert set(np.asarray(r.edp).tolist()) == {2.0}  # copies lie two domains apart, so that two rings leave it


def test_switches_that_add_nothing_up_are_refused_where_gradients_ask_for_it() -> None:
    with pytest.raises(ValueError, match=r"switch '16-port' cannot reduce"):
        ask(
            workload__0__options={"collectives": "in-network"},
            network__switches=[switch(8, 5000) | {"reduces": True}, switch(16, 11000)],
        )


@settings(max_examples=example_count(40))
@given(questions(), st.sampled_from([0.1, 0.4, 1.0]))
def test_what_saves_memory_needlessly_is_nowhere_cheaper_than_another_that_fits(asked, room) -> None:
    workload, device, gpus = asked
    whole = mappings(workload, gpus)[0]
    needed = memory_bytes(workload, whole)
    small = device.model_copy(update={"hbm_gb": float(np.quantile(needed, room)) / 1e9 * (1 + 1e-9)})
    hb = HbDomain(name="hb", size=8, gbyte_s=900, usd_per_gpu=0, w_per_gpu=0)
    fit = whole.take(needed <= small.usable_bytes)
    found = place(workload, small, hb, DomainSet(gpus=gpus, hb="hb", domains=gpus // 8), fit)
    rows, inside, needless = found.mappings, found.placements, saves_needlessly(workload, small, found.mappings)
    alike = (rows.tp, rows.cp, rows.pp, rows.dp, rows.ep, rows.micro_batch, rows.interleave, rows.sequence_parallel)
    _, position = distinct_rows(*(np.asarray(one, np.int64) for one in alike), inside.tp, inside.cp, inside.pp)
    values = found.coefficients()
    rounding = 1e-12 * np.abs(values).max(axis=0)
    for row in np.flatnonzero(needless):
        others = values[~needless & (position == position[row])]
        assert (others <= values[row] + rounding).all(axis=1).any()


def test_nothing_saves_memory_where_there_is_enough_unless_more_compute_hides_more() -> None:
    for mode, zeros in (("sync", {0, 1}), ("overlap", {0, 1, 2, 3})):
        instance = ask(workload__0__mapping={}, workload__0__options={"dp_mode": mode}, cluster__gpus=16)
        found = feasible_mappings(instance.workload[0], instance.cluster.gpu, 16)
        assert set(found.fit.zero.tolist()) == zeros
        assert len(set(found.fit.recompute.tolist())) == (1 if mode == "sync" else 4)
        assert bool(len(found.needless)) == (mode == "sync")


HB_GBYTE_S = 900.0


@settings(max_examples=example_count(60))
@given(questions(), st.integers(0, 2**32 - 1), st.sampled_from([5e10, 5e11, 5e12]))
def test_no_placement_is_faster(asked: tuple[Workload, Gpu, int], seed: int, byte_s: float) -> None:
    workload, device, gpus = asked
    whole = feasible_mappings(workload, device, gpus).fit
    rows = whole.take(np.sort(np.random.default_rng(seed).permutation(len(whole))[:200]))
    least_s = least_time_s(workload, device, rows, hb_gbyte_s=HB_GBYTE_S, byte_s=byte_s)
    for active in (1, 4, 8, 16):
        hb = HbDomain(name="hb", size=active, gbyte_s=HB_GBYTE_S, usd_per_gpu=0, w_per_gpu=0)
        site = DomainSet(gpus=gpus, hb="hb", domains=gpus // active)
        best = flat(site, byte_s)
        placed = place(workload, device, hb, site, rows)
        if len(placed):
            assert (np.repeat(least_s, counts_on(workload, rows, site)) <= placed.time_s(best, 1)).all()


@settings(max_examples=example_count(60))
@given(questions(), st.sampled_from([5e10, 5e12]), st.floats(0.3, 3.0))
def test_mappings_that_may_be_in_time_are_those_of_the_whole_list(asked, byte_s, share) -> None:
    """That layers take too long is known before memory is, and of all stages of ZeRO at once: nothing else is lost."""
    workload, device, gpus = asked
    source = feasible_mappings(workload, device, gpus)
    least_s = least_time_s(workload, device, source.fit, hb_gbyte_s=HB_GBYTE_S, byte_s=byte_s)
    assert (compute_s(workload, device, source.fit) <= least_s).all()
    bound_s = share * float(np.median(least_s)) if len(least_s) else 1.0
    tight = workload.model_copy(update={"max_iteration_time_s": bound_s})
    found = possibly_in_time(tight, device, degrees(workload, gpus), hb_gbyte_s=HB_GBYTE_S, byte_s=byte_s)
    expected = source.fit.take(least_s <= tight.bound_s)
    for name in vars(expected):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[Workload, Gpu, Mappings]:
    """A workload with all that stretches a layer, and every pipeline of it with few layers missing."""
    experts = {**EXPERTS, "extra_predictions": draw(st.integers(0, 2))} if draw(st.booleans()) else {}
    model = small_model(
        **experts, layers=draw(st.sampled_from([5, 8, 9, 11, 13])), vocab=draw(st.sampled_from([1024, 51200]))
    )
    software = {
        "name": "drawn", "host_s": draw(st.sampled_from([0.0, 37e-6, 1e-3])),
        "kernel_s": draw(st.sampled_from([None, 0.0, 37e-6])), "grouped_experts": draw(st.booleans()),
        "fused_accumulation": draw(st.booleans()), "recompute_modules": True,
        "overhead": draw(st.sampled_from([1.0, 1.16])),
    }  # fmt: skip
    options = {
        "dp_mode": draw(st.sampled_from(["sync", "overlap", "stale-1"])),
        "attention": draw(st.sampled_from(["flash", "unfused"])),
        "ep_overlap": draw(st.booleans()),
        "schedule": draw(st.sampled_from(["1f1b", "zb-h1", "dualpipe"])),
        "slowdown": draw(st.sampled_from([1.0, 1.07])),
    }
    workload = training(model, 720, **options, software=software)
    step_s, latency_s = draw(st.sampled_from([(0.0, 0.0), (1e-6, 15e-6)]))
    return workload, gpu(step_s=step_s, latency_s=latency_s), every_pipeline(workload, draw(st.sampled_from([1, 4])))


def every_pipeline(workload: Workload, ep: int) -> Mappings:
    """Stages, chunks and micro-batches of every kind, with every recomputation and a context ring or none."""
    layers, count = workload.model.layers, np.arange(1, 11)
    p, v, m, b, c, recompute = (
        axis.ravel()
        for axis in np.meshgrid(count, count[:4], [*count, 12, 18, 24], [1, 2], [1, 2], range(len(RECOMPUTE)))
    )
    fits = (p * v <= layers + 3) & ((v == 1) | (p > 1) & (m % p == 0)) & (720 % (m * b) == 0)
    if workload.options.schedule != "1f1b":
        fits &= (v == 1) & (p * -(-layers // p) - layers <= 3)
    if workload.options.schedule == "dualpipe":
        fits &= (p == 1) | (p % 2 == 0) & (m % 2 == 0) & (m >= 2 * p)
    p, v, m, b, c, recompute = (axis[fits] for axis in (p, v, m, b, c, recompute))
    whole = workload.options.dp_mode == "stale-1" or workload.options.schedule == "dualpipe"
    zero = np.arange(len(p)) % (2 if whole else 4)
    d = 720 // (m * b)
    x = np.where(d * c % ep == 0, ep if workload.model.experts else 1, 1)
    return Mappings.of(pp=p, interleave=v, micro_batch=b, cp=c, recompute=recompute, dp=d, ep=x, zero=zero)


@settings(max_examples=example_count(100))
@given(pipelines(), st.sampled_from([900.0, 1e9]))
def test_layers_alone_take_no_longer_than_the_iteration(asked, hb_gbyte_s) -> None:
    workload, device, rows = asked
    least_s = least_time_s(workload, device, rows, hb_gbyte_s=hb_gbyte_s, byte_s=5e10)
    layers_s = compute_s(workload, device, rows)
    assert (layers_s > 0 if workload.options.schedule == "1f1b" else layers_s >= 0).all()
    assert (layers_s <= least_s).all()


def test_one_gpu_in_a_domain_takes_what_the_bound_says() -> None:
    """Where nothing has a choice, the bound gives nothing away."""
    instance = ask(workload__0__mapping={"micro_batch": 1, "cp": [1, 2]})
    (workload,), device = instance.workload, gpu(step_s=0.0, long_s=0.0)
    rows = feasible_mappings(workload, device, 16).fit
    hb = HbDomain(name="hb", size=1, gbyte_s=HB_GBYTE_S, usd_per_gpu=0, w_per_gpu=0)
    site = DomainSet(gpus=16, hb="hb", domains=16)
    best = flat(site, 5e12)
    alone = place(workload, device, hb, site, rows)
    least_s = least_time_s(workload, device, rows, hb_gbyte_s=HB_GBYTE_S, byte_s=5e12)
    np.testing.assert_allclose(least_s, alone.time_s(best, 1), rtol=2e-9)


@pytest.mark.parametrize("dp_mode", ["sync", "overlap"])
def test_the_fastest_row_is_found_among_those_that_are_looked_at(dp_mode: str) -> None:
    tapered = {"network__fabrics": ["clos"], "network__oversubscription": 6.0, "network__switches": [switch(8, 5000)]}
    tapered |= {"network__hb_domains": "hgx-h100-8"}
    mapping = {"micro_batch": [1, 2], "recompute": ["none", "full"]}  # enough rows to leave most of them unseen
    instance = ask(**tapered, workload__0__mapping=mapping, workload__0__options={"dp_mode": dp_mode})
    every = tuple(families(instance))
    table = unbounded(instance, every, lambda site: None)
    asked = uplinks_by_context(every)
    found = table_times_s(table, 0, asked)
    assert found.keys() == asked.keys()
    (workload,), device = with_scaled_bounds(instance, math.inf).workload, instance.cluster.gpu
    source, domains = feasible_mappings(workload, device, 64), {family.hb.name: family.hb for family in every}
    for context, uplinks in asked.items():
        rows, _ = in_time(source, device, domains[context.site.hb], context.site, full_bandwidth([context]))
        assert len(rows) > max(FEW, len(table.pools[0, context.site]))
        plain = in_orders(rows, context.discipline).time_s(context, uplinks.reshape(-1, 1)).min(axis=1)
        np.testing.assert_array_equal(found[context], plain)
    assert any(len(uplinks) > 1 for uplinks in asked.values())


def test_times_that_are_kept_are_those_worked_out_anew() -> None:
    """Of questions that differ in uplinks, wires and model, asked in turn and again."""
    tapered = {"network__fabrics": ["clos"], "network__switches": [switch(8, 5000)]}
    wires = {"network__nics": "cx8-800g", "network__switches": [switch(8, 5000, 800)], "network__optics": "800g-dr8"}
    changes = [{"network__oversubscription": 6.0}, {"network__oversubscription": 2.0}, wires]
    questions = [ask(**tapered | change) for change in changes]
    questions.append(ask(**tapered, workload__0__model=small_model(layers=4)))

    def times(instance: Instance) -> list[list[float]]:
        every = tuple(families(instance))
        table = unbounded(instance, every, lambda site: None)
        return [one.tolist() for one in table_times_s(table, 0, uplinks_by_context(every)).values()]

    kept = [times(one) for one in (*questions, *questions)]
    assert kept[:4] == kept[4:]
    for one, seconds in zip(questions, kept, strict=False):
        _feasible_mappings.cache_clear()
        assert times(one) == seconds


def test_rows_placed_for_a_longer_bound_or_for_faster_nics_are_those_placed_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pools, "MOST_PLACED", 1 << 14)
    random_, mapping = random.Random(47), {"micro_batch": [1, 2], "cp": [1, 2], "recompute": ["none", "full"]}
    instance = ask(workload__0__model=small_model(**EXPERTS), workload__0__mapping=mapping)
    family = next(families(instance))
    device, ideal = instance.cluster.gpu, full_bandwidth([context_of(family)])
    _feasible_mappings.cache_clear()
    again = 0
    for _ in range(12):
        longest = with_scaled_bounds(instance, random_.choice([0.05, 0.1, 0.2, 0.4, 1.0]) * random_.uniform(0.5, 2.0))
        source = feasible_mappings(longest.workload[0], device, family.gpus)
        case = replace(ideal, byte_s=ideal.byte_s * random_.choice([0.01, 0.1, 1.0]))
        known = next(iter(source.placed.values()), None)
        rows, dropped = in_time(source, device, family.hb, case.site, case)
        anew, dropped_anew = in_time(replace(source, placed={}), device, family.hb, case.site, case)
        assert (vars(rows.mappings).keys(), dropped) == (vars(anew.mappings).keys(), dropped_anew)
        for left, right in ((rows.mappings, anew.mappings), (rows.placements, anew.placements)):
            for name, column in vars(left).items():
                np.testing.assert_array_equal(column, getattr(right, name), err_msg=name)
        np.testing.assert_array_equal(rows.time_s(case, 1), anew.time_s(case, 1))
        again += known is not None and next(iter(source.placed.values())) is known and 0 < len(rows) < len(known.rows)
    assert again


def test_mappings_are_listed_once_for_all_prices_and_anew_where_memory_is_kept_free() -> None:
    (workload,), gpu = ask().workload, ask().cluster.gpu
    dearer = gpu.model_copy(update={"usd": 2.0 * gpu.usd, "w": 2.0 * gpu.w})
    fit = feasible_mappings(workload, gpu, 64).fit
    assert feasible_mappings(workload, dearer, 64).fit is fit
    assert len(feasible_mappings(workload, dearer.with_memory_margin(0.95), 64).fit) < len(fit)


CASES = 400


def groups(random_: random.Random) -> tuple[int, int, int]:
    """Domains, and a stride and members whose blocks tile them."""
    stride, members = random_.choice([1, 1, 2, 3, 4, 6]), random_.choice([1, 2, 3, 4, 5, 8])
    return stride * members * random_.randint(1, 5), stride, members


def successor(domain: int, stride: int, members: int) -> int:
    place = domain // stride % members
    return domain + stride if place < members - 1 else domain - (members - 1) * stride


def peers(domain: int, stride: int, members: int) -> list[int]:
    first = domain - domain // stride % members * stride
    return [first + i * stride for i in range(members) if first + i * stride != domain]


def intervals(domains: int, span: int) -> Iterator[range]:
    return (range(a, min(a + span, domains)) for a in range(0, domains, span))


@pytest.mark.parametrize("seed", range(4))
def test_rings_and_exchanges_leave_an_interval_as_counted_one_by_one(seed: int) -> None:
    random_ = random.Random(seed)
    for _ in range(CASES // 4):
        domains, stride, members = groups(random_)
        span = random_.randint(1, domains + 1)
        for inside in intervals(domains, span):
            a, b, s, y = (np.array([value]) for value in (inside.start, inside.stop, stride, members))
            out = sum(successor(d, stride, members) not in inside for d in inside)
            sent = sum(sum(p not in inside for p in peers(d, stride, members)) / max(members - 1, 1) for d in inside)
            assert flows.ring(a, b, s, y)[0] == out
            assert flows.exchange(a, b, s, y)[0] == pytest.approx(sent, abs=1e-12)
        columns = [np.array([value]) for value in (domains, span, stride * members, stride, members)]
        each = [sum(successor(d, stride, members) not in one for d in one) for one in intervals(domains, span)]
        assert flows.busiest(flows.ring, *columns)[0] == max(each)
        shares = [
            sum(sum(p not in one for p in peers(d, stride, members)) / max(members - 1, 1) for d in one)
            for one in intervals(domains, span)
        ]
        assert flows.busiest(flows.exchange, *columns)[0] == pytest.approx(max(shares), abs=1e-12)


@pytest.mark.parametrize("stages", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("pipelines", [1, 2, 3])
def test_twins_leave_an_interval_as_counted_one_by_one(stages: int, pipelines: int) -> None:
    """Stages as far from either end of a pipeline, of one to four domains each; of pipelines side by side, too."""
    for stage in (1, 2, 3, 4):
        line = stage * stages
        twin = {
            d: d // line * line + line - stage - d % line // stage * stage + d % stage for d in range(line * pipelines)
        }
        assert all(twin[twin[d]] == d for d in twin)
        for span in range(1, line * pipelines + 1):
            each = []
            for inside in intervals(line * pipelines, span):
                own = [np.array([value]) for value in (inside.start, inside.stop, line, stage)]
                each.append(sum(twin[d] not in inside for d in inside))
                assert flows.mirrored(*own)[0] == each[-1]
            columns = [np.array([value]) for value in (line * pipelines, span, line, line, stage)]
            assert flows.busiest(flows.mirrored, *columns)[0] == max(each)
            if pipelines == 1:
                assert flows.busiest(flows.mirrored, *columns[:2], None, *columns[3:])[0] == max(each)


@pytest.mark.parametrize("members", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_groups_that_lie_farther_apart_leave_no_interval_less(stride: int, members: int) -> None:
    """With stages side by side nothing but hops is relieved."""
    for step in (2, 3, 4):
        domains = 2 * stride * members * step
        a, b = (ends.ravel() for ends in np.meshgrid(np.arange(domains), np.arange(1, domains + 1)))
        a, b = a[a < b], b[a < b]
        s, y = np.full_like(a, stride), np.full_like(a, members)
        for count in (flows.ring, flows.exchange):
            assert (count(a, b, s * step, y) >= count(a, b, s, y) - 1e-9).all()


@pytest.mark.parametrize("closed", [0, 1])
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 7])
def test_hops_leave_an_interval_as_counted_one_by_one(stages: int, closed: int) -> None:
    for stage, span in ((q, h) for q in (1, 2, 3, 5) for h in range(1, q * stages + 1)):
        domains = stage * stages

        def neighbour(d: int, step: int, stage: int = stage, domains: int = domains) -> int | None:
            there = d + step * stage
            if closed and stages > 1:
                return there % domains
            return there if 0 <= there < domains else None

        most: dict[str, int] = {"next": 0, "both": 0, "rail": 0, "tied": 0}
        for inside in intervals(domains, span):
            line = [np.array([value]) for value in (inside.start, inside.stop, domains, stage, closed * (stages > 1))]
            outside = [(neighbour(d, 1), neighbour(d, -1)) for d in inside]
            later = sum(n is not None and n not in inside for n, _ in outside)
            senders: dict[tuple[int, str], set[int]] = {(end, way): set() for end in (0, 1) for way in "oi"}
            for d in inside:
                for step in (1, -1):
                    there = neighbour(d, step)
                    if there is None or there in inside:
                        continue
                    here, beyond = d // stage, there // stage
                    wraps = abs(here - beyond) != 1 or (stages == 2 and d + step * stage != there)
                    if wraps and stages % 2:
                        out, into = (0, 1) if step == 1 else (1, 0)
                    else:
                        out = into = 0 if wraps or min(here, beyond) % 2 else 1
                    senders[out, "o"].add(d)
                    senders[into, "i"].add(d)
            rails = {key: len(members) for key, members in senders.items()}
            earlier = sum(n is not None and n not in inside for _, n in outside)
            some = sum(any(n is not None and n not in inside for n in pair) for pair in outside)
            assert flows.hops_ahead(*line)[0] == later
            assert flows.hops_behind(*line)[0] == earlier
            assert flows.either(*line)[0] == some
            far = domains - stage
            first = sum(d < stage and stages > 1 and d + far not in inside for d in inside)
            last = sum(d >= far and stages > 1 and d - far not in inside for d in inside)
            assert flows.tied(*line, np.array([flows.BOTH]))[0] == first + last
            most["both"] = max(most["both"], some)
            most["rail"] = max(most["rail"], *rails.values())
            most["tied"] = max(most["tied"], first + last)
        columns = [np.array([value]) for value in (domains, span)]
        own = [np.array([value]) for value in (domains, stage, closed * (stages > 1))]
        assert flows.busiest(flows.hop, *columns, None, *own, np.array([flows.BOTH]))[0] == most["both"]
        assert flows.busiest(flows.hop, *columns, None, *own, np.array([flows.RAIL]))[0] == most["rail"]
        assert flows.busiest(flows.tied, *columns, None, *own, np.array([flows.BOTH]))[0] == most["tied"]


def test_end_points_that_send_are_counted_window_by_window() -> None:
    random_ = random.Random(5)
    for _ in range(CASES):
        ends, domains = random_.randint(1, 12), random_.randint(1, 9)
        window = random_.randint(1, ends * domains)
        cuts = sorted(random_.choices(range(ends + 1), k=4))
        ranges = ((cuts[0], cuts[1]), (cuts[2], cuts[3]))
        sends = [any(low <= e % ends < high for low, high in ranges) for e in range(ends * domains)]
        most = max(sum(sends[start : start + window]) for start in range(0, ends * domains, window))
        assert flows.sending(window, ends, ends * domains, *ranges) == most


def test_edges_of_trees_leave_leaves_that_hold_parts_of_domains_as_counted_one_by_one() -> None:
    random_, few = random.Random(8), 0
    for _ in range(3 * CASES):
        stride, members = random_.choice([1, 1, 1, 2, 3]), random_.choice([2, 3, 4, 5, 6, 8])
        domains = stride * members * random_.choice([1, 1, 2])
        ends = random_.randint(2, 12)
        nics, window = random_.randint(1, ends), random_.randint(1, ends - 1)
        of_member = [0] * members
        for tree in two_trees(members):
            for parent, below in tree.items():
                of_member[parent] += len(below)
                for child in below:
                    of_member[child] += 1
        numbers = range(ends * domains)
        edges = [of_member[e // ends // stride % members] if e % ends < nics else 0 for e in numbers]
        loads = [sum(edges[start : start + window]) / 4 for start in range(0, ends * domains, window)]
        layout = NicLayout(domains=domains, span=0, nics=nics, ends=ends, down=window)
        row = NicLayout(**{name: np.array([value]) for name, value in vars(layout).items()})
        assert most_edges(row, np.array([stride]), np.array([members]))[0] == max(loads)
        few += max(loads) < max(of_member) / 4 * flows.sending(window, ends, ends * domains, (0, nics))
    assert few > 10
