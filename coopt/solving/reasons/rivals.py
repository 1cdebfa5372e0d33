"""The best plan with another choice of one part, the runner-up, and why they lose.

Other GPUs, batches and knobs of the question are solved, value by value; and each bound is moved
until another plan takes over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from coopt.columns.context import Context, context_of
from coopt.columns.feasible import least_time_s
from coopt.columns.grid import mappings
from coopt.columns.pools import in_orders, place
from coopt.columns.table import full_bandwidth
from coopt.instance.errors import both, counted
from coopt.instance.hardware import HbDomain
from coopt.instance.numerics import REORDERED
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
from coopt.solving.reasons.designs import Designs
from coopt.solving.reasons.labels import SAYINGS, number, sentence, why_dearer, why_worse
from coopt.solving.reasons.limits import Limit, limits_of, with_gpu
from coopt.solving.sensitivity.resolves import Resolver, cheaper, value_of

OtherChoice = tuple[str, str, Chosen]
SAME_TIME = 1e-9

CHOICES: dict[str, Callable[[Family], tuple[str, ...]]] = {
    "cluster.gpus": lambda family: (str(family.gpus),),
    "network.hb_domains": lambda family: (family.hb.name,),
    "network.fabrics": lambda family: (family.fabric,),
    "network.nics": lambda family: (family.nic.name,),
    "network.nics_per_gpu": lambda family: (str(family.nics_per_gpu),),
    "network.gpus_per_nic": lambda family: (str(family.gpus_per_nic),),
    "network.nic_planes": lambda family: (str(family.nic_planes),),
    "network.switches": lambda family: (
        family.switch.name,
        *(switch.name for switch in family.upper),
    ),
}
"""What a network uses of each list; of switches those of any tier."""


def rivals_of(designs: Designs, row: int) -> Iterator[Rival]:
    """One for every entry of the instance's lists that the chosen design does not use."""
    own_family, _ = designs.of(row)
    for part, choice_of in CHOICES.items():
        names_by_family = [choice_of(family) for family in designs.families]
        for choice in _names_in(designs.instance, part):
            if choice not in choice_of(own_family):
                among = np.array([choice in names for names in names_by_family], dtype=np.bool_)
                yield _rival(designs, row, part, choice, among[designs.family])


def runner_up(designs: Designs, base: int) -> RunnerUp | None:
    """The best design besides the chosen one."""
    row = designs.cheapest(designs.met() & ~designs.same_as(base))
    if row is None:
        return None
    return RunnerUp(
        value=float(designs.value[row]),
        regret=designs.extra(row, base),
        design=designs.design(row),
        why=_difference(designs, base, row),
    )


def _names_in(instance: Instance, part: str) -> list[str]:
    return [str(getattr(entry, "name", entry)) for entry in instance.lists[part]]


def _rival(designs: Designs, base: int, part: str, choice: str, among: Bools) -> Rival:
    row = designs.cheapest(designs.met() & among)
    if row is None:
        reason = (
            _obstacle(designs, among) if among.any() else _no_design(designs.instance, part, choice)
        )
        return Rival(part=part, choice=choice, value=None, extra=None, design=None, why=reason)
    return Rival(
        part=part,
        choice=choice,
        value=float(designs.value[row]),
        extra=designs.extra(row, base),
        design=designs.design(row),
        why=_difference(designs, base, row),
        gives=_given_by(designs, base, row) if part == "network.fabrics" else "",
    )


def _given_by(designs: Designs, base: int, row: int) -> str:
    """What else sets another fabric apart: whom it joins, how fast training is on it, and what it
    is without a leaf.
    """
    (ours, _), (rival, _) = designs.of(base), designs.of(row)
    if not ours.tiers or not rival.tiers:
        return ""
    joins = ""
    if _has_rails_apart(ours) and _joins_all(rival):
        joins = "its switches join any two GPUs, while rails of the plan meet only in HB domains"
    elif _has_rails_apart(rival) and _joins_all(ours):
        joins = "its rails meet only in HB domains, while switches of the plan join any two GPUs"
    hops, own_hops = 2 * rival.tiers - 1, 2 * ours.tiers - 1
    way = (
        f"a route passes at most {counted(hops, 'switch')}, in place of {own_hops}"
        if hops != own_hops
        else ""
    )
    speeds = (
        () if designs.instance.objective.minimize == "time" else (_how_fast(designs, base, row),)
    )
    phrases = (
        ", and ".join(filter(None, (joins, way))),
        "; ".join([*speeds, _without_leaf(rival, ours)]),
    )
    return ". ".join(map(sentence, filter(None, phrases)))


