"""All network families an instance ranges over: for each site the parts that they can be built
from, in each of their wirings (docs/network.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TypeVar

from coopt.instance.hardware import HbDomain, Nic, Switch, mate
from coopt.instance.network import DomainFill
from coopt.instance.numerics import EQUAL
from coopt.instance.reserves import PortOutages
from coopt.instance.schema import Instance, Network, ObjectiveKind
from coopt.instance.texts import grouped
from coopt.network.cores import core_ends, core_pairs, core_switch, links_to_core
from coopt.network.family import (
    EquippedDomains,
    Family,
    LinkEnds,
    NicOption,
    Wiring,
)
from coopt.network.filling import EndPoints, pod_span, wirings
from coopt.network.laying import laid_each, least_ends
from coopt.network.optics import (
    EndsByLevel,
    OpticValues,
    PerModule,
    cages_of,
    fits,
    in_cages,
    optic_choices,
    own_ends,
    unbeaten_ends,
    uplinks_alike,
    values_of,
)
from coopt.network.standing import standing_family

Listed = TypeVar("Listed", Wiring, Family)


def domain_counts(
    gpus: int, hb: HbDomain, fill: DomainFill = "even", *, most_blocks: int = 1
) -> tuple[int, ...]:
    """D: how many domains may hold the GPUs, more than half of each of them but the last; one where
    half of it does.

    Parameters
    ----------
    fill
        Under `even`, as many GPUs train in every domain. Under `any`, domains need not be filled
        alike: D is the least number for each K, and for each number of blocks of as many domains,
        each full of groups of any one size. Under `fewest`, besides even ones, those of fewer
        domains than any even filling takes that holds such groups whole.
    most_blocks
        The most blocks of stages that a pipeline may lie in, each on domains of its own.
    """
    if 2 * gpus <= hb.size:
        return (1,)
    half = range(hb.size // 2 + 1, hb.size + 1)
    even = {gpus // k for k in half if gpus % k == 0}
    if fill == "even":
        return tuple(sorted(even, reverse=True))
    blocks = [b for b in range(1, min(most_blocks, gpus) + 1) if gpus % b == 0]
    all_counts = set(even)
    for group in (n for n in range(1, hb.size + 1) if gpus % n == 0):
        counts = {b * -(-gpus // (b * group * (hb.size // group))) for b in blocks}
        counts |= {-(-gpus // k) for k in half} if group == 1 else set()
        whole_counts = [count for count in even if gpus // count % group == 0]
        # Under "fewest" an uneven filling has to take fewer domains than any even one that holds
        # such groups.
        max_count = (
            min(whole_counts) - 1 if fill == "fewest" and whole_counts else -(-gpus // half[0])
        )
        all_counts |= {count for count in counts if count <= max_count}
    return tuple(sorted(all_counts, reverse=True))


def outages_of(instance: Instance, *, keeps_ports: bool) -> PortOutages | None:
    """What is out of links and leaves while training goes on; None where the instance has no word
    on failures.
    """
    availability = instance.availability
    return None if availability is None else availability.outages(keeps_ports=keeps_ports)


@dataclass(frozen=True, kw_only=True)
class Parts(EquippedDomains):
    """What families are built from, with the least `links` into a core shared with others, which
    may be up to `most_links`, and the domains that stand by in any case.
    """

    links: int = 0
    most_links: int = 0
    spare_domains: int = 0

    @property
    def switches(self) -> tuple[Switch, Switch, Switch]:
        """The switch of each of three tiers, from the leaves up."""
        middle_switch, top_switch = self.upper or (self.switch, self.switch)
        return self.switch, middle_switch, top_switch

    def wirings(self, network: Network, cages: tuple[int, int] = (1, 1)) -> Iterator[Wiring]:
        """Every way to join them, with ports of a leaf and of an aggregation switch in cages of so
        many.

        Whole switches of a bundle are counted: such wirings have one number of uplinks each. Of
        switches that differ above the tiers that a wiring has, those like the last of these tiers
        stand for all.
        """
        radix, *upper_radices = (switch.radix for switch in self.switches)
        for wiring in wirings(
            self.end_points, radix, network, cages, (upper_radices[0], upper_radices[1])
        ):
            last_switch = self.switches[max(wiring.tiers, 1) - 1]
            if self.upper and any(
                switch != last_switch for switch in self.switches[wiring.tiers :]
            ):
                continue
            bundled = wiring.pods is not None and wiring.pods.each > 1
            yield from one_by_one(wiring) if bundled else (wiring,)

    def with_switches(self, leaf: Switch, second: Switch, top: Switch) -> Parts:
        """These parts with other switches."""
        return replace(self, switch=leaf, upper=() if leaf == second == top else (second, top))

    def family(self, network: Network, wiring: Wiring, optics: tuple[LinkEnds, ...]) -> Family:
        """The family of one wiring, with an optic for each of its tiers; those of further tiers are
        left out.
        """
        fields = {
            name: value
            for name, value in vars(self).items()
            if name not in ("links", "most_links", "upper")
        }
        upper_switches = self.upper[: max(wiring.tiers - 1, 0)]
        return Family(
            **fields,
            upper=() if all(switch == self.switch for switch in upper_switches) else upper_switches,
            lone_links=0 if wiring.tiers else self.links,
            optics=optics[: wiring.tiers],
            planes=self.end_points.planes,
            discipline=network.discipline,
            **vars(wiring) | {"chassis": wiring.chassis * self.nic_planes},
        )

    @property
    def end_points(self) -> EndPoints:
        """What a plane of theirs joins."""
        return EndPoints(
            fabric=self.fabric,
            domains=self.domains,
            rails=self.hb.size * self.nics_per_gpu // self.gpus_per_nic,
            links=-(-self.links // self.nic_planes),
            most_links=-(-self.most_links // self.nic_planes),
            of_module=self.core_links_of_module,
            nic_planes=self.nic_planes,
        )


@dataclass(frozen=True, kw_only=True)
class Space:
    """The families of docs/network.md that an instance ranges over, site by site.

    Optics are compared by `measures`; as the instance has it where there are none. Where each end
    of links has its own, they may be compared by other `values` of one module. Networks that `grow`
    have stood smaller before. Links into a core are the fewest that are asked for, or any number
    in `links`. Where networks are `unlaid`, lengths have not chosen their cables. `standing_by` are
    domains beyond those that train or are idle.
    """

    instance: Instance
    measures: tuple[ObjectiveKind, ...] | None = None
    values: OpticValues | None = None
    grow: bool = False
    links: range | None = None
    unlaid: bool = False
    standing_by: int = 0

    def standing(self, gpus: int) -> Family | None:
        """The network that stands, where so many GPUs may train on it; None where it may not."""
        stands, gpu = self.instance.stands, self.instance.cluster.gpu.name
        if stands is None or not stands.holds(gpus) or stands.gpu not in (None, gpu):
            return None
        family = standing_family(self.instance, gpus)
        outages = outages_of(self.instance, keeps_ports=family.keeps_ports)
        family = replace(family, outages=outages)
        if family.pods is None:
            return family
        ends = EndPoints(fabric=family.fabric, domains=family.domains, rails=family.nics_of_domain)
        span = pod_span(ends, family.leaves, family.pods.leaves, family.leaf_span)
        return replace(family, pod_span=span)

    @cached_property
    def nic_options(self) -> tuple[NicOption, ...]:
        """NICs, their planes and leaves whose rates agree, with each other and with a core, in the
        lists' order.
        """
        if self.instance.network.given:
            return tuple(filter(None, map(self.standing, self.instance.cluster.gpus)))
        network, core = self.instance.network, core_switch(self.instance)
        # A GPU has several NICs or shares one with others, never both.
        counts = [
            (per_gpu_count, 1)
            for per_gpu_count in network.nics_per_gpu
            if 1 in network.gpus_per_nic
        ]
        counts += [
            (1, gpus) for gpus in network.gpus_per_nic if gpus > 1 and 1 in network.nics_per_gpu
        ]
        combinations = product(network.nics, counts, network.nic_planes, network.switch_modes)
        return tuple(
            NicOption(
                nic=nic,
                nics_per_gpu=per_gpu,
                gpus_per_nic=gpus_per_nic,
                nic_planes=planes,
                switch=switch,
            )
            for nic, (per_gpu, gpus_per_nic), planes, switch in combinations
            if planes in nic.ports
            and math.isclose(switch.port_gbit_s * planes, nic.gbit_s, rel_tol=EQUAL)
            and is_joined(network, nic, switch, core)
        )

    def domain_counts(
        self, gpus: int, hb: HbDomain, fill: DomainFill | None = None
    ) -> tuple[int, ...]:
        """How many HB domains of a kind may hold the GPUs, filled as the instance has it or
        otherwise.
        """
        if (stands := self.standing(gpus)) is None or stands.hb.size != hb.size:
            return () if self.instance.network.given else self._new_counts(gpus, hb, fill)
        if self.instance.network.given:
            return (stands.domains,)
        counts = {*self._new_counts(gpus, hb, fill), stands.domains}
        return tuple(sorted(counts, reverse=True))

    def _new_counts(
        self, gpus: int, hb: HbDomain, fill: DomainFill | None = None
    ) -> tuple[int, ...]:
        # where nothing trains any more, what stands may have been built for any model
        layers = max((workload.model.layers for workload in self.instance.workload), default=gpus)
        return domain_counts(
            gpus, hb, fill or self.instance.network.domain_fill, most_blocks=layers
        )

    def sites(self, gpus: int) -> Iterator[tuple[HbDomain, int]]:
        """Every HB domain with every number of them that may hold the GPUs."""
        for hb in self.instance.network.hb_domains:
            for domains in self.domain_counts(gpus, hb):
                yield hb, domains

    def all_sites(self) -> Iterator[tuple[int, HbDomain, int]]:
        """Every number of GPUs that may train, on every site that may hold it: those asked for,
        then those that leave others idle in domains filled alike, no more than are bought.
        """
        cluster = self.instance.cluster
        for gpus in cluster.gpus:
            for hb, domains in self.sites(gpus):
                yield gpus, hb, domains
        for bought in cluster.gpus if cluster.idle_gpus else ():
            for hb in self.instance.network.hb_domains:
                for gpus, domains in sorted(cluster.idle_sites(bought, hb.size), reverse=True):
                    yield gpus, hb, domains

    def idle_domains(self, gpus: int, hb: HbDomain, domains: int) -> int:
        """Domains that are bought for GPUs that train nowhere."""
        bought = self.instance.cluster.bought_for(gpus) if self.instance.cluster.idle_gpus else 0
        return self.standing_by + (max(-(-bought // hb.size) - domains, 0) if bought else 0)

    def nearby_counts(self) -> tuple[int, ...]:
        """Other numbers of GPUs that fill whole HB domains, nearest first; without 0."""
        counts = self.instance.cluster.gpus
        nearby = {
            whole
            for gpus, hb in product(counts, self.instance.network.hb_domains)
            for whole in (gpus // hb.size * hb.size, -(-gpus // hb.size) * hb.size)
        }
        return tuple(
            sorted(nearby - {0, *counts}, key=lambda n: min(abs(n - gpus) for gpus in counts))
        )

    @cached_property
    def own_ends(self) -> bool:
        """Whether each end of links has a product of its own."""
        return self.instance.network.has_own_ends

    def optics(self, nic_option: NicOption, upper_switches: tuple[Switch, ...] = ()) -> EndsByLevel:
        """The products worth having at the ends of links of each level, with these switches above
        the leaves.
        """
        chain = (nic_option.switch, *(upper_switches or (nic_option.switch, nic_option.switch)))
        mating = chain if self.instance.network.mates else ()
        # Choices depend on these properties alone, so that switches which share them share one
        # entry.
        rates = ((box.protocol, box.lane_gbit_s) for box in mating)
        boxes = ((box.radix, box.cage_gbit_s) for box in chain) if self.own_ends else ()
        key = (nic_option.nic.name, nic_option.nic_planes, *rates, *boxes)
        if key not in self._optics:
            self._optics[key] = self._listed_optics(nic_option, chain, mating)
        return self._optics[key]

    def _listed_optics(
        self, nic_option: NicOption, chain: tuple[Switch, ...], mating: tuple[Switch, ...]
    ) -> EndsByLevel:
        if self.own_ends:
            network, planes = self.instance.network, nic_option.nic_planes
            return own_ends(network, nic_option.nic, planes, chain, self.optic_values)
        levels = optic_choices(
            self.instance, nic_option.nic, self.measures, nic_option.nic_planes, mating
        )
        return tuple(tuple(LinkEnds(optic, optic) for optic in level) for level in levels)

    @cached_property
    def _optics(self) -> dict[tuple[object, ...], EndsByLevel]:
        return {}

    def ends(self, nic_option: NicOption) -> tuple[LinkEnds, ...]:
        """What links of NICs may have at their ends; none where a NIC option joins nothing."""
        nic_level = by_module(self.optics(nic_option)[:1], nic_option, (nic_option.switch,))
        return tuple(
            ends for by_count in nic_level for choices in by_count.values() for ends in choices
        )

    def families(
        self, gpus: int, hb: HbDomain, domains: int, nic_options: Iterable[NicOption]
    ) -> Iterator[Family]:
        """Every family of one site that is joined by some NIC option, and what stands there, with
        each number of uplinks alone: bills with units that stand are not affine.
        """
        stands = self.standing(gpus)
        if self.instance.stands is None:
            yield from self._new_families(gpus, hb, domains, nic_options)
            return
        if stands is not None and (stands.hb.name, stands.domains) == (hb.name, domains):
            yield stands
        if not self.instance.network.given:
            for family in self._new_families(gpus, hb, domains, nic_options):
                yield from one_by_one(family)

    def _new_families(
        self, gpus: int, hb: HbDomain, domains: int, nic_options: Iterable[NicOption]
    ) -> Iterator[Family]:
        for parts, levels in self.parts(gpus, hb, domains, nic_options):
            yield from self.fitted(parts, levels)

    def parts(
        self, gpus: int, hb: HbDomain, domains: int, nic_options: Iterable[NicOption]
    ) -> Iterator[tuple[Parts, EndsByModule]]:
        """What new networks of a site may be built from, with the ends that links may have."""
        network, nic_list = self.instance.network, list(nic_options)
        counts = self.links or range(links := links_to_core(self.instance, gpus), links + 1)
        # leaves share out a range of them, where links of a lone domain start at NICs
        ranges = [counts] if domains > 1 else [range(n, n + 1) for n in counts]
        for fabric, nic_option, links_of in product(network.switched, nic_list, ranges):
            leaf = nic_option.switch if domains > 1 else None
            ends = core_ends(self.instance, leaf, self.optic_values)
            for upper_switches, core_end in (
                product(_switches_above(network, nic_option.switch), ends)
                if nic_option.fits(hb.size, gpus, domains)
                else ()
            ):
                fields = vars(nic_option) | {
                    "links": links_of[0],
                    "most_links": links_of[-1],
                    "spare_domains": self.idle_domains(gpus, hb, domains),
                    "core_end": core_end,
                    "core_choices": core_pairs(self.instance, leaf, core_end),
                    "fabric": fabric,
                    "upper": upper_switches,
                }
                outages = outages_of(self.instance, keeps_ports=nic_option.nic_planes > 1)
                parts = Parts(gpus=gpus, hb=hb, domains=domains, outages=outages, **fields)
                levels = self.optics(nic_option, upper_switches)
                yield parts, by_module(levels, nic_option, parts.switches)

    @cached_property
    def optic_values(self) -> OpticValues:
        """What a module adds to each measure that optics are compared by."""
        return self.values or values_of(self.instance, self.measures)

    def fitted(self, parts: Parts, levels: EndsByModule) -> Iterator[Family]:
        """The families of some parts with the ends of links that no others beat, whatever the
        mappings.
        """
        for listed, choices in self.with_any_ends(parts, levels):
            if self.instance.network.cables == "hall":
                yield from self._by_length(listed, choices)
            elif self.grow:
                yield from _with_ends(listed, choices)
            else:
                for optics in unbeaten_ends(listed, choices, self.optic_values):
                    yield listed if optics is listed.optics else replace(listed, optics=optics)

    def with_any_ends(
        self, parts: Parts, levels: EndsByModule
    ) -> Iterator[tuple[Family, list[tuple[LinkEnds, ...]]]]:
        """The families of some parts, whatever modules cost, each with all ends that its links may
        have; over its uplinks a bill is affine, unless it grows or lengths choose its cables.
        """
        network = self.instance.network
        for built, wiring, options in _without_ends(network, parts, levels):
            listed = built.family(network, wiring, options[0])
            choices = [ends for ends in options if _leaves_room(listed, ends)]
            if self.grow or network.cables == "hall":
                yield listed, choices
                continue
            for uplinks in uplinks_alike(listed, choices) if choices else ():
                is_whole = uplinks == listed.uplink_choices
                yield listed if is_whole else replace(listed, uplink_choices=uplinks), choices

    def _by_length(self, listed: Family, choices: list[tuple[LinkEnds, ...]]) -> Iterator[Family]:
        """The families whose cables are chosen by their lengths: laid with each number of uplinks,
        or not yet.
        """
        groups = grouped((replace(listed, optics=optics).per_module, optics) for optics in choices)
        for group in groups.values():
            of_level = tuple(tuple(dict.fromkeys(level)) for level in zip(*group, strict=True))
            least = least_ends(self.instance, of_level)
            for uplinks in uplinks_alike(listed, [least]):
                family = replace(listed, optics=least, choices=of_level, uplink_choices=uplinks)
                if self.unlaid:
                    yield from one_by_one(family) if self.grow and family.breaks_out else (family,)
                else:
                    for u in uplinks:
                        yield from laid_each(self.instance, family, u, self.optic_values)


Ports = tuple[tuple[int, int], tuple[int, ...]]
"""Ports of leaves and aggregation switches in a cage, and those of the switches of each tier."""


def _without_ends(
    network: Network, parts: Parts, levels: EndsByModule
) -> Iterator[tuple[Parts, Wiring, list[tuple[LinkEnds, ...]]]]:
    """Parts and their wirings with the ends that links may have: the choices of modules
    that leave switches of each tier as many ports, on switches that have the cages for them where
    these are kept; so tiers follow from modules as well.
    """
    wired: dict[Ports, list[Wiring]] = {}
    of_core = parts.core_links_of_module * (parts.links > 0)
    for tiers, ports, switches, choices in ends_by_ports(network, parts.switches, levels, of_core):
        caged = parts.with_switches(*switches) if network.keeps_cages else parts
        if ports not in wired:
            wired[ports] = list(caged.wirings(network, ports[0]))
        for wiring in wired[ports]:
            if wiring.tiers == tiers:
                yield caged, wiring, choices


def ends_by_ports(
    network: Network, switches: tuple[Switch, ...], levels: EndsByModule, of_core: int
) -> Iterator[tuple[int, Ports, tuple[Switch, ...], list[tuple[LinkEnds, ...]]]]:
    """The ends that links of so many tiers may have, by the ports that their modules leave to
    switches of three tiers; `of_core` links into a core have one module, 0 without any.
    """
    is_kept = network.keeps_cages
    for tiers in range(len(levels) + 1):
        groups: dict[Ports, tuple[tuple[Switch, ...], list[tuple[LinkEnds, ...]]]] = {}
        for per_module in product(*levels[:tiers]):
            caged = _in_cages(switches, per_module, of_core) if is_kept else switches
            ports = cages_of(per_module), tuple(box.radix for box in caged)
            _, choices = groups.setdefault(ports, (caged, []))
            choices += product(
                *(level[count] for level, count in zip(levels, per_module, strict=False))
            )
        for ports, (caged, choices) in groups.items():
            yield tiers, ports, caged, choices


def _in_cages(chain: tuple[Switch, ...], per_module: PerModule, of_core: int) -> tuple[Switch, ...]:
    """The switches of three tiers with ports for no more of these modules than they have cages."""
    tiers = max(len(per_module), 1)
    caged = in_cages(chain[:tiers], per_module, of_core)
    # Switches above the tiers that modules are given for change with the last of these if they
    # are of its product.
    return (
        *caged,
        *(caged[-1] if switch == chain[tiers - 1] else switch for switch in chain[tiers:]),
    )


def _leaves_room(family: Family, ends: tuple[LinkEnds, ...]) -> bool:
    """Whether the modules of a single tier leave the ports that lead into a core."""
    if family.tiers != 1 or not family.core_ports:
        return True
    port_groups = (
        (
            min(family.planes_together, family.planes) * family.down,
            ends[0].above.links_of(family.link_gbit_s),
        ),
        (family.core_ports, family.core_links_of_module),
    )
    return (
        sum(-(-links // of_module) * of_module for links, of_module in port_groups)
        <= family.switch.radix
    )


def one_by_one(listed: Listed) -> Iterator[Listed]:
    """The same with each number of uplinks alone."""
    return (replace(listed, uplink_choices=(u,)) for u in listed.uplink_choices)


def _with_ends(listed: Family, choices: Iterable[tuple[LinkEnds, ...]]) -> Iterator[Family]:
    """The families with every choice of ends, of which any may be the best of a network that grows;
    where modules break out above leaves one for each number of uplinks.
    """
    for ends in choices:
        family = replace(listed, optics=ends)
        yield from one_by_one(family) if family.breaks_out else (family,)


def families(
    instance: Instance,
    measures: tuple[ObjectiveKind, ...] | None = None,
    *,
    grow: bool = False,
    links: range | None = None,
    unlaid: bool = False,
) -> Iterator[Family]:
    """Every family of docs/network.md, in the order of the instance's lists.

    Parameters
    ----------
    measures
        What optics are compared by; as the instance has it where left out.
    grow
        Whether they have stood smaller before.
    links
        How many links may lead into a core; the fewest that are asked for where left out.
    unlaid
        Whether cables that lengths choose are left to choose.
    """
    space = Space(instance=instance, measures=measures, grow=grow, links=links, unlaid=unlaid)
    for gpus, hb, domains in space.all_sites():
        yield from space.families(gpus, hb, domains, space.nic_options)


def is_joined(network: Network, nic: Nic, switch: Switch, core: Switch | None) -> bool:
    """Whether a NIC, a leaf with ports of its rate and the core that both may be linked to go
    together.
    """
    if core is not None and core.port_gbit_s != switch.port_gbit_s:
        return False
    ends = (nic, switch) if core is None else (nic, switch, core)
    return not network.mates or mate(*ends)


EndsByModule = list[dict[tuple[int, int], tuple[LinkEnds, ...]]]
"""For each level its ends by the links that a module carries at the lower and at the upper one."""


def by_module(
    choices: EndsByLevel, nic_option: NicOption, switches: tuple[Switch, ...]
) -> EndsByModule:
    """The choices of each level that its switches take, by the links that modules carry, as far up
    as there are any.
    """
    levels: EndsByModule = []
    rate = nic_option.nic.gbit_s / nic_option.nic_planes
    for number, level in enumerate(choices):
        lower_switch, upper_switch = switches[number - 1] if number else None, switches[number]
        by_count: dict[tuple[int, int], tuple[LinkEnds, ...]] = {}
        for ends in level:
            if fits(ends.below, rate, lower_switch) and fits(ends.above, rate, upper_switch):
                count = ends.below.links_of(rate), ends.above.links_of(rate)
                by_count[count] = (*by_count.get(count, ()), ends)
        # Without products for this level no tier above can be reached either.
        if not by_count:
            break
        levels.append(by_count)
    return levels


def _switches_above(network: Network, leaf: Switch) -> list[tuple[Switch, ...]]:
    """What may stand above leaves of a product: switches with ports of their rate, each of which
    mates with those below.
    """
    if network.tier_switches == "same":
        return [()]
    ways = [way for way in network.switch_modes if way.port_gbit_s == leaf.port_gbit_s]
    pairs = (
        pair for pair in product(ways, repeat=2) if mate(pair[0], leaf) and mate(pair[1], pair[0])
    )
    return [(), *(pair for pair in pairs if pair != (leaf, leaf))]
