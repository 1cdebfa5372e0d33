"""What lengths of links prove on a grid of domains: the links that demands take at least, and whole links over cuts.

A demand takes its bytes times the length of its path, which no path cuts short (weak duality).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from coopt.instance.errors import InstanceError
from coopt.instance.listings import both as listed
from coopt.plan.direct_links import LinkLengths
from coopt.verifier.parts.link_demands import StageGrid, sends_on

SCALE = 10**15
"""Amounts of a proof are rounded down to this part of one."""

Paces = dict[str, float]


class RoundedCut(NamedTuple):
    """What leaves a set of domains in each phase at a pace of one link, and what a whole link across is priced."""

    price: int
    sent: dict[str, Fraction]


class PricedLinks(NamedTuple):
    """Lengths and prices of a proof, summed up: so much for each pace, the cuts, all ports, and the most for a link."""

    by_pace: dict[str, Fraction]
    cuts: tuple[RoundedCut, ...]
    ports: int
    link: int

    def least_links(self, paces: Paces, ports: int) -> Fraction:
        """No fewer links carry all demands at these paces, with so many ports a domain."""
        total = sum((each * Fraction(paces[phase]) for phase, each in self.by_pace.items()), Fraction())
        for cut in self.cuts:
            total += cut.price * max(math.ceil(share * Fraction(paces[phase])) for phase, share in cut.sent.items())
        return (total - self.ports * ports) / self.link


def priced_links(grid: StageGrid, lengths: LinkLengths) -> PricedLinks | None:
    """What lengths prove on their grid; None where they put no price on any link.

    Raises
    ------
    InstanceError
        When numbers of lengths, ports or domains are not those of the grid.
    """
    stages, turns = grid.stages, grid.replicas
    if others := set(lengths.lengths) - set(sends_on(grid)):
        raise InstanceError(f"proof: lengths of phase {min(others)!r}, needs {listed(sends_on(grid))} of their grid")
    by_phase = {phase: _whole(lengths.lengths.get(phase, ()), stages**2 * turns) for phase in sends_on(grid)}
    ports = _whole(lengths.ports or ("0",) * stages, stages)
    cuts = [(frozenset(cut.domains), _amount(cut.price)) for cut in lengths.cuts]
    if not all(0 <= domain < grid.domains for members, _ in cuts for domain in members):
        raise InstanceError(f"proof: a cut has a domain beyond {grid.domains - 1}, needs domains of its grid")
    across: defaultdict[tuple[int, int], int] = defaultdict(int)
    for members, price in cuts:
        for turn in range(turns):
            turned = {_turned(domain, turn, turns) for domain in members}
            for s in range(stages):
                for other in range(grid.domains):
                    across[s, other] += price * ((s * turns in turned) != (other in turned))
    link = 0
    for s, other in product(range(stages), range(grid.domains)):
        t, off = divmod(other, turns)
        if (t, off) != (s, 0):
            both = sum(
                each[_index(grid, s, t, off)] + each[_index(grid, t, s, -off % turns)] for each in by_phase.values()
            )
            link = max(link, both + across[s, other] - ports[s] - ports[t])
    if link <= 0:
        return None
    by_pace = {phase: _needed(grid, phase, each) for phase, each in by_phase.items()}
    rounded = tuple(RoundedCut(price * turns, _leaving(grid, members)) for members, price in cuts if price)
    return PricedLinks(by_pace, rounded, sum(ports) * turns, link)


def _amount(text: str) -> int:
    return int(Fraction(text) * SCALE)


def _whole(amounts: Sequence[str], count: int) -> list[int]:
    """Amounts of a proof as whole numbers."""
    if len(amounts) != count:
        raise InstanceError(f"proof: {len(amounts)} lengths or prices of ports where {count} are needed")
    return [_amount(text) for text in amounts]


def _index(grid: StageGrid, s: int, t: int, off: int) -> int:
    """Where the length from a domain of stage s to one of stage t stands that is so many replicas further."""
    return (s * grid.stages + t) * grid.replicas + off


def _turned(domain: int, turn: int, replicas: int) -> int:
    """The domain so many replicas further."""
    return domain - domain % replicas + (domain + turn) % replicas


def _needed(grid: StageGrid, phase: str, lengths: Sequence[int]) -> Fraction:
    """What all demands of a phase need at a pace of one link: each at least its share of the shortest distance.

    Turning all replicas changes nothing, so that the sources of the first replica stand for all.
    """
    sends, total = sends_on(grid)[phase], Fraction()
    for stage in range(grid.stages):
        source = stage * grid.replicas
        distances = _distances(grid, lengths, source)
        total += sum((share * distances[end] for (start, end), share in sends.items() if start == source), Fraction())
    return total * grid.replicas


def _distances(grid: StageGrid, lengths: Sequence[int], source: int) -> dict[int, int]:
    """The shortest distance from a domain to each (Dijkstra)."""
    nearest, found = {source: 0}, dict[int, int]()
    while nearest:
        here = min(nearest, key=nearest.__getitem__)
        found[here] = nearest.pop(here)
        s, at = divmod(here, grid.replicas)
        for other in range(grid.domains):
            if other not in found:
                t, there = divmod(other, grid.replicas)
                reached = found[here] + lengths[_index(grid, s, t, (there - at) % grid.replicas)]
                nearest[other] = min(nearest.get(other, reached), reached)
    return found


def _leaving(grid: StageGrid, members: frozenset[int]) -> dict[str, Fraction]:
    """What leaves a set of domains in each phase at a pace of one link."""
    return {
        phase: sum((share for (a, b), share in sends.items() if a in members and b not in members), Fraction())
        for phase, sends in sends_on(grid).items()
    }