def _has_rails_apart(family: Family) -> bool:
    return family.fabric == "rail-only" and family.planes > family.nic_planes


def _joins_all(family: Family) -> bool:
    """Whether switches above the leaves join all of them."""
    return family.fabric != "rail-only" and family.tiers > 1


def _how_fast(designs: Designs, base: int, row: int) -> str:
    """Iteration times on another design beside those on ours, by workload where there are
    several.
    """
    workloads, phrases = designs.instance.workload, list[str]()
    for limit, workload in zip(limits_of(designs.instance), workloads, strict=False):
        own_s, rival_s = float(designs.uses[limit.key][base]), float(designs.uses[limit.key][row])
        is_equal = math.isclose(own_s, rival_s, rel_tol=SAME_TIME)
        takes = (
            "as long as on the plan's network"
            if is_equal
            else f"{number(rival_s)} s in place of {number(own_s)} s"
        )
        phrases.append(
            f"an iteration{f' of {workload.name}' if len(workloads) > 1 else ''} takes {takes}"
        )
    return both(phrases)


def _without_leaf(rival: Family, ours: Family) -> str:
    """What the loss of a leaf does to traffic between HB domains, on theirs and on ours."""
    factor, own_factor = slower_without_leaf(rival), slower_without_leaf(ours)
    takes, own_takes = (
        "is cut off" if math.isinf(x) else f"takes {x:.4g} times as long"
        for x in (factor, own_factor)
    )
    than = (
        " on either network"
        if math.isclose(factor, own_factor)
        else f", and {own_takes} on the plan's network"
    )
    return f"with a leaf lost, what leaves an HB domain {takes}{than}"


def _difference(designs: Designs, base: int, row: int) -> str:
    """Why a design that meets everything is not the chosen one."""
    if designs.same_as(base)[row]:
        return "is the same network by another name"
    instance = designs.instance
    ours, rival = ((designs.design(i), cost_of(instance, *designs.of(i))) for i in (base, row))
    if not designs.extra(row, base):
        if designs.is_timed:
            return (
                f"{SAYINGS[instance.objective.minimize].same}, and"
                f" {why_dearer(instance.objective, ours, rival)}"
            )
        return f"{SAYINGS[instance.objective.minimize].same}, and is no faster"
    return why_dearer(instance.objective, ours, rival)


def _obstacle(designs: Designs, among: Bools) -> str:
    """The limit that comes nearest to being met where all others are; without one, those of the
    nearest design.
    """
    limits = {limit.key: limit for limit in limits_of(designs.instance)}
    nearest: list[tuple[float, str]] = []
    for key, limit in limits.items():
        rows = among & designs.met(key) & np.isfinite(designs.uses[key])
        if rows.any():
            nearest_use = float(designs.uses[key][rows].min())
            cap_text, use_text = number(limit.own(limit.cap)), number(limit.enough(nearest_use))
            text = (
                f"the nearest comes to {use_text} {limit.unit}, and {key} is {cap_text}"
                f" {limit.unit}"
            )
            nearest.append((nearest_use / limit.cap, text))
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
        hb = next(domain for domain in network.hb_domains if domain.name == choice)
        if all(site_domain != hb for _, site_domain, _ in Space(instance=instance).all_sites()):
            return (
                f"the GPUs do not spread evenly over domains of {hb.size} with more than half of"
                " each in use"
            )
    nic_ways = [
        (nic, planes)
        for nic, planes in product(network.nics, network.nic_planes)
        if planes in nic.ports
    ]
    rates = {nic.gbit_s / planes for nic, planes in nic_ways}
    ports = {way.port_gbit_s for way in network.switch_modes if way.name == choice}
    if part == "network.switches" and ports.isdisjoint(rates):
        return "no NIC has the rate of its ports"
    if part == "network.nics":
        nic_rates = {nic.gbit_s / planes for nic, planes in nic_ways if nic.name == choice}
        if nic_rates.isdisjoint(way.port_gbit_s for way in network.switch_modes):
            return "no switch has ports of its rate"
    longest_m, reach_m = network.link_reach_m[1], max(optic.reach_m for optic in network.optics)
    if part == "network.fabrics" and network.max_tiers > 1 and reach_m < longest_m:
        return (
            f"no optic listed reaches the {longest_m:g} m from one tier to the next"
            " (network.link_reach_m)"
        )
    return (
        f"it joins the GPUs by no network of at most {network.max_tiers} tiers, whatever else is"
        " chosen"
    )


