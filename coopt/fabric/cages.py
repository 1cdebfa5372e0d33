"""Cages of switches and the modules in them: which modules to order where a bill has more than there is room for."""

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
    whole: int,
    ports: Sequence[tuple[int, Optic]],
    free: str = "margin.ports",
) -> str:
    """What to order in place of modules for which a switch has no room; modules of a cage serve `whole` ports each, and
    the key `free` keeps ports free."""
    of_kind = Counter[str]()
    for number, optic in ports:
        of_kind[optic.name] += number
    filled = sum(-(-number // whole) for number in of_kind.values())
    billed = f"The bill has {modules:,} modules for each {way.name} of tier {level}, which has room for {cages:,}"
    larger = f"modules of {way.cage_gbit_s:g} Gbit/s that serve {counted(whole, 'port')} each"
    if filled <= cages:
        known = _catalog_modules(way.cage_gbit_s, whole, [optic for _, optic in ports])
        return f"{billed}: order {filled:,} {larger}{known}, whose price may differ."
    return (
        f"{billed}, and {larger} would still be {filled:,}: links of its two sides share no module. Keep some ports "
        f"free ({free}) to build it."
    )


def _catalog_modules(cage_gbit_s: float, whole: int, optics: Sequence[Optic]) -> str:
    """` (of the catalog: 800g-sr8)`, the modules of a cage for so many links that meet some of these; empty if none."""
    modules = (one for one in entries("optic").values() if isinstance(one, Optic) and one.gbit_s == cage_gbit_s)
    fitting = [one for one in modules if one.links_of(cage_gbit_s / whole) == whole]
    named = [one.name for one in fitting if any(one.meets(optic) and mate(one, optic) for optic in optics)]
    return f" (of the catalog: {both(named)})" if named else ""


def splitting_notes(carried: Mapping[str, int]) -> Iterator[str]:
    """That modules which carry several links take cables or panels which split their fibres, unless each link has a
    connector of its own."""
    ends = [f"{name} ({counted(count, 'link')} each)" for name, count in carried.items() if count > 1]
    if ends:
        yield (
            f"The bill counts no cables or panels that split fibres, which {both(ends)} may need, unless each "
            "link has a connector of its own."
        )
