"""The islands that a workload may have, listed by their GPUs and no further than prices ask for.

An island is left out only where another of its workload beats it (`rivals`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import chain, count
from operator import add
from typing import NamedTuple, Protocol

from coopt.verifier.couplings.fleet import Fleet, FleetIsland, StandingIsland, filled_racks
from coopt.verifier.couplings.fleet_paths import IslandPath, IslandPaths, NetworkKind
from coopt.verifier.couplings.prices import ProductKey, UnitCounts
from coopt.verifier.parts.layouts import ceil_ratio
from coopt.verifier.parts.optics import ends_of
from coopt.verifier.parts.space import DesignFamily, NicAttachment, OpticPair, in_cages
from coopt.verifier.parts.stages import GrowthStage
from coopt.verifier.parts.standing import standing_network
from coopt.verifier.proofs.rivals import (
    GPUS,
    LABOUR,
    LINKS,
    RACKS,
    Measure,
    UnbeatenIslands,
    Usage,
    product_name,
)

ROUNDED = 1 - 1e-12
"""What sums of floats are multiplied by that have to be no more than the sums of whole numbers they
stand for.
"""


STANDING = 0
"""What the network that stands goes by where others go by the `id` of their NIC attachment."""


def _number(family: DesignFamily) -> int:
    return STANDING if family.stands else id(family.attachment)


class MenuIsland(NamedTuple):
    """An island over the phases, and all that it takes."""

    path: IslandPath
    usage: Usage


class OpenDomains(NamedTuple):
    """HB domains of an island, what they take, and the families of networks on them that are not
    listed yet, by the `id` of their NIC attachment.
    """

    hb: str
    installed: int
    """GPUs of all domains, idle ones among them"""
    usage: Usage
    families: dict[int, DesignFamily]


class OpenNetworks:
    """Networks that are not listed or not timed yet: all those of a family, of a kind of it, or one
    in each phase with its uplinks open.

    Parameters
    ----------
    what
        The family, the kind, or the network of each phase.
    usage
        What each of them takes at least.
    usd
        What that costs at list prices.
    """

    def __init__(
        self,
        what: DesignFamily | NetworkKind | dict[int, list[GrowthStage]],
        usage: Usage,
        usd: float,
    ) -> None:
        self.what, self.usage, self.usd, self.is_open = what, usage, usd, True


class ProductGroup:
    """Networks of the same products, and what each of them takes at least: there are thousands of a
    size, and most cases want none of them.
    """

    def __init__(self) -> None:
        self.networks, self.usage = list[OpenNetworks](), Usage({}, frozenset())

    def add(self, networks: OpenNetworks) -> None:
        """Add networks."""
        usage, amounts = networks.usage, networks.usage.amounts
        if self.networks:
            # what one network lacks all of them take none of at least
            fewer = {
                measure: min(n, amounts[measure])
                for measure, n in self.usage.amounts.items()
                if measure in amounts
            }
            usage = Usage(fewer, usage.uses)
        self.usage = usage
        self.networks.append(networks)


class SizeMenu:
    """The islands with one number of GPUs in the end, as far as they are listed."""

    def __init__(self, domains: list[OpenDomains]) -> None:
        self.domains, self.islands = domains, list[MenuIsland]()
        self._groups: dict[frozenset[str], ProductGroup] = {}
        self.rivals = 0
        """Islands of all sizes that its networks were compared with."""

    def add(self, networks: OpenNetworks) -> None:
        """Add networks that are not timed yet."""
        self._groups.setdefault(networks.usage.uses, ProductGroup()).add(networks)

    def wanted(self, is_wanted: Callable[[Usage], bool]) -> list[OpenNetworks]:
        """The open networks that are wanted."""
        return [
            networks
            for group in self._groups.values()
            if is_wanted(group.usage)
            for networks in group.networks
            if networks.is_open and is_wanted(networks.usage)
        ]

    def drop(self, is_needless: Callable[[OpenNetworks], bool]) -> bool:
        """Drop networks; whether there is no island then, and none can come."""
        for group in self._groups.values():
            group.networks = [network for network in group.networks if not is_needless(network)]
        self._groups = {uses: group for uses, group in self._groups.items() if group.networks}
        return not (self._groups or self.islands or any(one.families for one in self.domains))


class Selection(Protocol):
    """Which islands are of interest."""

    def __call__(self, usage: Usage) -> bool:
        """Whether one is that takes at least so much."""

    def attachments(self, domains: OpenDomains) -> Iterable[int]:
        """The NIC attachments, by their `id`, of networks on HB domains that are of interest."""


class IslandMenu:
    """The islands of a workload, or of the network that all have in turn, on one kind of GPUs, with
    their GPUs in the end ascending.

    Networks are listed, and timed, when somebody wants an island that takes at least what they
    take.
    """

    def __init__(
        self, fleet: Fleet, paths: IslandPaths, name: str, rivals: UnbeatenIslands
    ) -> None:
        self.name, self.paths, sizes = name, paths, paths.sizes(name)
        start = next((n for n, gpus in enumerate(sizes) if paths.fits(name, gpus)), len(sizes) - 1)
        self.sizes, self.fewest = sizes[start:], sizes[start]
        """GPUs that islands may have, and of the smallest one on which compute alone is in time."""
        self._fleet = fleet
        self._grows = len(fleet.training_phases(name)) > 1
        self._last = fleet.training_phases(name)[-1]
        self._menus: dict[int, SizeMenu] = {}
        self._rivals = rivals
        self._product_of_name = {product_name(product): product for product in fleet.prices}
        self._closed: dict[tuple[str, int], int] = {}
        """From how many GPUs on every network on HB domains with an attachment, by `id`, loses."""

    def of_size(self, gpus: int, selection: Selection) -> Iterator[MenuIsland]:
        """The islands with so many GPUs in the end that are wanted and that none listed before
        beats.
        """
        if gpus not in self._menus:
            self._menus[gpus] = SizeMenu(self._domains(gpus))
        menu = self._menus[gpus]
        yield from (island for island in menu.islands if selection(island.usage))
        self._open_families(menu, selection)
        if (
            not self._grows and self._rivals.count > 2 * menu.rivals
        ):  # not for each new rival, as passes are long
            menu.drop(lambda networks: self._rivals.beat(networks.usage))
            menu.rivals = self._rivals.count
        for island in self._unbeaten(menu, selection):
            menu.islands.append(island)
            yield island
        if menu.drop(lambda networks: not networks.is_open):
            self.sizes = [size for size in self.sizes if size != gpus]

    @property
    def listed_islands(self) -> Iterator[MenuIsland]:
        """The islands that were listed so far."""
        return (island for menu in self._menus.values() for island in menu.islands)

    def _domains(self, gpus: int) -> list[OpenDomains]:
        """The HB domains that islands of a size may have; none where compute alone takes too
        long.
        """
        open_domains = dict[tuple[str, int], OpenDomains]()
        families = [family for family in self.paths.families(gpus) if not self._is_closed(family)]
        for family in families if families and self.paths.fits(self.name, gpus) else ():
            key = family.hb.name, family.domains
            if key not in open_domains:
                hb, installed = family.hb, family.domains * family.hb.size
                products = Counter[ProductKey]({("hb", hb.name): installed})
                counts = UnitCounts(products, gpus, installed - gpus)
                usage = self._usage_at_last(counts, filled_racks(hb, family.domains))
                open_domains[key] = OpenDomains(hb.name, installed, usage, {})
            # NIC attachments are kept as long as the menu, so that an `id` stays theirs
            open_domains[key].families[_number(family)] = family
        return [open_domains[key] for key in sorted(open_domains)]

    def _is_closed(self, family: DesignFamily) -> bool:
        """Whether networks of the attachment of a family with no more GPUs on its HB domains are
        known to be beaten.
        """
        return family.gpus >= self._closed.get((family.hb.name, _number(family)), math.inf)

    def _close(self, family: DesignFamily) -> bool:
        """Whether an island that is kept beats what a network of a family takes at least; the same
        then holds of those with more GPUs, which take no less of anything.
        """
        if family.attachment is None or self._grows or self._is_closed(family):
            return self._is_closed(family)
        beaten = self._rivals.beat(self._least_of(family, family.attachment))
        if beaten:
            self._closed[family.hb.name, _number(family)] = family.gpus
        return beaten

    def _least_of(self, family: DesignFamily, attachment: NicAttachment) -> Usage:
        """What every network of a family takes at least: domains that are full, their NICs, and
        leaves.
        """
        hb, gpus = family.hb, family.gpus
        # where GPUs of domains stay idle, there are more domains, with more of all this
        domains, ports = (
            ceil_ratio(gpus, hb.size),
            gpus * attachment.per_gpu * attachment.nic_planes // attachment.gpus_per_nic,
        )
        units: dict[ProductKey, int] = {("hb", hb.name): domains * hb.size}
        units |= {
            ("nic", attachment.nic.name): domains * family.rails,
            ("switch", attachment.switch.name): ports // attachment.switch.radix,
        }
        counts = UnitCounts(Counter(units), gpus, 0, family.to_core)
        usage = self._usage_at_last(counts, filled_racks(hb, domains))
        return usage._replace(uses=frozenset(map(product_name, units)))

    def _open_families(self, menu: SizeMenu, selection: Selection) -> None:
        """Open the families that are wanted and that no island beats."""
        unwanted = ""
        for domains in menu.domains:
            if domains.hb == unwanted or not domains.families:
                continue
            wanted = [*selection.attachments(domains)]
            if not wanted:
                unwanted = domains.hb  # more of them, which follow, take no less of anything
            for attachment in wanted:
                family = domains.families.pop(attachment, None)
                if family is None or self._close(family):
                    continue
                least = domains.usage
                if family.attachment is not None:
                    least = self._least_of(family, family.attachment)
                menu.add(OpenNetworks(family, least, self._usd(least)))

    def _least_of_kind(self, kind: NetworkKind) -> Usage:
        """What every network of a kind takes at least: of the links to one tier as many lead on to
        the next as the largest oversubscription asks for, and every link has a port and modules.
        """
        family, attachment = kind.family, kind.family.attachment
        installed = family.domains * family.hb.size
        units = Counter[ProductKey]({("hb", family.hb.name): installed})
        if attachment is not None:
            network = self._fleet.question.network
            carried = tuple(map(attachment.carried, kind.choices[0]))
            caged = in_cages(network, family, carried).network
            units["nic", attachment.nic.name] = family.domains * family.rails
            links = family.domains * family.rails * family.copies
            ports = links + family.to_core
            for tier, (levels, of_module) in enumerate(
                zip(zip(*kind.choices, strict=True), carried, strict=True), 1
            ):
                # which products there are of several to choose from is not known
                for optics, count in zip(zip(*levels, strict=True), of_module, strict=True):
                    if len({optic.name for optic in optics}) == 1:
                        units["optics", optics[0].name] += ceil_ratio(links, count)
                is_last = tier == len(carried)
                links = 0 if is_last else math.ceil(links / network.largest_ratio * ROUNDED)
                radix = caged.at(tier).radix
                units["switch", attachment.at(tier).name] += ceil_ratio(ports + links, radix)
                ports = links
        counts = UnitCounts(units, family.gpus, installed - family.gpus, family.to_core)
        return self._usage_at_last(counts, filled_racks(family.hb, family.domains))

    def _usd(self, usage: Usage) -> float:
        """What is taken in the last phase in which there is training costs at list prices."""
        phase, names = self._last, self._product_of_name
        return math.fsum(
            count * self._fleet.prices[names[name]].usd
            for (t, name), count in usage.amounts.items()
            if t == phase and name in names
        )

    def _listed(self, networks: OpenNetworks) -> Iterator[OpenNetworks]:
        """The kinds of a family, if it is in time where no switch slows it down, or the networks of
        a kind.
        """
        what = networks.what
        if isinstance(what, NetworkKind):
            for stages in self.paths.candidates(self.name, what):
                yield self._network(stages)
        elif isinstance(what, DesignFamily) and self.paths.may_train(self.name, what):
            for kind in self.paths.kinds(what):
                if what.stands:  # which no ratio bounds
                    yield from map(self._network, self.paths.candidates(self.name, kind))
                    continue
                usage = self._least_of_kind(kind)
                yield OpenNetworks(kind, usage, self._usd(usage))

    def _network(self, stages: dict[int, list[GrowthStage]]) -> OpenNetworks:
        (stage,) = stages[self._last]
        joint = (
            None
            if stage.family.attachment is None
            else self._fleet.joint(stage, stage.family.attachment.nic)
        )
        island = StandingIsland(stage, stage.uplinks[0], joint)
        usage = self._usage_at_last(island.counts, island.racks)
        return OpenNetworks(stages, usage, self._usd(usage))

    def _unbeaten(self, menu: SizeMenu, selection: Selection) -> Iterator[MenuIsland]:
        """The islands that are wanted, in time, and not beaten, after those that were timed to show
        it.

        What beats an island may lie in another case, where who cuts the cases has it alone: the
        beaten one must not stay open for want of it. So islands of networks that nobody wanted yet
        and that may beat one are looked at, until one does.
        """
        for island in chain.from_iterable(self._in_time(menu, selection)):
            if not self._grows:
                may_beat = partial(self._rivals.beats, island=island.usage)
                for islands in self._in_time(menu, may_beat):
                    for better in islands:
                        self._rivals.add(better.usage)
                        yield better
                    if self._rivals.beat(island.usage):
                        break
            if not self._rivals.beat(island.usage):
                self._rivals.add(island.usage)
                yield island

    def _in_time(
        self, menu: SizeMenu, is_wanted: Callable[[Usage], bool]
    ) -> Iterator[list[MenuIsland]]:
        """The islands of each network that is wanted, in time, and not beaten by those listed
        before, cheap networks first: most others need no timing then, nor even to be listed.
        """
        order = count()
        heap = [(networks.usd, next(order), networks) for networks in menu.wanted(is_wanted)]
        heapify(heap)
        while heap:
            _, _, networks = heappop(heap)
            if not networks.is_open or not is_wanted(networks.usage):
                continue
            networks.is_open = False
            if not self._grows and self._rivals.beat(networks.usage):
                continue
            if isinstance(networks.what, dict):
                paths = self.paths.grown(self.name, networks.what)
                islands = [MenuIsland(path, self._usage(path)) for path in paths]
                yield [island for island in islands if not self._rivals.beat(island.usage)]
            for listed in self._listed(networks):
                menu.add(listed)
                if is_wanted(listed.usage):
                    heappush(heap, (listed.usd, next(order), listed))

    def _usage_at_last(self, counts: UnitCounts, racks: int) -> Usage:
        """What is taken from the last phase on in which there is training, nothing before."""
        amounts = dict[Measure, int]()
        for t in self._fleet.phases[self._last :]:
            amounts |= self._amounts(t, counts, racks)
        return Usage(amounts, _products(counts))

    def _usage(self, path: IslandPath) -> Usage:
        """All that an island takes in each phase."""
        island, amounts = FleetIsland(self.name, None, path), dict[Measure, int]()
        for t, state in enumerate(path):
            if state is not None:
                amounts |= self._amounts(t, state.counts, state.racks)
                if links := island.links_added(t):
                    amounts[t, LABOUR] = links
        last_state = path[-1]
        assert last_state is not None, "an island stands from some phase on"
        return Usage(amounts, _products(last_state.counts))

    def _amounts(self, phase: int, counts: UnitCounts, racks: int) -> dict[Measure, int]:
        units = {
            (phase, product_name(product)): n
            for product, n in self._fleet.priced_units(counts).items()
            if n
        }
        other_amounts = {GPUS: counts.active_gpus, RACKS: racks, LINKS: counts.core_ports}
        return units | {(phase, name): n for name, n in other_amounts.items() if n}


def _products(counts: UnitCounts) -> frozenset[str]:
    return frozenset(product_name(product) for product, n in counts.products.items() if n)


class PriceFloors(NamedTuple):
    """The least price of a GPU that an island has in the end, with its domain alone and with a
    network it may have; and at each site the least price of the network of a GPU of a domain, idle
    or not, ascending, with the `id` of its NIC attachment.
    """

    domain: float
    with_network: float
    attachments: list[list[tuple[float, int]]]


class FloorPrices:
    """The least price of a GPU of an island with a kind of GPUs, whatever its network.

    Every GPU has its share of a NIC; every port of a NIC has a link to a leaf, which takes one port
    there and its share of the modules at both ends.
    """

    def __init__(self, paths: IslandPaths) -> None:
        self._fleet, question = paths.fleet, paths.fleet.question
        self._attachments: list[tuple[int, NicAttachment, Sequence[OpticPair]]] = [
            (
                id(attachment),
                attachment,
                ends_of(question, paths.fleet.kind, attachment, 1, all_allowed=False),
            )
            for attachment in paths.attachments
        ]
        stands = question.stands
        network = None if stands is None else standing_network(question, stands.gpus)
        if network is not None:
            self._attachments.append((STANDING, network.family.network, network.optics[:1]))

    def floors(
        self, by_site: Sequence[Mapping[Measure, int]], barred: frozenset[str]
    ) -> PriceFloors:
        """The floors at the prices of each site."""
        attachments = [
            sorted(
                (usd * ROUNDED, number)
                for number, attachment, ends in self._attachments
                if (usd := self._of_network(prices, barred, attachment, ends)) < math.inf
            )
            for prices in by_site
        ]
        domain_prices = [self._domain_price(prices, barred) * ROUNDED for prices in by_site]
        networks = [priced[0][0] if priced else math.inf for priced in attachments]
        return PriceFloors(min(domain_prices), min(map(add, domain_prices, networks)), attachments)

    def _domain_price(self, prices: Mapping[Measure, int], barred: frozenset[str]) -> float:
        """The least price of a GPU with its domain."""
        last_phase, question = self._fleet.phases[-1], self._fleet.question
        hbs = (self._price(prices, barred, f"hb {hb.name}") for hb in question.network.hb_domains)
        gpu = f"gpu {question.cluster.gpu.name}" if "gpu" in question.objective.include else ""
        return prices.get((last_phase, GPUS), 0) + min(hbs) + prices.get((last_phase, gpu), 0)

    def _price(self, prices: Mapping[Measure, int], barred: frozenset[str], name: str) -> float:
        return math.inf if name in barred else prices.get((self._fleet.phases[-1], name), 0)

    def _of_network(
        self,
        prices: Mapping[Measure, int],
        barred: frozenset[str],
        attachment: NicAttachment,
        ends: Sequence[OpticPair],
    ) -> float:
        of_links = (
            sum(
                self._price(prices, barred, f"optics {optic.name}") / attachment.links_of(optic)
                for optic in pair
            )
            for pair in ends
        )
        switch = (
            self._price(prices, barred, f"switch {attachment.switch.name}")
            / attachment.switch.radix
        )
        link = switch + min(of_links, default=math.inf)
        return (
            attachment.per_gpu
            / attachment.gpus_per_nic
            * (
                self._price(prices, barred, f"nic {attachment.nic.name}")
                + attachment.nic_planes * link
            )
        )
