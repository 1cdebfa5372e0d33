"""Islands as rows of arrays: their components and their units of each product."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from coopt.columns.islands.shapes import RowArrays, Shapes, Sites, Wirings, wirings_of
from coopt.instance.hardware import Nic, Optic, Switch
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.network.family import Family, LinkEnds, NicOption
from coopt.network.optics import (
    Levels,
    core_links_of_module,
    core_optic,
    core_switch,
    links_to_core,
    optic_choices,
)
from coopt.network.parts import PricedProduct, priced_products
from coopt.network.space import Parts, Space, outages_of
from coopt.perf.mapping import Bools, Floats, Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Islands(RowArrays):
    """Islands, one per row; HB domain, fabric, NIC and switch mode are indices into lists.

    `wiring` is the index of an island's wiring among those of its end points, and `optics` that of
    its optics among the choices of its NIC. `units` (n, products) counts each product. `core_links`
    lead into a core shared by all islands.
    """

    gpus: Ints
    hb: Ints
    domains: Ints
    fabric: Ints
    nic: Ints
    nics_per_gpu: Ints
    switch: Ints
    optics: Ints
    wiring: Ints
    uplinks: Ints
    core_links: Ints
    units: Floats

    def followed_by(self, islands: Islands) -> Islands:
        """Append other islands."""
        pairs = {f.name: (getattr(self, f.name), getattr(islands, f.name)) for f in fields(self)}
        return Islands(**{name: np.concatenate(pair) for name, pair in pairs.items()})


@dataclass(frozen=True, kw_only=True, eq=False)
class Builds:
    """Network shapes with their components (n,): a NIC, a switch mode, and a choice of the NIC's
    optics.

    The first of equally good builds is preferred: those whose rails are joined above the leaves
    come first.
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
        """Select rows."""
        parts = {name: getattr(self, name)[rows] for name in ("shape", "nic", "switch", "optics")}
        return replace(self, **parts)

    @property
    def minimum_uplinks(self) -> Ints:
        """Minimum number of uplinks that each build allows (n,)."""
        return np.where(self.shapes.down > 0, self.shapes.min_uplinks, 0)[self.shape]


@dataclass(frozen=True, kw_only=True)
class OpticChoice:
    """One optic per level; in networks with fewer than `tiers` tiers the choice equals an earlier
    one.
    """

    levels: tuple[Optic, ...]
    tiers: int


