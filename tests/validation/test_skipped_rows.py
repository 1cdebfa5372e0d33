"""A row that says too little is skipped, with a sentence."""

from __future__ import annotations

import pytest

from coopt.validation.runs import MeasuredRun, SkippedRow, outcome_of


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"gpu": "TPU7x"}, "accelerator TPU7x is not in the catalog"),
        ({"gpu": ""}, "GPU not published"),
        ({"model": "some", "layers": None, "ffn": None}, "model shape not published (layers, ffn)"),
        ({"notes": "Mamba hybrid"}, "a hybrid or new architecture, not a plain transformer"),
        ({"notes": "MLA attention"}, "latent attention whose ranks are not known"),
        ({"ep": 8}, "EP 8, but the model is dense"),
        ({"interleave": 21}, "PP 4 x interleave 21 = 84 model chunks, but 80 layers"),
        (
            {"iter_time_s": 2.0},
            "implies 3,680 TFLOP/s for each GPU, more than the peak of H100 in bf16, 989",
        ),
        ({"layers": 40, "ffn": None}, "(ffn), nor that of a catalog model named so"),
        ({"kv_heads": 7}, "a model shape that does not fit together: kv_heads = 7 does not divide heads = 64"),
        ({"tp": None, "dp": None}, "parallel degrees or GPU count not published"),
        ({"gpu": "H100 PCIe"}, "accelerator H100 PCIe is not in the catalog"),
        ({"recompute": "selective+some"}, "recomputation 'selective+some' is not known"),
        ({"gpus": 63}, "TP x PP x CP = 16 does not divide 63 GPUs"),
        ({"global_batch": None}, "global batch not published"),
        ({"global_batch": 30}, "global batch 30 is not a multiple of DP 4 x micro-batch 1"),
        ({"precision": "int4"}, "precision 'int4' is not known"),
        ({"precision": ""}, "precision not published"),
        ({"precision": "nvfp4"}, "h100-sxm has no fp4"),
        ({"recompute": "some"}, "recomputation 'some' is not known"),
        ({"zero": 4}, "ZeRO stage 4 is not known"),
        ({"iter_time_s": None}, "no measurement published"),
        ({"iter_time_s": 1e12}, "beyond reason"),
        ({"iter_time_s": None, "tflops_per_gpu": 400.0}, "is not known: needs flop_conv= in notes, with one of"),
    ],
)
def test_the_reason_is_named(row, changes, why):
    outcome = outcome_of(row(**changes))
    assert isinstance(outcome, SkippedRow)
    assert why in outcome.why


def test_expert_groups_must_divide(row, experts):
    outcome = outcome_of(row(experts, ep=5))
    assert isinstance(outcome, SkippedRow)
    assert outcome.why == "EP 5 does not divide both 32 ranks and 128 experts"


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
