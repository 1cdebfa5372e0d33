"""Parallel mapping of a row, also as arrays for the performance model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.layouts import layout_fault, layout_of
from coopt.instance.texts import both, cut
from coopt.instance.transformer import Recompute, Transformer
from coopt.instance.workload import Workload
from coopt.perf.mapping import RECOMPUTE, Mappings, tp_of_experts
from coopt.perf.memory import memory_bytes
from coopt.validation.facts import Framework, published_facts
from coopt.validation.published import Measurement, UnusableError

SHARDED_OVER = re.compile(r"FSDP(?: shard)?(?: group |=)(\d+)")
# GPUs of the usual server; what is larger is a rack of trays, whose GPUs a table counts by tray
SERVER = 8
SHARDED = 3  # ZeRO stage that shards parameters too
MANY_EXPERTS = 64  # models of as many are trained without splitting an expert by TP (judgement)
# kinds of recomputation, in rising order of repeated work
BY_COST: tuple[Recompute, ...] = ("none", "selective", "act", "norm+act", "norm+ffn", "full")
MISSING_LAYERS = 3  # embedding, loss and a further prediction may each take the place of a layer


@dataclass(frozen=True, kw_only=True)
class MeasuredSplit:
    """A mapping and its placement as plain numbers; `inside` holds the TP, CP, DP, PP ranks within
    an HB domain.
    """

    tp: int
    cp: int
    pp: int
    dp: int
    ep: int
    micro_batch: int
    micro_batches: int
    interleave: int
    recompute: int
    sequence_parallel: bool
    zero: int
    expert_tp: int
    inside: tuple[int, int, int, int]
    offload_percent: int = 0
    dp_replicate: int = 1


def split_of(
    row: Measurement, model: Transformer, framework: Framework, size: int, assumptions: list[str]
) -> MeasuredSplit:
    """Return the mapping of a row in HB domains of a size; UnusableError with what is missing or
    does not divide.
    """
    t, p, c, d = _degrees(row, assumptions)
    etp = _expert_tp(row, model, t, assumptions)
    ep = _expert_parallel(row, model, t * c * d // int(tp_of_experts(t, etp)))
    b, m = _micro_batches(row, d)
    inside = ranks_inside((t, c, d, p), size)
    interleave = _interleave(row, model, p, assumptions)
    recompute = _recompute(row, model, framework, assumptions)
    zero = _zero(row, framework, p, assumptions)
    return MeasuredSplit(
        tp=t,
        cp=c,
        pp=p,
        dp=d,
        ep=ep,
        micro_batch=b,
        micro_batches=m,
        interleave=interleave,
        recompute=recompute,
        sequence_parallel=t > 1 and _splits_norms(row, framework),
        zero=zero,
        expert_tp=etp,
        inside=inside,
        offload_percent=_offload_percent(row),
        # copies are of what ZeRO shards
        dp_replicate=_copies(row, c, d, inside, assumptions) if zero else 1,
    )


def ranks_inside(degrees: tuple[int, int, int, int], size: int) -> tuple[int, int, int, int]:
    """Return the part of TP, CP, DP, PP inside a domain of `size`: each as large as divides it and
    still fits.
    """
    inside, room, is_whole = [1, 1, 1, 1], size, True
    for place, degree in enumerate(degrees):
        # ranks are numbered one dimension after the other: one lies inside only where all before it
        # do in full
        if is_whole:
            inside[place] = max(n for n in range(1, min(degree, room) + 1) if degree % n == 0)
            is_whole, room = inside[place] == degree, room // inside[place]
    return inside[0], inside[1], inside[2], inside[3]


def domain_of(row: Measurement, usual: HbDomain, assumptions: list[str]) -> int:
    """Return the GPUs per HB domain: as stated, else a usual rack, else a server, else 8."""
    if row.hb_domain is not None:
        return row.hb_domain
    if usual.size > SERVER and (row.gpus_per_node or 1) <= SERVER:
        assumptions.append(f"{usual.size} GPUs in an HB domain, as {usual.name} has them")
        return usual.size
    return row.gpus_per_node or SERVER


def _degrees(row: Measurement, assumptions: list[str]) -> tuple[int, int, int, int]:
    if row.gpus is None:
        raise UnusableError("the number of GPUs is not given")
    p, c = row.pp or 1, row.cp or 1
    t = _tensor_parallel(row, p * c, assumptions)
    if row.gpus % (t * p * c):
        raise UnusableError(f"TP x PP x CP = {t * p * c} does not divide {row.gpus} GPUs")
    d = row.gpus // (t * p * c)
    if row.dp not in (None, d):
        assumptions.append(f"DP {d} follows from the GPU count, but {row.dp} is printed")
    return t, p, c, d


def _tensor_parallel(row: Measurement, other_degrees: int, assumptions: list[str]) -> int:
    """Return TP as published, else the quotient of GPUs and other degrees, else 1 if ZeRO shards
    everything.
    """
    if row.tp is not None:
        return row.tp
    if row.gpus and row.dp and row.gpus % (row.dp * other_degrees) == 0:
        t = row.gpus // (row.dp * other_degrees)
    elif row.zero == SHARDED:
        t = 1
    else:
        raise UnusableError("TP is not given, and does not follow from the GPU count and DP")
    assumptions.append(f"TP {t}")
    return t


def _micro_batches(row: Measurement, d: int) -> tuple[int, int]:
    """Return the micro-batch size (1 if not published) and the number of micro-batches per
    pipeline.
    """
    if row.global_batch is None:
        raise UnusableError("the global batch is not published")
    b = row.micro_batch or 1
    if row.global_batch % (d * b):
        raise UnusableError(
            f"global batch {row.global_batch} is not a multiple of DP {d} x micro-batch {b}"
        )
    return b, row.global_batch // (d * b)


def _interleave(row: Measurement, model: Transformer, p: int, assumptions: list[str]) -> int:
    """Model chunks per GPU: as published, else 1."""
    if row.pipeline_layout:
        return _chunks_of_layout(row, model, p)
    if p == 1:
        return 1
    chunks = row.interleave or 1
    if row.interleave is None and "interleaved" in row.notes:
        assumptions.append(
            "no interleaving is assumed, since the number of chunks is not published"
        )
    if p * chunks > model.layers + MISSING_LAYERS:
        raise UnusableError(
            f"PP {p} x interleave {chunks} = {p * chunks} model chunks, but the model has"
            f" {model.layers} layers"
        )
    return chunks


def _chunks_of_layout(row: Measurement, model: Transformer, p: int) -> int:
    text, chunks = row.pipeline_layout, (row.interleave,) if row.interleave else None
    try:
        fault = layout_fault(text, model.layers, model.extra_predictions, (p,), chunks)
    except ValueError as error:
        fault = str(error)
    if fault:
        raise UnusableError(f"pipeline_layout {cut(text)!r}: {fault}")
    return len(layout_of(text)) // p


def _recompute(
    row: Measurement, model: Transformer, framework: Framework, assumptions: list[str]
) -> int:
    if row.offloads and not row.offload_percent:
        assumptions.append("offloading is ignored, as no share of activations is given")
    kind = _named_kind(row.recompute, model) if row.recompute else "none"
    kind = framework.recompute.get(kind, kind)
    if row.recompute and row.recompute.lower() not in (kind, f"{kind}+seqpar"):
        assumptions.append(f"recomputation {row.recompute} as {kind}")
    return RECOMPUTE.index(kind)


def _named_kind(cell: str, model: Transformer) -> Recompute:
    """Return the kind of recomputation in a cell; of several joined by a plus, the one that
    recomputes most.

    Of a mixture of experts `mlp` repeats the dense layers alone, which counts where they are many.
    """
    known = published_facts().recompute
    names = [part.strip() for part in cell.lower().split("+")]
    if unknown := [name for name in names if name not in known]:
        raise UnusableError(f"recomputation {unknown[0]!r}: needs some of {', '.join(known)}")
    few_dense = model.experts and 2 * model.dense_layers < model.with_ffn
    kinds = [known[name] for name in names if not (name == "mlp" and few_dense)]
    return max(kinds, key=BY_COST.index, default="none")


def _splits_norms(row: Measurement, framework: Framework) -> bool:
    """Whether norms are split over TP ranks: as the row states, else as its software does."""
    if row.sequence_parallel is not None:
        return row.sequence_parallel > 0
    return framework.sequence_parallel == "with tp" or "seqpar" in row.recompute.lower()


def _offload_percent(row: Measurement) -> int:
    """Return the share of activations (%) in the host's memory, as the row states."""
    if row.offload_percent is not None and row.offload_percent > 100:
        raise UnusableError(f"offload_percent = {row.offload_percent}: needs a share from 0 to 100")
    return row.offload_percent or 0


