"""What one GPU sends and receives in an iteration, and the seconds of one collective on one
network.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from coopt.instance.hardware import Gpu
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.verifier.training.kernels import layers_in_16_bits, predicting
from coopt.verifier.training.mappings import ScalarMapping, ranks_of_expert
from coopt.verifier.training.mixers import mixer_shares, sent_keys, switched_columns
from coopt.verifier.training.placing import (
    chunks_are_whole,
    expert_share,
    layer_shares,
    passed_columns,
    routed_width,
)

SHARES = {"ipoib": 0.20, "tcp": 0.90}
"""What a transport other than RDMA reaches, collectives and sends alike."""


class LinkShares(NamedTuple):
    """Shares of bandwidth a workload reaches, and start-up times (s); symbols env, eib, es, λ, α,
    λ_s.

    `overlap` says whether a collective may send inside domains and between them at the same time,
    `hb_sum` what all-reduces inside a domain reach, and `rail_sums` whether the network's switches
    add up gradients. `own`, `short` and `long_s` are of collectives that stay in one domain.
    """

    hb: float
    rail: float
    send: float
    latency_s: float
    step_s: float
    send_s: float
    overlap: bool = False
    hb_sum: float = 0.0
    rail_sums: bool = False
    own: float = 0.0
    short: float = 1.0
    long_s: float = 0.0

    def in_domain_s(
        self, size_bytes: float, ranks: int, byte_s: float, share: float = 1.0
    ) -> float:
        """Seconds in which ranks of one domain move their parts, and the copy of a rank's own.

        Two lines, of which the lower counts: a slow one from the start, and one at the full rate
        that begins later, by a share of `long_s` where this is a share of a collective.
        """
        if ranks == 1:
            return 0.0
        quick_s = (ranks - 1 + self.own) / ranks * size_bytes / byte_s
        return min(quick_s / self.short, self.long_s * share + quick_s)


class OtherWays(NamedTuple):
    """Seconds a byte takes between domains by ways that are no ring; infinite where one is
    closed.
    """

    halving: float
    trees: float


class Speeds(NamedTuple):
    """How fast bytes travel: inside the domain (byte/s), across it (s/byte of each kind of
    traffic).

    `edp` is that of copies of experts, `tied` that of the embedding that the first and the last
    stage share. `ways` says of a kind what ways take that are no ring; None where they are all as
    fast.
    """

    inside_byte_s: float
    tp_s_byte: float
    cp_s_byte: float
    dp_s_byte: float
    ep_s_byte: float
    edp_s_byte: float
    pp_s_byte: float
    tied_s_byte: float
    ways: Callable[[str], OtherWays] | None = None

    def of(self, kind: str) -> tuple[float, float]:
        """Byte/s of a kind of traffic inside the domain, and its s/byte across."""
        return self.inside_byte_s, getattr(self, f"{kind}_s_byte")

    def other_ways(self, kind: str) -> OtherWays:
        """What a byte of a kind of traffic takes by ways that are no ring."""
        return OtherWays(*self.of(kind)[1:] * 2) if self.ways is None else self.ways(kind)

    def behind(self, to_nics_gbyte_s: float) -> Speeds:
        """The rates where GPUs reach their NICs at so many 10^9 byte/s and no faster."""
        least, ways = 1 / (to_nics_gbyte_s * 1e9), self.ways

        def ways_of(kind: str) -> OtherWays:
            return OtherWays(*(max(s_byte, least) for s_byte in self.other_ways(kind)))

        s_byte = (max(seconds, least) for seconds in self[1:-1])
        return Speeds._make([self.inside_byte_s, *s_byte, ways_of if ways else None])

    @classmethod
    def everywhere(cls, inside_byte_s: float, s_byte: float) -> Speeds:
        """The same rate for every kind of traffic between domains."""
        return cls._make([inside_byte_s, *[s_byte] * (len(cls._fields) - 2), None])


def link_shares(workload: Workload, gpu: Gpu) -> LinkShares:
    """What a workload's transport reaches on a GPU."""
    share = gpu.efficiency
    rail, send = share.rail, share.send
    if workload.options.transport != "rdma":
        rail = send = SHARES[workload.options.transport]
    starts = (share.latency_s, share.step_s, share.send_s)
    own, short, long_s = share.hb_own, share.hb_short, share.long_s
    shares = LinkShares(share.hb, rail, send, *starts, own=own, short=short, long_s=long_s)
    if workload.options.collectives == "levels":
        return shares
    in_network = workload.options.collectives == "in-network"
    return shares._replace(overlap=True, hb_sum=share.hb_reduce or 0.0, rail_sums=in_network)


