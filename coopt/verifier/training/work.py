"""What one GPU has to do in an iteration, wherever the mapping is placed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from heapq import heappop, heappush
from itertools import count, islice
from operator import itemgetter
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

from coopt.instance.hardware import Gpu
from coopt.instance.layouts import Layout
from coopt.instance.workload import Workload
from coopt.verifier.training.caching import kept
from coopt.verifier.training.chunks import LaidOut, laid_out_s, plain_layers
from coopt.verifier.training.communication import (
    OVERLAP_COST,
    GpuTraffic,
    LayerTraffic,
    LinkShares,
    link_shares,
    traffic_of,
)
from coopt.verifier.training.kernels import Pass, machine_of, moved_s, predicting
from coopt.verifier.training.layer import LayerTimes, logits_pass
from coopt.verifier.training.mappings import (
    ZERO,
    ScalarMapping,
    Style,
    layer_mappings,
    shapes,
    styled,
)
from coopt.verifier.training.placing import (
    HeldParameters,
    held_parameters,
    sharded_parameters,
    stage_copies,
)
from coopt.verifier.training.schedules import (
    LayerPasses,
    PassRow,
    SplitShape,
    SplitStage,
    longest_row,
)

OPTIMIZER_BYTES = 60
ACCUMULATE_BYTES = 6
NO_TRAFFIC = LayerTraffic()

Group = TypeVar("Group")
Member = TypeVar("Member")
Item = TypeVar("Item")


class EndVisits(NamedTuple):
    """Visits of a chain of passes to the last stage, and the layers and seconds forward that it is
    shorter for having no more of them.
    """

    visits: float
    layers: float = 0.0
    forward_s: float = 0.0

    def added_s(self, excess_s: float, layer_s: float) -> float:
        """What the chain takes longer than through middle stages alone where the last one takes
        `excess_s` longer for a micro-batch.
        """
        return self.visits * excess_s - self.layers * layer_s - self.forward_s


class Work(NamedTuple):
    """Seconds of compute and the communication of a mapping; symbols of docs/model.md."""

    split: ScalarMapping
    micro_batches: int
    layers: int
    """ℓ: layers of the fullest stage"""
    missing_last: int
    """o: layers the last stage has fewer"""
    missing_first: int
    """a: layers the first stage has fewer"""
    layer_s: float
    forward_s: float
    """of a layer, its pass forward"""
    core_s: float
    """of a layer, behind which keys and values go round; 0 without context parallelism"""
    idle_s: float
    """in which the GPU waits for the host, and keys and values go round as well; 0 without context
    parallelism
    """
    stage_s: float
    logits_s: float
    """with the further predictions"""
    optimizer_s: float
    parameters: HeldParameters
    traffic: GpuTraffic
    links: LinkShares
    mode: str
    """sync, overlap or stale-1"""
    factor: float
    """what stragglers and software multiply the time with"""
    ends: tuple[EndVisits, ...]
    """how chains of passes may visit the last stage where a middle one sets the pace"""
    wait_s: float = 0.0
    """what gradients of other sites take, beside those of this one"""
    schedule: str = "1f1b"
    weights_s: float = 0.0
    """of a layer, in which gradients of weights are taken; 0 under 1F1B, which does not ask"""
    further_weights_s: float = 0.0
    """of the layers of all further predictions, as those of a layer"""
    layout: Layout = ()
    """what each chunk has, where that is given; `missing_last` is what the stage with the fewest
    layers lacks then
    """
    predictions_s: float = 0.0
    """of `logits_s`, the layers of further predictions"""

    @property
    def hiding_layers(self) -> int:
        """Layers of an iteration behind which the gradient exchange can hide: those of one
        micro-batch.
        """
        if (
            self.split.zero >= 2
        ):  # with every micro-batch, and the last stage has the fewest layers to hide behind
            return self.micro_batches * (self.layers - self.missing_last)
        return self.layers

    @property
    def window_s(self) -> float:
        """Compute of an iteration behind which the gradient exchange can hide; the core is for keys
        and values.
        """
        return self.hiding_layers * (self.layer_s - self.core_s)

    def inside_window_s(self, traffic_s: float, busy_s: float) -> float:
        """What gradients hide behind besides, where a layer has traffic of so many seconds that
        stays in its domain.

        NICs are idle then. Links of the domain are not: gradients that keep these busy for `busy_s`
        wait for it. And logits, and adding up gradients, take compute in place of passes forward,
        which have up to half of that traffic in a fourth of the compute or more. Schedules that
        split the backward pass end with passes that have none.
        """
        if not self.window_s or self.schedule != "1f1b":
            return 0.0
        each_s = self.window_s / (self.micro_batches if self.split.zero >= 2 else 1)
        other_s = self.logits_s + self.stage_s - self.layers * self.layer_s
        free_share = max(0.0, 1 - busy_s / self.window_s) * max(0.0, 1 - 2 * other_s / each_s)
        return self.hiding_layers * traffic_s * free_share

    def exposed_s(
        self, pipeline_s: float, data_s: float, met_s: float = 0.0, inside_s: float = 0.0
    ) -> float:
        """What the gradient exchange adds to the time of the pipeline; both together grow with
        either.

        Where it is one step late, or hides, hops take `met_s` longer that it meets; what does not
        hide waits for them. It hides behind compute, and behind traffic inside domains as far as
        `inside_window_s` says.
        """
        if self.mode == "stale-1":
            return max(0.0, data_s - pipeline_s) + met_s
        if self.mode == "overlap":
            return max(OVERLAP_COST * data_s + met_s, data_s - self.window_s - inside_s + 2 * met_s)
        return data_s

    def floor_s(self, traffic: LayerTraffic = NO_TRAFFIC, data_s: float = 0.0) -> float:
        """A time (s) that no iteration undercuts on networks where the given communication takes no
        less.

        It counts the traffic of layers, the gradient exchange of `data_s` and what gradients of
        other sites take; all other communication is taken to need no time. It lies below the sum by
        more than rounding.
        """
        split, m, hideable_s = self.split, self.micro_batches, traffic.gathers_s + traffic.experts_s
        traffic_s, data_s = hideable_s + traffic.ring_s, data_s + self.wait_s
        layer_s, stage_s = self.layer_s + traffic_s, self.stage_s + self.layers * traffic_s
        excess_s = self.logits_s - self.missing_last * layer_s
        inside_s = self.hiding_layers * hideable_s  # each layer takes as much longer as it hides
        if self.layout:
            busy_s = self.laid_out_s(self.laid_out(traffic, 0.0, 0.0, 0.0))
        elif self.schedule != "1f1b":
            forward_s = self.forward_s + self.traffic.ahead.of(traffic)
            row = self.longest_row(SplitStage(stage_s, forward_s, layer_s, excess_s), 0.0)
            busy_s = m * stage_s + row.added_s(excess_s, self.missing_first * layer_s)
            inside_s = 0.0  # nothing else hides gradients where the backward pass is split
        else:
            # as `pipeline_times`, without hops and what the last stage sends more, which only add
            # to it
            filled_s = (split.pp - 1) * stage_s / split.interleave - self.missing_first * layer_s
            busy_s = (
                m * stage_s
                + filled_s
                + max(m * excess_s, *[visits.added_s(excess_s, layer_s) for visits in self.ends])
            )
        hidden_s = self.exposed_s(busy_s, data_s, 0.0, inside_s)
        # sums in another order may come out lower: a floor lies below by more than that
        return self.factor * (busy_s + hidden_s + self.optimizer_s) * (1 - 1e-12)

    def laid_out(
        self, traffic: LayerTraffic, predictions_s: float, loss_s: float, hop_s: float
    ) -> LaidOut:
        """Seconds of a micro-batch under a layout, where predictions and loss have traffic of so
        many seconds.
        """
        forward_s = self.forward_s + self.traffic.ahead.of(traffic)
        whole_s = self.stage_s / self.layers + sum(traffic)
        ends_s = self.predictions_s + predictions_s, self.logits_s - self.predictions_s + loss_s
        return LaidOut(forward_s, whole_s - forward_s, *ends_s, hop_s)

    def laid_out_s(self, seconds: LaidOut) -> float:
        """T_pipe under a layout."""
        p, v = self.split.pp, self.split.interleave
        return laid_out_s(self.layout, p, v, self.micro_batches, seconds)

    def longest_row(self, stage: SplitStage, hop_s: float) -> PassRow:
        """The longest row of passes of a schedule that splits the backward pass."""
        layer_s, forward_s, weights_s = self.layer_s, self.forward_s, self.weights_s
        added_s = self.stage_s / self.layers - layer_s
        last_more_s = self.further_weights_s - self.missing_last * weights_s
        passes = LayerPasses(
            forward_s, layer_s - forward_s - weights_s, weights_s, added_s, last_more_s
        )
        shape = SplitShape(self.split.pp, self.micro_batches, self.layers, self.missing_first)
        return longest_row(self.schedule, shape, passes, stage, hop_s)


def end_visits(
    split: ScalarMapping,
    m: int,
    lacks: Sequence[int],
    chunk: int,
    forward_s: float,
    met_logits: int,
) -> tuple[EndVisits, ...]:
    """How the longest chain of passes may visit the last stage where a middle one sets the pace: no
    such chain is longer than the pipeline takes, and one is as long.

    It goes from a middle stage to the last one and back as often as `met_logits`, or less often if
    the last one is lighter: twice, at the beginning and at the end, of which one saves a pass
    forward of a middle stage, or never. Two stages that interleave go in step, so that all but two
    of every second micro-batch's steps are as long as the heavier of both takes.

    Parameters
    ----------
    lacks
        Layers that the last stage and the first one have fewer.
    chunk
        Layers of a chunk, each of which takes `forward_s` forward.
    """
    if not any(lacks):
        return (EndVisits(met_logits),)
    # E' and K of docs/model.md: visits of the last stage where it is lighter, and how often the
    # first one counts more
    twice = 1 if split.interleave > 1 and m == split.pp else min(m, 2)
    seldom = m / 2 - 1 if split.pp == 2 and split.interleave > 1 and m > split.pp else 0.0
    chains = [EndVisits(twice), EndVisits(1, 0.0, chunk * forward_s), EndVisits(0, chunk)]
    fewer = seldom * lacks[1]
    lighter = [chain._replace(layers=chain.layers + fewer) for chain in chains]
    if not fewer:
        return (EndVisits(met_logits), *chains) if met_logits else tuple(chains)
    heavier = [
        EndVisits(chain.visits + seldom, 0.0, chain.forward_s + fewer * forward_s)
        for chain in chains[:2]
    ]
    return *lighter, *heavier


def ascending(
    groups: Iterable[tuple[float, Group]],
    members: Callable[[Group], Iterable[tuple[float, Member]]],
) -> Iterator[tuple[float, Member]]:
    """The members of all groups, the least first; groups come ascending by a size that no member of
    theirs is below.
    """
    heap, number = list[tuple[float, int, Member]](), count()
    for least_size, group in groups:
        # no member of this group, nor of any that follows, is smaller than these
        while heap and heap[0][0] <= least_size:
            size, _, member = heappop(heap)
            yield size, member
        for size, member in members(group):
            heappush(heap, (size, next(number), member))
    yield from ((size, member) for size, _, member in sorted(heap))


class LazyList(Generic[Item]):
    """A list that is made as far as somebody reads it."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items, self._known, self._lock = items, list[Item](), Lock()

    def __iter__(self) -> Iterator[Item]:
        for number in count():
            with self._lock:  # threads that verify plans of one question share it
                if number == len(self._known):
                    self._known += islice(self._items, 1)
            if number == len(self._known):
                return
            yield self._known[number]


