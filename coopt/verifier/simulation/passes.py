"""What a pass through a chunk takes, by cause, and what an iteration exchanges after its passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.verifier.simulation.fabric_flows import along_trees, halving
from coopt.verifier.training.communication import (
    OVERLAP_COST,
    LinkShares,
    Speeds,
    forward_gathers,
)
from coopt.verifier.training.gathers import (
    GatherWay,
    gather_s,
    halving_shares,
    summed_by_tp,
    timed_ways,
)
from coopt.verifier.training.iteration import (
    context_s,
    exchanges,
    experts_s,
    held_by,
    replica_groups,
    shards_s,
    summed_between,
    tp_group,
    twins_at_s,
)
from coopt.verifier.training.kernels import Pass, predicting
from coopt.verifier.training.placing import Placement, expert_share
from coopt.verifier.training.steps import StagePass
from coopt.verifier.training.work import Clock, Work


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
        self, workload: Workload, gpu: Gpu, work: Work, place: Placement, speed: Speeds
    ) -> None:
        clock, split, traffic = Clock(workload, gpu), work.split, work.traffic
        self._work, self._model, over_tp = work, workload.model, tp_group(work, place, speed)
        self._layer, waits = clock.layers.of(split)
        self._logits, self._predicting = (
            clock.logits_pass(split),
            clock.predicting_layers.of(split)[0],
        )
        self._added_s = (work.stage_s - work.layers * work.layer_s) / work.layers
        size_bytes, links = traffic.gathered_bytes, work.links
        self._gather_s = gather_s(size_bytes, over_tp, links, summed_by_tp(split))
        self.hop_gather_s = traffic.received_gathers * gather_s(size_bytes, over_tp, links)
        """What the receiver of a hop gathers."""
        # all of n_AG that are not forward belong to the pass backward, repeated ones too
        self._gathers = _divided(traffic.gathers, forward_gathers(workload, split))
        ahead = traffic.further_layers * forward_gathers(predicting(workload), split)
        self._further_gathers = _divided(traffic.prediction_gathers, ahead)
        all_s, rounds = experts_s(work, place, speed), max(traffic.exchanges, traffic.row_gathers)
        # two of all exchanges, dispatch and combine, belong to the pass forward
        ahead_s = all_s * 2 * expert_share(workload.model) / rounds if rounds else 0.0
        self._experts, self._ring = _divided(all_s, ahead_s), Pass(0.0, 0.0)
        if traffic.rings:
            # of all rounds the first is forward, and hides behind the core and the waits of its own
            # pass; exchanges of heads have one round less, of which a pass has one as well
            (ring_s, switch_s), further = context_s(work, place, speed), traffic.rings - 1
            switched, rounds_s = _divided(switch_s, switch_s / further), (ring_s, further * ring_s)
            hidden_by = zip(rounds_s, clock.layers.core_pass(split), waits, switched, strict=True)
            self._ring = Pass(
                *(
                    max(OVERLAP_COST * round_s, round_s - (core_s + wait_s)) + exchanged_s
                    for round_s, core_s, wait_s, exchanged_s in hidden_by
                )
            )

    def layers_of(self, stage: int, chunk: int) -> int:
        """Layers of a chunk: the last one of all lacks what its stage does, the first one the
        others.
        """
        work, split = self._work, self._work.split
        if work.layout:
            return work.layout[chunk * split.pp + stage].layers
        place, end = self._on_model(stage, chunk), (split.pp - 1, split.interleave - 1)
        lacks = work.missing_first * (place == (0, 0)) + work.missing_last * (place == end)
        return split.chunk_layers(self._model.layers) - lacks

    def parts(self, stage: int, stage_pass: StagePass) -> PassParts:
        """A pass by cause; the logits belong to the last chunk of the last stage."""
        work, split, side = self._work, self._work.split, int(stage_pass.is_backward)
        layers, further = self.layers_of(stage, stage_pass.chunk), work.traffic.further_layers
        is_last = self._on_model(stage, stage_pass.chunk) == (split.pp - 1, split.interleave - 1)
        predicts = is_last
        if work.layout:
            predicts = work.layout[stage_pass.chunk * split.pp + stage].predictions > 0
        weights = layers * (work.weights_s + self._added_s) + work.further_weights_s * is_last
        if stage_pass.gives == "weights":
            return PassParts(weights, 0.0, 0.0, 0.0)
        compute = layers * (self._layer[side] + (self._added_s if stage_pass.is_backward else 0.0))
        compute -= weights if stage_pass.gives == "inputs" else 0.0
        compute += further * self._predicting[side] * predicts
        compute += (1 + further) * self._logits[side] * is_last
        gathers = layers * self._gathers[side] + self._further_gathers[side] * predicts
        return PassParts(
            compute,
            (gathers + (1 + further) * is_last) * self._gather_s,
            (layers + further * predicts) * self._ring[side],
            (layers + work.traffic.further_exchanges * predicts) * self._experts[side],
        )

    def _on_model(self, stage: int, chunk: int) -> tuple[int, int]:
        """The stage of the model and its chunk; of two pipelines in opposite directions the second
        counts from the other end.
        """
        turned = self._work.schedule == "dualpipe" and chunk == 1
        return (self._work.split.pp - 1 - stage, 0) if turned else (stage, chunk)


def _divided(whole: float, forward: float) -> Pass:
    """Of a whole a part forward, and the rest backward."""
    return Pass(forward, whole - forward)


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
    starts_s = sum(times * way.start_s(links) for times, way in ways)
    fixed_s, beside_s = starts_s + (0.0 if at_once else inside_s), inside_s if at_once else 0.0
    size_bytes = sum(times * way.across_bytes for times, way in ways)
    if flows != "halving":
        carried = along_trees(phase) if flows == "trees" else phase
        phases = carried if across > 1 else None
        yield PassSegment(name, fixed_s, phases, size_bytes, beside_s, inside_s)
        return
    yield PassSegment(name, fixed_s, None, 0.0, 0.0, inside_s)
    for number, share in enumerate(halving_shares(across)):
        yield PassSegment(name, 0.0, halving(phase, number), share * size_bytes)


def gradient_segments(
    work: Work, place: Placement, speed: Speeds, phases: Mapping[str, str]
) -> Iterator[PassSegment]:
    """What a stage exchanges among the ranks that share its parameters, then what it waits for from
    other sites.

    Parameters
    ----------
    phases
        On the network, of `dp` (parameters outside experts) and of `edp` (experts).
    """
    alone_s = (twins_at_s(work, place, speed), shards_s(work, place, speed))
    yield from (PassSegment("dp", seconds, None, 0.0) for seconds in alone_s if seconds)
    groups = replica_groups(work, place, speed)
    for name, held in held_by(work, place).items():
        group, collectives = groups[name], exchanges(work, held.number, held.ranks)
        if collectives and held.number and group.inside * group.across > 1:
            timed = timed_ways(collectives, group, work.links, summed_between(work))
            _, ways = min(timed, key=itemgetter(0))
            rounds = [(one.times, way) for one, way in zip(collectives, ways, strict=True)]
            yield from _segments(name, phases[name], group.across, rounds, work.links)
    if work.wait_s:
        yield PassSegment("wan", work.wait_s, None, 0.0)
