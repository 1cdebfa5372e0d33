"""What is dropped before it is placed could not have met its bound."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.columns.feasible import feasible_mappings, saves_needlessly
from coopt.columns.flows import NicLayout
from coopt.columns.grid import STYLES, Context, DomainSet, interleaves, mappings, splits
from coopt.columns.pools import place, timed
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.network import Discipline
from coopt.instance.workload import Workload
from coopt.perf.mapping import distinct_rows
from coopt.perf.memory import memory_bytes
from tests.conftest import ask, example_count, small_model, switch
from tests.perf.training import gpu

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
        "expert_tp": draw(st.booleans()),
        "collectives": draw(st.sampled_from(["levels", "fastest", "in-network"])),
        "software": draw(st.sampled_from(["megatron-core", "megatron-2021"])),
    }
    mapping = {"micro_batch": [1, 2], "cp": [1, 2, 4], "zero": [0, 1, 2, 3]}
    instance = ask(
        workload__0__model=small_model(**shape),
        workload__0__global_batch=gpus,
        workload__0__options=options,
        workload__0__mapping=mapping,
        network__switches=[switch(8, 5000) | {"reduces": True}],
    )
    device = gpu(
        step_s=draw(st.sampled_from([0.0, 1e-6, 1e-4, 1e-2])),
        hb_reduce=draw(st.sampled_from([None, 0.97])),
        latency_s=draw(st.sampled_from([0.0, 15e-6])),
        send_s=draw(st.sampled_from([0.0, 1e-4])),
    )
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
        workload__0__model=small_model(**shape),
        workload__0__global_batch=96,
        workload__0__options={"schedule": schedule},
        workload__0__mapping={"micro_batch": micro_batches, "zero": 0},
    )
    (workload,) = instance.workload
    whole, uneven = mappings(workload, 64)
    listed = Counter(zip(*(getattr(whole, name).tolist() for name in DEGREES), strict=True))
    counted = dict(
        zip(zip(*(getattr(uneven.rows, name).tolist() for name in DEGREES), strict=True), uneven.counts, strict=True)
    )
    assert len(counted) == len(uneven.counts) > 0
    for degrees in listed | counted:
        _, _, p, d, _ = degrees
        chunks = interleaves(workload.model.layers, p) if schedule == "1f1b" else (1,)
        fits = [_fits(schedule, 96 // d, p, b, v) for b in micro_batches for v in chunks]
        assert listed[degrees] * fits.count(False) == counted.get(degrees, 0) * fits.count(True)


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
    with pytest.raises(ValueError, match=r"network.switches has '16-port'"):
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
