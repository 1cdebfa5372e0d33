r"""Load of the links above the leaves, in NIC rates, and the slowdown that follows
(docs/loads.md).

A leaf has u uplinks. For each kind of traffic F flows leave the busiest leaf and P flows the
busiest pod, whose switches have w uplinks each. If flows are sprayed over all paths and reach the
share e of their rate, the slowdown is

.. math:: \max\left(1, \frac{F}{e\,u}, \frac{P}{e\,u\,w}\right)

Where each flow takes a single path instead, flows on the busiest uplink of a switch are counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property, lru_cache
from itertools import chain
from typing import Any

import numpy as np

from coopt.columns.algorithm_loads import AlgorithmLoads, loads_by_algorithms
from coopt.columns.flows import (
    APART,
    BOTH,
    PATHS,
    RAIL,
    Groups,
    NicLayout,
    busiest,
    exchange,
    hop,
    mirrored,
    mixed_pods,
    most_of_mixed_pods,
    most_senders,
    ring,
    tied,
)
from coopt.instance.network import Discipline
from coopt.instance.numerics import REORDERED
from coopt.network.family import common_links
from coopt.perf.collectives import KINDS, Flows, Reciprocals
from coopt.perf.mapping import Bools, Floats, Ints, distinct_rows

SURE = 0.95
"""Probability with which flows on random paths take no longer than they are charged for."""


@cache
def serving_uplinks(joined_leaves: int, spine_ports: int, most_up: int, at_random: bool) -> Floats:
    """Effective number of uplinks for each number from 0 up to `most_up`: the minimum over all
    larger numbers, whose spines differ.

    This makes time non-increasing in uplinks. It is exact where no larger number has fewer common
    links.
    """
    if not joined_leaves:
        return np.zeros(1)
    uplinks = np.arange(1, most_up + 1)
    common = common_links(uplinks, -(-joined_leaves * uplinks // spine_ports), at_random=at_random)
    return np.concatenate([[0.0], np.minimum.accumulate(common[::-1])[::-1]])


def whole_flows(count: Floats, links: Any) -> Floats:
    """Number of flows on the busiest link where each flow has one path and paths are as even as
    possible.
    """
    # a quotient that rounding lifts above a whole number would add a flow
    return np.asarray(np.ceil(count / links * (1 - REORDERED)))


def flows_at_random(paths: Any, *tiers: tuple[Floats, Any, Any]) -> tuple[Floats, Floats]:
    """Return the load of the busiest link of all tiers in flows, at least `paths`: as many as a
    NIC has at its full rate. The first is not exceeded with probability `SURE`, the second is the
    mean.

    Parameters
    ----------
    tiers
        Number of flows out of a switch, of its links, and of such switches, tier by tier.
    """
    columns = np.broadcast_arrays(paths, *chain.from_iterable(tiers))
    # links need not be whole, and few numbers of them differ
    numbered = [_numbered(np.asarray(column, dtype=np.float64).ravel()) for column in columns]
    cases, position = distinct_rows(*(number for _, number in numbered))
    values = [distinct[case] for (distinct, _), case in zip(numbered, cases, strict=True)]
    loads = np.array([busiest_link(*case) for case in zip(*values, strict=True)]).reshape(-1, 2)
    shape = columns[0].shape
    sure, mean = (column[position].reshape(shape) for column in loads.T)
    return sure, mean


def _numbered(values: Floats) -> tuple[Floats, Ints]:
    """Return distinct values in rising order, and the index of each value among them (the value
    itself where all are integers).
    """
    whole = np.rint(values).astype(np.int64)
    if (whole == values).all():
        return np.arange(whole.max(initial=0) + 1.0), whole
    distinct_values, number = np.unique(values, return_inverse=True)
    return distinct_values, number.reshape(values.shape)


@lru_cache(maxsize=1 << 18)
def busiest_link(paths: float, *tiers: float) -> tuple[float, float]:
    r"""Flows on the busiest link, at least `paths`: the least number that is not exceeded with
    probability `SURE`, and the mean; of three figures for each tier.

    Each of n flows out of a switch takes one of u links at random, and as many links lead down to
    it; of M switches with as many flows no link has more than k with

    .. math:: P(k) = P\bigl(\mathrm{Bin}(n, 1/u) \le k\bigr)^{2 M u}
    """
    within = [  # all flows are on the link where there is but one, or less
        2 * switches * max(links, 1.0) * log_within(float(count), float(links))
        for count, links, switches in zip(tiers[::3], tiers[1::3], tiers[2::3], strict=True)
    ]
    length = max(map(len, within))
    chance = np.exp(sum(np.pad(of_tier, (0, length - len(of_tier))) for of_tier in within))
    sure = float(np.argmax(chance >= SURE))
    return max(sure, paths), paths + float((1.0 - chance[math.ceil(paths) :]).sum())


@lru_cache(maxsize=1 << 10)
def log_within(count: float, links: float) -> Floats:
    """Logarithm of the probability that one link has no more than k of n flows out of its switch,
    each of which takes a link at random, for k = 0 .. n.
    """
    n = round(count)
    hits, is_all = np.arange(n + 1), np.zeros(n + 1)
    if n == 0 or links <= 1:  # with one link all flows are on it
        is_all[:-1] = -np.inf
        return is_all
    share = 1.0 / links
    steps = np.log((n - hits[:-1]) / hits[1:]) + np.log(share / (1 - share))
    mass = np.exp(n * np.log1p(-share) + np.concatenate([[0.0], np.cumsum(steps)]))
    beyond = np.concatenate([np.cumsum(mass[:0:-1])[::-1], [0.0]])  # P(Bin > k)
    # some link has the mean at least
    beyond = np.where(hits < n / links, 1.0, np.minimum(beyond, 1.0))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(-beyond))


MAX_UPLINKS = 1 << 12  # no switch has more ports


@dataclass(frozen=True, kw_only=True)
class Crossings:
    """Flows out of the busiest leaf and the busiest pod for each of `kinds`; arrays of shape
    (kinds, n).

    `paths` is the number of flows, each with its own path, that share one NIC rate; shape
    (kinds, n). `algorithms` holds the loads of collectives that do not use a ring; None where the
    charge does not distinguish them.
    """

    kinds: Sequence[str]
    leaf: Floats
    pod: Floats
    paths: Ints
    layout: NicLayout
    discipline: Discipline
    algorithms: AlgorithmLoads | None = None

    def take(self, rows: Any) -> Crossings:
        """Select rows."""
        return Crossings(
            kinds=self.kinds,
            leaf=self.leaf[:, rows],
            pod=self.pod[:, rows],
            paths=self.paths[:, rows],
            layout=self.layout.take(rows) if np.ndim(self.layout.domains) else self.layout,
            discipline=self.discipline,
            algorithms=None if self.algorithms is None else self.algorithms.take(rows),
        )

    def carried(self, uplinks: Any, share_left: float = 1.0) -> Floats:
        """Load of each kind on the busiest link, relative to its rate, with u uplinks per leaf;
        shape (kinds, n), or (kinds, k, n) for u of shape (k, 1).

        Parameters
        ----------
        share_left
            Share of the links out of a pod that have not failed.
        """
        return self._loads(uplinks, share_left)[0]

    def carried_by_algorithms(self, uplinks: Any, share_left: float = 1.0) -> Floats:
        """The same for every round of the algorithms that do not use a ring; shape (rounds, n) or
        (rounds, k, n).
        """
        return self._loads_by_algorithms(uplinks, share_left)[0]

    def _loads(self, uplinks: Any, share_left: float) -> tuple[Floats, ...]:
        """Loads of the kinds, and their means where they are random."""
        return self._loads_of((self.leaf, self.pod, self.paths), uplinks, share_left)

    def _loads_by_algorithms(self, uplinks: Any, share_left: float) -> tuple[Floats, ...]:
        algorithms = self.algorithms
        assert algorithms is not None
        table = algorithms.leaf, algorithms.pod, algorithms.paths
        return self._loads_of(table, uplinks, share_left)

    def _loads_of(
        self, table: tuple[Floats, Floats, Any], uplinks: Any, share_left: float
    ) -> tuple[Floats, ...]:
        """Load of the flows out of leaves and pods, given the paths per NIC rate; shape (m, n) or
        (m, k, n). Where each flow takes a random path, the load that is rarely exceeded and the
        mean of what the busiest link carries, or a NIC.
        """
        up = self.layout.pod_up * share_left
        extra = (1,) * (np.ndim(uplinks) - 1)
        uplinks = self._serving(uplinks)
        leaf, pod, rate = (part.reshape(len(part), *extra, part.shape[1]) for part in table)
        routing = self.discipline.routing
        if routing not in ("pinned", "ecmp"):
            return (np.asarray(np.maximum(leaf, pod / up) * self._stretch / uplinks),)
        # counted in whole flows, of which a NIC rate has `rate`, and given back in NIC rates
        if routing == "pinned":
            load = np.maximum(
                whole_flows(leaf * rate, uplinks), whole_flows(pod * rate, uplinks * up)
            )
            return (np.asarray(load / rate),)
        leaves, pods = (self.layout.planes * n for n in (self.layout.leaves, self.layout.pods))
        # rounding must not make whole flows others
        loads = flows_at_random(
            rate,
            (np.rint(leaf * rate), uplinks, leaves),
            (np.rint(pod * rate), uplinks * up, pods),
        )
        return tuple(np.asarray(load / rate) for load in loads)

    def _serving(self, uplinks: Any) -> Any:
        """Effective number of uplinks where pairs of leaves have different numbers of them in
        common; shape (n,) or (k, n).

        If a leaf has lost some uplinks, only whole remaining ones count.
        """
        joined_leaves = np.asarray(self.layout.joined_leaves)
        if not joined_leaves.any():
            return uplinks
        tables, row_menus = self._menus
        whole_uplinks = np.floor(np.asarray(uplinks) + 1e-9).astype(np.int64)
        worth = tables[row_menus, np.clip(whole_uplinks, 0, tables.shape[1] - 1)]
        return np.where((joined_leaves > 0) & (whole_uplinks > 0), worth, uplinks)

    @cached_property
    def _menus(self) -> tuple[Floats, Ints]:
        """Effective number of uplinks for every number of them, for distinct layouts, and the index
        of each row's layout.
        """
        layout, at_random = self.layout, self.discipline.routing == "ecmp"
        columns = (layout.joined_leaves, layout.spine_ports, layout.most_up)
        deals, row_menus = distinct_rows(
            *(np.broadcast_to(column, self.leaf.shape[1]) for column in columns)
        )
        menus = [
            serving_uplinks(*deal, at_random)
            for deal in zip(*(column.tolist() for column in deals), strict=True)
        ]
        length = max(map(len, menus))
        return (
            np.stack([np.pad(menu, (0, length - len(menu)), "edge") for menu in menus]),
            row_menus,
        )

    @property
    def identity(self) -> Floats:
        """Everything that slowdowns depend on besides uplinks; shape (columns, n)."""
        layout, routing = self.layout, self.discipline.routing
        deal = (layout.joined_leaves, layout.spine_ports, layout.most_up)
        columns = [column for column in deal if np.any(column)]
        flows = [*self._flows_out]
        if routing in ("pinned", "ecmp"):
            switches = (layout.planes, layout.leaves, layout.pods)
            columns += [layout.pod_up, *(switches if routing == "ecmp" else ()), *self.paths]
        else:
            flows = [(np.maximum(leaf, pod / layout.pod_up),) for leaf, pod in flows]
        if self.algorithms is not None:
            flows.append((self.algorithms.shares,))
        n = self.leaf.shape[1]
        return np.vstack(
            [*chain.from_iterable(flows), *(np.broadcast_to(column, (n,)) for column in columns)]
        )

    @property
    def _flows_out(self) -> list[tuple[Floats, ...]]:
        """Flows out of the busiest leaf and pod, of kinds and then of algorithms."""
        algorithms = () if self.algorithms is None else (self.algorithms,)
        return [(table.leaf, table.pod) for table in (self, *algorithms)]

    def enough_uplinks(self) -> Ints:
        """Number of uplinks beyond which more make nothing faster, up to the ports of a switch;
        shape (n,).
        """
        routing = self.discipline.routing
        if routing == "ecmp":
            return np.full(self.leaf.shape[1], MAX_UPLINKS)
        paths: list[Any] = [
            self.paths,
            *([] if self.algorithms is None else [self.algorithms.paths]),
        ]
        loads = [
            np.maximum(leaf, pod / self.layout.pod_up) * (count if routing == "pinned" else 1)
            for (leaf, pod), count in zip(self._flows_out, paths, strict=True)
        ]
        load = np.concatenate(loads).max(axis=0, initial=1.0)
        half = np.where(
            np.asarray(self.layout.joined_leaves) > 0, 2, 1
        )  # half of them are in common at least
        # rounding must not leave it one short; more uplinks than needed only cost a step of a
        # search
        return np.asarray(np.ceil(load * self._stretch * (1 + REORDERED)) * half, dtype=np.int64)

    @property
    def _stretch(self) -> float:
        """Factor on the load of flows that share all links, relative to sharing them perfectly."""
        routing = self.discipline.routing
        return 1.0 / self.discipline.efficiency if isinstance(routing, str) else routing

    def reciprocals(self, byte_s: Any, uplinks: Any, share_left: float = 1.0) -> Reciprocals:
        """Seconds per byte of each kind with u uplinks per leaf; `share_left` as in `slowdowns`.

        Kinds without counts run at the full rate.
        """
        loads = self._loads(uplinks, share_left)
        by_algorithms: tuple[Floats | None, ...] = (None,) * len(loads)
        if self.algorithms is not None:
            by_algorithms = self._loads_by_algorithms(uplinks, share_left)
        sure, *mean = (
            self._at_loads(byte_s, *pair) for pair in zip(loads, by_algorithms, strict=True)
        )
        return replace(sure, mean=mean[0]) if mean else sure

    def _at_loads(self, byte_s: Any, load: Floats, by_algorithms: Floats | None) -> Reciprocals:
        """Seconds per byte of each kind where links carry so much of it."""
        slow = np.maximum(1.0, load) / byte_s
        s_byte = dict.fromkeys(KINDS, np.broadcast_to(1.0 / byte_s, slow.shape[-1:]))
        algorithms: dict[tuple[str, str], Any] | None = None
        if self.algorithms is not None and by_algorithms is not None:
            means = self.algorithms.means(np.maximum(1.0, by_algorithms))
            algorithms = {algorithm: factor / byte_s for algorithm, factor in means.items()}
        return Reciprocals(
            **s_byte | dict(zip(self.kinds, slow, strict=True)), algorithms=algorithms
        )


def crossings(
    layout: NicLayout,
    discipline: Discipline,
    groups: Groups,
    kinds: Sequence[str] = KINDS,
    algorithms: tuple[tuple[str, Flows], ...] = (),
    *,
    exact: bool = False,
) -> Crossings:
    """Compute the link loads of kinds of traffic on layouts, one per row or one for all.

    Pods that hold parts of rails or domains are left at 0 where their leaves are the bottleneck,
    unless `exact`.
    """
    n = len(groups.tp)
    rows = NicLayout(
        **{f.name: np.broadcast_to(getattr(layout, f.name), (n,)) for f in fields(NicLayout)}
    )
    rows = replace(rows, nics=rows.nics * groups.filled)
    leaf, pod, algorithm_loads = np.zeros((len(kinds), n)), np.zeros((len(kinds), n)), None
    if discipline.charge == "ratio":
        _by_ratio(rows, groups, kinds, leaf)
    else:
        if kinds:  # none where no placement crosses domains
            _by_flows(rows, groups, kinds, leaf, pod, discipline, exact=exact)
        algorithm_loads = loads_by_algorithms(rows, groups, algorithms) if algorithms else None
    # a member of an all-to-all divides its bytes among the others, a stage among its neighbours
    paths = np.ones((len(kinds), n), dtype=np.int64)
    if "ep" in kinds:
        paths[kinds.index("ep")] = np.maximum(groups.experts - 1, 1)
    if "pp" in kinds and discipline.routing == "ecmp":
        paths[kinds.index("pp")] = np.where(groups.have_two_neighbours, 2, 1)
    return Crossings(
        kinds=kinds,
        leaf=leaf,
        pod=pod,
        paths=paths,
        layout=layout,
        discipline=discipline,
        algorithms=algorithm_loads,
    )


def _by_flows(
    rows: NicLayout,
    groups: Groups,
    kinds: Sequence[str],
    leaf: Floats,
    pod: Floats,
    discipline: Discipline,
    *,
    exact: bool,
) -> None:
    """Fill in the flows out of leaves and pods."""
    at_random = discipline.routing == "ecmp"
    nic_use = np.where(
        groups.stages_inside == 1,
        np.where(at_random & groups.have_two_neighbours, PATHS, BOTH),
        np.where(rows.ends > 1, APART, RAIL),
    )
    for table, span, applies in rows.switches(leaf, pod):
        for count, counted in (
            (_of_spans, applies & ~rows.after_loss),
            (_of_windows, applies & rows.after_loss),
        ):
            if counted.any():
                at = slice(None) if counted.all() else np.flatnonzero(counted)
                table[:, at] = count(rows.take(at), groups.take(at), span[at], kinds, nic_use[at])
    if len(cut := np.flatnonzero(rows.span == 0)):
        leaf[:, cut] = _of_parts(rows.take(cut), groups.take(cut), kinds)
    mixed_rows = rows.fill_unlike(leaf, pod)
    if not (exact or at_random) and len(mixed_rows):
        # examining pods is slow: they matter only where their uplinks carry more than those of
        # their leaves
        bound = most_of_mixed_pods(
            rows.take(mixed_rows), groups.take(mixed_rows), kinds, leaf[:, mixed_rows]
        )
        mixed_rows = mixed_rows[(bound > rows.pod_up[mixed_rows] * leaf[:, mixed_rows]).any(axis=0)]
    if len(mixed_rows):
        mixed = rows.take(mixed_rows), groups.take(mixed_rows)
        pod[:, mixed_rows] = mixed_pods(*mixed, kinds, nic_use[mixed_rows])


def _of_spans(
    rows: NicLayout, groups: Groups, span: Ints, kinds: Sequence[str], nic_use: Ints
) -> Floats:
    """Flows out of the busiest interval of `span` domains."""
    rails = np.where(rows.ends > 1, rows.nics, 1)
    flows = _of_rings(rows, groups, span, rails, kinds)
    if "ep" in kinds:
        block = groups.apart * groups.experts
        flows["ep"] = rails * busiest(
            exchange, rows.domains, span, block, groups.apart, groups.experts
        )
    stage_rails = np.where(nic_use == APART, rails // groups.stages_inside, rails)
    for kind, count in (("pp", hop), ("tied", tied)):
        if kind in kinds:
            flows[kind] = stage_rails * _of_lines(count, rows, groups, span, groups.closes, nic_use)
    if "tied" in kinds and groups.two_way.any():
        # NICs that send to the other GPU of a pipeline with the same stages
        flows["tied"] = np.where(
            groups.two_way, rails * _of_lines(mirrored, rows, groups, span), flows["tied"]
        )
    return np.array([flows[kind] for kind in kinds])


def _of_lines(count: Any, rows: NicLayout, groups: Groups, span: Ints, *columns: Ints) -> Floats:
    """NICs per rail of pipelines out of the busiest interval; pipelines with adjacent stages repeat
    after a line.
    """
    leaving, side_by_side = np.zeros(len(span)), groups.step > 1
    for at, repeats in (
        (np.flatnonzero(~side_by_side), False),
        (np.flatnonzero(side_by_side), True),
    ):
        if len(at):
            lines = [column[at] for column in (groups.line, groups.hop, *columns)]
            leaving[at] = busiest(
                count, rows.domains[at], span[at], lines[0] if repeats else None, *lines
            )
    return leaving


def _of_rings(
    rows: NicLayout, groups: Groups, span: Ints, rails: Ints, kinds: Sequence[str]
) -> dict[str, Any]:
    """Flows of the kinds that use rings, which are counted together."""
    rings = [ring_of_kind for ring_of_kind in groups.rings if ring_of_kind[0] in kinds]
    if not rings:
        return {}
    names, *columns = zip(*rings, strict=True)
    stride, members = map(np.concatenate, columns)
    domains, spans = (np.tile(column, len(names)) for column in (rows.domains, span))
    leaving = busiest(ring, domains, spans, stride * members, stride, members)
    return dict(zip(names, rails * leaving.reshape(len(names), -1), strict=True))


def _of_windows(
    rows: NicLayout, groups: Groups, span: Ints, kinds: Sequence[str], nic_use: Ints
) -> Floats:
    """Flows out of any `span` consecutive domains after the loss of a domain, wherever blocks
    begin.

    Groups stay inside intervals whose length is a multiple of their block if there is room to shift
    everything by a block that holds them whole.
    """
    holds_domains = rows.ends > 1
    rails = np.where(holds_domains, rows.nics, 1)
    experts, stage, step = groups.apart * groups.experts, groups.stage, groups.step

    def stays(block: Ints, shift: Ints) -> Bools:
        holds = (span >= rows.domains) | (span % block == 0)
        return np.asarray((span > rows.domains) | ((shift <= rows.room) & holds))

    shifts = {"tp": groups.tp, "cp": np.lcm(groups.tp * groups.cp * step, experts)}
    shifts |= dict.fromkeys(("dp", "edp"), stage * step)
    flows: dict[str, Any] = {}
    for kind, stride, members in groups.rings:
        still = stays(stride * members, shifts[kind]) | (members == 1)
        # an interval cuts a ring over a stride at each of its ends, wherever it begins
        flows[kind] = np.where(still, 0, rails * np.minimum(span, 2 * stride))
    members = groups.experts
    # an all-to-all sends most where it is cut into halves
    halves = members // 2 * (members - members // 2) / np.maximum(members - 1, 1)
    still = stays(experts, np.lcm(groups.tp, experts)) | (members == 1)
    flows["ep"] = np.where(still, 0, rails * np.minimum(span, 2 * groups.apart * halves))
    still = stays(groups.line, groups.line) | (groups.stages == 1)
    has_own_rails, edges = (
        holds_domains & (groups.stages_inside > 1),
        np.minimum(span, 2 * groups.cut),
    )
    stage_nics = rails // groups.stages_inside
    # of hops with a path each as many lead ahead at one end as behind at the other
    hops = np.where(nic_use == PATHS, np.minimum(span, groups.cut), edges)
    flows["pp"] = np.where(
        still, 0, np.where(has_own_rails, 2 * stage_nics * np.minimum(span, stage), rails * hops)
    )
    flows["tied"] = np.where(
        still, 0, np.where(has_own_rails, stage_nics, rails) * np.minimum(span, 2 * groups.hop)
    )
    flows["tied"] = np.where(groups.two_way & ~still, rails * span, flows["tied"])
    return np.array([flows[kind] for kind in kinds])


def _of_parts(rows: NicLayout, groups: Groups, kinds: Sequence[str]) -> Floats:
    """Flows out of a leaf that holds part of a domain: those of all its sending end points."""
    n, zero = rows.nics, np.zeros_like(rows.nics)
    single = n // groups.stages_inside
    all_senders = most_senders(rows, (zero, n))
    flows: dict[str, Any] = {
        kind: np.where(members > 1, all_senders, 0) for kind, _, members in groups.rings
    }
    flows["ep"] = np.where(groups.experts > 1, all_senders, 0)
    first_senders, last_senders = (
        most_senders(rows, (zero, single)),
        most_senders(rows, (n - single, n)),
    )
    end_senders = np.where(
        groups.have_one_neighbour, last_senders, most_senders(rows, (zero, single), (n - single, n))
    )
    # with an odd number of blocks first and last stage lie at different ends of their domains
    pair = np.where(groups.stages % 2 == 0, first_senders, np.maximum(first_senders, last_senders))
    crosses = groups.stages > 1
    flows["pp"] = np.where(
        crosses, np.where(groups.stages_inside == 1, all_senders, end_senders), 0
    )
    flows["tied"] = np.where(
        crosses, np.where((groups.stages_inside == 1) | (groups.two_way == 1), all_senders, pair), 0
    )
    return np.array([flows[kind] for kind in kinds])


def _by_ratio(rows: NicLayout, groups: Groups, kinds: Sequence[str], leaf: Floats) -> None:
    """Fill in the ports of a leaf below for groups that leave it, multiplied by the ratio beyond a
    pod.
    """
    blocks = {"tp": groups.tp, "ep": groups.apart * groups.experts}
    blocks |= dict.fromkeys(("cp", "dp", "edp"), groups.stage) | dict.fromkeys(
        ("pp", "tied"), rows.domains
    )
    shifts = blocks | {"ep": np.lcm(groups.tp, blocks["ep"])}

    def stays(span: Ints, kind: str) -> Bools:
        holds = (span >= rows.domains) | ((span > 0) & (span % blocks[kind] == 0))
        fits = (span > rows.domains) | ((shifts[kind] <= rows.room) & holds)
        return np.asarray(np.where(rows.room < 0, holds, fits))

    for k, kind in enumerate(kinds):
        inside = (rows.pods == 0) | stays(rows.pod_span, kind)
        load = np.where(inside, rows.down, rows.down * rows.ratio)
        leaf[k] = np.where(stays(rows.span, kind), 0.0, load)
