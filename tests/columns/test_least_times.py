"""A mapping that goes before it is placed, or counted on a network, is late wherever its ranks lie."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.columns.feasible import _feasible_mappings, compute_s, feasible_mappings, least_time_s, possibly_in_time
from coopt.columns.grid import DomainSet, degrees, split_counts
from coopt.columns.pools import in_orders, in_time, place
from coopt.columns.table import full_bandwidth
from coopt.columns.times import FEW, table_times_s, unbounded, uplinks_by_context
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.schema import Instance
from coopt.instance.variants import with_scaled_bounds
from coopt.instance.workload import Workload
from coopt.network.space import families
from coopt.perf.mapping import RECOMPUTE, Mappings
from tests.columns.test_pools import EXPERTS, flat, questions
from tests.conftest import ask, example_count, small_model, switch
from tests.perf.training import gpu, training

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
        assert (np.repeat(least_s, split_counts(rows, active)) <= placed.time_s(best, 1)).all()


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
        "name": "drawn",
        "host_s": draw(st.sampled_from([0.0, 37e-6, 1e-3])),
        "kernel_s": draw(st.sampled_from([None, 0.0, 37e-6])),
        "grouped_experts": draw(st.booleans()),
        "fused_accumulation": draw(st.booleans()),
        "recompute_modules": True,
        "overhead": draw(st.sampled_from([1.0, 1.16])),
    }
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
    (workload,), device = instance.workload, gpu(step_s=0.0)
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


def test_mappings_are_listed_once_for_all_prices_and_anew_where_memory_is_kept_free() -> None:
    (workload,), gpu = ask().workload, ask().cluster.gpu
    dearer = gpu.model_copy(update={"usd": 2.0 * gpu.usd, "w": 2.0 * gpu.w})
    fit = feasible_mappings(workload, gpu, 64).fit
    assert feasible_mappings(workload, dearer, 64).fit is fit
    assert len(feasible_mappings(workload, dearer.with_memory_margin(0.95), 64).fit) < len(fit)
