"""How long a pipeline takes whose schedule splits the backward pass: the longest of some rows of
passes.

F, B and W are a micro-batch's pass forward through a full stage, its gradients of inputs and those
of weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class SplitShape(NamedTuple):
    """Stages, micro-batches, layers of a full stage, and how many the first one lacks."""

    p: int
    m: int
    layers: int
    first_lacks: int


class LayerPasses(NamedTuple):
    """Seconds of a layer without traffic; of gradients of weights alone, and with adding them up;
    and those of weights that the last stage has more of than a full one.
    """

    forward_s: float
    inputs_s: float
    weights_s: float
    added_s: float
    last_more_s: float


class SplitStage(NamedTuple):
    """Seconds of a full stage and micro-batch, of the pass forward of a layer, of a whole layer,
    each with traffic, and what the last stage takes longer.
    """

    stage_s: float
    forward_s: float
    layer_s: float
    excess_s: float


class PassRow(NamedTuple):
    """Passes that wait for one another: `filled_s` beyond those of all micro-batches on a full
    stage, so many visits of the last stage and of the first one, and so many hops.
    """

    filled_s: float
    visits: float
    firsts: float
    hops: float

    def added_s(self, excess_s: float, lack_s: float) -> float:
        """What it takes beyond all micro-batches on a full stage, where the last one takes
        `excess_s` longer and the first one `lack_s` less, hops aside.
        """
        return self.filled_s + self.visits * excess_s - self.firsts * lack_s


class _Counts(NamedTuple):
    """Passes of a row beyond those of all micro-batches: F and B of a full stage, and W or what
    hides behind as much.

    It visits the last stage `visits` times, `late_visits` of them with gradients of its weights,
    and as often as `firsts` and `first_forwards` the first one, with all of a micro-batch and with
    its pass forward.
    """

    forwards: float
    inputs: float
    weights: float
    visits: float
    late_visits: float
    firsts: float
    hops: float
    first_forwards: float = 0.0
    hidden_s: float = 0.0
    """less where hops wait for what would be W"""
    is_light: bool = True
    """longer where the first stage has so few layers that the second ends later"""


def longest_row(
    schedule: str, shape: SplitShape, passes: LayerPasses, stage: SplitStage, hop_s: float
) -> PassRow:
    """The row that takes longest."""
    summed_s = passes.weights_s + passes.added_s
    # X of docs/model.md: what passes hide behind is as long as the least of the three at most
    least_s = shape.layers * min(passes.forward_s, passes.inputs_s, summed_s)
    weights_s = shape.layers * summed_s if schedule == "zb-h1" else least_s
    forward_s = shape.layers * stage.forward_s
    inputs_s = stage.stage_s - forward_s - weights_s
    backward_s = shape.first_lacks * (passes.inputs_s + passes.weights_s)
    light_s = max(0.0, backward_s - shape.layers * passes.inputs_s + least_s)
    rows = []
    for counts in _zero_bubble(shape, weights_s) if schedule == "zb-h1" else _two_way(shape):
        filled_s = (
            counts.forwards * forward_s
            + counts.inputs * inputs_s
            - counts.weights * least_s
            - counts.hidden_s
        )
        filled_s -= (counts.visits - counts.late_visits) * passes.last_more_s
        filled_s -= shape.first_lacks * counts.first_forwards * stage.forward_s
        filled_s += light_s if counts.is_light else 0.0
        rows.append(PassRow(filled_s, counts.visits, counts.firsts, counts.hops))
    lack_s = shape.first_lacks * stage.layer_s
    return max(rows, key=lambda row: row.added_s(stage.excess_s, lack_s) + row.hops * hop_s)


def _zero_bubble(shape: SplitShape, weights_s: float) -> Iterator[_Counts]:
    """ZB-H1: the last stage has W of its first p - 1 micro-batches behind it only at the end.

    A row may go through other stages in place of the last one: a micro-batch forward and one back
    take two hops more, as long as W of some stage is there to wait, and beyond that W less.
    """
    p, m = shape.p, shape.m
    spared, pair, loop = min(p, m) - 1, min(m, 2), 2 * (p - 1)
    fewest = _visits_of_trips(m, p)
    no_fewer = max(fewest, m - p + 1)
    binding = _Counts(p - 1, p - 1, spared, m, m - spared - 1, 1, loop)
    yield binding  # "the last stage binds"
    # "but for its last micro-batches": of more than p the hop to the last stage and back is waited
    # for once
    yield binding._replace(visits=spared + 1, late_visits=0, hops=loop + (2 if m > p else 0))
    # "one round trip of hops"; then "hops longer than W/2": two of them in place of a visit, which
    # takes W less
    for visits in (no_fewer, fewest):
        beyond_s = (no_fewer - visits) * weights_s
        yield binding._replace(
            visits=visits,
            late_visits=visits - pair,
            hops=loop + 2 * (m - visits),
            hidden_s=beyond_s,
        )
    # "the last stage, from its end": filled by passes forward, it then works without a pause
    yield _Counts(p - 1, 0, 0, m, m, 0, p - 1, 1, is_light=False)
    turned = spared - (1 if m > 1 else 0)
    near_hops, far_hops = (2 * min(stages, max(m - 2, 0)) for stages in (p - 2, p - 1))
    # "middle stages bind", "one visit of the last stage", "none"
    seldom = (
        binding._replace(visits=pair, late_visits=0, hops=loop + far_hops),
        _Counts(p - 2, p - 1, turned, 1, 0, 1, loop + near_hops),
        _Counts(p - 2, p - 2, turned, 0, 0, 1, loop - 2 + near_hops),
    )
    yield from seldom
    if p > 2:
        # "each of these three", where K trips turn before the last stage and its W is not waited
        # for
        ends = _visits_of_trips(max(m, 2), p - 1)
        short_trips = max(0, m - ends - p + 1)
        for counts in seldom:
            firsts = ends - (1 if counts.visits == pair else 0)
            yield counts._replace(
                firsts=firsts, hops=counts.hops + 2 * short_trips, hidden_s=short_trips * weights_s
            )
    if p > 3:
        # "the first of them": trips that turn before both ends
        short_trips = max(0, m - _visits_of_trips(max(m, 3) - 1, p - 2) - p + 1)
        yield seldom[0]._replace(
            hops=seldom[0].hops + 2 * short_trips, hidden_s=short_trips * weights_s
        )


def _visits_of_trips(m: int, stages: int) -> int:
    """How often an end of so many stages is visited where messages go from one end to the other all
    along.
    """
    return 1 if m == 1 else 2 + (m - 2) // stages


def _two_way(shape: SplitShape) -> Iterator[_Counts]:
    """DualPipe: pairs of stages, n of them outside the middle pair, and half of the micro-batches
    either way.
    """
    p, m = shape.p, shape.m
    # two stages go in step, as each GPU has both ends of the model
    if p <= 2:
        visits = m / p
        yield _Counts(0, 0, 0, visits, visits, visits, m - 1, is_light=False)
        return
    # S' of docs/model.md: messages wait for each other at ports, in turns that no row has all of
    port = p / 4 + 2.25 if p > 6 else 2
    for counts in (*_there_and_back(p, m), *_seldom_at_the_ends(p, m), *_at_the_ends(p, m)):
        yield counts._replace(weights=p // 2 - 1, hops=counts.hops + port)


def _there_and_back(p: int, m: int) -> Iterator[_Counts]:
    """Rows that fill the middle, then go from one end of the GPUs to the other, 2p - 2 hops for p
    micro-batches, and stay at the ends for the others.
    """
    n = p // 2 - 1
    trips, remainder = divmod(m - 2 * p - 2, p)
    if trips < 0:  # fewer than 2p + 2 micro-batches leave no choice
        choices = [(5 * p - 9, 1)]
    else:
        at_ends, hops = m // 2 - p + 1, 5 * p - 5
        choices = [(hops, at_ends), (hops + 2 * trips * (p - 1), at_ends - trips * n)]
        choices += [
            (2 * m + p - 11 - 2 * trips - 2 * cut, 2 + trips + cut)
            for cut in (0, 1)
            if remainder or not cut
        ]
    # "each path (h, s)"; the last row is "the ends, one GPU further in"
    for hops, visits in choices:
        yield _Counts(2 * n, n, n, visits, visits, visits + 1, hops, -1)
        yield _Counts(n - 1, 2 * n, n, visits + 1, visits, visits + 1, hops + n, -1)
        if trips >= 0:
            yield _inner_row(p, visits + 1, visits, hops + n + 2)
    yield _inner_row(p, m // 2 - p + 3, m // 2 - p + 2, _last_hops(p, m))


def _inner_row(p: int, visits: int, firsts: int, hops: float) -> _Counts:
    """A row that begins and ends one GPU further in; among four stages it has all gradients of the
    end stages.
    """
    n = p // 2 - 1
    of_four = 1 if n == 1 else 0
    return _Counts(n, 2 * n - 1, n, visits, visits - 1 + of_four, firsts, hops, of_four - 1)


def _last_hops(p: int, m: int) -> float:
    return 5.5 * p - (12 if m == 2 * p and p > 4 else 10)


def _seldom_at_the_ends(p: int, m: int) -> Iterator[_Counts]:
    """Rows of a last stage that is lighter than others: hops go back and forth between the GPUs
    beside the ends.
    """
    n = p // 2 - 1
    turns, remainder = divmod(m - 2 * p, p - 2)
    hops = 5 * p - 9 + 2 * (p - 3) * turns + max(0, 2 * remainder - 2)
    yield _Counts(2 * n, n, n, 1, 1, 2, hops, -1)
    yield _Counts(n - 1, 2 * n, n, 2, 1, 2, hops + n, -1)
    yield _inner_row(p, 3, 2, hops + n)
    yield _Counts(2 * n - 1, n, n, 0, 0, 1, hops - 2)
    yield _Counts(n - 1, 2 * n - 1, n, 0, 0, 1, hops + n - 3)
    if n > 1:
        yield _Counts(n, 2 * n - 1, n, 1, 1, 2, hops + n - 1, -1)
        yield _Counts(n, n + 1, n, n + 1, n, 2, hops, -1)
        yield _Counts(n - 2, 2 * n, n, 1, 0, 1, hops + 1)


def _at_the_ends(p: int, m: int) -> Iterator[_Counts]:
    """Rows that wait for the logits of nearly all micro-batches of a direction."""
    # "the ends bind", and the second row of "the ends, one GPU further in"
    n, half = p // 2 - 1, m // 2
    yield _Counts(0, n, n, half, half, half - n, 2 * p - 2, -n)
    if n > 1:
        for turned, hops in ((1, 2 * p + 1), (n - 1, 3.5 * p - 8)):
            visits = half - turned
            yield _Counts(0, n + turned, n, visits, visits - 1, half - n, hops, -n - 1)
        visits = half - n - 1
        yield _Counts(
            n, n + 1, n, visits, visits - 1, half - 2 * n, _last_hops(p, m) - 3 * (n - 2), -1
        )
