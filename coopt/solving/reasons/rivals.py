"""The best plan with another choice of one part, the runner-up, and why they lose.

Other GPUs, batches and knobs of the question are solved, value by value; and each bound is moved until another plan
takes over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from coopt.columns.context import Context, context_of
from coopt.columns.grid import mappings
from coopt.columns.least_times import least_time_s
from coopt.columns.pools import in_orders, place
from coopt.columns.table import full_bandwidth
from coopt.instance.errors import both, counted
from coopt.instance.hardware import HbDomain
from coopt.instance.schema import Chosen, Instance, at_choice, seconds_weight
from coopt.instance.workload import LONGEST_S
from coopt.network.failures import slower_without_leaf
from coopt.network.family import Family
from coopt.network.parts import cost_of
from coopt.network.space import Space
from coopt.perf.mapping import Bools, Floats
from coopt.perf.memory import GIB, memory_bytes
from coopt.plan.explanation import Bound, NextPlan, Rival, RunnerUp
from coopt.plan.schema import Plan, WorkloadPlan
from coopt.solving.reasons.again import solved
from coopt.solving.reasons.designs import ROUNDING, Designs
from coopt.solving.reasons.labels import SAYINGS, number, sentence, why_dearer, why_worse
from coopt.solving.reasons.limits import Limit, limits_of, with_gpu
from coopt.solving.sensitivity.resolves import Resolver, cheaper, value_of

Other = tuple[str, str, Chosen]
SAME_TIME = 1e-9


CHOICES: dict[str, Callable[[Family], tuple[str, ...]]] = {
    "cluster.gpus": lambda family: (str(family.gpus),),
    "network.hb_domains": lambda family: (family.hb.name,),
    "network.fabrics": lambda family: (family.fabric,),
    "network.nics": lambda family: (family.nic.name,),
    "network.nics_per_gpu": lambda family: (str(family.nics_per_gpu),),
    "network.gpus_per_nic": lambda family: (str(family.gpus_per_nic),),
    "network.nic_planes": lambda family: (str(family.nic_planes),),
    "network.switches": lambda family: (family.switch.name, *(switch.name for switch in family.upper)),
}
"""What a network uses of each list; of switches those of any tier."""


def rivals_of(designs: Designs, chosen: int) -> Iterator[Rival]:
    """One for every entry of the instance's lists that the chosen design does not use."""
    taken, _ = designs.of(chosen)
    for part, choice_of in CHOICES.items():
        used = [choice_of(family) for family in designs.families]
        for choice in _listed(designs.instance, part):
            if choice not in choice_of(taken):
                among = np.array([choice in names for names in used], dtype=np.bool_)
                yield _rival(designs, chosen, part, choice, among[designs.family])


def runner_up(designs: Designs, chosen: int) -> RunnerUp | None:
    """The best design besides the chosen one."""
    row = designs.cheapest(designs.met() & ~designs.same_as(chosen))
    if row is None:
        return None
    return RunnerUp(
        value=float(designs.value[row]),
        regret=designs.extra(row, chosen),
        design=designs.design(row),
        why=_difference(designs, chosen, row),
    )


def _listed(instance: Instance, part: str) -> list[str]:
    return [str(getattr(entry, "name", entry)) for entry in instance.lists[part]]


def _rival(designs: Designs, chosen: int, part: str, choice: str, among: Bools) -> Rival:
    row = designs.cheapest(designs.met() & among)
    if row is None:
        why = _obstacle(designs, among) if among.any() else _no_design(designs.instance, part, choice)
        return Rival(part=part, choice=choice, value=None, extra=None, design=None, why=why)
    return Rival(
        part=part,
        choice=choice,
        value=float(designs.value[row]),
        extra=designs.extra(row, chosen),
        design=designs.design(row),
        why=_difference(designs, chosen, row),
        gives=_given_by(designs, chosen, row) if part == "network.fabrics" else "",
    )


