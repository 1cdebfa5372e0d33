"""Modules at the ends of links: how many a network takes, and what to order in their place where
switches have no cages for them, or fibres are split.

A link has a module at each end, or fewer where one breaks out into several slower links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from coopt.instance.catalog import box_of, entries, ports_of_modules
from coopt.instance.errors import both, counted
from coopt.instance.hardware import Optic, Switch, mate
from coopt.network.chain import EndHolders, Holders, TierChain, whole
from coopt.network.family import Family


class EndModules(NamedTuple):
    """Modules at the lower and at the upper ends of the links of a level."""

    below: int
    above: int


def end_modules(family: Family, chain: TierChain) -> tuple[EndModules, ...]:
    """Modules at the ends of the links of each level, over all planes; one holds links of a single
    switch or NIC.
    """
    rate = family.link_gbit_s
    # asked for every network that is listed, most of which have a module for each link
    if all(below.gbit_s == rate == above.gbit_s for below, above in family.optics):
        return tuple(EndModules(level.links, level.links) for level in chain.levels)
    ends = zip(end_holders(family, chain), family.per_module, strict=True)
    return tuple(
        EndModules(whole(holders.below, n), whole(holders.above, m)) for holders, (n, m) in ends
    )


def end_holders(family: Family, chain: TierChain) -> tuple[EndHolders, ...]:
    """What has the links of each level at either end, over all planes."""
    if family.tiers == 0:
        return ()
    cages = family.nic.cages
    nics = ((family.nic_count * cages, family.nic_planes // cages),)
    return chain.end_holders(nics, _leaves(family))


def _leaves(family: Family) -> Holders:
    """Leaves by their links to NICs; planes that share the switch of a single tier share its
    modules.
    """
    ports = family.nic_planes
    # One switch may hold several planes: its modules are filled by links of all of them.
    if family.tiers == 1:
        planes_of_switch = family.planes_together
        full_switches, last_ports = divmod(family.planes, planes_of_switch)
        return (ports * full_switches, planes_of_switch * family.down), (
            ports,
            last_ports * family.down,
        )
    rails, domains, down = family.nics_of_domain // family.planes, family.domains, family.down
    rows, of_row = (
        (rails, domains) if family.fabric != "clos" and domains > down else (1, rails * domains)
    )
    filled = (
        down if family.fabric == "clos" or domains > down else down // domains * domains
    )  # of whole rails
    full_switches, last_ports = divmod(of_row, filled)
    return (family.all_planes * rows * full_switches, filled), (
        family.all_planes * rows,
        last_ports,
    )


def cage_note(
    way: Switch,
    level: int,
    gbit_s: float,
    ports: Sequence[tuple[int, Optic]],
    free_key: str = "margin.ports",
) -> str | None:
    """What to order in place of modules for which a switch has no room; None where it has room.

    Parameters
    ----------
    gbit_s
        Rate of links.
    ports
        How many ports of a switch are in use, with the optic of each.
    free_key
        The key that keeps ports free.
    """
    modules, cages = (
        sum(-(-n // optic.links_of(gbit_s)) for n, optic in ports),
        ports_of_modules(way, 1),
    )
    if modules <= cages:
        return None
    cage_gbit_s = (box_of(way.name) or way).cage_gbit_s
    ports_per_module = int(cage_gbit_s / gbit_s)
    of_kind = Counter[str]()
    for number, optic in ports:
        of_kind[optic.name] += number
    cages_filled = sum(-(-number // ports_per_module) for number in of_kind.values())
    opening = (
        f"The bill has {modules:,} modules for each {way.name} of tier {level}, which has room for"
        f" {cages:,}"
    )
    larger = (
        f"modules of {cage_gbit_s:g} Gbit/s that serve {counted(ports_per_module, 'port')} each"
    )
    if cages_filled <= cages:
        catalog_hint = _catalog_modules(
            cage_gbit_s, ports_per_module, [optic for _, optic in ports]
        )
        return f"{opening}: order {cages_filled:,} {larger}{catalog_hint}, whose price may differ."
    return (
        f"{opening}, and {larger} would still be {cages_filled:,}: links of its two sides share no"
        f" module. Keep some ports free ({free_key}) to build it."
    )


def _catalog_modules(cage_gbit_s: float, ports_per_module: int, optics: Sequence[Optic]) -> str:
    """` (of the catalog: 800g-sr8)`, the modules of a cage for so many links that meet some of
    these; empty if none.
    """
    modules = (
        module
        for module in entries("optic").values()
        if isinstance(module, Optic) and module.gbit_s == cage_gbit_s
    )
    fitting = [
        module
        for module in modules
        if module.links_of(cage_gbit_s / ports_per_module) == ports_per_module
    ]
    names = [
        module.name
        for module in fitting
        if any(module.meets(optic) and mate(module, optic) for optic in optics)
    ]
    return f" (of the catalog: {both(names)})" if names else ""


def splitting_notes(links_of_modules: Mapping[str, int]) -> Iterator[str]:
    """That modules which carry several links take cables or panels which split their fibres, unless
    each link has a connector of its own.
    """
    ends = [
        f"{name} ({counted(count, 'link')} each)"
        for name, count in links_of_modules.items()
        if count > 1
    ]
    if ends:
        yield (
            f"The bill counts no cables or panels that split fibres, which {both(ends)} may need,"
            " unless each link has a connector of its own."
        )
