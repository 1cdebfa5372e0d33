"""The fibre between the modules of a length of links, by docs/network.md alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from coopt.instance.hardware import Fibre
from coopt.verifier.parts.layouts import ceil_ratio
from coopt.verifier.parts.space import OpticPair

Bought = tuple[str, int, float]
"""What a bill calls fibre, how much of it, and the price of one (USD)."""


def fibre_between(
    listed: Sequence[Fibre],
    link_rate: Fraction,
    ends: OpticPair,
    carried: tuple[int, int],
    modules: tuple[int, int],
    links: int,
    length_m: int,
) -> tuple[Bought, ...]:
    """What links of one rate (Gbit/s) and length take between so many modules at their lower and
    their upper ends, each of which carries so many; nothing where no fibre is listed, or a cable
    comes with its ends.
    """
    carries = ends.below.fibre
    if not listed or carries is None or ends.below.whole_cable:
        return ()
    rate = re.match("[1-9][0-9]*", carries)
    pairs = -int(-link_rate // int(rate[0])) if rate else 1
    plugs = max(1, ends.below.connectors // carried[0])  # those of one link
    usable = [one for one in listed if carries in one.carries]
    offers = [
        (count * (one.usd + one.usd_per_m * length_m), number, count * links, one)
        for number, one in enumerate(usable)
        if one.links == 1 and one.pairs * plugs >= pairs
        for count in [ceil_ratio(pairs, one.pairs)]
    ]
    *_, cables, cable = min(offers, key=lambda offer: offer[:2])
    bought = [(cable.name, cables, cable.usd)]
    if cable.usd_per_m:
        bought.append((f"{cable.name} (m)", cables * length_m, cable.usd_per_m))
    for optic, of_module, count in zip(ends, carried, modules, strict=True):
        legs = ceil_ratio(of_module, optic.connectors)
        if legs > 1:
            splitters = [one for one in usable if one.links == legs and one.pairs >= legs * pairs]
            splitter = min(splitters, key=lambda one: one.usd)
            bought.append((splitter.name, count * optic.connectors, splitter.usd))
    return tuple(bought)
