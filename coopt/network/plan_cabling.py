"""Every cable of a plan with the ports at both its ends: those of its networks, and those from
islands to the core that they share.

A leaf has the latter behind those of its network, module by module from the next cage on. Modules
of the core are dealt to its switches in turn, island after island, so that none has a second link
to a switch before it has one to each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np

from coopt.instance.schema import Instance
from coopt.network.cable_runs import needed_m, wave_of_leaves
from coopt.network.cabling import (
    Cable,
    CableEnd,
    DevicePorts,
    Spots,
    cables,
    end_in_cage,
    kind_of,
    rack_name,
)
from coopt.network.cores import core_links_of_module, core_optic
from coopt.network.family import Family, LinkEnds
from coopt.network.graphs import whole_graph
from coopt.network.placing import bay_of, to_core_m
from coopt.network.plan_networks import PartNetwork, last_of_slot, part_named, part_network
from coopt.plan.couplings import Part, SharedCore
from coopt.plan.schema import Plan


@dataclass(frozen=True, kw_only=True)
class Joined:
    """An island as it joins a core, where it stands, and what the names of its devices begin
    with.
    """

    network: PartNetwork
    spots: Spots | None
    prefix: str


@dataclass(frozen=True, kw_only=True)
class _Start:
    """A leaf, or the only domain of an island (None), with the way to the core (m), the length that
    its cables are bought in and its rack, where these are known.
    """

    leaf: str | None
    length_m: int | None
    rack: str | None


def cables_of_plan(instance: Instance, plan: Plan, part: str | None = None) -> Iterator[Cable]:
    """The cables of a plan, or of one of its parts; devices and racks of several parts bear the
    names of these.

    Raises
    ------
    InstanceError
        Where a part has no switches.
    """
    parts = [part_named(instance, plan, part)] if part or len(plan.parts) < 2 else [*_last(plan)]
    joined = {one.name: _joined(instance, plan, one, several=len(parts) > 1) for one in parts}
    for one in joined.values():
        yield from cables(one.network.family, one.network.uplinks, one.spots, one.prefix)
    for coupling in plan.couplings.cores:
        place, islands = (coupling.site, coupling.phase), dict[str, Joined]()
        for island in plan.parts:
            if (island.site, island.phase) == place:
                islands[island.slot] = joined.get(island.name) or _joined(instance, plan, island)
        here = {island.slot for island in parts if (island.site, island.phase) == place}
        for workload, cable in _into_core(instance, coupling, islands) if here else ():
            if workload in here:
                yield cable


def _last(plan: Plan) -> Iterator[Part]:
    """What stands in the end: of parts that grow the last."""
    for part in plan.parts:
        if part is last_of_slot(plan, part):
            yield part


def _joined(instance: Instance, plan: Plan, part: Part, *, several: bool = False) -> Joined:
    """A part where it stands."""
    network = part_network(instance, plan, "cabling", part.name)
    spots = Spots.of(instance, plan, part, network)
    return Joined(network=network, spots=spots, prefix=f"{part.name}:" if several else "")


def _into_core(
    instance: Instance, coupling: SharedCore, islands: Mapping[str, Joined]
) -> Iterator[tuple[str, Cable]]:
    """The cables into a core, each with the workload of its island."""
    core, modules = coupling.core, count()
    for links in core.islands:
        joined = islands[links.workload]
        question, family = joined.network.question, joined.network.family
        of_module, ports = (
            core_links_of_module(question),
            DevicePorts(family, joined.network.uplinks),
        )
        each, number, module = family.core_ports if family.tiers else links.links, 0, 0
        for start in _starts(instance, joined, links.workload, of_module):
            ends = _ends(question, family, start.length_m)
            for at in range(each):
                if number % of_module == 0:
                    module = next(modules)
                device = f"{coupling.name}:core/{module % core.switches}", core.switch.name
                cage, number = module // core.switches, number + 1
                yield (
                    links.workload,
                    Cable(
                        label=f"{joined.prefix}core-{number:06}",
                        level=family.tiers + 1,
                        gbit_s=family.link_gbit_s,
                        kind=kind_of(ends),
                        length_m=start.length_m,
                        reach_m=ends.reach_m,
                        lower=_lower(joined, ports, start, at, ends),
                        upper=end_in_cage(device, cage, number - 1, ends.above, of_module, None),
                    ),
                )


def _starts(instance: Instance, joined: Joined, workload: str, of_module: int) -> Iterator[_Start]:
    """Where links of an island start, those that come first and are the longest before others, as
    they fill modules of the core.
    """
    family, spots = joined.network.family, joined.spots
    rows, bay = instance.network.hall, bay_of(instance, workload)
    if not family.tiers:
        known = family.hb.racks is not None
        length_m = int(to_core_m(rows, _lone_spot(family), bay)) if known else None
        yield _Start(leaf=None, length_m=length_m, rack=None)
        return
    graph = whole_graph(family, joined.network.uplinks)
    leaves = [name for name, data in graph.nodes(data=True) if data["level"] == 1]
    if spots is None:
        yield from (_Start(leaf=leaf, length_m=None, rack=None) for leaf in leaves)
        return
    numbers = np.array([spots.becomes[int(leaf.rsplit("/", 1)[1])] for leaf in leaves])
    at, waves = spots.placing.spots[0][numbers], wave_of_leaves(spots.placing)[numbers]
    ways_m = np.asarray(to_core_m(rows, at, bay), dtype=np.int64)
    bought_m = ways_m
    if family.core_cables:
        bought_m = needed_m(ways_m, waves, family.core_ports, 1, of_module)
    for n in np.lexsort((-ways_m, waves)).tolist():
        rack = f"{joined.prefix}{rack_name(spots.placing.hall, int(at[n]))}"
        yield _Start(leaf=leaves[n], length_m=int(bought_m[n]), rack=rack)


def _lone_spot(family: Family) -> int:
    """The rack of a domain that stands alone, the middle one of several."""
    return int(max(0.0, (family.hb.racks or 0.0) - 1) / 2)


def _ends(question: Instance, family: Family, length_m: int | None) -> LinkEnds:
    """The products at the ends of links of a length."""
    runs = [run.ends for run in family.core_cables if run.length_m == length_m]
    above = core_optic(question)
    assert above is not None, "links lead into a core"
    return next(iter(runs), LinkEnds(family.core_end or above, above))


def _lower(joined: Joined, ports: DevicePorts, start: _Start, at: int, ends: LinkEnds) -> CableEnd:
    """The end of a cable at a leaf, or at a NIC of a domain alone, of which it is so many-th."""
    family, prefix = joined.network.family, joined.prefix
    carried = family.core_links_of_module
    if start.leaf is None:
        nic, cage = divmod(at, family.nic.cages)
        name = f"core/nic{nic}" + (f"/{cage + 1}" if family.nic.cages > 1 else "")
        device = f"{prefix}hb/0", family.hb.name
        return CableEnd(*device, name, name, ends.below.name, start.rack)
    device = f"{prefix}{start.leaf}", family.switch.name
    cage = ports.cages_of_leaf + at // carried
    return end_in_cage(device, cage, at, ends.below, carried, start.rack)
