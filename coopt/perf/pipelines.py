"""Idle times of pipeline stages: sends between stages ("hops"), and waiting for the last stage.

The counts reproduce a simulation of 1F1B and interleaved 1F1B with rendezvous sends, one message at
a time on each port and direction; docs/model.md states the rules.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coopt.perf.collectives import AffineSeconds
from coopt.perf.kernels import Passes
from coopt.perf.mapping import Floats, Ints


class EndWait(NamedTuple):
    """How a middle stage waits for the last stage, which also computes the logits.

    `passes` is the number of micro-batches for which it waits. `layers` (with their traffic) and
    `forward_layers` (forward only) are what the chain of passes saves by not waiting more often.
    Arrays of shape (n,) or numbers.
    """

    passes: Any
    layers: Any = 0.0
    forward_layers: Any = 0.0


class PipelineWaits(NamedTuple):
    """Waits of pipeline stages besides their own passes, counted in hops (sends between stages).

    All have the shape of p, v and m. `hops` is the number per micro-batch on a middle stage, of
    which the last stage saves `spared_hops`. `bubble_hops` are added per iteration while the
    pipeline fills and drains, and `late_hops` more where the last stage is the slowest. Where it is
    not, a middle stage still waits `end_passes` times for the logits of the last stage, or
    `few_passes` times where the last stage has less work. Two interleaved stages advance in
    lock-step, as fast as the heavier of both; `in_step` counts these steps.
    """

    hops: Floats
    spared_hops: Floats
    bubble_hops: Floats
    late_hops: Floats
    end_passes: Floats
    few_passes: Floats
    in_step: Floats


def pipeline_waits(p: Ints, v: Ints, m: Ints) -> PipelineWaits:
    r"""Count the hops of 1F1B (v = 1) and interleaved 1F1B; docs/model.md, The iteration.

    .. math::
        H = \begin{cases} 1 & p = 2, v = 1 \\ 2v - 1/2 & p = 2, v > 1, m > p \\
            2v + (1 - p/m)(2v/(p-1) - 2/p) & p \text{ odd}, v > 1 \\
            2v & \text{otherwise} \end{cases}

    With two stages each has one neighbour. The sends of an interleaved schedule run round the ring
    of stages in both directions; an odd ring cannot pair all its members at once, except in the
    first p micro-batches. Where there are only p micro-batches, all forward passes precede all
    backward passes.
    """
    rings, odd, ahead = v > 1, p % 2 == 1, (v > 1) & (m == p)
    # H, Q, spared, late, E, E' and K of docs/model.md, The pipeline, in this order
    unpaired = (1 - p / m) * (2 * v / np.maximum(p - 1, 1) - 2 / p)
    two = np.where(rings, 2 * v - 0.5 * ~ahead, 1.0)
    hops = np.where(p == 2, two, 2 * v + np.where(odd & rings, unpaired, 0.0))
    bubble = np.where(p == 2, np.where(rings, 0.0, 1.0), np.maximum(2.0 * p - 5.0 + ahead, 0.0))
    ends = (p > 2) & ~ahead
    spared_hops, late_hops = (
        np.where(rings & ~odd, 1 - 1 / p, 1.0),
        np.where(rings & ~odd, 1.0, 2.0),
    )
    end_passes = np.where(rings & (p != 3), m // p + 1, np.minimum(m, 2))
    few_passes = np.where(ahead, 1.0, np.minimum(m, 2))
    in_step = np.where((p == 2) & rings & ~ahead, m / 2 - 1.0, 0.0)
    hops = np.where(p == 1, 0.0, hops)
    return PipelineWaits(
        hops,
        spared_hops * ends,
        bubble,
        late_hops * ends,
        np.asarray(end_passes * 1.0),
        few_passes,
        in_step,
    )


class PassChain(NamedTuple):
    """A chain of dependent passes in an iteration; each value has shape (n,) or is a number.

    Its length is the time of a full stage for all micro-batches and for `stages` more, plus
    `forwards` forward passes of such a stage, plus `fixed_s` seconds, plus `hops` sends between
    stages. To this come the extra work of the last stage for `visits` micro-batches, and,
    subtracted, the layers that the first stage lacks for `firsts` micro-batches.
    """

    fixed_s: Any
    stages: Any
    forwards: Any
    visits: Any
    firsts: Any
    hops: Any


class Split(NamedTuple):
    """Passes (n,) of a schedule that splits the backward pass, without communication.

    `weights_s` are the seconds per micro-batch on a full stage for gradients of weights, and
    `hidden_s` is the minimum of these, of the other backward seconds and of the forward pass.
    `last_s` is the additional time for gradients of weights on the last stage; its logits compute
    all their gradients at once. The first stage lacks `first_share` of its layers; `light_s` of the
    time saved by that shortens no chain.
    """

    weights_s: Any
    hidden_s: Any
    last_s: Any
    first_share: Any
    light_s: Any


def zero_bubble_chains(p: Ints, m: Ints, split: Split) -> tuple[PassChain, ...]:
    r"""The chains of ZB-H1; the longest one is the time of the pipeline (docs/model.md, Schedules).

    With F, B and W for the forward pass and the gradients of inputs and of weights, the remaining
    bubble is

    .. math:: (p-1)(F + B) - (\min(m, p) - 1) \min(F, B, W)

    where a middle stage is the bottleneck, and (p - 1) F where the last one is.
    """
    filled, twice, late_s, weights_s = (
        np.minimum(m, p),
        np.minimum(m, 2),
        split.last_s,
        split.weights_s,
    )
    left_s = split.light_s - (p - 1) * weights_s - (filled - 1) * split.hidden_s
    loop, returns = 2 * (p - 1), np.maximum(m - 2, 0)
    # visits where each round trip serves p micro-batches
    min_visits = np.minimum(m, returns // p + np.minimum(m, 2))
    fewer = np.maximum(min_visits, m - p + 1)  # where there is one round trip
    again_s = (
        fewer - min_visits
    ) * weights_s  # gradients of weights that are not waited for in further ones
    once, spared_s = loop + 2 * np.minimum(p - 2, returns), split.hidden_s * (m > 1)
    seldom = (
        PassChain(
            left_s - twice * late_s, p - 1, 0.0, twice, 1, loop + 2 * np.minimum(p - 1, returns)
        ),
        PassChain(left_s - late_s + spared_s, p - 1, -1.0, 1.0, 1, once),
        PassChain(left_s + weights_s + spared_s, p - 2, 0.0, 0.0, 1, once - 2),
    )
    # round trips that turn one stage before the last one, or one stage before both ends
    inner_visits = returns // np.maximum(p - 1, 1) + 2
    trips, middle_trips = (
        np.where(p > skipped + 1, np.maximum(m - visits - p + 1, 0), 0)
        for skipped, visits in (
            (1, inner_visits),
            (2, np.maximum(m - 3, 0) // np.maximum(p - 2, 1) + 2),
        )
    )
    return (
        PassChain(left_s - filled * late_s, p - 1, 0.0, m, 1, loop),
        PassChain(left_s - twice * late_s, p - 1, 0.0, fewer, 1, loop + 2 * (m - fewer)),
        PassChain(
            left_s - twice * late_s - again_s,
            p - 1,
            0.0,
            min_visits,
            1,
            loop + 2 * (m - min_visits),
        ),
        PassChain(left_s - filled * late_s, p - 1, 0.0, filled, 1, loop + 2 * (m > p)),
        *seldom,
        *(
            chain._replace(
                fixed_s=chain.fixed_s - trips * weights_s,
                hops=chain.hops + 2 * trips,
                firsts=firsts,
            )
            for chain, firsts in zip(
                seldom, (inner_visits - 1, inner_visits, inner_visits), strict=True
            )
        ),
        seldom[0]._replace(
            fixed_s=seldom[0].fixed_s - middle_trips * weights_s,
            hops=seldom[0].hops + 2 * middle_trips,
        ),
        PassChain(0.0, 0.0, p - 1 - split.first_share, m, 0, p - 1),
    )


class TwoWayRow(NamedTuple):
    """A chain of passes of DualPipe, as multiples of F and B of a full stage beyond those of all
    micro-batches.

    `visits` and `firsts` count the passes through the last and the first stage. `late_visits` of
    the former omit the gradients of weights, and `ahead_visits` of the latter omit the forward
    pass.
    """

    forwards: Any
    inputs: Any
    visits: Any
    late_visits: Any
    firsts: Any
    ahead_visits: Any
    hops: Any


def two_way_rows(p: Ints, m: Ints) -> tuple[TwoWayRow, ...]:
    """Return the longest chains of DualPipe with p > 2 stages (derived in docs/model.md,
    Schedules).

    Either the GPUs in the middle, or those with the ends of the model, are busy all the time, or
    sends are the bottleneck: in round trips between both ends, which take 2 p - 2 hops for p
    micro-batches, or between the GPUs next to the ends.
    """
    n, each_way, beyond = p // 2 - 1, m // 2, m - 2 * p
    trips = (
        np.maximum(beyond - 2, -1) // p
    )  # whole round trips; none in the shortest of iterations, where it is -1
    inner_trips, remainder = np.divmod(beyond, np.maximum(p - 2, 1))
    partial = 2 * m + p - 11 - 2 * trips, 2 + trips
    several = 5 * p - 5 + (2 * p - 2) * trips, each_way - p + 1 - n * trips
    sooner = partial[0] - 2, partial[1] + (beyond - 2 > p * trips)
    within = 5 * p - 9 + 2 * (p - 3) * inner_trips + np.maximum(2 * remainder - 2, 0)
    # for four stages these rows include gradients of weights, and the whole first stage
    late_visits = np.minimum(n - 1, 1)
    last_row = TwoWayRow(
        n,
        2 * n - 1,
        each_way - p + 3,
        late_visits,
        each_way - 2 * n,
        late_visits,
        5.5 * p - 10 - 2 * ((beyond == 0) & (p > 4)),
    )
    outer_row = TwoWayRow(0, n, each_way, 0, each_way - n, n, 2 * p - 2)
    through = [last_row]
    for hops, visits in ((5 * p - 5, each_way - p + 1), several, partial, sooner):
        far, seen = np.where(trips >= 0, hops, partial[0]), np.where(trips >= 0, visits, partial[1])
        through += (
            TwoWayRow(2 * n, n, seen, 0, seen + 1, 1, far),
            TwoWayRow(n - 1, 2 * n, seen + 1, 1, seen + 1, 1, far + n),
            _rows_where(
                trips >= 0,
                TwoWayRow(n, 2 * n - 1, seen + 1, late_visits, seen, late_visits, far + n + 2),
                last_row,
            ),
        )
    seldom = (
        TwoWayRow(2 * n, n, 1, 0, 2, 1, within),
        TwoWayRow(n - 1, 2 * n, 2, 1, 2, 1, within + n),
        TwoWayRow(n, 2 * n - 1, 3, late_visits, 2, late_visits, within + n),
        TwoWayRow(2 * n - 1, n, 0, 0, 1, 0, within - 2),
        TwoWayRow(n - 1, 2 * n - 1, 0, 0, 1, 0, within + n - 3),
    )
    deep = (  # where there are pairs of stages between the ends and the middle
        TwoWayRow(n, 2 * n - 1, 1, 0, 2, 1, within + n - 1),
        TwoWayRow(n, n + 1, n + 1, 1, 2, 1, within),
        TwoWayRow(n - 2, 2 * n, 1, 1, 1, 0, within + 1),
        TwoWayRow(n, n + 1, each_way - n - 1, 1, each_way - 2 * n, 1, last_row.hops - 3 * (n - 2)),
        TwoWayRow(0, n + 1, each_way - 1, 1, each_way - n, n + 1, 2 * p + 1),
        TwoWayRow(0, 2 * n - 1, each_way - n + 1, 1, each_way - n, n + 1, 3.5 * p - 8),
    )
    return *through, *seldom, *(_rows_where(n > 1, row, outer_row) for row in deep), outer_row


def _rows_where(holds: Any, row: TwoWayRow, alternative: TwoWayRow) -> TwoWayRow:
    return TwoWayRow(*(np.where(holds, a, b) for a, b in zip(row, alternative, strict=True)))


def two_way_chains(p: Ints, m: Ints, split: Split) -> tuple[PassChain, ...]:
    r"""The chains of DualPipe; the longest one is the time of the pipeline (docs/model.md,
    Schedules).

    Stages i and p + 1 - i share a GPU, with n = p/2 - 1 such pairs besides the middle one, and m/2
    micro-batches go in each direction. Without sends the remaining bubble is

    .. math:: \max\bigl((n-1) F + 2 n B, \; 2 n F + n B\bigr) - n W

    where the middle is the bottleneck, which is at most the bubble of the authors, :math:`n (F + 2
    B - W)`, and n(B - W) where the GPU with both ends of the model is. Messages wait for each other
    at ports in an order that changes with every length of a pass, so `port_waits` hops are added.
    For stages with equally many layers and hops of up to a fifth of a pass, no random pipeline took
    longer than predicted; docs/model.md states the deviations of others.
    """
    n, w, share = p // 2 - 1, split.hidden_s, split.first_share
    of_two = PassChain(0.0, 0.0, 0.0, np.where(p > 1, m // 2, m), np.where(p > 1, m // 2, m), m - 1)
    chains = []
    for row in two_way_rows(p, m):
        fixed_s = split.light_s - (row.inputs + n) * w - row.late_visits * split.last_s
        forwards = row.forwards - row.inputs + share * row.ahead_visits
        of_many = PassChain(
            fixed_s, row.inputs, forwards, row.visits, row.firsts, row.hops + port_waits(p)
        )
        chains.append(
            PassChain(*(np.where(p > 2, a, b) for a, b in zip(of_many, of_two, strict=True)))
        )
    return tuple(chains)


def port_waits(p: Ints) -> Floats:
    """Hops added to the chains of DualPipe for waits at ports.

    With hops of up to a fifth of a pass, no simulated pipeline needed more.
    """
    return np.where(p > 6, p / 4 + 2.25, 2.0 * (p > 2))


class StageLayers(NamedTuple):
    """Layers (n,) of a full stage, how many of them the first and the last stage lack, and the
    seconds for gradients of weights of further prediction layers.
    """

    layers: Ints
    first_lacks: Ints
    last_lacks: Ints
    further_s: Any


def schedule_chains(
    schedule: str, p: Ints, m: Ints, layer: Passes, added_s: Any, layers: StageLayers
) -> tuple[PassChain, ...]:
    """Return the chains of passes of a schedule that splits the backward pass of a layer.

    Parameters
    ----------
    added_s
        Seconds per layer of separate kernels that accumulate gradients of weights.
    """
    full_layers, first_lacks, last_lacks, further_s = layers
    weights, inputs = layer.weights + added_s, layer.backward - layer.weights
    hidden = np.minimum(np.minimum(weights, inputs), layer.forward)
    split = Split(
        weights_s=full_layers * weights,
        hidden_s=full_layers * hidden,
        last_s=further_s - last_lacks * layer.weights,  # gradients are added up as for a full stage
        first_share=first_lacks / full_layers,
        light_s=np.maximum(0.0, first_lacks * layer.backward - full_layers * (inputs - hidden)),
    )
    chains = (zero_bubble_chains if schedule == "zb-h1" else two_way_chains)(p, m, split)
    return tuple(
        chain._replace(fixed_s=AffineSeconds(chain.fixed_s + np.zeros(len(m)))) for chain in chains
    )


def met_hops(dp_mode: str, zero: Ints, m: Ints, hops: Floats, bubble_hops: Floats) -> Floats:
    """Count the hops of a stage that share the links with gradients at the same time.

    Gradients that are one step late overlap with all hops. Gradients that hide behind compute start
    once the forward hops are over: they overlap with half the hops of one micro-batch, or with
    those of all micro-batches where shards are reduced in each; with half of the hops that fill and
    drain the pipeline; and with one hop that is in flight when they start.
    """
    if dp_mode == "sync":
        return np.zeros(len(zero))
    if dp_mode == "stale-1":
        return hops * m + bubble_hops
    return np.asarray(hops * np.where(zero >= 2, m, 0.5) + 0.5 * bubble_hops + 1)
