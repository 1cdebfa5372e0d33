"""A cluster that grows: what each phase has to train, with how many GPUs, and at which prices it is bought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from coopt.instance.base import Count, Name, Part, Positive, Price, one_or_many

if TYPE_CHECKING:
    from coopt.instance.schema import Instance
    from coopt.instance.workload import Workload

Factor = Annotated[float, Field(ge=0, le=1000)]
BOUND_KEYS = ("max_iteration_time_s", "min_tokens_per_s", "train_days", "train_tokens")


class PhaseWorkload(Part):
    """A workload of `[[workload]]` that trains in a phase; a bound given here takes the place of its own."""

    name: Annotated[Name, Field(description="name of the workload")]
    max_iteration_time_s: Annotated[Positive | None, Field(description="bound: time of one iteration (s)")] = None
    min_tokens_per_s: Annotated[Positive | None, Field(description="bound: pace of the training (tokens/s)")] = None
    train_days: Annotated[Positive | None, Field(description="bound: time to train `train_tokens` (days)")] = None
    train_tokens: Annotated[Positive | None, Field(description="tokens of the whole training run")] = None

    @property
    def bound(self) -> dict[str, float]:
        """The keys of the bound given here; empty where the workload keeps its own."""
        return {key: value for key in BOUND_KEYS if (value := getattr(self, key)) is not None}


class PriceFactors(Part):
    """What a phase pays over the prices of the instance, by the kind of the bill; 1 is the same price."""

    hb: Annotated[Factor, Field(description="HB domains with their idle GPUs")] = 1.0
    nic: Annotated[Factor, Field(description="NICs")] = 1.0
    switch: Annotated[Factor, Field(description="switches")] = 1.0
    optics: Annotated[Factor, Field(description="optics")] = 1.0
    gpu: Annotated[Factor, Field(description="GPUs that train")] = 1.0
    energy: Annotated[Factor, Field(description="electricity, from this phase to the next")] = 1.0


def _named(value: Any) -> Any:
    """A workload may be given by its name alone."""
    return {"name": value} if isinstance(value, str) else value


Named = Annotated[PhaseWorkload, BeforeValidator(_named, json_schema_input_type=str | PhaseWorkload)]


class Phase(Part):
    """A step of growth: what is there from `year` on, until the next phase."""

    year: Annotated[float, Field(ge=0, le=10_000, description="when it begins, such as 2027 or 1.5")]
    gpus: Annotated[Count, Field(description="GPUs that train, those of earlier phases included")]
    workloads: Annotated[
        tuple[Named, ...],
        one_or_many,
        Field(description="workloads that train, by name or with a bound of their own; left out: all"),
    ] = ()
    price: Annotated[PriceFactors, Field(description="prices of this phase over those of the instance")] = (
        PriceFactors()
    )
    retrofit_usd_per_link: Annotated[
        Price, Field(description="labour for an uplink added to a switch that stood before (USD)")
    ] = 0.0


def of_phase(instance: Instance, number: int) -> Instance:
    """The question of one phase alone, at the prices of the instance: its GPUs, its workloads with their bounds."""
    phase = instance.phase[number]
    cluster = instance.cluster.model_copy(update={"gpus": (phase.gpus,)})
    return instance.model_copy(update={"cluster": cluster, "workload": workloads_of(instance, phase), "phase": ()})


def workloads_of(instance: Instance, phase: Phase) -> tuple[Workload, ...]:
    """The workloads of a phase, in its order, with the bounds they have there."""
    if not phase.workloads:
        return instance.workload
    known = {workload.name: workload for workload in instance.workload}
    return tuple(_bounded(known[chosen.name], chosen.bound) for chosen in phase.workloads)


def _bounded(workload: Workload, bound: dict[str, float]) -> Workload:
    """A workload with another bound, checked anew."""
    if not bound:
        return workload
    return type(workload).model_validate(dict(workload) | dict.fromkeys(BOUND_KEYS) | bound)


def years_of(instance: Instance, number: int) -> float:
    """How long the network of a phase runs: until the next one, the last one for `objective.years`."""
    if number + 1 == len(instance.phase):
        return instance.objective.years
    return instance.phase[number + 1].year - instance.phase[number].year


def phase_disagreements(instance: Instance) -> Iterator[str]:
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


def _named_workloads(instance: Instance) -> Iterator[str]:
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


def _idle_workloads(instance: Instance) -> Iterator[str]:
    """Workloads with an island of their own that train in no phase."""
    if instance.sharing.mode == "partition" and all(phase.workloads for phase in instance.phase):
        asked = {chosen.name for phase in instance.phase for chosen in phase.workloads}
        for workload in instance.workload:
            if workload.name not in asked:
                yield f"workload {workload.name!r}: trains in no phase, needs to be in some phase's workloads"


def _bound_fault(instance: Instance, chosen: PhaseWorkload, where: str) -> Iterator[str]:
    workload = next(workload for workload in instance.workload if workload.name == chosen.name)
    try:
        _bounded(workload, chosen.bound)
    except ValueError as error:
        for item in error.errors():  # type: ignore[attr-defined]
            yield f"{where}: {item['ctx']['error']}"


def _not_phased(instance: Instance) -> Iterator[str]:
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
