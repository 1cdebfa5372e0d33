"""Check what the loss of a part takes, and that workloads train in time on what is left
(docs/robust.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from coopt.instance.couplings import Losses, Lost
from coopt.instance.hardware import Gpu
from coopt.instance.schema import Instance
from coopt.instance.texts import counted
from coopt.instance.variants import after_a_loss
from coopt.instance.workload import Workload
from coopt.plan.couplings import Survived
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import Plan
from coopt.verifier.checks.claims import island_places
from coopt.verifier.checks.verdict import LENIENT, STRICT, TOLERANCE, Ledger, agree
from coopt.verifier.couplings.fleet import Fleet, FleetIsland
from coopt.verifier.parts.enumeration import Condition
from coopt.verifier.parts.layouts import Ports, ceil_ratio, planes_on_switch
from coopt.verifier.parts.outages import slowdown_without
from coopt.verifier.parts.space import DesignFamily, domain_counts
from coopt.verifier.parts.spans import Reach, reach_of
from coopt.verifier.parts.timings import Trainer
from coopt.verifier.parts.workload_checks import check_mapping, check_run
from coopt.verifier.training.caching import kept
from coopt.verifier.training.mappings import mapping_sizes


def nics_lost(family: DesignFamily, ports: Ports, part: Lost) -> int:
    """How many NICs one domain loses at most with a part (docs/faults.md)."""
    kind, rails = family.network.kind, family.rails
    if part == "nic":
        return family.network.ports_in_plane
    if part == "domain":
        return rails
    if part == "plane":
        return rails // family.planes
    # A rail has a leaf switch of its own in each plane; planes that share a switch of one tier are
    # lost with it.
    if kind == "rail-only":
        return (
            min(family.planes, ports.shared or planes_on_switch(family)) if ports.tiers == 1 else 1
        )
    # All rails meet on the one switch.
    if ports.tiers == 1:
        return rails
    if kind == "rail-optimized":
        return family.leaf_block(ports.down)[0]
    return min(rails, ports.down)


def slowdown(family: DesignFamily, ports: Ports, part: Lost) -> float:
    """How many times as long the traffic of a domain takes after a loss; infinite where no NIC is
    left.
    """
    nics_off, attachment = nics_lost(family, ports, part), family.network
    # of each NIC; a leaf and a plane have one port of each
    ports_off = attachment.nic_planes if part == "nic" else 1
    of_gpu = None
    if part == "leaf" and family.takes_turns(ports.down):
        of_gpu = ceil_ratio(attachment.per_gpu, family.rails // family.leaf_block(ports.down)[0])
    return slowdown_without(family, nics_off, ports_off, of_gpu)


def loss_condition(
    question: Instance, margin: float = STRICT, losses: Losses | None = None
) -> Condition:
    """The condition that a design meets the longer bounds of a question without intervals after
    every loss, or after each of some.

    Bounds are taken short by a share, as `Trainer` does.
    """
    losses = question.losses if losses is None else losses
    parts = {part: factor for part, factor in losses.items() if part != "domain"}
    trainers = {
        factor: Trainer(after_a_loss(question, factor), margin) for factor in set(parts.values())
    }
    # A lost domain takes GPUs along, so that jobs start again elsewhere; other parts only make
    # traffic slower.
    restart = (
        Restart(after_a_loss(question, losses["domain"]), margin) if "domain" in losses else None
    )

    def stands(family: DesignFamily, ports: Ports) -> bool:
        without_parts = all(
            _trains_without(trainers[factor], family, ports, part) for part, factor in parts.items()
        )
        return without_parts and (restart is None or restart.stands(family, ports))

    return stands


def _trains_without(trainer: Trainer, family: DesignFamily, ports: Ports, part: Lost) -> bool:
    """Whether a design trains in time with NICs as slow as the loss makes them; a single domain has
    no NICs to lose.
    """
    if family.attachment is None:
        return True
    # traffic that takes so many times as long is that of NICs of so much less rate
    slower = slowdown(family, ports, part)
    return math.isfinite(slower) and trainer.trains(family.slowed(slower), reach_of(family, ports))


def check_losses(
    ledger: Ledger,
    question: Instance,
    claims: tuple[Survived, ...],
    family: DesignFamily,
    ports: Ports,
) -> None:
    """Check what each loss takes, and that the design stands it; how workloads run without a domain
    is in the plan.
    """
    losses = question.losses
    parts = losses if family.attachment else {}
    claimed_texts = tuple(
        f"{claim.part}: {counted(claim.nics_lost, 'NIC')}, bounds times {claim.slower:.12g}"
        for claim in claims
    )
    expected_texts = tuple(
        f"{part}: {counted(nics_lost(family, ports, part), 'NIC')}, bounds times {factor:.12g}"
        for part, factor in parts.items()
    )
    holds = claimed_texts == expected_texts and all(
        _slowed_alike(claim, family, ports) for claim in claims
    )
    ledger.holds(
        "losses",
        holds,
        claimed_texts,
        expected_texts,
        "The plan misstates what may be lost, or the NICs, slowdown, bounds or workloads"
        " of a loss.",
        TOLERANCE,
    )
    without_domain: Losses = {part: factor for part, factor in losses.items() if part != "domain"}
    # A single domain survives the loss of no domain, and has no network to lose parts of.
    outlives = family.attachment is not None or without_domain == losses
    stands = outlives and loss_condition(question, LENIENT, without_domain)(family, ports)
    fault = (
        "After a loss, the design misses the bounds that then apply."
        if outlives
        else "The loss of the only HB domain leaves nothing to train on."
    )
    ledger.holds("survives", stands, True, stands, fault)
    for claim in claims:
        if claim.part == "domain":
            check_restart(
                ledger, after_a_loss(question, losses["domain"]), family, ports, claim.workloads
            )


def check_survival(
    ledger: Ledger, fleet: Fleet, plan: Plan, islands: Sequence[FleetIsland]
) -> None:
    """Check what each loss does to every part on which a workload trains."""
    if not fleet.question.losses:
        return  # a plan that tells of losses has a section that is not asked for
    training = [
        (island, t, workloads)
        for island in islands
        for t in fleet.phases
        if (workloads := fleet.workloads_in(t, island.name))
    ]
    names = {(island, year): name for island, year, name in island_places(fleet.question)}
    expected_names = tuple(names[island.name, fleet.year(t)] for island, t, _ in training)
    claimed_names = tuple(claim.part for claim in plan.couplings.losses)
    expected_text, claimed_text = (
        "; ".join(parts) or "no part" for parts in (expected_names, claimed_names)
    )
    if not ledger.same(
        "part-losses",
        claimed_names,
        expected_names,
        f"Losses have to be stated for these parts: {expected_text}. The plan states them for:"
        f" {claimed_text}.",
    ):
        return
    for (island, t, workloads), claim in zip(training, plan.couplings.losses, strict=True):
        ledger.turn_to(part=claim.part)
        state = island.phases[t]
        assert state is not None
        question = fleet.questions[t].model_copy(update={"workload": workloads})
        check_losses(
            ledger, question, claim.survived, state.stage.family, state.stage.with_up(state.uplinks)
        )
    ledger.turn_to()


def _slowed_alike(claim: Survived, family: DesignFamily, ports: Ports) -> bool:
    """Whether a claim gives the right slowdown; one on a lost domain gives workloads instead."""
    if claim.part == "domain":
        return claim.slowdown is None
    factor = slowdown(family, ports, claim.part)
    return agree(claim.slowdown, factor) and not claim.workloads


def reach_of_job(family: DesignFamily, ports: Ports, job: DesignFamily) -> Reach:
    """What the ports of a design mean for a job that does without one domain."""
    reach, spare = reach_of(family, ports), family.domains - job.domains
    # A full leaf or pod has room for the job even with one of its domains lost; a span larger than
    # the job says so.
    beyond_job = job.domains + 1
    leaf, pod = (
        beyond_job if span >= family.domains else span for span in (reach.leaf_span, reach.pod_span)
    )
    return reach._replace(domains=job.domains, leaf_span=leaf, pod_span=pod, spare=spare)


def jobs_without_domain(workload: Workload, family: DesignFamily) -> Iterator[DesignFamily]:
    """Every job that fits on the domains left when one is lost, with no more GPUs than before; the
    largest first.
    """
    domains_left = family.domains - 1
    for gpus in mapping_sizes(workload, min(family.gpus, domains_left * family.hb.size)):
        for domains in domain_counts(gpus, family.hb.size):
            # Idle GPUs of the domains that are left may stand in for lost ones.
            if domains <= domains_left:
                yield family._replace(gpus=gpus, domains=domains)


class Restart:
    """Whether designs train every workload in time without a domain; `longer` has the bounds that
    hold then.
    """

    def __init__(self, longer: Instance, margin: float) -> None:
        self._workloads, self._trainer = longer.workload, Trainer(longer, margin)

    @kept(lambda self, family, ports: _of_jobs(family, ports))
    def stands(self, family: DesignFamily, ports: Ports) -> bool:
        """Whether each workload finds some job that is left on a design."""
        return all(
            any(
                self._trainer.runs(job, reach_of_job(family, ports, job), index)
                for job in jobs_without_domain(workload, family)
            )
            for index, workload in enumerate(self._workloads)
        )


def _of_jobs(family: DesignFamily, ports: Ports) -> tuple[object, ...]:
    """What jobs depend on: designs that differ in price alone run them alike."""
    rate, hb = family.nic_byte_s if family.attachment else 0.0, family.hb
    return family.gpus, family.domains, hb.size, hb.rates, rate, reach_of(family, ports)


def check_restart(
    ledger: Ledger,
    longer: Instance,
    family: DesignFamily,
    ports: Ports,
    claims: tuple[WorkloadPlan, ...],
) -> None:
    """Check how the workloads of a plan run without a domain."""
    claimed_names = tuple(claim.name for claim in claims)
    names = tuple(workload.name for workload in longer.workload)
    if not ledger.same(
        "restarted",
        claimed_names,
        names,
        f"After the loss of a domain, {', '.join(names)} must train, but the plan trains"
        f" {', '.join(claimed_names) or 'none'}.",
    ):
        return
    for workload, claim in zip(longer.workload, claims, strict=True):
        ledger.turn_to("After the loss of a domain", aside=True)
        _check_job(ledger, workload, claim, family, ports, longer.cluster.gpu)
        ledger.turn_to()


def _check_job(
    ledger: Ledger,
    workload: Workload,
    claim: WorkloadPlan,
    family: DesignFamily,
    ports: Ports,
    gpu: Gpu,
) -> None:
    """Check one workload: its place on the domains that are left, then its mapping there and its
    time.
    """
    active_gpus = math.prod(inside for name, (inside, _) in claim.placement.items() if name != "ep")
    domains, odd_gpus = divmod(claim.gpus, max(active_gpus, 1))
    evenly = (
        claim.gpus > 0 and not odd_gpus and domains in domain_counts(claim.gpus, family.hb.size)
    )
    fits = evenly and claim.gpus <= family.gpus and domains < family.domains
    text = f"{counted(claim.gpus, 'GPU')}, {active_gpus} in each domain"
    need = (
        f"at most {counted(family.gpus, 'GPU')} on at most"
        f" {counted(family.domains - 1, 'domain')} of {counted(family.hb.size, 'GPU')}"
    )
    if ledger.holds(
        "place-left",
        fits,
        text,
        need,
        f"After the loss of a domain, workload {workload.name!r} trains on {text}, but may use"
        f" {need}. Every domain in use has to train on the same number of its GPUs, more than half"
        " of them where several domains are in use.",
    ):
        job = family._replace(gpus=claim.gpus, domains=domains)
        run = check_mapping(ledger, workload, claim, job)
        if run is not None:
            check_run(ledger, run, job, reach_of_job(family, ports, job), gpu)
