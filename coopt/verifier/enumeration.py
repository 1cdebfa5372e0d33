"""Go through all designs of an instance: which is the cheapest that trains every workload in time?

Cost rises with the uplinks of a leaf and time falls with them, the rest of the ports being equal. So of all designs
of a chain that are cheap enough, the one with the most uplinks is the fastest: if it is too slow, all of them are.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple

from coopt.instance.hardware import Optic
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.verifier.layouts import Chain, Ports, chains, levels
from coopt.verifier.ledger import TOLERANCE
from coopt.verifier.optics import optics_for
from coopt.verifier.parts import bill, total_of, within_limits
from coopt.verifier.space import Family, families
from coopt.verifier.spans import reach_of
from coopt.verifier.trainer import Trainer


class Found(NamedTuple):
    """A design that meets everything, with its value in the unit of the objective."""

    value: float
    family: Family
    ports: Ports
    optics: tuple[Optic, ...]


class _Row(NamedTuple):
    """The designs of one chain with one choice of optics, and what they share."""

    family: Family
    chain: Chain
    optics: tuple[Optic, ...]


Stands = Callable[[Family, Ports], bool]


def anything(family: Family, ports: Ports) -> bool:
    """What every design stands."""
    return True


def cheapest_below(instance: Instance, kind: ObjectiveKind, bound: float, stands: Stands = anything) -> Found | None:
    """The cheapest feasible design worth less than `bound` by more than rounding; None where there is none.

    Parameters
    ----------
    stands
        What else a design has to do; with more uplinks it does no less.
    bound
        In the unit of the objective; infinite to ask for any feasible design.
    """
    trainer, best, ceiling = Trainer(instance), None, bound - abs(bound) * TOLERANCE if math.isfinite(bound) else bound
    for row in _rows(instance, kind):
        count = bisect_left(row.chain.uplinks, True, key=lambda up: not _admitted(instance, kind, row, up, ceiling))
        ups = row.chain.uplinks[:count]
        if not ups or not _trains(trainer, row, ups[-1], stands):
            continue
        first = bisect_left(ups, True, key=lambda up: _trains(trainer, row, up, stands))
        ports = row.chain.with_up(ups[first])
        best = Found(_value(instance, kind, row, ups[first]), row.family, ports, row.optics)
        ceiling = best.value
    return best


def all_below(instance: Instance, kind: ObjectiveKind, bound: float, stands: Stands = anything) -> Iterator[Found]:
    """Every feasible design worth less than `bound`, in no particular order; all feasible ones where it is infinite."""
    trainer = Trainer(instance)
    for row in _rows(instance, kind):
        count = bisect_left(row.chain.uplinks, True, key=lambda up: not _admitted(instance, kind, row, up, bound))
        ups = row.chain.uplinks[:count]
        if ups and _trains(trainer, row, ups[-1], stands):
            first = bisect_left(ups, True, key=lambda up: _trains(trainer, row, up, stands))
            for up in ups[first:]:
                yield Found(_value(instance, kind, row, up), row.family, row.chain.with_up(up), row.optics)


def least_designs(instance: Instance, kind: ObjectiveKind) -> Iterator[tuple[Family, Ports, tuple[Optic, ...]]]:
    """The feasible design of fewest uplinks of every chain with every choice of optics, whatever it costs."""
    trainer = Trainer(instance)
    for row in _rows(instance, kind):
        ups = row.chain.uplinks
        if ups and _trains(trainer, row, ups[-1]):
            first = bisect_left(ups, True, key=lambda up: _trains(trainer, row, up))
            yield row.family, row.chain.with_up(ups[first]), row.optics


def _rows(instance: Instance, kind: ObjectiveKind) -> Iterator[_Row]:
    for family in families(instance):
        for chain in chains(family, instance.network):
            for optics in optics_for(instance, kind, family, chain.ports.tiers):
                yield _Row(family, chain, optics)


def _admitted(instance: Instance, kind: ObjectiveKind, row: _Row, up: int, ceiling: float) -> bool:
    """Whether a design is cheap enough and within the limits."""
    lines = bill(instance, row.family, levels(row.family, row.chain.with_up(up)), row.optics)
    sums = total_of(lines, instance.objective)
    return sums.of(kind) < ceiling and within_limits(instance, row.family, sums)


def _value(instance: Instance, kind: ObjectiveKind, row: _Row, up: int) -> float:
    lines = bill(instance, row.family, levels(row.family, row.chain.with_up(up)), row.optics)
    return total_of(lines, instance.objective).of(kind)


def _trains(trainer: Trainer, row: _Row, up: int, stands: Stands = anything) -> bool:
    ports = row.chain.with_up(up)
    return trainer.trains(row.family, reach_of(row.family, ports)) and stands(row.family, ports)