def _given_by(designs: Designs, chosen: int, row: int) -> str:
    """What else sets another fabric apart: whom it joins, how fast training is on it, and what it is without a leaf."""
    (ours, _), (theirs, _) = designs.of(chosen), designs.of(row)
    if not ours.tiers or not theirs.tiers:
        return ""
    joins = ""
    if _has_rails_apart(ours) and _joins_all(theirs):
        joins = "its switches join any two GPUs, while rails of the plan meet only in HB domains"
    elif _has_rails_apart(theirs) and _joins_all(ours):
        joins = "its rails meet only in HB domains, while switches of the plan join any two GPUs"
    most, own = 2 * theirs.tiers - 1, 2 * ours.tiers - 1
    way = f"a route passes at most {counted(most, 'switch')}, in place of {own}" if most != own else ""
    speeds = () if designs.instance.objective.minimize == "time" else (_how_fast(designs, chosen, row),)
    said = ", and ".join(filter(None, (joins, way))), "; ".join([*speeds, _without_leaf(theirs, ours)])
    return ". ".join(map(sentence, filter(None, said)))


def _has_rails_apart(family: Family) -> bool:
    return family.fabric == "rail-only" and family.planes > family.nic_planes


def _joins_all(family: Family) -> bool:
    """Whether switches above the leaves join all of them."""
    return family.fabric != "rail-only" and family.tiers > 1


def _how_fast(designs: Designs, chosen: int, row: int) -> str:
    """Iteration times on another design beside those on ours, by workload where there are several."""
    workloads, told = designs.instance.workload, list[str]()
    for limit, workload in zip(limits_of(designs.instance), workloads, strict=False):
        ours, theirs = float(designs.uses[limit.key][chosen]), float(designs.uses[limit.key][row])
        same = math.isclose(ours, theirs, rel_tol=SAME_TIME)
        takes = "as long as on the plan's network" if same else f"{number(theirs)} s in place of {number(ours)} s"
        told.append(f"an iteration{f' of {workload.name}' if len(workloads) > 1 else ''} takes {takes}")
    return both(told)


def _without_leaf(theirs: Family, ours: Family) -> str:
    """What the loss of a leaf does to traffic between HB domains, on theirs and on ours."""
    slower, own = slower_without_leaf(theirs), slower_without_leaf(ours)
    takes, own_takes = ("is cut off" if math.isinf(x) else f"takes {x:.4g} times as long" for x in (slower, own))
    than = " on either network" if math.isclose(slower, own) else f", and {own_takes} on the plan's network"
    return f"with a leaf lost, what leaves an HB domain {takes}{than}"


def _difference(designs: Designs, chosen: int, row: int) -> str:
    """Why a design that meets everything is not the chosen one."""
    if designs.same_as(chosen)[row]:
        return "is the same network by another name"
    instance = designs.instance
    ours, theirs = ((designs.design(i), cost_of(instance, *designs.of(i))) for i in (chosen, row))
    if not designs.extra(row, chosen):
        if designs.is_timed:
            return f"{SAYINGS[instance.objective.minimize].same}, and {why_dearer(instance.objective, ours, theirs)}"
        return f"{SAYINGS[instance.objective.minimize].same}, and is no faster"
    return why_dearer(instance.objective, ours, theirs)


def _obstacle(designs: Designs, among: Bools) -> str:
    """The limit that comes nearest to being met where all others are; without one, those of the nearest design."""
    limits = {limit.key: limit for limit in limits_of(designs.instance)}
    nearest: list[tuple[float, str]] = []
    for key, limit in limits.items():
        rows = among & designs.met(key) & np.isfinite(designs.uses[key])
        if rows.any():
            best = float(designs.uses[key][rows].min())
            own, reached = number(limit.own(limit.cap)), number(limit.enough(best))
            text = f"the nearest comes to {reached} {limit.unit}, and {key} is {own} {limit.unit}"
            nearest.append((best / limit.cap, text))
    if nearest:
        return min(nearest)[1]
    shares = np.stack([designs.uses[key] / cap for key, cap in designs.caps.items()])[:, among]
    row = int(np.argmin(shares.max(axis=0)))
    if not np.isfinite(shares[:, row]).all():
        return "no mapping divides evenly and fits into memory"
    missed = [key for key, share in zip(designs.caps, shares[:, row], strict=True) if share > 1]
    return f"it misses {both(missed)} together"


