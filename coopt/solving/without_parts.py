"""What the loss of any one part does to the iteration times of a plan."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from coopt.columns.grid import context_of, groups_of
from coopt.columns.loads import Crossings, crossings
from coopt.columns.times import delayed
from coopt.instance.couplings import Losses, Lost
from coopt.instance.schema import Instance, instance_of, require_decided
from coopt.instance.texts import both, counted
from coopt.network.failures import Loss, losses
from coopt.network.family import Family, without_nics
from coopt.network.plan_networks import PartNetwork
from coopt.perf.collectives import KINDS
from coopt.perf.iterations import Iteration
from coopt.perf.mapping import Bools
from coopt.perf.uptime import throughput_without
from coopt.plan.couplings import Ring, SharedCore, WanPlan
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import InstanceId, Plan
from coopt.plan.store import check_same_question, plan_of
from coopt.plan.traffic import Fault, FaultedWorkload, Faults, Interrupted, Spares, Unaligned
from coopt.solving.days import allowed_s, uptime_of
from coopt.solving.plan_traffic import CLOSE, iteration_of, trusted_part
from coopt.solving.robust.survival import nics_lost, runs_without
from coopt.traffic.flows import unaligned_classes
from coopt.traffic.ranks import RankGrid, split_of

NOTHING = Loss(part="nothing", count=0)
STOOD_AS: dict[str, Lost] = {
    "GPU": "domain",
    "NIC": "nic",
    "link from NIC to leaf": "nic",
    "leaf switch": "leaf",
    "plane": "plane",
    "HB domain": "domain",
}
"""The loss that a plan has to stand, if asked to, with which it stands that of a part: a link takes
no more than its NIC, and a GPU no more than its domain.
"""
SPARED = "restarts once a spare domain has taken over the links"
GONE = 0.001  # share of the GPUs that are gone in the published example (arXiv 2504.06095)


@dataclass(frozen=True, kw_only=True)
class RunningJob:
    """One workload on the whole network: its iteration, what it puts on links, which kinds of
    traffic cross domains.
    """

    name: str
    bound_s: float
    iteration: Iteration
    loads: Crossings
    uplinks: int
    byte_s: float
    crosses: Bools

    def time_s(self, loss: Loss) -> float:
        """Iteration time without a part; infinite where it stops."""
        capacities = [1.0 / slower for slower in (loss.leaf_slowdown, loss.pod_slowdown)]
        if (math.isinf(loss.domain_slowdown) and self.crosses.any()) or (
            0.0 in capacities and (self.loads.leaf + self.loads.pod)[self.crosses].any()
        ):
            return math.inf
        # nothing may be left where no traffic crosses: the least positive number then keeps 0 / 0
        # away
        uplinks, pod_share = (max(share, np.finfo(float).tiny) for share in capacities)
        r = self.loads.reciprocals(self.byte_s, self.uplinks * uplinks, pod_share)
        crossing = [
            kind for kind, crosses in zip(KINDS, self.crosses.tolist(), strict=True) if crosses
        ]
        return float(
            self.iteration.time_s(r.slowed(dict.fromkeys(crossing, loss.domain_slowdown)))[0]
        )


def plan_faults(
    instance: Instance | str | Path, plan: Plan | str | Path, *, part: str | None = None
) -> Faults:
    """Go through everything that a network is made of: links, NICs, switches, GPUs, HB domains.

    Parameters
    ----------
    part
        The name of the part of the plan, or of a core, where it has several.

    Raises
    ------
    InstanceError
        When the plan has no design of this instance.

    Examples
    --------
    >>> import coopt
    >>> instance = coopt.load("instances/tiny-64.toml")
    >>> found = coopt.faults(instance, coopt.solve(instance)).faults
    >>> [fault.part for fault in found if fault.effect == "stops"]
    ['GPU', 'leaf switch', 'HB domain']
    """
    instance, plan = instance_of(instance), plan_of(plan)
    if part in plan.couplings.shared_cores:
        return _core_faults(instance, plan, plan.couplings.shared_cores[part])
    network = trusted_part(instance, plan, "faults", part)
    family, uplinks = network.family, network.uplinks
    splits = [split_of(workload, run) for workload, run in network.runs]
    running = [
        _running(network, split, run) for split, (_, run) in zip(splits, network.runs, strict=True)
    ]
    filled = max((split.active for split in splits), default=family.active)
    idle = family.hb.size - filled
    parts = (*losses(family, uplinks), *_planes(family, instance.losses))
    found = (
        _gpu(family, running, idle=idle),
        *(_fault(family, loss, running) for loss in parts),
        _stopped(
            "HB domain",
            family.domains,
            running,
            SPARED if family.spare_domains else "needs a spare domain",
        ),
    )
    losses_asked = [
        _as_asked(fault, network, running, instance.losses, STOOD_AS.get(fault.part))
        for fault in found
    ]
    if ring := plan.couplings.ring:
        losses_asked[-1:-1] = _channels(network, ring, running, instance.losses)
    runs = network.runs if family.rails_apart else ()
    unaligned = [Unaligned(workload=w.name, traffic=unaligned_classes(w, run)) for w, run in runs]
    return Faults(
        instance=InstanceId(name=instance.name, sha256=instance.sha256),
        faults=tuple(losses_asked),
        spares=Spares(
            idle_gpus_per_domain=idle,
            survives_gpu=idle > 0,
            same_rank_gpus=0 if idle else filled,
            domains_standing_by=family.spare_domains,
            spare_domain_usd=_domain_usd(network.question, family),
        ),
        unaligned=tuple(entry for entry in unaligned if entry.traffic),
        interrupted=tuple(_interrupted(network)),
    )


def _core_faults(instance: Instance, plan: Plan, coupling: SharedCore) -> Faults:
    """What a link or a switch of a core takes from islands, whose iterations do not pass through
    it.
    """
    require_decided(instance, "faults")
    check_same_question(instance, plan)
    core, ring = coupling.core, plan.couplings.ring
    identity = InstanceId(name=instance.name, sha256=instance.sha256)
    if ring is not None:
        network = trusted_part(instance, plan, "faults", coupling.site)
        jobs = [_running(network, split_of(of, run), run) for of, run in network.runs]
        rows = tuple(_border(coupling, ring, jobs))
        return Faults(instance=identity, faults=rows, spares=None, unaligned=())
    joined = {links.workload: links.links for links in core.islands}
    runs = [
        run
        for part in plan.parts
        if (part.site, part.phase) == (coupling.site, coupling.phase) and part.slot in joined
        for run in part.workloads
    ]
    workloads = tuple(
        FaultedWorkload(
            name=run.name,
            iteration_time_s=run.iteration_time_s,
            bound_s=run.bound_s,
            within_bound=True,
        )
        for run in runs
    )
    single = [name for name, links in joined.items() if links == 1]
    link = "its island has other links into the core"
    if len(joined) == 1:
        link = "nothing else is joined to the core"
    elif single:
        link = (
            f"without its only link, {single[0]} is cut off from other islands"
            if len(single) == 1
            else f"without the only link of each, {both(single)} are cut off from other islands"
        )
    losses_of_core = {
        "link into the core": (core.ports, f"training goes on; {link}"),
        "core switch": (
            core.switches,
            f"training goes on; {_without_switch(joined, core.switches)}",
        ),
    }
    found = tuple(
        Fault(
            part=part,
            count=count,
            effect="none",
            slowdown=1.0,
            forwarded=False,
            workloads=workloads,
            remedy=remedy,
        )
        for part, (count, remedy) in losses_of_core.items()
    )
    return Faults(instance=identity, faults=found, spares=None, unaligned=())


SECOND_CHANNEL = "a second channel"


def _border(coupling: SharedCore, ring: Ring, running: list[RunningJob]) -> Iterator[Fault]:
    """The loss of a link or a switch of the border of a site, over whose switches channels are
    spread.
    """
    core, here = coupling.core, [link for link in ring.wan if coupling.site in link.between]
    modules = sum(link.modules // 2 for link in here)
    blocked = dict.fromkeys(here, 1) if core.ports == modules else {}
    yield _without_channels("link into the border", core.ports, ring, blocked, running)
    share = {link: -(-link.channels // core.switches) for link in here}
    more = "a second border switch" if core.switches == 1 else SECOND_CHANNEL
    if core.switches == 1 and any(link.channels == 1 for link in here):
        more = f"{more} and {SECOND_CHANNEL}"
    yield _without_channels("border switch", core.switches, ring, share, running, more)


def _without_switch(links: Mapping[str, int], switches: int) -> str:
    """What joins islands without a switch of their core.

    Any two have as many switches in common as the smaller one has links, up to all
    (docs/partition.md).
    """
    common = min(*links.values(), switches) - 1
    if len(links) == 1:
        return "nothing else is joined to the core"
    if common:
        return f"any two islands still share at least {counted(common, 'core switch')}"
    cut = "no two islands are joined" if switches == 1 else "islands with one link may be cut off"
    return f"{cut} until it is replaced"


def _interrupted(network: PartNetwork) -> Iterator[Interrupted]:
    """What interrupts each workload; nothing where the instance has no word on failures."""
    family = network.family
    for workload, run in network.runs:
        pace = run.uptime.pace if run.uptime else 1.0
        uptime = run.uptime
        if network.question.availability is not None:
            uptime = uptime_of(network.question, family, network.uplinks, workload, pace)
        if uptime is not None:
            shape = {"domains": family.domains, "size": family.hb.size, "active": family.active}
            of_replica = max(family.domains // run.placement["dp"][1], 1)
            without_spares, spared = (
                throughput_without(GONE, **shape, of_replica=of_replica, spares=spares)
                for spares in (0, family.spare_domains)
            )
            yield Interrupted(
                workload=workload.name,
                uptime=uptime,
                replicas_alone=without_spares,
                replicas_with_spares=spared,
            )


def _running(network: PartNetwork, split: RankGrid, run: WorkloadPlan) -> RunningJob:
    workload = split.workload
    context, groups = (
        context_of(network.family),
        groups_of(workload, split.mapping, split.placement),
    )
    iteration_model = iteration_of(network, split)
    return RunningJob(
        name=workload.name,
        bound_s=allowed_s(network.question, network.family, network.uplinks, workload, run),
        iteration=delayed(iteration_model, network.waits_s.get(workload.name, 0.0)),
        loads=crossings(
            context.layout,
            context.discipline,
            groups,
            algorithms=iteration_model.algorithms.flows,
            exact=True,
        ),
        uplinks=max(network.uplinks, 1),
        byte_s=context.byte_s,
        crosses=np.isin(KINDS, iteration_model.pieces().kinds),
    )


def _fault(family: Family, loss: Loss, running: list[RunningJob]) -> Fault:
    times_s = [job.time_s(loss) for job in running]
    worst = _worst(running, times_s)
    effect = _effect(worst)
    return Fault(
        part=loss.part,
        count=loss.count,
        effect=effect,
        slowdown=None if math.isinf(worst) else worst,
        forwarded=loss.forwarded,
        restarts=loss.aborts and any(job.crosses.any() for job in running),
        workloads=_faulted(running, times_s),
        remedy=_remedy(family, loss, effect),
    )


def _channels(
    network: PartNetwork, ring: Ring, running: list[RunningJob], asked: Losses
) -> Iterator[Fault]:
    """The loss of a channel of each link between sites; the slowest link sets the pace of all."""
    for link in ring.wan:
        part, lost = f"channel between {both(link.between)}", {link: 1}
        fault = _without_channels(part, link.channels, ring, lost, running)
        later_s = ring.added_s(lost) or dict.fromkeys(network.waits_s, math.inf)
        waits_s = {name: wait_s + later_s[name] for name, wait_s in network.waits_s.items()}
        yield _as_asked(fault, replace(network, waits_s=waits_s), running, asked, "channel")


def _without_channels(
    part: str,
    count: int,
    ring: Ring,
    lost: Mapping[WanPlan, int],
    running: list[RunningJob],
    more: str = SECOND_CHANNEL,
) -> Fault:
    """The loss of a part that takes channels with it: exchanges are as slow as the slowest link."""
    later_s = ring.added_s(lost)
    if later_s is None:
        remedy = f"needs {more}: without this part no channel is left between two sites"
        return _stopped(part, count, running, remedy)
    late = [replace(job, iteration=delayed(job.iteration, later_s[job.name])) for job in running]
    times_s = [job.time_s(NOTHING) for job in late]
    worst = _worst(running, times_s)
    return Fault(
        part=part,
        count=count,
        effect=_effect(worst),
        slowdown=worst,
        forwarded=False,
        workloads=_faulted(running, times_s),
        remedy="gradients share the channels that are left" if lost else "none needed",
    )


def _faulted(
    running: Iterable[RunningJob], times_s: Iterable[float]
) -> tuple[FaultedWorkload, ...]:
    """How each workload runs in so many seconds, infinitely many where it stops."""
    return tuple(
        FaultedWorkload(
            name=job.name,
            iteration_time_s=None if math.isinf(time_s) else time_s,
            bound_s=job.bound_s,
            within_bound=time_s <= job.bound_s * (1 + CLOSE),
        )
        for job, time_s in zip(running, times_s, strict=True)
    )


def _worst(running: Iterable[RunningJob], times_s: Iterable[float]) -> float:
    """How many times as long as without a loss the workload takes that suffers most."""
    usual_s = (job.time_s(NOTHING) for job in running)
    return max(
        (time_s / usual for time_s, usual in zip(times_s, usual_s, strict=True)), default=1.0
    )


def _effect(worst: float) -> Literal["none", "slower", "stops"]:
    return "stops" if math.isinf(worst) else "slower" if worst > 1 + CLOSE else "none"


def _planes(family: Family, asked: Losses) -> Iterator[Loss]:
    """The loss of a whole plane, which is no one part, where a plan has to stand it."""
    if "plane" in asked and family.tiers:
        slower, forwarded = without_nics(family, nics_lost(family, "plane"), 1)
        yield Loss(
            part="plane",
            count=family.planes * family.nic_planes,
            domain_slowdown=slower,
            forwarded=forwarded,
            aborts=not family.keeps_ports,
        )


def _as_asked(
    fault: Fault,
    network: PartNetwork,
    running: list[RunningJob],
    asked: Losses,
    part: Lost | None,
) -> Fault:
    """The loss in the bounds that `[robust]` has for it, by other mappings where those of the plan
    miss one.
    """
    if part is None or part not in asked or not running:
        return fault
    slower = asked[part]
    workloads = tuple(_in_longer(workload, slower) for workload in fault.workloads)
    in_time, remedy = all(workload.within_bound for workload in workloads), fault.remedy
    place = network.question, network.family, network.uplinks
    jobs = None if in_time else runs_without(*place, part, slower, network.waits_s)
    if jobs is not None:
        workloads = tuple(
            (
                workload
                if workload.within_bound
                else workload.model_copy(
                    update={
                        "iteration_time_s": run.iteration_time_s,
                        "within_bound": True,
                        "job": run,
                    }
                )
            )
            for workload, run in zip(workloads, jobs, strict=True)
        )
        remedy = "uses the HB domains that are left" if part == "domain" else "uses another mapping"
    times_s = [math.inf if w.iteration_time_s is None else w.iteration_time_s for w in workloads]
    worst = _worst(running, times_s)
    changes = {
        "slower": slower,
        "workloads": workloads,
        "effect": _effect(worst),
        "slowdown": None if math.isinf(worst) else worst,
        "restarts": fault.restarts or jobs is not None,
        "remedy": remedy,
    }
    return fault.model_copy(update=changes)


def _in_longer(workload: FaultedWorkload, slower: float) -> FaultedWorkload:
    """The workload in a bound that is so many times as long."""
    bound_s, time_s = workload.bound_s * slower, workload.iteration_time_s
    in_time = time_s is not None and time_s <= bound_s * (1 + CLOSE)
    return workload.model_copy(update={"bound_s": bound_s, "within_bound": in_time})


def _remedy(family: Family, loss: Loss, effect: str) -> str:
    if effect == "stops":
        return (
            "needs the NICs of each domain, or their ports, on several leaves"
            if loss.part == "leaf switch"
            else f"needs a second {loss.part}"
        )
    if effect == "none":
        return "none needed"
    if loss.forwarded:
        return "traffic is forwarded evenly through other GPUs of the domain" + (
            ", on other rails" if family.planes > 1 else ""
        )
    return "traffic is spread over the links that are left"


def _gpu(family: Family, running: list[RunningJob], *, idle: int) -> Fault:
    if not idle:
        remedy = f"needs an idle GPU in every domain, or a spare domain of {family.hb.size} GPUs"
        if family.spare_domains:
            remedy = SPARED
        return _stopped("GPU", family.gpus, running, remedy)
    on_rails = (
        ", and every other domain does the same for its GPU in that place, so that rails stay"
        " aligned"
        if family.rails_apart
        else ""
    )
    return _fault(family, Loss(part="GPU", count=family.gpus), running).model_copy(
        update={
            "remedy": f"an idle GPU of its domain takes its rank{on_rails}",
            "effect": "none",
            "restarts": True,
        }
    )


def _stopped(part: str, count: int, running: list[RunningJob], remedy: str) -> Fault:
    return Fault(
        part=part,
        count=count,
        effect="stops",
        slowdown=None,
        forwarded=False,
        restarts=True,
        workloads=_faulted(running, [math.inf] * len(running)),
        remedy=remedy,
    )


def _domain_usd(instance: Instance, family: Family) -> float:
    """One domain more: GPUs, their HB interconnect, servers and NICs; it takes the links of another
    one.
    """
    host_usd = (
        family.hb.host_usd_per_gpu or 0.0
    )  # nothing where bills have it in the price of the interconnect
    nics = family.bought_per_gpu / family.gpus_per_nic if family.tiers else 0
    return family.hb.size * (
        instance.cluster.gpu.usd + family.hb.usd_per_gpu + host_usd + nics * family.nic.usd
    )