def others_of(instance: Instance, choice: Chosen) -> Iterator[OtherChoice]:
    """Every choice that differs in one value from the chosen one: the key of its list, the value,
    the choice.
    """
    for gpu in instance.cluster.generations:
        if gpu.name != choice.gpu:
            yield "cluster.gpu", gpu.name, choice.model_copy(update={"gpu": gpu.name})
    for w, workload in enumerate(instance.workload):
        batch_size = choice.global_batch.get(workload.name)
        for batch in workload.batches:
            if batch != batch_size:
                batches = choice.global_batch | {workload.name: batch}
                yield (
                    f"workload[{w}].global_batch",
                    str(batch),
                    choice.model_copy(update={"global_batch": batches}),
                )
        knobs = choice.options.get(workload.name, {})
        for key, values in workload.options.allowed.listed.items():
            for value in values:
                if value != knobs[key]:
                    options = choice.options | {workload.name: knobs | {key: value}}
                    yield (
                        f"workload[{w}].options.{key}",
                        str(value),
                        choice.model_copy(update={"options": options}),
                    )


def rival_choice(
    resolver: Resolver, open_question: Instance, plan: Plan, entry: OtherChoice
) -> Rival:
    """The best plan of another choice beside a plan of the chosen one.

    Raises
    ------
    UnprovenError
        When the time for all choices has passed.
    """
    part, name, choice = entry
    question, kind = at_choice(open_question, choice), open_question.objective.minimize
    rival = resolver.plan(question)
    value, ours = value_of(rival), value_of(plan)
    assert ours is not None
    assert plan.cost is not None
    if value is None or rival.cost is None:
        reason = "; ".join(rival.explanation) or "nothing meets every bound"
        return Rival(part=part, choice=name, value=None, extra=None, design=None, why=reason)
    # batches differ: a time of an iteration counts by what it comes to over the training
    value *= seconds_weight(question, kind) / seconds_weight(
        at_choice(open_question, plan.chosen), kind
    )
    is_equal = not cheaper(value, ours) and not cheaper(ours, value)
    reason = (
        SAYINGS[kind].same
        if is_equal
        else why_worse(open_question.objective, plan.cost, rival.cost)
    )
    reason = f"{reason or 'it has less of everything'}, and {_times(plan, rival)}"
    return Rival(
        part=part,
        choice=name,
        value=value,
        extra=0.0 if is_equal else value - ours,
        design=rival.design,
        why=reason,
    )


def _times(plan: Plan, rival: Plan) -> str:
    """`an iteration takes 0.3 s in place of 0.7 s`, by workload where there are several."""
    ours, rivals = plan.runs, {run.name: run for run in rival.runs}
    return both(
        f"an iteration{f' of {run.name}' if len(ours) > 1 else ''} takes"
        f" {number(rivals[run.name].iteration_time_s)} s in place of"
        f" {number(run.iteration_time_s)} s"
        for run in ours
        if run.name in rivals
    )


def bounds_of(designs: Designs, row: int, runs: tuple[WorkloadPlan, ...]) -> Iterator[Bound]:
    """Time of every workload, the caps that are set, and memory.

    A bound binds where a design beyond it is cheaper than all within: the chosen one need not be
    the cheapest of these.
    """
    optimum = designs.cheapest(designs.met())
    assert optimum is not None, "the chosen one is within all bounds"
    better = designs.cheaper(optimum)
    for limit in limits_of(designs.instance):
        if limit.cap < LONGEST_S:
            yield _bound(designs, row, limit, better)
    yield _memory(designs, row, max(run.memory_gib for run in runs) * GIB, better)


