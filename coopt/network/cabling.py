"""Every cable of a network with the ports at both its ends, where these stand, and what it is.

Ports are those of the graph of the network: each switch takes the cables from below first, module
by module, and those up from the next cage on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

from coopt.instance.hardware import Optic
from coopt.instance.network import HallRows
from coopt.instance.schema import Instance
from coopt.instance.texts import grouped
from coopt.network.cable_runs import fans, filled_leaves
from coopt.network.family import Family, LinkEnds
from coopt.network.graphs import Graph, whole_graph
from coopt.network.halls import grown_numbers
from coopt.network.placing import Placing, placing_of, sold_m
from coopt.network.plan_networks import PartNetwork, last_of_slot, part_network
from coopt.plan.couplings import Part
from coopt.plan.schema import Plan

CableKind = Literal["copper", "AEC", "AOC", "optics"]
MOST_OF_AEC_M = 10
"""Active cables that reach farther are optical."""


class CableEnd(NamedTuple):
    """A port of a device, a `model` that one buys, and the module that is in it (a number in its
    device), with the product of that; racks are None where nobody knows how many a domain fills.
    """

    device: str
    model: str
    port: str
    module: str
    product: str
    rack: str | None


class Cable(NamedTuple):
    """A cable below a tier (1 for leaves), its rate, the length it is sold in (m), and what it is;
    `reach_m` is how far its ends reach.
    """

    label: str
    level: int
    gbit_s: float
    kind: CableKind
    length_m: int | None
    reach_m: float
    lower: CableEnd
    upper: CableEnd


@dataclass(frozen=True, kw_only=True)
class Spots:
    """Where the ends of cables are: of what a network grows into, with the number of each leaf
    there.
    """

    placing: Placing
    becomes: Sequence[int]
    pods: dict[int, int]

    @classmethod
    def of(cls, instance: Instance, plan: Plan, part: Part, network: PartNetwork) -> Spots | None:
        """The spots of a part; None where nobody knows its racks."""
        family = network.family
        if family.hb.racks is None or not family.tiers:
            return None
        last = last_of_slot(plan, part)
        end = network if last is part else part_network(instance, plan, "cabling", last.name)
        placing = placing_of(end.question, end.family, end.uplinks)
        becomes = None if end is network else grown_numbers(family, end.family)
        return cls.in_hall(placing, becomes)

    @classmethod
    def in_hall(cls, placing: Placing, becomes: Sequence[int] | None = None) -> Spots:
        """The spots of a placing; leaves are its own where left out."""
        chain = placing.chain
        pods = {leaf: n for n, (_, of) in enumerate(chain.each_pod()) for leaf in of}
        return cls(placing=placing, becomes=becomes or range(chain.leaves), pods=pods)

    def spot(self, node: dict[str, Any], name: str, pod_leaf: int) -> int:
        """The spot of a node; of a switch above a leaf that is told."""
        if node["kind"] == "nic":
            return self.placing.switch_racks.spot(self.placing.hall.rack_of(node["domain"]))
        if node["level"] == 1:
            return self.placing.spot(0, self.becomes[int(name.rsplit("/", 1)[1])])
        return self.placing.spot(
            node["level"] - 1, self.pods[pod_leaf] if node["level"] == 2 else 0
        )


def cables(
    family: Family, uplinks: int, spots: Spots | None = None, prefix: str = ""
) -> Iterator[Cable]:
    """The cables of a network, tier by tier from the leaves up."""
    graph = whole_graph(family, uplinks)
    below: dict[str, int] = {}  # a leaf below each switch, which says where its pod stands
    ports = DevicePorts(family, uplinks)
    laying = _Laying(family, spots, graph)
    for level in range(1, family.tiers + 1):
        number = 0
        edges = []
        for a, b, edge in graph.edges(data=True):
            if edge["level"] != level:
                continue
            low, high = sorted((a, b), key=lambda node: graph.nodes[node]["level"])
            leaf = int(low.rsplit("/", 1)[1]) if level == 2 else below.get(low, 0)
            if level == 2:
                below.setdefault(high, leaf)
            places = [
                None if spots is None else spots.spot(graph.nodes[node], node, leaf)
                for node in (low, high)
            ]
            length_m = None
            if spots is not None and places[0] is not None and places[1] is not None:
                length_m = int(sold_m(spots.placing.hall.cable_m(*places)))
            edges.append((low, high, edge["links"], leaf, places, length_m))
        if family.cables:  # modules are filled wave by wave, from the longest cable on
            edges.sort(
                key=lambda edge: (
                    laying.wave(level, edge[3], graph.nodes[edge[0]].get("domain", 0)),
                    -(edge[-1] or 0),
                    edge[3] if level > 1 else 0,
                )
            )
        for low, high, links, leaf, places, length_m in edges:
            racks = [
                None
                if spots is None or place is None
                else f"{prefix}{rack_name(spots.placing.hall, place)}"
                for place in places
            ]
            for _ in range(links):
                number += 1
                ends, bought_m = laying.next(level, high, leaf, length_m)
                yield Cable(
                    label=f"{prefix}{level}-{number:06}",
                    level=level,
                    gbit_s=family.link_gbit_s,
                    kind=kind_of(ends),
                    length_m=bought_m,
                    reach_m=ends.reach_m,
                    lower=ports.lower(prefix, low, level, ends.below, racks[0]),
                    upper=ports.upper(prefix, high, level, ends.above, racks[1]),
                )


class _Laying:
    """The ends of each cable and the length it is bought in, taken one after the other."""

    def __init__(self, family: Family, spots: Spots | None, graph: Graph) -> None:
        self._family, self._spots, self._graph = family, spots, graph
        self._taken, self._fans = Counter[str](), dict[tuple[int, int], tuple[int, int]]()
        self._modules = cache(self._modules_of_leaves)
        if family.cables and spots is not None:
            for fan in fans(spots.placing, family.per_module):
                rows = zip(fan.numbers, fan.waves.tolist(), fan.needs_m.tolist(), strict=True)
                self._fans |= {(fan.level, at): (wave, m) for at, wave, m in rows}

    def wave(self, level: int, leaf: int, domain: int) -> int:
        """The wave with which a cable comes, from a domain, a leaf or a pod with this leaf."""
        if level == 1:
            return bisect_right(self._family.waves, domain)
        return self._fan(level, leaf)[0]

    def _fan(self, level: int, leaf: int) -> tuple[int, int]:
        """The wave of a leaf, or of its pod, and the length that its cables up need (m)."""
        assert self._spots is not None, "cables have lengths where there is a hall"
        in_end = self._spots.becomes[leaf]
        return self._fans[level - 1, in_end if level == 2 else self._spots.pods[in_end]]

    def _modules_of_leaves(self, together: int) -> dict[int, list[int]]:
        """The lengths that the modules of each leaf need (m), which as many networks share."""
        assert self._spots is not None, "cables have lengths where there is a hall"
        filled = filled_leaves(self._spots.placing, together, self._family.per_module[0][1])
        firsts = filled.first.tolist()
        return grouped((int(filled.leaf[at]), int(filled.needs_m[at])) for at in firsts)

    def next(
        self, level: int, high: str, leaf: int, length_m: int | None
    ) -> tuple[LinkEnds, int | None]:
        """Those of the next cable into a switch, from a leaf or a pod with this leaf."""
        family = self._family
        if not family.cables or length_m is None:
            return family.optics[level - 1], length_m
        if level == 1:
            assert self._spots is not None, "cables have lengths where there is a hall"
            links, one_tier = self._graph.degree(high, weight="links"), family.tiers == 1
            modules = self._modules(links // family.down if one_tier else 1)
            of_leaf = modules[self._spots.becomes[int(high.rsplit("/", 1)[1])]]
            needed = of_leaf[self._taken[high] // family.per_module[0][1]]
            self._taken[high] += 1
        else:
            _, needed = self._fan(level, leaf)
        run = next(run for run in family.cables[level - 1] if run.length_m == needed)
        return run.ends, run.length_m


def rack_name(hall: HallRows, rack: int) -> str:
    """`R02-05`: the row of a rack and its place there."""
    row, place = divmod(rack, hall.racks_per_row)
    return f"{row_name(row)}-{place_name(place)}"


def row_name(row: int) -> str:
    """`R02` of the second row, which is number 1."""
    return f"R{row + 1:02}"


def place_name(place: int) -> str:
    """`05` of the fifth place of a row, which is number 4."""
    return f"{place + 1:02}"


def kind_of(ends: LinkEnds) -> CableKind:
    """What a cable is, by the products at its ends."""
    if not ends.below.whole_cable:
        return "optics"
    if ends.below.w == 0:
        return "copper"
    return "AEC" if ends.below.reach_m <= MOST_OF_AEC_M else "AOC"


class DevicePorts:
    """The ports of all devices, taken one after the other."""

    def __init__(self, family: Family, uplinks: int) -> None:
        self._family, self._taken = family, Counter[tuple[str, int, str]]()
        down_ports = [level.down_ports for level in family.chain(uplinks).levels]
        together = family.planes_together if family.tiers == 1 else 1
        of_module = [above for _, above in family.per_module]
        # cages of a switch of each tier for cables down, after which those up begin
        self._cages = [
            -(-ports * together // count)
            for ports, count in zip(down_ports, of_module, strict=True)
        ]
        # cages of a leaf for its own network, behind which links into a core begin
        up = -(-uplinks // family.per_module[1][0]) if family.tiers > 1 else 0
        self.cages_of_leaf = sum(self._cages[:1]) + up

    def lower(self, prefix: str, node: str, level: int, optic: Optic, rack: str | None) -> CableEnd:
        """The next port up of a switch, or of a NIC."""
        count = optic.links_of(self._family.link_gbit_s)
        number = self._next(node, level, "up")
        if level > 1:
            device = f"{prefix}{node}", self._family.switches[level - 2].name
            return end_in_cage(
                device, self._cages[level - 2] + number // count, number, optic, count, rack
            )
        _, domain, rank, adapter = node.split("/")
        nic, of_cage = f"gpu{rank}/nic{adapter}", self._family.ports_of_cage
        one_port = self._family.nic_planes * self._family.ports_in_plane == 1
        module = f"{nic}/{number // of_cage}/{number % of_cage // count}"
        port = nic if one_port else f"{nic}/{number + 1}"
        device = f"{prefix}hb/{domain}", self._family.hb.name
        return CableEnd(*device, port, module, optic.name, rack)

    def upper(self, prefix: str, node: str, level: int, optic: Optic, rack: str | None) -> CableEnd:
        """The next port down of a switch."""
        count = optic.links_of(self._family.link_gbit_s)
        number = self._next(node, level, "down")
        device = f"{prefix}{node}", self._family.switches[level - 1].name
        return end_in_cage(device, number // count, number, optic, count, rack)

    def _next(self, node: str, level: int, side: str) -> int:
        self._taken[node, level, side] += 1
        return self._taken[node, level, side] - 1


def end_in_cage(
    device: tuple[str, str], cage: int, number: int, optic: Optic, count: int, rack: str | None
) -> CableEnd:
    """The end of a cable in a cage of a switch (from 0), of whose module it is one of `count`."""
    name = str(cage + 1)
    port = name if count == 1 else f"{name}/{number % count + 1}"
    return CableEnd(*device, port, name, optic.name, rack)
