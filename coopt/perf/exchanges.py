"""Exchanges of tokens between the ranks that hold experts: collectives, or kernels whose
multiprocessors copy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from coopt.instance.workload import Workload
from coopt.perf.collectives import AffineSeconds, LinkRates

# of rows of tokens that one multiprocessor copies a second, whatever NVLink; rows that it reads and
# writes for a token besides those sent; and start-up: DeepEP on H100, B200 and GB200
# (aiconfigurator-core 0.12.0, comm/sglang/0.5.12; benchmarks/measured.csv)
MULTIPROCESSOR_BYTE_S = 22e9
OWN_ROWS = 2
COPYING_START_S = 50e-6


@dataclass(frozen=True)
class Visits:
    """How tokens reach their experts: k experts per token, chosen in G' of G groups.

    `groups` is G (0 without groups), `visited_groups` is G', `once` says whether a token is sent
    once to each place instead of once per expert, and `copied_byte_s` is what multiprocessors copy.
    """

    experts: int
    groups: int
    visited_groups: int
    once: bool
    copied_byte_s: float = math.inf

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

    @property
    def is_copied(self) -> bool:
        """Whether multiprocessors bound the exchange."""
        return bool(np.all(np.isfinite(self.copied_byte_s)))

    def start_s(self, links: LinkRates, y: Any) -> Any:
        """Return the start-up time of an exchange over y domains (s)."""
        if self.is_copied:
            return COPYING_START_S
        return links.latency_s + (0.0 if self.once else links.long_s * (y > 1))


def visits_of(workload: Workload) -> Visits:
    """Return how the tokens of a workload reach their experts."""
    model = workload.model
    copies = workload.options.dispatch_multiprocessors
    return Visits(
        model.top_k,
        model.expert_groups,
        model.top_groups,
        workload.options.dispatch == "once",
        math.inf if copies is None else copies * MULTIPROCESSOR_BYTE_S,
    )


def all_to_all(links: LinkRates, data_bytes: Any, x: Any, y: Any, visits: Visits) -> AffineSeconds:
    r"""Time of an all-to-all of `data_bytes` per rank: along the rail first, then inside the
    domain.

    .. math:: \frac{x-1}{x} u(x y') \frac{D}{e_{nv} F} + \frac{y-1}{y} u(y') D \frac{r}{e_{ib}}
        + \text{latency}

    Where multiprocessors copy the tokens of a domain, the first term is at least
    :math:`(u(x y') + 2/k) D / F_c`. Where every copy is sent on its own, the collective of a group
    in one domain has the protocols of other collectives.

    Parameters
    ----------
    data_bytes
        D: bytes of the copies of all tokens, one copy for each expert that a token visits.
    """
    start_s = np.where(x * y > 1, visits.start_s(links, y), 0.0)
    return started_exchange(links, data_bytes, x, y, visits) + AffineSeconds(start_s)


def started_exchange(
    links: LinkRates, data_bytes: Any, x: Any, y: Any, visits: Visits
) -> AffineSeconds:
    """Return the time of `all_to_all` without its start-up."""
    domains = visits.domains(y)
    alone, sent_share = (x > 1) & (y == 1) & (not visits.once), visits.sent_share(x * domains)
    moved_bytes = (x - 1 + links.own_share * alone) / x * sent_share * data_bytes
    inside_s = links.protocol_s(moved_bytes / links.hb_byte_s, alone)
    if visits.is_copied:
        copied_bytes = (sent_share + OWN_ROWS / visits.experts) * data_bytes
        inside_s = np.maximum(inside_s, copied_bytes / visits.copied_byte_s * (x > 1))
    across = (y - 1) / y * visits.sent_share(domains) * data_bytes / links.rail
    return AffineSeconds(inside_s, ep=across)


def forwards_at_once(workload: Workload) -> bool:
    """Whether forwarding inside domains overlaps with the rails, as in kernels that send each token
    once.
    """
    return workload.options.collectives != "levels" and workload.options.dispatch == "once"
