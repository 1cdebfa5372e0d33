"""Mappings: how a workload is cut, every mapping that is allowed, and what is wrong with one that
is not.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from coopt.instance.texts import alternatives, both, counted
from coopt.instance.workload import Workload
from coopt.plan.parts import MappingChoice
from coopt.verifier.training.mixers import heads_divide, sequences_divide


@cache
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    small_divisors = [k for k in range(1, math.isqrt(number) + 1) if number % k == 0]
    return tuple(sorted({*small_divisors, *(number // k for k in small_divisors)}))


class ScalarMapping(NamedTuple):
    """A mapping; symbols t, p, d, c, x, b, v of docs/model.md."""

    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    micro_batch: int
    interleave: int
    recompute: str
    sequence_parallel: bool
    zero: int
    offload_percent: int = 0

    @property
    def of_layer(self) -> tuple[object, ...]:
        """What the passes of a layer depend on."""
        return (
            self.tp,
            self.cp,
            self.ep,
            self.micro_batch,
            self.recompute,
            self.sequence_parallel,
            *self[ORDINARY:],
        )

    def micro_batches(self, global_batch: int) -> int:
        """m: micro-batches each pipeline runs in one iteration."""
        return global_batch // (self.dp * self.micro_batch)

    def chunk_layers(self, layers: int) -> int:
        """Layers of a chunk: ceil(L/(p·v))."""
        return -(-layers // (self.pp * self.interleave))

    def stage_layers(self, layers: int) -> int:
        """ℓ: layers of the fullest stage."""
        return self.interleave * self.chunk_layers(layers)

    def missing_layers(self, layers: int) -> int:
        """How many layers the stages have fewer than if all were full."""
        return self.pp * self.stage_layers(layers) - layers

    def last_lacks(self, layers: int, further: int) -> int:
        """o: layers the last stage has fewer than a full one: half of the missing ones, rounded up.

        With `further` predictions there all of them, if its last chunk has as many.
        """
        missing_count = self.missing_layers(layers)
        return (
            missing_count
            if further and missing_count <= self.chunk_layers(layers)
            else -(-missing_count // 2)
        )


ORDINARY = ScalarMapping._fields.index("zero") + 1
"""Fields beside these have their values as the instance lists them."""


def scalar_mapping(mapping: MappingChoice) -> ScalarMapping:
    """The mapping of a plan."""
    return ScalarMapping(**mapping.model_dump(exclude={"outermost", "pipeline_layout"}))


MOST_MISSING = 3
"""Layers that chunks may have room for beyond those of a model, where a stage has several."""


def recomputes(workload: Workload) -> tuple[str, ...]:
    """The kinds of recomputation the instance allows."""
    if workload.mapping.recompute is not None:
        return workload.mapping.recompute
    software = workload.options.software
    repeats = workload.options.attention != "flash" and "selective" not in software.lacks
    scores = ("selective",) if repeats else ()
    modules = ("norm+act", "norm+ffn") if software.recompute_modules else ()
    return ("none", *scores, *modules, "full")


Style = tuple[Any, ...]
"""EP, recomputation, sequence parallelism, ZeRO stage, and what is beside the ordinary of a
mapping.
"""

ZERO = 3
"""Where a style has its ZeRO stage, which the layers alone do not depend on."""


def splits(workload: Workload, gpus: int) -> Iterator[ScalarMapping]:
    """All mappings of docs/network.md on `gpus` GPUs."""
    return (styled(shape, style) for shape, styles in shapes(workload, gpus) for style in styles)


def styled(shape: ScalarMapping, style: Style) -> ScalarMapping:
    """The mapping of a shape and a style."""
    return ScalarMapping._make(shape[:4] + style[:1] + shape[5:7] + style[1:])


def shapes(workload: Workload, gpus: int) -> Iterator[tuple[ScalarMapping, list[Style]]]:
    """The degrees, micro-batch and chunks of all mappings, each with the styles that go with
    them.
    """
    limits, batch = workload.mapping, workload.global_batch
    for t, c in _layer_degrees(workload):
        if gpus % (t * c):
            continue
        for p in divisors(gpus // (t * c)):
            d = gpus // (t * c * p)
            if (
                (p > workload.model.layers and not workload.layout)
                or batch % d
                or d % workload.options.dp_replicate
                or not (_allows(limits.pp, p) and _allows(limits.dp, d))
            ):
                continue
            # these depend on the ranks of a stage alone: listed once for all micro-batches and
            # chunks
            room = expert_room(workload, t * c * d, t)
            experts = [x for x in divisors(room) if _allows(limits.ep, x)]
            styles = [*product(experts, *_styles(workload, t, c * d))]
            for b in sorted(set(limits.micro_batch)):
                if (batch // d) % b:
                    continue
                for v in _interleaves(workload, p, batch // (d * b)):
                    yield (
                        ScalarMapping(t, p, d, c, 1, b, v, "none", sequence_parallel=False, zero=0),
                        styles,
                    )


def simpler(workload: Workload, split: ScalarMapping) -> Iterator[ScalarMapping]:
    """Mappings allowed that take no longer anywhere, as they repeat or offload less and are alike
    otherwise: without recomputation where nothing goes to the host, or with a lower ZeRO stage that
    shares the optimizer.

    None where gradients hide behind compute, as more of it hides more, or collectives may run in
    several ways.
    """
    if workload.options.dp_mode == "overlap" or workload.options.collectives != "levels":
        return
    if split.recompute != "none" and "none" in recomputes(workload) and not split.offload_percent:
        yield split._replace(recompute="none")
    shares = workload.mapping.offload_percent
    yield from (
        split._replace(offload_percent=share) for share in shares if share < split.offload_percent
    )
    yield from (
        split._replace(zero=stage)
        for stage in range(1, split.zero)
        if stage in workload.mapping.zero
    )


def layer_mappings(workload: Workload) -> Iterator[ScalarMapping]:
    """A mapping for every way the layers of one may be cut, on whatever number of GPUs."""
    # degrees that some number of GPUs allows: a bound over these holds on any
    experts = [
        x for x in divisors(max(workload.model.experts, 1)) if _allows(workload.mapping.ep, x)
    ]
    for t, c in _layer_degrees(workload):
        # a layer takes as long whatever the ranks that share its parameters
        recompute, sequence, *_ = _styles(workload, t, 1)
        for x, b, kind, on in product(
            experts, sorted(set(workload.mapping.micro_batch)), recompute, sequence
        ):
            yield ScalarMapping(t, 1, 1, c, x, b, 1, kind, on, 0)


def mapping_sizes(workload: Workload, limit: int) -> list[int]:
    """How many GPUs some mapping takes, up to `limit` and the largest first."""
    limits, layers = workload.mapping, workload.model.layers
    ranks = {t * c for t, c in _layer_degrees(workload)}
    most_stages = max(layers, len(workload.layout))
    stages = [p for p in range(1, most_stages + 1) if _allows(limits.pp, p)]
    copies = [
        d
        for d in divisors(workload.global_batch)
        if _allows(limits.dp, d) and d % workload.options.dp_replicate == 0
    ]
    sizes = {n * p * d for n, p, d in product(ranks, stages, copies) if n * p * d <= limit}
    return sorted(sizes, reverse=True)


def _unsplit(workload: Workload, t: int) -> Iterator[str]:
    """What TP ranks do not split evenly."""
    model = workload.model
    if not all(heads_divide(mixer, t) for _, mixer in model.kinds):
        yield "heads (or groups) of an attention or linear mixer"
    if model.ffn % _expert_width(workload, t):
        yield f"ffn = {model.ffn}"
    for key in ("shared_ffn", "dense_ffn"):
        if getattr(model, key) % t:
            yield f"{key} = {getattr(model, key)}"
    if any(
        width % t
        for encoder in model.encoders
        for width in (encoder.heads, encoder.ffn, encoder.projector, encoder.hidden)
    ):
        yield "heads or widths of an encoder"


def _expert_width(workload: Workload, t: int) -> int:
    """TP ranks that split an expert, or the feed-forward part of a model that has none."""
    return ranks_of_expert(workload, t) if workload.model.experts else t


def ranks_of_expert(workload: Workload, t: int) -> int:
    """t_x: TP ranks that split an expert."""
    over = workload.options.expert_tp
    return t if over is True else max(over, 1)


def _layer_degrees(workload: Workload) -> list[tuple[int, int]]:
    """Tensor and context parallel degrees that share a layer evenly."""
    return [
        (t, c)
        for t in divisors(workload.model.heads)
        if _allows(workload.mapping.tp, t)
        and t % _expert_width(workload, t) == 0
        and not any(_unsplit(workload, t))
        for c in sorted(set(workload.mapping.cp))
        if sequences_divide(workload, t, c)
    ]


def expert_room(workload: Workload, stage: int, t: int) -> int:
    """The number x has to divide: what E and the ranks an expert group may take have in common, 1
    if dense.
    """
    if not workload.model.experts:
        return 1
    holders = stage // ranks_of_expert(workload, t)
    return math.gcd(workload.model.experts, holders // workload.options.dp_replicate)


def _styles(workload: Workload, t: int, ranks: int) -> list[list[Any]]:
    """Recomputation, sequence parallelism, ZeRO stages that go with t and `ranks` data-parallel
    ranks, and what is listed beside the ordinary.
    """
    limits = workload.mapping
    split_norms = t > 1 and workload.options.tp_sync_fraction == 1
    sequence = [
        on for on in (False, True) if on in limits.sequence_parallel and (split_norms or not on)
    ]
    zeros = zero_stages(workload, ranks)
    listed_values = (
        sorted(set(getattr(limits, name))) for name in ScalarMapping._fields[ORDINARY:]
    )
    return [list(dict.fromkeys(recomputes(workload))), sequence, zeros, *listed_values]


def zero_stages(workload: Workload, ranks: int) -> list[int]:
    """ZeRO stages allowed where `ranks` hold the same parameters; on a single rank, where all are
    one, the lowest.
    """
    possible, listed = _possible_stages(workload), workload.mapping.zero
    stages: list[int] = [stage for stage in possible if stage in listed]
    return stages[:1] if ranks == 1 else stages


def _possible_stages(workload: Workload) -> tuple[int, ...]:
    """ZeRO stages of several ranks; what arrives a step late cannot be needed at once."""
    whole_gradients = (
        workload.options.dp_mode == "stale-1" or workload.options.schedule == "dualpipe"
    )
    stages = (0, 1) if whole_gradients else (0, 1, 2, 3)
    return stages[1:] if workload.options.dp_replicate > 1 else stages


def _interleaves(workload: Workload, p: int, micro_batches: int) -> Iterator[int]:
    """v: more than 1 only where the micro-batches go round the stages evenly.

    Chunks of one layer leave one each to the embedding and the loss. Other schedules than 1F1B have
    no chunks.
    """
    if schedule_fault(workload, p, micro_batches, 1):
        return
    if workload.layout:
        v = len(workload.layout) // p
        if not layout_fault(workload, p, v) and (v == 1 or micro_batches % p == 0):
            yield from (v,) if _allows(workload.mapping.interleave, v) else ()
        return
    if workload.options.schedule != "1f1b":
        if fills(workload.model.layers, p, 1) and _allows(workload.mapping.interleave, 1):
            yield 1
        return
    limit = (workload.model.layers + 2) // p if p > 1 and micro_batches % p == 0 else 1
    for v in range(1, limit + 1):
        if fills(workload.model.layers, p, v) and _allows(workload.mapping.interleave, v):
            yield v


def schedule_fault(workload: Workload, p: int, micro_batches: int, chunks: int) -> str:
    """What the order of passes does not allow, as a sentence; empty where it runs."""
    schedule = workload.options.schedule
    if schedule != "1f1b" and chunks > 1:
        return f"Schedule {schedule!r} has no interleaved chunks, needs interleave = 1."
    if schedule == "dualpipe" and p > 1 and (p % 2 or micro_batches % 2 or micro_batches < 2 * p):
        return (
            "Schedule 'dualpipe' needs an even number of stages, and an even number of"
            f" micro-batches that is at least twice as large; given are {p} and {micro_batches}."
        )
    return ""


def layout_fault(workload: Workload, p: int, v: int) -> str:
    """What a given layout does not allow, as a sentence; empty where it goes with these stages."""
    layout = workload.layout
    if p == 1 < v:
        return f"interleave = {v} needs a pipeline, but pp = 1."
    if p * v != len(layout):
        return (
            f"pp = {p} with interleave = {v} has {p * v} chunks, but pipeline_layout has"
            f" {len(layout)}."
        )
    if any(chunk.predictions for chunk in layout[: (v - 1) * p]):
        return (
            "Layers of pipeline_layout that predict further tokens are not in the last chunk of"
            " their stage."
        )
    return ""


def fills(layers: int, stages: int, chunks: int) -> bool:
    """Whether layers fill stages of so many chunks each: few are missing when all are as long as
    the longest, or with one chunk each only the two ends are shorter, and neither is empty.
    """
    missing = -layers % (stages * chunks)
    if missing <= MOST_MISSING:
        return True
    longest = (layers + missing) // stages
    return chunks == 1 and longest > (missing + 1) // 2


def _allows(limit: Container[int] | None, value: int) -> bool:
    return limit is None or value in limit


def mapping_fault(workload: Workload, gpus: int, mapping: MappingChoice) -> str:
    """What is wrong with the mapping of a plan, as a sentence; empty when it is allowed."""
    numbers = (
        mapping.tp,
        mapping.pp,
        mapping.dp,
        mapping.cp,
        mapping.ep,
        mapping.micro_batch,
        mapping.interleave,
    )
    if min(numbers) < 1:
        return "Every parallel degree, micro_batch and interleave has to be 1 or more."
    checks = (_width_fault, _stage_fault, _batch_fault, _style_fault, _limit_fault)
    ranks = mapping.tp * mapping.cp * mapping.pp * mapping.dp
    if ranks != gpus:
        return f"tp x cp x pp x dp is {ranks}, but {counted(gpus, 'GPU')} train{'s' * (gpus == 1)}."
    return next(filter(None, (check(workload, mapping) for check in checks)), "")


def _width_fault(workload: Workload, mapping: MappingChoice) -> str:
    """Whether layers, sequences and experts divide."""
    model, t, c, x = workload.model, mapping.tp, mapping.cp, mapping.ep
    if t % (over := _expert_width(workload, t)):
        return f"tp = {t} is no multiple of options.expert_tp = {over}."
    if unsplit := [*_unsplit(workload, t)]:
        return f"tp = {t} does not split {model.name!r} evenly: {', '.join(unsplit)}."
    if model.seq % c:
        return f"cp = {c} does not divide the sequence of {model.seq} tokens."
    if not sequences_divide(workload, t, c):
        return (
            f"cp = {c} does not divide the heads or groups of linear mixers (such as Mamba) on a"
            f" GPU with tp = {t}."
        )
    if x > 1 and not model.experts:
        return f"ep = {x} needs a model with experts, which {model.name!r} has not."
    if expert_room(workload, t * c * mapping.dp, t) % x:
        return (
            f"ep = {x} does not divide both the experts of {model.name!r} and the ranks that may"
            " hold them."
        )
    return ""


def _stage_fault(workload: Workload, mapping: MappingChoice) -> str:
    """Whether the layers go on the stages."""
    layers, p, v = workload.model.layers, mapping.pp, mapping.interleave
    if workload.layout:
        return layout_fault(workload, p, v)
    if p > layers or p * v > layers + 2 or not fills(layers, p, v):
        return (
            f"pp = {p} with interleave = {v} does not divide the {layers} layers of"
            f" {workload.model.name!r} into chunks."
        )
    return ""


def _batch_fault(workload: Workload, mapping: MappingChoice) -> str:
    """Whether the batch divides into micro-batches, and these go round the stages."""
    p, d, b, v = mapping.pp, mapping.dp, mapping.micro_batch, mapping.interleave
    if d % workload.options.dp_replicate:
        return f"dp = {d} is no multiple of options.dp_replicate = {workload.options.dp_replicate}."
    if workload.global_batch % (d * b):
        return (
            f"dp = {d} times micro_batch = {b} does not divide the batch of"
            f" {workload.global_batch}."
        )
    m = workload.global_batch // (d * b)
    if p == 1 < v:
        return f"interleave = {v} needs a pipeline, but pp = 1."
    if v > 1 and m % p:
        return f"interleave = {v} needs micro-batches in a multiple of pp = {p}, not {m}."
    return schedule_fault(workload, p, m, v)


def _style_fault(workload: Workload, mapping: MappingChoice) -> str:
    """Whether sequence parallelism and the ZeRO stage mean anything here."""
    if mapping.sequence_parallel and mapping.tp == 1:
        return "Sequence parallelism is on with tp = 1, but needs several TP ranks."
    if mapping.sequence_parallel and workload.options.tp_sync_fraction < 1:
        return (
            "Sequence parallelism needs TP ranks that synchronise all activations, but"
            f" tp_sync_fraction = {workload.options.tp_sync_fraction:g}."
        )
    return _zero_fault(workload, mapping)


def _zero_fault(workload: Workload, mapping: MappingChoice) -> str:
    """Whether there is such a ZeRO stage, and something that it shards."""
    possible, options = _possible_stages(workload), workload.options
    if mapping.zero not in possible:
        shards_late = mapping.zero in (2, 3)
        causes = {
            f"options.dp_replicate = {options.dp_replicate}": mapping.zero == 0,
            "options.dp_mode = 'stale-1'": shards_late and options.dp_mode == "stale-1",
            "options.schedule = 'dualpipe'": shards_late and options.schedule == "dualpipe",
        }
        told = [cause for cause, is_one in causes.items() if is_one]
        given = f" with {both(told)}" if told else ""
        needed = alternatives(map(str, possible))
        return f"ZeRO stage {mapping.zero} is not possible{given}, needs stage {needed}."
    lowest = zero_stages(workload, 1)
    if mapping.dp * mapping.cp == 1 and lowest and [mapping.zero] != lowest:
        return (
            f"ZeRO stage {mapping.zero} is not possible with one data and context parallel rank,"
            f" where all stages are the same: needs the lowest that is allowed, {lowest[0]}."
        )
    return ""


def _limit_fault(workload: Workload, mapping: MappingChoice) -> str:
    """What the instance does not allow."""
    limits = workload.mapping
    layout = limits.pipeline_layout or ""
    if mapping.pipeline_layout != layout:
        asked, claimed = (
            repr(text) if text else "none" for text in (layout, mapping.pipeline_layout)
        )
        return f"The instance has pipeline_layout = {asked}, but the plan has {claimed}."
    for key in type(limits).model_fields:
        limit, value = getattr(limits, key), getattr(mapping, key)
        if key != "pipeline_layout" and limit is not None and value not in limit:
            return f"The instance does not allow {key} = {value!r}."
    if mapping.recompute not in recomputes(workload):
        return f"Attention or software of the instance rules out recompute = {mapping.recompute!r}."
    return ""
