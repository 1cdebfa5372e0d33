"""Direct links by trying every mapping with every number of links, on domains of few ports."""

import math
from collections.abc import Callable, Iterator
from itertools import combinations, permutations, product
from typing import Any

import numpy as np

from coopt.columns.grid import DomainSet
from coopt.columns.pools import Pool
from coopt.instance.network import Discipline
from coopt.instance.schema import Instance
from coopt.perf.collectives import KINDS, Reciprocals
from coopt.perf.iterations import Iteration
from coopt.perf.mapping import expert_ranks
from tests.formulations.links import highest_pace, pace_of_ends, ways
from tests.solving.oracle import every_mapping


def fewest_links(instance: Instance, active: int) -> int | None:
    """The least number of links with which some mapping is in time, with one kind of HB domain, NIC and GPU count."""
    (gpus,), (hb,), (per_gpu,) = instance.cluster.gpus, instance.network.hb_domains, instance.network.nics_per_gpu
    count = gpus // active
    pairs = list(combinations(range(count), 2))
    pool = pool_of(instance, active)
    ports, gpu_byte_s = hb.size * per_gpu, instance.network.nics[0].gbit_s * 1e9 / 8 / active
    bound_s = instance.workload[0].bound_s * (1 + 1e-7)
    rows = list(_alike(pool))
    most = _Paces(dict.fromkeys(pairs, ports), gpu_byte_s)  # all ports of a domain to each other one
    rows = [one for one in rows if most.time_s(lambda demand, _: ports / demand.sum(axis=1).max(), *one) <= bound_s]
    for total in range(count * ports // 2 + 1 if rows else 0):
        for links in ways(np.full(count, ports), pairs, total):
            paces = _Paces(dict(zip(pairs, links, strict=True)), gpu_byte_s)
            for one in rows:
                if all(paces.time_s(which, *one) <= bound_s for which in (pace_of_ends, highest_pace)):
                    return total
    return None


APART = Discipline("ratio", 1.0, 1.0)  # stages lie outermost


def pool_of(instance: Instance, active: int) -> Pool:
    """Every mapping with every placement."""
    (hb,), (gpus,) = instance.network.hb_domains, instance.cluster.gpus
    site = DomainSet(gpus=gpus, hb=hb.name, domains=gpus // active)
    return every_mapping(instance.workload[0], instance.cluster.gpu, hb, site, APART)


def _rows(pool: Pool) -> Iterator[int]:
    """Rows whose first and last stage are neighbours where they share an embedding; TP groups inside unless asked."""
    m, inside = pool.mappings, pool.placements
    for row in range(len(pool)):
        far = pool.workload.model.tied_embeddings and m.pp[row] > 2 * inside.pp[row]
        if not far and (m.tp[row] == inside.tp[row] or pool.workload.allow_tp_across):
            yield row


def _alike(pool: Pool) -> Iterator[tuple[Iteration, dict[str, Any]]]:
    """Rows whose domains send the same to each other, which see the same paces, and what these send."""
    found: dict[Any, tuple[dict[str, Any], list[int]]] = {}
    for row in _rows(pool):
        sent = sent_by_kind(pool, row)
        _, rows = found.setdefault(tuple((kind, demand.tobytes()) for kind, demand in sent.items()), (sent, []))
        rows.append(row)
    for sent, rows in found.values():
        yield pool.iteration.take(np.array(rows)), sent


def sent_by_kind(pool: Pool, row: int) -> dict[str, Any]:
    """What domains send to each other in each kind of traffic, by where their ranks stand (stage, DP, CP, TP)."""
    m, inside, options = pool.mappings, pool.placements, pool.workload.options
    s_l, d_l, c_l, t_l = (int((getattr(m, k) // getattr(inside, k))[row]) for k in ("pp", "dp", "cp", "tp"))
    places = list(product(range(s_l), range(d_l), range(c_l), range(t_l)))
    number = {place: n for n, place in enumerate(places)}
    groups: dict[str, list[list[int]]] = {}

    def gather(kind: str, key: Callable[[int, int, int, int], Any]) -> None:
        found: dict[Any, list[int]] = {}
        for place in places:
            found.setdefault(key(*place), []).append(number[place])
        groups[kind] = list(found.values())

    gather("tp", lambda s, d, c, _: (s, d, c))
    gather("cp", lambda s, d, _, t: (s, d, t))
    gather("dp", lambda s, _d, _c, t: (s, t))
    if pool.workload.model.experts:
        x_l = int(expert_ranks(m, inside, expert_tp=options.expert_tp)[1][row])

        def order(d: int, c: int, t: int) -> tuple[int, int]:
            """Where a domain stands among those with the experts of a stage, and which of these it belongs to."""
            return (d * c_l + c, t) if options.expert_tp else ((d * c_l + c) * t_l + t, 0)

        gather("ep", lambda s, d, c, t: (s, order(d, c, t)[0] // x_l, order(d, c, t)[1]))
        gather("edp", lambda s, d, c, t: (s, order(d, c, t)[0] % x_l, order(d, c, t)[1]))
    sent = {kind: np.zeros((len(places), len(places))) for kind in KINDS}
    for kind, several in groups.items():
        for members in several:
            if kind == "ep":
                for i, j in permutations(members, 2):
                    sent[kind][i, j] = 1 / (len(members) - 1)
            elif len(members) > 1:
                for i, j in zip(members, members[1:] + members[:1], strict=True):
                    sent[kind][i, j] += 0.5
                    sent[kind][j, i] += 0.5
    for (s, *rest), there in product(places, range(s_l)):
        onward = there == (s + 1) % s_l and (there > s or m.interleave[row] > 1)
        if s_l > 1 and onward:
            here, following = number[(s, *rest)], number[(there, *rest)]
            sent["pp"][here, following] = sent["pp"][following, here] = 1 / int(inside.pp[row])
    sent["tied"] = sent["pp"]
    return {kind: demand for kind, demand in sent.items() if demand.any()}


class _Paces:
    """How fast links that are given are for demands of each kind, and what an iteration takes then."""

    def __init__(self, links: dict[tuple[int, int], int], gpu_byte_s: float) -> None:
        self._links, self._gpu_byte_s = links, gpu_byte_s
        self._known: dict[tuple[Any, bytes], float] = {}

    def time_s(self, pace_of: Any, parts: Iteration, sent: dict[str, Any]) -> float:
        """The least that an iteration takes at paces that are found so; the first way to find them gives no less,
        quickly."""
        seen = dict.fromkeys(KINDS, 0.0)
        for kind, demand in sent.items():
            key = (pace_of, demand.tobytes())
            if key not in self._known:
                self._known[key] = pace_of(demand, self._links)
            if not self._known[key] > 0:
                return math.inf
            seen[kind] = 1 / (self._known[key] * self._gpu_byte_s)
        return float(parts.time_s(Reciprocals(**seen)).min())
