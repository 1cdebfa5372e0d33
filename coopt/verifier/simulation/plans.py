"""Simulate the workloads of a plan, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from coopt.instance.hardware import Gpu
from coopt.instance.schema import Instance, instance_of, question_on
from coopt.instance.texts import InstanceError, counted
from coopt.instance.variants import at_min_efficiency, trained_on
from coopt.instance.workload import Workload
from coopt.plan.couplings import Part
from coopt.plan.couplings import network_of as claimed_network
from coopt.plan.parts import Design, WorkloadPlan
from coopt.plan.schema import InstanceId, Plan
from coopt.plan.store import check_same_question, plan_of
from coopt.plan.traffic import (
    Cause,
    FlowRate,
    SimulatedWorkload,
    Simulation,
    SpentTime,
    TrafficKind,
)
from coopt.verifier.checks.verdict import TOLERANCE
from coopt.verifier.parts.workload_checks import ClaimedRun
from coopt.verifier.simulation.iteration import Carrier, IterationSimulation, SimulatedParts
from coopt.verifier.simulation.networks import DirectNetwork, FabricNetwork, network_of
from coopt.verifier.simulation.traces import TraceRecord
from coopt.verifier.training.mappings import mapping_fault, scalar_mapping
from coopt.verifier.training.placing import Rooms, placement_of
from coopt.verifier.training.work import Clock

CAUSES: dict[Cause, tuple[str, ...]] = {
    "pipeline": ("compute", "logits", "tp", "cp", "ep", "pp", "bubble"),
    "gradients": ("dp", "wan"),
    "embedding": ("embedding",),
    "optimizer": ("optimizer",),
    "stragglers": ("straggler",),
}
"""What the closed form breaks an iteration down to, by what the simulation does."""


def simulate(
    instance: Instance | str | Path,
    plan: Plan | str | Path,
    *,
    part: str | None = None,
    trace: list[TraceRecord] | None = None,
) -> Simulation:
    """Simulate one iteration of every workload on the network that the plan builds.

    Every stage works through its forward and backward passes, exchanges messages with its
    neighbours, adds up gradients with its replicas and updates its parameters, as events; what
    crosses HB domains are flows on the graph of the network, with max-min fair rates
    (docs/simulate.md).

    Parameters
    ----------
    part
        The name of one part; all if left out.
    trace
        Where to put what happens when, one record for each workload.

    Raises
    ------
    InstanceError
        When the plan is of another instance, builds nothing, has no such part, or does not hang
        together.

    Examples
    --------
    >>> import coopt
    >>> instance = coopt.load("instances/tiny-64.toml")
    >>> coopt.simulate(instance, coopt.solve(instance)).met
    True
    """
    instance, plan = instance_of(instance), plan_of(plan)
    check_same_question(instance, plan)
    names = [each_part.name for each_part in plan.parts]
    if not names or plan.cost is None:
        raise InstanceError(
            f"{instance.place}: the plan has status {plan.status!r} and builds nothing, needs a"
            " plan with a network"
        )
    if part in plan.couplings.shared_cores:
        raise InstanceError(
            f"--part {part}: a core joins networks and trains nothing, needs one of"
            f" {', '.join(map(repr, names))}"
        )
    if part is not None and part not in names:
        raise InstanceError(
            f"--part {part}: the plan has no such part, needs one of {', '.join(map(repr, names))}"
        )
    parts = [each_part for each_part in plan.parts if part in (None, each_part.name)]
    simulated = [
        workload for each_part in parts for workload in _simulated(instance, plan, each_part, trace)
    ]
    return Simulation(
        instance=InstanceId(name=instance.name, sha256=instance.sha256), workloads=tuple(simulated)
    )


def _simulated(
    instance: Instance, plan: Plan, part: Part, trace: list[TraceRecord] | None
) -> list[SimulatedWorkload]:
    """The workloads of a part."""
    network_plan = claimed_network(part)
    network = network_of(instance, part.name, network_plan)
    question = question_on(instance, network_plan.hb_domain.name)
    waits_s, gpu = plan.couplings.waits_s, at_min_efficiency(question).cluster.gpu
    runs = placed_runs(instance, part)
    return [
        _iteration(part.name, run, gpu, network, waits_s.get(run.workload.name, 0.0), trace)
        for run in runs
    ]


def placed_runs(instance: Instance, part: Part) -> list[ClaimedRun]:
    """The workloads of a part as they run there.

    Raises
    ------
    InstanceError
        When the plan runs others, or one cannot run as the plan says.
    """
    network_plan = claimed_network(part)
    workloads = workloads_of_part(instance, part, network_plan.gpus)
    choice, rooms = network_plan.hb_domain, None
    if isinstance(network_plan, Design) and network_plan.gpus != choice.active * choice.count:
        sizes = {product.name: product.size for product in instance.network.hb_domains}
        rooms = Rooms(choice.count, sizes.get(choice.name, 0))
    return [
        _placed_run(instance, workload, claim, choice.active, rooms)
        for workload, claim in workloads
    ]


def workloads_of_part(
    instance: Instance, part: Part, gpus: int
) -> list[tuple[Workload, WorkloadPlan]]:
    """What trains on a part, as the instance asks for it in its phase and at its site, beside what
    the plan says.

    Raises
    ------
    InstanceError
        When the plan runs other workloads there.
    """
    claimed_names = [claim.name for claim in part.workloads]
    workloads = trained_on(instance, part.phase, claimed_names, gpus)
    if [workload.name for workload in workloads] != claimed_names:
        names = ", ".join(repr(workload.name) for workload in workloads) or "nothing"
        raise InstanceError(
            f"{instance.place}: part {part.name!r} of the plan trains"
            f" {', '.join(map(repr, claimed_names)) or 'nothing'}, but the instance trains {names}"
            " there, needs a plan that `coopt verify` accepts"
        )
    return list(zip(workloads, part.workloads, strict=True))


def _placed_run(
    instance: Instance,
    workload: Workload,
    claim: WorkloadPlan,
    active_gpus: int,
    rooms: Rooms | None,
) -> ClaimedRun:
    fault = mapping_fault(workload, claim.gpus, claim.mapping)
    place = None if fault else placement_of(workload, claim, active_gpus, rooms)
    if place is None:
        reason = (
            fault
            or "Its placement does not fit: its factors have to multiply to the degrees of its"
            f" mapping, and those inside to fill {counted(active_gpus, 'GPU')} of an HB domain."
        )
        raise InstanceError(
            f"{instance.place}: workload {workload.name!r} cannot run as the plan says, needs a"
            f" plan that `coopt verify` accepts. {reason}"
        )
    return ClaimedRun(workload, claim, scalar_mapping(claim.mapping), place)


def _iteration(
    part: str,
    run: ClaimedRun,
    gpu: Gpu,
    network: FabricNetwork | DirectNetwork,
    wait_s: float,
    trace: list[TraceRecord] | None,
) -> SimulatedWorkload:
    """One workload on a network."""
    work = Clock(run.workload, gpu).work(run.split)._replace(wait_s=wait_s)
    is_tied = work.traffic.embedding_bytes > 0 or work.traffic.twin_bytes > 0
    carrier = network.carrier(run.place, run.split, is_tied=is_tied, has_choice=work.links.overlap)
    simulation, record = IterationSimulation(run.workload, gpu, work, run.place, carrier), None
    if trace is not None:
        name, shape = run.workload.name, simulation.shape
        record = TraceRecord(name, shape.stages, shape.chunks, simulation.pass_parts, work.factor)
        trace.append(record)
    runs = simulation.runs(record)
    range_s = min(one.whole_s for one in runs), max(one.whole_s for one in runs)
    bound_s = min(run.workload.bound_s, run.claim.bound_s)  # less where days are bound
    return SimulatedWorkload(
        name=run.workload.name,
        part=part,
        closed_form_s=run.claim.iteration_time_s,
        simulated_s=runs[0].whole_s,
        range_s=range_s,
        bound_s=bound_s,
        met=range_s[1] <= bound_s * (1 + TOLERANCE),
        times=_times(run.claim, runs[0]),
        traffic=_traffic(carrier, two_way=run.place.two_way),
        simulated=network.coverage(run.place),
    )


def _times(claim: WorkloadPlan, parts: SimulatedParts) -> tuple[SpentTime, ...]:
    """The closed form beside the simulation, cause by cause."""
    simulated: Sequence[float] = parts
    return tuple(
        SpentTime(
            cause=cause,
            closed_form_s=sum(claim.breakdown_s.get(key, 0.0) for key in keys),
            simulated_s=seconds,
        )
        for (cause, keys), seconds in zip(CAUSES.items(), simulated, strict=True)
    )


PHASE_KINDS: dict[str, TrafficKind] = {
    "tp": "tp",
    "cp": "cp",
    "ep": "ep",
    "dp": "dp",
    "edp": "edp",
    "forward": "pp",
    "backward": "pp",
    "tied": "embedding",
}


def _traffic(carrier: Carrier, *, two_way: bool) -> tuple[FlowRate, ...]:
    """Every kind of traffic between domains, with all of it under way together; hops one way at a
    time.

    What stages of `two_way` pipelines exchange that are the same is part of what replicas do.
    """
    kinds = PHASE_KINDS | ({"tied": "dp"} if two_way else {})
    if carrier.rates is None:
        return ()
    flow_rates: dict[TrafficKind, FlowRate] = {}
    words = [
        word
        for word in dict.fromkeys(phase.split()[0] for phase in carrier.rates.number)
        if word in kinds
    ]
    for word in words:
        phases = [phase for phase in carrier.rates.number if phase.split()[0] == word]
        kind, slowdown = kinds[word], carrier.nic_byte_s * carrier.s_byte(*phases)
        flows = sum(carrier.rates.flows[phase] for phase in phases)
        rate_so_far = flow_rates.get(kind, FlowRate(kind=kind, flows=0, slowdown=0.0))
        flow_rates[kind] = FlowRate(
            kind=kind, flows=rate_so_far.flows + flows, slowdown=max(rate_so_far.slowdown, slowdown)
        )
    return tuple(flow_rates.values())
