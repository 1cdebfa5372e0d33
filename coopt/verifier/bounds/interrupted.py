"""Designs that train in time with their interruptions, by going through every number of uplinks of every chain.

Neither time nor goodput decides alone, so that nothing is halved: each number of uplinks that is cheap enough is timed,
and gets the fewest spare domains with which all workloads are in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coopt.instance.schema import Instance, ObjectiveKind
from coopt.verifier.checks.verdict import STRICT, below
from coopt.verifier.parts.bills import bill, bill_total, within_limits
from coopt.verifier.parts.enumeration import DesignChain, FoundDesign, design_chains, fewest_spares
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.spans import reach_of
from coopt.verifier.parts.switch_levels import SwitchLevel, levels
from coopt.verifier.parts.timings import Trainer


def interrupted_designs(
    instance: Instance, kind: ObjectiveKind, bound: float, short: float = STRICT
) -> Iterator[FoundDesign]:
    """Every design worth less than `bound` that is in time with its interruptions; `short` is that of `Trainer`."""
    asked, trainer = instance.availability, Trainer(instance, short)
    assert asked is not None, "asked for with failures only"
    for row in design_chains(instance, kind):
        for up in row.chain.uplinks:
            counted = levels(row.family, row.chain.with_up(up))
            if not below(_value(instance, kind, row, row.family, counted), bound):
                continue
            reach = reach_of(row.family, row.chain.with_up(up))
            spares = fewest_spares(asked, trainer, row.family, reach, counted)
            if spares is None:
                continue
            family = row.family._replace(spares=spares)
            value = _value(instance, kind, row, family, counted)
            sums = bill_total(bill(instance, family, counted, row.optics), instance.objective)
            if below(value, bound) and within_limits(instance, family, sums, short):
                yield FoundDesign(value, family, row.chain.with_up(up), row.optics)


def cheapest_interrupted(
    instance: Instance, kind: ObjectiveKind, bound: float, short: float = STRICT
) -> FoundDesign | None:
    """The cheapest of them; None where there is none."""
    return min(interrupted_designs(instance, kind, bound, short), key=lambda one: one.value, default=None)


def _value(
    instance: Instance, kind: ObjectiveKind, row: DesignChain, family: DesignFamily, counted: Sequence[SwitchLevel]
) -> float:
    return bill_total(bill(instance, family, counted, row.optics), instance.objective).of(kind)
