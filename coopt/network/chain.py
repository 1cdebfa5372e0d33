"""A chain of tiers: a network of switches with all its cables counted.

A network is one of equal networks that share nothing: a plane, or a rail of a plane where the
fabric is rail-only. Leaves make pods; the leaves of a pod share spines, and cores join all pods of
a network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
