"""The seconds of an iteration that a row amounts to."""

from __future__ import annotations

import re

from coopt.instance.transformer import Transformer
from coopt.perf.mapping import FULL
from coopt.perf.parameters import hardware_flop_per_token, model_flop_per_token
from coopt.validation.facts import known
from coopt.validation.published import Row
from coopt.validation.unusable import UnusableError

COUNTS = ("hw-4/3-fullattn", "model-fullattn", "model-fullattn-GQA-ignored", "model-causalattn")
SHORTEST, LONGEST = 1e-6, 1e9  # s
NOTED = re.compile(r"flop_conv=([\w./-]+)")


def measured_seconds(row: Row, model: Transformer, assumed: list[str]) -> float:
    """Measured iteration time: as published, else from tokens/s, else from TFLOP/s where their count is known."""
    seconds = _seconds(row, model, assumed)
    if not SHORTEST <= seconds <= LONGEST:
        raise UnusableError(f"a measurement of {seconds:.3g} s an iteration is beyond reason")
    return seconds


def _seconds(row: Row, model: Transformer, assumed: list[str]) -> float:
    if row.iter_time_s is not None:
        return row.iter_time_s
    if row.global_batch is None or row.gpus is None:
        raise UnusableError("global batch or GPU count not published")
    tokens = row.global_batch * model.seq
    if row.tokens_per_s_per_gpu is not None:
        return tokens / (row.tokens_per_s_per_gpu * row.gpus)
    if row.tflops_per_gpu is None:
        raise UnusableError("no measurement published")
    counts = convention_of(row)
    assumed.append(f"time from TFLOP/s, counted as {counts}")
    return tokens * flop_per_token(model, counts) / (row.tflops_per_gpu * 1e12 * row.gpus)


def convention_of(row: Row) -> str:
    """How the row counts FLOPs, as its notes say or as its group does."""
    noted = NOTED.search(row.notes)
    if noted and noted[1] in COUNTS:
        return noted[1]
    for convention in known().convention:
        if convention.holds_for(row.id) and not noted:
            return convention.counts
    raise UnusableError("only TFLOP/s published, and how they were counted is not known")


def flop_per_token(model: Transformer, counts: str) -> float:
    """FLOPs of a token as a source counts them."""
    if counts == "hw-4/3-fullattn":
        return float(hardware_flop_per_token(model, FULL, flash=True))
    if counts == "model-fullattn-GQA-ignored":
        return model_flop_per_token(model.model_copy(update={"kv_heads": model.heads}))
    attention = 6.0 * model.layers * model.heads * (model.head_dim + model.value_size) * model.seq
    return model_flop_per_token(model) - (0.5 * attention if counts == "model-causalattn" else 0.0)
