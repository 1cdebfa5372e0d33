"""A row that says too little is skipped, with a sentence."""

from __future__ import annotations

import pytest

from coopt.validation.runs import Run, Skipped, outcome_of


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"gpu": "TPU7x"}, "accelerator TPU7x is not in the catalog"),
        ({"gpu": ""}, "GPU not published"),
        ({"layers": None, "ffn": None}, "model shape not published (layers, ffn)"),
        ({"notes": "Mamba hybrid"}, "a hybrid or new architecture, not a plain transformer"),
        ({"notes": "MLA attention"}, "latent attention whose ranks are not known"),
        ({"kv_heads": 7}, "a model shape that does not fit together: kv_heads = 7 does not divide heads = 64"),
        ({"tp": None}, "parallel degrees or GPU count not published"),
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
        ({"iter_time_s": None, "tflops_per_gpu": 400.0}, "how they were counted is not known"),
    ],
)
def test_the_reason_is_named(row, changes, why):
    outcome = outcome_of(row(**changes))
    assert isinstance(outcome, Skipped)
    assert why in outcome.why


def test_expert_groups_must_divide(row, experts):
    outcome = outcome_of(row(experts, ep=5))
    assert isinstance(outcome, Skipped)
    assert outcome.why == "EP 5 divides not both 32 ranks and 128 experts"


def test_of_the_published_rows_most_can_be_predicted(published):
    done = [outcome for row in published if isinstance(outcome := outcome_of(row), Run)]
    assert len(published) == 426
    assert len(done) >= 365