def _bound(designs: Designs, base: int, limit: Limit, better: Bools) -> Bound:
    use = designs.uses[limit.key]
    own_use = float(use[base])

    def moved(row: int | None) -> NextPlan | None:
        if row is None:
            return None
        bound, design = limit.own(float(use[row])), designs.design(row)
        return NextPlan(
            bound=bound,
            value=float(designs.value[row]),
            extra=designs.extra(row, base),
            design=design,
        )

    waiting = designs.met(limit.key) & better & np.isfinite(use)
    # as the bound is loosened, those that ask for least come in first
    is_next = waiting & (use == use[waiting].min(initial=np.inf))
    looser = moved(designs.cheapest(is_next))
    return Bound(
        limit=limit.key,
        unit=limit.unit,
        bound=limit.own(limit.cap),
        used=limit.own(own_use),
        slack=1.0 - own_use / limit.cap,
        binds=looser is not None,
        tighter=moved(designs.cheapest(designs.met() & (use < own_use))),
        looser=looser,
    )


def _memory(designs: Designs, base: int, used_bytes: float, better: Bools) -> Bound:
    instance, value = designs.instance, float(designs.value[base])
    gpu = instance.cluster.gpu
    cap, used_gb = gpu.hbm_gb, gpu.whole_gb(used_bytes)

    def moved(hbm_gb: float) -> NextPlan | None:
        plan = solved(with_gpu(instance, hbm_gb))
        optimum = plan.objective.value
        if optimum is None or plan.design is None:
            return None
        held_gb = gpu.whole_gb(max(run.memory_gib for run in plan.workloads) * GIB)
        return NextPlan(bound=held_gb, value=optimum, extra=optimum - value, design=plan.design)

    times = tuple(key for key in designs.uses if key.startswith("workload"))
    need_bytes = least_memory_bytes(designs, designs.met(*times) & better)
    return Bound(
        limit="cluster.gpu.hbm_gb",
        unit="GB",
        bound=cap,
        used=used_gb,
        slack=1.0 - used_gb / cap,
        binds=need_bytes is not None,
        # a hair less than is used, so that the plan's own mappings no longer fit
        tighter=moved(math.nextafter(used_gb * (1 - REORDERED), 0)),
        looser=None if need_bytes is None else moved(gpu.whole_gb(need_bytes) * (1 + REORDERED)),
    )


def least_memory_bytes(designs: Designs, among: Bools) -> float | None:
    """The least memory with which every workload has a mapping in time on one of the designs; None
    without one.
    """
    widest: dict[Context, int] = {}
    for f in np.unique(designs.family[among]).tolist():
        context, uplinks = (
            context_of(designs.families[f]),
            int(designs.uplinks[among & (designs.family == f)].max()),
        )
        widest[context] = max(widest.get(context, 0), uplinks)
    domains = {family.hb.name: family.hb for family in designs.families}
    floor = np.inf
    for site in dict.fromkeys(context.site for context in widest):
        of_site = {context: uplinks for context, uplinks in widest.items() if context.site == site}
        need_bytes = np.zeros(len(of_site))
        for w in range(len(designs.instance.workload)):
            need_bytes = np.maximum(
                need_bytes, _of_workload(designs, w, domains[site.hb], of_site, ceiling=floor)
            )
        floor = min(floor, float(need_bytes.min()))
    return floor if np.isfinite(floor) else None


def _of_workload(
    designs: Designs, w: int, hb: HbDomain, widest: dict[Context, int], *, ceiling: float
) -> Floats:
    """The least bytes of a mapping of one workload that is in time, by context, if below the
    ceiling.
    """
    instance, contexts = designs.instance, list(widest)
    workload, gpu, site = instance.workload[w], instance.cluster.gpu, contexts[0].site
    ideal = full_bandwidth(contexts)
    choices, _ = mappings(workload, site.gpus)
    fit = choices.take(memory_bytes(workload, choices) < ceiling)
    timely = fit.take(
        least_time_s(workload, gpu, fit, hb_gbyte_s=hb.gbyte_s, byte_s=ideal.byte_s)
        <= workload.bound_s
    )
    rows = place(workload, gpu, hb, site, timely)
    pool = in_orders(
        rows.take(np.flatnonzero(rows.time_s(ideal, 1) <= workload.bound_s)), ideal.discipline
    )
    pool.load([context for context in contexts if not context.layout.is_flat])
    needs = memory_bytes(workload, pool.mappings)
    return np.array(
        [
            needs[pool.time_s(c, u) <= workload.bound_s].min(initial=np.inf)
            for c, u in widest.items()
        ],
        dtype=np.float64,
    )
