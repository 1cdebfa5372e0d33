"""One training iteration of every mapping: its compute, communication and pipeline parts.

Their sum gives the time of an iteration, its breakdown, and its affine functions of bandwidth.
`pipelines` counts the hops. Equations are in docs/model.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, reduce
from itertools import product
from operator import add
from typing import Any

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.perf.algorithms import algorithms_of
from coopt.perf.collectives import (
    AffineSeconds,
    Algorithms,
    Pieces,
    Reciprocals,
    kinds_of,
    links_of,
)
from coopt.perf.kernels import device_of
from coopt.perf.layouts import (
    LayoutParts,
    LayoutRows,
    busiest_stage,
    layout_chains,
    layout_s,
)
from coopt.perf.mapping import (
    Floats,
    Ints,
    Mappings,
    Placements,
    further_exchanges,
)
from coopt.perf.pipelines import (
    EndWait,
    PassChain,
    PipelineWaits,
    met_hops,
)
from coopt.perf.traffic import (
    OVERLAP_COST,
    StageTraffic,
    replicas_of,
)
from coopt.perf.work import StageWork


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """The parts of an iteration, one row per mapping, as functions of the bandwidth between
    domains.

    `layer`, `tp`, `cp` and `ep` are for one layer and micro-batch; `accumulation`, `hop` and the
    parts ending in `logits` for one micro-batch; `dp`, `embedding` and `optimizer` for the
    iteration. `forward` is the forward share of `layer`. `cp` is the cost of a ring that overlaps
    with attention and `cp_left` the time that attention is too short to hide; the larger one
    counts. The same holds for `ep` and `ep_left`, for all-to-alls that overlap with another
    micro-batch.

    `predicting` and `tp_predicting` are the parts of `logits` and `tp_logits` of further
    predictions, which a `layout` may place on another stage; zero without one. Its stages have any
    number of layers.

    `chains` are those of a schedule other than 1F1B, the longest of which is the time of the
    pipeline; `forward_shares` are the shares of TP, CP and EP traffic in a forward pass.

    Counts have shape (n,): `layers` of the fullest stage, `chunk_layers` of each of its chunks,
    layers missing on the first stage (`first_missing`) and on the last one (`missing_layers`), and
    the `waits` of the pipeline. `further_predictions` counts predictions beyond the next token, and
    `further_exchanges` the layers with expert traffic in them. `dp_share` and `window` describe how
    far data-parallel traffic is hidden, `behind` the number of layers that it overlaps with, and
    `met` the number of hops sent at the same time. `factor` multiplies the whole time. `algorithms`
    turn the network's seconds per byte into those charged to `pieces`, which are at least
    `to_nics_s_byte`, what a byte takes between a GPU and its NICs.
    """

    layer: AffineSeconds
    forward: AffineSeconds
    accumulation: AffineSeconds
    tp: AffineSeconds
    cp: AffineSeconds
    cp_left: AffineSeconds
    ep: AffineSeconds
    ep_left: AffineSeconds
    hop: AffineSeconds
    logits: AffineSeconds
    tp_logits: AffineSeconds
    dp: AffineSeconds
    window: AffineSeconds
    behind: Floats
    dp_share: Floats
    met: Floats
    embedding: AffineSeconds
    optimizer: AffineSeconds
    layers: Ints
    chunk_layers: Ints
    first_missing: Ints
    missing_layers: Ints
    further_predictions: int
    further_exchanges: float
    waits: PipelineWaits
    micro_batches: Ints
    bubbles: Floats
    factor: float
    stale: bool
    algorithms: Algorithms
    to_nics_s_byte: Any = 0.0
    chains: tuple[PassChain, ...] = ()
    forward_shares: tuple[Floats, ...] = ()
    predicting: AffineSeconds = field(default_factory=AffineSeconds)
    tp_predicting: AffineSeconds = field(default_factory=AffineSeconds)
    layout: LayoutRows | None = None

    def take(self, rows: Ints) -> Iteration:
        """Select rows."""
        return replace(self, **{f.name: _rows(getattr(self, f.name), rows) for f in fields(self)})

    @cached_property
    def whole_layer(self) -> AffineSeconds:
        """Time of one layer with its communication."""
        return self.layer + self.tp + self.cp + self.ep

    @cached_property
    def stage(self) -> AffineSeconds:
        """Time of one micro-batch on a middle stage, without sends."""
        return self.whole_layer * self.layers + self.accumulation

    @cached_property
    def bubble(self) -> AffineSeconds:
        """Time to fill and drain the pipeline, shorter where the first stage has fewer layers."""
        return (
            self.stage * self.bubbles
            - self.whole_layer * self.first_missing
            + self.hop * self.waits.bubble_hops
        )

    @cached_property
    def excess(self) -> AffineSeconds:
        """Time per micro-batch that the last stage takes beyond a middle stage, without hops."""
        added = (
            self.logits
            + self.tp_logits
            + self.cp * self.further_predictions
            + self.ep * self.further_exchanges
        )
        return added - self.whole_layer * self.missing_layers

    @cached_property
    def met_hops(self) -> AffineSeconds:
        """Time added for hops that use the same links at the same time as gradients: their loads
        add up.
        """
        crossing = (np.asarray(self.dp.dp) > 0) | (np.asarray(self.dp.edp) > 0)
        return AffineSeconds(pp=self.hop.pp) * (self.met * crossing)

    @cached_property
    def left_of_dp(self) -> tuple[AffineSeconds, AffineSeconds]:
        """Cost of overlapped gradients, as two bounds of which the larger one counts.

        Gradients that are hidden completely slow down the hops sent at the same time; gradients
        that exceed the compute they overlap with wait for these hops too.
        """
        met = self.met_hops
        return self.dp * self.dp_share + met, self.dp - self.window + met * 2

    @cached_property
    def epilogue(self) -> AffineSeconds:
        """Time after pipeline and data-parallel traffic: the exchange of a tied embedding, and the
        optimizer.
        """
        return self.embedding + self.optimizer

    def pieces(self) -> Pieces:
        """Return the affine functions whose maximum is the iteration time.

        There is one for each combination of bottlenecks: compute or overlapped traffic, and the
        slowest stage.
        """
        functions = self._functions
        kinds = kinds_of(functions.values())
        # tables of coefficients in place of functions: the same sums then add all kinds at once
        tables: dict[str, Any] = {
            name: self._table(function, kinds) for name, function in functions.items()
        }
        tables["chains"] = tuple(
            chain._replace(fixed_s=self._table(chain.fixed_s, kinds)) for chain in self.chains
        )
        rings = ("cp",) if self.cp_left.is_zero else ("cp", "cp_left")
        exchanges = ("ep",) if self.ep_left.is_zero else ("ep", "ep_left")
        hidden = (
            {"cp": tables[ring], "ep": tables[exchange]} for ring in rings for exchange in exchanges
        )
        iterations: list[Any] = [replace(self, **tables | choice) for choice in hidden]
        totals = [pipeline for iteration in iterations for pipeline in iteration.pipelines()]
        if self.stale:
            totals, ends = [*totals, tables["dp"]], [self._table(self.met_hops, kinds)]
        elif np.all(self.dp_share == 1.0):
            # under `sync` nothing overlaps: both parts of `left_of_dp` are the gradients themselves
            ends = [tables["dp"]]
        else:
            ends = [self._table(function, kinds) for function in self.left_of_dp]
        epilogue = iterations[0].epilogue
        coefficients = np.empty((len(totals) * len(ends), 1 + len(kinds), len(self.layers)))
        for piece, (total, end) in zip(coefficients, product(totals, ends), strict=True):
            piece[:] = (total + end + epilogue) * self.factor
        return Pieces.of(kinds, coefficients)

    @property
    def _functions(self) -> dict[str, AffineSeconds]:
        """The parts that depend on the bandwidth of the network."""
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: part for name, part in parts.items() if isinstance(part, AffineSeconds)}

    def _table(self, function: AffineSeconds, kinds: tuple[str, ...]) -> Any:
        """Return the coefficients of an affine function, of shape (1 + kinds, n), or 0 if it has
        none.
        """
        if function.is_zero:
            return 0.0
        table = np.empty((1 + len(kinds), len(self.layers)))
        table[0] = function.fixed
        for row, kind in enumerate(kinds, 1):
            table[row] = getattr(function, kind)
        return table

    def pipelines(self) -> tuple[AffineSeconds, ...]:
        """Return the time of the pipeline for each possible bottleneck; the longest one counts.

        For 1F1B these are a middle stage, with each way of waiting for the last stage, and the last
        stage; for other schedules the chains of passes.
        """
        if self.layout:
            parts: Any = self._layout_parts
            terms = np.stack(np.broadcast_arrays(*parts))  # of tables of coefficients
            return tuple(
                reduce(add, (part * count for part, count in zip(parts, chain, strict=True)))
                for chain in layout_chains(self.layout, self.micro_batches, terms)
            )
        if self.chains:
            return tuple(map(self._chained, self.chains))
        middle_stage = self.stage + self.hop * self.waits.hops
        pipeline = middle_stage * self.micro_batches + self.bubble
        return (
            *(pipeline + added for added in map(self._added_by, self._end_waits)),
            pipeline + self._added_by_last,
        )

    @property
    def _forward(self) -> AffineSeconds:
        """Time of the forward pass of a layer with its communication."""
        ahead = [
            part * share
            for part, share in zip((self.tp, self.cp, self.ep), self.forward_shares, strict=True)
        ]
        return sum(ahead, self.forward)

    @property
    def _layout_parts(self) -> LayoutParts:
        """What chains of passes of a layout consist of."""
        forward, accumulation = self._forward, self.accumulation * (1.0 / self.layers)
        predictions = self.predicting + self.tp_predicting + self.cp * self.further_predictions
        return LayoutParts(
            forward,
            self.whole_layer + accumulation - forward,
            predictions + self.ep * self.further_exchanges,
            self.logits + self.tp_logits - self.predicting - self.tp_predicting,
            self.hop,
        )

    def _layout_s(self, r: Reciprocals, *, hops: bool = True) -> Floats:
        """Time of the pipeline under a layout, with hops or without."""
        assert self.layout is not None
        seconds = LayoutParts(*(part.at(r) for part in self._layout_parts))
        return layout_s(self.layout, self.micro_batches, seconds._replace(hop=seconds.hop * hops))

    def _layout_parts_s(self, r: Reciprocals) -> dict[str, Floats]:
        """Seconds of the pipeline under a layout by cause: the passes of the busiest stage, what
        hops add, and the rest.
        """
        assert self.layout is not None
        of_passes, m = self._layout_parts, self.micro_batches
        layer = of_passes.forward + of_passes.backward
        layers, has_predictions, has_loss = busiest_stage(
            self.layout, layer.at(r), of_passes.predictions.at(r), of_passes.loss.at(r)
        )
        ends = (
            self.tp_logits - self.tp_predicting
        ) * has_loss + self.tp_predicting * has_predictions
        further = has_predictions * self.further_predictions
        parts = {
            "compute": (self.layer * layers + self.accumulation * (layers / self.layers)) * m,
            "logits": (
                (self.logits - self.predicting) * has_loss + self.predicting * has_predictions
            )
            * m,
            "tp": (self.tp * layers + ends) * m,
            "cp": self.cp * ((layers + further) * m),
            "ep": self.ep * ((layers + has_predictions * self.further_exchanges) * m),
        }
        seconds = {name: part.at(r) + 0.0 * m for name, part in parts.items()}
        silent_s, busy_s = self._layout_s(r, hops=False), sum(seconds.values(), 0.0 * m)
        return seconds | {"pp": self._layout_s(r) - silent_s, "bubble": silent_s - busy_s}

    def _chained(self, chain: PassChain) -> AffineSeconds:
        """Return the length of a chain of passes."""
        forward = self._forward * self.layers
        lacking = self.whole_layer * (self.first_missing * chain.firsts)
        passes = self.stage * (self.micro_batches + chain.stages) + forward * chain.forwards
        length: AffineSeconds = (
            passes + self.excess * chain.visits - lacking + self.hop * chain.hops + chain.fixed_s
        )
        return length

    @cached_property
    def _end_waits(self) -> tuple[EndWait, ...]:
        """The ways in which a middle stage that is the bottleneck can wait for the last stage; the
        longest counts.

        Where the last stage has less work, the longest chain of passes visits it once, which saves
        a forward pass, or never; where two stages interleave, a step takes as long as the one of
        them that lacks less of it, forward and backward.
        """
        if not np.any(self.missing_layers):
            return (EndWait(self.waits.end_passes),)
        chunk, steps = self.chunk_layers, self.waits.in_step
        lighter = steps * self.first_missing
        often = np.where(lighter > 0, self.micro_batches, self.waits.end_passes)
        # in the order in which docs/model.md, The pipeline, lists `ends`
        seldom = (
            EndWait(self.waits.few_passes, lighter),
            EndWait(1.0, lighter, chunk),
            EndWait(0.0, chunk + lighter),
        )
        stepwise = (
            (
                EndWait(self.waits.few_passes + steps, 0.0, lighter),
                EndWait(1 + steps, 0.0, chunk + lighter),
            )
            if np.any(lighter)
            else ()
        )
        return EndWait(often), *seldom, *stepwise

    def _added_by(self, wait: EndWait) -> AffineSeconds:
        """Return the time added to the iteration where a middle stage waits in this way for the
        last stage.
        """
        spared: AffineSeconds = self.whole_layer * wait.layers + self.forward * wait.forward_layers
        added: AffineSeconds = self.excess * wait.passes - spared
        return added

    @property
    def _added_by_last(self) -> AffineSeconds:
        """The time added to the iteration where the last stage is the bottleneck."""
        waits, m = self.waits, self.micro_batches
        return self.excess * m + self.hop * (waits.late_hops - waits.spared_hops * m)

    def charged(self, r: Reciprocals) -> Reciprocals:
        """Return the seconds per byte charged where the network offers r."""
        return self.algorithms.charged(r.at_least(self.to_nics_s_byte))

    def time_s(self, r: Reciprocals) -> Floats:
        """Iteration time (s) in the slowest case."""
        return reduce(np.maximum, map(self._time_s, r.cases()))

    def _time_s(self, r: Reciprocals) -> Floats:
        r = self.charged(r)
        iteration_at_r = self._with_hidden_at(r)
        seconds: dict[
            str, Any
        ] = {  # numbers in place of functions, which the same sums add up at once
            name: 0.0 if function.is_zero else function.at(r)
            for name, function in iteration_at_r._functions.items()
            if name not in ("dp", "window")
        }
        seconds["chains"] = tuple(
            chain._replace(fixed_s=chain.fixed_s.fixed) for chain in self.chains
        )
        # gradients stay functions: their cost is the maximum of two
        in_seconds: Any = replace(iteration_at_r, **seconds)
        pipeline_s = (
            iteration_at_r._layout_s(r)
            if self.layout
            else reduce(np.maximum, in_seconds.pipelines())
        )
        total_s = pipeline_s + iteration_at_r._left_of_dp(r, pipeline_s) + in_seconds.epilogue
        return np.asarray(total_s * self.factor, dtype=np.float64)

    def breakdown_s(self, r: Reciprocals) -> dict[str, Floats]:
        """Seconds by cause, which sum to `time_s`."""
        r = self.charged(r)
        return self._with_hidden_at(r)._breakdown_s(r)

    def _with_hidden_at(self, r: Reciprocals) -> Iteration:
        """Return the iteration with overlapped CP and EP traffic evaluated at r."""
        cp, ep = self.cp.at_least(self.cp_left, r), self.ep.at_least(self.ep_left, r)
        return replace(self, cp=cp, cp_left=AffineSeconds(), ep=ep, ep_left=AffineSeconds())

    def _breakdown_s(self, r: Reciprocals) -> dict[str, Floats]:
        m = self.micro_batches
        if self.layout:
            parts = self._layout_parts_s(r)
        else:
            parts = self._chain_parts_s(r) if self.chains else self._parts_s(r)
        parts["dp"] = self._left_of_dp(r, sum(parts.values(), np.zeros(len(m))))
        parts["embedding"] = self.embedding.at(r)
        parts["optimizer"] = self.optimizer.at(r)
        parts["straggler"] = sum(parts.values(), np.zeros(len(m))) * (self.factor - 1.0)
        return {name: seconds + np.zeros(len(m)) for name, seconds in parts.items()}

    def _parts_s(self, r: Reciprocals) -> dict[str, Floats]:
        """Seconds of the pipeline by cause."""
        m, waits = self.micro_batches, self._end_waits
        waited_s, added_s = (
            _stack(self._added_by(wait).at(r) for wait in waits),
            self._added_by_last.at(r),
        )
        binds, longest = added_s > waited_s.max(axis=0), waited_s.argmax(axis=0)
        visits, spared_layers, spared_forward = (
            np.where(
                binds, of_last, np.choose(longest, _stack(count + 0.0 * m for count in counts))
            )
            for of_last, counts in (
                (m, [wait.passes for wait in waits]),
                (0.0, [wait.layers for wait in waits]),
                (0.0, [wait.forward_layers for wait in waits]),
            )
        )
        hops = (self.waits.hops - np.where(binds, self.waits.spared_hops, 0)) * m
        return self._passes_s(r, visits, spared_layers, spared_forward) | {
            "pp": (self.hop * hops).at(r),
            "bubble": (self.bubble + self.hop * (self.waits.late_hops * binds)).at(r),
        }

    def _chain_parts_s(self, r: Reciprocals) -> dict[str, Floats]:
        """Seconds of the pipeline by cause where its time is a chain of passes.

        The bubble consists of the passes of the longest chain beyond those of all micro-batches,
        including the work of the last stage in the visits of that chain.
        """
        lengths_s = _stack(self._chained(chain).at(r) for chain in self.chains)
        longest, zero = lengths_s.argmax(axis=0), 0.0 * self.micro_batches
        visits, firsts, hops = (
            np.choose(longest, _stack(getattr(chain, name) + zero for chain in self.chains))
            for name in ("visits", "firsts", "hops")
        )
        parts = self._passes_s(r, visits, self.first_missing * firsts, zero) | {
            "pp": (self.hop * hops).at(r)
        }
        bubble_s = lengths_s.max(axis=0) - sum(parts.values(), zero)
        hidden_s = np.minimum(bubble_s, 0.0)  # hops that gradients of weights would fill
        return parts | {"pp": parts["pp"] + hidden_s, "bubble": bubble_s - hidden_s}

    def _passes_s(
        self, r: Reciprocals, visits: Any, spared_layers: Any, spared_forward: Any
    ) -> dict[str, Floats]:
        """Seconds of passes by cause, given the visits to the last stage and the layers saved."""
        m = self.micro_batches
        layer_passes = self.layers * m - self.missing_layers * visits - spared_layers
        return {
            "compute": (
                (
                    self.layer * layer_passes
                    + self.accumulation * m
                    - self.forward * spared_forward
                ).at(r)
            ),
            "logits": (self.logits * visits).at(r),
            "tp": (self.tp * layer_passes + self.tp_logits * visits).at(r),
            "cp": (self.cp * (layer_passes + self.further_predictions * visits)).at(r),
            "ep": (self.ep * (layer_passes + self.further_exchanges * visits)).at(r),
        }

    def _left_of_dp(self, r: Reciprocals, pipeline_s: Any) -> Any:
        dp = self.dp.at(r)
        if self.stale:
            return np.maximum(0.0, dp - pipeline_s) + self.met_hops.at(r)
        hidden, beyond = self.left_of_dp
        return np.maximum(hidden.at(r), beyond.at(r))


def _stack(arrays: Iterable[Any]) -> Floats:
    """Stack arrays of rows, or numbers that stand for all rows."""
    return np.stack(np.broadcast_arrays(*arrays))


def _rows(part: Any, rows: Ints) -> Any:
    """Select rows of an array, or of the arrays of an affine function; a number stands for every
    row.
    """
    if isinstance(part, AffineSeconds):
        return AffineSeconds(**{name: _rows(term, rows) for name, term in part.terms.items()})
    if isinstance(part, Algorithms):
        return part.take(rows)
    if isinstance(part, PassChain | PipelineWaits | LayoutRows):
        return type(part)(*(_rows(item, rows) for item in part))
    if isinstance(part, tuple):  # of chains, of arrays
        return tuple(_rows(item, rows) for item in part)
    return part[rows] if np.ndim(part) else part


def iteration(
    workload: Workload,
    gpu: Gpu,
    hb_gbyte_s: Any,
    mappings: Mappings,
    placements: Placements,
    *,
    to_nics_gbyte_s: Any = np.inf,
) -> Iteration:
    """Return the parts of the iteration of every mapping.

    Parameters
    ----------
    hb_gbyte_s
        One-way bandwidth of a GPU inside the HB domain (10^9 bytes/s), a number or shape (n,).
    mappings, placements
        n rows each.
    to_nics_gbyte_s
        Rate at which a GPU reaches its NICs (10^9 bytes/s), a number or shape (n,).
    """
    options, links = workload.options, links_of(workload, gpu, hb_gbyte_s)
    layout = workload.mapping.pipeline_layout
    replicas = replicas_of(workload, links, mappings, placements)
    traffic = StageTraffic(workload=workload, links=links, mappings=mappings, placements=placements)
    work = StageWork(
        workload=workload, device=device_of(workload, gpu), mappings=mappings, traffic=traffic
    )
    counts, ring, switch = work.counts, traffic.ring, traffic.switch
    ep, ep_left = traffic.hidden_exchanges(work.apart_s, work.micro_batches)
    return Iteration(
        layer=AffineSeconds(work.layer_s),
        forward=AffineSeconds(work.kernels.forward * (work.layer_s / work.kernels.total)),
        accumulation=work.accumulation * counts.layers,
        tp=traffic.tp,
        cp=ring * OVERLAP_COST + switch,
        cp_left=(
            AffineSeconds()
            if ring.is_zero
            else ring + switch - AffineSeconds(work.core_s + (work.layer_s - work.kernels.total))
        ),
        ep=ep,
        ep_left=ep_left,
        hop=traffic.hop,
        logits=AffineSeconds(work.logits_s),
        tp_logits=work.tp_logits,
        further_predictions=workload.model.extra_predictions,
        further_exchanges=further_exchanges(workload.model),
        dp=replicas.data_parallel(),
        window=work.window(replicas, ep, ep_left),
        behind=work.behind,
        met=met_hops(
            options.dp_mode,
            mappings.zero,
            work.micro_batches,
            counts.waits.hops,
            counts.waits.bubble_hops,
        ),
        dp_share=np.full(len(mappings), OVERLAP_COST if options.dp_mode == "overlap" else 1.0),
        embedding=replicas.embedding(),
        optimizer=replicas.optimizer(work.device),
        layers=counts.layers,
        chunk_layers=counts.layers // mappings.interleave,
        first_missing=counts.first_missing,
        missing_layers=counts.last_missing,
        waits=counts.waits,
        micro_batches=work.micro_batches,
        bubbles=counts.bubbles,
        factor=options.slowdown * options.software.overhead,
        stale=options.dp_mode == "stale-1",
        algorithms=algorithms_of(workload, traffic, replicas),
        to_nics_s_byte=np.full(len(mappings), 1e-9 / to_nics_gbyte_s),
        chains=work.chains,
        forward_shares=traffic.forward_shares if work.chains or layout else (),
        predicting=AffineSeconds(work.predictions_s) if layout else AffineSeconds(),
        tp_predicting=work.tp_predicting if layout else AffineSeconds(),
        layout=LayoutRows(layout, mappings.pp, mappings.interleave) if layout else None,
    )
