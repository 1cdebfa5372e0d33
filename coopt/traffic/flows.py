"""Flows of an iteration: sender, receiver and bytes, for each collective."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from coopt.instance.layouts import stages_of
from coopt.instance.workload import Workload
from coopt.network.schedules.textbook import two_trees
from coopt.perf.algorithms import HALVING, ONE_RING, RINGS, SWITCHES, TREES
from coopt.perf.collectives import Flows
from coopt.perf.kernels import BYTES
from coopt.perf.mapping import (
    Bools,
    Floats,
    Ints,
    held_expert_parameters,
    held_parameters,
    micro_batches,
    stage_layers,
    vocab_share,
)
from coopt.plan.parts import WorkloadPlan
from coopt.traffic.ranks import Group, RankGrid, groups, split_of, stages
from coopt.traffic.volumes import IterationPhase, Share, TrafficClass, Volume, collective_volumes

AllReduce = Literal["ring", "tree", "halving"]
ADDED_BY: dict[str, AllReduce] = {HALVING: "halving", TREES: "tree"}
"""How replicas add up gradients by the ways whose flows are no rings."""
SIZED_GROUPS: dict[str, Group] = {"tp": "tp", "dp": "dp", "edp": "copies"}
"""Kinds of traffic that may take them, and the groups that do."""
ACROSS = 1  # the axis of tables of groups along which domains differ


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Flows of one collective in one phase: rank `src[i]` sends `size_bytes[i]` to `dst[i]` per
    iteration.

    `group[i]` is the number of the ring, tree, all-to-all or pipeline of a flow. Arrays of shape
    (flows,). Rounds of halving and doubling are sequential: round `round_index` uses the distance
    2^round_index, with the share `share` of the bytes that cross domains.
    """

    kind: TrafficClass
    collective: Group | Literal["hop", "pair"]
    phase: IterationPhase
    src: Ints
    dst: Ints
    group: Ints
    size_bytes: Floats
    flows: Flows = "ring"
    round_index: int = 0
    share: float = 1.0

    def take(self, rows: Bools) -> Stream:
        """Select flows."""
        return replace(
            self,
            src=self.src[rows],
            dst=self.dst[rows],
            group=self.group[rows],
            size_bytes=self.size_bytes[rows],
        )


@dataclass(frozen=True, kw_only=True)
class TrafficDemand:
    """Streams of one workload between GPUs; GPU number = domain · `active` + GPU in the domain.
    `gpus` are those that train.

    `all_reduce` tells how replicas sum gradients across domains if they use all-reduces, and
    `collectives` the algorithms named in the plan for each kind of traffic, if any.
    """

    workload: str
    gpus: Ints
    active: int
    domains: int
    streams: tuple[Stream, ...]
    all_reduce: AllReduce = "ring"
    collectives: Mapping[str, str] = field(default_factory=dict)

    @property
    def ranks(self) -> int:
        """Number of training GPUs."""
        return len(self.gpus)

    def rank_of(self, gpus: Ints) -> Ints:
        """Return the number of training GPUs with lower numbers."""
        return np.searchsorted(self.gpus, gpus)


def tree_edges(ranks: int) -> tuple[Ints, Ints]:
    """Child and parent of every edge, first tree before second tree; shape (2·(ranks - 1),)
    each.
    """
    edges = [
        (child, parent)
        for tree in two_trees(ranks)
        for parent, children in tree.items()
        for child in children
    ]
    child, parent = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return child, parent


def demand(
    workload: Workload,
    workload_plan: WorkloadPlan,
    *,
    trees: bool = False,
    both_ways: bool = False,
) -> TrafficDemand:
    """Return the traffic of one workload of a plan per iteration.

    Collectives use the algorithms named in the plan, else rings. With `trees`, all-reduces of data
    parallelism (ZeRO 0) use two binary trees across domains, whatever the plan names. With
    `both_ways`, as on direct links, rings across domains send half of the data in each direction.

    Ranks on a rail that forward a collective send to the next one of a ring; between GPUs that
    share neither rail nor domain, traffic is relayed by the GPU of the sender's domain on the
    receiver's rail.
    """
    split = split_of(workload, workload_plan)
    volumes = tuple(collective_volumes(split))
    ways = {
        SIZED_GROUPS[kind]: way
        for kind, way in workload_plan.collectives.items()
        if kind in SIZED_GROUPS
    }
    ways |= dict.fromkeys(("dp", "copies"), TREES) if trees else {}
    streams = _streams(split, volumes, ways, both_ways=both_ways)
    legs = tuple(
        leg for stream in streams for leg in forwarding_legs(stream, split.active) if len(leg.src)
    )
    added = [
        ADDED_BY.get(ways.get(volume.group, RINGS), "ring")
        for volume in volumes
        if volume.all_reduce and volume.across_bytes
    ]
    return TrafficDemand(
        workload=workload.name,
        gpus=np.flatnonzero(split.present),
        active=split.active,
        domains=split.domains,
        streams=legs,
        all_reduce=added[0] if added else "ring",
        collectives=workload_plan.collectives,
    )


