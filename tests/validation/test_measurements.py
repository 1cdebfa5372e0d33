"""Seconds from what a row publishes: time, tokens/s, or TFLOP/s where their count is known."""

from dataclasses import replace

import pytest

from coopt.validation.published import UnusableError, flop_per_token
from coopt.validation.runs import MeasuredRun
from coopt.validation.shapes import transformer_of


def test_time_is_taken_as_published_or_from_tokens_per_second(run):
    assert run(iter_time_s=20.0, tokens_per_s_per_gpu=1.0).measured_s == 20.0
    made = run(iter_time_s=None, tokens_per_s_per_gpu=1024.0)
    assert made.measured_s == pytest.approx(128 * 8192 / (1024.0 * 64))


def test_flops_give_the_time_where_their_count_is_noted(run, row):
    made = run(iter_time_s=None, tflops_per_gpu=400.0, notes="flop_conv=model-causalattn (ratio 1.0)")
    flop = flop_per_token(transformer_of(row(), []), "model-causalattn")
    assert made.measured_s == pytest.approx(128 * 8192 * flop / (400e12 * 64))
    assert any("TFLOP/s" in text and "model-causalattn" in text for text in made.assumptions)
    assert run(iter_time_s=None, tflops_per_gpu=400.0, flop_count="model-causalattn").measured_s == made.measured_s


def test_utilisation_gives_the_time_as_a_share_of_the_peak_of_the_precision(run, row):
    flop = flop_per_token(transformer_of(row(), []), "model-fullattn")
    for precision, peak in (("bf16", 989e12), ("fp8", 1979e12)):
        made = run(iter_time_s=None, mfu=0.4, precision=precision)
        assert made.measured_s == pytest.approx(128 * 8192 * flop / (0.4 * peak * 64))
        assert any("time is derived from the MFU" in text and "model-fullattn" in text for text in made.assumptions)


def test_no_published_row_is_faster_than_its_hardware(outcomes):
    whys = [outcome.why for _, outcome in outcomes if not isinstance(outcome, MeasuredRun)]
    assert not [why for why in whys if "the peak" in why or "model chunks" in why or "dense" in why]


def test_a_row_that_states_its_layers_is_no_unknown_hybrid(row):
    noted = row(notes="hybrid sharding")
    with pytest.raises(UnusableError, match="mamba_layers"):
        transformer_of(noted, [])
    for shape in ({"mamba_layers": 0}, {"mixers": ()}):
        assert transformer_of(replace(noted, shape={**noted.shape, **shape}), []).layers == row().layers


def test_counts_are_the_published_formulas(row):
    model = transformer_of(row(), [])
    attention = 12 * 80 * 64 * 128 * 8192
    matrices = 80 * (2 * 8192 * 8192 + 2 * 8192 * 8 * 128 + 3 * 8192 * 28672)
    rest = 6 * (matrices + 128256 * 8192)
    assert flop_per_token(model, "model-fullattn") == pytest.approx(rest + attention)
    assert flop_per_token(model, "model-causalattn") == pytest.approx(rest + attention / 2)
    assert flop_per_token(model, "hw-4/3-fullattn") == pytest.approx(
        4 / 3 * (6 * matrices + attention) + 6 * 128256 * 8192
    )
    ignored = 6 * 80 * 2 * 8192 * 56 * 128
    assert flop_per_token(model, "model-fullattn-GQA-ignored") == pytest.approx(rest + attention + ignored)


def test_counts_agree_with_the_time_of_every_dense_row_that_publishes_both(outcomes):
    checked = 0
    for row, outcome in outcomes:
        if not isinstance(outcome, MeasuredRun) or "flop_conv=" not in row.notes or not row.flop_count:
            continue
        tokens = outcome.workload.tokens_per_iteration
        flop_s = tokens * flop_per_token(outcome.workload.model, row.flop_count) / (outcome.measured_s * outcome.gpus)
        assert flop_s / 1e12 == pytest.approx(row.tflops_per_gpu, rel=0.035), row.id
        checked += 1
    assert checked > 200
