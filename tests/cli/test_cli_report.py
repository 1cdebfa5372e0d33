"""`coopt report`: a page for every plan, and an exit code that says whether one may build it."""

import json

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")


def test_a_page_is_written_and_the_decision_said(coopt, planned, tmp_path, monkeypatch):
    """The same call writes the same page, which tells the command."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1900000000")
    page, texts = tmp_path / "report.html", []
    for _ in range(2):
        done = coopt("report", *planned, "-o", page)
        assert (done.exit_code, done.stdout[:9], "Accepted: " in done.stdout) == (0, "Build 8 x", True)
        assert f"coopt: page written to {page}\n" in done.stderr
        texts.append(page.read_text("utf-8"))
    assert texts[0] == texts[1]
    assert texts[0].startswith("<!DOCTYPE html>")
    command = f"coopt report {planned[0]} {planned[1]} -o {page}"
    for words in ("2030-03-17 17:46:40 UTC", f"{command}</dd>", "each bound costs"):
        assert words in texts[0]
    assert coopt("report", *planned, "-o", page, "--no-sensitivity").exit_code == 0
    quick = page.read_text("utf-8")
    assert (f"{command} --no-sensitivity</dd>" in quick, "each bound costs" in quick) == (True, False)


def test_a_rejected_plan_exits_5_and_its_page_says_so(coopt, planned, tmp_path):
    instance, plan = planned
    changed = json.loads(plan.read_text("utf-8"))
    changed["cost"]["capex_usd"] /= 2
    plan.write_text(json.dumps(changed), "utf-8")
    page = tmp_path / "report.html"
    done = coopt("report", instance, plan, "-o", page)
    assert done.exit_code == 5
    assert "not confirmed: Build" in done.stdout
    assert "Rejected: " in done.stdout
    assert "bad-box" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("changes", "words", "shown"),
    [
        ([("max_iteration_time_s = 1.0", "max_iteration_time_s = 0.1")], [], "is 0.1 s"),
        (
            [
                ("max_iteration_time_s = 1.0", "max_iteration_time_s = 0.1\nglobal_batch = [48, 64]"),
                ("global_batch = 64\n", ""),
            ],
            ["--no-front"],
            "set workload[0].max_iteration_time_s",
        ),
    ],
)
def test_a_proof_that_nothing_works_has_a_page_with_what_has_to_give(coopt, solved, tmp_path, changes, words, shown):
    """Of one question, and of one that leaves a choice."""
    page = tmp_path / "report.html"
    assert coopt("report", *solved(*changes), "-o", page, *words).exit_code == 0
    assert page.read_text("utf-8").replace("\N{NO-BREAK SPACE}", " ").count(shown) == 1 + len(words)


def test_a_wrong_date_leaves_no_page(coopt, planned, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    done = coopt("report", *planned, "-o", tmp_path / "report.html")
    assert done.exit_code == 1
    assert "SOURCE_DATE_EPOCH" in done.stderr
    assert not (tmp_path / "report.html").exists()
