"""Collectives over two levels: ranks inside an HB domain, and domains joined by one rail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.perf.affine import AffineSeconds

RingKind = Literal["tp", "cp", "dp", "edp", "tied"]
GRADIENTS = ("dp", "edp")
# shares of the line rate, for collectives and sends alike (Dai et al., IEEE Micro 44(2), 2024)
TRANSPORT_SHARE = {"ipoib": 0.20, "tcp": 0.90}


@dataclass(frozen=True)
class LinkRates:
    """Rates that a GPU's links reach under a given transport.

    `hb_byte_s` is the one-way bandwidth inside the domain that collectives reach (bytes/s, a number
    or an array) and `sum_byte_s` that of all-reduces there. `rail` and `send` are the shares of the
    bandwidth between domains that collectives and sends reach. `rail_reduces` says whether the
    switches of the network sum gradients. The latencies are in seconds: to start a collective, per
    step of one, and per send.
    """

    hb_byte_s: Any
    rail: float
    send: float
    latency_s: float
    step_s: float
    send_s: float
    sum_byte_s: Any = 0.0
    rail_reduces: bool = False


def links_of(workload: Workload, gpu: Gpu, hb_gbyte_s: Any) -> LinkRates:
    """Return the link rates for a workload.

    Parameters
    ----------
    hb_gbyte_s
        F, one-way bandwidth inside the domain (10^9 bytes/s).
    """
    efficiency, collectives = gpu.efficiency, workload.options.collectives
    # with `collectives = "levels"` no switch sums: the efficiencies were fitted without
    sums = (
        efficiency.hb
        if collectives == "levels"
        else max(efficiency.hb, efficiency.hb_reduce or 0.0)
    )
    share = TRANSPORT_SHARE.get(workload.options.transport)
    rail, send = (efficiency.rail, efficiency.send) if share is None else (share, share)
    byte_s = hb_gbyte_s * 1e9
    latency = efficiency.latency_s, efficiency.step_s, efficiency.send_s
    return LinkRates(
        efficiency.hb * byte_s, rail, send, *latency, sums * byte_s, collectives == "in-network"
    )


@dataclass(frozen=True)
class GatherRates:
    """Time of an all-gather or reduce-scatter: seconds per byte, and start-up seconds.

    `inside_s_byte` is charged inside domains; `across` is the bytes at the full rate of a rail for
    each byte of data. All are arrays that broadcast.
    """

    kind: RingKind
    inside_s_byte: Any
    across: Any
    start_s: Any

    def of(self, data_bytes: Any) -> AffineSeconds:
        """Return the time of the collective for that many bytes."""
        return AffineSeconds(
            self.inside_s_byte * data_bytes + self.start_s, **{self.kind: self.across * data_bytes}
        )


def gather(
    links: LinkRates,
    data_bytes: Any,
    x: Any,
    y: Any,
    kind: RingKind,
    min_ranks: Any = None,
    *,
    summed: Any = False,
    sized: bool = False,
) -> AffineSeconds:
    """Return the time of an all-gather or reduce-scatter of `data_bytes` (the whole tensor); the
    parameters are those of `gather_rates`.
    """
    return gather_rates(links, x, y, kind, min_ranks, summed=summed, sized=sized).of(data_bytes)


def gather_rates(
    links: LinkRates,
    x: Any,
    y: Any,
    kind: RingKind,
    min_ranks: Any = None,
    *,
    summed: Any = False,
    sized: bool = False,
) -> GatherRates:
    r"""Rates of an all-gather or reduce-scatter over x ranks in a domain and y domains.

    Along the rail each rank moves its 1/x of the data; inside the domain it moves all of it:

    .. math:: \frac{x-1}{x} \frac{D}{e_{nv} F} + \frac{y-1}{y} \frac{D}{x} \frac{r}{e_{ib}}
        + \lambda + \alpha\,n

    Parameters
    ----------
    kind
        Kind of traffic whose r the rail part is charged at.
    min_ranks
        Ranks in the domain with the fewest, among which the data are divided along the rail; x if
        omitted.
    summed
        Whether this is half of an all-reduce, which switches can sum: the switches of the domain
        where the group lies in one domain (at bus bandwidth `sum_byte_s`), and those of the network
        for gradients between domains.
    sized
        Whether the algorithm is chosen by message size. Only the minimum number of steps is charged
        here then; `Algorithm.start` charges the others.
    """
    byte_s = links.hb_byte_s
    if summed is not False and np.any(links.sum_byte_s > byte_s):
        # the switches of a domain sum only for groups that lie within it
        byte_s = np.where(summed & (y == 1), links.sum_byte_s, byte_s)
    across = (y - 1) / (y * (x if min_ranks is None else min_ranks) * links.rail)
    if kind in GRADIENTS and links.rail_reduces:
        across = across * switched_share(y, summed)
    count = min_steps(x, y) if sized else steps(x, y)
    start = np.where(x * y > 1, links.latency_s + links.step_s * count, 0.0)
    return GatherRates(kind, (x - 1) / (x * byte_s), across, start)


def switched_share(y: Any, summed: Any) -> Any:
    r"""Bytes that domains send for half of a sum in switches, relative to a ring.

    Each byte is sent once for both halves, :math:`\frac{1}{2} \frac{y}{y-1}`; 1 where nothing is
    summed.
    """
    return np.where(summed & (y > 1), y / (2 * np.maximum(y - 1, 1)), 1.0)


def steps(x: Any, y: Any) -> Any:
    """Return n, the steps of a collective: those of a ring on each level, or of a tree up and down
    where that takes fewer.
    """
    rings = (x - 1) + (y - 1)
    return np.minimum(rings, 2 * min_steps(x, y))


def min_steps(x: Any, y: Any) -> Any:
    """Return the minimum number of steps: each step doubles the data of a rank, inside domains and
    then between them.
    """
    return tree_levels(x) + tree_levels(y)


def tree_levels(ranks: Any) -> Any:
    """Return the levels of a binary tree over that many ranks: ceil(log2 x), the binary digits of x
    - 1.
    """
    return np.frexp(ranks - 1.0)[1]


@dataclass(frozen=True)
class Visits:
    """How tokens reach their experts: k experts per token, chosen in G' of G groups.

    `groups` is G (0 without groups), `visited_groups` is G', and `once` says whether a token is
    sent once to each place instead of once per expert.
    """

    experts: int
    groups: int
    visited_groups: int
    once: bool

    def domains(self, y: Any) -> Any:
        """Return y': of the y domains that hold the experts, those that one token can visit.

        These are G' where a domain holds at least one group, else y·G'/G, the domains that hold G'
        groups.
        """
        if not self.groups:
            return y
        return np.minimum(y, self.visited_groups * np.maximum(y / self.groups, 1.0))

    def sent_share(self, places: Any) -> Any:
        r"""u: share of the token copies that are sent when a token goes once to each place it
        visits.

        .. math:: u(n) = \frac{n}{k} \left(1 - \left(1 - \frac{1}{n}\right)^k\right)

        This assumes that the experts of a token are drawn evenly from all places. The share is 1
        where every copy is sent on its own.
        """
        if not self.once:
            return 1.0
        return places * (1 - (1 - 1 / places) ** self.experts) / self.experts


def visits_of(workload: Workload) -> Visits:
    """Return how the tokens of a workload reach their experts."""
    model = workload.model
    return Visits(
        model.top_k, model.expert_groups, model.top_groups, workload.options.dispatch == "once"
    )


def all_to_all(links: LinkRates, data_bytes: Any, x: Any, y: Any, visits: Visits) -> AffineSeconds:
    r"""Time of an all-to-all of `data_bytes` per rank: along the rail first, then inside the
    domain.

    .. math:: \frac{x-1}{x} u(x y') \frac{D}{e_{nv} F} + \frac{y-1}{y} u(y') D \frac{r}{e_{ib}}
        + \text{latency}

    Parameters
    ----------
    data_bytes
        D: bytes of the copies of all tokens, one copy for each expert that a token visits.
    """
    domains = visits.domains(y)
    inside = (x - 1) / x * visits.sent_share(x * domains) * data_bytes / links.hb_byte_s
    across = (y - 1) / y * visits.sent_share(domains) * data_bytes / links.rail
    return AffineSeconds(inside + np.where(x * y > 1, links.latency_s, 0.0), ep=across)


def forwards_at_once(workload: Workload) -> bool:
    """Whether forwarding inside domains overlaps with the rails, as in kernels that send each token
    once.
    """
    return workload.options.collectives != "levels" and workload.options.dispatch == "once"


def send(links: LinkRates, data_bytes: Any, crosses: Any) -> AffineSeconds:
    """Return the time of a pipeline send of `data_bytes`: over the rail where `crosses`, else
    inside the domain.
    """
    inside = links.send_s + np.where(crosses, 0.0, data_bytes / links.hb_byte_s)
    return AffineSeconds(inside, pp=np.where(crosses, data_bytes / links.send, 0.0))
