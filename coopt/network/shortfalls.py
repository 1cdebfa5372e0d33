"""Where no network joins the GPUs: which switch of the nearest one has too few ports
(docs/network.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from coopt.instance.catalog import ports_of_modules
from coopt.instance.hardware import Switch, mate
from coopt.instance.schema import Instance, SwitchedKind
from coopt.instance.texts import counted
from coopt.network.cores import links_to_core
from coopt.network.filling import EndPoints, wirings
from coopt.network.space import Space

ENOUGH = 10**9
"""Ports of a switch that is in no wiring's way."""


@dataclass(frozen=True, kw_only=True)
class Shortfall:
    """A network that lacks ports: a switch of a tier would take so many for `needs`, and has fewer,
    of its `radix` those that its cages serve.
    """

    fabric: SwitchedKind
    hb: str
    switch: str
    tier: int
    takes: int
    has: int
    radix: int
    needs: str

    def __str__(self) -> str:
        return (
            f"even the network closest to fitting ({self.fabric} with {self.hb}) needs"
            f" {counted(self.takes, 'port')} on a tier-{self.tier} switch, one for each"
            f" {self.needs}, but {self.switch} has only {self.has:,}"
            + f" of its {self.radix:,} with the listed optics"
            * (self.has < self.radix)
        )


def nearest_shortfall(instance: Instance) -> Shortfall | None:
    """The network that lacks the smallest part of the ports it would take; None where ports are not
    what is short.
    """
    return min(
        _shortfalls(instance), key=lambda shortfall: shortfall.takes / shortfall.has, default=None
    )


def _shortfalls(instance: Instance) -> Iterator[Shortfall]:
    space = Space(instance=instance)
    for (gpus, hb, domains), nic_option in product(space.all_sites(), space.nic_options):
        for fabric in (
            instance.network.switched
            if domains > 1 and nic_option.fits(hb.size, gpus, domains)
            else ()
        ):
            links = -(-links_to_core(instance, gpus) // nic_option.nic_planes)
            rails = hb.size * nic_option.nics_per_gpu // nic_option.gpus_per_nic
            ends = EndPoints(
                fabric=fabric,
                domains=domains,
                rails=rails,
                links=links,
                nic_planes=nic_option.nic_planes,
            )
            for top_switch in _top_switches(instance, nic_option.switch):
                yield from _port_shortfalls(instance, hb.name, ends, nic_option.switch, top_switch)


def _top_switches(instance: Instance, leaf: Switch) -> Iterator[Switch]:
    """The switches that may stand above a leaf, one product on all tiers."""
    yield leaf
    if instance.network.tier_switches == "any":
        ways = (way for way in instance.network.switch_modes if way.port_gbit_s == leaf.port_gbit_s)
        yield from (way for way in ways if way != leaf and mate(way, leaf))


def _port_shortfalls(
    instance: Instance, hb: str, ends: EndPoints, leaf: Switch, top: Switch
) -> Iterator[Shortfall]:
    """What a switch of the last tier that there may be would take, where its ports were the only
    ones too few.
    """
    network, ports, has = instance.network, _ports(instance, leaf), _ports(instance, top)
    # What can be wired lacks nothing.
    if next(wirings(ends, ports, network, above=(has, has)), None) is not None:
        return
    last_tier = network.max_tiers
    # Only the last tier is given what it has: a shortage that is left is then one of its ports.
    enough = {1: None, 2: (ENOUGH, ENOUGH), 3: (has, ENOUGH)}[last_tier]
    ways = [
        wiring
        for wiring in wirings(ends, ports, network, above=enough)
        if wiring.tiers == last_tier
    ]
    if last_tier == 1:
        takes, needs, has = ends.of_a_plane, "end point", ports
    elif not ways:
        return
    elif last_tier == 2:
        takes, needs = min(wiring.leaves for wiring in ways), "leaf"
    else:
        takes, needs = min(wiring.pods.count for wiring in ways if wiring.pods), "pod"
    if takes > has:  # links into a core may take what is left
        box = leaf if last_tier == 1 else top
        yield Shortfall(
            fabric=ends.fabric,
            hb=hb,
            switch=box.name,
            tier=last_tier,
            takes=takes,
            has=has,
            radix=box.radix,
            needs=needs,
        )


def _ports(instance: Instance, switch: Switch) -> int:
    """The ports that a switch has; where cages are kept, those that some listed module serves."""
    if not instance.network.keeps_cages:
        return switch.radix
    max_links = max(
        (optic.links_of(switch.port_gbit_s) for optic in instance.network.optics), default=1
    )
    return ports_of_modules(switch, max(max_links, 1))