class SentShares(NamedTuple):
    """u: how often a row is sent inside the domain and across, over the experts its token visits;
    and what multiprocessors take to copy a byte of all these rows, 0 where they are no bound.
    """

    inside: float
    across: float
    copying_s_byte: float = 0.0


def exchange_s(
    size_bytes: float,
    inside: int,
    across: int,
    copies: SentShares,
    byte_s: float,
    s_byte: float,
    links: LinkShares,
) -> float:
    """A2A(D): seconds of an all-to-all by forwarding along the rails, then inside the domain.

    Where levels overlap, domains pass on what has come while the rails carry the rest.
    """
    if inside * across == 1:
        return 0.0
    inside_s, start_s = 0.0, links.latency_s + (links.long_s if across > 1 else 0.0)
    if copies.copying_s_byte:
        start_s = COPYING_START_S
    if inside > 1:
        kept_bytes, rate = copies.inside * size_bytes, links.hb * byte_s
        sent_s = (
            links.in_domain_s(kept_bytes, inside, rate)
            if across == 1
            else (inside - 1) / inside * kept_bytes / rate
        )
        inside_s = max(sent_s, copies.copying_s_byte * size_bytes)
    across_s = (across - 1) / across * copies.across * size_bytes * s_byte / links.rail
    return (max(inside_s, across_s) if links.overlap else inside_s + across_s) + start_s


def places_visited(places: float, visits: int) -> float:
    """Places that hold some of the experts a token visits, over these."""
    # experts are drawn evenly over the places: each is missed by all visits with the chance (1 -
    # 1/places)^visits
    return float(places * (1 - (1 - 1 / places) ** visits) / visits)


COPIED_BYTE_S, COPYING_START_S, TOUCHED_ROWS = 22e9, 50e-6, 2
"""what one multiprocessor copies of tokens, when it begins, and what it copies of each besides"""
OVERLAP_COST = 0.33
"""σ: share of a hidden transfer that still costs time."""


class PipelineHops(NamedTuple):
    """Hops of an iteration where a middle stage sets the pace, and the last one: all, and those
    that fill and drain.

    A middle stage also waits for the last one's logits, of `met_logits` micro-batches.
    """

    middle: float
    middle_filling: int
    last: float
    last_filling: int
    met_logits: int


class LayerTraffic(NamedTuple):
    """Seconds of all TP collectives of a layer and micro-batch, of keys and values going round, and
    of experts.
    """

    gathers_s: float = 0.0
    ring_s: float = 0.0
    experts_s: float = 0.0


class AheadShares(NamedTuple):
    """What of the traffic of a layer belongs to its pass forward."""

    gathers: float
    ring: float
    experts: float

    def of(self, traffic: LayerTraffic) -> float:
        """Seconds of the pass forward."""
        return (
            self.gathers * traffic.gathers_s
            + self.ring * traffic.ring_s
            + self.experts * traffic.experts_s
        )


