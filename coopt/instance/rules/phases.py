"""What phases must agree on, with each other and with the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from coopt.instance.phases import PhaseWorkload
from coopt.instance.question import Question
from coopt.instance.variants import bounded


def phase_disagreements(instance: Question) -> Iterator[str]:
    """Sentences about phases that do not go together, or with the rest of the instance."""
    phases = instance.phase
    if not phases:
        return
    if len(phases) == 1:
        yield "phase: there is one phase, needs two or more (or no [[phase]] at all)"
    for number, (before, after) in enumerate(pairwise(phases), start=1):
        if after.year <= before.year:
            yield f"phase[{number}].year = {after.year:g}: needs a year after {before.year:g}, that of the phase before"
        if after.gpus < before.gpus:
            yield (
                f"phase[{number}].gpus = {after.gpus}: needs at least {before.gpus}, those of the phase before "
                "(nothing is thrown away)"
            )
    yield from _named_workloads(instance)
    yield from _idle_workloads(instance)
    yield from _not_phased(instance)


def _named_workloads(instance: Question) -> Iterator[str]:
    known = [workload.name for workload in instance.workload]
    for number, phase in enumerate(instance.phase):
        names = Counter(chosen.name for chosen in phase.workloads)
        for place, chosen in enumerate(phase.workloads):
            where = f"phase[{number}].workloads[{place}]"
            if chosen.name not in known:
                yield f"{where}: no [[workload]] is named {chosen.name!r}, needs one of {', '.join(known)}"
            elif names[chosen.name] > 1:
                yield f"{where}: name {chosen.name!r} appears twice, needs each workload once"
            else:
                yield from _bound_fault(instance, chosen, where)


def _idle_workloads(instance: Question) -> Iterator[str]:
    """Workloads with an island of their own that train in no phase."""
    if instance.sharing.mode == "partition" and all(phase.workloads for phase in instance.phase):
        asked = {chosen.name for phase in instance.phase for chosen in phase.workloads}
        for workload in instance.workload:
            if workload.name not in asked:
                yield f"workload {workload.name!r}: trains in no phase, needs to be in some phase's workloads"


def _bound_fault(instance: Question, chosen: PhaseWorkload, where: str) -> Iterator[str]:
    workload = next(workload for workload in instance.workload if workload.name == chosen.name)
    try:
        bounded(workload, chosen.bound)
    except ValueError as error:
        for item in error.errors():  # type: ignore[attr-defined]
            yield f"{where}: {item['ctx']['error']}"


def _not_phased(instance: Question) -> Iterator[str]:
    """What an instance with phases cannot ask for."""
    last = instance.phase[-1].gpus
    if instance.cluster.gpus != (last,):
        listed = ", ".join(map(str, instance.cluster.gpus))
        yield f"cluster.gpus = {listed}: needs {last}, the GPUs of the last phase"
    if instance.network.ratios is not None:
        yield "network.oversubscription: a list of ratios does not go with [[phase]], needs one largest ratio"
    if instance.limits.capex_usd is not None:
        yield "limits.capex_usd: does not go with [[phase]], needs power_mw or racks, which hold in each phase"
    if instance.objective.minimize == "power":
        yield "objective.minimize = 'power': phases ask what to buy when, needs 'capex' or 'tco'"
    if instance.solver.top != 1:
        yield f"solver.top = {instance.solver.top}: there are no runners-up of phases, needs 1"
