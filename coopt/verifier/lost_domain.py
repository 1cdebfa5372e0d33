"""What is left after the loss of an HB domain, and whether workloads train on it in time (docs/robust.md)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from coopt.instance.hardware import Gpu
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.plan.schema import WorkloadPlan
from coopt.verifier.layouts import Ports
from coopt.verifier.ledger import Ledger
from coopt.verifier.mappings import sizes
from coopt.verifier.space import Family, active_counts
from coopt.verifier.spans import Reach, reach_of
from coopt.verifier.trainer import Trainer
from coopt.verifier.workload_checks import check_mapping, check_run


def job_on(family: Family, gpus: int, active: int) -> Family:
    """A job on some GPUs of a design, as a family of its own: the network stays."""
    return family._replace(gpus=gpus, active=active)


def reach_left(family: Family, ports: Ports, job: Family) -> Reach:
    """What the ports of a design mean for a job that does without one domain."""
    whole, spare = reach_of(family, ports), family.domains - job.domains
    far = job.domains + 1
    leaf, pod = (far if span >= family.domains else span for span in (whole.leaf_span, whole.pod_span))
    return whole._replace(domains=job.domains, leaf_span=leaf, pod_span=pod, spare=spare)


def jobs_left(workload: Workload, family: Family) -> Iterator[Family]:
    """Every job that fits on the domains left when one is lost, with no more GPUs than before; the largest first."""
    left = family.domains - 1
    for gpus in sizes(workload, min(family.gpus, left * family.hb.size)):
        for active in active_counts(gpus, family.hb.size):
            if gpus // active <= left:
                yield job_on(family, gpus, active)


class Restart:
    """Whether designs train every workload in time without a domain; `longer` has the bounds that hold then."""

    def __init__(self, longer: Instance) -> None:
        self._workloads, self._trainer = longer.workload, Trainer(longer)
        self._answers: dict[object, bool] = {}

    def stands(self, family: Family, ports: Ports) -> bool:
        """Whether each workload finds some job that is left on a design."""
        rate = family.nic_byte_s if family.gear else 0.0
        key = (family.gpus, family.active, family.hb.size, family.hb.gbyte_s, rate, reach_of(family, ports))
        if key not in self._answers:
            count = range(len(self._workloads))
            self._answers[key] = all(self._runs_somewhere(family, ports, index) for index in count)
        return self._answers[key]

    def _runs_somewhere(self, family: Family, ports: Ports, index: int) -> bool:
        jobs = jobs_left(self._workloads[index], family)
        return any(self._trainer.runs(job, reach_left(family, ports, job), index) for job in jobs)


def check_restart(
    ledger: Ledger, longer: Instance, family: Family, ports: Ports, claims: tuple[WorkloadPlan, ...]
) -> None:
    """Check how the workloads of a plan run without a domain."""
    claimed = tuple(claim.name for claim in claims)
    wanted = tuple(workload.name for workload in longer.workload)
    why = f"Without a domain {', '.join(wanted)} have to run, the plan runs {', '.join(claimed) or 'none'}."
    if not ledger.same("restarted", claimed, wanted, why):
        return
    for workload, claim in zip(longer.workload, claims, strict=True):
        ledger.subject = "Without a domain: "
        _check_job(ledger, workload, claim, family, ports, longer.cluster.gpu)
        ledger.subject = ""


def _check_job(ledger: Ledger, workload: Workload, claim: WorkloadPlan, family: Family, ports: Ports, gpu: Gpu) -> None:
    """Check one workload: its place on the domains that are left, then its mapping there and its time."""
    active = math.prod(inside for name, (inside, _) in claim.placement.items() if name != "ep")
    allowed = active_counts(claim.gpus, family.hb.size) if claim.gpus > 0 else []
    fits = active in allowed and claim.gpus <= family.gpus and claim.gpus // active < family.domains
    found = f"{claim.gpus} GPUs, {active} in each domain"
    need = f"at most {family.gpus} GPUs on at most {family.domains - 1} domains of {family.hb.size}"
    why = f"Workload {workload.name!r} runs on {found}, and has {need}, evenly and more than half of each used."
    if ledger.holds("place-left", fits, found, need, why):
        job = job_on(family, claim.gpus, active)
        run = check_mapping(ledger, workload, claim, job)
        if run is not None:
            check_run(ledger, run, job, reach_left(family, ports, job), gpu)
