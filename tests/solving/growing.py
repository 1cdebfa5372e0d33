"""Random small clusters that grow, and their optimum by trying every network of every phase and every time to buy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import pairwise, product
from typing import Any

from hypothesis import strategies as st

from coopt.columns.grid import Context, context_of
from coopt.instance.schema import Instance
from coopt.instance.variants import of_phase, years_of
from coopt.instance.workload import Workload
from coopt.network.family import Family
from coopt.network.growth import lines
from coopt.network.parts import bill, total, within_limits
from coopt.network.plan_networks import design_of
from coopt.plan.parts import Design, Item
from tests.conftest import question, small_model, switch
from tests.solving.every_optic import lines_with_every_optic, optics
from tests.solving.oracle import least_s

KINDS = ("hb", "nic", "switch", "optics", "gpu")


@st.composite
def clusters(draw: st.DrawFn) -> Instance:
    """Two or three phases of up to 128 GPUs with whole prices that rise and fall; bounds from hopeless to loose."""
    gpus = draw(st.sampled_from([[16, 64], [32, 128], [32, 96], [64, 64], [16, 32, 128], [32, 64, 96], [48, 96, 144]]))
    money = st.integers(0, 3000)
    sizes = draw(st.lists(st.sampled_from([2, 4, 8, 16]), min_size=1, max_size=2, unique=True))
    rate = draw(st.sampled_from([25, 50, 100, 400]))
    radices = draw(st.lists(st.sampled_from([4, 6, 8, 12, 16]), min_size=1, max_size=2, unique=True))
    table = question(
        cluster__gpus=gpus[-1],
        workload=[_workload(draw, w) for w in range(draw(st.integers(1, 2)))],
        network={
            "hb_domains": [
                {"name": f"hb{n}", "size": n, "gbyte_s": 450, "usd_per_gpu": draw(money), "w_per_gpu": 9, "racks": 1}
                for n in sizes
            ],
            "fabrics": draw(
                st.lists(st.sampled_from(["rail-only", "rail-optimized", "clos"]), min_size=1, unique=True)
            ),
            "nics": {"name": "nic", "gbit_s": rate, "usd": draw(money), "w": 20},
            "switches": [switch(radix, 4 * draw(money), rate) for radix in radices],
            "optics": optics(draw, [rate]),
            "oversubscription": draw(st.sampled_from([1.0, 2.0, 3.5, 7.0])),
        },
        objective={"minimize": draw(st.sampled_from(["capex", "capex", "tco"])), "include": draw(_INCLUDED)},
        limits=draw(st.sampled_from([{}, {}, {}, {"racks": gpus[-1] / 4}, {"power_mw": gpus[-1] / 7000}])),
        phase=[_phase(draw, t, count, gpus[-1]) for t, count in enumerate(gpus)],
    )
    if draw(st.booleans()):
        table["phase"] = list(_attained(draw, Instance.model_validate(table), table["phase"]))
    return Instance.model_validate(table)


def _attained(draw: st.DrawFn, instance: Instance, phases: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Phases whose bound is exactly the time of some network of one line, so that uplinks decide."""
    every = list(lines(instance))
    line = draw(st.sampled_from(every)) if every else None
    for t, phase in enumerate(phases):
        asked, time_s = of_phase(instance, t), math.inf
        if line is not None:
            family = line[t]
            time_s = _fastest_s(
                asked, asked.workload[0], context_of(family), draw(st.sampled_from(family.uplink_choices))
            )
        bound = [{"name": "w0", "max_iteration_time_s": time_s}] if math.isfinite(time_s) else ["w0"]
        yield phase | {"workloads": bound}


_INCLUDED = st.sampled_from([["hb", "nic", "switch", "optics"], ["switch", "optics"], [*KINDS]])


def _workload(draw: st.DrawFn, w: int) -> dict[str, Any]:
    return {
        "name": f"w{w}",
        "model": small_model(gated=draw(st.booleans()), kv_heads=8),
        "global_batch": 288,
        "allow_tp_across": True,
        "max_iteration_time_s": 2.0,
        "mapping": {"micro_batch": [1, 3], "sequence_parallel": True, "zero": 1},
        "options": {"attention": "flash"},
    }