def unaligned_classes(workload: Workload, workload_plan: WorkloadPlan) -> tuple[TrafficClass, ...]:
    """Return the kinds of traffic between GPUs that share neither a domain nor a rail, and need a
    relay if rails are separate.
    """
    split = split_of(workload, workload_plan)
    streams = _streams(split, tuple(collective_volumes(split)), {})
    return tuple(
        dict.fromkeys(stream.kind for stream in streams if _oblique(stream, split.active).any())
    )


def _streams(
    split: RankGrid,
    volumes: tuple[Volume, ...],
    ways: Mapping[Group, str],
    *,
    both_ways: bool = False,
) -> Iterator[Stream]:
    yield from _collectives(split, volumes, ways, both_ways=both_ways)
    yield from _hops(split)
    yield from _embedding(split)


def _oblique(stream: Stream, per_domain: int) -> Bools:
    """Whether flows between domains leave their rail."""
    apart = (stream.src // per_domain != stream.dst // per_domain) & (
        stream.src % per_domain != stream.dst % per_domain
    )
    return np.asarray(apart, dtype=np.bool_)


def forwarding_legs(stream: Stream, per_domain: int) -> tuple[Stream, ...]:
    """Split a stream into legs that each stay in a domain or on a rail."""
    oblique = _oblique(stream, per_domain)
    if not oblique.any():
        return (stream,)
    bent = stream.take(oblique)
    # by the GPU of the sender's domain that is on the receiver's rail, so that only the leg across
    # needs a link
    via = bent.src // per_domain * per_domain + bent.dst % per_domain
    return stream.take(~oblique), replace(bent, dst=via), replace(bent, src=via)


def _collectives(
    split: RankGrid, volumes: Sequence[Volume], ways: Mapping[Group, str], *, both_ways: bool
) -> Iterator[Stream]:
    shares = _shares(split)
    for volume in volumes:
        table, way = groups(split, volume.group), ways.get(volume.group, RINGS)
        if way == TREES and table.shape[1] > 1 and (volume.all_reduce or volume.kind != "dp"):
            yield from (
                _weighed(tree_stream(half, table), shares[volume.share]) for half in _halves(volume)
            )
            # what trees carry across is done; ranks inside a domain still go round rings
            volume = replace(volume, across_bytes=0.0)
        elif way == HALVING and not volume.exchange:
            yield from (
                _weighed(stream, shares[volume.share]) for stream in halving_streams(volume, table)
            )
            volume = replace(volume, inside_bytes=0.0, across_bytes=0.0)
        volume = _sent_round(volume, way, table)
        for axis, size_bytes, ranks in _parts(split, volume, table):
            for step, part in _steps(
                volume, ranks.shape[axis], both_ways=both_ways and axis == ACROSS
            ):
                src = ranks.ravel()
                sent_bytes = size_bytes * part * shares[volume.share][src]
                dst = np.roll(ranks, -step, axis=axis).ravel()
                if sent_bytes.any():
                    yield Stream(
                        kind=volume.kind,
                        collective=volume.group,
                        phase=volume.phase,
                        src=src,
                        dst=dst,
                        group=np.arange(len(src)) // (len(src) // len(ranks)),
                        size_bytes=sent_bytes,
                    )