class GpuTraffic(NamedTuple):
    """Collectives with their bytes; numbers are for a layer and micro-batch where nothing else is
    said.
    """

    gathers: float
    """n_AG: TP all-gathers; 0 without tensor parallelism"""
    gathered_bytes: float
    """D_a"""
    logits_gathers: float
    """TP all-gathers of the logits and of the further predictions, for a micro-batch"""
    prediction_gathers: float
    """of these, those of the layers that predict further tokens"""
    rings: int
    """all-gathers that keys and values going round come to; 0 without context parallelism"""
    around_cp: tuple[tuple[float, float], ...]
    """share of the layers whose keys and values go round, and bytes of these"""
    switches: tuple[tuple[float, float], ...]
    """all-gathers that exchanges of heads in front of scans and behind them come to, and bytes"""
    exchanges: float
    """all-to-alls, mean over the layers; 0 without expert parallelism"""
    exchanged_bytes: float
    row_gathers: float
    """all-gathers of the experts' rows over TP ranks, mean over the layers"""
    row_ranks: int
    """t_x, TP ranks that gather the rows of an expert"""
    row_bytes: float
    """of the rows that these ranks have after such a gather"""
    copied_byte_s: float
    """of the multiprocessors that copy tokens inside domains"""
    visits: int
    """k"""
    groups: tuple[int, int]
    """G, G'"""
    sends_once: bool
    """a token goes once to each domain and GPU it visits, not once to each expert"""
    hides_exchanges: bool
    """behind the compute of another micro-batch"""
    further_layers: int
    """j: layers that predict further tokens, on the last stage"""
    further_exchanges: float
    """layers of the mean kind that exchange as much with experts as these"""
    sent_bytes: float
    """of a pipeline hop; 0 without a pipeline"""
    received_gathers: int
    """all-gathers the receiver of a hop adds"""
    hop_cost: float
    """share of a hop that costs time"""
    waits: PipelineHops
    gradient_bytes: int
    """g"""
    parameter_bytes: int
    copies: int
    """of what is sharded"""
    reductions: float
    """times gradients are gathered or scattered"""
    refreshes: float
    """times parameters are gathered"""
    embedding_bytes: float
    """gradient of the tied embedding; 0 where one stage holds both ends"""
    ahead: AheadShares = AheadShares(0.0, 0.0, 0.0)
    twin_bytes: float = 0.0
    """of a parameter, sent to the GPU of a pipeline that holds the same stages; 0 where there is
    none
    """

    @property
    def over_cp(self) -> tuple[tuple[float, float], ...]:
        """All-gathers over the context ranks for a pass forward, and bytes of each."""
        passes = self.rings - 1
        return *self.around_cp, *((times / passes, size) for times, size in self.switches)


def sent_shares(traffic: GpuTraffic, inside: int, across: int) -> SentShares:
    """What is left to send of the copies of a token when it goes once to each domain and GPU that
    it visits.
    """
    touched = TOUCHED_ROWS / traffic.visits
    if not traffic.sends_once:
        return SentShares(1.0, 1.0, (1.0 + touched) / traffic.copied_byte_s)
    (groups, visited), domains = traffic.groups, float(across)
    if groups:  # a domain holds some groups, or a group lies in some domains
        domains = min(across, visited if across <= groups else visited * across / groups)
    kept = places_visited(inside * domains, traffic.visits)
    return SentShares(
        kept, places_visited(domains, traffic.visits), (kept + touched) / traffic.copied_byte_s
    )