def _phase(draw: st.DrawFn, t: int, gpus: int, last: int) -> dict[str, Any]:
    pace = draw(st.sampled_from([0.1, 0.2, 0.2, 0.4, 0.4, 0.6])) * draw(st.floats(1.0, 1.5)) * last / gpus
    asked: dict[str, Any] = (
        {"workloads": [{"name": "w0", "max_iteration_time_s": pace}]} if draw(st.integers(0, 3)) else {}
    )
    factors = st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0])
    return asked | {
        "year": float(2 * t),
        "gpus": gpus,
        "price": {kind: draw(factors) for kind in (*KINDS, "energy")},
        "retrofit_usd_per_link": float(draw(st.sampled_from([0, 100, 1000, 20000]))),
    }


def enumerated(instance: Instance) -> float:
    """The least objective over all lines, uplinks of every phase, and phases to buy in; infinity when none answers."""

    @cache
    def answers(t: int, context: Context, uplinks: int) -> bool:
        return _answers(of_phase(instance, t), context, uplinks)

    found = math.inf
    for line in lines_with_every_optic(instance, lines(instance)):
        for uplinks in rising(line):
            chosen = list(zip(line, uplinks, strict=True))
            value = _value(instance, line, uplinks)
            if value < found and all(
                answers(t, context_of(family), u) and _within(of_phase(instance, t), family, u)
                for t, (family, u) in enumerate(chosen)
            ):
                found = value
    return found


def rising(line: tuple[Family, ...]) -> Iterator[tuple[int, ...]]:
    """All uplinks of the phases that never fall."""
    return (u for u in product(*(f.uplink_choices for f in line)) if all(a <= b for a, b in pairwise(u)))


def _answers(asked: Instance, context: Context, uplinks: int) -> bool:
    return all(_fastest_s(asked, workload, context, uplinks) <= workload.bound_s for workload in asked.workload)


def _fastest_s(asked: Instance, workload: Workload, context: Context, uplinks: int) -> float:
    hb = next(hb for hb in asked.network.hb_domains if hb.name == context.site.hb)
    return least_s(workload, asked.cluster.gpu, hb, context, uplinks)


def _within(asked: Instance, family: Any, uplinks: int) -> bool:
    return within_limits(asked, family, total(asked.objective, bill(asked, family, uplinks)))


def _value(instance: Instance, line: tuple[Family, ...], uplinks: tuple[int, ...]) -> float:
    bills = [bill(instance, family, u) for family, u in zip(line, uplinks, strict=True)]
    names = {(item.kind, item.item): item for lines_of in bills for item in lines_of}
    usd = sum(_cheapest(instance, item, [_count(one, item) for one in bills]) for item in names.values())
    terms = instance.objective
    usd *= 1 if terms.minimize == "capex" else 1 + terms.labour_share
    designs = [design_of(family, u) for family, u in zip(line, uplinks, strict=True)]
    usd += sum(
        links_added(before, now) * instance.phase[t].retrofit_usd_per_link
        for t, (before, now) in enumerate(pairwise(designs), start=1)
    )
    if instance.objective.minimize == "capex":
        return usd
    for t, one in enumerate(bills):
        standing = sum(item.usd * getattr(instance.phase[t].price, item.kind) for item in one)
        usd += terms.support_share * years_of(instance, t) * standing
        hours = years_of(instance, t) * 8760
        usd_per_kwh = terms.usd_per_kwh * instance.phase[t].price.energy
        usd += sum(item.w for item in one) / 1000 * hours * terms.pue * usd_per_kwh
    return usd


def links_added(before: Design, now: Design) -> int:
    """Links up that switches which stood before have now and had not."""
    was, is_now = before.fabric.tier, now.fabric.tier
    return sum(
        old.switches * (new.uplinks_per_switch - old.uplinks_per_switch)
        for old, new in zip(was, is_now, strict=False)
        if new.uplinks_per_switch
    )


def _count(lines_of: tuple[Item, ...], item: Item) -> int:
    return sum(one.count for one in lines_of if (one.kind, one.item) == (item.kind, item.item))


def _cheapest(instance: Instance, item: Item, placed: list[int]) -> float:
    """The least to pay for an item: what a phase adds is bought in any phase up to it."""
    added = [b - a for a, b in zip([0, *placed], placed, strict=False)]
    prices = [item.unit_usd * getattr(phase.price, item.kind) for phase in instance.phase]
    times = product(*(range(t + 1) for t in range(len(placed))))
    return min(sum(prices[when] * count for when, count in zip(one, added, strict=True)) for one in times)
