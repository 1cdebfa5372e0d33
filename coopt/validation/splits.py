"""Parallel mapping of a row, also as arrays for the performance model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.transformer import Recompute, Transformer
from coopt.instance.workload import Workload
from coopt.perf.mapping import RECOMPUTE, Mappings
from coopt.perf.memory import memory_bytes
from coopt.validation.facts import RecomputeFact, SoftwareStack, published_facts
from coopt.validation.published import Measurement, UnusableError

EXPERT_TP = re.compile(r"\bETP=(\d+)")
SHARDED_OVER = re.compile(r"FSDP(?: shard)?(?: group |=)(\d+)")
FSDP2 = re.compile(r"FSDP2|torchtitan", re.IGNORECASE)
DEFERRED = re.compile(
    r"Automodel", re.IGNORECASE
)  # its defer_fsdp_grad_sync is true if nothing else is said
DOMAIN = re.compile(r"\bhbd=(\d+)")
# GPUs of the usual server; what is larger is a rack of trays, whose GPUs a table counts by tray
SERVER = 8
SHARDED = 3  # ZeRO stage that shards parameters too
MANY_EXPERTS = 64  # models of as many are trained without splitting an expert by TP (judgement)
OFFLOADED = ", and activations in the memory of the host, how many is not known"
# kinds of recomputation, in rising order of repeated work
BY_COST: tuple[Recompute, ...] = ("none", "selective", "norm+act", "norm+ffn", "full")
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
    expert_tp: bool
    inside: tuple[int, int, int, int]
    offload_percent: int = 0


def split_of(
    row: Measurement, model: Transformer, stack: SoftwareStack, size: int, assumptions: list[str]
) -> MeasuredSplit:
    """Return the mapping of a row in HB domains of a size; UnusableError with what is missing or
    does not divide.
    """
    t, p, c, d = _degrees(row, assumptions)
    etp = _expert_tp(row, model, t, assumptions)
    ep = _expert_parallel(row, model, (c * d) if etp else (t * c * d))
    b, m = _micro_batches(row, d)
    return MeasuredSplit(
        tp=t,
        cp=c,
        pp=p,
        dp=d,
        ep=ep,
        micro_batch=b,
        micro_batches=m,
        interleave=_interleave(row, model, p, assumptions),
        recompute=_recompute(row, assumptions),
        sequence_parallel=t > 1 and _splits_norms(row, stack),
        zero=_zero(row, stack, p, assumptions),
        expert_tp=etp,
        inside=ranks_inside((t, c, d, p), size),
        offload_percent=_offload_percent(row),
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
    """Return the GPUs per HB domain: from the notes (`hbd=72`), else a usual rack, else a server,
    else 8.
    """
    note = DOMAIN.search(row.notes)
    if note:
        return max(1, int(note[1]))
    if usual.size > SERVER and (row.gpus_per_node or 1) <= SERVER:
        assumptions.append(f"{usual.size} GPUs in an HB domain, as {usual.name} has them")
        return usual.size
    return row.gpus_per_node or SERVER


def _degrees(row: Measurement, assumptions: list[str]) -> tuple[int, int, int, int]:
    if row.gpus is None:
        raise UnusableError("parallel degrees or GPU count not published")
    p, c = row.pp or 1, row.cp or 1
    t = _tensor_parallel(row, p * c, assumptions)
    if row.gpus % (t * p * c):
        raise UnusableError(f"TP x PP x CP = {t * p * c} does not divide {row.gpus} GPUs")
    d = row.gpus // (t * p * c)
    if row.dp not in (None, d):
        assumptions.append(f"DP {d} from the GPU count, printed as {row.dp}")
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
        raise UnusableError("parallel degrees or GPU count not published")
    assumptions.append(f"TP {t}")
    return t


def _micro_batches(row: Measurement, d: int) -> tuple[int, int]:
    """Return the micro-batch size (1 if not published) and the number of micro-batches per
    pipeline.
    """
    if row.global_batch is None:
        raise UnusableError("global batch not published")
    b = row.micro_batch or 1
    if row.global_batch % (d * b):
        raise UnusableError(
            f"global batch {row.global_batch} is not a multiple of DP {d} x micro-batch {b}"
        )
    return b, row.global_batch // (d * b)


def _interleave(row: Measurement, model: Transformer, p: int, assumptions: list[str]) -> int:
    """Model chunks per GPU: as published, else as known for the source, else 1."""
    if p == 1:
        return 1
    known = [fact.chunks for fact in published_facts().interleave if fact.holds_for_row(row)]
    chunks = row.interleave if row.interleave is not None else known[0] if known else 1
    if row.interleave is None and not known and "interleaved" in row.notes:
        assumptions.append("no interleaving, since the number of chunks is not published")
    if p * chunks > model.layers + MISSING_LAYERS:
        raise UnusableError(
            f"PP {p} x interleave {chunks} = {p * chunks} model chunks, but {model.layers} layers"
        )
    return chunks


def _recompute(row: Measurement, assumptions: list[str]) -> int:
    if (recipe := recomputed_of(row)) is not None:
        kind, share = recipe.kind, recipe.offload_percent
        offload_note = f", and {share}% of activations in the memory of the host" if share else ""
        assumptions.append(
            f"recomputation {kind}, as its recipe has it{offload_note}"
            + OFFLOADED * recipe.offloads
        )
        return RECOMPUTE.index(kind)
    kind = _named_kind(row.recompute) if row.recompute else "none"
    if (
        row.recompute
        and row.recompute.lower() not in RECOMPUTE
        and row.recompute != f"{kind}+seqpar"
    ):
        assumptions.append(f"recomputation {row.recompute} as {kind}")
    return RECOMPUTE.index(kind)


def _named_kind(cell: str) -> Recompute:
    """Return the kind of recomputation in a cell; of several joined by a plus, the one that
    recomputes most.
    """
    kinds = [published_facts().recompute.get(part.strip()) for part in cell.lower().split("+")]
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        raise UnusableError(f"recomputation {cell!r} is not known")
    return max(known, key=BY_COST.index)


def _splits_norms(row: Measurement, stack: SoftwareStack) -> bool:
    """Whether norms are split over TP ranks: as the row states, else as its software does."""
    if row.sequence_parallel is not None:
        return row.sequence_parallel > 0
    return stack.sequence_parallel == "with tp" or "seqpar" in row.recompute.lower()


def _offload_percent(row: Measurement) -> int:
    """Return the share of activations (%) in the host's memory: as the row states, else by its
    recipe.
    """
    if row.offload_percent is None:
        return recipe.offload_percent if (recipe := recomputed_of(row)) else 0
    if row.offload_percent > 100:
        raise UnusableError(f"offload_percent {row.offload_percent} is no share of activations")
    return row.offload_percent


def recomputed_of(row: Measurement) -> RecomputeFact | None:
    """Return the known recomputation of a row's recipe; None if unknown, or if the row states
    it.
    """
    facts = published_facts().recomputed
    applies = (
        fact for fact in facts if fact.published == row.recompute and fact.holds_for_row(row)
    )
    return next(applies, None)


def _zero(row: Measurement, stack: SoftwareStack, p: int, assumptions: list[str]) -> int:
    group = SHARDED_OVER.search(row.notes)
    if group:
        assumptions.append(f"shards over all data-parallel ranks, not over {group[1]}")
    if row.zero is None:
        assumptions.append(f"ZeRO {stack.zero}")
        return stack.zero
    if row.zero > 3:
        raise UnusableError(f"ZeRO stage {row.zero} is not known")
    if (
        row.zero == 3 and p > 1 and FSDP2.search(row.text)
    ):  # with reshard_after_forward = false, as both set it then
        is_deferred = DEFERRED.search(row.text) is not None
        assumptions.append(
            "FSDP2 keeps parameters gathered under a pipeline"
            + ", and gradients whole" * is_deferred
        )
        return 1 if is_deferred else 2
    return row.zero


def _expert_tp(row: Measurement, model: Transformer, t: int, assumptions: list[str]) -> bool:
    """Whether TP splits experts: as noted, else if the model has few experts."""
    if not model.experts or t == 1:
        return False
    note = EXPERT_TP.search(row.notes)
    if note:
        return int(note[1]) > 1
    are_split = model.experts < MANY_EXPERTS
    assumptions.append("TP splits the experts" if are_split else "TP does not split the experts")
    return are_split


def _expert_parallel(row: Measurement, model: Transformer, ranks: int) -> int:
    ep = row.ep or 1
    if not model.experts:
        if ep > 1:
            raise UnusableError(f"EP {ep}, but the model is dense")
        return 1
    if ranks % ep or model.experts % ep:
        raise UnusableError(
            f"EP {ep} does not divide both {ranks} ranks and {model.experts} experts"
        )
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
