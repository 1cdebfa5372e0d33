"""`coopt suite`: a grid of cases from the command line."""

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


def test_a_run_answers_and_says_where_everything_is(coopt, suite, tmp_path, monkeypatch):
    """Results go to a folder of the suite's name unless told otherwise."""
    monkeypatch.chdir(tmp_path)
    done = coopt("suite", "run", suite, "--workers", "1")
    folder = tmp_path / "out" / "small"
    assert done.exit_code == 0, done.stderr
    assert (folder / "results.parquet").exists()
    assert done.stdout.startswith("2 cases done.\n")
    assert "1 infeasible, 1 optimal" in done.stdout
    assert "coopt: cases: 0 of 2" in done.stderr

    again = coopt("suite", "run", suite, "-o", folder)
    assert (again.exit_code, again.stdout) == (1, "")
    assert "needs --resume" in again.stderr

    resumed = coopt("suite", "run", suite, "-o", folder, "--resume", "--json")
    summary = json.loads(resumed.stdout)
    assert (resumed.exit_code, summary["kept"], summary["worked"]) == (0, 2, 0)

    shown = coopt("suite", "report", folder, "-o", tmp_path / "pictures", "--format", "svg")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("small: 2 cases (1 infeasible, 1 optimal).\n")
    assert "fastest design takes" in shown.stdout
    assert [file.name for file in (tmp_path / "pictures").iterdir()] == ["cost.svg"]
    assert "cost.svg" in shown.stderr

    rows = json.loads(coopt("suite", "report", folder, "--json").stdout)
    assert [row["status"] for row in rows] == ["infeasible", "optimal"]


def test_what_is_missing_is_named_with_its_remedy(coopt, suite, tmp_path, monkeypatch):
    monkeypatch.setattr("coopt.suite.table.find_spec", lambda name: None)
    done = coopt("suite", "run", suite, "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert "pip install 'coopt[suite]'" in done.stderr
    assert not (tmp_path / "out").exists()