def _copies(
    row: Measurement, c: int, d: int, inside: tuple[int, int, int, int], assumptions: list[str]
) -> int:
    """Copies of what ZeRO shards over part of the data-parallel ranks, inside an HB domain."""
    group = SHARDED_OVER.search(row.notes)
    shard = int(group[1]) if group else 0
    if not shard or shard == c * d:
        return 1
    if inside[1] == c and c * inside[2] % shard == 0 and shard % c == 0:
        return c * d // shard
    assumptions.append(f"ZeRO shards over all data-parallel ranks, not over {shard}")
    return 1


def _zero(row: Measurement, framework: Framework, p: int, assumptions: list[str]) -> int:
    if row.zero is None:
        assumptions.append(f"ZeRO {framework.zero}")
    zero = framework.zero if row.zero is None else row.zero
    if zero > SHARDED:
        raise UnusableError(f"ZeRO stage {zero} is not known")
    if zero == SHARDED and p > 1 and framework.zero_in_pipeline < SHARDED:
        assumptions.append(
            f"{framework.name} keeps parameters gathered under a pipeline"
            + ", and gradients unsharded" * (framework.zero_in_pipeline == 1)
        )
        return framework.zero_in_pipeline
    return zero


def _expert_tp(row: Measurement, model: Transformer, t: int, assumptions: list[str]) -> int:
    """Whether all TP ranks split experts, or how many do: as stated, else if the model has few
    experts.
    """
    if not model.experts or t == 1:
        return False
    if row.expert_tp is not None:
        ranks = max(row.expert_tp, 1)
        if t % ranks:
            raise UnusableError(f"experts are split {ranks} ways, which does not divide TP {t}")
        return ranks == t if ranks in (1, t) else ranks
    are_split = model.experts < MANY_EXPERTS
    assumptions.append("TP splits the experts" if are_split else "TP does not split the experts")
    return are_split


