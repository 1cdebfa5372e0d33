"""The numbers of direct links between domains, on orbits of a symmetry.

Orbits of domains, pairs, arcs and flows are those of permutations that leave demands and ports as
they are.

Averaging any links and flows over the group gives links and flows that are alike on every orbit,
route the same demands and cost the same. So the relaxation over orbits equals the full one, and
links that are alike on every orbit are links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def group_of(domains: int, generators: Sequence[Ints]) -> Ints:
    """All products of permutations, shape (order, domains); row g sends domain i to `[g, i]`."""
    members = {tuple(range(domains))}
    latest = list(members)
    moves = [generator.tolist() for generator in generators]
    # Closure: products of the newest members with all generators, until none is new.
    while latest:
        products = {tuple(move[i] for i in member) for member in latest for move in moves}
        latest = list(products - members)
        members.update(latest)
    return np.array(sorted(members), dtype=np.int64)


def keeps(permutation: Ints, ports: Ints, demand: Floats) -> bool:
    """Whether a permutation leaves ports (D,) and demands (K, D, D) as they are."""
    moved = demand[:, permutation[:, None], permutation[None, :]]
    return bool((ports[permutation] == ports).all() and (moved == demand).all())


def on_orbits(
    group: Ints,
    ports: Ints,
    demand: Floats,
    weight: Floats,
    neighbourhoods: tuple[Bools, Bools] | None = None,
) -> LinksData:
    """The problem on the orbits of a group.

    Parameters
    ----------
    group
        Permutations that keep ports and demands, shape (order, D).
    demand
        What domain i sends to j in each phase at a pace of 1, shape (K, D, D) [links].
    weight
        Shape (J, K) [links].
    neighbourhoods
        Which domains may be joined, and which ones flows of a source may visit, each (D, D) and
        kept by the group; all where left out.
    """
    count, firsts = len(ports), group.min(axis=0)
    # for each domain the permutations that bring it to the first of its orbit
    moves = [group[group[:, domain] == first] for domain, first in enumerate(firsts)]
    may_join, may_visit = _within(count, neighbourhoods)
    domain_first, domain_orbit = _orbits(firsts)
    # Pairs of an orbit are moved to one with the first domain of the orbit, and there to the
    # smallest number.
    codes = np.array(
        [
            first_domain * count + move.min(axis=0)
            for first_domain, move in zip(firsts, moves, strict=True)
        ]
    )
    pair_first, pair_orbit = _orbits(np.minimum(codes, codes.T)[may_join])
    pairs = np.full((count, count), -1)
    pairs[may_join] = pair_orbit
    arcs, senders = (
        np.argwhere(among)[_orbits(codes[among])[0]] for among in (may_join, may_visit)
    )
    flow, _ = flow_orbits(group, neighbourhoods)
    orbit_row, to_first = (
        np.searchsorted(domain_first, firsts),
        np.array([move[0] for move in moves]),
    )
    return LinksData(
        pairs=np.bincount(pair_orbit) // 2,
        domains=np.bincount(domain_orbit),
        ports=ports[domain_first],
        ends=np.array(
            [np.bincount(pairs[w][may_join[w]], minlength=len(pair_first)) for w in domain_first]
        ),
        arcs=arcs,
        pair=pairs[arcs[:, 0], arcs[:, 1]],
        load=_sparse([_present(flow[orbit_row, to_first[:, a], to_first[:, b]]) for a, b in arcs]),
        # flows of a source into a domain, and those out of it as -1 - orbit
        balance=_sparse(
            [
                np.concatenate(
                    [
                        _present(flow[orbit_row[s]][:, v]),
                        -1 - _present(flow[orbit_row[s]][v]),
                    ]
                )
                for s, v in senders
            ]
        ),
        demand=demand[:, senders[:, 0], senders[:, 1]],
        sent=demand.sum(axis=2)[:, domain_first],
        weight=weight,
    )


def _within(count: int, neighbourhoods: tuple[Bools, Bools] | None) -> tuple[Bools, Bools]:
    """Which domains may be joined, and which ones flows of each visit beside itself."""
    other_domains = ~np.eye(count, dtype=np.bool_)
    return (
        (other_domains, other_domains)
        if neighbourhoods is None
        else (neighbourhoods[0] & other_domains, neighbourhoods[1] & other_domains)
    )


def _orbits(codes: Ints) -> tuple[Ints, Ints]:
    """The first member of each orbit, and the orbit of each member."""
    _, first_member, orbit = np.unique(codes, return_index=True, return_inverse=True)
    return first_member, orbit.reshape(-1)


def flow_orbits(group: Ints, neighbourhoods: tuple[Bools, Bools] | None = None) -> tuple[Ints, int]:
    """The orbit of flow (source, from, to) of the first domain of each orbit, and how many there
    are.

    Shape (W, D, D), -1 where none makes sense: domains that are not joined, or that flows of the
    source do not visit.
    """
    count, firsts = group.shape[1], np.unique(group.min(axis=0))
    may_join, may_visit = _within(count, neighbourhoods)
    flow_orbit, total = np.full((len(firsts), count, count), -1), 0
    for orbit_row, source in enumerate(firsts.tolist()):
        is_reached = may_visit[source].copy()
        is_reached[source] = True
        i, j = np.nonzero(may_join & is_reached[:, None] & may_visit[source][None, :])
        # Flows of one source are alike under the permutations that leave the source where it is.
        stabiliser = group[group[:, source] == source]
        first_member, orbit = _orbits(
            np.min([move[i] * count + move[j] for move in stabiliser], axis=0)
        )
        flow_orbit[orbit_row, i, j] = total + orbit
        total += len(first_member)
    return flow_orbit, total


def _present(orbits: Ints) -> Ints:
    """The orbits of an array that has -1 where there is none."""
    return orbits[orbits >= 0]


def _sparse(rows: Sequence[Ints]) -> Sparse:
    """Rows of signed columns, added up."""
    columns, values = [], []
    for row in rows:
        names, place = np.unique(np.where(row >= 0, row, -1 - row), return_inverse=True)
        total = np.bincount(
            place.reshape(-1), weights=np.where(row >= 0, 1.0, -1.0), minlength=len(names)
        )
        columns.append(names[total != 0])
        values.append(total[total != 0])
    return Sparse(columns=tuple(columns), values=tuple(values))


@dataclass(frozen=True, kw_only=True)
class Sparse:
    """A matrix by its rows: in row r the columns `columns[r]` with the values `values[r]`."""

    columns: tuple[Ints, ...]
    values: tuple[Floats, ...]


@dataclass(frozen=True, kw_only=True)
class LinksData:
    """Domains that links join, what they send in each phase of an iteration, and how fast the
    phases must be.

    Everything is of an orbit, of which the symmetry makes the rest; without a symmetry each orbit
    has one member.

    Pairs of domains (P,): `pairs` in the orbit. Domains (W,): `domains` in the orbit, `ports` of
    each; `ends` (W, P) says how many pairs of an orbit a domain belongs to. Arcs (E,), pairs with a
    direction: `pair` is the orbit of pairs, `arcs` (E, 2) the ends of one of them. Flows (X,) go
    from one source over one arc: `load` (E x X) adds those on an arc, `balance` (B x X) those into
    a domain less those out of it, by source and domain. In phase k a source sends `demand` (K, B)
    to a domain for each unit of the pace, and `sent` (K, W) altogether. The paces keep `weight` (J,
    K) within 1: see D4.
    """

    pairs: Ints
    domains: Ints
    ports: Ints
    ends: Ints
    arcs: Ints
    pair: Ints
    load: Sparse
    balance: Sparse
    demand: Floats
    sent: Floats
    weight: Floats

    @property
    def flows(self) -> int:
        """X: flows in each phase."""
        return 1 + max(int(columns.max()) for columns in self.load.columns)

    @property
    def phases(self) -> int:
        """K: phases that take turns on the links."""
        return len(self.demand)

    @property
    def min_paces(self) -> Floats:
        """The pace each phase needs if the others take no time (K,) [links]."""
        return np.asarray(self.weight.max(axis=0), dtype=np.float64)

    @property
    def max_paces(self) -> Floats:
        """The pace at which a phase fills all ports of some domain (K,) [links]."""
        with np.errstate(divide="ignore"):
            return np.asarray((self.ports / self.sent).min(axis=1), dtype=np.float64)
