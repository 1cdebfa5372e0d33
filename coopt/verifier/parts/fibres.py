"""The fibre between the modules of a length of links, by docs/network.md alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from coopt.instance.hardware import Fibre
from coopt.verifier.parts.layouts import ceil_ratio
from coopt.verifier.parts.space import NicAttachment, OpticPair

Bought = tuple[str, int, float]
"""What a bill calls fibre, how much of it, and the price of one (USD)."""


def fibre_between(
    listed: Sequence[Fibre],
    network: NicAttachment,
    ends: OpticPair,
    modules: tuple[int, int],
    links: int,
    length_m: int,
) -> tuple[Bought, ...]:
    """What links of one length take between so many modules at their lower and their upper ends;
    nothing where no fibre is listed, or a cable comes with its ends.
    """
    carries = ends.below.fibre
    if not listed or carries is None or ends.below.whole_cable:
        return ()
    rate = re.match("[1-9][0-9]*", carries)
    link_rate = Fraction(network.nic.gbit_s) / network.nic_planes
    pairs = -int(-link_rate // int(rate[0])) if rate else 1
    plugs = max(1, ends.below.connectors // network.links_of(ends.below))  # those of one link
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
    for optic, count in zip(ends, modules, strict=True):
        legs = ceil_ratio(network.links_of(optic), optic.connectors)
        if legs > 1:
            splitters = [one for one in usable if one.links == legs and one.pairs >= legs * pairs]
            splitter = min(splitters, key=lambda one: one.usd)
            bought.append((splitter.name, count * optic.connectors, splitter.usd))
    return tuple(bought)
