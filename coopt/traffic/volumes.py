"""Bytes that a rank sends per iteration for each collective.

They result from the closed forms in `perf`, evaluated on links of one byte per second.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from coopt.perf.collectives import AffineSeconds, LinkRates
from coopt.perf.mapping import (
    FULL,
    encoded_rows,
    further_exchanges,
    micro_batches,
    prediction_of,
)
from coopt.perf.mixers import RING_PASSES, SWITCH_PASSES
from coopt.perf.traffic import EXCHANGES, StageTraffic, replicas_of
from coopt.traffic.ranks import Group, RankGrid

TrafficClass = Literal["tp", "cp", "ep", "pp", "dp", "embedding"]
IterationPhase = Literal["forward", "backward", "gradients", "parameters"]
Share = Literal["layers", "last stage", "predictions", "forward hops", "backward hops", "once"]

UNIT = LinkRates(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)  # no latency: seconds are bytes


@dataclass(frozen=True, kw_only=True)
class Volume:
    """Bytes that a rank sends inside its domain and across domains per iteration, per unit of
    `share`.

    `share` is a property of the rank's stage: its layers, whether it is the last one, or the hops
    that arrive there. `exchange` marks an all-to-all; other collectives use rings. `all_reduce`
    marks halves of an all-reduce: `up` while gradients are summed, `down` while the sums are
    distributed.
    """

    kind: TrafficClass
    phase: IterationPhase
    group: Group
    inside_bytes: float
    across_bytes: float
    share: Share
    exchange: bool = False
    all_reduce: Literal["up", "down"] | None = None


def collective_volumes(split: RankGrid) -> Iterator[Volume]:
    """Yield all volumes except sends between stages and the gradients of a tied embedding."""
    m = int(micro_batches(split.mapping, split.workload.global_batch)[0])
    traffic = StageTraffic(
        workload=split.workload, links=UNIT, mappings=split.mapping, placements=split.placement
    )
    repeats = bool(split.mapping.recompute[0] == FULL)
    for volume in (
        *_tensor(split, traffic, m),
        *_context(traffic, m, repeats),
        *_experts(traffic, m),
    ):
        if volume.inside_bytes or volume.across_bytes:
            yield volume
    yield from _replicas(split)


def _tensor(split: RankGrid, traffic: StageTraffic, m: int) -> Iterator[Volume]:
    sequence, workload = bool(split.mapping.sequence_parallel[0]), split.workload
    gather, further = traffic.tp_gather, workload.model.extra_predictions
    predicting = _gathers(replace(traffic, workload=prediction_of(workload)))
    for phase, times, further_gathers in zip(
        ("forward", "backward"), _gathers(traffic), predicting, strict=True
    ):
        yield _volume("tp", phase, "tp", gather * (m * times), "layers")
        yield _volume("tp", phase, "tp", gather * (m * (1 + further)), "last stage")
        yield _volume("tp", phase, "tp", gather * (m * further * further_gathers), "predictions")
    if split.mapping.pp[0] > 1 and not sequence:
        yield _volume("pp", "forward", "tp", gather * m, "forward hops")
        yield _volume("pp", "backward", "tp", gather * m, "backward hops")


def _gathers(traffic: StageTraffic) -> tuple[float, float]:
    """Return the number of collectives of the mean layer, forward and backward."""
    counts, with_encoders = traffic.tp_counts, 1 + encoded_rows(traffic.workload.model)
    forward, behind = (
        float(np.ravel(count)[0]) * with_encoders
        for count in (counts.forward, counts.repeated + counts.backward)
    )
    return forward, behind


def _context(traffic: StageTraffic, m: int, repeats: bool) -> Iterator[Volume]:
    further = traffic.workload.model.extra_predictions
    for whole, passes in ((traffic.ring, RING_PASSES), (traffic.switch, SWITCH_PASSES)):
        one_pass = whole * (m / (passes + repeats))
        for phase, ring in (("forward", one_pass), ("backward", one_pass * (passes - 1 + repeats))):
            yield _volume("cp", phase, "cp", ring, "layers")
            yield _volume("cp", phase, "cp", ring * further, "predictions")


def _experts(traffic: StageTraffic, m: int) -> Iterator[Volume]:
    model, repeats = traffic.workload.model, bool(traffic.repeats_experts[0])
    # half of the exchanges are forward; those that recomputation repeats belong to the pass
    # backward
    share = EXCHANGES / 2 / (EXCHANGES + 2 * repeats)
    over_tp = "tp" if traffic.workload.options.expert_tp is True else "etp"
    for phase, part in (("forward", share), ("backward", 1 - share)):
        for exchange_s, group in ((traffic.exchange, "ep"), (traffic.expert_gather, over_tp)):
            once = exchange_s * (m * part)
            yield _volume("ep", phase, group, once, "layers", exchange=group == "ep")
            yield _volume(
                "ep",
                phase,
                group,
                once * further_exchanges(model),
                "predictions",
                exchange=group == "ep",
            )


def _replicas(split: RankGrid) -> Iterator[Volume]:
    replicas = replicas_of(split.workload, UNIT, split.mapping, split.placement)
    is_unsharded = bool(split.mapping.zero[0] == 0)
    return_phase = "gradients" if is_unsharded else "parameters"
    for group, exchange in (
        ("dp", replicas.shared_exchange()),
        ("copies", replicas.expert_exchange()),
    ):
        halves: list[tuple[str, str, AffineSeconds, str | None]] = [
            ("gradients", group, exchange.scatter, "up" if is_unsharded else None),
            (return_phase, group, exchange.gather, "down" if is_unsharded else None),
        ]
        if (between := exchange.between_copies) is not None:  # shards are added up between the two
            shards = f"{group} shards"
            halves = [
                ("gradients", shards, exchange.scatter, None),
                ("parameters", shards, exchange.gather, None),
                *(("gradients", group, between * 0.5, half) for half in ("up", "down")),
            ]
        for phase, ranks, half_s, half in halves:
            volume = _volume("dp", phase, ranks, half_s, "once")
            if volume.inside_bytes or volume.across_bytes:
                yield replace(volume, all_reduce=half)  # type: ignore[arg-type]


def _volume(
    kind: TrafficClass,
    phase: str,
    group: str,
    moved: AffineSeconds,
    share: Share,
    exchange: bool = False,
) -> Volume:
    across = sum(np.asarray(part, dtype=np.float64).sum() for part in moved.parts[1:])
    return Volume(
        kind=kind,
        phase=phase,  # type: ignore[arg-type]
        group=group,  # type: ignore[arg-type]
        inside_bytes=float(np.asarray(moved.fixed).sum()),
        across_bytes=float(across),
        share=share,
        exchange=exchange,
    )