@dataclass(frozen=True, kw_only=True)
class Market:
    """Components that an instance offers for islands; `measures` are the objectives that optics are
    compared by, if given.
    """

    instance: Instance
    measures: tuple[ObjectiveKind, ...] | None = None

    @cached_property
    def space(self) -> Space:
        """The network families of the instance."""
        return Space(instance=self.instance, measures=self.measures)

    @cached_property
    def products(self) -> tuple[PricedProduct, ...]:
        """The products, in the order in which islands count their units."""
        return priced_products(self.instance)

    @cached_property
    def place(self) -> dict[tuple[str, str], int]:
        """Index of each product by kind and name."""
        return {(item.kind, item.name): p for p, item in enumerate(self.products)}

    @cached_property
    def sizes(self) -> Ints:
        """Number of GPUs in a domain, per HB domain."""
        return np.array([hb.size for hb in self.instance.network.hb_domains])

    @cached_property
    def optics(self) -> list[list[OpticChoice]]:
        """Choices of optics for each NIC, as far up as one reaches; empty where none joins even two
        domains.
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
        """The switch of the core that all islands are connected to."""
        return core_switch(self.instance)

    def core_optics(self, units: Floats, links: Ints) -> None:
        """Add the minimum number of optics of links into the core to `units`.

        They are needed at both ends, or at the upper end where each end has optics of its own.
        """
        optic = core_optic(self.instance)
        if optic is not None:
            optics_per_link = 1 / core_links_of_module(self.instance) if self.space.own_ends else 2
            units[:, self.place["optics", optic.name]] += optics_per_link * links

    def least_links(self, gpus: Ints) -> Ints:
        """Minimum number of links into the core for numbers of GPUs (n,)."""
        if self.core is None:
            return np.zeros_like(gpus)
        sizes, position = np.unique(gpus, return_inverse=True)
        links = [links_to_core(self.instance, size) for size in sizes.tolist()]
        return np.array(links, dtype=np.int64)[position.reshape(-1)]

    def no_islands(self) -> Islands:
        """Return arrays without an island."""
        no_numbers = np.zeros(0, dtype=np.int64)
        columns: dict[str, Any] = dict.fromkeys((f.name for f in fields(Islands)), no_numbers)
        return Islands(**columns | {"units": np.zeros((0, len(self.products)))})

    def pairs(self, radix: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield pairs of NIC and switch whose rates agree, with each other and with the core, and
        that an optic can connect.
        """
        network = self.instance.network
        for i, nic in enumerate(network.nics):
            if self.core is not None and self.core.port_gbit_s != nic.gbit_s:
                continue
            for s, switch in enumerate(network.switch_modes):
                mates = 1 in nic.ports and nic.gbit_s == switch.port_gbit_s
                if mates and radix in (None, switch.radix) and self.optics[i]:
                    yield i, s

    def units_of_gpus(self, sites: Sites) -> Floats:
        """Units of GPUs and HB domains, without a network (n, products)."""
        include, network = self.instance.objective.include, self.instance.network
        units = np.zeros((len(sites), len(self.products)))
        installed = sites.domains * self.sizes[sites.hb]
        hb = np.array([self.place["hb", domain.name] for domain in network.hb_domains])[sites.hb]
        units[np.arange(len(sites)), hb] = installed
        units[:, -1] = sites.gpus * ("gpu" in include) + (installed - sites.gpus) * (
            "hb" in include
        )
        return units

    def least_units(self, sites: Sites, nic_option: NicOption, optics: LinkEnds | None) -> Floats:
        """Lower bound on the units of any network with a NIC option: NICs, and for their links
        switch ports and optics at both ends.

        Links into the core need ports and optics too; a single domain has NICs for them but no
        switch.
        """
        units = self.units_of_gpus(sites)
        is_networked, links = sites.domains > 1, self.least_links(sites.gpus)
        nics = np.where(
            is_networked,
            sites.domains
            * self.sizes[sites.hb]
            * nic_option.nics_per_gpu
            // nic_option.gpus_per_nic,
            0,
        )
        ends = nics * nic_option.nic_planes
        units[:, self.place["nic", nic_option.nic.name]] = np.where(
            is_networked, nics, -(-links // nic_option.nic.cages)
        )
        units[:, self.place["switch", nic_option.switch.name]] = -(
            -np.where(is_networked, ends + links, 0) // nic_option.switch.radix
        )
        for optic in optics or ():
            units[:, self.place["optics", optic.name]] += ends / optic.links_of(
                nic_option.nic.gbit_s / nic_option.nic_planes
            )
        self.core_optics(units, links)
        return units

    def builds(self, sites: Sites, shapes: Shapes) -> Builds:
        """Return every combination of shapes with a NIC, switches of the same rate, and optics that
        differ on its tiers.
        """
        tables = [np.zeros((5, 0), dtype=np.int64)]
        for number, (nic, switch) in enumerate(self.pairs()):
            fits = shapes.radix == self.instance.network.switch_modes[switch].radix
            for c, choice in enumerate(self.optics[nic]):
                # choices that differ only above the tiers of a network are represented by the first
                is_distinct = (shapes.tiers >= choice.tiers) & (shapes.tiers <= len(choice.levels))
                rows = np.flatnonzero(fits & is_distinct)
                tables.append(
                    np.stack([rows, *(np.full_like(rows, k) for k in (number, nic, switch, c))])
                )
        shape, number, nic, switch, optics = np.concatenate(tables, axis=1)
        rails = np.array([kind == "rail-only" for kind in self.instance.network.switched])
        rails_apart = (rails[shapes.fabric] & (shapes.tiers > 1))[shape]
        # `lexsort` sorts by its last key first
        order = np.lexsort(
            (
                shapes.site[shape],
                optics,
                number,
                shapes.wiring[shape],
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
        """Return the islands of builds with the given numbers of uplinks."""
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
        # with even bundles a spine has equally many links to each leaf; else leaves fill its ports
        spine_ports = np.where(shapes.bundle > 0, leaves * shapes.bundle, shapes.radix)
        spines = np.where(tiers == 2, planes * -(-leaves * u // spine_ports), 0)
        # docs/network.md: every pod has u aggregation switches, and each of u groups of cores one
        # switch of every pod
        upper_switches = np.where(tiers == 3, planes * u * (pods + shapes.core_group), 0)
        # one domain needs NICs for its links into the core alone
        units[at, self._places("nic", network.nics)[nic]] = np.where(tiers > 0, nics, core_links)
        units[at, self._places("switch", network.switch_modes)[switch]] = (
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
            wiring=shapes.wiring,
            uplinks=u,
            core_links=core_links,
            units=units,
        )

    def _places(self, kind: str, products: Iterable[Nic | Switch]) -> Ints:
        """Return the indices of products of a kind, in the order of a list."""
        return np.array([self.place[kind, item.name] for item in products])

    @cached_property
    def optics_of_levels(self) -> Ints:
        """Index of the product of each level for every choice of each NIC (NICs, choices, levels);
        -1 where there is none.
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
        """Return one island as the network family it belongs to."""
        network = self.instance.network
        nic = int(islands.nic[row])
        parts = Parts(
            gpus=int(islands.gpus[row]),
            hb=network.hb_domains[islands.hb[row]],
            domains=int(islands.domains[row]),
            fabric=network.switched[islands.fabric[row]],
            nic=network.nics[nic],
            nics_per_gpu=int(islands.nics_per_gpu[row]),
            switch=network.switch_modes[islands.switch[row]],
            links=links_to_core(self.instance, int(islands.gpus[row])),
            outages=outages_of(self.instance, 1),
        )
        wiring = tuple(parts.wirings(network))[islands.wiring[row]]
        optics = tuple(
            LinkEnds(optic, optic) for optic in self.optics[nic][islands.optics[row]].levels
        )
        return parts.family(network, wiring, optics)


def _choices(levels: Levels) -> Iterator[OpticChoice]:
    """Yield every combination of one optic per level; nothing without a level."""
    for optics in product(*levels) if levels else ():
        changed_tiers = (
            n
            for n, (optic, level) in enumerate(zip(optics, levels, strict=True), 1)
            if optic != level[0]
        )
        yield OpticChoice(levels=optics, tiers=max(changed_tiers, default=0))
