"""Which networks survive the loss of a part: each family with the uplinks that it then needs.

A lost NIC, leaf or plane takes the same number of NICs from a domain; traffic that leaves the domain takes longer, as
docs/faults.md says, and nothing else changes. So a network survives exactly when the same network with NICs slower by
that factor meets the longer bounds, by whichever mapping is fastest then; uplinks only help. The loss does not depend
on the uplinks, so the networks of a family that survive are those from some number of uplinks on. The same holds for
a lost domain, whose GPUs are lost with it: `without_domain`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from coopt.columns.context import context_of
from coopt.columns.table import columns
from coopt.instance.robust import Lost, Robust
from coopt.instance.schema import Instance
from coopt.instance.variants import after_a_loss
from coopt.network.failures import nics_on, without_nics
from coopt.network.family import Family
from coopt.network.plane_wires import rails_of
from coopt.plan.robust import Survived
from coopt.solving.arrays import needs
from coopt.solving.robust.without_domain import Jobs, from_least, surviving_domains


def survived(instance: Instance, family: Family, uplinks: int, robust: Robust) -> tuple[Survived, ...]:
    """What each loss does to a network that survives it; nothing to lose without a network."""
    parts = robust.survive if family.tiers else ()
    return tuple(_survived(instance, family, uplinks, part, robust.slower.of_part[part]) for part in parts)


def _survived(instance: Instance, family: Family, uplinks: int, part: Lost, slower: float) -> Survived:
    if part != "domain":
        lost = nics_lost(family, part)
        return Survived(part=part, nics_lost=lost, slower=slower, slowdown=slowdown(family, part))
    runs = Jobs(after_a_loss(instance, slower)).runs(family, uplinks)
    assert runs is not None, "the uplinks are enough"
    return Survived(part=part, nics_lost=rails_of(family), slower=slower, workloads=runs)


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
    factors = robust.slower.of_part
    on_nics = [part for part in robust.survive if part != "domain"]
    for slower in dict.fromkeys(factors[part] for part in on_nics):
        parts = [part for part in on_nics if factors[part] == slower]
        families = _without_nics(after_a_loss(instance, slower), parts, families, check)
    if "domain" in robust.survive:
        families = surviving_domains(after_a_loss(instance, factors["domain"]), families, check)
    return families


def _without_nics(
    longer: Instance, parts: Sequence[Lost], families: tuple[Family, ...], check: Callable[[], None]
) -> tuple[Family, ...]:
    """The families with those of their uplinks with which they meet the longer bounds without any of these parts."""
    weak = [(family, _weakest(family, parts)) for family in families]
    standing = [(family, one) for family, one in weak if one is not None]
    table = columns(longer, tuple(one for _, one in standing), lambda _: None, check)
    need = needs(longer, table)
    return tuple(from_least((family, need.get(table.numbers[context_of(one)])) for family, one in standing))


def _weakest(family: Family, parts: Sequence[Lost]) -> Family | None:
    """The family with NICs slowed down by its worst loss; None where a domain is cut off."""
    slower = max((slowdown(family, part) for part in parts), default=1.0) if family.tiers else 1.0
    if math.isinf(slower):
        return None
    return replace(family, nic=family.nic.model_copy(update={"gbit_s": family.nic.gbit_s / slower}))
