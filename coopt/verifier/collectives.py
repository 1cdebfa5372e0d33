"""Seconds of one collective on one network."""

from __future__ import annotations

from typing import NamedTuple

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload

SHARES = {"ipoib": 0.20, "tcp": 0.90}
"""What a transport other than RDMA reaches, collectives and sends alike."""


class Links(NamedTuple):
    """Shares of bandwidth a workload reaches, and start-up times (s); symbols env, eib, es, λ, α, λ_s."""

    hb: float
    rail: float
    send: float
    latency_s: float
    step_s: float
    send_s: float


class Speeds(NamedTuple):
    """How fast bytes travel: inside the domain (byte/s), across it (s/byte of each dimension)."""

    inside_byte_s: float
    tp_s_byte: float
    pp_s_byte: float
    dp_s_byte: float
    ep_s_byte: float


def links_of(workload: Workload, gpu: Gpu) -> Links:
    """What a workload's transport reaches on a GPU."""
    share = gpu.efficiency
    rail, send = share.rail, share.send
    if workload.options.transport != "rdma":
        rail = send = SHARES[workload.options.transport]
    return Links(share.hb, rail, send, share.latency_s, share.step_s, share.send_s)


def gather_s(size_bytes: float, inside: int, across: int, byte_s: float, s_byte: float, links: Links) -> float:
    """AG(D, y_h, y_l): seconds of an all-gather or reduce-scatter over ranks inside and across domains."""
    if inside * across == 1:
        return 0.0
    within = (inside - 1) / inside * size_bytes / (links.hb * byte_s)
    beyond = (across - 1) / across * (size_bytes / inside) * s_byte / links.rail
    return within + beyond + links.latency_s + links.step_s * steps(inside, across)


def steps(inside: int, across: int) -> int:
    """Steps of rings on both levels, or of trees up and down if these have fewer."""
    return min(inside - 1 + across - 1, 2 * (inside - 1).bit_length() + 2 * (across - 1).bit_length())


def exchange_s(
    size_bytes: float, inside: int, across: int, visits: int, byte_s: float, s_byte: float, links: Links
) -> float:
    """A2A(D): seconds of an all-to-all by forwarding along the rails, then inside the domain.

    Parameters
    ----------
    visits
        k: experts a token visits.
    """
    if inside * across == 1:
        return 0.0
    within = (inside - 1) / inside * size_bytes / (links.hb * byte_s)
    beyond = (across - 1) / across * crossings(across, visits) * size_bytes * s_byte / links.rail
    return within + beyond + links.latency_s


def crossings(across: int, visits: int) -> float:
    """u: how often a row crosses to a domain, over the experts its token visits."""
    return float(across * (1 - (1 - 1 / across) ** visits) / visits)
