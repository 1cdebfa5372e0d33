"""A row that says too little is skipped with a reason; one that its source contradicts elsewhere is corrected."""

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
        ({"layers": 40, "ffn": None}, "(ffn), and"),
        ({"kv_heads": 7}, "kv_heads = 7"),
        ({"tp": None, "dp": None}, "TP is not given"),
        ({"gpu": "H100 PCIe"}, "accelerator H100 PCIe"),
        ({"recompute": "selective+some"}, "recomputation 'some': needs some of none, selective, core_attn"),
        (
            dict.fromkeys(("layers", "hidden", "ffn", "heads", "kv_heads", "head_dim"), None)
            | {"model": "Nemotron 3 Nano 4B"},
            "Nano 4B has 4 B parameters, but nemotron-3-nano of the catalog has 31.6 B",
        ),
        ({"gpus": 63}, "CP = 16"),
        ({"global_batch": None}, "global batch"),
        ({"global_batch": 30}, "global batch 30"),
        ({"precision": "int4"}, "precision 'int4'"),
        ({"precision": ""}, "precision is not published"),
        ({"precision": "nvfp4"}, "no fp4"),
        ({"recompute": "some"}, "recomputation 'some'"),
        ({"zero": 4}, "ZeRO stage 4"),
        ({"iter_time_s": None}, "no measurement is published"),
        ({"iter_time_s": 1e12}, "implausible"),
        ({"iter_time_s": None, "tflops_per_gpu": 400.0}, "flop_count, one of"),
        ({"corrections": "some"}, "corrections 'some': no such correction, needs some of bloom-heads"),
        ({"compile": True}, "software.compile = true: has no effect in megatron-core"),
    ],
)
def test_the_reason_is_named(row, changes, why):
    outcome = outcome_of(row(**changes))
    assert why in outcome.why


def test_of_the_published_rows_most_can_be_predicted(outcomes):
    assert len(outcomes) == 447
    assert sum(isinstance(outcome, MeasuredRun) for _, outcome in outcomes) >= 386


def test_three_layers_may_be_missing_from_the_chunks_of_a_pipeline(row, experts):
    """Llama 3.1 405B was published with 126 layers in 16 x 8 chunks; HybridEP makes no hybrid model."""
    assert isinstance(outcome_of(row(interleave=20, layers=77)), MeasuredRun)
    assert isinstance(outcome_of(row(interleave=20, layers=76)), SkippedRow)
    assert isinstance(outcome_of(row(notes="HybridEP")), MeasuredRun)
    assert outcome_of(row(experts, ep=5)).why.startswith("EP 5 ")


def test_a_column_that_its_source_contradicts_elsewhere_is_corrected_and_listed(run):
    """The tables of BLOOM's trials print no heads before 02-23, when the text says that all had 64."""
    named = {"corrections": "bloom-heads", "head_dim": None}
    wrong = run(**named, heads=80, kv_heads=80)
    assert (wrong.workload.model.heads, wrong.workload.model.kv_heads, wrong.workload.model.head_dim) == (64, 64, 128)
    assert [text.split()[0] for text in wrong.assumptions if "printed as 80" in text] == ["heads", "kv_heads"]
    for printed in (run(**named, heads=32, kv_heads=32), run(heads=80, kv_heads=80)):
        assert not any("printed as" in text for text in printed.assumptions)


@pytest.mark.parametrize(
    ("name", "changes", "read"),
    [
        ("qwen3-30b-h100", {"micro_batch": 2, "interleave": 24}, {"micro_batch": 1, "interleave": 12}),
        ("qwen3-30b-h100", {"micro_batch": 4, "interleave": 24}, {"micro_batch": 4, "interleave": 24}),
        ("gpt-oss-b200-ep", {"ep": 8}, {"ep": 64}),
        ("gpt-oss-h100-micro-batch", {"micro_batch": 4}, {"micro_batch": 1}),
    ],
)
def test_what_a_recipe_has_goes_before_a_line_repeated_from_another_table(row, name, changes, read):
    found = corrected(row(EXPERTS, corrections=name, **changes))
    assert {column: getattr(found, column) for column in read} == read
