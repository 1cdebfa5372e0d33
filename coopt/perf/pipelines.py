"""What stages of a pipeline wait for: hops from stage to stage, and the last one with its logits.

The counts reproduce a simulation of 1F1B and interleaved 1F1B with rendezvous sends, one message at
a time on each port and direction; docs/model.md has the rules.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coopt.perf.affine import AffineSeconds
from coopt.perf.kernels import Passes
from coopt.perf.mapping import Floats, Ints


class EndWait(NamedTuple):
    """How a middle stage waits for the last one: of how many micro-batches, and the layers, with
    their traffic and forward alone, by which the chain of passes is shorter for waiting no more
    often; each of shape (n,) or a number.
    """

    passes: Any
    layers: Any = 0.0
    forward_layers: Any = 0.0


class PipelineWaits(NamedTuple):
    """What stages wait for beside passes, as numbers of hops; each of the shape of p, v and m.

    `hops` of a middle stage for a micro-batch, of which the last one is spared `spared_hops`;
    `bubble_hops` of the iteration while the pipeline fills and drains, and `late_hops` more where
    the last stage sets the pace. Where it does not, a middle stage still waits for its logits
    `end_passes` times; `few_passes` times where it is lighter. Where two stages interleave they go
    in step, and both are lighter at different steps, `in_step` of them.
    """

    hops: Floats
    spared_hops: Floats
    bubble_hops: Floats
    late_hops: Floats
    end_passes: Floats
    few_passes: Floats
    in_step: Floats


def pipeline_waits(p: Ints, v: Ints, m: Ints) -> PipelineWaits:
    r"""The hops of 1F1B (v = 1) and interleaved 1F1B; docs/model.md, The iteration.

    .. math::
        H = \begin{cases} 1 & p = 2, v = 1 \\ 2v - 1/2 & p = 2, v > 1, m > p \\
            2v + (1 - p/m)(2v/(p-1) - 2/p) & p \text{ odd}, v > 1 \\
            2v & \text{otherwise} \end{cases}

    Two stages have one neighbour each. The sends of an interleaved schedule run round the ring of
    stages in both directions; an odd ring cannot pair all its members at once, but in the first p
    micro-batches. Where there are no more than these, all passes forward go ahead of all backward.
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
    """A chain of passes of an iteration, each of which waits for the one before; shape (n,) or a
    number each.

    It is as long as a full stage takes for all micro-batches and for `stages` more, `forwards`
    passes forward of such a stage, `fixed_s`, and what the last one takes longer for `visits`
    micro-batches, less the layers that the first one lacks for `firsts` of them; and as `hops` from
    stage to stage.
    """

    fixed_s: Any
    stages: Any
    forwards: Any
    visits: Any
    firsts: Any
    hops: Any


class Split(NamedTuple):
    """Passes (n,) of a schedule that splits the backward pass, without traffic.

    `weights_s` of a micro-batch on a full stage give gradients of weights, and `hidden_s` is the
    least of these, the other backward seconds and the pass forward. `last_s` is what the last stage
    has more of the former; its logits have all their gradients at once. The first stage lacks
    `first_share` of its layers, of which `light_s` shorten no chain.
    """

    weights_s: Any
    hidden_s: Any
    last_s: Any
    first_share: Any
    light_s: Any


