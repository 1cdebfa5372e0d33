"""How long a pipeline takes, and what its stages hold, where a layout says what each chunk has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from coopt.instance.layouts import Layout
from coopt.verifier.training.steps import Channel, PipelineShape, StageExchange, StagePass

ENDS_FORWARD = 1 / 3
"""Of logits and further predictions: one of the three products of a matrix."""
PARTLY_UNPAIRED, SOMETIMES_SECOND = 0.6, 1.4
"""Share of the hops (sends of a micro-batch to the next stage) an odd ring of equal stages waits
for that unequal ones do; and hops that a message takes that may be the second one. Fitted to the
simulation of passes.
"""


class LaidOut(NamedTuple):
    """Seconds of a micro-batch: of a layer forward and backward, of all layers that predict further
    tokens, of the loss, and of a hop (a send between stages).
    """

    forward_s: float
    backward_s: float
    predictions_s: float
    loss_s: float
    hop_s: float


class _Wait(NamedTuple):
    """A stage goes on when its own messages have had their time, and those of others have come.

    `own` and `others` are numbers of moments at which stages had come to their exchanges;
    `own_hops` and `others_hops` what messages take from these on, in sends between two stages.
    """

    stage: int
    own: int
    own_hops: float
    others_hops: float
    others: tuple[int, ...]


class _Work(NamedTuple):
    """A pass of a stage through a chunk, counted in the order of the model."""

    stage: int
    chunk: int
    is_backward: bool


def layers_on(layout: Layout, p: int, stage: int) -> int:
    """Layers that a stage has in all its chunks, those that predict further tokens among them."""
    return sum(chunk.all_layers for chunk in layout[stage::p])


def plain_layers(layout: Layout, p: int) -> list[int]:
    """Layers of each stage that has any, without those that predict further tokens."""
    counts = (sum(chunk.layers for chunk in layout[stage::p]) for stage in range(p))
    return [count for count in counts if count]


def tables_on(layout: Layout, p: int, stage: int, *, tied: bool) -> int:
    """Vocabulary tables of a stage: predictions share one with the loss, or have one of their
    own.
    """
    chunks = layout[stage::p]
    if any(chunk.embeds for chunk in chunks) and any(chunk.loss for chunk in chunks):
        return 1 if tied else 2
    return int(any(chunk.embeds or chunk.loss or chunk.predictions for chunk in chunks))


@lru_cache(maxsize=1 << 12)
def kept_layers(layout: Layout, p: int, v: int, m: int, stage: int) -> int:
    """The most layers, counted for each micro-batch, between their passes forward and backward."""
    held = most = 0
    for step in PipelineShape(p, v, m).steps(stage):
        if isinstance(step, StagePass):
            chunk = layout[step.chunk * p + stage]
            held += -chunk.all_layers if step.is_backward else chunk.all_layers
            most = max(most, held)
    return most


@lru_cache(maxsize=64)
def _events(p: int, v: int, m: int) -> tuple[_Work | _Wait | int, ...]:
    """Passes and waits of all stages, each behind what it depends on; a number is a stage that
    comes to an exchange.
    """
    steps = [PipelineShape(p, v, m).steps(stage) for stage in range(p)]
    posted, moments = dict[tuple[Channel, int, str], int](), 0
    counts = dict[tuple[Channel, str], int]()
    waiting: list[tuple[int, tuple[float, float], list[tuple[Channel, int, str]]] | None] = [
        None
    ] * p
    events: list[_Work | _Wait | int] = []
    moved = True
    while moved:
        moved = False
        for stage in range(p):
            while True:
                wait = waiting[stage]
                if wait is not None:
                    own, hops, expected = wait
                    if not all(message in posted for message in expected):
                        break
                    events.append(
                        _Wait(stage, own, *hops, tuple({posted[one] for one in expected}))
                    )
                    waiting[stage] = None
                step = next(steps[stage], None)
                if step is None:
                    break
                moved = True
                if isinstance(step, StagePass):
                    events.append(_Work(stage, step.chunk * p + stage, step.is_backward))
                    continue
                expected = []
                for channel, side, other in _messages(step):
                    number = counts.get((channel, side), 0)
                    counts[channel, side] = number + 1
                    posted[channel, number, side] = moments
                    expected.append((channel, number, other))
                busy = max(len(step.sends), len(step.receives))
                events.append(stage)
                waiting[stage] = moments, _hops(p, v, busy), expected
                moments += 1
    return tuple(events)


def _messages(step: StageExchange) -> Iterator[tuple[Channel, str, str]]:
    """Channels of an exchange, with the side of a stage and that which it waits for."""
    yield from ((channel, "sender", "receiver") for channel in step.sends)
    yield from ((channel, "receiver", "sender") for channel in step.receives)


def _hops(p: int, v: int, messages: int) -> tuple[float, float]:
    """Hops (sends between two stages) that messages of one stage take one after the other, and the
    last one of a neighbour.
    """
    if messages < 2:
        return messages, 1.0
    if p == 2:  # both are messages of the same two stages
        return 2.0, 2.0
    unpaired = 2 / (p - 1) - 2 / (p * v) if p % 2 else 0.0
    return 2 + PARTLY_UNPAIRED * unpaired, SOMETIMES_SECOND


@lru_cache(maxsize=1 << 14)
def laid_out_s(layout: Layout, p: int, v: int, m: int, seconds: LaidOut) -> float:
    """T_pipe: when the last stage has ended."""
    ends_s = [
        seconds.predictions_s * (chunk.predictions > 0) + seconds.loss_s * chunk.loss
        for chunk in layout
    ]
    forward_s, backward_s = (
        [
            chunk.layers * layer_s + share * end_s
            for chunk, end_s in zip(layout, ends_s, strict=True)
        ]
        for layer_s, share in (
            (seconds.forward_s, ENDS_FORWARD),
            (seconds.backward_s, 1 - ENDS_FORWARD),
        )
    )
    now, moments, hop_s = [0.0] * p, list[float](), seconds.hop_s
    for event in _events(p, v, m):
        if isinstance(event, int):
            moments.append(now[event])
        elif isinstance(event, _Work):
            now[event.stage] += (backward_s if event.is_backward else forward_s)[event.chunk]
        else:
            others_s = [moments[other] + event.others_hops * hop_s for other in event.others]
            now[event.stage] = max([moments[event.own] + event.own_hops * hop_s, *others_s])
    return max(now)


def busiest_stage(layout: Layout, p: int, seconds: LaidOut) -> tuple[int, int, int]:
    """Layers of the stage whose passes take longest, the first of several, and whether it has the
    layers that predict further tokens and the loss.
    """
    layer_s = seconds.forward_s + seconds.backward_s
    stages: Sequence[tuple[int, int, int]] = [
        (
            sum(chunk.layers for chunk in layout[stage::p]),
            int(any(chunk.predictions for chunk in layout[stage::p])),
            int(any(chunk.loss for chunk in layout[stage::p])),
        )
        for stage in range(p)
    ]
    return max(
        stages,
        key=lambda one: one[0] * layer_s + one[1] * seconds.predictions_s + one[2] * seconds.loss_s,
    )