def traffic_of(workload: Workload, split: ScalarMapping) -> GpuTraffic:
    """The traffic of a mapping that divides evenly."""
    model, options = workload.model, workload.options
    full_recompute, j = split.recompute == "full", model.extra_predictions
    rows = split.micro_batch * model.seq // split.cp
    gathers = _layer_gathers(workload, split)
    prediction_gathers = j * _layer_gathers(predicting(workload), split)
    routed = 2 * model.capacity * rows * model.top_k * routed_width(model)
    # dispatch and combine, forward and backward, and forward once more where what follows attention
    # is repeated
    rounds = expert_share(model) * (6 if split.recompute in ("full", "norm+ffn") else 4)
    of_expert = ranks_of_expert(workload, split.tp) if model.experts else 1
    is_two_way = options.schedule == "dualpipe"
    # other chunks, or the other direction, have compute that a hop may hide behind
    hidden_hop = (split.interleave > 1 or is_two_way) and options.software.pp_overlap
    reductions, refreshes = _data_rounds(workload, split)
    tied = split.pp > 1 and model.tied_embeddings and not is_two_way
    table = -(-model.vocab // split.tp) * model.hidden
    return GpuTraffic(
        gathers=gathers,
        gathered_bytes=2.0 * rows * model.hidden,
        logits_gathers=2 * (1 + j) + prediction_gathers if split.tp > 1 else 0.0,
        prediction_gathers=prediction_gathers,
        rings=(4 if full_recompute else 3) if split.cp > 1 else 0,
        around_cp=tuple(
            (share, 2.0 * split.micro_batch * model.seq * columns)
            for share, mixer in mixer_shares(model)
            if (columns := sent_keys(mixer, split.tp))
        ),
        switches=tuple(
            (share * (3 if full_recompute else 2), 2.0 * rows * columns)
            for share, mixer in mixer_shares(model)
            if (columns := switched_columns(mixer, split.tp, split.cp))
        ),
        exchanges=rounds if split.ep > 1 else 0.0,
        exchanged_bytes=routed
        / split.tp
        * (options.dispatch_bytes + 2)
        / 4,  # half of the exchanges dispatch
        row_gathers=rounds if of_expert > 1 else 0.0,
        row_ranks=of_expert,
        row_bytes=routed * of_expert / split.tp,
        copied_byte_s=(
            COPIED_BYTE_S * copying if (copying := options.dispatch_multiprocessors) else math.inf
        ),
        visits=model.top_k,
        groups=(model.expert_groups, model.top_groups),
        sends_once=options.dispatch == "once",
        hides_exchanges=options.ep_overlap and split.micro_batches(workload.global_batch) > 1,
        further_layers=j,
        further_exchanges=(
            j * expert_share(model.prediction) / expert_share(model) if model.experts else 0.0
        ),
        sent_bytes=2.0 * rows * model.streams * model.hidden / split.tp if split.pp > 1 else 0.0,
        received_gathers=1 if split.tp > 1 and split.pp > 1 and not split.sequence_parallel else 0,
        hop_cost=OVERLAP_COST if hidden_hop else 1.0,
        waits=pipeline_waits(
            split.pp, split.interleave, split.micro_batches(workload.global_batch)
        ),
        gradient_bytes=options.software.gradient_bytes,
        parameter_bytes=options.software.parameter_bytes,
        copies=options.dp_replicate,
        reductions=reductions,
        refreshes=refreshes,
        embedding_bytes=float(tied * options.software.gradient_bytes * table),
        ahead=_ahead(workload, split, gathers),
        twin_bytes=float(_twin_bytes(workload, split)),
    )


def _ahead(workload: Workload, split: ScalarMapping, gathers: float) -> AheadShares:
    forward = forward_gathers(workload, split) * _with_encoders(workload.model)
    repeated = split.recompute in ("full", "norm+ffn")
    return AheadShares(
        gathers=forward / gathers if gathers else 0.0,
        # keys and values go round once forward, twice backward, and once more where the layer is
        # repeated
        ring=1 / 4 if split.recompute == "full" else 1 / 3,
        # dispatch and combine: forward, backward, and where they are repeated
        experts=1 / 3 if repeated else 1 / 2,
    )


def _twin_bytes(workload: Workload, split: ScalarMapping) -> int:
    """Gradients one way; then gradients the other way, or parameters of 16 bits from a sharded
    optimizer.
    """
    if workload.options.schedule != "dualpipe" or split.pp == 1:
        return 0
    gradient = workload.options.software.gradient_bytes
    return gradient + (workload.options.software.parameter_bytes if split.zero else gradient)


def pipeline_waits(p: int, v: int, m: int) -> PipelineHops:
    """The hops of p stages of v chunks, over m micro-batches of which p go round a ring of stages
    at a time.
    """
    if p == 1:
        return PipelineHops(0.0, 0, 0.0, 0, 0)
    if p == 2 and v == 1:
        return PipelineHops(m + 1.0, 1, m + 1.0, 1, 0)
    if v > 1 and m == p:  # all forward, then all backward
        hops = 2.0 * (p * v + p - 2)
        return PipelineHops(hops, 2 * p - 4, hops, 2 * p - 4, 0)
    if p == 2:
        hops = (2 * v - 0.5) * m
        return PipelineHops(hops, 0, hops, 0, 0)
    # H, Q, spared and late of docs/model.md, added up over the m micro-batches
    filling, hops = 2 * p - 5, 2.0 * v * m + 2 * p - 5
    if v == 1:
        return PipelineHops(hops, filling, hops - m + 2, filling + 2, min(m, 2))
    turns = m // p
    met = 2 if p == 3 else turns + 1
    if p % 2 == 0:
        return PipelineHops(hops, filling, hops - turns * (p - 1) + 1, filling + 1, met)
    # one stage of an odd ring has nobody to exchange with
    hops += (turns - 1) * (2 * v * p / (p - 1) - 2)
    return PipelineHops(hops, filling, hops - m + 2, filling + 2, met)


def _layer_gathers(workload: Workload, split: ScalarMapping) -> float:
    """n_AG, 0 where t = 1."""
    if split.tp == 1:
        return 0.0
    options, share = workload.options, layer_shares(workload.model)
    repeats = {"full": 2 * share.blocks, "norm+ffn": share.experts + share.plain}
    repeated = repeats.get(split.recompute, 0) * _pair(workload, split)
    inputs = gathered_share(workload, split, 1) if split.sequence_parallel else 0.0
    again = options.tp_sync_fraction * repeated + 2 * share.blocks * inputs
    backward = 2 * share.blocks * _pair(workload, split, layouts=2)
    if options.tp_sync_fraction < 1:
        backward *= options.tp_sync_fraction * options.tp_sync_backward
    if options.software.tp_overlap:
        backward *= OVERLAP_COST
    ahead = forward_gathers(workload, split) + again * forward_cost(workload, split)
    return (ahead + backward) * _with_encoders(workload.model)


def forward_gathers(workload: Workload, split: ScalarMapping) -> float:
    """Those of n_AG in the pass forward, without encoders."""
    if split.tp == 1:
        return 0.0
    pairs = 2 * layer_shares(workload.model).blocks * workload.options.tp_sync_fraction
    return pairs * _pair(workload, split) * forward_cost(workload, split)


def _pair(workload: Workload, split: ScalarMapping, layouts: int = 1) -> float:
    """A scatter in 16 bits and a gather."""
    return 1 + gathered_share(workload, split, layouts)


def gathered_share(workload: Workload, split: ScalarMapping, layouts: int) -> float:
    """What TP gathers with sequence parallelism, over the bytes in 16 bits: numbers as products
    take them, in one layout or in two, with a scale of 8 bits for 16 numbers of 4 bits.
    """
    bits = {"fp8": 8, "fp4": 4 + 8 / 16}.get(workload.precision)
    if bits is None or not (workload.options.software.narrow_inputs and split.sequence_parallel):
        return 1.0
    unchanged = layers_in_16_bits(workload)
    return unchanged + (1 - unchanged) * min(16.0, layouts * bits) / 16


def _with_encoders(model: Transformer) -> float:
    """Elements of the mean layer and of its part of encoders over those of the layer alone."""
    return passed_columns(model) / model.hidden - model.streams + 1


def forward_cost(workload: Workload, split: ScalarMapping) -> float:
    """Share of a forward TP collective that costs time: σ where it runs behind products, with
    sequence parallelism.
    """
    hidden = workload.options.software.tp_forward_overlap and split.sequence_parallel
    return OVERLAP_COST if hidden else 1.0


def _data_rounds(workload: Workload, split: ScalarMapping) -> tuple[float, float]:
    """How often gradients and parameters pass the GPUs that hold the same ones, each time once over
    (AG).
    """
    if split.zero == 0:
        return 2, 0  # an all-reduce is both halves, and nothing is left to gather
    if split.zero == 1:
        return 1, 1
    rounds = split.micro_batches(workload.global_batch)
    if chunks_are_whole(workload, split):
        rounds = math.ceil(rounds / split.pp)
    return rounds, (2 * rounds if split.zero == 3 else 1)
