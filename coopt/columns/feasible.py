r"""The mappings of a workload on some GPUs that fit into memory, and what each takes at least on
any network.

No placement of a mapping undercuts its least time, so that most mappings need no placement.

A group of g GPUs has x of its ranks in an HB domain and y = g/x domains. Inside a domain a GPU
moves F bytes a second, between domains at most R; W is the larger of both. Whatever x and y are,

- an all-gather or a reduce-scatter of D bytes takes at least

  .. math:: \frac{x-1}{x} \frac{D}{F} + \frac{y-1}{y} \frac{D}{x R} \ge
      \frac{D}{W} \Bigl(1 - \frac{1}{x} + \frac{1}{x} - \frac{1}{x y}\Bigr)
      = \frac{g-1}{g} \frac{D}{W}

  and that is what it takes with one rank in each domain and W between them; a ring through all
  ranks sends (g - 1)/g of the data at F, and sums in switches, which send half as much at the
  least, no less than half of it;
- a send takes at least its bytes over the larger of F and of the share of R that sends reach;
- an all-to-all takes at least what the best of all x·y = g does.

Starts of collectives are as many however a group lies. Steps are not, and are left out. An
iteration takes no less time where every collective and every send takes no less, so its time with
one rank in each domain, on such wires and without steps, is a bound for all placements. Where
gradients hide, they do so behind traffic of TP and experts as if none of it left its domain: an
iteration has that traffic in every layer that gradients hide behind, so that it takes no less time
where this traffic does not. What hops take longer where they meet gradients is left out: they meet
none where stages or replicas share a domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from coopt.columns.context import DomainSet
from coopt.columns.grid import (
    MappingCounts,
    allowed_recompute,
    counts_on,
    divisors,
    mappings,
    whole_mappings,
)
from coopt.instance.hardware import Gpu
from coopt.instance.numerics import REORDERED
from coopt.instance.workload import BOUNDS, Workload
from coopt.perf.affine import NO_NETWORK, Reciprocals
from coopt.perf.collectives import (
    LinkRates,
    Visits,
    all_to_all,
    forwards_at_once,
    links_of,
    visits_of,
)
from coopt.perf.iterations import iteration
from coopt.perf.kernels import device_of
from coopt.perf.layer import layer_s
from coopt.perf.mapping import (
    NONE,
    Bools,
    Floats,
    Ints,
    Mappings,
    Placements,
    micro_batches,
    stage_layers,
)
from coopt.perf.memory import memory_bytes
from coopt.perf.pipelines import pipeline_waits

KEPT = 16
"""Lists of mappings, and placements of each, that are kept for the next question of a process."""
SHORT = 1e-9  # by this share bounds on time are short, so that sums of other terms stay above them


@dataclass(frozen=True, kw_only=True)
class FeasibleMappings:
    """Mappings of a workload on N GPUs that fit into memory, with a bound below their time on any
    network.

    Those that save memory without need stand beside them.
    """

    workload: Workload
    gpus: int
    fit: Mappings
    fastest_s: Floats
    uneven: MappingCounts
    too_large: Mappings
    needless: Mappings
    least_bytes: float
    _least_s: dict[tuple[float, float], Floats] = field(
        default_factory=dict, compare=False, repr=False
    )
    _counts: dict[DomainSet, tuple[Counter[str], Ints]] = field(
        default_factory=dict, compare=False, repr=False
    )
    pools: dict[Hashable, tuple[Any, Counter[str]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def least_s(self, gpu: Gpu, hb_gbyte_s: float, byte_s: float) -> Floats:
        """What each mapping that fits takes at least on such wires, worked out once for all domains
        that have them.
        """
        wires = (hb_gbyte_s, byte_s)
        if wires not in self._least_s:
            self._least_s[wires] = least_time_s(
                self.workload, gpu, self.fit, hb_gbyte_s=hb_gbyte_s, byte_s=byte_s
            )
        return self._least_s[wires]

    def counts_on(self, site: DomainSet) -> tuple[Counter[str], Ints]:
        """How many placements have those that do not fit, by cause, and each that fits, worked out
        once for a site.
        """
        if site not in self._counts:
            uneven = int(counts_on(self.workload, self.uneven.rows, site) @ self.uneven.counts)
            dropped = {"memory": self.too_large, "dominated": self.needless}
            counts = {
                cause: int(counts_on(self.workload, rows, site).sum())
                for cause, rows in dropped.items()
            }
            self._counts[site] = (
                Counter({"divisibility": uneven} | counts),
                counts_on(self.workload, self.fit, site),
            )
        return self._counts[site]

    def keep(self, key: Hashable, answer: tuple[Any, Counter[str]]) -> None:
        """Remember a pool for questions that differ in prices and limits alone, in place of the
        oldest of many.
        """
        if len(self.pools) >= KEPT:
            oldest, *_ = self.pools  # read at once, as another thread may keep a pool meanwhile
            self.pools.pop(oldest, None)
        self.pools[key] = answer


def feasible_mappings(workload: Workload, gpu: Gpu, gpus: int) -> FeasibleMappings:
    """Enumerate a workload's mappings and keep those that fit into memory; kept for questions with
    other bounds, or with other prices.
    """
    unbound = dict.fromkeys((*BOUNDS, "train_tokens")) | {"name": ""}
    return replace(
        _feasible_mappings(workload.model_copy(update=unbound), gpu.unpriced, gpus),
        workload=workload,
    )


@lru_cache(maxsize=KEPT)
def _feasible_mappings(workload: Workload, gpu: Gpu, gpus: int) -> FeasibleMappings:
    even_mappings, uneven = mappings(workload, gpus)
    needed_bytes = memory_bytes(workload, even_mappings)
    fits = needed_bytes <= gpu.usable_bytes
    fit = even_mappings.take(fits)
    saves = saves_needlessly(workload, gpu, fit)
    needless, fit = fit.take(saves), fit.take(~saves)
    return FeasibleMappings(
        workload=workload,
        gpus=gpus,
        fit=fit,
        fastest_s=fastest_s(workload, gpu, fit),
        uneven=uneven,
        too_large=even_mappings.take(~fits),
        needless=needless,
        least_bytes=float(needed_bytes.min(initial=np.inf)),
    )


def saves_needlessly(workload: Workload, gpu: Gpu, fit: Mappings) -> Bools:
    """Mappings alike to another that fits too, is no slower anywhere, and saves less memory; shape
    (n,).

    Whatever is repeated adds to the time of a layer, unless less then goes to the host; so may what
    goes there, and ZeRO 2 and 3 send in every micro-batch what ZeRO 1 sends once an iteration;
    groups lie alike. Where gradients hide behind compute, more of these may hide more, and where
    collectives may run in several ways, other ways may be taken for them: there nothing is said to
    be needless.
    """
    needless = np.zeros(len(fit), dtype=np.bool_)
    if workload.options.dp_mode == "overlap" or workload.options.collectives != "levels":
        return needless
    at_home, offloads = fit.offload_percent == 0, workload.mapping.offload_percent
    repeats = (
        at_home & (fit.recompute != NONE) if "none" in allowed_recompute(workload) else needless
    )
    lighter_choices = [(repeats, {"recompute": NONE})]
    lighter_choices += [
        (fit.offload_percent > share, {"offload_percent": share}) for share in sorted(offloads)[:-1]
    ]
    lighter_choices += [
        (fit.zero > stage, {"zero": stage}) for stage in (1, 2) if stage in workload.mapping.zero
    ]
    for applies, change in lighter_choices:
        rows = np.flatnonzero(applies & ~needless)
        savers = fit.take(rows)
        alternatives = replace(
            savers, **{key: np.full(len(savers), value) for key, value in change.items()}
        )
        needless[rows] = memory_bytes(workload, alternatives) <= gpu.usable_bytes
    return needless


def fastest_s(workload: Workload, gpu: Gpu, mappings: Mappings) -> Floats:
    """Times (n,) that no placement undercuts: with wires without end, and with starts of
    collectives but no steps.
    """
    inside = Placements(tp=mappings.tp, cp=mappings.cp, pp=mappings.pp, dp=mappings.dp)
    return iteration(workload, without_steps(gpu), np.inf, mappings, inside).time_s(NO_NETWORK) * (
        1.0 - REORDERED
    )


def possibly_in_time(
    workload: Workload,
    gpu: Gpu,
    quadruples: Iterable[tuple[int, int, int, int]],
    *,
    hb_gbyte_s: float,
    byte_s: float,
) -> Mappings:
    """The mappings of some (t, c, p, d) that fit into memory and may meet the bound on such wires,
    as `least_time_s` has them. The layers of most take longer alone, which is known before their
    memory is, and whatever ZeRO does.
    """

    def is_quick(rows: Mappings) -> Bools:
        return compute_s(workload, gpu, rows) <= workload.bound_s

    even_mappings = whole_mappings(workload, quadruples, is_quick)
    fit = even_mappings.take(memory_bytes(workload, even_mappings) <= gpu.usable_bytes)
    fit = fit.take(~saves_needlessly(workload, gpu, fit))
    return fit.take(
        least_time_s(workload, gpu, fit, hb_gbyte_s=hb_gbyte_s, byte_s=byte_s) <= workload.bound_s
    )


def without_steps(gpu: Gpu) -> Gpu:
    """A GPU whose collectives take a start but no steps, which are fewer for some groups that lie
    across domains.
    """
    return gpu.model_copy(update={"efficiency": gpu.efficiency.model_copy(update={"step_s": 0.0})})


def compute_s(workload: Workload, gpu: Gpu, mappings: Mappings) -> Floats:
    r"""What the layers of a middle stage alone take of an iteration (n,), so that it takes no less.

    .. math:: T \ge \Bigl[\Bigl(m + \frac{p-1}{v}\Bigr) \ell - (1
        + K) a - \min\Bigl(E' o, \frac{\ell}{v}\Bigr)\Bigr]
        \tau \, f

    with :math:`\tau` the seconds of a layer, f the factor of the software and of stragglers, a and
    o the layers missing on the first and on the last stage, and K and E' as in docs/model.md, The
    pipeline. There

    .. math:: T \ge f \, \bigl(m \cdot \text{mid} + \text{bubble} + \text{ends}\bigr), \qquad
        \text{mid} \ge \ell w, \quad \text{bubble} \ge \frac{p-1}{v} \ell w - a w,
        \quad \text{extra} \ge -o w

    with w a layer and its traffic, since gradients added up, hops, logits and the optimizer take no
    less than nothing. Where layers are missing, ends is at least E' extra - K a w and at least
    -(l/v) w - K a w; where none is, it is E extra, which is not below 0, and a and o are 0. So T is
    at least the brackets times w f. They are not negative, so :math:`\tau`, which is at most w, may
    stand in its place: fewer than p v layers are missing, so 2 a < p v, and where v > 1, m is at
    least p, and m = 2 (1 + K) for two stages. Hence (1 + K) a is at most (p - 1) l where v = 1 and
    m l/2 elsewhere, and l/v at most the rest of m l. Layers are timed once for many mappings.

    Of a schedule that splits the backward pass a chain of passes through middle stages alone is (m
    l - a) w at least, and m (l - (a + o)/2) w where there are two stages, both of them on each GPU.
    """
    model, m = workload.model, micro_batches(mappings, workload.global_batch)
    layers, last_missing = stage_layers(model, mappings)
    chunk = layers // mappings.interleave
    first_missing = mappings.pp * layers - model.layers - last_missing
    factor = workload.options.slowdown * workload.options.software.overhead
    layer_time_s = layer_s(workload, device_of(workload, gpu), mappings) * factor * (1 - SHORT)
    if workload.options.schedule != "1f1b":
        are_one_pair = (mappings.pp == 2) & (workload.options.schedule == "dualpipe")
        missing_layers = np.where(
            are_one_pair, m / 2 * (first_missing + last_missing), first_missing
        )
        return np.asarray((m * layers - missing_layers) * layer_time_s)
    waits = pipeline_waits(mappings.pp, mappings.interleave, m)
    missing_layers = (1 + waits.in_step) * first_missing + np.minimum(
        waits.few_passes * last_missing, chunk
    )
    layer_passes = m * layers + (mappings.pp - 1) * chunk - missing_layers
    return np.asarray(layer_passes * layer_time_s)


def least_time_s(
    workload: Workload, gpu: Gpu, mappings: Mappings, *, hb_gbyte_s: float, byte_s: float
) -> Floats:
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
    return np.asarray(parts.time_s(wires) * (1 - SHORT))


def _best_wires(
    links: LinkRates, byte_s: float, ep: Ints, visits: Visits, at_once: bool
) -> Reciprocals:
    """Seconds per byte between domains at which one rank in each takes no longer than any
    placement.
    """
    gathers = links.rail / max(links.hb_byte_s, links.sum_byte_s, links.rail * byte_s)
    sends = links.send / max(links.hb_byte_s, links.send * byte_s)
    degrees, position = np.unique(ep, return_inverse=True)
    exchanges = np.array([_exchange(links, byte_s, g, visits, at_once) for g in degrees.tolist()])
    rings = dict.fromkeys(("tp", "cp", "dp", "edp", "tied"), gathers)
    return Reciprocals(**rings, pp=sends, ep=exchanges[position.reshape(-1)])


def _exchange(links: LinkRates, byte_s: float, g: int, visits: Visits, at_once: bool) -> float:
    """Seconds per byte between domains at which g ranks in as many domains exchange as fast as in
    the best x·y = g.
    """
    if g == 1:
        return 0.0
    ways = [all_to_all(links, 1.0, g // y, y, visits) for y in divisors(g)]
    levels = [(float(way.fixed - links.latency_s), float(way.ep / byte_s)) for way in ways]
    fastest_s = min(map(max if at_once else sum, levels))
    return max(fastest_s / float(ways[-1].ep), 0.0)
