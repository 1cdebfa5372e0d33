"""`coopt pareto` answers on stdout, tells its story on stderr and ends with the right code."""

import json
import re

from coopt.plan.front import Front
from coopt.report.fronts.files import NAMES
from coopt.solving.driver import Run

TWO_SIZES = ('hb_domains = "hgx-h100-8"', 'hb_domains = ["hgx-h100-8", "h100-hb16"]')


def test_a_front_is_told_in_a_sentence_and_a_table(coopt, written):
    done = coopt("pareto", written(TWO_SIZES))
    assert done.exit_code == 0
    assert re.search(r" in place of 0\.6.* saves \$", done.stdout.splitlines()[0])
    assert "hgx-h100-8, 1-tier rail-only" in done.stdout
    assert done.stderr.startswith("coopt: columns: ")


def test_a_folder_gets_every_file_and_json_is_one_document(coopt, written, tmp_path):
    """Which a front without a point replaces with none."""
    folder, words = tmp_path / "new" / "front", ("--json", "--points", 3, "--objective", "power")
    asked = ("pareto", written(TWO_SIZES), "-o", folder, *words)
    done = coopt(*asked)
    assert done.exit_code == 0
    assert Front.model_validate(json.loads(done.stdout)).kind == "power"
    assert f"coopt: Pareto front written to {folder}\n" in done.stderr
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert sorted(before) == sorted(NAMES)
    assert coopt(*asked, "--time-limit", 1e-9).exit_code == 4
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_what_is_not_found_has_an_exit_code_of_its_own(coopt, written):
    done = coopt("pareto", written(), "--slowest", 0.1)
    assert done.exit_code == 3
    first, second, *_ = done.stdout.splitlines()
    assert first.endswith("proven infeasible.")
    assert "0.70" in second
    late = coopt("pareto", written(), "--time-limit", 1e-9)
    assert late.exit_code == 4
    assert "(time limit)" in late.stdout


def test_an_interrupted_front_replaces_no_whole_one_of_the_same_question(coopt, written, tmp_path, monkeypatch):
    def interrupted(run, stage, message, **standing):
        if message == "1 of 2 points proven":
            raise KeyboardInterrupt

    folder, other = tmp_path / "front", ('name = "tiny"', 'name = "other"')
    assert coopt("pareto", written(TWO_SIZES), "-o", folder).exit_code == 0
    whole = {name: (folder / name).read_bytes() for name in NAMES}
    monkeypatch.setattr(Run, "tell", interrupted)
    done = coopt("pareto", written(TWO_SIZES), "-o", folder)
    assert (done.exit_code, "not overwritten" in done.stderr, "(interrupted), 1 point" in done.stdout) == (
        4,
        True,
        True,
    )
    assert {name: (folder / name).read_bytes() for name in NAMES} == whole
    assert coopt("pareto", written(TWO_SIZES, other), "-o", folder).exit_code == 4
    assert len(json.loads((folder / "front.json").read_text("utf-8"))["points"]) == 1
