"""The fibre between modules: cables by their lengths, and what splits the connectors of modules
that carry several links (docs/network.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from coopt.instance.hardware import Fibre, Optic
from coopt.plan.parts import Item, line


class FibreUnits(NamedTuple):
    """So many units of what a bill calls by this name, at a price for one (USD)."""

    name: str
    units: int
    usd: float
    w: float = 0.0

    @property
    def line(self) -> Item:
        """Its line of a bill."""
        return line("fibre", self.name, self.units, self.usd, 0.0)


def fibre_between(
    listed: Sequence[Fibre],
    ends: tuple[Optic, Optic],
    gbit_s: float,
    links: int,
    modules: tuple[int, int],
    length_m: int,
) -> tuple[FibreUnits, ...]:
    """The cheapest cables of a list for links of a rate and a length, and the splitters of so many
    modules at their lower and upper ends.
    """
    if not listed:
        return ()
    split = (
        splitters_of(listed, optic, gbit_s, count)
        for optic, count in zip(ends, modules, strict=True)
    )
    return (*fibre_cables(listed, ends[0], gbit_s, links, length_m), *chain.from_iterable(split))


def fibre_cables(
    listed: Sequence[Fibre], optic: Optic, gbit_s: float, links: int, length_m: int
) -> Iterator[FibreUnits]:
    """The cheapest cables of a list for links of a rate and a length between optics, with their
    metres; nothing where these have no fibres, or none is listed.
    """
    pairs, together = optic.pairs_of(gbit_s), optic.pairs_together(gbit_s)
    offers = [
        (-(-pairs // one.pairs) * (one.usd + one.usd_per_m * length_m), number, one)
        for number, one in enumerate(listed)
        if pairs and one.joins(optic.fibre, 1, together)
    ]
    if offers:
        *_, cable = min(offers)
        count = -(-pairs // cable.pairs) * links
        yield FibreUnits(cable.name, count, cable.usd)
        if cable.usd_per_m:
            yield FibreUnits(cable.metre, count * length_m, cable.usd_per_m)


def splitters_of(
    listed: Sequence[Fibre], optic: Optic, gbit_s: float, modules: int
) -> Iterator[FibreUnits]:
    """The cheapest splitters of a list, one for each connector of a module that serves several
    links of a rate; nothing where none has to, or none is listed.
    """
    links, pairs = optic.split_at(gbit_s), optic.pairs_of(gbit_s)
    fitting = [one for one in listed if pairs and one.joins(optic.fibre, links, pairs * links)]
    if fitting and links > 1:
        splitter = min(fitting, key=lambda one: one.usd)
        yield FibreUnits(splitter.name, modules * optic.connectors, splitter.usd)
