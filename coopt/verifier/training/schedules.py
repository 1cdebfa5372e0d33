"""How long a pipeline takes whose schedule splits the backward pass: the longest of some rows of passes.

F, B and W are a micro-batch's pass forward through a full stage, its gradients of inputs and those of weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class SplitShape(NamedTuple):
    """Stages, micro-batches, layers of a full stage, how many the first one lacks, and what the last one has more."""

    p: int
    m: int
    layers: int
    first_lacks: int
    last_more: int


class LayerPasses(NamedTuple):
    """Seconds of a layer without traffic; of gradients of weights alone, and with adding them up."""

    forward_s: float
    inputs_s: float
    weights_s: float
    added_s: float


class SplitStage(NamedTuple):
    """Seconds of a full stage and micro-batch, of the pass forward of a layer, of a whole layer, each with traffic, and
    what the last stage takes longer."""

    stage_s: float
    forward_s: float
    layer_s: float
    excess_s: float


class PassRow(NamedTuple):
    """Passes that wait for one another: `filled_s` beyond those of all micro-batches on a full stage, so many visits of
    the last stage and of the first one, and so many hops."""

    filled_s: float
    visits: float
    firsts: float
    hops: float

    def added_s(self, excess_s: float, lack_s: float) -> float:
        """What it takes beyond all micro-batches on a full stage, where the last one takes `excess_s` longer and the
        first one `lack_s` less, hops aside."""
        return self.filled_s + self.visits * excess_s - self.firsts * lack_s


class _Counts(NamedTuple):
    """Passes of a row beyond those of all micro-batches: F and B of a full stage, and W or what hides behind as much.

    It visits the last stage `visits` times, `late` of them with gradients of its weights, and as often as `firsts` and
    `first_forwards` the first one, with all of a micro-batch and with its pass forward.
    """

    forwards: float
    inputs: float
    weights: float
    visits: float
    late: float
    firsts: float
    hops: float
    first_forwards: float = 0.0
    hidden_s: float = 0.0
    """less where hops wait for what would be W"""


def longest_row(schedule: str, shape: SplitShape, own: LayerPasses, stage: SplitStage, hop_s: float) -> PassRow:
    """The row that takes longest."""
    summed_s = own.weights_s + own.added_s
    least_s = shape.layers * min(own.forward_s, own.inputs_s, summed_s)
    weights_s = shape.layers * summed_s if schedule == "zb-h1" else least_s
    forward_s = shape.layers * stage.forward_s
    inputs_s = stage.stage_s - forward_s - weights_s
    light_s = 0.0
    if schedule == "zb-h1":
        backward_s = shape.first_lacks * (own.inputs_s + own.weights_s)
        light_s = max(0.0, backward_s - shape.layers * own.inputs_s + least_s)
    found = []
    for one in _zero_bubble(shape, weights_s) if schedule == "zb-h1" else _two_way(shape):
        filled_s = one.forwards * forward_s + one.inputs * inputs_s - one.weights * least_s - one.hidden_s
        filled_s -= (one.visits - one.late) * shape.last_more * own.weights_s
        filled_s -= shape.first_lacks * one.first_forwards * stage.forward_s
        filled_s += light_s if one.firsts else 0.0
        found.append(PassRow(filled_s, one.visits, one.firsts, one.hops))
    lack_s = shape.first_lacks * stage.layer_s
    return max(found, key=lambda row: row.added_s(stage.excess_s, lack_s) + row.hops * hop_s)


def _zero_bubble(shape: SplitShape, weights_s: float) -> Iterator[_Counts]:
    """ZB-H1: the last stage has W of its first p - 1 micro-batches behind it only at the end."""
    p, m = shape.p, shape.m
    spared = min(p, m) - 1
    loop = 2 * (p - 1)
    both = loop + 2 * min(p - 1, max(m - 2, 0))
    first_turn = 1 if m > 1 else 0
    back = m - spared - 1
    yield _Counts(p - 1, p - 1, spared, min(m, 2), 0, 1, both)
    yield _Counts(p - 2, p - 1, spared - first_turn, 1, 0, 1, both)
    yield _Counts(p - 2, p - 2, spared - first_turn, 0, 0, 1, both)
    yield _Counts(p - 1, p - 1, spared, m, back, 1, loop)
    yield _Counts(p - 1, p - 1, spared, min(m, back + 2), back, 1, both if p > 2 else loop)
    loops = max(1 + (m - 2) / p, 2)
    yield _Counts(p - 1, p - 1, spared, min(m, 2), 0, 1, loop * loops, hidden_s=(loops - 2) * (p - 1) * weights_s)
    yield _Counts(p - 1, 0, 0, m, m, 0, p - 1, 1)


def _two_way(shape: SplitShape) -> Iterator[_Counts]:
    """DualPipe: pairs of stages, n of them outside the middle pair, and half of the micro-batches either way."""
    p, m = shape.p, shape.m
    if p <= 2:
        visits = m / p
        yield _Counts(0, 0, 0, visits, visits, visits, m - 1)
        return
    n, each = p // 2 - 1, m // 2
    middle = (2 - 2 / p) * m + 1.5 * p - 6
    yield _Counts(n - 1, 2 * n, n, 2, 1, 2, middle, -1)
    yield _Counts(2 * n, n, n, 1, 1, 2, middle - n, -1)
    yield _Counts(n - 1, 2 * n - 1, n, 0, 0, 1, middle)
    yield _Counts(2 * n - 1, n, n, 0, 0, 1, middle)
    for forwards, inputs, visits, late, hops in (
        (n - 1, 2 * n, each - 2 * n, 1, min(5.5 * p - 6, middle - 1)),
        (2 * n, n, each - 2 * n - 1, 0, min(5 * p - 5, middle - 1)),
        (n, 2 * n - 1, each - 2 * n + 1, 1, min(5.5 * p - 6, middle - 1)),
        (0, 2 * n - 1, each - n + 1, 1, 3.5 * p - 8),
        (0, n, each, 0, 2 * p - 2),
    ):
        seen = min(visits, each)
        yield _Counts(forwards, inputs, n, seen, seen - late, seen, hops)
