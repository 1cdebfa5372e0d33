"""How many direct links a mapping needs at least, were every phase of its traffic alone in an iteration."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping

import networkx as nx

from coopt.verifier.collectives import Speeds
from coopt.verifier.iteration import iteration_s
from coopt.verifier.space import Family
from coopt.verifier.work import Work
from coopt.verifier.workload_checks import Run

Sends = dict[tuple[int, int], float]

LATE = 1e-6
"""Flows come out of a linear program: relative, by which an iteration on direct links may exceed its bound."""
ROUNDING = 1e-6
"""Share of a need that may be rounding."""
SLOWEST_S_BYTE = 1.0
HALVINGS = 60


def least_links(run: Run, work: Work, family: Family, link_byte_s: float, sends: Mapping[str, Sends]) -> int:
    """No fewer do: they join all that send to each other, and each domain has whole links for all that it sends."""
    needed: defaultdict[int, float] = defaultdict(float)
    joined = nx.Graph()
    joined.add_nodes_from(range(family.domains))
    for phase, pairs in sends.items():
        pace = family.active / (_slowest_s_byte(run, work, family, phase) * link_byte_s)
        sent: defaultdict[int, float] = defaultdict(float)
        for (source, _), share in pairs.items():
            sent[source] += share
        for source, share in sent.items():
            needed[source] = max(needed[source], share * pace)
        joined.add_edges_from(pairs)
    ends = sum(math.ceil(links * (1 - ROUNDING)) for links in needed.values())
    return max(math.ceil(ends / 2), family.domains - int(nx.number_connected_components(joined)))


def _slowest_s_byte(run: Run, work: Work, family: Family, phase: str) -> float:
    """Seconds a byte of a GPU may take in a phase while all else between domains takes none."""
    inside, bound_s = family.hb.gbyte_s * 1e9, run.workload.bound_s * (1 + LATE)

    def late(s_byte: float) -> bool:
        pp, dp = (s_byte if phase == name else 0.0 for name in ("pp", "dp"))
        return iteration_s(work, run.place, Speeds(inside, 0.0, pp, dp, dp)) > bound_s

    return SLOWEST_S_BYTE if late(0.0) else _first(late, SLOWEST_S_BYTE)


def _first(late: Callable[[float], bool], most: float) -> float:
    """Where something that once late stays late begins to be, by halving from above; `most` where it never is."""
    low, high = 0.0, most
    for _ in range(HALVINGS if late(most) else 0):
        middle = (low + high) / 2
        low, high = (low, middle) if late(middle) else (middle, high)
    return high
