"""What a pass through a chunk takes, by cause, and what an iteration exchanges after its passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.verifier.simulation.fabric_flows import along_trees, halving
from coopt.verifier.training.communication import (
    OVERLAP_COST,
    LinkShares,
    OtherWays,
    forward_gathers,
)
from coopt.verifier.training.gathers import (
    GatherWay,
    Group,
    gather_s,
    halving_shares,
    summed_by_tp,
    taken_ways,
)
from coopt.verifier.training.iteration import (
    exchanges,
    experts_s,
    held_by,
    shards_s,
    summed_between,
    tp_group,
)
from coopt.verifier.training.kernels import Pass, machine_of, predicting
from coopt.verifier.training.layer import LayerTimes, layer_pass, logits_pass
from coopt.verifier.training.placing import Placement, expert_share
from coopt.verifier.training.steps import StagePass
from coopt.verifier.training.work import Work


class LayerSpeeds(NamedTuple):
    """How fast the traffic of layers travels while all stages send it: inside (byte/s), across
    (s/byte).
    """

    inside_byte_s: float
    tp_s_byte: float
    cp_s_byte: float
    ep_s_byte: float
    tp_other_ways: OtherWays


class PassParts(NamedTuple):
    """Seconds of a pass through a chunk."""

    compute: float
    tp: float
    cp: float
    ep: float

    @property
    def whole_s(self) -> float:
        """From the first kernel to the last."""
        return sum(self)


class PassTimes:
    """Seconds of every pass of an iteration; stages and chunks have the layers that they really
    have.

    Traffic inside layers is waited for, but for keys and values, which go round behind the
    attention core of the same pass and while it waits for the host, and cost the share of
    themselves that hidden transfers do, and for exchanges that hide as in the closed form.
    """

    def __init__(
        self, workload: Workload, gpu: Gpu, work: Work, place: Placement, speed: LayerSpeeds
    ) -> None:
        machine, split = machine_of(workload, gpu), work.split
        self._work, self._model = work, workload.model
        layers = LayerTimes(workload, machine)
        self._layer, waits = layers.of(split)
        self._logits = logits_pass(workload, machine, split)
        further_workload = predicting(workload)
        self._predicting = layer_pass(further_workload, machine_of(further_workload, gpu), split)
        added_s = work.stage_s - work.layers * work.layer_s
        self._added_s = added_s / work.layers
        over_tp = tp_group(
            work, place, speed.inside_byte_s, speed.tp_s_byte, lambda _: speed.tp_other_ways
        )
        size_bytes = work.traffic.gathered_bytes
        self._gather_s = gather_s(size_bytes, over_tp, work.links, summed_by_tp(split))
        self._received_s = gather_s(size_bytes, over_tp, work.links)
        # all of n_AG that are not forward belong to the pass backward, repeated ones too
        ahead = forward_gathers(workload, split)
        self._gathers = Pass(ahead, work.traffic.gathers - ahead)
        further_forward = work.traffic.further_layers * forward_gathers(further_workload, split)
        self._further_gathers = Pass(
            further_forward, work.traffic.prediction_gathers - further_forward
        )
        of_experts_s = experts_s(work, place, speed.inside_byte_s, speed.ep_s_byte, speed.tp_s_byte)
        rounds = max(work.traffic.exchanges, work.traffic.row_gathers)
        # two of all exchanges, dispatch and combine, belong to the pass forward
        ahead_s = of_experts_s * 2 * expert_share(workload.model) / rounds if rounds else 0.0
        self._experts = Pass(ahead_s, of_experts_s - ahead_s)
        # of all rounds the first is forward, and hides behind the core and the waits of its own
        # pass
        hidden_by = zip(layers.core_pass(split), waits, strict=True)
        behind_s = [sum(parts_s) if split.cp > 1 else 0.0 for parts_s in hidden_by]
        over_cp = Group(place.cp_in, place.cp_across, speed.inside_byte_s, speed.cp_s_byte)
        traffic, rings = work.traffic, max(work.traffic.rings, 1)
        ring_s = sum(
            share * gather_s(size_bytes, over_cp, work.links)
            for share, size_bytes in traffic.around_cp
        )
        switch_s = sum(
            times * gather_s(size_bytes, over_cp, work.links)
            for times, size_bytes in traffic.switches
        )
        # rings have one round more than exchanges of heads, of which a pass has one as well
        ahead_s = switch_s / max(rings - 1, 1)
        on = traffic.rings > 0
        self._ring = Pass(
            on * (_exposed_s(ring_s, behind_s[0]) + ahead_s),
            on * (_exposed_s((rings - 1) * ring_s, behind_s[1]) + switch_s - ahead_s),
        )

    def layers_of(self, stage: int, chunk: int) -> int:
        """Layers of a chunk: the last one of all lacks what its stage does, the first one the
        others.
        """
        split, layers = self._work.split, self._model.layers
        if self._work.layout:
            return self._work.layout[chunk * split.pp + stage].layers
        stage, chunk = self._on_model(stage, chunk)
        lacks = 0
        if (stage, chunk) == (0, 0):
            lacks += split.missing_layers(layers) - self._work.missing_last
        if (stage, chunk) == (split.pp - 1, split.interleave - 1):
            lacks += self._work.missing_last
        return split.chunk_layers(layers) - lacks

    def parts(self, stage: int, stage_pass: StagePass) -> PassParts:
        """A pass by cause; the logits belong to the last chunk of the last stage."""
        split, side = self._work.split, int(stage_pass.is_backward)
        layers = self.layers_of(stage, stage_pass.chunk)
        is_last = self._on_model(stage, stage_pass.chunk) == (split.pp - 1, split.interleave - 1)
        predicts = is_last
        if self._work.layout:
            predicts = self._work.layout[stage_pass.chunk * split.pp + stage].predictions > 0
        weights = (
            layers * (self._work.weights_s + self._added_s) + self._work.further_weights_s * is_last
        )
        if stage_pass.gives == "weights":
            return PassParts(weights, 0.0, 0.0, 0.0)
        compute = layers * (self._layer[side] + (self._added_s if stage_pass.is_backward else 0.0))
        compute -= weights if stage_pass.gives == "inputs" else 0.0
        gathers, rings, exchanges = layers * self._gathers[side], layers, float(layers)
        further = self._work.traffic.further_layers
        if predicts:
            compute += further * self._predicting[side]
            rings += further
            exchanges += self._work.traffic.further_exchanges
            gathers += self._further_gathers[side]
        if is_last:
            compute += (1 + further) * self._logits[side]
            gathers += 1 + further
        return PassParts(
            compute,
            gathers * self._gather_s,
            rings * self._ring[side],
            exchanges * self._experts[side],
        )

    def _on_model(self, stage: int, chunk: int) -> tuple[int, int]:
        """The stage of the model and its chunk; of two pipelines in opposite directions the second
        counts from the other end.
        """
        turned = self._work.schedule == "dualpipe" and chunk == 1
        return (self._work.split.pp - 1 - stage, 0) if turned else (stage, chunk)

    @property
    def hop_gather_s(self) -> float:
        """What the receiver of a hop gathers."""
        return self._work.traffic.received_gathers * self._received_s


def _exposed_s(transfer_s: float, behind_s: float) -> float:
    """What is left of a transfer that hides behind compute."""
    return max(OVERLAP_COST * transfer_s, transfer_s - behind_s)


class PassSegment(NamedTuple):
    """A part of an exchange: seconds whatever the network does, then bytes of a GPU in a phase of
    the network.

    The phase takes `beside_s` at least, which is what a domain needs for what the network carries
    meanwhile. For `inside_s` of all that links of a domain are busy.
    """

    name: str
    fixed_s: float
    phase: str | None
    size_bytes: float
    beside_s: float = 0.0
    inside_s: float = 0.0


def _segments(
    name: str, phase: str, across: int, ways: list[tuple[float, GatherWay]], links: LinkShares
) -> Iterator[PassSegment]:
    """Start and steps of collectives that all take the same way, then what the network carries,
    round by round.
    """
    at_once, flows = ways[0][1].at_once, ways[0][1].flows
    inside_s = sum(times * way.inside_s for times, way in ways)
    fixed_s = sum(times * way.start_s(links) for times, way in ways) + (
        0.0 if at_once else inside_s
    )
    size_bytes = sum(times * way.across_bytes for times, way in ways)
    if flows != "halving":
        carried = along_trees(phase) if flows == "trees" else phase
        beside_s = inside_s if at_once else 0.0
        yield PassSegment(
            name, fixed_s, carried if across > 1 else None, size_bytes, beside_s, inside_s
        )
        return
    yield PassSegment(name, fixed_s, None, 0.0, 0.0, inside_s)
    for number, share in enumerate(halving_shares(across)):
        yield PassSegment(name, 0.0, halving(phase, number), share * size_bytes)


def gradient_segments(
    work: Work,
    place: Placement,
    groups: Mapping[str, Group],
    phases: Mapping[str, str],
    twins_s: float = 0.0,
) -> list[PassSegment]:
    """What a stage exchanges among the ranks that share its parameters, then what it waits for from
    other sites.

    Parameters
    ----------
    place, groups, phases
        The ranks, and their phase on the network, of `dp` (parameters outside experts) and of `edp`
        (experts).
    twins_s
        What two GPUs of a pipeline exchange that hold the same stages.
    """
    alone_s = (twins_s, shards_s(work, place, groups["dp"].byte_s))
    segments = [PassSegment("dp", seconds, None, 0.0) for seconds in alone_s if seconds]
    summed = summed_between(work)
    for name, held in held_by(work, place).items():
        group, collectives = groups[name], exchanges(work, held.number, held.ranks)
        if collectives and held.number and group.inside * group.across > 1:
            ways = taken_ways(collectives, group, work.links, summed)
            rounds = [collective.times for collective in collectives]
            segments += _segments(
                name, phases[name], group.across, list(zip(rounds, ways, strict=True)), work.links
            )
    if work.wait_s:
        segments.append(PassSegment("wan", work.wait_s, None, 0.0))
    return segments
