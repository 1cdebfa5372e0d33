"""What stages of a pipeline wait for: hops from stage to stage, and the last one with its logits.

The counts reproduce a simulation of 1F1B and interleaved 1F1B with rendezvous sends, one message at a time on each port
and direction; docs/model.md has the rules.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

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
