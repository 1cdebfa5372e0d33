"""A row that says too little is skipped with a reason; one that its source contradicts elsewhere is corrected."""

from __future__ import annotations

import pytest

from coopt.validation.published import corrected
from coopt.validation.runs import MeasuredRun, SkippedRow, outcome_of
from tests.validation.conftest import EXPERTS


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


def test_of_the_published_rows_most_can_be_predicted(published):
    done = [outcome for row in published if isinstance(outcome := outcome_of(row), MeasuredRun)]
    assert len(published) == 444
    assert len(done) >= 386


def test_three_layers_may_be_missing_from_the_chunks_of_a_pipeline(row, experts):
    """Llama 3.1 405B was published with 126 layers in 16 x 8 chunks; HybridEP makes no hybrid model."""
    assert isinstance(outcome_of(row(interleave=20, layers=77)), MeasuredRun)
    assert isinstance(outcome_of(row(interleave=20, layers=76)), SkippedRow)
    assert isinstance(outcome_of(row(notes="HybridEP")), MeasuredRun)
    assert outcome_of(row(experts, ep=5)).why.startswith("EP 5 ")


PREQUEL = "https://github.com/bigscience-workshop/bigscience/blob/master/train/tr11-176B-ml/chronicles-prequel.md#L607"


def test_a_column_that_its_source_contradicts_elsewhere_is_corrected_and_listed(run):
    """The tables of BLOOM's trials print no heads before 02-23, when the text says that all had 64."""
    wrong = run(id="bloom-607", source_url=PREQUEL, heads=80, kv_heads=80, head_dim=None)
    assert (wrong.workload.model.heads, wrong.workload.model.kv_heads, wrong.workload.model.head_dim) == (64, 64, 128)
    assert [text.split()[0] for text in wrong.assumptions if "printed as 80" in text] == ["heads", "kv_heads"]
    printed = run(id="bloom-725", source_url=PREQUEL, heads=32, kv_heads=32, head_dim=None)
    assert printed.workload.model.heads == 32
    assert not any("printed as" in text for text in printed.assumptions)
    assert wrong.software.kernel_s == 37e-6  # launches that are waited for leave the GPU idle
    assert run(id="sc21-t1-1.7B", source_url="bigscience-workshop/bigscience/jz").software.kernel_s is None


@pytest.mark.parametrize(
    ("name", "changes", "read"),
    [
        ("qwen3-30b-a3b-H100-fp8-cs-16", {"micro_batch": 2, "interleave": 24}, {"micro_batch": 1, "interleave": 12}),
        ("qwen3-30b-a3b-H100-fp8-cs-16", {"micro_batch": 4, "interleave": 24}, {"micro_batch": 4, "interleave": 24}),
        ("gpt-oss-120b-B200-bf16-64", {"ep": 8}, {"ep": 64}),
        ("gpt-oss-120b-H100-bf16-64", {"micro_batch": 4}, {"micro_batch": 1}),
    ],
)
def test_what_a_recipe_has_goes_before_a_line_repeated_from_another_table(row, name, changes, read):
    model = name[: name.index("-a3b") + 4] if "a3b" in name else "gpt-oss-120b"
    found = corrected(row(EXPERTS, id=f"mbridge-25.11-{name}", model=model, **changes))
    assert {column: getattr(found, column) for column in read} == read
