"""Collectives over two levels: some ranks inside the HB domain, some across domains on one rail."""

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
    """What a GPU's links reach under some transport.

    `hb_byte_s` is the one-way bandwidth inside the domain that collectives reach, a number or an
    array, and `sum_byte_s` that of all-reduces there; `rail` and `send` are shares of the bandwidth
    between domains. `rail_reduces` says whether the network's switches add up gradients.
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
    """The links a workload sees.

    Parameters
    ----------
    hb_gbyte_s
        F, one-way bandwidth inside the domain (10^9 bytes/s).
    """
    efficiency, collectives = gpu.efficiency, workload.options.collectives
    # sums in switches count only where ways are chosen: level by level is what shares were fitted
    # with
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
    """What an all-gather or a reduce-scatter takes for each byte, and to start.

    `inside_s_byte` within domains, `across` bytes of the rail's full rate for each byte of data;
    arrays that broadcast.
    """

    kind: RingKind
    inside_s_byte: Any
    across: Any
    start_s: Any

    def of(self, data_bytes: Any) -> AffineSeconds:
        """What the collective takes of so many bytes."""
        return AffineSeconds(
            self.inside_s_byte * data_bytes + self.start_s, **{self.kind: self.across * data_bytes}
        )


def gather(
    links: LinkRates,
    data_bytes: Any,
    x: Any,
    y: Any,
    kind: RingKind,
    fewest: Any = None,
    *,
    summed: Any = False,
    sized: bool = False,
) -> AffineSeconds:
    """An all-gather, or a reduce-scatter, of `data_bytes` (size of the whole tensor), as
    `gather_rates` has it.
    """
    return gather_rates(links, x, y, kind, fewest, summed=summed, sized=sized).of(data_bytes)


def gather_rates(
    links: LinkRates,
    x: Any,
    y: Any,
    kind: RingKind,
    fewest: Any = None,
    *,
    summed: Any = False,
    sized: bool = False,
) -> GatherRates:
    r"""An all-gather, or a reduce-scatter, over x ranks in the domain and y domains.

    Along the rail each rank moves its 1/x of the data, inside the domain the whole of it:

    .. math:: \frac{x-1}{x} \frac{D}{e_{nv} F} + \frac{y-1}{y} \frac{D}{x} \frac{r}{e_{ib}}
        + \lambda + \alpha\,n

    Parameters
    ----------
    kind
        Whose r the rail part is charged at.
    fewest
        Ranks in the domain that holds fewest, which divide the data among them along the rail; x
        where left out.
    summed
        Whether this is half of an all-reduce, which switches may add up: those of the domain where
        none other is reached, at bus bandwidth `sum_byte_s`; gradients between domains in those of
        the network.
    sized
        Whether the way is chosen by the size of the message: the fewest steps count here, more of
        them with the way.
    """
    byte_s = links.hb_byte_s
    if summed is not False and np.any(links.sum_byte_s > byte_s):
        # switches of a domain add up for a group that lies in it alone
        byte_s = np.where(summed & (y == 1), links.sum_byte_s, byte_s)
    across = (y - 1) / (y * (x if fewest is None else fewest) * links.rail)
    if kind in GRADIENTS and links.rail_reduces:
        across = across * switched_share(y, summed)
    count = least_steps(x, y) if sized else steps(x, y)
    start = np.where(x * y > 1, links.latency_s + links.step_s * count, 0.0)
    return GatherRates(kind, (x - 1) / (x * byte_s), across, start)


def switched_share(y: Any, summed: Any) -> Any:
    r"""What domains send for half of a sum where switches add it up, over what they send round a
    ring.

    All data once for both halves, :math:`\frac{1}{2} \frac{y}{y-1}`; 1 where nothing is summed.
    """
    return np.where(summed & (y > 1), y / (2 * np.maximum(y - 1, 1)), 1.0)


def steps(x: Any, y: Any) -> Any:
    """n: steps of a ring on each level, or of a tree up and down where the group is so large that
    these are fewer.
    """
    rings = (x - 1) + (y - 1)
    return np.minimum(rings, 2 * least_steps(x, y))


def least_steps(x: Any, y: Any) -> Any:
    """Steps where each doubles what a rank has, inside domains and then between them."""
    return tree_levels(x) + tree_levels(y)


def tree_levels(ranks: Any) -> Any:
    """Levels of a binary tree over so many ranks, ceil(log2 x): the binary digits of x - 1."""
    return np.frexp(ranks - 1.0)[1]


@dataclass(frozen=True)
class Visits:
    """Which experts a token visits: k of them, of G' groups out of G (0 without groups); and how
    copies are sent.
    """

    experts: int
    groups: int
    visited_groups: int
    once: bool

    def domains(self, y: Any) -> Any:
        """y': of y domains that hold the experts, those whose experts one token may visit.

        G' of them where a domain holds a group or more, else y·G'/G, the domains that G' groups lie
        in.
        """
        if not self.groups:
            return y
        return np.minimum(y, self.visited_groups * np.maximum(y / self.groups, 1.0))

    def sent_share(self, places: Any) -> Any:
        r"""u: share of the copies that are sent when a token goes once to each place it visits.

        .. math:: u(n) = \frac{n}{k} \left(1 - \left(1 - \frac{1}{n}\right)^k\right)

        Its experts are drawn evenly from all places. Where every copy is sent by itself, 1.
        """
        if not self.once:
            return 1.0
        return places * (1 - (1 - 1 / places) ** self.experts) / self.experts


def visits_of(workload: Workload) -> Visits:
    """The visits of a workload's tokens."""
    model = workload.model
    return Visits(
        model.top_k, model.expert_groups, model.top_groups, workload.options.dispatch == "once"
    )


def all_to_all(links: LinkRates, data_bytes: Any, x: Any, y: Any, visits: Visits) -> AffineSeconds:
    r"""An all-to-all of `data_bytes` a rank by forwarding: along the rail first, then inside the
    domain.

    .. math:: \frac{x-1}{x} u(x y') \frac{D}{e_{nv} F} + \frac{y-1}{y} u(y') D \frac{r}{e_{ib}}
        + \text{latency}

    Parameters
    ----------
    data_bytes
        D: of the copies of all tokens, one for each expert a token visits.
    """
    domains = visits.domains(y)
    inside = (x - 1) / x * visits.sent_share(x * domains) * data_bytes / links.hb_byte_s
    across = (y - 1) / y * visits.sent_share(domains) * data_bytes / links.rail
    return AffineSeconds(inside + np.where(x * y > 1, links.latency_s, 0.0), ep=across)


def forwards_at_once(workload: Workload) -> bool:
    """Whether domains pass on tokens while the rails carry what follows, as kernels do that send
    each token once.
    """
    return workload.options.collectives != "levels" and workload.options.dispatch == "once"


def send(links: LinkRates, data_bytes: Any, crosses: Any) -> AffineSeconds:
    """A pipeline send of `data_bytes`, over the rail where `crosses`, else inside the domain."""
    inside = links.send_s + np.where(crosses, 0.0, data_bytes / links.hb_byte_s)
    return AffineSeconds(inside, pp=np.where(crosses, data_bytes / links.send, 0.0))
