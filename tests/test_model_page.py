"""docs/model.md is what its generator writes."""

import re
import runpy
from pathlib import Path

import pytest

from coopt.validation.facts import published_facts
from coopt.validation.published import read_measurements
from coopt.validation.runs import runs_among
from docs.calibration_record import COLUMNS, fitted_runs, read_record, spreads, subjects

ROOT = Path(__file__).parent.parent
DOCS, PUBLISHED = ROOT / "docs", ROOT / "benchmarks" / "published.csv"
RECORD = read_record(ROOT / "benchmarks" / "calibration.csv")


def test_the_page_is_up_to_date() -> None:
    page = runpy.run_path(str(DOCS / "generate.py"))["page"]()
    assert (DOCS / "model.md").read_text("utf-8") == page, "`make docs` writes it"


def test_no_constant_is_left_open() -> None:
    assert not re.search(r"\{[A-Z_]+\}", (DOCS / "model.md").read_text("utf-8"))


def test_the_record_of_the_calibration_is_of_the_sets_and_rows_of_today() -> None:
    runs = fitted_runs(read_measurements(PUBLISHED))
    today = [(one.name, str(one.parameters), str(one.rows)) for one in subjects(runs, published_facts().fit)]
    assert [(line["set"], line["parameters"], line["rows"]) for line in RECORD] == today, (
        "`python docs/generate.py --calibrate` writes it"
    )
    assert all(tuple(line) == COLUMNS for line in RECORD)


def test_errors_on_sources_left_out_are_not_below_those_fitted() -> None:
    (whole,) = [line for line in RECORD if line["set"] == "all"]
    assert float(whole["left_out_mean"]) >= float(whole["fitted_mean"])
    assert f"{100 * float(whole['left_out_mean']):.1f}%" in (ROOT / "README.md").read_text("utf-8")


def test_every_row_that_is_predicted_has_its_address() -> None:
    rows = {row.id: row for row in read_measurements(PUBLISHED)}
    assert not [run.id for run in runs_among(rows.values()) if not rows[run.id].source_url.startswith("https://")]


def test_runs_of_one_configuration_differ_as_the_page_says() -> None:
    ratio, ids = spreads(read_measurements(PUBLISHED))[0]
    assert ratio == pytest.approx(1.15, abs=0.005)
    assert all("gpt175b" in name for name in ids)
    assert "1.15 times" in (DOCS / "model.md").read_text("utf-8")
