"""Random small instances, and their optimum by trying every network with every mapping."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from typing import Any

from hypothesis import strategies as st

from coopt.columns.grid import Context, DomainSet, context_of, mappings
from coopt.columns.pools import Pool, in_orders, place
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.network import Discipline
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.network.family import Family
from coopt.network.parts import bill, line_items, racks, total, weigh, within_limits
from coopt.network.space import families
from coopt.perf.memory import memory_bytes
from tests.conftest import DISCIPLINES, question, small_model, switch
from tests.network.even_bundles import designs, with_bundles
from tests.solving.every_optic import optics, with_every_optic


@st.composite
def instances(draw: st.DrawFn, most: int = 128) -> Instance:
    """Clusters of up to 128 GPUs, or `most`, with whole prices; bounds and limits from hopeless to loose."""
    gpus = draw(st.sampled_from([n for n in (16, 32, 64, 96, 128) if n <= most]))
    money = st.integers(0, 3000)
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 8, 12, 16]), min_size=1, max_size=3, unique=True))
    domains = [
        {
            "name": f"hb{n}", "size": n, "gbyte_s": 450, "usd_per_gpu": draw(money), "w_per_gpu": draw(money),
            "racks": n / 8,
        }
        for n in sizes
    ]  # fmt: skip
    radices = draw(st.lists(st.sampled_from([4, 6, 8, 12, 16, 32]), min_size=1, max_size=2, unique=True))
    rates = draw(st.lists(st.sampled_from([100, 400]), min_size=1, max_size=2, unique=True))
    table = question(
        cluster__gpus=draw(st.sampled_from([gpus, [gpus, gpus // 2], [gpus // 2, gpus]])),
        workload=[_workload(draw, w, gpus) for w in range(draw(st.integers(1, 2)))],
        network={
            "hb_domains": domains,
            "fabrics": draw(
                st.lists(st.sampled_from(["rail-only", "rail-optimized", "clos"]), min_size=1, unique=True)
            ),
            "nics": [{"name": f"nic{r}", "gbit_s": r, "usd": draw(money), "w": 20} for r in rates],
            "nics_per_gpu": draw(st.sampled_from([1, 2, [1, 2]])),
            "switches": [
                switch(k, draw(money), r) | {"name": f"{k}x{r}", "reduces": True} for k in radices for r in rates
            ],
            "optics": optics(draw, rates),
            "oversubscription": draw(st.sampled_from([1.0, 2.0, 3.5, [1.0, 2.0], [1.5, 3.0]])),
            **disciplined(draw),
        },
        objective={
            "minimize": draw(st.sampled_from(["capex", "power", "tco"])),
            "include": draw(
                st.sampled_from(
                    [["hb", "nic", "switch", "optics"], ["switch"], ["hb", "nic", "switch", "optics", "gpu"]]
                )
            ),
        },
        limits=draw(
            st.sampled_from(
                [
                    {},
                    {},
                    {"racks": gpus / 8},
                    {"capex_usd": 4000.0 * gpus},
                    {"power_mw": gpus / 700, "capex_usd": 9000.0 * gpus},
                ]
            )
        ),
    )
    return Instance.model_validate(table)


FEW_TIMED = {"micro_batch": (1,), "recompute": ("none", "full")}
"""Lists of mappings that are soon timed on every network."""


@st.composite
def with_few_mappings(draw: st.DrawFn, most: int = 128) -> Instance:
    """As `instances`, for tests that solve a question many times."""
    instance = draw(instances(most))
    few = (one.mapping.model_copy(update=FEW_TIMED) for one in instance.workload)
    workloads = (
        one.model_copy(update={"mapping": mapping}) for one, mapping in zip(instance.workload, few, strict=True)
    )
    return instance.model_copy(update={"workload": tuple(workloads)})


def disciplined(draw: st.DrawFn) -> dict[str, Any]:
    """A way to charge traffic, and bundles that go with it: flows are pinned over even ones alone."""
    charge, bundles = draw(st.sampled_from(DISCIPLINES)), draw(st.sampled_from(["even", "even", "any"]))
    return {**charge, "bundles": "even" if charge["routing"] == "pinned" else bundles}


def _workload(draw: st.DrawFn, w: int, gpus: int) -> dict[str, Any]:
    gated, batches = draw(st.booleans()), draw(st.sampled_from([1, 2, 3]))
    shape = small_model(gated=gated, kv_heads=8 if gated else 32, tied_embeddings=not gated)
    if draw(st.integers(0, 3)) == 0:
        shape |= {"experts": 8, "top_k": 2, "ffn": 4096}
    return {
        "name": f"w{w}", "model": shape, "global_batch": batches * gpus, "allow_tp_across": True,
        "max_iteration_time_s": batches * draw(st.sampled_from([0.06, 0.09, 0.15, 0.3])) * draw(st.floats(1.0, 1.5)),
        "mapping": {
            "micro_batch": [1, 4],
            "sequence_parallel": draw(st.sampled_from([True, [True, False]])),
            "cp": draw(st.sampled_from([1, 1, [1, 2]])), "zero": draw(st.sampled_from([[0, 1], [1, 2, 3]])),
        },
        "options": {
            "attention": draw(st.sampled_from(["flash", "unfused"])),
            "dp_mode": draw(st.sampled_from(["sync", "overlap", "stale-1"])),
            "software": draw(st.sampled_from(["megatron-core", "megatron-2021"])),
            "collectives": draw(st.sampled_from(["levels", "fastest", "in-network"])),
        },
    }  # fmt: skip


def enumerated(instance: Instance) -> float:
    """The least objective over every family, choice of optics, number of uplinks, mapping and placement."""
    return least_over(instance, every_design(instance))


def least_over(instance: Instance, networks: Iterable[tuple[Family, int]]) -> float:
    """The least objective over networks with their uplinks, every mapping and placement; infinity when none answers."""
    allowed: list[tuple[float, Family, int]] = []
    for family, uplinks in networks:
        bought = line_items(instance, family, uplinks)
        usd, w = (
            math.fsum(lot.units * lot.unit_usd for lot in bought),
            math.fsum(lot.units * lot.unit_w for lot in bought),
        )
        if all(use <= cap for use, cap in instance.limits.against(usd=usd, w=w, racks=racks(family)).values()):
            allowed.append((weigh(instance.objective, usd, w), family, uplinks))
    cheapest_first = sorted(allowed, key=itemgetter(0))  # those beyond the cheapest that answers need no times
    return next((value for value, family, uplinks in cheapest_first if answers(instance, family, uplinks)), math.inf)


def every_design(instance: Instance) -> Iterator[tuple[Family, int]]:
    """Every network with every choice of optics and number of uplinks."""
    return designs(instance, with_every_optic(instance, families(with_bundles(instance, "any"))))


def enumerated_front(instance: Instance) -> list[tuple[float, float]]:
    """Pace and objective of every design that no other beats in both, fastest first; by trying everything."""
    found = set()
    for family, uplinks in every_design(instance):
        cost = total(instance.objective, bill(instance, family, uplinks))
        pace = _pace(instance, family, uplinks)
        if math.isfinite(pace) and within_limits(instance, family, cost):
            found.add((pace, weigh(instance.objective, cost.capex_usd, cost.power_w)))
    front: list[tuple[float, float]] = []
    for pace, value in sorted(found):
        if not front or value < front[-1][1] * (1 - 1e-9):
            front.append((pace, value))
    later = [pace for pace, _ in front[1:]] + [math.inf]
    return [one for one, after in zip(front, later[: len(front)], strict=True) if after > one[0] * (1 + 1e-9)]


def _pace(instance: Instance, family: Family, uplinks: int) -> float:
    """The largest share of a bound that the fastest mapping of a workload takes."""
    least_s = (fastest_s(workload, instance.cluster.gpu, family, uplinks) for workload in instance.workload)
    return max(time_s / workload.bound_s for time_s, workload in zip(least_s, instance.workload, strict=True))


def answers(instance: Instance, family: Family, uplinks: int) -> bool:
    """Whether every workload has a mapping that is in time, and all of them in turn are."""
    times_s = [fastest_s(work, instance.cluster.gpu, family, uplinks) for work in instance.workload]
    alone = all(time_s <= work.bound_s for time_s, work in zip(times_s, instance.workload, strict=True))
    return alone and in_turn_days(instance, times_s) <= (instance.limits.train_days_total or math.inf)


def in_turn_days(instance: Instance, times_s: Iterable[float]) -> float:
    """The days of all workloads one after the other, whose iterations take so long; those without tokens take none."""
    iterations = [(work.train_tokens or 0) / (work.global_batch * work.model.seq) for work in instance.workload]
    return sum(count * time_s / 86400 for count, time_s in zip(iterations, times_s, strict=True))


def fastest_s(workload: Workload, gpu: Gpu, family: Family, uplinks: int) -> float:
    """The iteration time of the fastest mapping and placement; infinity where none fits into memory."""
    return least_s(workload, gpu, family.hb, replace(context_of(family), bundle=0), uplinks)


def load(workloads: Iterable[Workload], gpu: Gpu, networks: Iterable[Family]) -> None:
    """Work out at once what mappings put on the links of networks that are all asked for, which each would alone."""
    contexts: dict[tuple[HbDomain, DomainSet, Discipline], list[Context]] = {}
    for family in networks:
        context = context_of(family)
        if not context.layout.is_flat:
            contexts.setdefault((family.hb, context.site, context.discipline), []).append(context)
    for (hb, site, discipline), alike in contexts.items():
        for workload in workloads:
            every_mapping(workload, gpu, hb, site, discipline).load(alike)


@lru_cache(maxsize=1 << 14)
def least_s(workload: Workload, gpu: Gpu, hb: HbDomain, context: Context, uplinks: int) -> float:
    """As `fastest_s`; networks that differ in their optics only, or in prices, have the same times."""
    pool = every_mapping(workload, gpu, hb, context.site, context.discipline)
    return float(pool.time_s(context, uplinks).min(initial=math.inf))


@lru_cache(maxsize=64)
def every_mapping(workload: Workload, gpu: Gpu, hb: HbDomain, site: DomainSet, discipline: Discipline) -> Pool:
    """Every mapping that fits into memory with every placement; networks of the same domains have the same ones."""
    whole, _ = mappings(workload, site.gpus)
    fits = memory_bytes(workload, whole) <= gpu.usable_bytes
    return in_orders(place(workload, gpu, hb, site, whole.take(fits)), discipline)
