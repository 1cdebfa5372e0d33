"""What to order in place of modules of a bill: where switches have no cages for them, and where
fibres are split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from coopt.instance.catalog import entries
from coopt.instance.errors import both, counted
from coopt.instance.hardware import Optic, Switch, mate


def too_many_modules(
    way: Switch,
    level: int,
    modules: int,
    cages: int,
    ports_per_module: int,
    ports: Sequence[tuple[int, Optic]],
    free_key: str = "margin.ports",
) -> str:
    """What to order in place of modules for which a switch has no room; modules of a cage serve
    `ports_per_module` ports each, and the key `free_key` keeps ports free.
    """
    of_kind = Counter[str]()
    for number, optic in ports:
        of_kind[optic.name] += number
    cages_filled = sum(-(-number // ports_per_module) for number in of_kind.values())
    opening = (
        f"The bill has {modules:,} modules for each {way.name} of tier {level}, which has room for"
        f" {cages:,}"
    )
    larger = (
        f"modules of {way.cage_gbit_s:g} Gbit/s that serve {counted(ports_per_module, 'port')} each"
    )
    if cages_filled <= cages:
        catalog_hint = _catalog_modules(
            way.cage_gbit_s, ports_per_module, [optic for _, optic in ports]
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
