"""`coopt pareto` answers on stdout, tells its story on stderr and ends with the right code."""

from __future__ import annotations

import json

import pytest

from coopt.plan.front import Front
from coopt.report.fronts.files import NAMES
from coopt.solving.outcome import Run
from tests.cli.conftest import PHASES

TWO_SIZES = ('hb_domains = "hgx-h100-8"', 'hb_domains = ["hgx-h100-8", "h100-hb16"]')


def test_a_front_is_told_in_a_sentence_and_a_table(coopt, written):
    done = coopt("pareto", written(TWO_SIZES))
    assert done.exit_code == 0
    assert done.stdout.startswith("Going from 0.6")
    assert "hgx-h100-8, 1-tier rail-only" in done.stdout
    assert "proven" not in done.stderr.splitlines()[0]
    assert done.stderr.startswith("coopt: columns: ")


def test_json_is_one_document(coopt, written):
    done = coopt("pareto", written(TWO_SIZES), "--json", "--points", 3, "--objective", "power")
    front = Front.model_validate(json.loads(done.stdout))
    assert front.kind == "power"
    assert done.exit_code == 0


def test_a_folder_gets_every_file(coopt, written, tmp_path):
    done = coopt("pareto", written(TWO_SIZES), "-o", tmp_path / "new" / "front")
    assert done.exit_code == 0
    assert sorted(file.name for file in (tmp_path / "new" / "front").iterdir()) == sorted(NAMES)
    assert f"coopt: front written to {tmp_path / 'new' / 'front'}\n" in done.stderr


def test_what_no_design_can_do_exits_3_and_says_what_is_needed(coopt, written):
    done = coopt("pareto", written(), "--slowest", 0.1)
    assert done.exit_code == 3
    assert done.stdout.startswith("There is no such design; proven infeasible.\nthe fastest design takes 0.69")


def test_a_time_limit_exits_4_with_what_is_proven(coopt, written):
    done = coopt("pareto", written(), "--time-limit", 1e-9)
    assert done.exit_code == 4
    assert done.stdout == "Stopped early (time limit) before any point was proven.\n"


def test_an_interrupt_exits_4_and_writes_what_is_proven(coopt, written, tmp_path, monkeypatch):
    def interrupted(run, stage, message, **standing):
        if message == "1 of 2 points proven":
            raise KeyboardInterrupt

    monkeypatch.setattr(Run, "tell", interrupted)
    done = coopt("pareto", written(TWO_SIZES), "-o", tmp_path)
    assert done.exit_code == 4
    assert "(interrupted), 1 point" in done.stdout
    assert len(json.loads((tmp_path / "front.json").read_text("utf-8"))["points"]) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--points", "2"), "in the range"),
        (("--slowest", "nan"), "nan is not"),
        (("--slowest", "0"), "in the range"),
        (("--objective", "time"), "'time' is not"),
    ],
)
def test_misuse_exits_2(coopt, words, says):
    done = coopt("pareto", "x.toml", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr


def test_a_place_that_is_a_file_is_refused_before_the_work(coopt, written):
    instance = written()
    for place in (instance, instance / "below"):
        done = coopt("pareto", instance, "-o", place)
        assert done.exit_code == 1
        assert "is no folder" in done.stderr
        assert "columns" not in done.stderr


def test_a_folder_without_a_name_is_refused(coopt, written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = coopt("pareto", written(), "-o", "")
    assert done.exit_code == 1
    assert "name is empty" in done.stderr
    assert not set(NAMES) & {file.name for file in tmp_path.iterdir()}


def test_growth_in_phases_has_a_front_too(coopt, written, tmp_path):
    instance = written(("\n[network]", PHASES), TWO_SIZES)
    done = coopt("pareto", instance, "--points", 3, "-o", tmp_path / "front", "--over", "training")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("Going from ")
    assert " saves $" in done.stdout.splitlines()[0]
    assert sorted(file.name for file in (tmp_path / "front").iterdir()) == sorted(NAMES)
