"""Families of networks: everything decided but the uplinks of a leaf, and the chain of tiers of one
network with all its cables counted.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coopt.instance.hardware import HbDomain, Nic, Optic, Switch
from coopt.instance.network import Discipline
from coopt.instance.reserves import PortOutages
from coopt.instance.schema import SwitchedKind
from coopt.network.fibres import FibreUnits

Ints = NDArray[np.int64]
Holders = tuple[tuple[int, int], ...]
"""How many NICs, cages of NICs or switches have so many cables of a level."""


class EndHolders(NamedTuple):
    """What has the cables below a tier at their lower ends, and at their upper ones."""

    below: Holders
    above: Holders


class PodSet(NamedTuple):
    """`number` equal pods: their leaves and spines, and the cables of a spine."""

    number: int
    leaves: int
    spines: int
    down: int
    up: int = 0


class TierLevel(NamedTuple):
    """One tier of all networks.

    `down_ports` and `uplinks` are cables of the fullest switch as it is sized, `links` all cables
    below the tier.
    """

    switches: int
    down_ports: int
    uplinks: int
    links: int


class Bandwidth(NamedTuple):
    """Bandwidth down over bandwidth up: of a leaf, and of leaf and pod together."""

    leaf: Fraction
    beyond: Fraction


class Wires(NamedTuple):
    """Bundles of parallel links between two tiers: `lower[i]` to `upper[i]` by `links[i]`; shape
    (bundles,).
    """

    lower: Ints
    upper: Ints
    links: Ints


@dataclass(frozen=True, kw_only=True)
class TierChain:
    """Equal networks of one to three tiers.

    `ends` are NIC ports installed in all networks. `leaves`, `pods` and `cores` are of one of
    `networks` equal networks, `fill` is how many end points a leaf is sized for and `uplinks` how
    many cables lead up from it. `planes` share nothing; on a single tier a switch holds
    `networks_per_switch` networks of a plane. Cores are in `core_groups`, each of which serves one
    spine of every pod, or all; `core_step` cables always go together from a spine to a core. One
    cable down has the bandwidth of `ratios` cables up, in a leaf and in a spine.
    """

    ends: int
    planes: int
    networks: int
    leaves: int
    fill: int
    uplinks: int = 0
    pods: tuple[PodSet, ...] = ()
    cores: int = 0
    core_groups: int = 1
    core_step: int = 1
    networks_per_switch: int = 1
    ratios: tuple[Fraction, Fraction] = (Fraction(1), Fraction(1))

    @property
    def leaf_switches(self) -> int:
        """Leaves of all networks."""
        if self.pods:
            return self.networks * self.leaves
        return self.planes * -(-(self.networks // self.planes) // self.networks_per_switch)

    @property
    def networks_together(self) -> int:
        """Networks that the fullest leaf switch holds."""
        return 1 if self.pods else min(self.networks_per_switch, self.networks // self.planes)

    def each_pod(self) -> Iterator[tuple[PodSet, range]]:
        """Every pod of one network with the numbers of its leaves."""
        start = 0
        for pods in self.pods:
            for _ in range(pods.number):
                yield pods, range(start, start + pods.leaves)
                start += pods.leaves

    @property
    def pod_of_leaf(self) -> Ints:
        """The number of each leaf's pod."""
        sizes = [len(leaves) for _, leaves in self.each_pod()]
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def core_links(self) -> int:
        """Cables from spines to cores in one network."""
        return sum(pod.number * pod.spines * pod.up for pod in self.pods) if self.cores else 0

    @cached_property
    def levels(self) -> tuple[TierLevel, ...]:
        """The tiers from the leaves up; none without leaves."""
        if not self.leaves:
            return ()
        pods, n = self.pods, self.networks
        leaf = TierLevel(self.leaf_switches, self.fill, self.uplinks, self.ends)
        if not pods:
            return (leaf,)
        spine = TierLevel(
            switches=n * sum(pod.number * pod.spines for pod in pods),
            down_ports=max(pod.down for pod in pods),
            uplinks=max(pod.up for pod in pods),
            links=n * self.leaves * self.uplinks,
        )
        if not self.cores:
            return leaf, spine
        links, group = self.core_links, self.cores // self.core_groups
        bundles = links // self.core_groups // self.core_step
        down = -(-bundles // group) * self.core_step
        return leaf, spine, TierLevel(n * self.cores, down, 0, n * links)

    @property
    def bundles(self) -> tuple[int, ...]:
        """How many cables lead from a switch of each tier to each one above that it reaches, at
        least; 0 at the top.
        """
        if not self.pods:
            return (0,)
        leaf = min(self.uplinks // pod.spines for pod in self.pods)
        if not self.cores:
            return leaf, 0
        group = self.cores // self.core_groups
        return leaf, max(self.core_step, min(pod.up for pod in self.pods) // group), 0

    def wires(self) -> tuple[Wires, ...]:
        """The cables between leaves and spines, and between spines and cores, of one network.

        Cables of a leaf go round the spines of its pod, from one leaf to the next; those of spines
        go round the cores of their group, pod after pod.
        """
        if not self.pods:
            return ()
        lower, upper, ups = list[Ints](), list[Ints](), list[int]()
        for pod, leaves in self.each_pod():
            number = np.arange(pod.leaves * self.uplinks)
            lower.append(leaves.start + number // self.uplinks)
            upper.append(len(ups) + number % pod.spines)
            ups += [pod.up] * pod.spines
        leaf_wires = bundled(np.concatenate(lower), np.concatenate(upper))
        if not self.cores:
            return (leaf_wires,)
        spine = np.repeat(np.arange(len(ups)), np.array(ups) // self.core_step)
        # spines of a pod are numbered by their group
        group = spine % self.core_groups
        order = np.argsort(group, kind="stable")
        turn = np.arange(len(spine)) % (len(spine) // self.core_groups)
        size = self.cores // self.core_groups
        cores = bundled(spine[order], group[order] * size + turn % size)
        return leaf_wires, cores._replace(links=cores.links * self.core_step)

    @property
    def one_slice(self) -> TierChain:
        """A chain with the leaves, one spine of each pod and the cores of one group."""
        groups = self.core_groups
        pods = tuple(pod._replace(spines=pod.spines // groups) for pod in self.pods)
        return replace(
            self,
            uplinks=self.uplinks // groups,
            pods=pods,
            cores=self.cores // groups,
            core_groups=1,
        )

    def end_holders(self, nics: Holders, leaves: Holders) -> tuple[EndHolders, ...]:
        """What has the cables below each tier at either end, over all networks, with the NICs and
        the leaves that have those of the first.
        """
        n, first = self.networks, EndHolders(nics, leaves)
        if not self.pods:
            return (first,)
        spines = (dealt(n * pod.number, pod.leaves * self.uplinks, pod.spines) for pod in self.pods)
        second = EndHolders(((n * self.leaves, self.uplinks),), sum(spines, ()))
        if not self.cores:
            return first, second
        groups = self.core_groups
        cores = dealt(n * groups, self.core_links // groups, self.cores // groups)
        trunks = tuple((n * pod.number * pod.spines, pod.up) for pod in self.pods)
        return first, second, EndHolders(trunks, cores)

    def worst_pair_share(self) -> float:
        """The least share of their uplinks that two leaves of a pod can use between them.

        Cables go round the spines, so that leaves differ in which of them have one cable more; even
        bundles give 1.
        """
        shares = (pair_share(pod.leaves, pod.spines, self.uplinks) for pod in self.pods)
        return min(shares, default=1.0)

    def bandwidth(self) -> Bandwidth:
        """The ratios of the chain; more bandwidth up than down counts as as much."""
        if not self.pods:
            return Bandwidth(Fraction(1), Fraction(1))
        leaf = max(self.fill * self.ratios[0] / self.uplinks, Fraction(1))
        if not self.cores:
            return Bandwidth(leaf, leaf)
        pod = max(pod.down * self.ratios[1] / pod.up for pod in self.pods)
        return Bandwidth(leaf, leaf * max(pod, Fraction(1)))


def bundled(lower: Ints, upper: Ints) -> Wires:
    """Links between the same two switches, counted as one bundle."""
    width = int(upper.max()) + 1
    pairs, links = np.unique(lower * width + upper, return_counts=True)
    return Wires(lower=pairs // width, upper=pairs % width, links=links)


def dealt(times: int, links: int, switches: int) -> Holders:
    """Switches that take links in turn, so many times."""
    quotient, remainder = divmod(links, switches)
    return (times * (switches - remainder), quotient), (times * remainder, quotient + 1)


def whole(holders: Holders, per_module: int) -> int:
    """Whole modules of all that hold links, where one takes so many."""
    return sum(count * -(-links // per_module) for count, links in holders)


def pair_share(leaves: int, spines: int, uplinks: int) -> float:
    """The least share of their uplinks that two of so many leaves can use between them over the
    spines they share.
    """
    bundle, extra_cables = divmod(uplinks, spines)
    # the extra cables of leaf i go to the spines from i * extra_cables on, round all of them
    offsets = {leaf * extra_cables % spines for leaf in range(1, min(leaves, spines + 1))}
    common = [max(0, extra_cables - t) + max(0, extra_cables - (spines - t)) for t in offsets]
    return min(
        (
            (bundle * spines + min(extra_cables, spines_in_common)) / uplinks
            for spines_in_common in common
        ),
        default=1.0,
    )


class SlowTime(NamedTuple):
    """A share of the time, and how many times as long traffic between domains takes in it: without
    end where NICs have one port and it is out, so that training waits.
    """

    share: float
    slower: float


class LinkEnds(NamedTuple):
    """The products at both ends of the links of a level: at a NIC or a lower switch, and at the
    switch above.
    """

    below: Optic
    above: Optic

    @property
    def products(self) -> tuple[Optic, ...]:
        """Each product once, that of the upper end first."""
        return tuple(dict.fromkeys((self.above, self.below)))

    @property
    def reach_m(self) -> float:
        """How far both reach (m)."""
        return min(self.below.reach_m, self.above.reach_m)


class CableRun(NamedTuple):
    """The cables of a level that need one length (m), all over, with the modules at their lower and
    at their upper ends, and the fibre that is bought between these.
    """

    length_m: int
    ends: LinkEnds
    links: int
    below: int
    above: int
    fibre: tuple[FibreUnits, ...] = ()

    def times(self, links: int, of: int) -> CableRun:
        """As many of them as a level has that would have `of` links, and has so many."""
        if links == of:
            return self
        return self._replace(
            links=self.links * links // of,
            below=self.below * links // of,
            above=self.above * links // of,
            fibre=tuple(one._replace(units=one.units * links // of) for one in self.fibre),
        )


@dataclass(frozen=True, kw_only=True)
class Pods:
    """The middle tier of three: `l` down-ports and `w` up-ports of an aggregation switch, `count`
    pods.

    A leaf has `each` links to each aggregation switch of its pod. `bundle` links lead from an
    aggregation switch to each of its cores; 0 where they are spread over as few cores as have the
    ports.
    """

    l: int  # noqa: E741 - the letter it has on paper
    w: int
    count: int
    bundle: int = 0
    each: int = 1

    @property
    def leaves(self) -> int:
        """Leaves of a pod."""
        return self.l // self.each

    def cores(self, radix: int) -> int:
        """Core switches of one radix that serve an aggregation switch of every pod."""
        return self.w // self.bundle if self.bundle else -(-self.count * self.w // radix)


@dataclass(frozen=True, kw_only=True)
class NicOption:
    """What joins the GPUs of a domain to the leaves: a GPU has `nics_per_gpu` NICs, or
    `gpus_per_nic` GPUs share one.

    The ports of each NIC lead to `nic_planes` equal networks; `switch` is run with ports of the
    rate of its links.
    """

    nic: Nic
    nics_per_gpu: int
    gpus_per_nic: int = 1
    nic_planes: int = 1
    switch: Switch

    @property
    def byte_s(self) -> float:
        """Bandwidth of one GPU between domains (byte/s)."""
        return self.nics_per_gpu * self.nic.gbit_s * 1e9 / 8 / self.gpus_per_nic

    @property
    def link_gbit_s(self) -> float:
        """Rate of a link (Gbit/s)."""
        return self.nic.gbit_s / self.nic_planes

    def fits(self, size: int, gpus: int, domains: int) -> bool:
        """Whether NICs that GPUs share divide a domain and its GPUs that train."""
        return size % self.gpus_per_nic == -(-gpus // domains) % self.gpus_per_nic == 0


class FilledDomains:
    """N GPUs in D HB domains."""

    gpus: int
    domains: int

    @property
    def active(self) -> int:
        """K: GPUs of a domain that train; the mean, rounded up, where domains are not filled
        alike.
        """
        return -(-self.gpus // self.domains)

    @property
    def alike(self) -> bool:
        """Whether as many GPUs train in every domain."""
        return self.gpus % self.domains == 0


@dataclass(frozen=True, kw_only=True)
class EquippedDomains(FilledDomains, NicOption):
    """HB domains that hold N GPUs, with what joins them.

    Where `ports_in_plane` ports of a NIC lead to the same networks, each of them counts as a NIC of
    its rate wherever links are counted; at most `ports_on_leaf` lead to one leaf switch. `upper`
    are the switches of the tiers above the leaves, from the second up; empty where all are like the
    leaves. `outages` are those of links of NICs that end no run. Links into a core shared with
    others have modules `core_end` at their lower ends; those of the core where that is None.
    Where lengths are still to choose, it is the least of `core_choices`, the ends they may have.
    """

    gpus: int
    hb: HbDomain
    domains: int
    fabric: SwitchedKind
    ports_in_plane: int = 1
    ports_on_leaf: int = 1
    upper: tuple[Switch, ...] = ()
    core_end: Optic | None = None
    core_choices: tuple[LinkEnds, ...] = ()
    outages: PortOutages | None = None

    @property
    def keeps_ports(self) -> bool:
        """Whether each NIC keeps ports on other leaves where one is out."""
        return self.nic_planes * self.ports_in_plane > self.ports_on_leaf

    @property
    def core_links_of_module(self) -> int:
        """Links into the core that a module at their lower ends carries."""
        return 1 if self.core_end is None else self.core_end.links_of(self.link_gbit_s)


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """A plane's switches up to the open number of uplinks.

    `uplink_choices` rise. `leaf_span` and `pod_span` count HB domains. On two tiers a leaf has at
    most `bundle` links to each spine, the same number to all; 0 where links are spread over as few
    spines as have the ports. From each leaf lead `core_ports` links into a core shared with others.
    A switch of a single tier has room for `planes_together` planes.
    """

    tiers: int
    leaves: int
    chassis: int
    down: int
    uplink_choices: tuple[int, ...]
    leaf_span: int
    pods: Pods | None = None
    pod_span: int = 0
    bundle: int = 0
    core_ports: int = 0
    planes_together: int = 1


@dataclass(frozen=True, kw_only=True)
class Family(EquippedDomains, Wiring):
    """Networks that differ in their uplinks only.

    `leaves` and everything else about wiring are for one of `planes` equal planes, and the ports of
    each NIC lead to `nic_planes` such sets; `chassis` are the leaf switches of all. `optics` has
    the ends of links of each tier: of the longest where `cables` are chosen by their lengths, and
    the least of `choices` where lengths have not chosen yet; `core_cables` lead into a core.
    `discipline` says what slows traffic above the leaves. Where one domain holds everything,
    `lone_links` lead from its NICs into a core. `spare_domains` stand by without links of their
    own. Where the network grows in a hall that chooses cables, domains came in waves: each but the
    last ends with so many of `waves`.
    """

    optics: tuple[LinkEnds, ...]
    cables: tuple[tuple[CableRun, ...], ...] = ()
    core_cables: tuple[CableRun, ...] = ()
    choices: tuple[tuple[LinkEnds, ...], ...] = ()
    planes: int
    discipline: Discipline
    lone_links: int = 0
    spare_domains: int = 0
    waves: tuple[int, ...] = ()

    @property
    def unlaid(self) -> bool:
        """Whether lengths are still to choose cables."""
        return bool(self.choices or self.core_choices)

    @property
    def switches(self) -> tuple[Switch, ...]:
        """The switch of each tier, from the leaves up."""
        return (self.switch, *(self.upper or (self.switch,) * (self.tiers - 1)))[: self.tiers]

    def training_in(self, domain: int) -> int:
        """GPUs of one of the domains that train; as even as GPUs are, which mappings shift by whole
        groups.
        """
        base_gpus, remainder = divmod(self.gpus, self.domains)
        return base_gpus + (domain < remainder)

    @property
    def installed_gpus(self) -> int:
        """Active and idle GPUs, those of domains that stand by too."""
        return (self.domains + self.spare_domains) * self.hb.size

    @property
    def nic_count(self) -> int:
        """NICs with a link; where one domain holds everything, as many as lead into a core: a link
        from each cage.
        """
        return (
            self.domains * self.nics_of_domain
            if self.tiers
            else -(-self.lone_links // self.nic.cages)
        )

    @property
    def bought_nics(self) -> int:
        """NICs as they are bought, those of domains that stand by too, which take over the links
        of those that they stand in for.
        """
        spare = self.spare_domains * self.nics_of_domain if self.tiers else 0
        return (self.nic_count + spare) // self.ports_in_plane

    @property
    def bought_per_gpu(self) -> int:
        """NICs of a GPU as they are bought."""
        return self.nics_per_gpu // self.ports_in_plane

    @property
    def ports_of_cage(self) -> int:
        """Ports of a NIC that a cage of it holds."""
        return self.nic_planes * self.ports_in_plane // self.nic.cages

    @property
    def nics_of_domain(self) -> int:
        """NICs of a domain, those of idle GPUs included."""
        return self.hb.size * self.nics_per_gpu // self.gpus_per_nic

    @property
    def leaf_block(self) -> tuple[int, int]:
        """Rails and consecutive domains of which a leaf holds the NICs, unless the fabric is clos:
        as many whole rails as fit, or some domains of one.
        """
        return self.down // self.leaf_span, self.leaf_span

    @property
    def takes_turns(self) -> bool:
        """Whether leaves serve several rails of some domains, so that neighbours are on different
        ones.
        """
        is_joined = self.tiers > 1 and self.fabric == "rail-optimized"
        return is_joined and self.leaf_block[0] > 1 and self.leaf_span < self.domains

    @property
    def nics_on_leaf(self) -> int | None:
        """NICs of a GPU that are on one leaf, where leaves take turns; None elsewhere."""
        return -(-self.nics_per_gpu // self.rail_groups) if self.takes_turns else None

    @property
    def rail_groups(self) -> int:
        """Leaves that the NICs of a domain lead to in a plane, where each serves several rails of
        some domains.
        """
        return -(-self.nics_of_domain // self.planes // self.leaf_block[0])

    @property
    def active_nics(self) -> int:
        """NICs of the GPUs of a domain that train; of all its GPUs where domains are not filled
        alike.
        """
        return (
            (self.active if self.alike else self.hb.size) * self.nics_per_gpu // self.gpus_per_nic
        )

    @property
    def all_planes(self) -> int:
        """Equal networks that are built."""
        return self.planes * self.nic_planes

    @property
    def all_ends(self) -> tuple[LinkEnds, ...]:
        """The ends of links of each level, or of each length where lengths choose cables."""
        return tuple(run.ends for runs in self.cables for run in runs) or self.optics

    def runs(self, chain: TierChain) -> Iterator[tuple[CableRun, ...]]:
        """The cables of each level of a chain, where their lengths choose them: with fewer uplinks
        than in the end as many fewer.
        """
        for runs, level in zip(self.cables, chain.levels, strict=False):
            links = sum(run.links for run in runs)
            yield tuple(run.times(level.links, links) for run in runs)

    def fibre(self, uplinks: int) -> tuple[FibreUnits, ...]:
        """The fibre of all cables that their lengths choose, with so many uplinks for each leaf."""
        every = self.runs(self.chain(uplinks))
        return tuple(units for runs in every for run in runs for units in run.fibre)

    @property
    def per_module(self) -> tuple[tuple[int, int], ...]:
        """Links that one module carries at the lower and at the upper end of each level."""
        rate = self.link_gbit_s
        return tuple(
            (lower_end.links_of(rate), upper_end.links_of(rate))
            for lower_end, upper_end in self.optics
        )

    @property
    def breaks_out(self) -> bool:
        """Whether modules of a level above the first hold several links."""
        return any(max(counts) > 1 for counts in self.per_module[1:])

    @property
    def core_links(self) -> int:
        """Links into a core shared with others."""
        return self.chassis * self.core_ports if self.tiers else self.lone_links

    @property
    def core_modules(self) -> int:
        """Modules at the lower ends of links into a core: whole ones for each leaf switch, of one
        link in NICs.
        """
        return (
            self.chassis * -(-self.core_ports // self.core_links_of_module)
            if self.tiers
            else self.lone_links
        )

    @property
    def slow_times(self) -> tuple[SlowTime, ...]:
        """The times in which a leaf switch is out, and those in which a link of a NIC is; outages
        begin at random.
        """
        if self.outages is None or self.tiers == 0:
            return ()
        ports = self.nic_count * self.nic_planes
        # The share of the time with at least one out; expm1 keeps the digits of small shares.
        leaf = -math.expm1(-self.chassis * self.outages.leaf)
        # A leaf that is out has its links out as well: only the rest of the time counts for single
        # links.
        link = -math.expm1(-2 * ports * self.outages.end) * (1.0 - leaf)
        if not self.keeps_ports:
            return (SlowTime(link, math.inf),) if link else ()
        of_nic = self.nic_planes * self.ports_in_plane
        states = (
            SlowTime(leaf, of_nic / (of_nic - self.ports_on_leaf)),
            SlowTime(link, without_nics(self, 1)[0]),
        )
        return tuple(state for state in states if state.share)

    @property
    def joins_rails(self) -> bool:
        """Whether rails meet above the leaves, where there is something above them."""
        return self.tiers <= 1 or self.fabric != "rail-only"

    @property
    def rails_apart(self) -> bool:
        """Whether rails are separate networks, so that traffic changes rails inside domains."""
        return self.fabric == "rail-only" and self.planes > 1

    @property
    def pod_ratio(self) -> float:
        """Slowdown beyond a pod over that inside it."""
        return self.pods.l / self.pods.w if self.pods else 1.0

    def slowdown(self, uplinks: int) -> float:
        """Slowdown inside a pod: down-ports over uplinks of a leaf; 1 on at most one tier."""
        return self.down / uplinks if self.tiers > 1 else 1.0

    @property
    def spine_ports(self) -> int:
        """Ports that a spine of two tiers has for leaves."""
        # With even bundles a spine has one for each leaf, and ports beyond these stay free.
        return self.leaves * self.bundle or (self.upper[0] if self.upper else self.switch).radix

    def spines(self, uplinks: Any) -> Any:
        """Spines of one plane on two tiers, else 0: at one number of uplinks, or at each of an
        array.
        """
        return -(-self.leaves * uplinks // self.spine_ports) if self.tiers == 2 else 0 * uplinks

    def slices(self, uplinks: int) -> int:
        """Equal networks above the leaves of a plane on three tiers: aggregation switches of a pod;
        1 on fewer.
        """
        return uplinks // self.pods.each if self.pods else 1

    def chain(self, uplinks: int) -> TierChain:
        """The chain of tiers with so many uplinks for each leaf."""
        sets = self._pod_sets(uplinks)
        groups = self.slices(uplinks)
        return TierChain(
            ends=self.nic_count * self.nic_planes,
            planes=self.nic_planes,
            networks=self.all_planes,
            leaves=self.leaves,
            fill=self.down,
            uplinks=uplinks if sets else 0,
            pods=sets,
            cores=groups * self.core_group if self.pods else 0,
            core_groups=groups,
            core_step=max(self.pods.bundle, 1) if self.pods else 1,
            networks_per_switch=self.planes_together,
        )

    def _pod_sets(self, uplinks: int) -> tuple[PodSet, ...]:
        if self.tiers < 2:
            return ()
        if self.pods is None:
            spines = self.spines(uplinks)
            return (PodSet(1, self.leaves, spines, -(-self.leaves * uplinks // spines)),)
        pods, spines = self.pods, uplinks // self.pods.each
        full_pods, rest = divmod(self.leaves, pods.leaves)
        sets = (
            PodSet(full_pods, pods.leaves, spines, pods.l, pods.w),
            PodSet(1, rest, spines, rest * pods.each, pods.w),
        )
        return sets if full_pods and rest else sets[:1] if full_pods else sets[1:]

    @property
    def core_group(self) -> int:
        """Core switches that serve one aggregation switch of every pod; 0 without cores."""
        return self.pods.cores(self.switches[2].radix) if self.pods else 0

    def most_offered(self, uplinks: int) -> int:
        """The most uplinks to choose from that are no more than so many."""
        return self.uplink_choices[bisect_right(self.uplink_choices, uplinks) - 1]


def without_nics(
    family: Family, lost: int, ports: int = 1, of_gpu: int | None = None
) -> tuple[float, bool]:
    """How much longer a domain's traffic takes with some NICs without some of their ports, and
    whether it is forwarded.

    All ports that are left share it, those of idle GPUs as well, through other GPUs of the domain;
    or each GPU keeps to its own ports, if that is faster: where one NIC is hit, where each keeps
    ports on other planes, or where at most `of_gpu` NICs of a GPU are.
    """
    planes, all_ports = family.nic_planes, family.nics_per_gpu * family.nic_planes
    ports_left = family.nics_of_domain * planes - lost * ports
    # Forwarded traffic passes the HB domain's own network once more.
    hop = family.byte_s / (family.hb.gbyte_s * 1e9)
    spread_slowdown = (
        max(1.0, family.active_nics * planes / ports_left) + hop if ports_left > 0 else math.inf
    )
    kept = lost <= family.ports_in_plane or ports < planes
    if of_gpu is None:
        of_gpu = min(lost, family.nics_per_gpu) if kept else family.nics_per_gpu
        ports = ports if kept else planes
    left = all_ports - of_gpu * ports
    own_slowdown = all_ports / left if left > 0 else math.inf
    return min(own_slowdown, spread_slowdown), spread_slowdown < own_slowdown


def levels(family: Family, uplinks: int) -> tuple[TierLevel, ...]:
    """The tiers from the leaves up; empty for one HB domain."""
    return family.chain(uplinks).levels


def most_even(links: int, max_bundle: int) -> int:
    """The most links to each switch above, up to a largest bundle, that share all links evenly."""
    return next(bundle for bundle in range(min(max_bundle, links), 0, -1) if links % bundle == 0)


def next_even(uplinks: Any, bundle: Any) -> Any:
    """The least uplinks from so many on that the fewest spines share evenly, with at most `bundle`
    links to each.

    A multiple of the spines that so many uplinks take: these have the ports for it. Without a
    bundle any number will do. Takes numbers or arrays.
    """
    spines = np.maximum(-(-uplinks // np.where(bundle == 0, 1, bundle)), 1)
    return np.where(bundle == 0, uplinks, -(-uplinks // spines) * spines)


def common_links(links: Any, switches: Any, *, at_random: bool = False) -> Any:
    """What links up, dealt in turn to some switches, are worth where two that send to each other
    are dealt others.

    Of q·s + r links to s switches two have q·s + max(0, 2r - s) in common at least, neighbours in
    the order of the deal no more. Sprayed flows load a link as much as if there were only these.
    One `at_random` takes any link up and meets as many at the other end, so that a link down from a
    switch with q + 1 links up and q down is (q + 1)/q as busy. Takes numbers or arrays.
    """
    quotient, remainder = np.divmod(links, switches)
    if at_random:
        return np.where(remainder == 0, links, links * quotient / (quotient + 1))
    return links - np.minimum(remainder, switches - remainder)