def _expert_parallel(row: Measurement, model: Transformer, ranks: int) -> int:
    ep = row.ep or 1
    if not model.experts:
        if ep > 1:
            raise UnusableError(f"EP {ep}, but the model is dense")
        return 1
    counts = {"ranks": ranks, "experts": model.experts}
    if failing := [f"{count} {noun}" for noun, count in counts.items() if count % ep]:
        raise UnusableError(f"EP {ep} does not divide {both(failing)}")
    return ep


def mappings_of(splits: Sequence[MeasuredSplit]) -> Mappings:
    """Return one mapping per split; the position of stages is not published and does not affect the
    time, since links are not charged.
    """
    names = [f.name for f in fields(Mappings) if f.name != "outermost"]
    return Mappings.of(**{name: [int(getattr(split, name)) for split in splits] for name in names})


def with_largest_micro_batch(workload: Workload, gpu: Gpu, split: MeasuredSplit) -> MeasuredSplit:
    """Return the split with the largest micro-batch that divides its batch and fits into memory;
    unchanged if none fits.
    """
    local = split.micro_batch * split.micro_batches
    choices = [
        replace(split, micro_batch=b, micro_batches=local // b)
        for b in range(1, local + 1)
        if local % b == 0
    ]
    fits = _fitting(workload, gpu, choices)
    return fits[-1] if fits else split


def with_least_recomputation(workload: Workload, gpu: Gpu, split: MeasuredSplit) -> MeasuredSplit:
    """Return the split with the first kind of recomputation that fits into memory; unchanged if
    none does.
    """
    choices = [replace(split, recompute=RECOMPUTE.index(kind)) for kind in BY_COST]
    fits = _fitting(workload, gpu, choices)
    return fits[0] if fits else split


def _fitting(workload: Workload, gpu: Gpu, choices: Sequence[MeasuredSplit]) -> list[MeasuredSplit]:
    fits = memory_bytes(workload, mappings_of(choices)) <= gpu.hbm_gb * 1e9
    return [choice for choice, fit in zip(choices, fits, strict=True) if fit]