def _no_design(instance: Instance, part: str, choice: str) -> str:
    """Why not even one family has that part."""
    network = instance.network
    if part == "network.hb_domains":
        hb = next(one for one in network.hb_domains if one.name == choice)
        if all(held != hb for _, held, _ in Space(instance=instance).all_sites()):
            return f"the GPUs do not spread evenly over domains of {hb.size} with more than half of each in use"
    listed = [(nic, planes) for nic, planes in product(network.nics, network.nic_planes) if planes in nic.ports]
    rates = {nic.gbit_s / planes for nic, planes in listed}
    ports = {way.port_gbit_s for way in network.switch_ways if way.name == choice}
    if part == "network.switches" and ports.isdisjoint(rates):
        return "no NIC has the rate of its ports"
    if part == "network.nics":
        own = {nic.gbit_s / planes for nic, planes in listed if nic.name == choice}
        if own.isdisjoint(way.port_gbit_s for way in network.switch_ways):
            return "no switch has ports of its rate"
    longest_m, reach_m = network.link_reach_m[1], max(optic.reach_m for optic in network.optics)
    if part == "network.fabrics" and network.max_tiers > 1 and reach_m < longest_m:
        return f"no optic listed reaches the {longest_m:g} m from one tier to the next (network.link_reach_m)"
    return f"it joins the GPUs by no network of at most {network.max_tiers} tiers, whatever else is chosen"


def others_of(instance: Instance, chosen: Chosen) -> Iterator[Other]:
    """Every choice that differs in one value from the chosen one: the key of its list, the value, the choice."""
    for gpu in instance.cluster.generations:
        if gpu.name != chosen.gpu:
            yield "cluster.gpu", gpu.name, chosen.model_copy(update={"gpu": gpu.name})
    for w, workload in enumerate(instance.workload):
        taken = chosen.global_batch.get(workload.name)
        for batch in workload.batches:
            if batch != taken:
                batches = chosen.global_batch | {workload.name: batch}
                yield f"workload[{w}].global_batch", str(batch), chosen.model_copy(update={"global_batch": batches})
        knobs = chosen.options.get(workload.name, {})
        for key, values in workload.options.allowed.listed.items():
            for value in values:
                if value != knobs[key]:
                    options = chosen.options | {workload.name: knobs | {key: value}}
                    yield f"workload[{w}].options.{key}", str(value), chosen.model_copy(update={"options": options})


def rival_choice(resolver: Resolver, asked: Instance, plan: Plan, other: Other) -> Rival:
    """The best plan of another choice beside a plan of the chosen one.

    Raises
    ------
    UnprovenError
        When the time for all choices has passed.
    """
    part, name, chosen = other
    question, kind = at_choice(asked, chosen), asked.objective.minimize
    best = resolver.plan(question)
    found, ours = value_of(best), value_of(plan)
    assert ours is not None
    assert plan.cost is not None
    if found is None or best.cost is None:
        why = "; ".join(best.explanation) or "nothing meets every bound"
        return Rival(part=part, choice=name, value=None, extra=None, design=None, why=why)
    found *= seconds_weight(question, kind) / seconds_weight(at_choice(asked, plan.chosen), kind)
    same = not cheaper(found, ours) and not cheaper(ours, found)
    why = SAYINGS[kind].same if same else why_worse(asked.objective, plan.cost, best.cost)
    why = f"{why or 'it has less of everything'}, and {_times(plan, best)}"
    return Rival(
        part=part,
        choice=name,
        value=found,
        extra=0.0 if same else found - ours,
        design=best.design,
        why=why,
    )


def _times(plan: Plan, other: Plan) -> str:
    """`an iteration takes 0.3 s in place of 0.7 s`, by workload where there are several."""
    ours, theirs = plan.runs, {run.name: run for run in other.runs}
    return both(
        f"an iteration{f' of {run.name}' if len(ours) > 1 else ''} takes {number(theirs[run.name].iteration_time_s)} s "
        f"in place of {number(run.iteration_time_s)} s"
        for run in ours
        if run.name in theirs
    )


def bounds_of(designs: Designs, chosen: int, runs: tuple[WorkloadPlan, ...]) -> Iterator[Bound]:
    """Time of every workload, the caps that are set, and memory.

    A bound binds where a design beyond it is cheaper than all within: the chosen one need not be the cheapest of these.
    """
    best = designs.cheapest(designs.met())
    assert best is not None, "the chosen one is within all bounds"
    better = designs.cheaper(best)
    for limit in limits_of(designs.instance):
        if limit.cap < LONGEST_S:
            yield _bound(designs, chosen, limit, better)
    yield _memory(designs, chosen, max(run.memory_gib for run in runs) * GIB, better)


