"""Tables of measurements to change one thing of."""

import csv
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from coopt.validation.comparison import Comparison, comparison_of
from coopt.validation.published import Measurement, read_measurements
from coopt.validation.runs import MeasuredRun, SkippedRow, outcome_of, run_of

PUBLISHED = Path(__file__).parents[2] / "benchmarks" / "published.csv"

DENSE: dict[str, Any] = {
    "id": "some-llama-64", "source_url": "https://example.org/runs", "model": "llama3-70b", "layers": 80,
    "hidden": 8192, "ffn": 28672, "heads": 64, "kv_heads": 8, "head_dim": 128, "vocab": 128256, "seq": 8192,
    "gpu": "H100", "gpus": 64, "gpus_per_node": 8, "nic_gbps_per_gpu": 400, "tp": 4, "pp": 4, "cp": 1, "dp": 4,
    "interleave": 5, "micro_batch": 1, "global_batch": 128, "recompute": "none", "zero": 1, "precision": "bf16",
    "iter_time_s": 30.0,
}  # fmt: skip
EXPERTS: dict[str, Any] = DENSE | {
    "id": "some-qwen-64", "model": "qwen3-30b-a3b", "layers": 48, "hidden": 2048, "ffn": 768, "heads": 32,
    "kv_heads": 4, "experts": 128, "topk": 8, "tp": 1, "pp": 2, "dp": 32, "ep": 8, "interleave": 1,
}  # fmt: skip

RowOf = Callable[..., Measurement]
RunOf = Callable[..., MeasuredRun]
Table = Callable[..., Path]


@pytest.fixture
def row() -> RowOf:
    """A dense row with some columns replaced: `row(tp=8, micro_batch=None)`."""
    return lambda base=DENSE, **changes: reduce(
        lambda made, item: made.having(*item), (base | changes).items(), Measurement(id="")
    )


@pytest.fixture
def run(row: RowOf) -> RunOf:
    """The run of such a row."""
    return lambda base=DENSE, **changes: run_of(row(base, **changes))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Write rows as a CSV file: `table(DENSE, DENSE | {"tp": 8})`."""

    def write(*rows: dict[str, Any], name: str = "runs.csv") -> Path:
        file = tmp_path / name
        with file.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, fieldnames=list(dict.fromkeys(key for row in rows for key in row)))
            writer.writeheader()
            writer.writerows(rows)
        return file

    return write


@pytest.fixture(scope="session")
def published() -> list[Measurement]:
    """The measurements that ship with the project."""
    return read_measurements(PUBLISHED)


@pytest.fixture(scope="session")
def outcomes(published: list[Measurement]) -> list[tuple[Measurement, MeasuredRun | SkippedRow]]:
    """Each with its run, or why it is none."""
    return [(row, outcome_of(row)) for row in published]


@pytest.fixture(scope="session")
def found(published: list[Measurement]) -> Comparison:
    """What the model says of them."""
    return comparison_of(published)


@pytest.fixture
def experts() -> dict[str, Any]:
    """The columns of a row that trains a mixture of experts."""
    return EXPERTS


@pytest.fixture
def dense() -> dict[str, Any]:
    """The columns of a row that trains a dense model."""
    return DENSE
