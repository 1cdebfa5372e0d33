"""Pipelines whose chunks have the layers that a layout gives them: 1F1B, interleaved or not.

A stage goes on when all messages of an exchange have arrived, so that the time of an iteration is
the longest path through passes and messages; docs/model.md, Layouts, states the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
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


@lru_cache(maxsize=1 << 8)
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
    hop, stage = hop[:, None], np.arange(p)
    next_stage, previous = np.roll(stage, -1), np.roll(stage, 1)
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
        for neighbours, meets in ((next_stage, slot.below), (previous, slot.above)):
            arrived = passed[:, neighbours] + hop * slot.other_hops[:, None]
            done = np.where(meets[:, None] & (arrived[0] > done[0]), arrived, done)
    last = done[0].argmax(axis=0)
    return done[:, last, np.arange(done.shape[2])]


def _counts(chunks: Layout) -> Ints:
    """Layers of each chunk or stage, and whether it has the layers that predict further tokens and
    the loss; shape (chunks, 3).
    """
    counts = [(chunk.layers, chunk.predictions > 0, chunk.loss) for chunk in chunks]
    return np.array(counts, dtype=np.int64)


def _passes(layout: Layout, parts: LayoutParts) -> tuple[Any, Any]:
    """Seconds or counts of the passes of each chunk forward and backward; shape (k, chunks, n)."""
    layers, has_predictions, has_loss = _counts(layout).T[:, :, None]
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
        stages = _counts(stages_of(layout_of(rows.text), p))
        busiest = (stages @ np.stack([part[at] for part in seconds])).argmax(axis=0)
        found[:, at] = stages[busiest].T
    return found[0], found[1], found[2]


def layout_chains(rows: LayoutRows, m: Ints, terms: Floats) -> tuple[LayoutParts, ...]:
    """Return chains of passes of every mapping, counts of shape (n,), the longest of which is as
    long as the pipeline.

    Parameters
    ----------
    terms
        Seconds of `LayoutParts`, or what adds up to them with any weights of 0 and more, as fixed
        seconds and bytes do; shape (5, terms, n).
    """
    chains = []
    for pipeline, at in _pipelines(rows, m):
        of_rows = terms[:, :, at].reshape(5, -1)
        work = WEIGHTS @ of_rows[:4]
        shares = of_rows[:4, work > 0] / work[work > 0]
        # to a grid, so that further rows seldom need chains of their own
        low, high = np.floor(shares.min(axis=1) * GRID), np.ceil(shares.max(axis=1) * GRID)
        ranges = tuple(zip(low.astype(int).tolist(), high.astype(int).tolist(), strict=True))
        chains.append((_chains(rows.text, pipeline, ranges), at))
    table = np.zeros((max((len(counts) for counts, _ in chains), default=1), 5, len(m)))
    for counts, at in chains:
        table[:, :, at] = np.resize(counts, table.shape[:2])[:, :, None]
    return tuple(LayoutParts(*counts) for counts in table)


WEIGHTS = np.array([1.0, 1.0, 1.0, 1 / 16])
"""Of forward, backward, predictions and loss in what their shares are of: the loss differs most
between terms, and would move the shares of all others.
"""
GRID = 64
"""Steps of a share to which ranges are widened."""
EQUAL = 1e-10
"""Share of a chain's length below which two chains are equally long."""


