"""Pipelines whose chunks have the layers that a layout gives them: 1F1B, interleaved or not.

A stage goes on when all messages of an exchange have arrived, so that the time of an iteration is
the longest path through passes and messages; docs/model.md, Layouts, states the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from coopt.instance.layouts import Layout, layout_of, stages_of
from coopt.perf.mapping import Bools, Floats, Ints, distinct_rows

FORWARD_SHARE = 1 / 3
"""Share of the passes of logits and of further predictions that is forward: one product of three.
"""
ODD_RING, LATER_MESSAGE = 0.6, 1.4
"""Share of the hops that an odd ring of equal stages adds, for stages that are not equal, and hops
until a neighbour's message has come where each sends two and the order is open: no random pipeline
was further than a thousandth from its simulation.
"""
SAME = 1e-12
"""Share of a period by which stages may differ that end it equally late, as numbers are rounded."""


class LayoutRows(NamedTuple):
    """A layout, with the number of stages `p` in every mapping and of chunks `v` of each stage;
    shape (n,).
    """

    text: str
    p: Ints
    v: Ints


class LayoutParts(NamedTuple):
    """What a micro-batch takes: forward and backward passes of a layer, all layers that predict
    further tokens, the loss, and a hop. Seconds (n,), or counts of a chain of passes.
    """

    forward: Any
    backward: Any
    predictions: Any
    loss: Any
    hop: Any


class _Slot(NamedTuple):
    """Passes of all stages between two exchanges, as places in the list of chunks, whose last entry
    is no pass; and which stages then exchange messages with the one below and the one above.

    `own_hops` are what its own messages take that wait for nobody, `other_hops` what those of a
    neighbour take from when it has come. Arrays of shape (p,).
    """

    forward: Ints
    backward: Ints
    below: Bools
    above: Bools
    own_hops: Floats
    other_hops: Floats


def _repeated(p: int, v: int, m: int) -> range:
    """Return the first slots of periods in which every stage goes both ways: passes and exchanges
    of a slot are those of a period before.
    """
    # where each message has a chunk to itself, a stage does one pass in a slot, else one each way
    begin = 2 * p - 1 if v == 1 else p * v - 1 + p * (m == p) + p - 1
    return range(begin, 2 * m, 2) if v == 1 else range(begin, m * v, p * v)


@lru_cache(maxsize=64)
def _slots(p: int, v: int, m: int) -> tuple[_Slot, ...]:
    """Return the passes of an iteration, such that the messages of an exchange are in one slot."""
    stage, total, begin = np.arange(p), m * v, _repeated(p, v, m).start
    step = 2 if v == 1 else 1
    both_ways = 2.0 + ODD_RING * (2 / max(p - 1, 1) - 2 / (p * v)) * (p % 2)
    other_way = 2.0 if p == 2 else LATER_MESSAGE  # both messages of a pair are for each other

    def chunks(since: Ints, backward: bool) -> Ints:
        number, rest = np.divmod(since, step)
        turn = number % (p * v) // p
        place = (v - 1 - turn if backward else turn) * p + stage
        return np.where((rest == 0) & (number >= 0) & (number < total), place, p * v)

    slot = np.arange(begin + step * (total - 1) + 1)[:, None]
    forward, backward = chunks(slot - stage, False), chunks(slot - begin + stage, True)
    down, up = forward < p * v - 1, (backward > 0) & (backward < p * v)
    below = down | np.roll(up, -1, axis=1)
    above = np.roll(below, 1, axis=1)
    messages = np.maximum(down + 1 * up, np.roll(down, 1, axis=1) + 1 * np.roll(up, -1, axis=1))
    own_hops = np.where(messages == 2, both_ways, messages)
    other_hops = np.where(messages == 2, other_way, 1.0)
    return tuple(map(_Slot, forward, backward, below, above, own_hops, other_hops))


def _ends(p: int, v: int, m: int, forward: Any, backward: Any, hop: Any) -> Any:
    """Return when the last stage ends, of passes and hops (k, chunks, n) and (k, n): the first of k
    entries decides which path is the longest.
    """
    nothing = np.zeros_like(forward[:, :1])
    forward, backward = (np.concatenate([x, nothing], axis=1) for x in (forward, backward))
    hop = hop[:, None]
    before = done = np.zeros((len(forward), p, forward.shape[2]))
    slots, repeated, number = _slots(p, v, m), _repeated(p, v, m), 0
    while number < len(slots):
        if number in repeated:
            growth, before = done - before, done
            is_even = np.ptp(growth, axis=1) <= SAME * growth.max(axis=1)
            if number > repeated.start and is_even.all():
                # all stages end a period later by as much, and so they do in those that remain
                periods = (repeated.stop - number) // repeated.step
                done = done + periods * growth
                number += periods * repeated.step
        slot = slots[number]
        number += 1
        passed = done + forward[:, slot.forward] + backward[:, slot.backward]
        done = passed + hop * slot.own_hops[:, None]
        for neighbour, meets in ((-1, slot.below), (1, slot.above)):
            arrived = np.roll(passed, neighbour, axis=1) + hop * slot.other_hops[:, None]
            done = np.where(meets[:, None] & (arrived[0] > done[0]), arrived, done)
    last = done[0].argmax(axis=0)
    return done[:, last, np.arange(done.shape[2])]


def _passes(layout: Layout, parts: LayoutParts) -> tuple[Any, Any]:
    """Seconds or counts of the passes of each chunk forward and backward; shape (k, chunks, n)."""
    layers = np.array([chunk.layers for chunk in layout])[:, None]
    has_predictions, has_loss = (
        np.array([[flag] for flag in flags])
        for flags in (
            [chunk.predictions > 0 for chunk in layout],
            [chunk.loss for chunk in layout],
        )
    )
    end = has_predictions * parts.predictions[:, None] + has_loss * parts.loss[:, None]
    return (
        layers * parts.forward[:, None] + FORWARD_SHARE * end,
        layers * parts.backward[:, None] + (1 - FORWARD_SHARE) * end,
    )


def _pipelines(rows: LayoutRows, m: Ints) -> Iterator[tuple[tuple[int, int, int], Ints]]:
    """Yield stages, chunks and micro-batches, with the rows that have them."""
    counts, position = distinct_rows(rows.p, rows.v, m)
    for number, (p, v, batches) in enumerate(zip(*counts, strict=True)):
        yield (int(p), int(v), int(batches)), np.flatnonzero(position == number)


def layout_s(rows: LayoutRows, m: Ints, parts: LayoutParts) -> Floats:
    """Time of the pipeline of every mapping (s), given seconds of shape (n,)."""
    layout, time_s = layout_of(rows.text), np.zeros(len(m))
    seconds = [np.broadcast_to(part, len(m)) for part in parts]
    for pipeline, at in _pipelines(rows, m):
        of_rows = LayoutParts(*(part[None, at] for part in seconds))
        time_s[at] = _ends(*pipeline, *_passes(layout, of_rows), of_rows.hop)[0]
    return time_s


def busiest_stage(
    rows: LayoutRows, layer_s: Floats, predictions_s: Floats, loss_s: Floats
) -> tuple[Ints, Ints, Ints]:
    """Layers of the stage of every mapping whose passes take longest, and whether it has the layers
    that predict further tokens and the loss; shape (n,) each.
    """
    found = np.zeros((3, len(rows.p)), dtype=np.int64)
    seconds = np.broadcast_arrays(layer_s, predictions_s, loss_s, found[0])[:3]
    for p in np.unique(rows.p).tolist():
        at = np.flatnonzero(rows.p == p)
        stages = np.array(
            [
                (stage.layers, stage.predictions > 0, stage.loss)
                for stage in stages_of(layout_of(rows.text), p)
            ],
            dtype=np.int64,
        )
        busiest = (stages @ np.stack([part[at] for part in seconds])).argmax(axis=0)
        found[:, at] = stages[busiest].T
    return found[0], found[1], found[2]


def layout_chains(rows: LayoutRows, m: Ints) -> tuple[LayoutParts, ...]:
    """Return chains of passes of every mapping, counts of shape (n,); the longest one is as long as
    the pipeline at usual shares of hops, and none is ever longer.
    """
    chains = [(_chains(rows.text, *pipeline), at) for pipeline, at in _pipelines(rows, m)]
    table = np.zeros((max((len(counts) for counts, _ in chains), default=1), 5, len(m)))
    for counts, at in chains:
        table[:, :, at] = np.resize(counts, table.shape[:2])[:, :, None]
    return tuple(LayoutParts(*counts) for counts in table)


# forward share of a layer's time, and what else takes how much of the time of a layer
SHARES = (0.2, 0.27, 1 / 3, 0.4, 0.5)
OF_LAYER = (0.1, 0.3, 0.6, 1.0, 1.6, 4.0)
HOPS = (0.0, *np.geomspace(1e-3, 10.0, 9).tolist())


@lru_cache(maxsize=1 << 8)
def _chains(text: str, p: int, v: int, m: int) -> Floats:
    """Return the longest chains for any shares of hops, predictions and loss; shape (chains, 5)."""
    layout = layout_of(text)
    predictions = OF_LAYER[2:5] if any(chunk.predictions for chunk in layout) else (0.0,)
    grid = np.meshgrid(SHARES, predictions, OF_LAYER, HOPS, indexing="ij")
    share, further, loss, hop = (axis.ravel() for axis in grid)
    seconds = np.stack([share, 1 - share, further, loss, hop])
    # behind the seconds, the counts that they consist of
    counts = np.broadcast_to(np.eye(5)[:, :, None], (5, 5, len(hop)))
    parts = LayoutParts(*np.concatenate([seconds[:, None], counts], axis=1))
    ends = _ends(p, v, m, *_passes(layout, parts), parts.hop)[1:]
    return np.unique(ends.round(9), axis=1).T
