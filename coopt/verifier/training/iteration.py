"""The time of one iteration on one network, and the share of the peak that it reaches."""

from __future__ import annotations

import math
from typing import NamedTuple

from coopt.instance.hardware import Gpu
from coopt.instance.mixers import ScanLayers
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.verifier.training.chunks import LaidOut, busiest_stage
from coopt.verifier.training.communication import (
    OVERLAP_COST,
    LayerTraffic,
    OtherWays,
    Speeds,
    exchange_s,
    sent_shares,
)
from coopt.verifier.training.gathers import (
    Group,
    Repeated,
    Summed,
    gather_s,
    gathers_s,
    summed_by_replicas,
    summed_by_tp,
)
from coopt.verifier.training.mixers import mean_mixer_parameters, met_in_core, mixer_shares
from coopt.verifier.training.placing import (
    Placement,
    layer_shares,
    matrices,
    projector_shapes,
    routed_width,
)
from coopt.verifier.training.schedules import SplitStage
from coopt.verifier.training.work import EndVisits, Work


class CommunicationTimes(NamedTuple):
    """Seconds of communication that an iteration is made of."""

    gather_s: float
    """one TP collective, half of an all-reduce"""
    ring_s: float
    """CP, of a layer and micro-batch"""
    experts_s: float
    """EP, of a layer and micro-batch, mean over the layers"""
    hop_s: float
    data_s: float
    embedding_s: float


class PipelineTimes(NamedTuple):
    """What the seconds of a pipeline are: `steady_s` and, to fill and drain it, `filled_s` where
    all stages but the first are middle ones and hops take no time; `ends_s` more for visits of the
    last one; and hops waited for, `filling` of which fill and drain.
    """

    steady_s: float
    filled_s: float
    ends_s: float
    ends: EndVisits
    hops: float
    filling: int
    hop_s: float

    @property
    def whole_s(self) -> float:
        """T_pipe: all micro-batches and the bubble."""
        return self.steady_s + self.filled_s + self.ends_s + self.hops * self.hop_s


class TimeBreakdown(NamedTuple):
    """Seconds of an iteration, or of its pipeline alone, by cause; they sum to it. Names as in
    `breakdown_s`.
    """

    compute: float
    logits: float
    tp: float
    cp: float
    ep: float
    pp: float = 0.0
    bubble: float = 0.0
    dp: float = 0.0
    wan: float = 0.0
    embedding: float = 0.0
    optimizer: float = 0.0
    straggler: float = 0.0


def communication_times(work: Work, place: Placement, speed: Speeds) -> CommunicationTimes:
    """Seconds of each kind of communication on a placement."""
    links = work.links
    received = gather_s(work.traffic.gathered_bytes, tp_group(work, place, speed), links)
    return CommunicationTimes(
        *_layer_times(work, place, speed),
        _hop_s(work, place, speed, received) if work.split.pp > 1 else 0.0,
        _data_s(work, place, speed),
        embedding_s(work, place, speed),
    )


def embedding_s(work: Work, place: Placement, speed: Speeds) -> float:
    """Seconds in which the two ranks that hold a tied embedding add up its gradients."""
    # of one domain only where no pipeline leaves it
    ends = (1, 2) if place.pp_across > 1 else (2, 1)
    pair, size_bytes = Group(*ends, *speed.of("tied")), work.traffic.embedding_bytes
    return 2 * gather_s(size_bytes, pair, work.links, "activations") if size_bytes else 0.0


def tp_group(work: Work, place: Placement, speed: Speeds) -> Group:
    """The TP ranks; their messages are all of one size, so that this decides, but for those that
    split experts too.
    """
    sized = work.links.overlap and not work.traffic.row_gathers
    ways = _other_ways(speed, "tp", place.tp_across) if sized else None
    return Group(place.tp_in, place.tp_across, *speed.of("tp"), ways)


def _other_ways(speed: Speeds, kind: str, across: int) -> OtherWays:
    """The other ways of a kind of traffic, where groups are so large that there are some."""
    # halving among two domains is their ring, and trees are for more than three
    return speed.other_ways(kind) if across > 2 else OtherWays(math.inf, math.inf)


