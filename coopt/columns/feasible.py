r"""Mappings of a workload that fit into memory, with a lower bound on the time of each on any
network.

No placement of a mapping is faster than its bound, so that most mappings never need to be placed.

A group of g GPUs has x of its ranks in an HB domain and y = g/x domains. A GPU moves F bytes per
second inside a domain and at most R between domains; W is the larger of both. For all x and y,

- an all-gather or reduce-scatter of D bytes takes at least

  .. math:: \frac{x-1}{x} \frac{D}{F} + \frac{y-1}{y} \frac{D}{x R} \ge
      \frac{D}{W} \Bigl(1 - \frac{1}{x} + \frac{1}{x} - \frac{1}{x y}\Bigr)
      = \frac{g-1}{g} \frac{D}{W}

  which is its time with one rank in each domain and W between domains; a ring through all ranks
  sends (g - 1)/g of the data at F, and sums in switches, which send at least half as much, take no
  less than half of that time;
- a send takes at least its bytes divided by the larger of F and the share of R that sends reach;
- an all-to-all takes at least the minimum over all x·y = g.

The number of collectives does not depend on the placement. The number of steps does, so steps are
left out. An iteration takes no less time where every collective and every send takes no less, so
its time with one rank in each domain, with these bandwidths and without steps, is a lower bound for
all placements. Where gradients overlap with compute, they overlap here with TP and expert traffic
as if all of it stayed inside a domain: every layer that gradients overlap with has that traffic, so
that without it the iteration is no slower. The slowdown of hops that share links with gradients is
left out: there is none where stages or replicas share a domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from coopt.columns.grid import (
    DomainSet,
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
from coopt.perf.collectives import (
    NO_NETWORK,
    LinkRates,
    Reciprocals,
    links_of,
)
from coopt.perf.exchanges import Visits, forwards_at_once, started_exchange, visits_of
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
    most_layers,
    stage_layers,
)
from coopt.perf.memory import memory_bytes
from coopt.perf.pipelines import pipeline_waits

KEPT = 16
"""Number of lists of mappings, and of placements of each, kept for the next question of the
process.
"""
SHORT = 1e-9  # relative reduction of lower bounds, so that sums in another order stay above them


class OfWorkload(Protocol):
    """What is worked out for a workload, and holds for those that differ from it in no time."""

    def of(self, workload: Workload) -> Self:
        """Return the same for such a workload."""


A = TypeVar("A", bound=OfWorkload)


K = TypeVar("K")
V = TypeVar("V")


def recalled(answers: dict[K, V], key: K, make: Callable[[], V]) -> V:
    """Return the answer that is kept for a key, made where there is none yet."""
    if key not in answers:
        answers[key] = make()
    return answers[key]


def keep(answers: dict[K, V], key: K, answer: V) -> None:
    """Keep an answer in place of the oldest of many."""
    if key not in answers and len(answers) >= KEPT:
        oldest, *_ = answers  # read at once, as another thread may keep an answer meanwhile
        answers.pop(oldest, None)
    answers[key] = answer


@dataclass(frozen=True, kw_only=True)
class FeasibleMappings:
    """Mappings of a workload on N GPUs that fit into memory (`fit`), with a lower bound on their
    time on any network (`fastest_s`, s).

    `too_large` are mappings that do not fit, `needless` those that save memory without need, and
    `uneven` counts those that do not divide evenly. `least_bytes` is the minimum memory of any
    mapping.
    """

    workload: Workload
    gpus: int
    fit: Mappings
    fastest_s: Floats
    uneven: MappingCounts
    too_large: Mappings
    needless: Mappings
    least_bytes: float
    _lower_bound_s: dict[tuple[float, float], Floats] = field(
        default_factory=dict, compare=False, repr=False
    )
    _counts: dict[DomainSet, tuple[Counter[str], Ints]] = field(
        default_factory=dict, compare=False, repr=False
    )
    pools: dict[Hashable, tuple[Any, Counter[str]]] = field(
        default_factory=dict, compare=False, repr=False
    )
    placed: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    def lower_bound_s(self, gpu: Gpu, hb_gbyte_s: float, byte_s: float) -> Floats:
        """Return the lower bound on the time of each feasible mapping (s), given the bandwidths
        inside domains and between them; cached per pair of bandwidths.
        """
        return recalled(
            self._lower_bound_s,
            (hb_gbyte_s, byte_s),
            lambda: least_time_s(
                self.workload, gpu, self.fit, hb_gbyte_s=hb_gbyte_s, byte_s=byte_s
            ),
        )

    def counts_on(self, site: DomainSet) -> tuple[Counter[str], Ints]:
        """Count placements on a site: of infeasible mappings by cause, and of each feasible
        mapping; cached per site.
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

    def recall(
        self, key: Hashable, make: Callable[[], tuple[A, Counter[str]]]
    ) -> tuple[A, Counter[str]]:
        """Return an answer for this workload with the number of dropped rows by cause, made where
        none is kept for questions that differ only in prices and limits; the oldest of many is
        evicted.
        """
        if key not in self.pools:
            keep(self.pools, key, make())
        kept, gated = self.pools[key]
        return kept.of(self.workload), gated.copy()


