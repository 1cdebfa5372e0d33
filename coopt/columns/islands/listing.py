"""Islands as rows of arrays: what each is built from, and how many units of each product it
takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product

import numpy as np

from coopt.columns.islands.shapes import Shapes, Sites, Wirings, wirings_of
from coopt.instance.hardware import Nic, Optic, Switch
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.network.core import core_links_of_module, core_optic, core_switch, links_to_core
from coopt.network.family import Family, Gear, LinkEnds
from coopt.network.optics import Levels, optic_choices
from coopt.network.products import PricedProduct, priced_products
from coopt.network.space import Parts, Space, outages_of
from coopt.perf.mapping import Bools, Floats, Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Islands:
    """Islands, one a row; HB domain, fabric, NIC and way to run a switch by their places in lists.

    `turn` says which of the wirings of its end points an island has, `optics` which of the choices
    of its NIC; `units` (n, products) counts each product. `core_links` lead into a core shared by
    all.
    """

    gpus: Ints
    hb: Ints
    domains: Ints
    fabric: Ints
    nic: Ints
    nics_per_gpu: Ints
    switch: Ints
    optics: Ints
    turn: Ints
    uplinks: Ints
    core_links: Ints
    units: Floats

    def __len__(self) -> int:
        return len(self.gpus)

    def take(self, rows: Ints | Bools) -> Islands:
        """The chosen rows."""
        return replace(self, **{f.name: getattr(self, f.name)[rows] for f in fields(self)})

    def followed_by(self, islands: Islands) -> Islands:
        """These islands and then others."""
        pairs = {f.name: (getattr(self, f.name), getattr(islands, f.name)) for f in fields(self)}
        return Islands(**{name: np.concatenate(pair) for name, pair in pairs.items()})


@dataclass(frozen=True, kw_only=True, eq=False)
class Builds:
    """Shapes of networks with what each is built from (n,): a NIC, a way to run a switch, a choice
    of the NIC's optics.

    Of equal ones the first is preferred: those whose rails meet above the leaves.
    """

    sites: Sites
    shapes: Shapes
    shape: Ints
    nic: Ints
    switch: Ints
    optics: Ints

    def __len__(self) -> int:
        return len(self.shape)

    def take(self, rows: Ints | Bools) -> Builds:
        """The chosen rows."""
        parts = {name: getattr(self, name)[rows] for name in ("shape", "nic", "switch", "optics")}
        return replace(self, **parts)

    @property
    def least_uplinks(self) -> Ints:
        """The fewest uplinks that each may have (n,)."""
        return np.where(self.shapes.down > 0, self.shapes.fewest_uplinks, 0)[self.shape]


@dataclass(frozen=True, kw_only=True)
class OpticChoice:
    """An optic for each level; below `tiers` of them it is the same as another choice."""

    levels: tuple[Optic, ...]
    tiers: int


@dataclass(frozen=True, kw_only=True)
class Market:
    """What an instance lets islands be built from; optics are compared by `measures` where these
    are given.
    """

    instance: Instance
    measures: tuple[ObjectiveKind, ...] | None = None

    @cached_property
    def space(self) -> Space:
        """The families of the instance."""
        return Space(instance=self.instance, measures=self.measures)

    @cached_property
    def goods(self) -> tuple[PricedProduct, ...]:
        """The products; units of islands count them in this order."""
        return priced_products(self.instance)

    @cached_property
    def place(self) -> dict[tuple[str, str], int]:
        """The place of each product by kind and name."""
        return {(good.kind, good.name): p for p, good in enumerate(self.goods)}

    @cached_property
    def sizes(self) -> Ints:
        """GPUs in a domain of each HB domain."""
        return np.array([hb.size for hb in self.instance.network.hb_domains])

    @cached_property
    def optics(self) -> list[list[OpticChoice]]:
        """For each NIC the choices of optics, as far up as one reaches; none where none joins even
        two domains.
        """
        return [
            list(_choices(optic_choices(self.instance, nic))) for nic in self.instance.network.nics
        ]

    @cached_property
    def wirings(self) -> Wirings:
        """The wirings of end points."""
        return wirings_of(self.instance.network)

    @cached_property
    def core(self) -> Switch | None:
        """The switch of the core that all islands join."""
        return core_switch(self.instance)

    def core_optics(self, units: Floats, links: Ints) -> None:
        """Count the optics of links into the core at least: at both ends, or where ends have their
        own at the upper.
        """
        optic = core_optic(self.instance)
        if optic is not None:
            optics_per_link = 1 / core_links_of_module(self.instance) if self.space.own_ends else 2
            units[:, self.place["optics", optic.name]] += optics_per_link * links

    def least_links(self, gpus: Ints) -> Ints:
        """Links into the core that numbers of GPUs need at least (n,)."""
        if self.core is None:
            return np.zeros_like(gpus)
        sizes, position = np.unique(gpus, return_inverse=True)
        links = [links_to_core(self.instance, size) for size in sizes.tolist()]
        return np.array(links, dtype=np.int64)[position.reshape(-1)]

    def no_islands(self) -> Islands:
        """Arrays without an island."""
        names = [f.name for f in fields(Islands) if f.name != "units"]
        columns = {name: np.zeros(0, dtype=np.int64) for name in names}
        return Islands(**columns, units=np.zeros((0, len(self.goods))))

    def pairs(self, radix: int | None = None) -> Iterator[tuple[int, int]]:
        """NICs and switches whose rates agree, with each other and with the core, and that an optic
        joins.
        """
        network = self.instance.network
        for i, nic in enumerate(network.nics):
            if self.core is not None and self.core.port_gbit_s != nic.gbit_s:
                continue
            for s, switch in enumerate(network.switch_ways):
                mates = 1 in nic.ports and nic.gbit_s == switch.port_gbit_s
                if mates and radix in (None, switch.radix) and self.optics[i]:
                    yield i, s

    def units_of_gpus(self, sites: Sites) -> Floats:
        """GPUs and HB domains alone, without a network (n, products)."""
        include, network = self.instance.objective.include, self.instance.network
        units = np.zeros((len(sites), len(self.goods)))
        installed = sites.domains * self.sizes[sites.hb]
        hb = np.array([self.place["hb", domain.name] for domain in network.hb_domains])[sites.hb]
        units[np.arange(len(sites)), hb] = installed
        units[:, -1] = sites.gpus * ("gpu" in include) + (installed - sites.gpus) * (
            "hb" in include
        )
        return units

    def least_units(self, sites: Sites, gear: Gear, optics: LinkEnds | None) -> Floats:
        """What any network of a gear takes at least: NICs, and for their links switch ports and
        optics at both ends.

        Links into the core need ports and optics as well; one domain has NICs for them and no
        switch.
        """
        units = self.units_of_gpus(sites)
        is_networked, links = sites.domains > 1, self.least_links(sites.gpus)
        nics = np.where(
            is_networked,
            sites.domains * self.sizes[sites.hb] * gear.nics_per_gpu // gear.gpus_per_nic,
            0,
        )
        ends = nics * gear.nic_planes
        units[:, self.place["nic", gear.nic.name]] = np.where(
            is_networked, nics, -(-links // gear.nic.cages)
        )
        units[:, self.place["switch", gear.switch.name]] = -(
            -np.where(is_networked, ends + links, 0) // gear.switch.radix
        )
        for optic in optics or ():
            units[:, self.place["optics", optic.name]] += ends / optic.links_of(
                gear.nic.gbit_s / gear.nic_planes
            )
        self.core_optics(units, links)
        return units

    def builds(self, sites: Sites, shapes: Shapes) -> Builds:
        """Every way to build shapes from a NIC, switches whose rates agree, and optics, if they
        differ on its tiers.
        """
        tables = [np.zeros((5, 0), dtype=np.int64)]
        for number, (nic, switch) in enumerate(self.pairs()):
            fits = shapes.radix == self.instance.network.switch_ways[switch].radix
            for c, choice in enumerate(self.optics[nic]):
                # of optics that differ only above the tiers that a network has, the first choice
                # stands for all
                is_distinct = (shapes.tiers >= choice.tiers) & (shapes.tiers <= len(choice.levels))
                rows = np.flatnonzero(fits & is_distinct)
                tables.append(
                    np.stack([rows, *(np.full_like(rows, k) for k in (number, nic, switch, c))])
                )
        shape, number, nic, switch, optics = np.concatenate(tables, axis=1)
        rails = np.array([kind == "rail-only" for kind in self.instance.network.switched])
        rails_apart = (rails[shapes.fabric] & (shapes.tiers > 1))[shape]
        # the last key counts most
        order = np.lexsort(
            (
                shapes.site[shape],
                optics,
                number,
                shapes.turn[shape],
                shapes.form[shape],
                rails_apart,
            )
        )
        return Builds(
            sites=sites,
            shapes=shapes,
            shape=shape[order],
            nic=nic[order],
            switch=switch[order],
            optics=optics[order],
        )

    def islands(self, builds: Builds, uplinks: Ints) -> Islands:
        """The islands that come of builds with that many uplinks."""
        network, sites, shapes = (
            self.instance.network,
            builds.sites,
            builds.shapes.take(builds.shape),
        )
        nic, switch, choice = builds.nic, builds.switch, builds.optics
        island_sites, u, at = sites.take(shapes.site), uplinks, np.arange(len(uplinks))
        units, tiers = self.units_of_gpus(island_sites), shapes.tiers
        planes, leaves, pods = shapes.planes, shapes.leaves, shapes.pods
        nics = (
            island_sites.domains * self.sizes[island_sites.hb] * shapes.nics_per_gpu * (tiers > 0)
        )
        core_links = shapes.core_links
        # of even bundles a spine takes as many links of each leaf; else leaves fill its ports
        spine_ports = np.where(shapes.bundle > 0, leaves * shapes.bundle, shapes.radix)
        spines = np.where(tiers == 2, planes * -(-leaves * u // spine_ports), 0)
        # docs/network.md: every pod has u aggregation switches, and each of u groups of cores one
        # switch of every pod
        upper_switches = np.where(tiers == 3, planes * u * (pods + shapes.core_group), 0)
        # one domain needs NICs for its links into the core alone
        units[at, self._places("nic", network.nics)[nic]] = np.where(tiers > 0, nics, core_links)
        units[at, self._places("switch", network.switch_ways)[switch]] = (
            shapes.chassis + spines + upper_switches
        )
        links = (
            nics,
            np.where(tiers > 1, planes * leaves * u, 0),
            planes * pods * u * shapes.pod_up,
        )
        for optic, count in zip(self.optics_of_levels[nic, choice].T, links, strict=False):
            rows = np.flatnonzero(optic >= 0)
            units[rows, optic[rows]] += 2 * count[rows]
        self.core_optics(units, core_links)
        return Islands(
            gpus=island_sites.gpus,
            hb=island_sites.hb,
            domains=island_sites.domains,
            fabric=shapes.fabric,
            nic=nic,
            nics_per_gpu=shapes.nics_per_gpu,
            switch=switch,
            optics=choice,
            turn=shapes.turn,
            uplinks=u,
            core_links=core_links,
            units=units,
        )

    def _places(self, kind: str, products: Iterable[Nic | Switch]) -> Ints:
        """The places of the products of a kind, in the order of a list."""
        return np.array([self.place[kind, item.name] for item in products])

    @cached_property
    def optics_of_levels(self) -> Ints:
        """The product of each level for every choice of each NIC (NICs, choices, levels); -1 where
        there is none.
        """
        most_choices = max(map(len, self.optics), default=0)
        places = np.full(
            (len(self.optics), most_choices, len(self.instance.network.link_reach_m)), -1
        )
        for i, choices in enumerate(self.optics):
            for c, choice in enumerate(choices):
                places[i, c, : len(choice.levels)] = [
                    self.place["optics", optic.name] for optic in choice.levels
                ]
        return places

    def family(self, islands: Islands, row: int) -> Family:
        """One island as the family it belongs to."""
        network = self.instance.network
        nic = int(islands.nic[row])
        parts = Parts(
            gpus=int(islands.gpus[row]),
            hb=network.hb_domains[islands.hb[row]],
            domains=int(islands.domains[row]),
            fabric=network.switched[islands.fabric[row]],
            nic=network.nics[nic],
            nics_per_gpu=int(islands.nics_per_gpu[row]),
            switch=network.switch_ways[islands.switch[row]],
            links=links_to_core(self.instance, int(islands.gpus[row])),
            outages=outages_of(self.instance, 1),
        )
        wiring = tuple(parts.wirings(network))[islands.turn[row]]
        optics = tuple(
            LinkEnds(optic, optic) for optic in self.optics[nic][islands.optics[row]].levels
        )
        return parts.family(network, wiring, optics)


def _choices(levels: Levels) -> Iterator[OpticChoice]:
    """Every choice of one optic for each level; nothing without a level."""
    for optics in product(*levels) if levels else ():
        changed_tiers = (
            n
            for n, (optic, level) in enumerate(zip(optics, levels, strict=True), 1)
            if optic != level[0]
        )
        yield OpticChoice(levels=optics, tiers=max(changed_tiers, default=0))