class _Envelope(NamedTuple):
    """The longest of some chains, as a function of the seconds of all parts.

    It is linear between `corners`, seconds of shape (k, 5), of which the first `ends` span the
    cone of seconds that matter. `meets` says on which faces of the cone a corner is, of which there
    are `faces`, and which chains are the longest there; shape (k, faces + chains). `lengths_s` has
    those of the longest chains.
    """

    chains: Floats
    corners: Floats
    lengths_s: Floats
    meets: Bools
    ends: int
    faces: int

    def with_chain(self, chain: Floats) -> _Envelope:
        """Add a chain; the same envelope where it is the longest nowhere.

        New corners are where it becomes the longest on an edge (double description method): two
        corners are the ends of one where no other corner meets all that both meet.
        """
        with_chain_s, equal_s = self.corners @ chain, EQUAL * np.abs(self.lengths_s)
        ahead_s = with_chain_s - self.lengths_s
        above, below = ahead_s > equal_s, ahead_s < -equal_s
        if not above.any():
            return self
        above_at, below_at = np.flatnonzero(above), np.flatnonzero(below)
        met = (self.meets[above_at, None] & self.meets[below_at]).sum(axis=2)
        upper, lower = np.nonzero(met >= len(chain) - 1)
        upper, lower = above_at[upper], below_at[lower]
        common = self.meets[upper] & self.meets[lower]
        lacking = np.packbits(common, axis=1)[:, None] & np.packbits(~self.meets, axis=1)
        is_edge = (~lacking.any(axis=2)).sum(axis=1) == 2
        upper, lower, common = upper[is_edge], lower[is_edge], common[is_edge]
        to_lower = (ahead_s[upper] / (ahead_s[upper] - ahead_s[lower]))[:, None]
        crossings = self.corners[upper] * (1 - to_lower) + self.corners[lower] * to_lower
        # the ends of the cone are corners whichever chain is the longest there
        kept, left = ~above | (np.arange(len(above)) < self.ends), self.meets.copy()
        left[above, self.faces :] = False
        is_longest = np.append(~below[kept], np.ones(len(crossings), dtype=np.bool_))
        return self._replace(
            chains=np.vstack([self.chains, chain]),
            corners=np.vstack([self.corners[kept], crossings]),
            lengths_s=np.append(np.maximum(self.lengths_s, with_chain_s)[kept], crossings @ chain),
            meets=np.column_stack([np.vstack([left[kept], common]), is_longest]),
        )


def _cone(ranges: tuple[tuple[int, int], ...]) -> tuple[Floats, Bools]:
    """Return the ends of a cone of seconds, and which faces each is on: each least and greatest
    share of all parts but the hop, and no hops.
    """
    (forward, _, predictions, loss), corners, faces = ranges, [], []
    for shares in product(*({*limits} for limits in (forward, predictions, loss))):
        first, further, last = np.array(shares) / GRID
        rest = 1.0 - WEIGHTS[[0, 2, 3]] @ (first, further, last)
        corners.append([first, rest, further, last, 0.0])
        limits = zip(shares, (forward, predictions, loss), strict=True)
        faces.append([share == limit for share, pair in limits for limit in pair] + [True])
    hops_only = [0.0, 0.0, 0.0, 0.0, 1.0]
    return np.array([*corners, hops_only]), np.array([*faces, [True] * 6 + [False]])


@lru_cache(maxsize=1 << 8)
def _chains(
    text: str, pipeline: tuple[int, int, int], ranges: tuple[tuple[int, int], ...]
) -> Floats:
    """Return the longest chains for all seconds whose shares are in ranges; shape (chains, 5).

    The time of a pipeline is convex in these seconds and never below its chains, so that it is
    above them most at a corner of their envelope: where it is above none, they are all.
    """
    layout = layout_of(text)

    def longest(seconds: Floats) -> tuple[Floats, Floats]:
        counts = np.broadcast_to(np.eye(5)[:, :, None], (5, 5, len(seconds)))
        parts = LayoutParts(*np.concatenate([seconds.T[:, None], counts], axis=1))
        time_s, *chains = _ends(*pipeline, *_passes(layout, parts), parts.hop)
        return time_s, np.stack(chains, axis=1).round(11)

    ends, faces = _cone(ranges)
    meets = np.column_stack([faces, np.ones(len(ends), dtype=np.bool_)])
    _, longer = longest(ends)
    envelope = _Envelope(longer[:1], ends, ends @ longer[0], meets, *faces.shape)
    while len(longer):
        before = envelope
        for chain in np.unique(longer, axis=0):
            envelope = envelope.with_chain(chain)
        if envelope is before:
            break  # what is left is rounding
        time_s, chains = longest(envelope.corners)
        longer = chains[time_s - envelope.lengths_s > EQUAL * np.abs(envelope.lengths_s)]
    return envelope.chains[envelope.meets[:, envelope.faces :].any(axis=0)]
