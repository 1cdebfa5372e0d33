"""What a fabric is made of and what that costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx

from coopt.instance.catalog import find
from coopt.instance.errors import InstanceError
from coopt.instance.hardware import Nic, Optic, Panel, Switch
from coopt.network.direct.wires import domains_of, edge_name, link_count, ports_used, switches_of


@dataclass(frozen=True, kw_only=True)
class FabricLine:
    """A line of a bill: `usd` and `w` of all `count` items."""

    item: str
    kind: str
    count: int
    unit_usd: float
    unit_w: float

    @property
    def usd(self) -> float:
        """Price of the line (USD)."""
        return self.count * self.unit_usd

    @property
    def w(self) -> float:
        """Power of the line (W)."""
        return self.count * self.unit_w


@dataclass(frozen=True, kw_only=True)
class FabricBill:
    """The lines of the bill of a fabric; no line has a count of 0."""

    lines: tuple[FabricLine, ...]

    @property
    def usd(self) -> float:
        """Price of everything (USD)."""
        return math.fsum(line.usd for line in self.lines)

    @property
    def w(self) -> float:
        """Power of everything (W)."""
        return math.fsum(line.w for line in self.lines)


def fabric_bill(
    graph: nx.Graph,
    *,
    nic: Nic | None = None,
    optic: Optic | None = None,
    panel: Panel | None = None,
    switch: Switch | None = None,
) -> FabricBill:
    """NICs, transceivers, panel ports and switches of a fabric; what is None is not bought.

    Every link has two transceivers, and two panel ports where it is patched. A domain has a NIC for each link.

    Raises
    ------
    InstanceError
        When a part does not run at the rate of a link, or a node has more links than the switch has ports.
    """
    _check_rates(graph, {part.name: part.gbit_s for part in (nic, optic) if part is not None}, switch)
    links = link_count(graph)
    lines = []
    if nic is not None:
        nics = sum(ports_used(graph, domain) for domain in domains_of(graph))
        lines.append(FabricLine(item=nic.name, kind="nic", count=nics, unit_usd=nic.usd, unit_w=nic.w))
    if switch is not None:
        count = len(switches_of(graph))
        lines.append(FabricLine(item=switch.name, kind="switch", count=count, unit_usd=switch.usd, unit_w=switch.w))
    if optic is not None:
        lines.append(FabricLine(item=optic.name, kind="optics", count=2 * links, unit_usd=optic.usd, unit_w=optic.w))
    if panel is not None:
        unit_usd, unit_w = panel.usd_per_port, panel.w_per_port
        lines.append(FabricLine(item=panel.name, kind="panel", count=2 * links, unit_usd=unit_usd, unit_w=unit_w))
    return FabricBill(lines=tuple(line for line in lines if line.count))


def catalog_parts(names: Mapping[str, str | None]) -> dict[str, Any]:
    """Catalog entries for `fabric_bill`: {"nic": "cx7-400g", "panel": None} as {"nic": Nic(...)}.

    Raises
    ------
    InstanceError
        When the catalog has no such entry; the message names the closest.
    """
    found = {}
    for kind, name in names.items():
        if name is not None:
            try:
                found[kind] = find(kind, name)
            except ValueError as error:
                raise InstanceError(f"--{kind} {name}: {str(error).removesuffix(' or an inline table')}") from None
    return found


def _check_rates(graph: nx.Graph, rates: dict[str, float], switch: Switch | None) -> None:
    for one, other, data in graph.edges(data=True):
        kinds = {graph.nodes[one]["kind"], graph.nodes[other]["kind"]}
        switched = {switch.name: switch.port_gbit_s} if switch is not None and "switch" in kinds else {}
        for name, rate in (rates | switched).items():
            if rate != data["gbit_s"]:
                raise InstanceError(
                    f"{graph.graph['name']}: edge {edge_name(one, other)} runs at {data['gbit_s']:g} Gbit/s and "
                    f"{name!r} at {rate:g}, needs parts of one rate"
                )
    if switch is not None:
        for node in switches_of(graph):
            if ports_used(graph, node) > switch.radix:
                raise InstanceError(
                    f"{graph.graph['name']}: switch {node!r} has {ports_used(graph, node)} links and {switch.name!r} "
                    f"{switch.radix} ports, needs a larger switch"
                )