def zero_bubble_chains(p: Ints, m: Ints, split: Split) -> tuple[PassChain, ...]:
    r"""The chains of ZB-H1, the longest of which is the time of the pipeline; docs/model.md,
    Schedules.

    With F, B and W for the pass forward, for gradients of inputs and for those of weights a bubble
    is left of

    .. math:: (p-1)(F + B) - (\min(m, p) - 1) \min(F, B, W)

    as where a middle stage binds, or seen from the last one (p - 1) F.
    """
    filled, twice, late_s, weights_s = (
        np.minimum(m, p),
        np.minimum(m, 2),
        split.last_s,
        split.weights_s,
    )
    left_s = split.light_s - (p - 1) * weights_s - (filled - 1) * split.hidden_s
    loop, turns = 2 * (p - 1), np.maximum(m - 2, 0)
    # visits where each round trip of hops is for p micro-batches
    fewest_visits = np.minimum(m, turns // p + np.minimum(m, 2))
    fewer = np.maximum(fewest_visits, m - p + 1)  # where there is one round trip
    again_s = (
        fewer - fewest_visits
    ) * weights_s  # gradients of weights that are not waited for in further ones
    once, spared_s = loop + 2 * np.minimum(p - 2, turns), split.hidden_s * (m > 1)
    seldom = (
        PassChain(
            left_s - twice * late_s, p - 1, 0.0, twice, 1, loop + 2 * np.minimum(p - 1, turns)
        ),
        PassChain(left_s - late_s + spared_s, p - 1, -1.0, 1.0, 1, once),
        PassChain(left_s + weights_s + spared_s, p - 2, 0.0, 0.0, 1, once - 2),
    )
    # round trips that turn before the last stage, or at both ends before it
    inner_visits = turns // np.maximum(p - 1, 1) + 2
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
            fewest_visits,
            1,
            loop + 2 * (m - fewest_visits),
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
    """A chain of passes of DualPipe: F and B of a full stage beyond those of all micro-batches, and
    visits of the ends.

    Of the last stage `late_visits` leave out gradients of weights, of the first one `ahead_visits`
    leave out the pass forward.
    """

    forwards: Any
    inputs: Any
    visits: Any
    late_visits: Any
    firsts: Any
    ahead_visits: Any
    hops: Any


def two_way_rows(p: Ints, m: Ints) -> tuple[TwoWayRow, ...]:
    """The longest chains of DualPipe with p > 2 stages; docs/model.md, Schedules, derives their
    hops and visits.

    The middle, or the GPUs with the ends of the model, have passes all along, or hops do: in round
    trips between both ends, which take 2 p - 2 hops for p micro-batches, or between the GPUs beside
    these.
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
    # of rows that four stages have with gradients of weights, and all of the first stage
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
    r"""The chains of DualPipe, the longest of which is the time of the pipeline; docs/model.md,
    Schedules.

    Stages i and p + 1 - i share a GPU, n = p/2 - 1 of such pairs away from the middle one, and m/2
    micro-batches go either way. Without hops a bubble is left of

    .. math:: \max\bigl((n-1) F + 2 n B, \; 2 n F + n B\bigr) - n W

    as where the middle binds, which is at most that of the authors, :math:`n (F + 2 B - W)`; or
    seen from the GPU with both ends of the model n(B - W). Messages wait for each other at ports in
    orders that change with every length of a pass: `port_waits` hops are added. With stages of as
    many layers each and hops of up to a fifth of a pass no random pipeline was charged too little;
    docs/model.md says by how much others are.
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
    """Hops that DualPipe waits at ports, added to its chains: with hops of up to a fifth of a pass
    none needed more.
    """
    return np.where(p > 6, p / 4 + 2.25, 2.0 * (p > 2))


class StageLayers(NamedTuple):
    """Layers (n,) of a full stage, and how many the first and the last one lack; seconds in which
    the layers of further predictions give gradients of weights.
    """

    layers: Ints
    first_lacks: Ints
    last_lacks: Ints
    further_s: Any


def schedule_chains(
    schedule: str, p: Ints, m: Ints, layer: Passes, added_s: Any, layers: StageLayers
) -> tuple[PassChain, ...]:
    """The chains of passes of a schedule that splits the backward pass of a layer.

    Parameters
    ----------
    added_s
        Seconds of a layer in which gradients of weights are added up by kernels of their own.
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
    """Hops of a stage that are under way at the same time as gradients.

    Gradients one step late are there all along. Those that hide set out when hops forward are over:
    they meet half the hops of one micro-batch, or all hops of all where shards are reduced with
    each, half of those that fill and drain the pipeline, and one that is on its way when they set
    out.
    """
    if dp_mode == "sync":
        return np.zeros(len(zero))
    if dp_mode == "stale-1":
        return hops * m + bubble_hops
    return np.asarray(hops * np.where(zero >= 2, m, 0.5) + 0.5 * bubble_hops + 1)