def _parts(split: RankGrid, volume: Volume, table: Ints) -> Iterator[tuple[int, float, Ints]]:
    """Yield axis, bytes per rank and groups of a collective: across domains, then inside.

    Where domains hold different numbers of replicas, those that every domain has forward everything
    between domains.
    """
    if split.placement.dp_domains is None or volume.group not in ("dp", "copies"):
        yield from ((ACROSS, volume.across_bytes, table), (2, volume.inside_bytes, table))
        return
    # groups list replicas that every domain has first, and only those have a peer in each
    everywhere = table[:, :, : table.shape[2] * split.fewest // split.extent("dh")]
    is_full = split.present[table].all(axis=2)
    yield ACROSS, volume.across_bytes, everywhere
    for ranks in (table[is_full], everywhere[~is_full]):
        if ranks.size:
            yield 2, volume.inside_bytes, ranks[:, None]


def tree_stream(volume: Volume, table: Ints) -> Stream:
    """Return half of an all-reduce across domains on two trees, each for half of the data.

    `table` has shape (groups, domains, ranks in a domain); ranks of one column are on one rail and
    share their trees. Each tree is a group of flows.
    """
    child, parent = tree_edges(table.shape[1])
    src, dst = (child, parent) if volume.all_reduce == "up" else (parent, child)
    # a ring passes on (y - 1)/y of the data, a tree all of it, half on either tree
    data = volume.across_bytes * table.shape[1] / (table.shape[1] - 1)
    flows = table[:, src].ravel()
    second = np.repeat(np.arange(len(child)) >= len(child) // 2, table.shape[2])
    return Stream(
        kind=volume.kind,
        collective=volume.group,
        phase=volume.phase,
        src=flows,
        dst=table[:, dst].ravel(),
        group=2 * (np.arange(len(flows)) // (len(flows) // len(table)))
        + np.tile(second, len(table)),
        size_bytes=np.full(len(flows), data / 2),
        flows="trees",
    )


def _halves(volume: Volume) -> tuple[Volume, ...]:
    """Split a volume into halves of all-reduces; where these are not distinguished, as for TP, each
    has half of the bytes.
    """
    if volume.all_reduce:
        return (volume,)
    half = replace(volume, across_bytes=volume.across_bytes / 2)
    return replace(half, all_reduce="up"), replace(half, all_reduce="down")


def halving_streams(volume: Volume, table: Ints) -> Iterator[Stream]:
    """Yield streams of halving and doubling between domains and inside them, one per round.

    In round j, y domains, or ranks of one, exchange floor((floor((y - 1)/2^j) + 1)/2) of y parts at
    the distance 2^j, each with a partner where y is a power of two. A scatter starts at distance 1
    with the most bytes, a gather ends there.
    """
    scatters = volume.phase == "gradients" and volume.all_reduce != "down"
    for axis, size_bytes in ((1, volume.across_bytes), (2, volume.inside_bytes)):
        size = table.shape[axis]
        order, rounds = np.arange(size), range((size - 1).bit_length() if size_bytes else 0)
        for round_index in rounds if scatters else reversed(rounds):
            peers = (order + 2**round_index) % size if size & (size - 1) else order ^ 2**round_index
            share = ((size - 1) // 2**round_index + 1) // 2 / (size - 1)
            yield Stream(
                kind=volume.kind,
                collective=volume.group,
                phase=volume.phase,
                src=table.ravel(),
                dst=table.take(peers, axis=axis).ravel(),
                group=np.arange(table.size) // (table.size // len(table)),
                size_bytes=np.full(table.size, size_bytes * share),
                flows="halving",
                round_index=round_index,
                share=share,
            )


def _sent_round(volume: Volume, way: str, table: Ints) -> Volume:
    """Return a ring volume with the bytes of another algorithm: one ring through all n = x y ranks,
    or sums in switches.

    A ring through all ranks forwards (n - 1)/n of the data, (x - 1)/x of that inside domains.
    Switches of the network receive all data once for both halves of a sum.
    """
    y, x = table.shape[1:]
    if y == 1 or volume.exchange:
        return volume
    if way == ONE_RING:
        ring_share = 1 - 1 / (x * y)
        across_bytes = volume.across_bytes * ring_share * y / (y - 1)
        return replace(
            volume, inside_bytes=volume.inside_bytes * ring_share, across_bytes=across_bytes
        )
    if way == SWITCHES:
        return replace(volume, across_bytes=volume.across_bytes * y / (y - 1) / 2)
    return volume


def _weighed(stream: Stream, shares: Floats) -> Stream:
    """Multiply the bytes that each rank sends by its share."""
    return replace(stream, size_bytes=stream.size_bytes * shares[stream.src])


def _steps(volume: Volume, size: int, *, both_ways: bool) -> list[tuple[int, float]]:
    """Return distances in a group with the share of the bytes sent that far: the next rank in a
    ring, or half each to both neighbours, or all others.
    """
    if size == 1:
        return []
    if not volume.exchange:
        return [(1, 0.5), (-1, 0.5)] if both_ways and size > 2 else [(1, 1.0)]
    return [(step, 1.0 / (size - 1)) for step in range(1, size)]


def _shares(split: RankGrid) -> dict[Share, Floats]:
    """Return the factors on a volume for every rank; arrays of shape (places,)."""
    order, p, v = stages(split), int(split.mapping.pp[0]), int(split.mapping.interleave[0])
    stage = np.zeros(split.places, dtype=np.int64)
    stage[order] = np.arange(p)[:, None]
    fullest, last_missing = (int(n[0]) for n in stage_layers(split.workload.model, split.mapping))
    layers = np.full(p, float(fullest))
    if p > 1:
        layers[0] -= p * fullest - split.workload.model.layers - last_missing
        layers[-1] -= last_missing
    # one hop for each chunk and direction, but none forward to the first chunk and none back to the
    # last
    arriving = np.full(p, float(v))
    forward, backward = arriving.copy(), arriving.copy()
    forward[0] -= 1
    backward[-1] -= 1
    is_last = (np.arange(p) == p - 1).astype(np.float64)
    predicts = is_last
    if split.workload.layout:
        held_of_stages = stages_of(split.workload.layout, p)
        layers = np.array([float(held.layers) for held in held_of_stages])
        predicts = np.array([float(held.predictions > 0) for held in held_of_stages])
    by_stage: dict[Share, Floats] = {
        "layers": layers,
        "last stage": is_last,
        "predictions": predicts,
        "forward hops": forward,
        "backward hops": backward,
        "once": np.ones(p),
    }
    return {name: values[stage] for name, values in by_stage.items()}


def _hops(split: RankGrid) -> Iterator[Stream]:
    """Yield activations to the next stage and their gradients back; from the last to the first
    stage where chunks interleave.
    """
    order, model, m = stages(split), split.workload.model, split.mapping
    p, v = int(m.pp[0]), int(m.interleave[0])
    if p == 1:
        return
    times = int(micro_batches(m, split.workload.global_batch)[0])
    rows = int(m.micro_batch[0]) * model.seq / int(m.cp[0])
    size = BYTES * rows * model.hidden * model.streams / int(m.tp[0]) * times
    for src, dst, chunks in [*((s, s + 1, v) for s in range(p - 1)), (p - 1, 0, v - 1)]:
        if chunks:
            yield _between("pp", "hop", "forward", order[src], order[dst], size * chunks)
            yield _between("pp", "hop", "backward", order[dst], order[src], size * chunks)


def _twins(split: RankGrid) -> Iterator[Stream]:
    """Yield the exchange between the GPUs of a pipeline with the same stages: gradients of one
    stage, then the result of the other.
    """
    workload, m, order = split.workload, split.mapping, stages(split)
    parameters, gradient = (
        float((held_parameters(workload, m) + held_expert_parameters(workload, m))[0]),
        workload.options.software.gradient_bytes,
    )
    shards = bool(m.zero[0] >= 1)
    phases: tuple[tuple[IterationPhase, int], ...] = (
        ("gradients", gradient),
        ("parameters", BYTES),
    )
    for phase, each_bytes in (phases[0], phases[shards]):
        for src, dst in zip(order, order[::-1], strict=True):
            yield _between("dp", "pair", phase, src, dst, each_bytes * parameters)


def _embedding(split: RankGrid) -> Iterator[Stream]:
    """Yield the all-reduce between first and last stage for the gradients of a tied embedding."""
    model, order = split.workload.model, stages(split)
    if len(order) == 1:
        return
    if split.workload.options.schedule == "dualpipe":  # one GPU has both ends
        yield from _twins(split)
        return
    if not model.tied_embeddings:
        return
    gradient = split.workload.options.software.gradient_bytes
    size = gradient * float(vocab_share(model, split.mapping.tp)[0]) * model.hidden
    for src, dst in ((0, -1), (-1, 0)):
        yield _between("embedding", "pair", "gradients", order[src], order[dst], size)


def _between(
    kind: TrafficClass,
    collective: Literal["hop", "pair"],
    phase: IterationPhase,
    src: Ints,
    dst: Ints,
    size_bytes: float,
) -> Stream:
    """Return flows from every rank of one stage to its peer of another, with one group per
    pipeline.
    """
    return Stream(
        kind=kind,
        collective=collective,
        phase=phase,
        src=src,
        dst=dst,
        group=np.arange(len(src)),
        size_bytes=np.full(len(src), size_bytes),
    )