class Clock:
    """Works of one workload on one kind of GPU; nothing is computed twice."""

    def __init__(self, workload: Workload, gpu: Gpu) -> None:
        self.workload = workload
        self.machine = machine_of(workload, gpu)
        self.layers = self.predicting_layers = LayerTimes(workload, self.machine)
        further_workload = predicting(workload)
        if further_workload is not workload:
            self.predicting_layers = LayerTimes(further_workload, machine_of(further_workload, gpu))
        self.links = link_shares(workload, gpu)

    def work(self, split: ScalarMapping) -> Work:
        """The work of a mapping that divides evenly."""
        model, options = self.workload.model, self.workload.options
        parameters, layers, *lacks = self._stage(split)
        passes, waits = self.layers.of(split)
        whole_s, further = sum(passes), model.extra_predictions
        predictions_s = further * sum(self.predicting_layers.of(split)[0])
        traffic, m = (
            traffic_of(self.workload, split),
            split.micro_batches(self.workload.global_batch),
        )
        added = 0.0
        if not options.software.fused_accumulation:
            layer_size = parameters.layer + parameters.expert_layer
            added = moved_s(self.machine.layers, ACCUMULATE_BYTES * layers * layer_size)
        return Work(
            split=split,
            micro_batches=m,
            layers=layers,
            missing_last=lacks[0],
            missing_first=lacks[1],
            layer_s=whole_s,
            forward_s=passes.forward_s,
            # the core in the precision may outlast layers of more bits
            core_s=min(sum(self.layers.core_pass(split)), whole_s) if split.cp > 1 else 0.0,
            idle_s=sum(waits) if split.cp > 1 else 0.0,
            stage_s=layers * whole_s + added,
            logits_s=(1 + further) * sum(self.logits_pass(split)) + predictions_s,
            optimizer_s=moved_s(
                self.machine.layers, OPTIMIZER_BYTES * self._updated(parameters, split)
            ),
            parameters=parameters,
            traffic=traffic,
            links=self.links,
            mode=options.dp_mode,
            schedule=options.schedule,
            weights_s=0.0 if options.schedule == "1f1b" else self.layers.weights_s(split),
            further_weights_s=self._further_weights_s(split),
            layout=self.workload.layout,
            predictions_s=predictions_s,
            factor=options.slowdown * options.software.overhead,
            ends=end_visits(
                split,
                m,
                lacks,
                layers // split.interleave,
                passes.forward_s,
                traffic.waits.met_logits,
            ),
        )

    def quick(self, gpus: int, bound_s: float) -> Iterator[tuple[float, ScalarMapping]]:
        """Mappings on so many GPUs whose layers alone take no more than that, the quickest first,
        with the time of these.

        Where those of the quickest style that any mapping may have take longer, no style of a shape
        is looked at, and none before it is its turn.
        """
        if self.least_gpu_s <= bound_s * gpus:
            floors = (
                (self._least_s(shape), (shape, styles))
                for shape, styles in shapes(self.workload, gpus)
            )
            near_shapes = sorted(
                (floor for floor in floors if floor[0] <= bound_s), key=itemgetter(0)
            )
            yield from ascending(near_shapes, partial(self._in_styles, bound_s))

    def _in_styles(
        self, bound_s: float, shape_and_styles: tuple[ScalarMapping, list[Style]]
    ) -> Iterator[tuple[float, ScalarMapping]]:
        shape, styles = shape_and_styles
        passes, known_s = self._passes_of(shape), dict[Style, float]()
        for style in styles:
            of_layer = style[:ZERO] + style[ZERO + 1 :]
            if of_layer not in known_s:
                known_s[of_layer] = passes * self._layer_s(styled(shape, style))
            if known_s[of_layer] <= bound_s:
                yield known_s[of_layer], styled(shape, style)

    def _least_s(self, shape: ScalarMapping) -> float:
        """Seconds of the layers of a shape in the quickest style; infinite where there is no
        style.
        """
        return self._passes_of(shape) * self._least_layer_s.get(
            (shape.tp, shape.cp, shape.micro_batch), math.inf
        )

    def _passes_of(self, split: ScalarMapping) -> float:
        """How often it takes the time of a layer, whatever the style; less rounding, to stay below
        floors.
        """
        options, model = self.workload.options, self.workload.model
        if self.workload.layout:
            most_layers = max(plain_layers(self.workload.layout, split.pp))
            most = most_layers * split.micro_batches(self.workload.global_batch)
            return options.slowdown * options.software.overhead * most * (1 - 2e-12)
        passes = split.micro_batches(self.workload.global_batch) + (split.pp - 1) / split.interleave
        last_lacks = split.last_lacks(model.layers, model.extra_predictions)
        first_lacks = split.missing_layers(model.layers) - last_lacks
        if (
            options.schedule != "1f1b"
        ):  # what a full stage does for all micro-batches, or the GPU with both ends does
            m = split.micro_batches(self.workload.global_batch)
            is_one_pair = split.pp == 2 and options.schedule == "dualpipe"
            lacks = m / 2 * (first_lacks + last_lacks) if is_one_pair else first_lacks
            layer_passes = m * split.stage_layers(model.layers) - lacks
            return options.slowdown * options.software.overhead * layer_passes * (1 - 2e-12)
        # of all chains one sees the last stage twice at most, and the first K + 1 <= m/2 times if
        # two stages interleave
        lacks = first_lacks * max(1.0, passes / 2 if split.pp == 2 else 1.0) + 2 * last_lacks
        layer_passes = passes * split.stage_layers(model.layers) - lacks
        return options.slowdown * options.software.overhead * layer_passes * (1 - 2e-12)

    @cached_property
    def _least_layer_s(self) -> dict[tuple[int, int, int], float]:
        """Seconds of a layer in the quickest style, by TP, CP and micro-batch."""
        least_s: dict[tuple[int, int, int], float] = {}
        for split in layer_mappings(self.workload):
            key = (split.tp, split.cp, split.micro_batch)
            least_s[key] = min(least_s.get(key, math.inf), self._layer_s(split))
        return least_s

    @cached_property
    def least_gpu_s(self) -> float:
        """GPU seconds that the layers of all stages take at least, whatever the mapping; less by
        more than rounding.
        """
        options, model, batch = (
            self.workload.options,
            self.workload.model,
            self.workload.global_batch,
        )
        each_s = (
            self._layer_s(split) * split.tp * split.cp / split.micro_batch
            for split in layer_mappings(self.workload)
        )
        least_s = min(each_s, default=math.inf) * batch * model.layers
        return options.slowdown * options.software.overhead * least_s * (1 - 1e-11)

    def least_waited_s(self, wait_s: float) -> float:
        """What an iteration takes at least besides its compute where gradients of other sites take
        so long.
        """
        options = self.workload.options
        share = {"sync": 1.0, "overlap": OVERLAP_COST, "stale-1": 0.0}[options.dp_mode]
        return options.slowdown * options.software.overhead * share * wait_s * (1 - 1e-12)

    def _updated(self, parameters: HeldParameters, split: ScalarMapping) -> float:
        """Parameters whose optimizer state is on this GPU."""
        if split.zero == 0:
            return stage_copies(self.workload, split) * (parameters.common + parameters.experts)
        return sharded_parameters(self.workload, parameters, split)

    # all that parameters and missing layers depend on
    @kept(lambda self, split: (split.tp, split.pp, split.ep, split.interleave))
    def _stage(self, split: ScalarMapping) -> tuple[HeldParameters, int, int, int]:
        """What the fullest GPU holds, the layers of a full stage, and how many the last and the
        first one lack.
        """
        model = self.workload.model
        if self.workload.layout:
            counts = plain_layers(self.workload.layout, split.pp)
            fewer = max(counts) - min(counts)
            return held_parameters(self.workload, split), max(counts), fewer, 0
        last_lacks = split.last_lacks(model.layers, model.extra_predictions)
        return (
            held_parameters(self.workload, split),
            split.stage_layers(model.layers),
            last_lacks,
            split.missing_layers(model.layers) - last_lacks,
        )

    def _layer_s(self, split: ScalarMapping) -> float:
        return sum(self.layers.of(split)[0])

    def _further_weights_s(self, split: ScalarMapping) -> float:
        """Gradients of weights of all layers that predict further tokens."""
        further = self.workload.model.extra_predictions
        if not further or self.workload.options.schedule == "1f1b":
            return 0.0
        return further * self.predicting_layers.weights_s(split)

    @kept(lambda self, split: (split.tp, split.cp, split.micro_batch))
    def logits_pass(self, split: ScalarMapping) -> Pass:
        """The logits of one micro-batch on the last stage."""
        return logits_pass(self.workload, self.machine, split)