def _bound(designs: Designs, chosen: int, limit: Limit, better: Bools) -> Bound:
    use = designs.uses[limit.key]
    used = float(use[chosen])

    def moved(row: int | None) -> NextPlan | None:
        if row is None:
            return None
        bound, design = limit.own(float(use[row])), designs.design(row)
        return NextPlan(bound=bound, value=float(designs.value[row]), extra=designs.extra(row, chosen), design=design)

    waiting = designs.met(limit.key) & better & np.isfinite(use)
    first = waiting & (use == use[waiting].min(initial=np.inf))
    looser = moved(designs.cheapest(first))
    return Bound(
        limit=limit.key,
        unit=limit.unit,
        bound=limit.own(limit.cap),
        used=limit.own(used),
        slack=1.0 - used / limit.cap,
        binds=looser is not None,
        tighter=moved(designs.cheapest(designs.met() & (use < used))),
        looser=looser,
    )


def _memory(designs: Designs, chosen: int, used_bytes: float, better: Bools) -> Bound:
    instance, value = designs.instance, float(designs.value[chosen])
    gpu = instance.cluster.gpu
    cap, used_gb = gpu.hbm_gb, gpu.whole_gb(used_bytes)

    def moved(hbm_gb: float) -> NextPlan | None:
        plan = solved(with_gpu(instance, hbm_gb))
        found = plan.objective.value
        if found is None or plan.design is None:
            return None
        held_gb = gpu.whole_gb(max(run.memory_gib for run in plan.workloads) * GIB)
        return NextPlan(bound=held_gb, value=found, extra=found - value, design=plan.design)

    times = tuple(key for key in designs.uses if key.startswith("workload"))
    more = least_memory_bytes(designs, designs.met(*times) & better)
    return Bound(
        limit="cluster.gpu.hbm_gb",
        unit="GB",
        bound=cap,
        used=used_gb,
        slack=1.0 - used_gb / cap,
        binds=more is not None,
        tighter=moved(math.nextafter(used_gb * (1 - ROUNDING), 0)),
        looser=None if more is None else moved(gpu.whole_gb(more) * (1 + ROUNDING)),
    )


def least_memory_bytes(designs: Designs, among: Bools) -> float | None:
    """The least memory with which every workload has a mapping in time on one of the designs; None without one."""
    widest: dict[Context, int] = {}
    for f in np.unique(designs.family[among]).tolist():
        context, most = context_of(designs.families[f]), int(designs.uplinks[among & (designs.family == f)].max())
        widest[context] = max(widest.get(context, 0), most)
    domains = {family.hb.name: family.hb for family in designs.families}
    least = np.inf
    for site in dict.fromkeys(context.site for context in widest):
        of_site = {context: most for context, most in widest.items() if context.site == site}
        needed = np.zeros(len(of_site))
        for w in range(len(designs.instance.workload)):
            needed = np.maximum(needed, _of_workload(designs, w, domains[site.hb], of_site, below=least))
        least = min(least, float(needed.min()))
    return least if np.isfinite(least) else None


def _of_workload(designs: Designs, w: int, hb: HbDomain, widest: dict[Context, int], *, below: float) -> Floats:
    """The least bytes of a mapping of one workload that is in time, on each context with its uplinks, if below some."""
    instance, contexts = designs.instance, list(widest)
    workload, gpu, site = instance.workload[w], instance.cluster.gpu, contexts[0].site
    best = full_bandwidth(contexts)
    whole, _ = mappings(workload, site.gpus)
    few = whole.take(memory_bytes(workload, whole) < below)
    near = few.take(least_time_s(workload, gpu, few, hb_gbyte_s=hb.gbyte_s, byte_s=best.byte_s) <= workload.bound_s)
    every = place(workload, gpu, hb, site, near)
    pool = in_orders(every.take(np.flatnonzero(every.time_s(best, 1) <= workload.bound_s)), best.discipline)
    pool.load([context for context in contexts if not context.layout.is_flat])
    needed = memory_bytes(workload, pool.mappings)
    return np.array(
        [needed[pool.time_s(c, u) <= workload.bound_s].min(initial=np.inf) for c, u in widest.items()], dtype=np.float64
    )
