"""Go through all designs of an instance: which is the cheapest that trains every workload in time?

Cost rises with the uplinks of a leaf and time falls with them, the rest of the ports being equal.
So of all designs of a chain that are cheap enough, the one with the most uplinks is the fastest: if
it is too slow, all of them are.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from coopt.instance.couplings import Limits
from coopt.instance.hardware import Optic
from coopt.instance.question import ObjectiveKind
from coopt.instance.reserves import Availability
from coopt.instance.schema import Instance
from coopt.verifier.checks.verdict import ROUNDING, STRICT
from coopt.verifier.parts.bills import (
    BillTotal,
    CountedItem,
    SwitchLevel,
    bill,
    bill_total,
    exact_worth,
    within_limits,
)
from coopt.verifier.parts.halls import CoreEnds, laid_each, laid_stages
from coopt.verifier.parts.layouts import Ports
from coopt.verifier.parts.optics import least_choices, optics_choices
from coopt.verifier.parts.outages import ALL_PORTS, outages_of
from coopt.verifier.parts.space import DesignFamily, OpticPair, families, spare_choices
from coopt.verifier.parts.spans import Reach
from coopt.verifier.parts.stages import GrowthStage, chain_groups, last_stage, standing_by
from coopt.verifier.parts.standing import standing_network
from coopt.verifier.parts.timings import Trainer
from coopt.verifier.parts.uptime import interrupted, lost_of, running_share, uptime_of

NEAR = 1e-9
"""Sums of floats that differ by a larger share do so as fractions: they are off by far less."""
SLACK = Fraction(ROUNDING)
"""By which share a rival has to be cheaper than a bound, a float whose last digits are rounded, and
may be over a limit by the rounding of its sums alone.
"""
# where domains enough are whole for so much of the time, further spares change nothing
SURELY = 1 - 1e-12


def fewest_spares(
    availability: Availability,
    trainer: Trainer,
    network: DesignFamily,
    reach: Reach,
    levels: Sequence[SwitchLevel],
) -> int | None:
    """The fewest spare domains with which all workloads are in time on a network; None where no
    number does.
    """
    needed_share, outages, trained_shares = 0.0, outages_of(availability, network, levels), []
    for index, workload in enumerate(trainer.workloads):
        out = outages if workload.calendar else ALL_PORTS
        share = trainer.least_s(network, reach, index, outages=out) / trainer.bound_s(index)
        # late even if nothing ever failed
        if share > 1.0:
            return None
        if workload.calendar:
            trained = interrupted(availability, workload, network, levels).trained
            needed_share = max(needed_share, share / trained if trained else math.inf)
            trained_shares.append(trained)
    if needed_share <= 1.0:
        in_turn = trainer.share_in_turn(network, reach, trained_shares, outages=outages)
        needed_share = max(needed_share, in_turn)
    lost_share = lost_of(availability, network)
    spare_counts = spare_choices(availability, network.spares)
    # on average the time with domains enough grows with spares; what is promised may ask for some
    # more
    start = bisect_left(
        spare_counts,
        True,
        key=lambda spares: running_share(lost_share, network.domains, spares) >= needed_share,
    )
    for spares in spare_counts[start:] if needed_share <= 1.0 else ():
        family = network._replace(spares=spares)
        running = running_share(lost_share, family.domains, spares)
        if availability.confidence is None or all(
            trainer.least_s(family, reach, index, outages=outages)
            <= trainer.bound_s(index) * uptime_of(availability, workload, family, levels).promised
            for index, workload in enumerate(trainer.workloads)
            if workload.calendar
        ):
            return spares
        if running >= SURELY:
            return None
    return None


class FoundDesign(NamedTuple):
    """A feasible design, with its value in the unit of the objective."""

    value: float | Fraction
    family: DesignFamily
    ports: Ports
    optics: tuple[OpticPair, ...]


Condition = Callable[[DesignFamily, Ports], bool]


def no_condition(family: DesignFamily, ports: Ports) -> bool:
    """The condition that every design meets."""
    return True


DesignValue = Callable[[GrowthStage, int], Fraction]
"""What the design of a network with so many uplinks is worth."""


class ChainBills(NamedTuple):
    """The bills of the designs of a chain, by uplinks; `value` says what they are worth where that
    is not the objective.
    """

    instance: Instance
    kind: ObjectiveKind
    row: GrowthStage
    value: DesignValue | None = None

    def worth(self, up: int) -> Fraction:
        """What a design is worth, in fractions."""
        if self.value is not None:
            return self.value(self.row, up)
        return exact_worth(self.instance, self._lines(up), self.kind)

    def reaches(self, up: int, limit: Fraction) -> bool:
        """Whether a design is worth as much as a limit; fractions decide where sums of floats are
        near it.
        """
        if self.value is None:
            rough, near = self._total(up).of(self.kind), float(limit)
            if abs(rough - near) > NEAR * near:
                return rough > near
        return self.worth(up) >= limit

    def breaks_limits(self, up: int, margin: float) -> bool:
        """Whether a design is over a limit."""
        return not within_limits(self.instance, self.row.family, self._total(up), margin)

    def below(self, limit: Fraction | None) -> Sequence[int]:
        """The uplinks with which a design is worth less."""
        ups = self.row.uplinks
        if limit is None:
            return ups
        return ups[: number_below(ups, True, lambda up: self.reaches(up, limit))]

    def admitted(self, limit: Fraction | None, margin: float) -> tuple[Sequence[int], int]:
        """The uplinks with which a design is worth less and within the limits, and how many are
        worth less: none that follows is.
        """
        ups, cheap = self.row.uplinks, len(self.below(limit))
        if self.instance.limits == Limits():
            return ups[:cheap], cheap
        over = number_below(ups[:cheap], True, lambda up: self.breaks_limits(up, margin))
        return ups[:over], cheap

    def found(self, up: int) -> FoundDesign:
        """The design with so many uplinks."""
        return FoundDesign(self.worth(up), self.row.family, self.row.with_up(up), self.row.optics)

    def _total(self, up: int) -> BillTotal:
        return bill_total(self._lines(up), self.instance.objective)

    def _lines(self, up: int) -> list[CountedItem]:
        return bill(self.instance, self.row.family, self.row.levels(up), self.row.optics)


def cheapest_design(
    instance: Instance,
    kind: ObjectiveKind,
    ceiling: float,
    stands: Condition = no_condition,
    margin: float = STRICT,
    value: DesignValue | None = None,
) -> tuple[FoundDesign | None, Counter[str]]:
    """The cheapest feasible design worth less than a ceiling by more than its rounding, and why the
    others are not.

    Parameters
    ----------
    ceiling
        In the unit of the objective; infinite to ask for any feasible design.
    stands
        What else a design has to do; with more uplinks it does no less.
    margin
        By which share bounds of time and memory are taken short; negative to put rounding in favour
        of designs.
    value
        What a design is worth, no less with more uplinks; its objective where left out.
    """
    trainer, reasons, design = Trainer(instance, margin), Counter[str](), None
    limit = exact_limit(ceiling)
    after = "" if stands is no_condition else ", at least after a loss,"

    def answers(row: GrowthStage) -> Sequence[int]:
        ups = row.uplinks
        if value is None:
            ups = ChainBills(instance, kind, row).below(limit)
        return fast_enough(trainer, row, ups, stands)

    for row in design_chains(instance, kind, answers=answers):
        bills = ChainBills(instance, kind, row, value)
        # price and power rise with uplinks and time falls: those too dear come last, those too slow
        # first
        ups, cheap = bills.admitted(limit, margin)
        fast = fast_enough(trainer, row, ups, stands)
        reasons["designs not below the proven bound"] += len(row.uplinks) - cheap
        reasons["designs over a limit"] += cheap - len(ups)
        reasons[f"designs too slow{after} or short of memory"] += len(ups) - len(fast)
        reasons["designs that may be feasible"] += len(fast)
        if fast:
            design = bills.found(fast[0])
            limit = Fraction(design.value)
    # without the reasons that no design has
    return design, +reasons


def exact_limit(ceiling: float) -> Fraction | None:
    """What a design has to be worth less than, below the rounding of a ceiling."""
    return Fraction(ceiling) * (1 - SLACK) if math.isfinite(ceiling) else None


def designs_below(
    instance: Instance,
    kind: ObjectiveKind,
    bound: float,
    stands: Condition = no_condition,
    margin: float = STRICT,
) -> Iterator[FoundDesign]:
    """Every feasible design worth less than `bound`, with its interruptions where there are any, in
    no particular order; all feasible ones where it is infinite.
    """
    trainer, limit = Trainer(instance, margin), exact_limit(bound)

    def spared(row: GrowthStage, ups: Sequence[int]) -> Iterator[tuple[int, GrowthStage]]:
        return serving(trainer, row, ups, stands, instance.availability)

    def answers(row: GrowthStage) -> Sequence[int]:
        return [up for up, _ in spared(row, ChainBills(instance, kind, row).below(limit))]

    for row in design_chains(instance, kind, answers=answers):
        ups, _ = ChainBills(instance, kind, row).admitted(limit, margin)
        for up, network in spared(row, ups):
            bills = ChainBills(instance, kind, network._replace(uplinks=(up,)))
            # spare domains cost and draw as well
            if network is row or bills.admitted(limit, margin)[0]:
                yield bills.found(up)


def serving(
    trainer: Trainer,
    row: GrowthStage,
    ups: Sequence[int],
    stands: Condition,
    availability: Availability | None,
) -> Iterator[tuple[int, GrowthStage]]:
    """Those of some uplinks, ascending, with which a network is in time, and the network with the
    fewest spare domains that this takes.
    """
    # more uplinks fail more often, so that each number of them may need other spare domains
    for up in fast_enough(trainer, row, ups, stands):
        if availability is None:
            yield up, row
            continue
        network = row.family, row.reach(up), row.by_tier.levels(up)
        if (spares := fewest_spares(availability, trainer, *network)) is not None:
            yield up, standing_by(row, spares)


def fast_enough(
    trainer: Trainer, row: GrowthStage, ups: Sequence[int], stands: Condition = no_condition
) -> Sequence[int]:
    """Those of some uplinks, ascending, with which a network is in time: those from some number on,
    as the most are the fastest.
    """

    def trains(up: int) -> bool:
        return trainer.trains(row.family, row.reach(up)) and stands(row.family, row.with_up(up))

    return ups[bisect_left(ups, True, key=trains) :] if ups and trains(ups[-1]) else ()


def design_chains(
    instance: Instance,
    kind: ObjectiveKind,
    joined: Iterable[tuple[Optic | None, DesignFamily]] | None = None,
    answers: Callable[[GrowthStage], Sequence[int]] = lambda row: row.uplinks,
    joins_of: Callable[[DesignFamily, Optic | None], CoreEnds | None] | None = None,
) -> Iterator[GrowthStage]:
    """Every chain of designs that an instance considers, with every choice of optics to go
    through.

    Parameters
    ----------
    joined
        The families with the modules at the lower ends of their links into a core.
    joins_of
        What these may have at their ends where lengths choose them.
    answers
        The uplinks with which a chain may be an answer if no bill is higher than its own: lengths
        in the hall choose the cables of these alone.
    """
    for gpus in instance.cluster.gpus if instance.existing else ():
        standing = standing_network(instance, gpus)
        if standing is not None:
            yield last_stage(standing.family, standing.ports, (standing.ports.up,), standing.optics)
    if instance.network.given:
        return
    network, chosen = instance.network, instance.network.link_ends != "same"
    for core_end, family in joined or ((None, family) for family in families(instance)):
        groups = chain_groups(
            network, family, partial(optics_choices, instance, kind, family), chosen_later=chosen
        )
        for caged_family, (ports, uplinks), choices in groups:
            if network.cables == "hall" and (instance.several_networks or instance.existing):
                joins = None if joins_of is None else joins_of(family, core_end)
                every_line = laid_each(instance, kind, caged_family, ports, uplinks, choices, joins)
                yield from (stage for (stage,) in every_line)
                continue
            if network.cables == "hall":
                stage = last_stage(caged_family, ports, uplinks, ())
                yield from laid_stages(instance, kind, stage, choices, answers)
                continue
            rows = [
                last_stage(caged_family, ports, uplinks, optics, core_end) for optics in choices
            ]
            if chosen and len(choices) > 1:
                ends = dict.fromkeys((uplinks[0], uplinks[-1]))
                networks = [rows[0].levels(up) for up in ends]
                least = least_choices(instance, kind, caged_family.network, choices, networks)
                rows = [row for row in rows if row.optics in least]
            yield from rows


def number_below(
    ups: Sequence[int], end: Fraction | bool, key: Callable[[int], Fraction | bool]
) -> int:
    """How many of the rising numbers of uplinks have a key below an end; keys do not fall with
    uplinks.
    """
    # most chains are too dear with the fewest already
    return bisect_left(ups, end, lo=1, key=key) if ups and key(ups[0]) < end else 0
