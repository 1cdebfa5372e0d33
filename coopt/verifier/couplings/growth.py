"""Check that one network stands in every phase, that its uplinks never fall, and that all workloads run on it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

from coopt.instance.couplings import Limits
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.variants import phases_of
from coopt.plan.couplings import phase_name
from coopt.plan.schema import Design, Plan
from coopt.plan.schema_one import PhasePlan
from coopt.verifier.checks.claims import Place
from coopt.verifier.checks.verdict import LENIENT, STRICT, Ledger
from coopt.verifier.couplings.stages import (
    GrowthStage,
    design_of_stage,
    earlier_stage,
    graph_of_stage,
    last_stages,
    moves_leaves,
    same_design,
)
from coopt.verifier.parts.bills import bill, bill_total, within_limits
from coopt.verifier.parts.design_checks import check_gear
from coopt.verifier.parts.network_checks import check_network
from coopt.verifier.parts.optics import optics_choices
from coopt.verifier.parts.space import families
from coopt.verifier.parts.timings import Trainer
from coopt.verifier.parts.workload_checks import check_mappings, check_run, match_workloads

GrowthPath = tuple[GrowthStage, ...]  # one network, phase by phase


def phase_places(instance: Instance, plan: Plan) -> Iterator[Place]:
    """The parts of a plan of one network that grows."""
    return (Place(phase_name(phase.year), phase=phase.year) for phase in instance.phase)


def growth_paths(instance: Instance, kind: ObjectiveKind) -> Iterator[GrowthPath]:
    """Every network that can grow through all phases."""
    counts = [phase.gpus for phase in instance.phase]
    for family in families(instance):
        if any(gpus % family.active for gpus in counts):
            continue
        for whole in last_stages(instance.network, family, partial(optics_choices, instance, kind, family)):
            if not moves_leaves(whole, counts):
                yield tuple(earlier_stage(whole, gpus, instance.network.largest_ratio) for gpus in counts)


class Growths:
    """All networks of an instance as they grow, and which uplinks serve its phases; nothing is computed twice."""

    def __init__(self, instance: Instance, kind: ObjectiveKind) -> None:
        self.instance, self.kind = instance, kind
        self.questions = [*phases_of(instance)]
        self._trainers = {
            margin: [Trainer(question, margin) for question in self.questions] for margin in (STRICT, LENIENT)
        }

    @cached_property
    def paths(self) -> tuple[GrowthPath, ...]:
        """Every network that can grow through all phases."""
        return tuple(growth_paths(self.instance, self.kind))

    def serving(self, stage: GrowthStage, t: int, margin: float, within: Sequence[int]) -> Sequence[int]:
        """Which of some uplinks, ascending, let a stage meet the bounds of a phase, taken short by a share."""

        def trains(uplinks: int) -> bool:
            return self._trainers[margin][t].trains(stage.family, stage.reach(uplinks))

        if not within or not trains(within[-1]):
            return ()  # the most uplinks are the fastest
        return within[bisect_left(within, True, key=trains) :]

    def may_serve(self, stage: GrowthStage, t: int, uplinks: int) -> bool:
        """Whether a stage meets bounds and limits of a phase, with rounding in its favour."""
        in_limits = uplinks in self.within(stage, t, LENIENT)
        return in_limits and self._trainers[LENIENT][t].trains(stage.family, stage.reach(uplinks))

    def within(self, stage: GrowthStage, t: int, margin: float = STRICT) -> Sequence[int]:
        """Uplinks that keep the limits, which no further uplink mends."""
        question = self.questions[t]
        if question.limits == Limits():
            return stage.uplinks

        def over(uplinks: int) -> bool:
            lines = bill(question, stage.family, stage.levels(uplinks), stage.optics)
            return not within_limits(question, stage.family, bill_total(lines, question.objective), margin)

        return stage.uplinks[: bisect_left(stage.uplinks, True, key=over)]


@lru_cache(maxsize=1)
def growths_of(instance: Instance, kind: ObjectiveKind) -> Growths:
    """The networks of an instance, kept for what else is checked of its plans."""
    return Growths(instance, kind)


class GrownNetwork(NamedTuple):
    """The network of a plan as it grows, and the uplinks of its phases."""

    path: GrowthPath
    uplinks: tuple[int, ...]


def check_growth(ledger: Ledger, growths: Growths, plan: Plan) -> GrownNetwork | None:
    """Check that the phases are those of the instance and of one network; None where they are not."""
    instance = growths.instance
    years = tuple(f"{phase.year!r}" for phase in instance.phase)
    claimed_years = tuple(f"{phase.year!r}" for phase in plan.phases)
    fault = f"The instance has phases {', '.join(years)}, the plan {claimed_years}."
    if not ledger.same("phases", claimed_years, years, fault):
        return None
    designs = [phase.design for phase in plan.phases]
    network = next(
        (
            GrownNetwork(path, uplinks)
            for path in growths.paths
            if (uplinks := uplinks_of_growth(instance, path, designs)) is not None
        ),
        None,
    )
    fault = "No single network of docs/phased.md stands in every phase as the plan says, with uplinks that never fall."
    ledger.holds("growth", network is not None, claimed_years, years if network else "no such network", fault)
    return network


def uplinks_of_growth(instance: Instance, path: GrowthPath, designs: list[Design]) -> tuple[int, ...] | None:
    """The uplinks with which a network has these designs in its first phases; None where it has not."""
    uplinks_so_far: list[int] = []
    for stage, design in zip(path, designs, strict=False):
        tiers = design.fabric.tier
        uplinks = tiers[0].uplinks_per_switch if len(tiers) > 1 else 0
        if not is_drawn(instance, stage, uplinks, design) or (uplinks_so_far and uplinks < uplinks_so_far[-1]):
            return None
        uplinks_so_far.append(uplinks)
    return tuple(uplinks_so_far)


def is_drawn(instance: Instance, stage: GrowthStage, uplinks: int, design: Design) -> bool:
    """Whether a design is the one that a stage with so many uplinks is written out as."""
    choice = design.hb_domain
    if (choice.name, choice.active) != (stage.family.hb.name, stage.family.active) or uplinks not in stage.uplinks:
        return False
    return same_design(design, design_of_stage(instance, stage, uplinks, design))


def check_phases(ledger: Ledger, growths: Growths, plan: Plan, grown: GrownNetwork) -> None:
    """Check the parts, the graph and the workloads of every phase."""
    for t, phase in enumerate(plan.phases):
        ledger.turn_to(f"Phase {phase.year:g}")
        _check_phase(ledger, growths.questions[t], phase, grown.path[t], grown.uplinks[t], t + 1 == len(grown.path))
    ledger.turn_to()


def _check_phase(
    ledger: Ledger, question: Instance, phase: PhasePlan, stage: GrowthStage, uplinks: int, is_last: bool
) -> None:
    check_gear(ledger, question, phase.design)
    pairs = match_workloads(ledger, question.workload, phase.workloads)
    runs = check_mappings(ledger, pairs, stage.family)
    ports, fabric = stage.with_up(uplinks), phase.design.fabric
    # One tier keeps switches and ports for all domains to come, which an early phase of its own would not have.
    if stage.ports.tiers != 1 or is_last:
        wiring = graph_of_stage(stage, uplinks) if stage.ports.tiers > 1 else None
        check_network(ledger, stage.family, ports, fabric, runs, wiring)
    for run in runs:
        check_run(ledger, run, stage.family, stage.reach(uplinks), question.cluster.gpu)
