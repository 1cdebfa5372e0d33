"""Islands as rows of arrays: their components and their units of each product."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from coopt.columns.islands.shapes import (
    Box,
    RowArrays,
    Shapes,
    Sites,
    Wirings,
    wirings_of,
    wirings_on,
)
from coopt.instance.catalog import ports_of_modules
from coopt.instance.hardware import Nic, Optic, Switch
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.network.cores import (
    core_ends,
    core_links_of_module,
    core_optic,
    core_switch,
    links_to_core,
)
from coopt.network.family import Family, LinkEnds, NicOption
from coopt.network.optics import values_of
from coopt.network.parts import PricedProduct, priced_products
from coopt.network.space import (
    Parts,
    Ports,
    Space,
    by_module,
    ends_by_ports,
    is_joined,
    outages_of,
)
from coopt.perf.mapping import Bools, Floats, Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Islands(RowArrays):
    """Islands, one per row; HB domain and fabric are indices into lists.

    `wiring` is the index of an island's wiring among those of its end points on its switches, and
    `offer` that of its products. `units` (n, products) counts each product. `core_links` lead into
    a core shared by all islands.
    """

    gpus: Ints
    hb: Ints
    domains: Ints
    fabric: Ints
    nics_per_gpu: Ints
    offer: Ints
    wiring: Ints
    uplinks: Ints
    core_links: Ints
    units: Floats

    @property
    def sites(self) -> Sites:
        """The site of each."""
        return Sites(gpus=self.gpus, hb=self.hb, domains=self.domains)

    def followed_by(self, islands: Islands) -> Islands:
        """Append other islands."""
        pairs = {f.name: (getattr(self, f.name), getattr(islands, f.name)) for f in fields(self)}
        return Islands(**{name: np.concatenate(pair) for name, pair in pairs.items()})


@dataclass(frozen=True, kw_only=True, eq=False)
class Builds:
    """Network shapes with their components (n,): a NIC, and the offer with its products.

    The first of equally good builds is preferred: those whose rails are joined above the leaves
    come first.
    """

    sites: Sites
    shapes: Shapes
    shape: Ints
    nic: Ints
    offer: Ints

    def __len__(self) -> int:
        return len(self.shape)

    def take(self, rows: Ints | Bools) -> Builds:
        """Select rows."""
        parts = {name: getattr(self, name)[rows] for name in ("shape", "nic", "offer")}
        return replace(self, **parts)

    @property
    def minimum_uplinks(self) -> Ints:
        """Minimum number of uplinks that each build allows (n,)."""
        return np.where(self.shapes.down > 0, self.shapes.min_uplinks, 0)[self.shape]


class Hardware(NamedTuple):
    """A NIC and a switch, as indices into lists, with the ends of links of each tier of a network,
    on switches with ports for these; `core_end` is at the lower ends of links into a core.
    """

    nic: int
    switch: int
    levels: tuple[LinkEnds, ...]
    box: Box
    core_end: Optic | None


class Fittings(NamedTuple):
    """What networks have in any case: a NIC option, and the ends of links of their lowest tiers on
    switches with `radices` ports.
    """

    nic_option: NicOption
    levels: tuple[LinkEnds, ...]
    radices: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Equipment(RowArrays):
    """Fittings as arrays (n,): `nic`, `switch` and `optics` (n, tiers, 2) are indices of products.

    A GPU has a bandwidth of `byte_s` between domains (bytes/s). Of tiers that there may not be,
    `radices` (n, tiers) are infinite and `modules` of a link (n, tiers, 2) are 0.
    """

    byte_s: Floats
    nics_per_gpu: Ints
    gpus_per_nic: Ints
    nic_planes: Ints
    nic_cages: Ints
    nic: Ints
    switch: Ints
    radices: Floats
    optics: Ints
    modules: Floats


@dataclass(frozen=True, kw_only=True)
class Market:
    """Components that an instance offers for islands; `measures` are the objectives that optics are
    compared by, if given.
    """

    instance: Instance
    measures: tuple[ObjectiveKind, ...] | None = None

    @cached_property
    def space(self) -> Space:
        """The network families of the instance; cables that lengths choose are left to choose."""
        return Space(instance=self.instance, measures=self.measures, unlaid=True)

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

    def site_numbers(self, sites: Sites) -> Ints:
        """A number of each site of domains filled alike, in the order of `sites_of` (n,)."""
        sizes = int(self.sizes.max()) + 1
        return (sites.gpus * len(self.sizes) + sites.hb) * sizes + sites.active

    @cached_property
    def rail_only(self) -> Bools:
        """Whether the rails of each fabric are not joined above the leaves."""
        return np.array([kind == "rail-only" for kind in self.instance.network.switched])

    @cached_property
    def offers(self) -> list[Hardware]:
        """What networks may be made of: every NIC with every switch and the ends worth having."""
        return [offer for nic, switch in self._pairs() for offer in self._offers_of(nic, switch)]

    def _offers_of(self, nic: int, switch: int) -> Iterator[Hardware]:
        """Yield the offers of a NIC and a switch; none where no optic joins them."""
        network = self.instance.network
        leaf = network.switch_modes[switch]
        nic_option = NicOption(nic=network.nics[nic], nics_per_gpu=1, switch=leaf)
        chain = (leaf, leaf, leaf)
        levels = by_module(self.space.optics(nic_option), nic_option, chain)
        values = values_of(self.instance, self.measures)
        unlimited: Ports = ((1, 1), (leaf.radix,) * 3)
        for core_end in core_ends(self.instance, None, values) if levels else ():
            yield Hardware(nic, switch, (), Box(0, unlimited, 1, alone=False), core_end)
        for core_end in core_ends(self.instance, leaf, values):
            of_core = 1 if core_end is None else core_end.links_of(leaf.port_gbit_s)
            cored = of_core * (self.core is not None)
            for tiers, ports, _, choices in ends_by_ports(network, chain, levels, cored):
                for ends in choices if tiers else ():
                    in_spine = ends[1].above.links_of(leaf.port_gbit_s) if tiers == 2 else 1
                    box = Box(tiers, ports, of_core, alone=in_spine > 2)
                    yield Hardware(nic, switch, ends, box, core_end)

    @cached_property
    def boxes(self) -> dict[Box, int]:
        """The ports that switches may have, with the number of each."""
        boxes = dict.fromkeys(offer.box for offer in self.offers)
        return {box: number for number, box in enumerate(boxes)}

    @cached_property
    def wirings(self) -> Wirings:
        """The wirings of end points, which depend on no price."""
        return wirings_of(self.instance.network.unpriced)

    def may_join(self, sites: Sites) -> Bools:
        """Whether switches of each NIC option may have ports for the end points of each site (NIC
        options, sites).
        """
        network, options = self.instance.network, self.space.nic_options
        ports: dict[tuple[str, str], int] = {}
        for offer in self.offers:
            pair = network.nics[offer.nic].name, network.switch_modes[offer.switch].name
            most = math.prod(offer.box.ports[1][: offer.box.tiers])
            ports[pair] = max(ports.get(pair, 1), most)
        most_ports = np.array([ports.get((one.nic.name, one.switch.name), 1) for one in options])
        nics_per_gpu = np.array([option.nics_per_gpu for option in options])
        rails = np.multiply.outer(nics_per_gpu, self.sizes[sites.hb])
        # rails that lie apart have switches of their own
        ends = sites.domains * (1 if "rail-only" in network.switched else rails)
        return np.asarray((sites.domains == 1) | (ends <= most_ports[:, None]))

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

    def core_ports(self, links: Ints) -> Ints:
        """Ports of the core that links of islands take, in whole modules (n,)."""
        return _in_modules(links, core_links_of_module(self.instance))

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

    def _pairs(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of NIC and switch whose rates agree, with each other and with the core, and
        that mate.
        """
        network = self.instance.network
        for i, nic in enumerate(network.nics):
            for s, switch in enumerate(network.switch_modes):
                agrees = 1 in nic.ports and nic.gbit_s == switch.port_gbit_s
                if agrees and is_joined(network, nic, switch, self.core):
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

    @cached_property
    def nic_fittings(self) -> tuple[Ints, Equipment]:
        """What networks of each NIC option have whatever their tiers, with its index; single
        domains need no ends of links.
        """
        keeps_cages, listed = self.instance.network.keeps_cages, list[tuple[int, Fittings]]()
        for number, nic_option in enumerate(self.space.nic_options):
            switch = nic_option.switch
            for ends in self.space.ends(nic_option):
                of_module = ends.above.links_of(switch.port_gbit_s)
                radix = ports_of_modules(switch, of_module) if keeps_cages else switch.radix
                listed.append((number, Fittings(nic_option, (ends,), (radix,))))
            if not self.space.ends(nic_option):
                listed.append((number, Fittings(nic_option, (), (switch.radix,))))
        numbers = np.array([number for number, _ in listed], dtype=np.int64)
        return numbers, self._equipment(fittings for _, fittings in listed)

    def of_tiers(self, tiers: int, nics_per_gpu: int) -> tuple[Ints, Equipment]:
        """The offers of networks of so many tiers, as indices, with what these have at least."""
        key = tiers, nics_per_gpu
        if key not in self._of_tiers:
            offers = [n for n, offer in enumerate(self.offers) if offer.box.tiers == tiers]
            fittings = (self._fittings(self.offers[n], nics_per_gpu) for n in offers)
            self._of_tiers[key] = np.array(offers, dtype=np.int64), self._equipment(fittings)
        return self._of_tiers[key]

    @cached_property
    def _of_tiers(self) -> dict[tuple[int, int], tuple[Ints, Equipment]]:
        return {}

    def _fittings(self, offer: Hardware, nics_per_gpu: int) -> Fittings:
        network, radices = self.instance.network, offer.box.ports[1][: max(offer.box.tiers, 1)]
        nic, switch = network.nics[offer.nic], network.switch_modes[offer.switch]
        nic_option = NicOption(nic=nic, nics_per_gpu=nics_per_gpu, switch=switch)
        return Fittings(nic_option, offer.levels, radices)

    def _equipment(self, listed: Iterable[Fittings]) -> Equipment:
        """Return fittings as arrays."""
        all_fittings = list(listed)
        count, tiers = len(all_fittings), len(self.instance.network.link_reach_m)
        options = [fittings.nic_option for fittings in all_fittings]
        radices, modules = np.full((count, tiers), np.inf), np.zeros((count, tiers, 2))
        optics = np.zeros((count, tiers, 2), dtype=np.int64)
        for number, (option, levels, ports) in enumerate(all_fittings):
            radices[number, : len(ports)] = ports
            for level, pair in enumerate(levels):
                optics[number, level] = [self.place["optics", optic.name] for optic in pair]
                modules[number, level] = [1 / optic.links_of(option.link_gbit_s) for optic in pair]
        return Equipment(
            byte_s=np.array([option.byte_s for option in options], dtype=np.float64),
            nics_per_gpu=np.array([option.nics_per_gpu for option in options], dtype=np.int64),
            gpus_per_nic=np.array([option.gpus_per_nic for option in options], dtype=np.int64),
            nic_planes=np.array([option.nic_planes for option in options], dtype=np.int64),
            nic_cages=np.array([option.nic.cages for option in options], dtype=np.int64),
            nic=self._places("nic", (option.nic for option in options)),
            switch=self._places("switch", (option.switch for option in options)),
            radices=radices,
            optics=optics,
            modules=modules,
        )

    def least_units(self, sites: Sites, equipment: Equipment) -> Floats:
        r"""Lower bound on the units of any network with each equipment on each site: NICs, and for
        their links switch ports and optics at both ends (equipment, sites, products).

        Of n links that lead to one tier at least :math:`n / r` lead on to the next, with r the
        largest oversubscription. Links into the core need ports and optics too; a single domain has
        NICs for them but no switch.
        """
        least = self.units_of_gpus(sites)
        is_networked, core_links = sites.domains > 1, self.least_links(sites.gpus)
        self.core_optics(least, core_links)
        per_gpu, gpus_per_nic, planes, cages = (
            numbers[:, None]
            for numbers in (
                equipment.nics_per_gpu,
                equipment.gpus_per_nic,
                equipment.nic_planes,
                equipment.nic_cages,
            )
        )
        installed = np.where(is_networked, sites.domains * self.sizes[sites.hb], 0)
        nics = installed * per_gpu // gpus_per_nic
        units = np.repeat(least[None], len(equipment), axis=0)
        row = np.arange(len(equipment))
        units[row, :, equipment.nic] = np.where(is_networked, nics, -(-core_links // cages))
        links, switches = 1.0 * nics * planes, np.zeros(nics.shape)
        ports = links + core_links * is_networked
        for tier in range(equipment.radices.shape[1]):
            for end in range(2):
                units[row, :, equipment.optics[:, tier, end]] += (
                    links * equipment.modules[:, tier, end, None]
                )
            is_last = tier + 1 == equipment.radices.shape[1]
            above = 0.0 if is_last else np.isfinite(equipment.radices[:, tier + 1, None])
            links = links / self.instance.network.largest_ratio * above
            # rounding must not add a switch
            switches += np.ceil((ports + links) / equipment.radices[:, tier, None] - EQUAL)
            ports = links
        units[row, :, equipment.switch] = switches
        return units

    def sites_of_boxes(self, offered: Mapping[int, Bools]) -> dict[int, tuple[Box, Ints]]:
        """By number, the ports of switches of offers, with the indices of the sites of these."""
        of_boxes: dict[Box, Bools] = {}
        for number, is_offered in offered.items():
            box = self.offers[number].box
            of_boxes[box] = of_boxes.get(box, False) | is_offered
        return {self.boxes[box]: (box, np.flatnonzero(here)) for box, here in of_boxes.items()}

    def builds(self, sites: Sites, shapes: Shapes, offered: Mapping[int, Bools]) -> Builds:
        """Return every combination of shapes with what their networks may be made of: some offers,
        each on some sites (n,).
        """
        shape_parts, offer_parts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for number, is_offered in offered.items():
            offer = self.offers[number]
            fits = (shapes.box == self.boxes[offer.box]) & is_offered[shapes.site]
            if len(offer.levels) == 1:
                fits &= self._leaves_room(sites, shapes, offer)
            rows = np.flatnonzero(fits)
            shape_parts.append(rows)
            offer_parts.append(np.full_like(rows, number))
        shape, offers = np.concatenate(shape_parts), np.concatenate(offer_parts)
        rails_apart = (self.rail_only[shapes.fabric] & (shapes.tiers > 1))[shape]
        # `lexsort` sorts by its last key first
        order = np.lexsort(
            (shapes.site[shape], offers, shapes.wiring[shape], shapes.form[shape], rails_apart)
        )
        return Builds(
            sites=sites,
            shapes=shapes,
            shape=shape[order],
            nic=np.array([offer.nic for offer in self.offers], dtype=np.int64)[offers[order]],
            offer=offers[order],
        )

    def _leaves_room(self, sites: Sites, shapes: Shapes, offer: Hardware) -> Bools:
        """Whether the modules of a single tier leave the ports that lead into a core (shapes)."""
        rate = self.instance.network.nics[offer.nic].gbit_s
        ends = sites.domains[shapes.site] * shapes.rails // shapes.planes
        of_nics = np.minimum(shapes.together, shapes.planes) * ends
        ports = _in_modules(of_nics, offer.levels[0].above.links_of(rate))
        ports += _in_modules(shapes.core_ports, offer.box.of_core)
        return np.asarray((shapes.core_ports == 0) | (ports <= shapes.radix))

    def islands(self, builds: Builds, uplinks: Ints) -> Islands:
        """Return the islands of builds with the given numbers of uplinks."""
        network, sites, shapes = (
            self.instance.network,
            builds.sites,
            builds.shapes.take(builds.shape),
        )
        offer = builds.offer
        nic = builds.nic
        switch = np.array([offer.switch for offer in self.offers], dtype=np.int64)[offer]
        island_sites, u, at = sites.take(shapes.site), uplinks, np.arange(len(uplinks))
        units, tiers = self.units_of_gpus(island_sites), shapes.tiers
        planes, leaves, pods = shapes.planes, shapes.leaves, shapes.pods
        nics = (
            island_sites.domains * self.sizes[island_sites.hb] * shapes.nics_per_gpu * (tiers > 0)
        )
        core_links = shapes.core_links
        # with even bundles a spine has equally many links to each leaf; else leaves fill its ports
        spine_ports = np.where(shapes.bundle > 0, leaves * shapes.bundle, shapes.spine_radix)
        spines = np.where(tiers == 2, planes * -(-leaves * u // spine_ports), 0)
        # docs/network.md: every pod has u aggregation switches, and each of u groups of cores one
        # switch of every pod
        upper_switches = np.where(tiers == 3, planes * u * (pods + shapes.core_group), 0)
        # one domain needs NICs for its links into the core alone
        units[at, self._places("nic", network.nics)[nic]] = np.where(tiers > 0, nics, core_links)
        units[at, self._places("switch", network.switch_modes)[switch]] = (
            shapes.chassis + spines + upper_switches
        )
        for level, holders in enumerate(_end_holders(island_sites, shapes, nics, spines, u)):
            for upper, held in enumerate(holders):
                products, of_module = self._ends[upper, level].T[:, offer]
                rows = np.flatnonzero(products >= 0)
                modules = sum(
                    count[rows] * -(-links[rows] // of_module[rows]) for count, links in held
                )
                units[rows, products[rows]] += modules
        self._core_modules(units, shapes, offer)
        return Islands(
            gpus=island_sites.gpus,
            hb=island_sites.hb,
            domains=island_sites.domains,
            fabric=shapes.fabric,
            nics_per_gpu=shapes.nics_per_gpu,
            offer=offer,
            wiring=shapes.wiring,
            uplinks=u,
            core_links=core_links,
            units=units,
        )

    def _places(self, kind: str, products: Iterable[Nic | Switch]) -> Ints:
        """Return the indices of products of a kind, in the order of a list."""
        return np.array([self.place[kind, item.name] for item in products], dtype=np.int64)

    def _core_modules(self, units: Floats, shapes: Shapes, offer: Ints) -> None:
        """Add the modules at both ends of links into a core to `units`."""
        far = core_optic(self.instance)
        if far is None:
            return
        far_place = self.place["optics", far.name]
        nears = [
            (
                far_place if one.core_end is None else self.place["optics", one.core_end.name],
                one.box.of_core,
            )
            for one in self.offers
        ]
        near, of_module = np.array(nears, dtype=np.int64).reshape(-1, 2)[offer].T
        per_leaf = shapes.chassis * -(-shapes.core_ports // of_module)
        at = np.arange(len(units))
        units[at, near] += np.where(shapes.tiers > 0, per_leaf, shapes.core_links)
        units[:, far_place] += -(-shapes.core_links // core_links_of_module(self.instance))

    @cached_property
    def _ends(self) -> Ints:
        """The product at the lower and the upper ends of links of each level and the links of its
        modules, for every offer (2, levels, offers, 2); -1 where there is none.
        """
        network = self.instance.network
        ends = np.full((2, len(network.link_reach_m), len(self.offers), 2), (-1, 1))
        for number, offer in enumerate(self.offers):
            rate = network.nics[offer.nic].gbit_s
            for level, pair in enumerate(offer.levels):
                for upper, optic in enumerate(pair):
                    place = self.place["optics", optic.name]
                    ends[upper, level, number] = place, optic.links_of(rate)
        return ends

    def family(self, islands: Islands, row: int) -> Family:
        """Return one island as the network family it belongs to."""
        network, offer = self.instance.network, self.offers[islands.offer[row]]
        leaf = network.switch_modes[offer.switch]
        parts = Parts(
            gpus=int(islands.gpus[row]),
            hb=network.hb_domains[islands.hb[row]],
            domains=int(islands.domains[row]),
            fabric=network.switched[islands.fabric[row]],
            nic=network.nics[offer.nic],
            nics_per_gpu=int(islands.nics_per_gpu[row]),
            switch=leaf,
            core_end=offer.core_end,
            links=links_to_core(self.instance, int(islands.gpus[row])),
            outages=outages_of(self.instance, keeps_ports=False),
        )
        first, second, top = (
            leaf.model_copy(update={"radix": radix}) for radix in offer.box.ports[1]
        )
        parts = parts.with_switches(first, second, top)
        wiring = tuple(wirings_on(parts.end_points, offer.box, network))[islands.wiring[row]]
        return parts.family(network, wiring, offer.levels)


Held = tuple[tuple[Ints, Ints], ...]
"""How many devices hold how many links each."""


def _end_holders(
    sites: Sites, shapes: Shapes, nics: Ints, spines: Ints, uplinks: Ints
) -> tuple[tuple[Held, Held], ...]:
    """What has the links of each level at the lower and at the upper end, over all planes; as in
    `coopt.network.parts.end_holders`.
    """
    planes, leaves, pods, u = shapes.planes, shapes.leaves, shapes.pods, uplinks
    tiered = shapes.tiers > 1
    rails, domains = shapes.rails // planes, sites.domains
    down = np.where(tiered, shapes.down, domains * rails)
    by_rail = ~shapes.clos & (domains > down)
    of_row = np.where(by_rail, domains, rails * domains)
    filled = np.where(shapes.clos | (domains > down), down, down // domains * domains)
    full, rest = np.divmod(of_row, np.maximum(filled, 1))
    full_switches, planes_left = np.divmod(planes, shapes.together)
    rows = planes * np.where(by_rail, rails, 1)
    at_leaves = (
        (
            np.where(tiered, rows * full, full_switches),
            np.where(tiered, filled, shapes.together * down),
        ),
        (np.where(tiered, rows, 1), np.where(tiered, rest, planes_left * down)),
    )
    full_pods, leaves_left = np.divmod(leaves, shapes.pod_down)
    in_pods = (
        (planes * full_pods * u, shapes.pod_down),
        (planes * u, leaves_left),
    )
    at_spines = _dealt(spines, leaves * u * planes)
    trunks = planes * pods * u
    at_cores = _dealt(planes * u * shapes.core_group, trunks * shapes.pod_up)
    has_pods = pods > 0
    above = tuple(
        (np.where(has_pods, count, spine_count), np.where(has_pods, links, spine_links))
        for (count, links), (spine_count, spine_links) in zip(in_pods, at_spines, strict=True)
    )
    one = np.ones_like(nics)
    return (
        (((nics, one),), at_leaves),
        (((planes * leaves, u),), above),
        (((trunks, shapes.pod_up),), at_cores),
    )


def _dealt(switches: Ints, links: Ints) -> Held:
    """Switches, over all planes alike, that take links in turn."""
    each, more = np.divmod(links, np.maximum(switches, 1))
    return (switches - more, each), (more, each + 1)


def _in_modules(links: Ints, of_module: int) -> Ints:
    """Ports that links take in whole modules."""
    return -(-links // of_module) * of_module