def context_s(work: Work, place: Placement, speed: Speeds) -> tuple[float, float]:
    """A round of keys and values among the CP ranks, of a layer and micro-batch, and all exchanges
    in front of scans and behind them.
    """
    over_cp, traffic = Group(place.cp_in, place.cp_across, *speed.of("cp")), work.traffic
    ring_s, switch_s = (
        sum(times * gather_s(size_bytes, over_cp, work.links) for times, size_bytes in gathers)
        for gathers in (traffic.around_cp, traffic.switches)
    )
    return ring_s, switch_s


def _context_s(work: Work, place: Placement, speed: Speeds) -> float:
    """CP of a layer and micro-batch: keys and values go round behind the core, and while the host
    starts kernels; exchanges in front of scans and behind them hide behind nothing.
    """
    if not work.traffic.rings:
        return 0.0
    round_s, switch_s = context_s(work, place, speed)
    whole_s = work.traffic.rings * round_s
    # hidden, they still cost a share
    return max(OVERLAP_COST * whole_s, whole_s - work.core_s - work.idle_s) + switch_s


def experts_s(work: Work, place: Placement, speed: Speeds) -> float:
    """EP of a layer and micro-batch, mean over the layers; what hides does so behind all compute of
    such a layer.
    """
    traffic, links, total = work.traffic, work.links, 0.0
    if traffic.exchanges:
        ends = (place.ep_in, place.ep_across)
        # kernels that forward send once, and do not go by the protocols of collectives
        forwarding = (
            links._replace(own=0.0, short=1.0, long_s=0.0)
            if traffic.sends_once
            else links._replace(overlap=False)
        )
        ranks_and_speeds = (*ends, sent_shares(traffic, *ends), *speed.of("ep"), forwarding)
        total = traffic.exchanges * exchange_s(traffic.exchanged_bytes, *ranks_and_speeds)
    if traffic.hides_exchanges:
        # the core is left to keys and values, which hide behind it
        total = max(OVERLAP_COST * total, total - (work.layer_s - work.core_s))
    if traffic.row_gathers:
        row_ranks = row_ranks_in_domain(work, place)
        over = Group(row_ranks, traffic.row_ranks // row_ranks, *speed.of("tp"))
        total += traffic.row_gathers * gather_s(traffic.row_bytes, over, links)
    return total


def row_ranks_in_domain(work: Work, place: Placement) -> int:
    """TP ranks of one domain that split the same experts."""
    return math.gcd(work.traffic.row_ranks, place.tp_in)


def layer_traffic(work: Work, place: Placement, speed: Speeds) -> LayerTraffic:
    """The traffic of a layer and micro-batch."""
    tp, context, experts = _layer_times(work, place, speed)
    return LayerTraffic(work.traffic.gathers * tp, context, experts)


def _layer_times(work: Work, place: Placement, speed: Speeds) -> tuple[float, float, float]:
    """The seconds of one TP collective, and of CP and EP of a layer and micro-batch."""
    over_tp, summed = tp_group(work, place, speed), summed_by_tp(work.split)
    return (
        gather_s(work.traffic.gathered_bytes, over_tp, work.links, summed),
        _context_s(work, place, speed),
        experts_s(work, place, speed),
    )


def _sent_s_byte(work: Work, place: Placement, speed: Speeds, s_byte: float) -> float:
    """Seconds a byte takes from a stage to another, of which one in another domain takes so many on
    the wire.
    """
    links = work.links
    return s_byte / links.send if place.pp_across > 1 else 1 / (links.hb * speed.inside_byte_s)


def _hop_s(work: Work, place: Placement, speed: Speeds, tp_s: float) -> float:
    traffic, s_byte = work.traffic, _sent_s_byte(work, place, speed, speed.pp_s_byte)
    return traffic.hop_cost * (
        traffic.sent_bytes * s_byte + work.links.send_s + traffic.received_gathers * tp_s
    )


def _data_s(work: Work, place: Placement, speed: Speeds) -> float:
    """T_dp: gradients and parameters over the ranks that share them, experts apart."""
    twins_s = twins_at_s(work, place, speed)
    if not work.traffic.reductions:
        return twins_s
    groups, summed = replica_groups(work, place, speed), summed_between(work)
    return (
        twins_s
        + shards_s(work, place, speed)
        + sum(
            gathers_s(exchanges(work, each.number, each.ranks), groups[kind], work.links, summed)
            for kind, each in held_by(work, place).items()
            if each.number
        )
    )


def twins_at_s(work: Work, place: Placement, speed: Speeds) -> float:
    """What two GPUs of a pipeline send each other that hold the same stages, each a message there
    and one back.
    """
    each_bytes = work.traffic.twin_bytes * (work.parameters.common + work.parameters.experts)
    s_byte = _sent_s_byte(work, place, speed, speed.tied_s_byte)
    return each_bytes * s_byte + 2 * work.links.send_s if each_bytes else 0.0


def replica_groups(work: Work, place: Placement, speed: Speeds) -> dict[str, Group]:
    """The ranks that hold the same parameters, and those that hold the same experts; of several
    copies those with the same shards.
    """
    groups = {}
    for kind, (_, inside, across) in held_by(work, place).items():
        same = inside // shard_ranks(work, inside, across)
        ways = ways_of_replicas(work, kind, across, speed)
        groups[kind] = Group(same, across, *speed.of(kind), ways, place.fewest(same))
    return groups


class HeldAlike(NamedTuple):
    """How many parameters several ranks hold the same, and these ranks in a domain and domains."""

    number: float
    inside: int
    across: int

    @property
    def ranks(self) -> int:
        """All that hold them."""
        return self.inside * self.across


def held_by(work: Work, place: Placement) -> dict[str, HeldAlike]:
    """Parameters outside experts, which replicas hold alike, and those of experts."""
    inside, across = place.dp_in * place.cp_in, place.dp_across * place.cp_across
    return {
        "dp": HeldAlike(work.parameters.common, inside, across),
        "edp": HeldAlike(work.parameters.experts, place.copies_in, place.copies_across),
    }


def shard_ranks(work: Work, inside: int, across: int) -> int:
    """Ranks of a domain that share out one of several copies; 1 where there is a single one."""
    copies = work.traffic.copies
    return max(inside * across // copies, 1) if copies > 1 else 1


def shards_s(work: Work, place: Placement, speed: Speeds) -> float:
    """Seconds in which ranks of a domain scatter and gather one of several copies."""
    return sum(
        gathers_s(in_copy(work, number), copy_group(work, ranks, speed), work.links)
        for number, *ends in held_by(work, place).values()
        if number and (ranks := shard_ranks(work, *ends)) > 1
    )


def copy_group(work: Work, ranks: int, speed: Speeds) -> Group:
    """Ranks of a domain that share out a copy; as messages of gradients elsewhere, theirs may be
    sent in the way that suits their size.
    """
    return Group(ranks, 1, speed.inside_byte_s, 0.0, ways_of_replicas(work, "dp", 1, speed))


def in_copy(work: Work, number: float) -> list[Repeated]:
    """What is scattered and gathered of so many parameters: gradients, then parameters."""
    traffic = work.traffic
    sent = (
        (traffic.reductions, traffic.gradient_bytes),
        (traffic.refreshes, traffic.parameter_bytes),
    )
    return [Repeated(times, each_bytes * number) for times, each_bytes in sent if times]


def summed_between(work: Work) -> Summed:
    """What `exchanges` add up."""
    return "gradients" if work.traffic.copies > 1 else summed_by_replicas(work.split)


def ways_of_replicas(work: Work, kind: str, across: int, speed: Speeds) -> OtherWays | None:
    """The other ways of ranks in so many domains that hold the same; None where nothing is
    chosen.
    """
    return _other_ways(speed, kind, across) if work.links.overlap else None


def exchanges(work: Work, number: float, ranks: int) -> list[Repeated]:
    """What is exchanged between domains of so many parameters that so many ranks hold; of several
    copies the gradients of a shard, in both halves of an all-reduce.
    """
    traffic = work.traffic
    if traffic.copies == 1:
        return in_copy(work, number)
    shard = number * traffic.copies / ranks
    return [Repeated(2 * traffic.reductions, traffic.gradient_bytes * shard)]


def pipeline_times(work: Work, step: CommunicationTimes) -> PipelineTimes:
    """The pipeline of even stages by the one that sets the pace: a middle one, one that also waits
    for the last, or the last.
    """
    traffic, split, m = work.traffic, work.split, work.micro_batches
    layer = _of_layer(work, step)
    stage_s, whole_s = work.stage_s + work.layers * sum(layer), work.layer_s + sum(layer)
    excess_s = work.logits_s - work.missing_last * whole_s + traffic.logits_gathers * step.gather_s
    excess_s += traffic.further_layers * step.ring_s + traffic.further_exchanges * step.experts_s
    waits, steady_s = traffic.waits, m * stage_s
    if work.schedule != "1f1b":
        forward_s = work.forward_s + traffic.ahead.of(layer)
        row = work.longest_row(SplitStage(stage_s, forward_s, whole_s, excess_s), step.hop_s)
        ends = EndVisits(row.visits, row.firsts * work.missing_first)
        return PipelineTimes(
            steady_s, row.filled_s, ends.added_s(excess_s, whole_s), ends, row.hops, 0, step.hop_s
        )
    filled_s = (split.pp - 1) / split.interleave * stage_s - work.missing_first * whole_s
    # no chain of passes is longer than the pipeline takes, and the longest is as long: through
    # middle stages with some visits of the last one, or through the last one alone
    chains = [(ends, waits.middle, waits.middle_filling) for ends in work.ends]
    chains.append((EndVisits(m), waits.last, waits.last_filling))
    pipelines = (
        PipelineTimes(
            steady_s, filled_s, ends.added_s(excess_s, whole_s), ends, hops, filling, step.hop_s
        )
        for ends, hops, filling in chains
    )
    return max(pipelines, key=lambda pipeline: pipeline.whole_s)


def laid_out(work: Work, step: CommunicationTimes) -> LaidOut:
    """Seconds of a micro-batch under a layout."""
    traffic = work.traffic
    loss_s = (traffic.logits_gathers - traffic.prediction_gathers) * step.gather_s
    predictions_s = (
        traffic.prediction_gathers * step.gather_s
        + traffic.further_layers * step.ring_s
        + traffic.further_exchanges * step.experts_s
    )
    return work.laid_out(_of_layer(work, step), predictions_s, loss_s, step.hop_s)


def _of_layer(work: Work, step: CommunicationTimes) -> LayerTraffic:
    return LayerTraffic(work.traffic.gathers * step.gather_s, step.ring_s, step.experts_s)


def met_hops_s(work: Work, place: Placement, speed: Speeds) -> float:
    """Seconds of hops between domains while gradients cross as well: each waits for as much of the
    other there.

    One step late gradients meet all hops. Where they hide, the last micro-batch has only its hops
    backward left, and so has the pipeline that drains, while one hop has begun when they set out;
    shards are reduced with all micro-batches.
    """
    traffic = work.traffic
    gradients_cross = place.dp_across * place.cp_across > 1 or (
        work.parameters.experts and place.copies_across > 1
    )
    if place.pp_across == 1 or not gradients_cross:
        return 0.0
    hop_s = traffic.hop_cost * traffic.sent_bytes * speed.pp_s_byte / work.links.send
    waits = traffic.waits
    if work.mode == "stale-1":
        return waits.middle * hop_s
    all_s = (waits.middle - waits.middle_filling) * hop_s
    met_s = all_s if work.split.zero >= 2 else all_s / (2 * work.micro_batches)
    return met_s + (waits.middle_filling / 2 + 1) * hop_s


def busy_inside_s(work: Work, place: Placement, speed: Speeds) -> float:
    """What gradients keep the links of a domain busy: at most once with all that is scattered and
    gathered, but for what a rank has itself where one level follows the other.
    """
    busy_s = 0.0
    for held in held_by(work, place).values():
        shard = shard_ranks(work, held.inside, held.across)
        for ranks, collectives in (
            (held.inside // shard, exchanges(work, held.number, held.ranks)),
            (shard, in_copy(work, held.number)),
        ):
            # in one ring through all ranks everything passes each rank; level by level its own
            # part stays where it is
            passed = float(ranks > 1) if work.links.overlap else (ranks - 1) / ranks
            sent_bytes = sum(one.times * one.size_bytes for one in collectives)
            busy_s += passed * sent_bytes / (work.links.hb * speed.inside_byte_s)
    return busy_s


def inside_window_s(work: Work, place: Placement, step: CommunicationTimes, speed: Speeds) -> float:
    """What gradients hide behind besides compute: traffic of TP and experts that stays in its
    domain.
    """
    traffic, split_inside = work.traffic, row_ranks_in_domain(work, place) == work.traffic.row_ranks
    experts_stay = not traffic.hides_exchanges and place.ep_across == 1 and split_inside
    traffic_s = traffic.gathers * step.gather_s if place.tp_across == 1 else 0.0
    traffic_s += step.experts_s if experts_stay else 0.0
    return work.inside_window_s(traffic_s, busy_inside_s(work, place, speed))


def iteration_s(work: Work, place: Placement, speed: Speeds) -> float:
    """T: seconds of one iteration."""
    step = communication_times(work, place, speed)
    pipeline_s = (
        work.laid_out_s(laid_out(work, step)) if work.layout else pipeline_times(work, step).whole_s
    )
    data_s = _exposed_s(work, place, speed, step, pipeline_s, step.data_s + work.wait_s)
    return work.factor * (pipeline_s + data_s + step.embedding_s + work.optimizer_s)


def _exposed_s(
    work: Work,
    place: Placement,
    speed: Speeds,
    step: CommunicationTimes,
    pipeline_s: float,
    data_s: float,
) -> float:
    """What gradients that take `data_s` add to the time of the pipeline."""
    if work.mode == "sync":
        return data_s  # they hide behind nothing and meet no hops
    inside_s = inside_window_s(work, place, step, speed)
    return work.exposed_s(pipeline_s, data_s, met_hops_s(work, place, speed), inside_s)


def breakdown(work: Work, place: Placement, speed: Speeds) -> TimeBreakdown:
    """T by cause."""
    step = communication_times(work, place, speed)
    pipeline = _laid_out_parts(work, step) if work.layout else _even_parts(work, step)
    # gradients of the site first, and what those of other sites add is theirs
    own_s, both_s = (
        _exposed_s(work, place, speed, step, sum(pipeline), data_s)
        for data_s in (step.data_s, step.data_s + work.wait_s)
    )
    parts = pipeline._replace(
        dp=own_s,
        wan=both_s - own_s,
        embedding=step.embedding_s,
        optimizer=work.optimizer_s,
    )
    return parts._replace(straggler=(work.factor - 1) * sum(parts))


def _even_parts(work: Work, step: CommunicationTimes) -> TimeBreakdown:
    """The pipeline of even stages: the logits count, and missing layers do not, of micro-batches
    for which the last stage is waited.
    """
    pipeline, m, traffic = pipeline_times(work, step), work.micro_batches, work.traffic
    ends, fewer = (
        pipeline.ends.visits,
        pipeline.ends.visits * work.missing_last + pipeline.ends.layers,
    )
    layers = m * work.layers - fewer
    filled_s = pipeline.filled_s + pipeline.filling * step.hop_s
    return TimeBreakdown(
        compute=m * work.stage_s - fewer * work.layer_s - pipeline.ends.forward_s,
        logits=ends * work.logits_s,
        tp=(layers * traffic.gathers + ends * traffic.logits_gathers) * step.gather_s,
        cp=(layers + ends * traffic.further_layers) * step.ring_s,
        ep=(layers + ends * traffic.further_exchanges) * step.experts_s,
        pp=(pipeline.hops - pipeline.filling) * step.hop_s + min(filled_s, 0.0),
        # filling may save more than it takes where the first stage lacks layers: hops count that
        # much less then
        bubble=max(filled_s, 0.0),
    )


def _laid_out_parts(work: Work, step: CommunicationTimes) -> TimeBreakdown:
    """The pipeline under a layout: the passes of the stage that has most to do, what hops add, and
    the rest.
    """
    traffic, m, seconds = work.traffic, work.micro_batches, laid_out(work, step)
    silent_s = work.laid_out_s(seconds._replace(hop_s=0.0))
    layers, predicts, ends = busiest_stage(work.layout, work.split.pp, seconds)
    gathers = layers * traffic.gathers + predicts * traffic.prediction_gathers
    gathers += ends * (traffic.logits_gathers - traffic.prediction_gathers)
    passes = TimeBreakdown(
        compute=m * layers * work.stage_s / work.layers,
        logits=m * (predicts * work.predictions_s + ends * (work.logits_s - work.predictions_s)),
        tp=m * gathers * step.gather_s,
        cp=m * (layers + predicts * traffic.further_layers) * step.ring_s,
        ep=m * (layers + predicts * traffic.further_exchanges) * step.experts_s,
    )
    return passes._replace(pp=work.laid_out_s(seconds) - silent_s, bubble=silent_s - sum(passes))


def model_flop_per_token(model: Transformer) -> float:
    """M: FLOPs a token costs, attention counted in full, further predictions included."""
    base = 6 * (
        model.layers * met_parameters(model) + model.vocab * model.hidden
    ) + 6 * model.layers * _core(model)
    predicting_model = model.prediction
    further = 6 * (met_parameters(predicting_model) + model.vocab * model.hidden) + 6 * _core(
        predicting_model
    )
    return base + model.extra_predictions * further


def causal_flop_per_token(model: Transformer) -> float:
    """FLOPs a token costs where half of the keys are masked: a score counts as half of one."""
    spared = 0.0
    if model.causal:
        predicting_model = model.prediction
        for layers, one in ((model.layers, model), (model.extra_predictions, predicting_model)):
            cores = sum(
                share * met_in_core(mixer, one.seq)
                for share, mixer in mixer_shares(one)
                if not isinstance(mixer, ScanLayers)
            )
            spared += 6 * layers * cores / 2
    return model_flop_per_token(model) - spared


def hardware_flop_per_token(workload: Workload, recompute: str) -> float:
    """R: FLOPs a token costs, with those that are recomputed."""
    model = workload.model
    extra = 0.0
    if recompute == "full":
        extra = 2 * model.layers * (met_parameters(model) + _core(model))
    elif recompute == "norm+ffn":
        extra = 2 * model.layers * (met_parameters(model) - mean_mixer_parameters(model, 1))
    elif recompute == "selective" and workload.options.attention == "unfused":
        extra = 6 * model.layers * _core(model, scans=False)
    return model_flop_per_token(model) + extra


def utilisation(
    workload: Workload, gpu: Gpu, gpus: int, flop_per_token: float, time_s: float
) -> float:
    """Share of the peak of all GPUs that `flop_per_token` makes in `time_s` seconds."""
    peak_flop_s = gpu.peak_flop_s(workload.precision)
    return flop_per_token * workload.tokens_per_iteration / (time_s * gpus * peak_flop_s)


def met_parameters(model: Transformer) -> float:
    """A: parameters of a layer that a token meets, mean over the layers; those of encoders as often
    as these have tokens.
    """
    share, size = layer_shares(model), matrices(model) * model.hidden
    met = mean_mixer_parameters(model, 1)
    for encoder, tower in model.towers:
        projected = sum(shape.n * shape.k for shape in projector_shapes(model, encoder, 1))
        whole = encoder.layers * met_parameters(tower) + projected / encoder.merge
        met += whole * encoder.inputs * encoder.tokens / (model.seq * model.layers)
    if not model.experts:
        return met + share.plain * size * model.ffn
    routed = matrices(model) * routed_width(model) * model.top_k * model.ffn
    around = size * model.shared_ffn + model.hidden * (model.experts + 2 * model.expert_latent)
    return met + share.experts * (routed + around) + share.plain * size * model.dense_ffn


def _core(model: Transformer, scans: bool = True) -> float:
    """What a token does in attention cores, and in scans, of the mean layer, over 2 FLOPs."""
    core = sum(
        share * met_in_core(mixer, model.seq)
        for share, mixer in mixer_shares(model)
        if scans or not isinstance(mixer, ScanLayers)
    )
    for encoder, tower in model.towers:
        tokens = encoder.inputs * encoder.tokens / model.seq
        core += encoder.layers / model.layers * tokens * _core(tower)
    return core
