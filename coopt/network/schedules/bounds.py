"""How few steps a schedule can take; each bound names what it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from coopt.network.schedules.board import Board

ALL = "the links into all domains together"


@dataclass(frozen=True, kw_only=True)
class Bound:
    """No schedule of N chunks takes fewer `steps` in a phase; `why` says what is full.

    `work` is the same for data cut at will: chunks of 1/N of it that the fullest links carry, a fraction.
    """

    steps: int
    work: float
    why: str


def step_bound(board: Board) -> Bound:
    """The bound for one chunk of 1/N of the data rooted at each domain.

    Every domain receives N - 1 chunks through its own links, and so does, for the chunks from outside, every set S of
    vertices around a domain that the search for cuts looks at (balls of each radius). On direct fabrics a chunk also
    advances one hop a step: those more than d hops away do not enter S before step d.

    .. math:: s \\ge \\lceil N (N-1) / \\sum_v p_v \\rceil, \\qquad
              s \\ge d + \\lceil |\\{u : dist(u, S) > d\\}| / cap(S) \\rceil
    """
    n = board.domains
    ports = sum(board.ports(domain) for domain in range(n))
    bounds = [_full(n * (n - 1), ports, ALL)]
    for domain in range(n):
        bounds += _balls(board, domain)
    tightest = max(bounds, key=lambda bound: bound.steps)
    return replace(tightest, work=max(bound.work for bound in bounds))


def free_bound(board: Board) -> Bound:
    """The bound when chunks may be rooted anywhere.

    A domain with p ports that roots k of N chunks needs N - k <= p s, and the k sum to N.

    .. math:: \\sum_v \\max(0, N - p_v s) \\le N
    """
    n = board.domains
    ports = [board.ports(domain) for domain in range(n)]
    whole = _full(n * (n - 1), sum(ports), ALL)
    steps = whole.steps
    while sum(max(0, n - p * steps) for p in ports) > n:
        steps += 1
    return whole if steps == whole.steps else replace(whole, steps=steps, why="the domains with few links")


def _full(chunks: int, links: int, why: str) -> Bound:
    """Links that carry so many chunks between them."""
    return Bound(steps=-(-chunks // links), work=chunks / links, why=why)


def _balls(board: Board, centre: int) -> Iterator[Bound]:
    """Cuts around a domain."""
    far = _hops(board, centre)
    deepest = max(far)
    domains_at = [0] * (deepest + 1)
    for domain in range(board.domains):
        domains_at[far[domain]] += 1
    entry = [0] * (deepest + 1)
    for (tail, head), links in board.links.items():
        if far[tail] == far[head] + 1:
            entry[far[head]] += links
    for radius in range(deepest):
        for wait in range(deepest - radius if board.direct else 1):
            outside = sum(domains_at[radius + wait + 1 :])
            if outside:
                cut = _full(outside, entry[radius], _why(board, centre, radius, wait))
                yield replace(cut, steps=wait + cut.steps)


def _why(board: Board, centre: int, radius: int, wait: int) -> str:
    name = board.names[centre]
    place = f"the links of {name}" if radius == 0 else f"the links into what lies within {radius} hops of {name}"
    return f"{place}, of use to the furthest from step {wait + 1} on" if wait else place


def _hops(board: Board, centre: int) -> list[int]:
    far = [-1] * len(board.names)
    far[centre] = 0
    ring = [centre]
    for here in ring:
        for there in board.near[here]:
            if far[there] < 0:
                far[there] = far[here] + 1
                ring.append(there)
    return far
