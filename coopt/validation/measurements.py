"""The seconds of an iteration that a row amounts to."""

from __future__ import annotations

import re

from coopt.instance.transformer import Transformer
from coopt.perf.mapping import FULL
from coopt.perf.parameters import attended, hardware_flop_per_token, model_flop_per_token
from coopt.validation.facts import known
from coopt.validation.published import Row, UnusableError

USUAL = "model-fullattn"
COUNTS = ("hw-4/3-fullattn", USUAL, "model-fullattn-GQA-ignored", "model-causalattn")
SHORTEST, LONGEST = 1e-6, 1e9  # s
NOTED = re.compile(r"flop_conv=([\w./-]+)")


def measured_seconds(row: Row, model: Transformer, peak_flop_s: float, assumed: list[str]) -> float:
    """Measured iteration time: as published, else from tokens/s, else from TFLOP/s, else from MFU.

    Parameters
    ----------
    peak_flop_s
        Of the GPU in the precision of the row.
    """
    seconds = _seconds(row, model, peak_flop_s, assumed)
    if not SHORTEST <= seconds <= LONGEST:
        raise UnusableError(f"a measurement of {seconds:.3g} s an iteration is beyond reason")
    if row.global_batch is not None and row.gpus is not None:
        flop_s = row.global_batch * model.seq * least_flop_per_token(model) / (seconds * row.gpus)
        if flop_s > peak_flop_s:
            raise UnusableError(
                f"a measurement that implies {flop_s / 1e12:,.0f} TFLOP/s for each GPU, "
                f"more than the peak of {row.gpu} in {row.precision}, {peak_flop_s / 1e12:,.0f}"
            )
    return seconds


def _seconds(row: Row, model: Transformer, peak_flop_s: float, assumed: list[str]) -> float:
    if row.iter_time_s is not None:
        return row.iter_time_s
    if row.global_batch is None or row.gpus is None:
        raise UnusableError("global batch or GPU count not published")
    tokens = row.global_batch * model.seq
    if row.tokens_per_s_per_gpu is not None:
        return tokens / (row.tokens_per_s_per_gpu * row.gpus)
    if row.tflops_per_gpu is None and row.mfu is None:
        raise UnusableError("no measurement published")
    counts = convention_of(row)
    if row.tflops_per_gpu is not None and counts is not None:
        assumed.append(f"time from TFLOP/s, counted as {counts}")
        return tokens * flop_per_token(model, counts) / (row.tflops_per_gpu * 1e12 * row.gpus)
    if row.mfu is not None:
        if row.mfu > 1.0:
            raise UnusableError(f"MFU {row.mfu:g}, needs a share of the peak of at most 1")
        assumed.append("time from MFU, counted as model FLOPs with full attention, a share of the dense peak")
        return tokens * flop_per_token(model, USUAL) / (row.mfu * peak_flop_s * row.gpus)
    raise UnusableError(
        "only TFLOP/s published, and how they were counted is not known: "
        f"needs flop_conv= in notes, with one of {', '.join(COUNTS)}"
    )


def convention_of(row: Row) -> str | None:
    """How the row counts FLOPs, as its notes say or as its group does; None where neither says so."""
    noted = NOTED.search(row.notes)
    if noted and noted[1] in COUNTS:
        return noted[1]
    for convention in known().convention:
        if convention.holds_for(row.id) and not noted:
            return convention.counts
    return None


def flop_per_token(model: Transformer, counts: str) -> float:
    """FLOPs of a token as a source counts them."""
    if counts == "hw-4/3-fullattn":
        return float(hardware_flop_per_token(model, FULL, flash=True))
    if counts == "model-fullattn-GQA-ignored":
        return model_flop_per_token(model.model_copy(update={"kv_heads": model.heads}))
    return model_flop_per_token(model) - (0.5 * _attention_flop(model) if counts == "model-causalattn" else 0.0)


def least_flop_per_token(model: Transformer) -> float:
    """FLOPs no run can do without: attention only to tokens that are looked at."""
    return model_flop_per_token(model) - (1.0 - attended(model)) * _attention_flop(model)


def _attention_flop(model: Transformer) -> float:
    """FLOPs of scores and context of a token, forward and backward, every token looking at all others."""
    return 6.0 * model.layers * model.heads * (model.head_dim + model.value_size) * model.seq