def feasible_mappings(workload: Workload, gpu: Gpu, gpus: int) -> FeasibleMappings:
    """Enumerate a workload's mappings and select those that fit into memory.

    The result is cached for questions with other bounds or prices.
    """
    return replace(
        _feasible_mappings(without_bound(workload), gpu.unpriced, gpus), workload=workload
    )


def without_bound(workload: Workload) -> Workload:
    """Return the workload without its name and its bound on time."""
    unbound = dict.fromkeys((*BOUNDS, "train_tokens")) | {"name": ""}
    # days in turn go as well, by which workloads in caches would differ
    return workload.model_copy(update=unbound).in_turn_within(None)


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
    """Whether another feasible mapping differs only in saving less memory and is no slower
    anywhere; shape (n,).

    Recomputation adds to the time of a layer unless it reduces offloading, offloading can add to it
    too, and ZeRO 2 and 3 send in every micro-batch what ZeRO 1 sends once per iteration; the groups
    lie alike. Where gradients overlap with compute, a mapping with more compute may hide more of
    them, and where collectives have a choice of algorithms, another one may be chosen: no mapping
    counts as needless then.
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
    """Lower bounds on the time of all placements (s), shape (n,): infinite bandwidth, and
    collectives with a start but no steps.
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
    """Return the mappings with some (t, c, p, d) that fit into memory and whose lower bound is
    within the workload's bound.

    The lower bound is that of `least_time_s`. Most mappings exceed the bound by the compute of
    their layers alone, which is checked first, independently of ZeRO and of memory.
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
    """Return the GPU with collectives that start as short messages do, and have no steps.

    Some groups that extend across domains take fewer steps, and groups in one domain may start the
    protocol for short messages, so a lower bound must count neither.
    """
    starts = {"step_s": 0.0, "long_s": 0.0}
    return gpu.model_copy(update={"efficiency": gpu.efficiency.model_copy(update=starts)})


def compute_s(workload: Workload, gpu: Gpu, mappings: Mappings) -> Floats:
    r"""Lower bound on the iteration time by the layers of a middle stage alone (s); shape (n,).

    .. math:: T \ge \Bigl[\Bigl(m + \frac{p-1}{v}\Bigr) \ell - (1
        + K) a - \min\Bigl(E' o, \frac{\ell}{v}\Bigr)\Bigr]
        \tau \, f

    with :math:`\tau` the seconds of a layer, f the factor of the software and of stragglers, a and
    o the layers missing on the first and on the last stage, and K and E' as in docs/model.md, The
    pipeline. There

    .. math:: T \ge f \, \bigl(m \cdot \text{mid} + \text{bubble} + \text{ends}\bigr), \qquad
        \text{mid} \ge \ell w, \quad \text{bubble} \ge \frac{p-1}{v} \ell w - a w,
        \quad \text{extra} \ge -o w

    with w a layer and its communication, since accumulated gradients, hops, logits and the
    optimizer take no negative time. Where layers are missing, ends is at least E' extra - K a w and
    at least -(l/v) w - K a w; where none is, it is E extra, which is not negative, and a and o are
    0. So T is at least the brackets times w f. They are not negative, so :math:`\tau`, which is at
    most w, may replace w: fewer than p v layers are missing, so 2 a < p v, and where v > 1, m is at
    least p, and m = 2 (1 + K) for two stages. Hence (1 + K) a is at most (p - 1) l where v = 1 and
    m l/2 elsewhere, and l/v at most the rest of m l. Layers are timed once for many mappings.

    For a schedule that splits the backward pass, a chain of passes through middle stages alone
    takes at least (m l - a) w, and m (l - (a + o)/2) w where there are two stages, both of them on
    each GPU. Under a layout the stage with the most layers takes m times their time.
    """
    model, m = workload.model, micro_batches(mappings, workload.global_batch)
    factor = workload.options.slowdown * workload.options.software.overhead
    layer_time_s = layer_s(workload, device_of(workload, gpu), mappings) * factor * (1 - SHORT)
    if workload.layout:
        return np.asarray(m * most_layers(workload, mappings) * layer_time_s)
    layers, last_missing = stage_layers(model, mappings)
    chunk = layers // mappings.interleave
    first_missing = mappings.pp * layers - model.layers - last_missing
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
    """Lower bound on the time of each mapping over all placements (s); shape (n,).

    Parameters
    ----------
    hb_gbyte_s
        Maximum bandwidth of a GPU inside a domain (10^9 bytes/s).
    byte_s
        Maximum bandwidth of a GPU between domains (bytes/s).
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
    """Return the seconds per byte between domains at which one rank per domain is at least as fast
    as any placement.
    """
    gathers = links.rail / max(links.hb_byte_s, links.sum_byte_s, links.rail * byte_s)
    sends = links.send / max(links.hb_byte_s, links.send * byte_s)
    degrees, position = np.unique(ep, return_inverse=True)
    exchanges = np.array([_exchange(links, byte_s, g, visits, at_once) for g in degrees.tolist()])
    rings = dict.fromkeys(("tp", "cp", "dp", "edp", "tied"), gathers)
    return Reciprocals(**rings, pp=sends, ep=exchanges[position.reshape(-1)])


def _exchange(links: LinkRates, byte_s: float, g: int, visits: Visits, at_once: bool) -> float:
    """Return the seconds per byte between domains at which an all-to-all of g ranks in g domains
    takes the minimum over all x·y = g.
    """
    if g == 1:
        return 0.0
    # per byte of the largest messages, which neither protocols nor own copies slow
    links = replace(links, own_share=0.0, short=1.0)
    ways = [started_exchange(links, 1.0, g // y, y, visits) for y in divisors(g)]
    levels = [(float(way.fixed), float(way.ep / byte_s)) for way in ways]
    fastest_s = min(map(max if at_once else sum, levels))
    return max(fastest_s / float(ways[-1].ep), 0.0)


def ruling_out(workload: Workload, gpus: int) -> list[str]:
    """Return the keys that rule out all mappings of so many GPUs, each of them alone: without it
    some mapping divides evenly.
    """
    return [
        key
        for key, update in divisions_asked(workload).items()
        if len(mappings(workload.model_copy(update=update), gpus)[0])
    ]


def divisions_asked(workload: Workload) -> dict[str, dict[str, Any]]:
    """Return the keys that ask for more than degrees that divide, each with what a workload has
    without it.
    """
    options, layout = workload.options, workload.mapping.pipeline_layout
    free: dict[str, dict[str, Any]] = {}
    if options.dp_replicate > 1:
        key = f"options.dp_replicate = {options.dp_replicate}"
        free[key] = {"options": options.model_copy(update={"dp_replicate": 1})}
    if options.expert_tp:
        key = f"options.expert_tp = {str(options.expert_tp).lower()}"
        free[key] = {"options": options.model_copy(update={"expert_tp": False})}
    if layout:
        even = workload.mapping.model_copy(update={"pipeline_layout": None})
        free[f"mapping.pipeline_layout = {layout!r}"] = {"mapping": even}
    return free
