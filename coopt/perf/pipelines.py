"""What stages of a pipeline wait for: hops from stage to stage, and the last one with its logits.

The counts reproduce a simulation of 1F1B and interleaved 1F1B with rendezvous sends, one message at a time on each port
and direction; docs/model.md has the rules.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coopt.perf.affine import AffineSeconds
from coopt.perf.kernels import Passes
from coopt.perf.mapping import Floats, Ints


class EndWait(NamedTuple):
    """How a middle stage waits for the last one: of how many micro-batches, and the layers, with their traffic and
    forward alone, by which the chain of passes is shorter for waiting no more often; each of shape (n,) or a number.
    """

    passes: Any
    layers: Any = 0.0
    forward_layers: Any = 0.0


class PipelineWaits(NamedTuple):
    """What stages wait for beside passes, as numbers of hops; each of the shape of p, v and m.

    `hops` of a middle stage for a micro-batch, of which the last one is spared `spared_hops`; `bubble_hops` of the
    iteration while the pipeline fills and drains, and `late_hops` more where the last stage sets the pace. Where it
    does not, a middle stage still waits for its logits `end_passes` times; `few_passes` times where it is lighter.
    Where two stages interleave they go in step, and both are lighter at different steps, `in_step` of them.
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
            2v + (1 - p/m)(2v/(p-1) - 2/p) & p \text{ odd}, v > 1 \\ 2v & \text{otherwise} \end{cases}

    Two stages have one neighbour each. The sends of an interleaved schedule run round the ring of stages in both
    directions; an odd ring cannot pair all its members at once, but in the first p micro-batches. Where there are no
    more than these, all passes forward go ahead of all backward.
    """
    rings, odd, ahead = v > 1, p % 2 == 1, (v > 1) & (m == p)
    unpaired = (1 - p / m) * (2 * v / np.maximum(p - 1, 1) - 2 / p)
    two = np.where(rings, 2 * v - 0.5 * ~ahead, 1.0)
    hops = np.where(p == 2, two, 2 * v + np.where(odd & rings, unpaired, 0.0))
    bubble = np.where(p == 2, np.where(rings, 0.0, 1.0), np.maximum(2.0 * p - 5.0 + ahead, 0.0))
    ends = (p > 2) & ~ahead
    spared, late = np.where(rings & ~odd, 1 - 1 / p, 1.0), np.where(rings & ~odd, 1.0, 2.0)
    passes = np.where(rings & (p != 3), m // p + 1, np.minimum(m, 2))
    few = np.where(ahead, 1.0, np.minimum(m, 2))
    in_step = np.where((p == 2) & rings & ~ahead, m / 2 - 1.0, 0.0)
    hops = np.where(p == 1, 0.0, hops)
    return PipelineWaits(hops, spared * ends, bubble, late * ends, np.asarray(passes * 1.0), few, in_step)


class PassChain(NamedTuple):
    """A chain of passes of an iteration, each of which waits for the one before; shape (n,) or a number each.

    It is as long as a full stage takes for all micro-batches and for `stages` more, `forwards` passes forward of such a
    stage, `fixed_s`, and what the last one takes longer for `visits` micro-batches, less the layers that the first one
    lacks for `firsts` of them; and as `hops` from stage to stage.
    """

    fixed_s: Any
    stages: Any
    forwards: Any
    visits: Any
    firsts: Any
    hops: Any


class Split(NamedTuple):
    """Passes (n,) of a schedule that splits the backward pass, without traffic.

    `weights_s` of a micro-batch on a full stage give gradients of weights, and `hidden_s` is the least of these, the
    other backward seconds and the pass forward. `last_s` is what the last stage has more of the former; its logits have
    all their gradients at once. The first stage lacks `first_share` of its layers, of which `light_s` shorten no chain.
    """

    weights_s: Any
    hidden_s: Any
    last_s: Any
    first_share: Any
    light_s: Any


def zero_bubble_chains(p: Ints, m: Ints, split: Split) -> tuple[PassChain, ...]:
    r"""The chains of ZB-H1, the longest of which is the time of the pipeline; docs/model.md, Schedules.

    With F, B and W for the pass forward, for gradients of inputs and for those of weights a bubble is left of

    .. math:: (p-1)(F + B) - (\min(m, p) - 1) \min(F, B, W)

    as where a middle stage binds, or seen from the last one (p - 1) F.
    """
    filled, late_s = np.minimum(m, p), split.last_s
    left_s = split.light_s - (p - 1) * split.weights_s - (filled - 1) * split.hidden_s
    spared_s = split.hidden_s * (m > 1)
    there_and_back = 2 * (p - 1)
    hops = there_and_back + 2 * np.minimum(p - 1, np.maximum(m - 2, 0))
    twice, soon = np.minimum(m, 2), np.minimum(m, m - filled + 2)
    rounds = np.maximum(1 + (m - 2) / p, 2)  # there and back, where gradients of weights are shorter than two hops
    again_s = (rounds - 2) * (p - 1) * split.weights_s
    return (
        PassChain(left_s - twice * late_s, p - 1, 0.0, twice, 1, hops),
        PassChain(left_s - late_s + spared_s, p - 1, -1.0, 1.0, 1, hops),
        PassChain(left_s + split.weights_s + spared_s, p - 2, 0.0, 0.0, 1, hops),
        PassChain(left_s - filled * late_s, p - 1, 0.0, m, 1, there_and_back),
        PassChain(left_s - (soon - m + filled) * late_s, p - 1, 0.0, soon, 1, np.where(p > 2, hops, there_and_back)),
        PassChain(left_s - twice * late_s - again_s, p - 1, 0.0, twice, 1, there_and_back * rounds),
        PassChain(0.0, 0.0, p - 1 - split.first_share, m, 0, p - 1),
    )


def two_way_chains(p: Ints, m: Ints, split: Split) -> tuple[PassChain, ...]:
    r"""The chains of DualPipe, the longest of which is the time of the pipeline; docs/model.md, Schedules.

    Stages i and p + 1 - i share a GPU, n = p/2 - 1 of such pairs away from the middle one, and m/2 micro-batches go
    either way. A bubble is left of

    .. math:: \max\bigl((n-1) F + 2 n B, \; 2 n F + n B\bigr) - n W

    as where the middle binds, which is at most that of the authors, :math:`n (F + 2 B - W)`; or seen from the GPU with
    both ends of the model n(B - W).
    """
    n, each, w, late_s = p // 2 - 1, m // 2, split.hidden_s, split.last_s
    through, share = (2 - 2 / p) * m + 1.5 * p - 6, split.first_share
    near, far = np.minimum(each, each - 2 * n + 1), np.minimum(each, each - n + 1)
    inner = (
        PassChain(-3 * n * w - late_s, 2 * n, share - n - 1, 2, 2, through),
        PassChain(-2 * n * w, n, share + n, 1, 2, through - n),
        PassChain((1 - 3 * n) * w, 2 * n - 1, -n, 0, 1, through),
        PassChain(-2 * n * w, n, n - 1, 0, 1, through),
        PassChain(-3 * n * w - late_s, 2 * n, -n - 1, near - 1, near - 1, np.minimum(5.5 * p - 6, through - 1)),
        PassChain(-2 * n * w, n, n, near - 2, near - 2, np.minimum(5 * p - 5, through - 1)),
        PassChain((1 - 3 * n) * w - late_s, 2 * n - 1, 1 - n, near, near, np.minimum(5.5 * p - 6, through - 1)),
        PassChain((1 - 3 * n) * w - late_s, 2 * n - 1, 1 - 2 * n, far, far, 3.5 * p - 8),
    )
    ends = np.where(p > 1, each, m), np.where(p > 2, 2 * p - 2, m - 1)
    outer = PassChain(-2 * np.maximum(n, 0) * w, np.maximum(n, 0), -np.maximum(n, 0), ends[0], ends[0], ends[1])
    whole = (PassChain(*(np.where(p > 2, a, b) for a, b in zip(one, outer, strict=True))) for one in inner)
    return *whole, outer


class StageLayers(NamedTuple):
    """Layers (n,) of a full stage, and how many the first and the last one lack; layers of further predictions."""

    full: Ints
    first_lacks: Ints
    last_lacks: Ints
    further: int


def schedule_chains(
    schedule: str, p: Ints, m: Ints, layer: Passes, added_s: Any, layers: StageLayers
) -> tuple[PassChain, ...]:
    """The chains of passes of a schedule that splits the backward pass of a layer.

    Parameters
    ----------
    added_s
        Seconds of a layer in which gradients of weights are added up by kernels of their own.
    """
    full, lighter, fewer, further = layers
    weights, rest = layer.weights + added_s, layer.backward - layer.weights
    hidden = np.minimum(np.minimum(weights, rest), layer.forward)
    split = Split(
        weights_s=full * weights,
        hidden_s=full * hidden,
        last_s=(further - fewer) * layer.weights,  # gradients are added up as for a full stage
        first_share=lighter / full,
        light_s=np.maximum(0.0, lighter * layer.backward - full * (rest - hidden)),
    )
    chains = (zero_bubble_chains if schedule == "zb-h1" else two_way_chains)(p, m, split)
    return tuple(one._replace(fixed_s=AffineSeconds(one.fixed_s + np.zeros(len(m)))) for one in chains)


def met_hops(dp_mode: str, zero: Ints, m: Ints, hops: Floats, bubble_hops: Floats) -> Floats:
    """Hops of a stage that are under way at the same time as gradients.

    Gradients one step late are there all along. Those that hide set out when hops forward are over: they meet half the
    hops of one micro-batch, or all hops of all where shards are reduced with each, half of those that fill and drain
    the pipeline, and one that is on its way when they set out.
    """
    if dp_mode == "sync":
        return np.zeros(len(zero))
    if dp_mode == "stale-1":
        return hops * m + bubble_hops
    return np.asarray(hops * np.where(zero >= 2, m, 0.5) + 0.5 * bubble_hops + 1)
