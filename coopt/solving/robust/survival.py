"""Which networks survive the loss of a part: each family with the uplinks that it then needs.

A lost NIC, leaf or plane takes the same number of NICs from a domain; traffic that leaves the domain takes longer, as
docs/faults.md says, and nothing else changes. So a network survives exactly when the same network with NICs slower by
that factor meets the longer bounds, by whichever mapping is fastest then; uplinks only help. The loss does not depend
on the uplinks, so the networks of a family that survive are those from some number of uplinks on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from coopt.columns.context import context_of
from coopt.columns.table import columns
from coopt.instance.robust import Lost, Robust, after_a_loss
from coopt.instance.schema import Instance
from coopt.network.failures import nics_on, without_nics
from coopt.network.family import Family
from coopt.network.graphs.numbering import rails_of
from coopt.plan.robust import Survived
from coopt.solving.arrays import needs


def survived(family: Family, robust: Robust) -> tuple[Survived, ...]:
    """What each loss does to a family that survives it; nothing to lose without a network."""
    parts = robust.survive if family.tiers else ()
    return tuple(
        Survived(part=part, nics_lost=nics_lost(family, part), slowdown=slowdown(family, part)) for part in parts
    )


def slowdown(family: Family, part: Lost) -> float:
    """How much longer traffic of a domain takes after a loss; infinite where the domain is cut off."""
    return without_nics(family, nics_lost(family, part))[0]


def nics_lost(family: Family, part: Lost) -> int:
    """The most NICs of one domain that hang on such a part."""
    if part == "nic":
        return 1
    if part == "plane":
        return rails_of(family) // family.planes
    together = min(family.switch.radix // family.down, family.planes) if family.tiers == 1 else 1
    return together * int(nics_on(family, np.arange(family.leaves)).max())


def surviving(
    instance: Instance, robust: Robust, families: tuple[Family, ...], check: Callable[[], None]
) -> tuple[Family, ...]:
    """The families with those of their uplinks with which they survive every loss; others are left out."""
    if not robust.survive:
        return families
    weak = [(family, _weakest(family, robust)) for family in families]
    standing = [(family, one) for family, one in weak if one is not None]
    longer = after_a_loss(instance, robust.slower)
    table = columns(longer, tuple(one for _, one in standing), lambda _: None, check)
    need = needs(longer, table)
    return tuple(_from(standing, lambda one: need.get(table.numbers[context_of(one)])))


def _weakest(family: Family, robust: Robust) -> Family | None:
    """The family with NICs slowed down by its worst loss; None where a domain is cut off."""
    slower = max((slowdown(family, part) for part in robust.survive), default=1.0) if family.tiers else 1.0
    if math.isinf(slower):
        return None
    return replace(family, nic=family.nic.model_copy(update={"gbit_s": family.nic.gbit_s / slower}))


def _from(pairs: list[tuple[Family, Family]], needed: Callable[[Family], int | None]) -> Iterator[Family]:
    """Each family with the uplinks from the least needed on."""
    for family, weak in pairs:
        least = needed(weak)
        choices = family.uplink_choices
        if least is not None and least < choices.stop:
            yield replace(family, uplink_choices=range(max(choices.start, least), choices.stop))
