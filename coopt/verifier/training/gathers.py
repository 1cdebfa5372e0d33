"""All-gathers, reduce-scatters and all-reduces over domains and the ranks in them: the ways there
are, and seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from coopt.verifier.training.communication import LinkShares, OtherWays
from coopt.verifier.training.mappings import ScalarMapping

Summed = Literal["nothing", "activations", "gradients"]
"""What an all-reduce adds up, of which a collective is one half."""

Flows = Literal["ring", "halving", "trees"]


class GatherWay(NamedTuple):
    """What a GPU spends inside its domain and sends out of it; at the same time, or one after the
    other.

    `flows` say whom it sends to, at so many seconds a byte of the rail's share, and `steps` how
    often it starts anew.
    """

    name: str
    flows: Flows
    inside_s: float
    across_bytes: float
    at_once: bool
    steps: int
    s_byte: float
    start_share: float = 1.0

    def seconds(self, links: LinkShares) -> float:
        """From its start to its end."""
        across_s = self.across_bytes * self.s_byte / links.rail
        moved_s = max(self.inside_s, across_s) if self.at_once else self.inside_s + across_s
        return moved_s + self.start_s(links)

    def start_s(self, links: LinkShares) -> float:
        """Start, or the share of it that a half of an all-reduce has, and steps; between domains
        the start of long messages.
        """
        begun_s = links.latency_s + (links.long_s if self.across_bytes else 0.0)
        return begun_s * self.start_share + links.step_s * self.steps


class Group(NamedTuple):
    """Ranks inside each of some domains, and how fast they reach each other: byte/s inside, s/byte
    across.

    `other_ways` are what a byte takes by the ways whose choice asks for the size of a message; None
    where nothing is chosen by it. Where some domain has only `fewest` of the ranks, these divide
    all of the data among them.
    """

    inside: int
    across: int
    byte_s: float
    s_byte: float
    other_ways: OtherWays | None = None
    fewest: int = 0


def gather_ways(
    size_bytes: float, group: Group, links: LinkShares, summed: Summed = "nothing"
) -> list[GatherWay]:
    """Ways of an all-gather or reduce-scatter, one of them level by level with a ring between
    domains.

    Switches may add up sums: those of a domain that holds all ranks, and those of the network,
    which get everything once for both halves. Inside a domain each step doubles what a rank has.
    """
    inside, across, byte_s, s_byte, other_ways, fewest = group
    share = max(links.hb, links.hb_sum) if summed != "nothing" and across == 1 else links.hb
    switched = summed == "gradients" and links.rail_sums and across > 1
    # switches of the network get everything once for both halves of a sum
    sent_share = 1 / 2 if switched else (across - 1) / across
    # halves of a sum start together where protocols are told apart, else each as a gather does
    start_share = 0.5 if summed != "nothing" and links.short < 1 else 1.0
    within_s = (
        links.in_domain_s(size_bytes, inside, share * byte_s, start_share)
        if across == 1
        else (inside - 1) / inside * size_bytes / (share * byte_s)
    )
    inside_steps, across_steps, n = doublings(inside), doublings(across), inside * across
    steps, round_steps = collective_steps(inside, across), collective_steps(inside, across)
    if other_ways is not None:
        # chosen by the size of messages: inside a domain any distance is as good, so that steps
        # there double
        steps, round_steps = inside_steps + (across_steps if switched else across - 1), n - 1
    divided = size_bytes / (fewest or inside)  # among the NICs of the domain that has fewest
    ways = [GatherWay("rings", "ring", within_s, sent_share * divided, False, steps, s_byte)]
    if links.overlap and inside > 1 and across > 1:
        passed_bytes, name = (1 - 1 / n) * size_bytes, "ring through all ranks"
        passed_s = passed_bytes / (links.hb * byte_s)
        ways.append(
            GatherWay(name, "ring", passed_s, (1 - 1 / n) * divided, True, round_steps, s_byte)
        )
    if other_ways is not None and across > 2:
        halved_bytes, name = (across - 1) / across * divided, "halving and doubling"
        ways.append(
            GatherWay(
                name,
                "halving",
                within_s,
                halved_bytes,
                False,
                inside_steps + across_steps,
                other_ways.halving,
            )
        )
        if (
            summed == "gradients" and across > 3
        ):  # of fewer none has a parent in both trees and two children
            # both trees pass through the ranks of a domain one after the other
            chain_s, name = (
                (size_bytes / (links.hb * byte_s) if inside > 1 else 0.0),
                "double binary tree",
            )
            steps = inside - 1 + across_steps
            ways.append(GatherWay(name, "trees", chain_s, divided, True, steps, other_ways.trees))
    return [way._replace(start_share=start_share) for way in ways]


class Repeated(NamedTuple):
    """Collectives of one size, that many times."""

    times: float
    size_bytes: float


def timed_ways(
    collectives: Sequence[Repeated], group: Group, links: LinkShares, summed: Summed = "nothing"
) -> list[tuple[float, tuple[GatherWay, ...]]]:
    """The ways that some collectives of one group may take, which is the same for all of them; the
    seconds of all together, and the way of each.
    """
    tables = [gather_ways(one.size_bytes, group, links, summed) for one in collectives]
    return [
        (
            sum(one.times * way.seconds(links) for one, way in zip(collectives, ways, strict=True)),
            ways,
        )
        for ways in zip(*tables, strict=True)
    ]


def gathers_s(
    collectives: Sequence[Repeated], group: Group, links: LinkShares, summed: Summed = "nothing"
) -> float:
    """Seconds of several collectives of one group; 0 for one rank."""
    return (
        0.0
        if group.inside * group.across == 1
        else _gathers_s(tuple(collectives), group, links, summed)
    )


@lru_cache(maxsize=1 << 16)
def _gathers_s(
    collectives: tuple[Repeated, ...], group: Group, links: LinkShares, summed: Summed
) -> float:
    """The same of several ranks, kept for other mappings whose groups send as much."""
    return min(seconds for seconds, _ in timed_ways(collectives, group, links, summed))


def gather_s(
    size_bytes: float, group: Group, links: LinkShares, summed: Summed = "nothing"
) -> float:
    """AG(D, y_h, y_l): seconds of an all-gather or reduce-scatter over ranks inside and across
    domains.
    """
    return gathers_s([Repeated(1, size_bytes)], group, links, summed)


def collective_steps(inside: int, across: int) -> int:
    """Steps of rings on both levels, or of trees up and down if these have fewer."""
    return min(inside - 1 + across - 1, 2 * doublings(inside) + 2 * doublings(across))


def doublings(ranks: int) -> int:
    """How often one has to double to reach so many: ceil(log2)."""
    return (ranks - 1).bit_length()


def halving_shares(members: int) -> list[float]:
    """Shares of the bytes in the rounds of halving and doubling, of distance 1, 2, 4 and so on.

    In the round of distance 2^j go the parts whose distance to their target ends in j zeros and a
    one.
    """
    rounds = range(doublings(members))
    return [len(range(2**j, members, 2 ** (j + 1))) / (members - 1) for j in rounds]


def summed_by_tp(split: ScalarMapping) -> Summed:
    """TP adds up activations; with sequence parallelism it scatters and gathers them."""
    return "nothing" if split.sequence_parallel else "activations"


def summed_by_replicas(split: ScalarMapping) -> Summed:
    """Without shards gradients are added up; with them scattered, and parameters gathered."""
    return "gradients" if split.zero == 0 else "nothing"
