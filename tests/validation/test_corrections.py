"""Rows whose source says something else elsewhere are read as it says there, and list what the table prints."""

from __future__ import annotations

import pytest

from coopt.validation.published import corrected
from tests.validation.conftest import EXPERTS

PREQUEL = "https://github.com/bigscience-workshop/bigscience/blob/master/train/tr11-176B-ml/chronicles-prequel.md#L607"


def test_a_column_that_its_source_contradicts_elsewhere_is_corrected_and_listed(run):
    """The tables of BLOOM's trials print no heads before 02-23, when the text says that all had 64."""
    wrong = run(id="bloom-607", source_url=PREQUEL, heads=80, kv_heads=80, head_dim=None)
    assert (wrong.workload.model.heads, wrong.workload.model.kv_heads, wrong.workload.model.head_dim) == (64, 64, 128)
    assert [text.split()[0] for text in wrong.assumptions if "printed as 80" in text] == ["heads", "kv_heads"]
    printed = run(id="bloom-725", source_url=PREQUEL, heads=32, kv_heads=32, head_dim=None)
    assert printed.workload.model.heads == 32
    assert not any("printed as" in text for text in printed.assumptions)


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


def test_launches_that_are_waited_for_leave_the_gpu_idle(run):
    made = run(id="bloom-607", source_url=PREQUEL)
    assert made.software.kernel_s == 37e-6
    assert run(id="sc21-t1-1.7B", source_url="bigscience-workshop/bigscience/jz").software.kernel_s is None
