"""Robust plans by enumeration: random wishes, and the least of every design that stands them."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
from hypothesis import strategies as st

from coopt.columns.grid import DomainSet, context_left
from coopt.columns.pools import Pool
from coopt.instance.couplings import Robust
from coopt.instance.hardware import Gpu
from coopt.instance.schema import Instance
from coopt.network.failures import losses
from coopt.network.family import Family, without_nics
from coopt.network.parts import bill, total, within_limits
from coopt.network.space import families
from coopt.perf.collectives import Reciprocals
from coopt.perf.mapping import Floats
from coopt.plan.parts import Item
from tests.solving.every_optic import with_every_optic
from tests.solving.oracle import every_mapping, fastest_s, load

KINDS = ("hb", "nic", "switch", "optics", "gpu")


@st.composite
def wishes(draw: st.DrawFn) -> Robust:
    """Losses, intervals and aims of all sorts."""
    interval = st.sampled_from([(1.0, 1.0), (0.5, 1.0), (0.5, 2.0), (1.0, 3.0)])
    prices = {kind: draw(interval) for kind in draw(st.lists(st.sampled_from(KINDS), max_size=2, unique=True))}
    survive = draw(st.lists(st.sampled_from(["nic", "leaf", "plane", "domain"]), max_size=2, unique=True))
    by_part = st.fixed_dictionaries({part: st.sampled_from([1.0, 1.1, 1.5, 2.5]) for part in survive})
    return Robust.model_validate(
        {
            "survive": survive,
            "slower": draw(st.sampled_from([1.0, 1.2, 2.0]) | by_part),
            "prices": prices,
            "efficiency": draw(st.sampled_from([(1.0, 1.0), (0.8, 1.0), (0.9, 1.2)])),
            "aim": draw(st.sampled_from(["worst-case", "regret"])),
        }
    )


def enumerated(instance: Instance) -> float:
    """The least objective of the aim over every family, number of uplinks, mapping and placement."""
    robust = instance.robust
    assert robust is not None
    if robust.aim == "worst-case":
        worst = {kind: getattr(robust.prices, kind)[1] for kind in KINDS}
        return least(instance, standing(instance, robust.efficiency[0]), worst, at=worst)
    return max(0.0, least_excess(instance, least_costs(instance)))


def outcomes(instance: Instance) -> list[dict[str, float]]:
    """Every way prices may turn out, each at an end of its interval."""
    assert instance.robust is not None
    prices = instance.robust.prices
    ends = (dict.fromkeys(getattr(prices, kind)) for kind in KINDS)
    return [dict(zip(KINDS, factors, strict=True)) for factors in product(*ends)]


def least_costs(instance: Instance) -> list[float]:
    """The least objective however prices turn out, at the best efficiency."""
    assert instance.robust is not None
    eager, plain = standing(instance, instance.robust.efficiency[1]), dict.fromkeys(KINDS, 1.0)
    return [least(instance, eager, way, at=plain) for way in outcomes(instance)]


def least_excess(instance: Instance, costs: list[float]) -> float:
    """The least of what designs cost beyond these costs, each at the worst of all outcomes; it may be below 0."""
    assert instance.robust is not None
    ways, plain = outcomes(instance), dict.fromkeys(KINDS, 1.0)
    excess = (
        max(cost(instance, f, u, way) - value for way, value in zip(ways, costs, strict=True))
        for f, u in standing(instance, instance.robust.efficiency[0])
        if allowed(instance, f, u, plain)
    )
    return min(excess, default=math.inf)


def least(instance: Instance, designs: list[tuple[Family, int]], way: dict[str, float], at: dict[str, float]) -> float:
    """The least objective at prices that turned out some way, of designs that keep the limits at others."""
    return min((cost(instance, f, u, way) for f, u in designs if allowed(instance, f, u, at)), default=math.inf)


def allowed(instance: Instance, family: Family, uplinks: int, way: dict[str, float]) -> bool:
    """Whether a design keeps all limits at prices that turned out some way."""
    whole = total(instance.objective, bill(instance, family, uplinks))
    spent = math.fsum(item.usd * factor(way, item) for item in whole.items)
    return within_limits(instance, family, whole.model_copy(update={"capex_usd": spent}))


def cost(instance: Instance, family: Family, uplinks: int, way: dict[str, float]) -> float:
    """The objective of a design at prices that turned out some way, line by line."""
    lines = bill(instance, family, uplinks)
    usd = sum(line.usd * factor(way, line) for line in lines)
    cost = total(instance.objective, lines)
    return {"capex": usd, "power": cost.power_w, "tco": usd + cost.tco_usd - cost.capex_usd}[
        instance.objective.minimize
    ]


def factor(way: dict[str, float], line: Item) -> float:
    """How dear a line turned out; GPUs that stay idle on the bill of their HB domains are GPUs all the same."""
    return way["gpu" if line.idle else line.kind]


def standing(instance: Instance, efficiency: float) -> list[tuple[Family, int]]:
    """Designs that meet their bounds, before and after every loss."""
    robust, found = instance.robust, []
    assert robust is not None
    networks = list(families(instance, ("capex",)))
    load(instance.workload, at_efficiency(instance.cluster.gpu, efficiency), networks)
    for family in networks:
        for uplinks in family.uplink_choices:
            if answers(instance, family, uplinks, efficiency, 1.0, 1.0) and all(
                survives(instance, family, uplinks, efficiency, part) for part in robust.survive
            ):
                found += [(one, uplinks) for one in with_every_optic(instance, [family])]
    return found


def survives(instance: Instance, family: Family, uplinks: int, efficiency: float, part: str) -> bool:
    """Whether every workload meets its longer bound after the worst loss of such a part."""
    assert instance.robust is not None
    longer = getattr(instance.robust.slower, part)
    if part == "domain":
        return restarts(instance, family, uplinks, efficiency, longer)
    if not family.tiers:
        return True
    return answers(instance, family, uplinks, efficiency, worst_loss(family, uplinks, part), longer)


def worst_loss(family: Family, uplinks: int, part: str) -> float:
    """How much the worst such loss slows what leaves a domain, by going through the parts of the network."""
    if part == "plane":
        return without_nics(family, family.hb.size * family.nics_per_gpu // family.planes)[0]
    named = {"nic": "NIC", "leaf": "leaf switch"}[part]
    return max(loss.domain_slowdown for loss in losses(family, uplinks) if loss.part.startswith(named))


def answers(instance: Instance, family: Family, uplinks: int, efficiency: float, slower: float, longer: float) -> bool:
    """Whether every workload meets its longer bound when traffic between domains is slower."""
    if math.isinf(slower):
        return False
    gpu = at_efficiency(instance.cluster.gpu, efficiency)
    weak = replace(family, nic=family.nic.model_copy(update={"gbit_s": family.nic.gbit_s / slower}))
    return all(fastest_s(work, gpu, weak, uplinks) <= work.bound_s * longer for work in instance.workload)


def at_efficiency(gpu: Gpu, efficiency: float) -> Gpu:
    """A GPU that reaches so many times what it is said to reach."""
    old = gpu.efficiency
    shares = {name: getattr(old, name) * efficiency for name in ("gemm", "hbm", "attention")}
    return gpu.model_copy(update={"efficiency": old.model_copy(update=shares | {"fp8": None, "fp4": None})})


def restarts(instance: Instance, family: Family, uplinks: int, efficiency: float, longer: float) -> bool:
    """Whether every workload meets its longer bound on some GPUs of the domains that are left, whichever is lost."""
    gpu = at_efficiency(instance.cluster.gpu, efficiency)
    every = partial(every_mapping, discipline=family.discipline)
    return all(
        any(
            (left_s(every(workload, gpu, family.hb, site), family, uplinks) <= workload.bound_s * longer).any()
            for gpus in range(1, family.gpus + 1)
            for active in range(1, family.hb.size + 1)
            if gpus % active == 0 and (2 * active > family.hb.size or active == gpus)
            if gpus // active < family.domains
            for site in [DomainSet(gpus=gpus, hb=family.hb.name, domains=gpus // active)]
        )
        for workload in instance.workload
    )


def left_s(job: Pool, family: Family, uplinks: int) -> Floats:
    """The iteration times of a job that goes without one domain: blocks without it are whole, and used as a whole."""
    if family.discipline.charge == "loads":
        return job.time_s(context_left(family, job.site), max(uplinks, 1))
    domains, slow, routing = job.site.domains, family.slowdown(uplinks), float(family.discipline.routing)

    def rate(block: int, whole: int) -> float:
        def stays(span: int) -> bool:
            enough = (family.domains // whole - 1) * whole >= domains
            return span > domains or (span > 0 and span % block == 0 and enough)

        if family.tiers == 1 or stays(family.leaf_span):
            return 1 / family.byte_s
        near = family.pods is None or stays(family.pod_span)
        return slow * routing * (1.0 if near else family.pod_ratio) / family.byte_s

    own = job.groups
    rows = [tuple(map(int, row)) for row in zip(own.tp, own.stage, own.experts * own.apart, strict=True)]
    blocks = [(tp, tp) for tp, _, _ in rows], [(dp, dp) for _, dp, _ in rows]
    experts, line = [(ep, math.lcm(tp, ep)) for tp, _, ep in rows], [(domains, domains)] * len(rows)
    tp, dp, ep, pp = (np.array([rate(*pair) for pair in pairs]) for pairs in (*blocks, experts, line))
    r = Reciprocals(tp=tp, cp=dp, dp=dp, ep=ep, edp=dp, pp=pp, tied=pp)
    return job.pieces.at(r)
