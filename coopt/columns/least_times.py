r"""Times that no placement of a mapping undercuts, so that most mappings need no placement.

A group of g GPUs has x of its ranks in an HB domain and y = g/x domains. Inside a domain a GPU moves F bytes a second,
between domains at most R; W is the larger of both. Whatever x and y are,

- an all-gather or a reduce-scatter of D bytes takes at least

  .. math:: \frac{x-1}{x} \frac{D}{F} + \frac{y-1}{y} \frac{D}{x R} \ge
      \frac{D}{W} \Bigl(1 - \frac{1}{x} + \frac{1}{x} - \frac{1}{x y}\Bigr) = \frac{g-1}{g} \frac{D}{W}

  and that is what it takes with one rank in each domain and W between them; a ring through all ranks sends
  (g - 1)/g of the data at F, and sums in switches, which send half as much at the least, no less than half of it;
- a send takes at least its bytes over the larger of F and of the share of R that sends reach;
- an all-to-all takes at least what the best of all x·y = g does.

Starts of collectives are as many however a group lies. Steps are not, and are left out. An iteration takes no less time
where every collective and every send takes no less, so its time with one rank in each domain, on such wires and without
steps, is a bound for all placements. Where gradients hide, they do so behind traffic of TP and experts as if none of it
left its domain: an iteration has that traffic in every layer that gradients hide behind, so that it takes no less time
where this traffic does not. What hops take longer where they meet gradients is left out: they meet none where stages
or replicas share a domain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coopt.columns.grid import divisors
from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.perf.affine import Reciprocals
from coopt.perf.collectives import LinkRates, Visits, all_to_all, forwards_at_once, links_of, visits_of
from coopt.perf.iterations import iteration
from coopt.perf.kernels import device_of
from coopt.perf.layer import layer_s
from coopt.perf.mapping import Floats, Ints, Mappings, Placements, micro_batches, stage_layers
from coopt.perf.pipelines import pipeline_waits

SHORT = 1 - 1e-9  # a bound on time is this much short, so that sums in another order stay above it


def without_steps(gpu: Gpu) -> Gpu:
    """A GPU whose collectives take a start but no steps, which are fewer for some groups that lie across domains."""
    return gpu.model_copy(update={"efficiency": gpu.efficiency.model_copy(update={"step_s": 0.0})})


def compute_s(workload: Workload, gpu: Gpu, mappings: Mappings) -> Floats:
    r"""What the layers of a middle stage alone take of an iteration (n,), so that it takes no less.

    .. math:: T \ge \Bigl[\Bigl(m + \frac{p-1}{v}\Bigr) \ell - (1 + K) a - \min\Bigl(E' o, \frac{\ell}{v}\Bigr)\Bigr]
        \tau \, f

    with :math:`\tau` the seconds of a layer, f the factor of the software and of stragglers, a and o the layers missing
    on the first and on the last stage, and K and E' as in docs/model.md, The pipeline. There

    .. math:: T \ge f \, \bigl(m \cdot \text{mid} + \text{bubble} + \text{ends}\bigr), \qquad
        \text{mid} \ge \ell w, \quad \text{bubble} \ge \frac{p-1}{v} \ell w - a w, \quad \text{extra} \ge -o w

    with w a layer and its traffic, since gradients added up, hops, logits and the optimizer take no less than nothing.
    Where layers are missing, ends is at least E' extra - K a w and at least -(l/v) w - K a w; where none is, it is
    E extra, which is not below 0, and a and o are 0. So T is at least the brackets times w f. They are not negative,
    so :math:`\tau`, which is at most w, may stand in its place: fewer than p v layers are missing, so 2 a < p v, and
    where v > 1, m is at least p, and m = 2 (1 + K) for two stages. Hence (1 + K) a is at most (p - 1) l where v = 1
    and m l/2 elsewhere, and l/v at most the rest of m l. Layers are timed once for many mappings.

    Of a schedule that splits the backward pass a chain of passes through middle stages alone is (m l - a) w at least,
    and m (l - (a + o)/2) w where there are two stages, both of them on each GPU.
    """
    model, m = workload.model, micro_batches(mappings, workload.global_batch)
    layers, last_missing = stage_layers(model, mappings)
    chunk = layers // mappings.interleave
    first_missing = mappings.pp * layers - model.layers - last_missing
    factor = workload.options.slowdown * workload.options.software.overhead
    layer_time_s = layer_s(workload, device_of(workload, gpu), mappings) * factor * SHORT
    if workload.options.schedule != "1f1b":
        are_one_pair = (mappings.pp == 2) & (workload.options.schedule == "dualpipe")
        missing_layers = np.where(are_one_pair, m / 2 * (first_missing + last_missing), first_missing)
        return np.asarray((m * layers - missing_layers) * layer_time_s)
    waits = pipeline_waits(mappings.pp, mappings.interleave, m)
    missing_layers = (1 + waits.in_step) * first_missing + np.minimum(waits.few_passes * last_missing, chunk)
    layer_passes = m * layers + (mappings.pp - 1) * chunk - missing_layers
    return np.asarray(layer_passes * layer_time_s)


def least_time_s(workload: Workload, gpu: Gpu, mappings: Mappings, *, hb_gbyte_s: float, byte_s: float) -> Floats:
    """What each mapping takes at least (n,), wherever its ranks lie.

    Parameters
    ----------
    hb_gbyte_s
        The most that a GPU moves inside a domain (10^9 bytes/s).
    byte_s
        The most that a GPU moves between domains (bytes/s).
    """
    unit = np.ones(len(mappings), dtype=np.int64)
    spread = Placements(tp=unit, cp=unit, pp=unit, dp=unit)
    parts = iteration(workload, without_steps(gpu), hb_gbyte_s, mappings, spread)
    window = parts.window + (parts.tp + parts.ep) * parts.behind  # as where their groups lie inside
    parts = replace(parts, met=np.zeros(len(mappings)), window=window)
    links = links_of(workload, gpu, hb_gbyte_s)
    wires = _best_wires(links, byte_s, mappings.ep, visits_of(workload), forwards_at_once(workload))
    if workload.options.schedule == "dualpipe":
        wires = replace(wires, tied=wires.pp)  # GPUs with the same stages send each other messages
    return np.asarray(parts.time_s(wires) * SHORT)


def _best_wires(links: LinkRates, byte_s: float, ep: Ints, visits: Visits, at_once: bool) -> Reciprocals:
    """Seconds per byte between domains at which one rank in each takes no longer than any placement."""
    gathers = links.rail / max(links.hb_byte_s, links.sum_byte_s, links.rail * byte_s)
    sends = links.send / max(links.hb_byte_s, links.send * byte_s)
    degrees, position = np.unique(ep, return_inverse=True)
    exchanges = np.array([_exchange(links, byte_s, g, visits, at_once) for g in degrees.tolist()])
    rings = dict.fromkeys(("tp", "cp", "dp", "edp", "tied"), gathers)
    return Reciprocals(**rings, pp=sends, ep=exchanges[position.reshape(-1)])


def _exchange(links: LinkRates, byte_s: float, g: int, visits: Visits, at_once: bool) -> float:
    """Seconds per byte between domains at which g ranks in as many domains exchange as fast as in the best x·y = g."""
    if g == 1:
        return 0.0
    ways = [all_to_all(links, 1.0, g // y, y, visits) for y in divisors(g)]
    levels = [(float(way.fixed - links.latency_s), float(way.ep / byte_s)) for way in ways]
    fastest_s = min(map(max if at_once else sum, levels))
    return max(fastest_s / float(ways[-1].ep), 0.0)
