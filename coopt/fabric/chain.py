"""A chain of tiers: everything decided but the uplinks of a leaf, and what it counts to
(docs/designs.md).

A network is one of equal networks that share nothing: a plane, or a rail of a plane where the
fabric is rail-only. Leaves make pods; the leaves of a pod share spines, and cores join all pods of
a network.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

from coopt.instance.errors import counted

Bundles = Literal["even", "any"]


class NotWirableError(ValueError):
    """A chain that cannot be wired: the tier (1 for leaves), the ports a switch would take and
    those it has.
    """

    def __init__(self, tier: int, takes: int, has: int, reason: str) -> None:
        self.tier, self.takes, self.has = tier, takes, has
        super().__init__(
            f"a switch of tier {tier} would take {takes:,} ports ({reason}) and has {has:,}"
        )


@dataclass(frozen=True, kw_only=True)
class TierPorts:
    """The ports of a switch: `down` is the most cables down that it may have, `up` its cables up
    where they are fixed.

    A port breaks out into `down_split` cables down or `up_split` cables up. One cable down has the
    bandwidth of `ratio` cables up.
    """

    ports: int
    down: int
    up: int | None = None
    down_split: int = 1
    up_split: int = 1
    ratio: Fraction = Fraction(1)

    def full_uplinks(self, down: int) -> int:
        """Cables up with at least the bandwidth of so many cables down."""
        return math.ceil(down * self.ratio)

    def check(self, tier: int, down: int, up: int) -> None:
        """Refuse more cables than there are ports.

        Raises
        ------
        NotWirableError
            With the ports that the cables would take.
        """
        takes = -(-down // self.down_split) - (-up // self.up_split)
        if takes > self.ports:
            raise NotWirableError(
                tier, takes, self.ports, f"for {counted(down, 'cable')} down and {up:,} up"
            )


@dataclass(frozen=True, kw_only=True)
class PodSplit:
    """`count` pods of a network, each of so many leaves."""

    count: int
    leaves: int


@dataclass(frozen=True, kw_only=True)
class TierChain:
    """Networks that differ in the uplinks of their leaves only.

    `ends` are NIC ports installed in all networks. `leaves` and `pods` are of one of `networks`
    equal networks, `fill` is how many end points a leaf is sized for. `planes` share nothing; on a
    single tier a switch holds `networks_per_switch` networks of a plane.
    """

    ends: int
    planes: int
    networks: int
    leaves: int
    fill: int
    tiers: tuple[TierPorts, ...]
    pods: tuple[PodSplit, ...] = ()
    networks_per_switch: int = 1
    bundles: Bundles = "even"


@dataclass(frozen=True, kw_only=True)
class Block:
    """`count` equal pods: their leaves and spines, and the cables of a spine."""

    count: int
    leaves: int
    spines: int
    down: int
    up: int


@dataclass(frozen=True, kw_only=True)
class TierLevel:
    """One tier of all networks.

    `down_ports` and `uplinks` are cables of the fullest switch as it is sized, `links` all cables
    below the tier. `bundle` is how many cables lead from a switch to each one above that it
    reaches, at least; 0 at the top.
    """

    switches: int
    down_ports: int
    uplinks: int
    links: int
    bundle: int


def levels(chain: TierChain, uplinks: int) -> tuple[TierLevel, ...]:
    """The tiers from the leaves up.

    Raises
    ------
    NotWirableError
        Where a switch has too few ports.
    """
    if len(chain.tiers) == 1:
        in_plane = chain.networks // chain.planes
        switches = chain.planes * -(-in_plane // chain.networks_per_switch)
        down = chain.fill * min(chain.networks_per_switch, in_plane)
        return (
            TierLevel(switches=switches, down_ports=down, uplinks=0, links=chain.ends, bundle=0),
        )
    n = chain.networks
    parts = blocks(chain, uplinks)
    leaf = TierLevel(
        switches=n * chain.leaves,
        down_ports=chain.fill,
        uplinks=uplinks,
        links=chain.ends,
        bundle=min(uplinks // part.spines for part in parts),
    )
    group, step = cores(chain, parts) if len(chain.tiers) == 3 else (0, 0)
    spine = TierLevel(
        switches=n * sum(part.count * part.spines for part in parts),
        down_ports=max(part.down for part in parts),
        uplinks=max(part.up for part in parts),
        links=n * chain.leaves * uplinks,
        bundle=max(step, min(part.up for part in parts) // group) if group else 0,
    )
    if not group:
        return leaf, spine
    links = sum(part.count * part.spines * part.up for part in parts)
    down = -(-links // step // group) * step
    return (
        leaf,
        spine,
        TierLevel(switches=n * group, down_ports=down, uplinks=0, links=n * links, bundle=0),
    )


def blocks(chain: TierChain, uplinks: int) -> tuple[Block, ...]:
    """The pods of one network with their spines: the fewest whose ports are enough and, where
    bundles are even, whose number divides the uplinks of a leaf.

    Raises
    ------
    NotWirableError
        Where a spine has no port for every leaf of its pod, or too few for its uplinks.
    """
    spine, top = chain.tiers[1], len(chain.tiers) == 2
    chain.tiers[0].check(1, chain.fill, uplinks)
    parts = []
    for pod in chain.pods:
        if pod.leaves > spine.down:
            raise NotWirableError(2, pod.leaves, spine.down, "one for each leaf")
        least_spines = -(-pod.leaves * uplinks // spine.down)
        spines = least_spines if chain.bundles == "any" else least_divisor(uplinks, least_spines)
        down = -(-pod.leaves * uplinks // spines)
        up = 0 if top else (spine.up if spine.up is not None else spine.full_uplinks(down))
        spine.check(2, down, up)
        parts.append(Block(count=pod.count, leaves=pod.leaves, spines=spines, down=down, up=up))
    return tuple(parts)


def least_divisor(number: int, lower_bound: int) -> int:
    """The least divisor of a number that is not below another, at most the number itself."""
    return next(k for k in range(lower_bound, number + 1) if number % k == 0)


def cores(chain: TierChain, parts: tuple[Block, ...]) -> tuple[int, int]:
    """The fewest cores of one network, and how many cables always go together from a spine to a
    core.

    Where bundles are even, that is all a spine has for each core that it reaches. A core has a port
    for every full pod, and the bundles of a pod go round the cores, so that no core has two more of
    them than another.

    Raises
    ------
    NotWirableError
        Where no core has a port for every pod.
    """
    ports, even = chain.tiers[2].down, chain.bundles == "even"
    links = sum(part.count * part.spines * part.up for part in parts)
    pod_links = max(part.spines * part.up for part in parts)
    options = []
    for step in _divisors(math.gcd(*(part.up for part in parts))) if even else [1]:
        if step > ports:
            break
        # all cables of a spine to a core are one bundle, so that it needs as many cores as it has
        # bundles
        least_cores = max(part.up for part in parts) // step if even else 1
        count = max(-(-links // step // (ports // step)), least_cores)
        # a full pod reaches every core, so that there are no more cores than it has bundles
        if count * step <= pod_links:
            options.append((count, step))
    if not options:
        raise NotWirableError(3, sum(part.count for part in parts), ports, "one for each pod")
    return min(options)


def _divisors(number: int) -> list[int]:
    return [k for k in range(1, number + 1) if number % k == 0]


def worst_pair_share(chain: TierChain, uplinks: int) -> float:
    """The least share of their uplinks that two leaves of a pod can use between them.

    Cables go round the spines, so that leaves differ in which of them have one cable more; even
    bundles give 1.
    """
    if len(chain.tiers) == 1:
        return 1.0
    return min(pair_share(part.leaves, part.spines, uplinks) for part in blocks(chain, uplinks))


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


class Bandwidth(NamedTuple):
    """Bandwidth down over bandwidth up: of a leaf, and of leaf and pod together."""

    leaf: Fraction
    beyond: Fraction


def bandwidth(chain: TierChain, uplinks: int) -> Bandwidth:
    """The ratios of a design; more bandwidth up than down counts as as much."""
    if len(chain.tiers) == 1:
        return Bandwidth(Fraction(1), Fraction(1))
    leaf = max(chain.fill * chain.tiers[0].ratio / uplinks, Fraction(1))
    if len(chain.tiers) == 2:
        return Bandwidth(leaf, leaf)
    pod = max(part.down * chain.tiers[1].ratio / part.up for part in blocks(chain, uplinks))
    return Bandwidth(leaf, leaf * max(pod, Fraction(1)))
