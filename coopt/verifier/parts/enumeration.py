"""Go through all designs of an instance: which is the cheapest that trains every workload in time?

Cost rises with the uplinks of a leaf and time falls with them, the rest of the ports being equal.
So of all designs of a chain that are cheap enough, the one with the most uplinks is the fastest: if
it is too slow, all of them are.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from coopt.instance.reserves import Availability
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.verifier.checks.verdict import STRICT, is_below
from coopt.verifier.parts.bills import SwitchLevel, bill, bill_total, levels, within_limits
from coopt.verifier.parts.layouts import Chain, Ports, cages, chains
from coopt.verifier.parts.optics import least_choices, optics_choices, spares_core
from coopt.verifier.parts.outages import ALL_PORTS, outages_of
from coopt.verifier.parts.space import DesignFamily, OpticPair, families, in_cages, radices
from coopt.verifier.parts.spans import Reach, reach_of
from coopt.verifier.parts.timings import Trainer
from coopt.verifier.parts.uptime import interrupted, lost_of, running_share, uptime_of

SURELY = (
    1 - 1e-12
)  # where domains enough are whole for so much of the time, further spares change nothing


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
    needed_share, outages = 0.0, outages_of(availability, network, levels)
    for index, workload in enumerate(trainer.workloads):
        out = outages if workload.calendar else ALL_PORTS
        share = trainer.least_s(network, reach, index, outages=out) / trainer.bound_s(index)
        # late even if nothing ever failed
        if share > 1.0:
            return None
        if workload.calendar:
            trained = interrupted(availability, workload, network, levels).trained
            needed_share = max(needed_share, share / trained if trained else math.inf)
    lost_share = lost_of(availability, network)
    spare_counts = availability.spares
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

    value: float
    family: DesignFamily
    ports: Ports
    optics: tuple[OpticPair, ...]


class DesignChain(NamedTuple):
    """The designs of one chain with one choice of optics, and what they share."""

    family: DesignFamily
    chain: Chain
    optics: tuple[OpticPair, ...]


Condition = Callable[[DesignFamily, Ports], bool]


def no_condition(family: DesignFamily, ports: Ports) -> bool:
    """The condition that every design meets."""
    return True


def cheapest_design_below(
    instance: Instance,
    kind: ObjectiveKind,
    bound: float,
    stands: Condition = no_condition,
    margin: float = STRICT,
) -> FoundDesign | None:
    """The cheapest feasible design worth less than `bound` by more than rounding; None where there
    is none.

    Parameters
    ----------
    stands
        What else a design has to do; with more uplinks it does no less.
    bound
        In the unit of the objective; infinite to ask for any feasible design.
    margin
        By which share bounds of time and memory are taken short; negative to put rounding in favour
        of designs.
    """
    trainer, best_design, ceiling = Trainer(instance, margin), None, bound
    for row in design_chains(instance, kind):
        # cost rises with uplinks and time falls: designs cheap enough come first, those in time
        # last
        ups = _admitted_uplinks(instance, kind, row, ceiling, margin)
        if not ups or not _trains(trainer, row, ups[-1], stands):
            continue  # the most uplinks are the fastest design of the chain
        # the fewest uplinks in time are the cheapest of the chain
        least_index = bisect_left(ups, True, key=lambda up: _trains(trainer, row, up, stands))
        ports = row.chain.with_up(ups[least_index])
        best_design = FoundDesign(
            _value(instance, kind, row, ups[least_index]), row.family, ports, row.optics
        )
        ceiling = best_design.value
    return best_design


def designs_below(
    instance: Instance,
    kind: ObjectiveKind,
    bound: float,
    stands: Condition = no_condition,
    margin: float = STRICT,
) -> Iterator[FoundDesign]:
    """Every feasible design worth less than `bound`, in no particular order; all feasible ones
    where it is infinite.
    """
    trainer = Trainer(instance, margin)
    for row in design_chains(instance, kind):
        ups = _admitted_uplinks(instance, kind, row, bound, margin)
        if ups and _trains(trainer, row, ups[-1], stands):
            least_index = bisect_left(ups, True, key=lambda up: _trains(trainer, row, up, stands))
            for up in ups[least_index:]:
                yield FoundDesign(
                    _value(instance, kind, row, up), row.family, row.chain.with_up(up), row.optics
                )


def least_designs(
    instance: Instance, kind: ObjectiveKind, margin: float = STRICT
) -> Iterator[tuple[DesignFamily, Ports, tuple[OpticPair, ...]]]:
    """The feasible design of fewest uplinks of every chain with every choice of optics, whatever it
    costs.
    """
    trainer = Trainer(instance, margin)
    for row in design_chains(instance, kind):
        ups = row.chain.uplinks
        if ups and _trains(trainer, row, ups[-1]):
            least_index = bisect_left(ups, True, key=lambda up: _trains(trainer, row, up))
            yield row.family, row.chain.with_up(ups[least_index]), row.optics


def design_chains(instance: Instance, kind: ObjectiveKind) -> Iterator[DesignChain]:
    """Every chain of designs that an instance considers, with every choice of optics to go
    through.
    """
    for family in families(instance):
        for tiers in range(instance.network.max_tiers + 1):
            if family.gear is not None and not family.gear.is_named_once(tiers):
                continue
            by_cages: dict[
                tuple[tuple[int, int], tuple[int, ...]],
                tuple[DesignFamily, list[tuple[OpticPair, ...]]],
            ] = {}
            for optics in optics_choices(instance, kind, family, tiers):
                carried = tuple(map(family.gear.carried, optics)) if family.gear else ()
                caged_family = in_cages(instance.network, family, carried)
                if spares_core(caged_family, optics):
                    # optics whose cages leave the same ports have the same chains, which are listed
                    # once
                    key = cages(carried), radices(caged_family)
                    by_cages.setdefault(key, (caged_family, []))[1].append(optics)
            for (ports_together, _), (caged_family, choices) in by_cages.items():
                yield from _chains_with(
                    instance, kind, caged_family, tiers, ports_together, choices
                )


def _chains_with(
    instance: Instance,
    kind: ObjectiveKind,
    family: DesignFamily,
    tiers: int,
    ports_together: tuple[int, int],
    choices: Sequence[tuple[OpticPair, ...]],
) -> Iterator[DesignChain]:
    """The chains of so many tiers whose ports come in such cages, each with the choices of ends to
    go through for it.

    On three tiers all modules above leaves are there as often as a leaf has uplinks, so that of two
    choices one is no dearer at every number of uplinks where it is at the fewest and at the most.
    On two, spines buy whole modules.
    """
    gear = family.gear
    # where whole modules are bought above the leaves, cost need not rise with every uplink
    broken_out = gear is not None and any(
        max(gear.carried(ends)) > 1 for optics in choices for ends in optics[1:]
    )
    chooses_ends = instance.network.link_ends != "same" and len(choices) > 1
    apart = broken_out and (tiers == 2 or not chooses_ends)
    for chain in chains(family, instance.network, ports_together, apart=apart):
        if chain.ports.tiers != tiers:
            continue
        chain_choices = choices
        if chooses_ends and gear is not None:
            ends = dict.fromkeys((chain.uplinks[0], chain.uplinks[-1]))
            chain_choices = least_choices(
                instance, kind, gear, choices, [levels(family, chain.with_up(up)) for up in ends]
            )
        yield from (DesignChain(family, chain, optics) for optics in chain_choices)


def _admitted_uplinks(
    instance: Instance, kind: ObjectiveKind, row: DesignChain, ceiling: float, margin: float
) -> Sequence[int]:
    """The uplinks with which a design is cheap enough and within the limits, which no further one
    mends.
    """
    ups = row.chain.uplinks

    def is_excluded(up: int) -> bool:
        lines = bill(instance, row.family, levels(row.family, row.chain.with_up(up)), row.optics)
        sums = bill_total(lines, instance.objective)
        return not (
            is_below(sums.of(kind), ceiling) and within_limits(instance, row.family, sums, margin)
        )

    return ups[: number_below(ups, True, is_excluded)]


def number_below(
    ups: Sequence[int], end: Fraction | bool, key: Callable[[int], Fraction | bool]
) -> int:
    """How many of the rising numbers of uplinks have a key below an end; keys do not fall with
    uplinks.
    """
    # most chains are too dear with the fewest already
    return bisect_left(ups, end, lo=1, key=key) if ups and key(ups[0]) < end else 0


def _value(instance: Instance, kind: ObjectiveKind, row: DesignChain, up: int) -> float:
    lines = bill(instance, row.family, levels(row.family, row.chain.with_up(up)), row.optics)
    return bill_total(lines, instance.objective).of(kind)


def _trains(trainer: Trainer, row: DesignChain, up: int, stands: Condition = no_condition) -> bool:
    ports = row.chain.with_up(up)
    return trainer.trains(row.family, reach_of(row.family, ports)) and stands(row.family, ports)
