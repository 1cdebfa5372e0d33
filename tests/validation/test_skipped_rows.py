"""A row that says too little is skipped, with a sentence."""

from __future__ import annotations

import pytest

from coopt.validation.runs import MeasuredRun, SkippedRow, outcome_of


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"gpu": "TPU7x"}, "accelerator TPU7x"),
        ({"gpu": ""}, "GPU not published"),
        ({"model": "some", "layers": None, "ffn": None}, "(layers, ffn)"),
        ({"notes": "Mamba hybrid"}, "hybrid"),
        ({"notes": "MLA attention"}, "latent attention"),
        ({"ep": 8}, "EP 8,"),
        ({"interleave": 21}, "= 84 model chunks"),
        ({"iter_time_s": 2.0}, "implies 3,680 TFLOP/s"),
        ({"layers": 40, "ffn": None}, "(ffn), nor"),
        ({"kv_heads": 7}, "kv_heads = 7"),
        ({"tp": None, "dp": None}, "parallel degrees"),
        ({"gpu": "H100 PCIe"}, "accelerator H100 PCIe"),
        ({"recompute": "selective+some"}, "recomputation 'selective+some'"),
        ({"gpus": 63}, "CP = 16"),
        ({"global_batch": None}, "global batch"),
        ({"global_batch": 30}, "global batch 30"),
        ({"precision": "int4"}, "precision 'int4'"),
        ({"precision": ""}, "precision not published"),
        ({"precision": "nvfp4"}, "no fp4"),
        ({"recompute": "some"}, "recomputation 'some'"),
        ({"zero": 4}, "ZeRO stage 4"),
        ({"iter_time_s": None}, "no measurement published"),
        ({"iter_time_s": 1e12}, "beyond reason"),
        ({"iter_time_s": None, "tflops_per_gpu": 400.0}, "flop_conv="),
    ],
)
def test_the_reason_is_named(row, changes, why):
    outcome = outcome_of(row(**changes))
    assert why in outcome.why


def test_expert_groups_must_divide(row, experts):
    outcome = outcome_of(row(experts, ep=5))
    assert outcome.why.startswith("EP 5 ")


def test_of_the_published_rows_most_can_be_predicted(published):
    done = [outcome for row in published if isinstance(outcome := outcome_of(row), MeasuredRun)]
    assert len(published) == 444
    assert len(done) >= 386


def test_three_layers_may_be_missing_from_the_chunks_of_a_pipeline(row):
    """Llama 3.1 405B was published with 126 layers in 16 x 8 chunks."""
    assert isinstance(outcome_of(row(interleave=20, layers=77)), MeasuredRun)
    assert isinstance(outcome_of(row(interleave=20, layers=76)), SkippedRow)


def test_an_expert_exchange_called_hybrid_makes_no_hybrid_model(row):
    assert isinstance(outcome_of(row(notes="HybridEP")), MeasuredRun)
