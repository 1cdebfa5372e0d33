"""`coopt suite`: a grid of cases from the command line."""

from __future__ import annotations

import json

import pytest

SUITE = """\
schema = 1
name = "small"
[[grid]]
name = "pace"
instances = "tiny.toml"
[grid.vary]
"workload.max_iteration_time_s" = [0.5, 1.0]
[[figure]]
name = "cost"
title = "Cost by pace"
grid = "pace"
x = "workload_max_iteration_time_s"
y = "capex_usd"
"""


@pytest.fixture
def suite(written, tmp_path):
    """A suite of two cases, one of which nothing can meet."""
    written()
    file = tmp_path / "suite.toml"
    file.write_text(SUITE, "utf-8")
    return file


def test_a_run_answers_and_says_where_everything_is(coopt, suite, tmp_path):
    done = coopt("suite", "run", suite, "-o", tmp_path / "out", "--workers", "1")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("2 cases done.\n")
    assert "1 infeasible, 1 optimal" in done.stdout
    assert "coopt: cases: 0 of 2" in done.stderr

    again = coopt("suite", "run", suite, "-o", tmp_path / "out")
    assert (again.exit_code, again.stdout) == (1, "")
    assert "needs --resume" in again.stderr

    resumed = coopt("suite", "run", suite, "-o", tmp_path / "out", "--resume", "--json")
    summary = json.loads(resumed.stdout)
    assert (resumed.exit_code, summary["kept"], summary["worked"]) == (0, 2, 0)

    shown = coopt("suite", "report", tmp_path / "out", "-o", tmp_path / "pictures", "--format", "svg")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("small: 2 cases (1 infeasible, 1 optimal).\n")
    assert "fastest design takes" in shown.stdout
    assert [file.name for file in (tmp_path / "pictures").iterdir()] == ["cost.svg"]
    assert "cost.svg" in shown.stderr

    rows = json.loads(coopt("suite", "report", tmp_path / "out", "--json").stdout)
    assert [row["status"] for row in rows] == ["infeasible", "optimal"]


def test_results_go_to_a_folder_of_the_suites_name(coopt, suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert coopt("suite", "run", suite, "--workers", "1").exit_code == 0
    assert (tmp_path / "out" / "small" / "results.parquet").exists()


def test_what_is_missing_is_named_with_its_remedy(coopt, suite, tmp_path, monkeypatch):
    monkeypatch.setattr("coopt.suite.table.find_spec", lambda name: None)
    done = coopt("suite", "run", suite, "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert "pip install 'coopt[suite]'" in done.stderr
    assert not (tmp_path / "out").exists()
