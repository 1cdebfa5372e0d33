"""Check that a workload runs as the plan says: mapping, placement, time, memory, utilisation.

What its collectives go by is told in the words of a plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from coopt.instance.hardware import Gpu
from coopt.instance.texts import alternatives, counted
from coopt.instance.workload import Workload
from coopt.plan.parts import WorkloadPlan
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree
from coopt.verifier.parts.evidence import check_evidence
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.spans import Reach, TimedCase, other_ways, slowdowns_of, slowest_case
from coopt.verifier.training.communication import (
    LinkShares,
    OtherWays,
    Speeds,
    exchange_s,
    sent_shares,
)
from coopt.verifier.training.gathers import (
    Flows,
    GatherWay,
    Group,
    Repeated,
    Summed,
    collective_steps,
    summed_by_tp,
    timed_ways,
)
from coopt.verifier.training.iteration import (
    breakdown,
    causal_flop_per_token,
    exchanges,
    hardware_flop_per_token,
    held_by,
    iteration_s,
    model_flop_per_token,
    replica_groups,
    summed_between,
    tp_group,
    utilisation,
)
from coopt.verifier.training.mappings import ScalarMapping, mapping_fault, scalar_mapping
from coopt.verifier.training.memory import GIB, memory_bytes
from coopt.verifier.training.placing import Placement, placement_of
from coopt.verifier.training.work import Clock, Work

TIE_SHARE = 1e-9
"""Algorithms whose times differ by no more than this share may be named either way."""


class ClaimedRun(NamedTuple):
    """A workload of the instance with what the plan makes of it."""

    workload: Workload
    claim: WorkloadPlan
    split: ScalarMapping
    place: Placement

    @property
    def looped(self) -> bool:
        """Whether hops lead from the last stage to the first: chunks interleave."""
        return self.split.interleave > 1


def match_workloads(
    ledger: Ledger, workloads: Sequence[Workload], claims: Sequence[WorkloadPlan]
) -> list[tuple[Workload, WorkloadPlan]]:
    """Check that the workloads that run are those that are asked for, in order; each with its
    claim, none if not.
    """
    names, claimed_names = (
        tuple(workload.name for workload in workloads),
        tuple(claim.name for claim in claims),
    )
    if not ledger.same(
        "workloads",
        claimed_names,
        names,
        f"The plan trains {', '.join(claimed_names) or 'no workload'}, but has to train"
        f" {', '.join(names) or 'none'}{', in this order' if len(names) > 1 else ''}.",
    ):
        return []
    return list(zip(workloads, claims, strict=True))


def check_mappings(
    ledger: Ledger, workloads: Iterable[tuple[Workload, WorkloadPlan]], family: DesignFamily
) -> list[ClaimedRun]:
    """Check the mapping of each workload that is asked for; those for which times can be
    computed.
    """
    runs = [check_mapping(ledger, workload, claim, family) for workload, claim in workloads]
    return [run for run in runs if run is not None]


def check_mapping(
    ledger: Ledger, workload: Workload, claim: WorkloadPlan, family: DesignFamily
) -> ClaimedRun | None:
    """Check divisibility, allowed values and placement; None where no time can be computed."""
    subject = f"workload {workload.name!r}"
    complaint = (
        f"The plan's network has {counted(family.gpus, 'GPU')} in training, but {subject} runs on"
        f" {claim.gpus}."
    )
    ledger.same("workload-gpus", claim.gpus, family.gpus, complaint)
    mapping = claim.mapping
    text = ", ".join(f"{key} {value}" for key, value in mapping.model_dump().items())
    fault = mapping_fault(workload, family.gpus, mapping)
    if not ledger.holds("mapping", not fault, text, fault or "allowed", f"In {subject}: {fault}"):
        return None
    place = placement_of(workload, claim, family.active, family.rooms)
    text = ", ".join(
        f"{key} {inside} x {across}" for key, (inside, across) in claim.placement.items()
    )
    if place is None and workload.tp_inside and claim.placement.get("tp", (1, 1))[1] > 1:
        complaint = f"In {subject}, TP groups have to be inside HB domains."
    elif place is None:
        complaint = (
            f"The factors of the placement of {subject} have to multiply to the degrees of its"
            f" mapping, and those inside to fill the {counted(family.active, 'active GPU')} of an"
            " HB domain; ranks that share an expert or a copy of the parameters have to be in one"
            " domain."
        )
    elif family.holds(place.pp_in):
        complaint = f"In {subject}, mapping.outermost = 'dp' needs network.charge = 'loads'."
    else:
        complaint = f"In {subject}, GPUs that share a NIC have to be of one pipeline stage."
    turned = mapping.outermost == "dp"
    # where the ratio is charged, who lies next to whom makes no difference
    sound = place is not None and family.holds(place.pp_in) and (family.charges_loads or not turned)
    if (
        not ledger.holds("placement", sound, text, f"{family.active} GPUs inside", complaint)
        or place is None
        or not sound
    ):
        return None
    return ClaimedRun(workload, claim, scalar_mapping(mapping), place)


def check_run(
    ledger: Ledger,
    run: ClaimedRun,
    family: DesignFamily,
    reach: Reach,
    gpu: Gpu,
    wait_s: float | None = None,
    goodput: float = 1.0,
) -> None:
    """Check time, memory and utilisation on a design.

    `wait_s` is what gradients of other sites take, if any, `goodput` the share of the bound in
    which training runs.
    """
    work = Clock(run.workload, gpu).work(run.split)._replace(wait_s=wait_s or 0.0)
    speed = slowest_case(family, reach, work, run.place).speed
    check_run_at_speed(ledger, run, family.gpus, speed, gpu, wait_s=wait_s, goodput=goodput)
    if run.claim.routes:
        _routes(ledger, run, family, reach, gpu, wait_s or 0.0, goodput)


def check_other(
    ledger: Ledger,
    run: ClaimedRun,
    workload: Workload,
    claim: WorkloadPlan,
    family: DesignFamily,
    reach: Reach,
    gpu: Gpu,
) -> TimedCase | None:
    """The case in which another mapping than that of a plan takes longest, where it runs as it
    says; the bound of the plan it may miss.
    """
    other = check_mapping(ledger, workload, claim, family)
    if other is None:
        return None
    case = slowest_case(family, reach, Clock(workload, gpu).work(other.split), other.place)
    share = run.claim.bound_s / workload.bound_s
    check_run_at_speed(ledger, other, family.gpus, case.speed, gpu, goodput=share)
    return case if all(one.ok for one in ledger.checks if one.name != "deadline") else None


def _routes(
    ledger: Ledger,
    run: ClaimedRun,
    family: DesignFamily,
    reach: Reach,
    gpu: Gpu,
    wait_s: float,
    goodput: float,
) -> None:
    """Check that flows keep to paths, no faster than any paths let them be, and meet the bound on
    those found.
    """
    claimed_slowdowns, subject = run.claim.routes, f"workload {run.workload.name!r}"
    charged = charged_slowdowns(reach, run.claim, run.place, looped=run.looped)
    pinned = reach.layout is not None and reach.discipline.routing == "pinned"
    wrong = [
        kind
        for kind in claimed_slowdowns
        if not pinned or claimed_slowdowns[kind] < charged.get(kind, math.inf) * (1 - TOLERANCE)
    ]
    texts = [
        tuple(f"{kind} {values[kind]:.6g}" for kind in claimed_slowdowns if kind in values)
        for values in (claimed_slowdowns, charged)
    ]
    if not ledger.holds(
        "routes",
        not wrong,
        texts[0],
        texts[1],
        f"The plan understates how much shared links slow {', '.join(wrong)} of {subject}."
        if pinned
        else f"The plan states routes for {', '.join(wrong)} of {subject}, but flows in this"
        " network are not pinned to routes.",
        TOLERANCE,
    ):
        return
    slowdowns, flows_by_kind = {**charged, **claimed_slowdowns}, flows_named(run.claim, run.place)
    # what goes another way has no routes for a ring
    rings = (
        math.inf if kind in flows_by_kind else slow / family.nic_byte_s
        for kind, slow in slowdowns.items()
    )

    def ways_of(kind: str) -> OtherWays:
        """The way that has routes, which no other replaces."""
        ways = ("halving", "trees")
        return OtherWays(
            *(
                slowdowns[kind] / family.nic_byte_s if flows_by_kind.get(kind) == way else math.inf
                for way in ways
            )
        )

    named = Speeds._make([family.hb.gbyte_s * 1e9, *rings, ways_of])
    speed = named.behind(family.hb.to_nics_gbyte_s)
    work = Clock(run.workload, gpu).work(run.split)._replace(wait_s=wait_s)
    time_s, bound = iteration_s(work, run.place, speed), run.workload.bound_s * goodput
    ledger.holds(
        "routes-deadline",
        time_s <= bound * (1 + TOLERANCE),
        bound,
        time_s,
        f"With its routes an iteration of {subject} takes {time_s:.9g} s, above its bound of"
        f" {bound:.9g} s.",
        TOLERANCE,
    )


def flows_named(claim: WorkloadPlan, place: Placement) -> dict[str, Flows]:
    """Kinds of traffic for which a plan names a way between domains that is no ring, and who sends
    to whom by it.
    """
    across = {
        "tp": place.tp_across,
        "dp": place.dp_across * place.cp_across,
        "edp": place.copies_across,
    }
    ways: dict[str, Flows] = {"halving and doubling": "halving", "double binary tree": "trees"}
    flows_by_kind = {kind: ways[name] for kind, name in claim.collectives.items() if name in ways}
    return {kind: flows for kind, flows in flows_by_kind.items() if across.get(kind, 1) > 1}


def charged_slowdowns(
    reach: Reach, claim: WorkloadPlan, place: Placement, *, looped: bool
) -> dict[str, float]:
    """How far each kind of traffic is slowed that goes the way that a plan names."""
    charged = slowdowns_of(reach, place.filled, place, looped=looped)._asdict()
    for kind, flows in flows_named(claim, place).items():
        charged[kind] = getattr(other_ways(reach, place.filled, place, kind), flows)
    return {kind: slow.sure for kind, slow in charged.items()}


def check_run_at_speed(
    ledger: Ledger,
    run: ClaimedRun,
    gpus: int,
    speed: Speeds,
    gpu: Gpu,
    *,
    wait_s: float | None = None,
    goodput: float = 1.0,
    lateness: float = TOLERANCE,
) -> None:
    """Check time, memory and utilisation by the scalar model; the bound may be missed by a share of
    `lateness`.
    """
    check_evidence(ledger, run.workload, run.claim, gpu, gpus)
    claimed_knobs, knobs_of_options = run.claim.knobs, run.workload.options.knobs
    texts = [", ".join(knobs) or "nothing" for knobs in (knobs_of_options, claimed_knobs)]
    ledger.same(
        "knobs",
        claimed_knobs,
        knobs_of_options,
        f"The plan has to list where workload {run.workload.name!r} departs from ordinary training"
        f" ({texts[0]}), but it lists {texts[1]}.",
    )
    work = Clock(run.workload, gpu).work(run.split)
    _collectives(ledger, run, work, speed)
    _time(
        ledger,
        run,
        work._replace(wait_s=wait_s or 0.0),
        gpus,
        speed,
        gpu,
        lateness,
        goodput,
        of_sites=wait_s is not None,
    )
    _memory(ledger, run, gpu)


def _collectives(ledger: Ledger, run: ClaimedRun, work: Work, speed: Speeds) -> None:
    """Check what the plan says collectives run by."""
    claimed_names = run.claim.collectives
    possible = algorithm_names(work, run.place, speed)
    wrong = [
        kind
        for kind in {**possible, **claimed_names}
        if claimed_names.get(kind) not in possible.get(kind, ())
    ]
    expected = tuple(f"{kind}: {alternatives(names)}" for kind, names in possible.items())
    subject = f"workload {run.workload.name!r}"
    ledger.holds(
        "collectives",
        not wrong,
        tuple(f"{k}: {name}" for k, name in claimed_names.items()),
        expected,
        f"The plan has to name these collective algorithms for {subject}:"
        f" {', '.join(expected) or 'none'}. It differs for {', '.join(wrong)}.",
    )


def _time(
    ledger: Ledger,
    run: ClaimedRun,
    work: Work,
    gpus: int,
    speed: Speeds,
    gpu: Gpu,
    lateness: float,
    goodput: float,
    *,
    of_sites: bool,
) -> None:
    workload, claim = run.workload, run.claim
    subject = f"workload {workload.name!r}"
    time_s = iteration_s(work, run.place, speed)
    claimed_s = claim.iteration_time_s
    ledger.close(
        "iteration-time",
        claimed_s,
        time_s,
        f"An iteration of {subject} takes {time_s:.9g} s, but the plan says {claimed_s:.9g} s.",
    )
    parts, claimed_parts = breakdown(work, run.place, speed)._asdict(), claim.breakdown_s
    if not of_sites:
        del parts["wan"]
    differing = [
        key
        for key in {**parts, **claimed_parts}
        # up to their own rounding, or that of the whole time
        if not agree(claimed_parts.get(key), parts.get(key))
        and not abs(claimed_parts.get(key, math.inf) - parts.get(key, math.inf))
        <= 1e-3 * TOLERANCE * time_s
    ]
    ledger.holds(
        "breakdown",
        not differing,
        tuple(f"{key} {value:.6g}" for key, value in claimed_parts.items()),
        tuple(f"{key} {value:.6g}" for key, value in parts.items()),
        f"The time breakdown that the plan states for {subject} is wrong in"
        f" {', '.join(differing)}.",
        TOLERANCE,
    )
    bound = workload.bound_s * goodput
    ledger.close(
        "bound-time",
        claim.bound_s,
        bound,
        f"The bound of {subject} is {bound:.9g} s, but the plan says {claim.bound_s:.9g} s.",
    )
    ledger.holds(
        "deadline",
        time_s <= bound * (1 + lateness),
        bound,
        time_s,
        f"An iteration of {subject} takes {time_s:.9g} s, above its bound of {bound:.9g} s.",
        lateness,
    )
    _rates(ledger, run, gpus, gpu, time_s)


def _rates(ledger: Ledger, run: ClaimedRun, gpus: int, gpu: Gpu, time_s: float) -> None:
    """What follows from the time: utilisation and tokens."""
    workload, claim = run.workload, run.claim
    subject = f"workload {workload.name!r}"
    hardware = hardware_flop_per_token(workload, run.split.recompute)
    for name, claimed_share, flop in (
        ("mfu", claim.mfu, model_flop_per_token(workload.model)),
        ("hfu", claim.hfu, hardware),
        ("mfu-causal", claim.mfu_causal, causal_flop_per_token(workload.model)),
    ):
        recomputed = utilisation(workload, gpu, gpus, flop, time_s)
        ledger.close(
            name,
            claimed_share,
            recomputed,
            f"{name.partition('-')[0].upper()}{' with causal attention' * ('-' in name)} of"
            f" {subject} is {recomputed:.7%}, but the plan says {claimed_share:.7%}.",
        )
    rate = workload.tokens_per_iteration / time_s
    ledger.close(
        "tokens",
        claim.tokens_per_s,
        rate,
        f"W{subject[1:]} trains {rate:,.9g} tokens per second, but the plan says"
        f" {claim.tokens_per_s:,.9g}.",
    )


def _memory(ledger: Ledger, run: ClaimedRun, gpu: Gpu) -> None:
    claim, subject = run.claim, f"workload {run.workload.name!r}"
    need, room = memory_bytes(run.workload, run.split) / GIB, gpu.usable_bytes / GIB
    ledger.close(
        "memory",
        claim.memory_gib,
        need,
        f"The fullest GPU of {subject} needs {need:.9g} GiB, but the plan says"
        f" {claim.memory_gib:.9g} GiB.",
    )
    ledger.close(
        "memory-capacity",
        claim.memory_limit_gib,
        room,
        f"Less its margin, {gpu.name!r} has {room:.9g} GiB for training, but the plan says"
        f" {claim.memory_limit_gib:.9g} GiB.",
    )
    ledger.holds(
        "memory-fits",
        need <= room * (1 + TOLERANCE),
        room,
        need,
        f"The fullest GPU of {subject} needs {need:.9g} GiB but has only {room:.9g} GiB.",
        TOLERANCE,
    )


def algorithm_names(work: Work, place: Placement, speed: Speeds) -> dict[str, list[str]]:
    """The names that each kind of traffic may have whose groups are of several ranks; none where
    there is no choice.
    """
    if not work.links.overlap:
        return {}
    over_tp, over_cp = (
        tp_group(work, place, speed),
        Group(place.cp_in, place.cp_across, *speed.of("cp")),
    )
    kinds: dict[str, tuple[Group, list[Repeated], Summed]] = {
        "tp": (over_tp, [Repeated(1, work.traffic.gathered_bytes)], summed_by_tp(work.split)),
        "cp": (over_cp, [Repeated(*sent) for sent in work.traffic.over_cp], "nothing"),
    }
    kinds |= {
        kind: (group, exchanges(work, each.number, each.ranks), summed_between(work))
        for kind, group in replica_groups(work, place, speed).items()
        if (each := held_by(work, place)[kind]).number
    }
    names = {
        # keys and values go round by their nature, and TP ranks that split experts too keep to
        # rings
        kind: _gather_names(
            *gather,
            work.links,
            sized=kind != "cp" and not (kind == "tp" and work.traffic.row_gathers),
        )
        for kind, gather in kinds.items()
        if gather[0].inside * gather[0].across > 1
    }
    if work.parameters.experts and place.ep_in * place.ep_across > 1:
        names["ep"] = _exchange_names(work, place, speed)
    return names


def _gather_names(
    group: Group, collectives: list[Repeated], summed: Summed, links: LinkShares, *, sized: bool
) -> list[str]:
    """The ways that take least, which may be several."""
    timed = timed_ways(collectives, group, links, summed)
    most_s = min(seconds for seconds, _ in timed) * (1 + TIE_SHARE)
    fastest = [way for seconds, (way, *_) in timed if seconds <= most_s]
    return [_gather_name(way, group, links, summed, sized=sized) for way in fastest]


def _gather_name(
    way: GatherWay, group: Group, links: LinkShares, summed: Summed, *, sized: bool
) -> str:
    inside, across = group.inside, group.across
    if way.name != "rings":
        return way.name
    if summed != "nothing" and across == 1 and links.hb_sum > links.hb:
        return "switches of the HB domain"
    if summed == "gradients" and across > 1 and links.rail_sums:
        return "switches of the network"
    if sized:
        # inside one domain steps double what a rank has, which of two ranks is the same as a ring
        return "rings" if across > 1 or inside == 2 else "halving and doubling"
    return "trees" if collective_steps(inside, across) < inside - 1 + across - 1 else "rings"


def _exchange_names(work: Work, place: Placement, speed: Speeds) -> list[str]:
    """An exchange runs on both levels at once where it has both and this takes less."""
    ends, links = (place.ep_in, place.ep_across), work.links
    if not (links.overlap and work.traffic.sends_once and min(ends) > 1):
        return ["exchange"]
    ranks_and_speeds = (*ends, sent_shares(work.traffic, *ends), *speed.of("ep"))
    # of any size: both start alike, and grow with the bytes
    at_once, by_levels = (
        exchange_s(1e9, *ranks_and_speeds, links._replace(overlap=at_same_time))
        for at_same_time in (True, False)
    )
    return ["exchange on both levels at once"] if at_once < by_levels else ["exchange"]
