"""Orbits of domains, pairs, arcs and flows under a group of permutations that leave demands and ports as they are.

Averaging any links and flows over the group gives links and flows that are alike on every orbit, route the same demands
and cost the same. So the relaxation over orbits equals the full one, and links that are alike on every orbit are links.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from formulations.direct_data import DirectData, Floats, Ints, Sparse


def group_of(domains: int, generators: Sequence[Ints]) -> Ints:
    """All products of permutations, shape (order, domains); row g sends domain i to `[g, i]`."""
    found = {tuple(range(domains))}
    latest = list(found)
    moves = [generator.tolist() for generator in generators]
    while latest:
        products = {tuple(move[i] for i in one) for one in latest for move in moves}
        latest = list(products - found)
        found.update(latest)
    return np.array(sorted(found), dtype=np.int64)


def keeps(permutation: Ints, ports: Ints, demand: Floats) -> bool:
    """Whether a permutation leaves ports (D,) and demands (K, D, D) as they are."""
    moved = demand[:, permutation[:, None], permutation[None, :]]
    return bool((ports[permutation] == ports).all() and (moved == demand).all())


def on_orbits(group: Ints, ports: Ints, demand: Floats, weight: Floats) -> DirectData:
    """The problem on the orbits of a group.

    Parameters
    ----------
    group
        Permutations that keep ports and demands, shape (order, D).
    demand
        What domain i sends to j in each phase at a pace of 1, shape (K, D, D) [links].
    weight
        Shape (J, K) [links].
    """
    assert all(keeps(permutation, ports, demand) for permutation in group), "not a symmetry"
    count = len(ports)
    i, j = (index.ravel() for index in np.indices((count, count)))
    apart = i != j
    domain_first, domain_orbit = _orbits(group.min(axis=0))
    codes = [permutation[i] * count + permutation[j] for permutation in group]
    arc_code = np.minimum.reduce(codes)
    back = arc_code.reshape(count, count).T.ravel()
    pair_first, pair_orbit = _orbits(np.minimum(arc_code, back)[apart])
    arc_first, arc_orbit = _orbits(arc_code[apart])
    pair, arc = np.full(count * count, -1), np.full(count * count, -1)
    pair[apart], arc[apart] = pair_orbit, arc_orbit
    flow, flows = flow_orbits(group, count)
    sources, ends_at = i[apart][arc_first], j[apart][arc_first]
    pairs = pair.reshape(count, count)
    return DirectData(
        pairs=np.bincount(pair_orbit) // 2,
        domains=np.bincount(domain_orbit),
        ports=ports[domain_first],
        ends=np.array([np.bincount(np.delete(pairs[w], w), minlength=len(pair_first)) for w in domain_first]),
        arcs=np.stack([sources, ends_at], axis=1),
        pair=pair_orbit[arc_first],
        load=_sparse([np.delete(flow[:, a, b], b) for a, b in zip(sources, ends_at, strict=True)], flows),
        balance=_sparse([_through(flow, s, v) for s, v in zip(sources, ends_at, strict=True)], flows),
        demand=demand[:, sources, ends_at],
        sent=demand.sum(axis=2)[:, domain_first],
        weight=weight,
    )


def _orbits(codes: Ints) -> tuple[Ints, Ints]:
    """The first member of each orbit, and the orbit of each member."""
    _, first, orbit = np.unique(codes, return_index=True, return_inverse=True)
    return first, orbit.reshape(-1)


def flow_orbits(group: Ints, count: int) -> tuple[Ints, int]:
    """The orbit of flow (source, from, to), shape (D, D, D), -1 where none makes sense, and how many there are."""
    s, i, j = np.indices((count, count, count))
    sensible = (i != j) & (j != s)
    s, i, j = s[sensible], i[sensible], j[sensible]
    code = (s * count + i) * count + j
    for permutation in group:
        np.minimum(code, (permutation[s] * count + permutation[i]) * count + permutation[j], out=code)
    first, orbit = _orbits(code)
    flow = np.full((count, count, count), -1)
    flow[sensible] = orbit
    return flow, len(first)


def _through(flow: Ints, s: int, v: int) -> Ints:
    """Orbits of flows of source s into v, and those out of v as -1 - orbit."""
    into, out = flow[s, :, v], flow[s, v, :]
    return np.concatenate([into[into >= 0], -1 - out[out >= 0]])


def _sparse(rows: Sequence[Ints], width: int) -> Sparse:
    """Rows of signed columns, added up."""
    columns, values = [], []
    for row in rows:
        plus = np.bincount(row[row >= 0], minlength=width)
        total = plus - np.bincount(-1 - row[row < 0], minlength=width)
        columns.append(np.flatnonzero(total))
        values.append(total[columns[-1]].astype(np.float64))
    return Sparse(columns=tuple(columns), values=tuple(values))
