"""`coopt report`: a page for every plan, and an exit code that says whether one may build it."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")


def test_a_page_is_written_and_the_decision_said(coopt, planned, tmp_path):
    page = tmp_path / "report.html"
    done = coopt("report", *planned, "-o", page)
    assert done.exit_code == 0
    assert done.stdout.startswith("Build 8 x")
    assert "Accepted: " in done.stdout
    assert f"coopt: page written to {page}\n" in done.stderr
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_the_page_tells_the_command_and_a_quick_one_leaves_sensitivity_out(coopt, planned, tmp_path):
    instance, plan = planned
    page = tmp_path / "report.html"
    assert coopt("report", instance, plan, "-o", page, "--no-sensitivity").exit_code == 0
    quick = page.read_text("utf-8")
    assert f"coopt report {instance} {plan} -o {page} --no-sensitivity</dd>" in quick
    assert "each bound costs" not in quick
    assert coopt("report", instance, plan, "-o", page).exit_code == 0
    whole = page.read_text("utf-8")
    assert f"coopt report {instance} {plan} -o {page}</dd>" in whole
    assert "each bound costs" in whole


def test_the_same_call_writes_the_same_page(coopt, planned, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1900000000")
    page, texts = tmp_path / "report.html", []
    for _ in range(2):
        assert coopt("report", *planned, "-o", page).exit_code == 0
        texts.append(page.read_text("utf-8"))
    assert texts[0] == texts[1]
    assert "2030-03-17 17:46:40 UTC" in texts[0]


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


def test_a_proof_that_nothing_works_has_a_page(coopt, written, tmp_path):
    instance, plan = written(("max_iteration_time_s = 1.0", "max_iteration_time_s = 0.1")), tmp_path / "plan.json"
    assert coopt("solve", instance, "-o", plan).exit_code == 3
    done = coopt("report", instance, plan, "-o", tmp_path / "report.html")
    assert done.exit_code == 0
    assert "is 0.1\N{NO-BREAK SPACE}s" in (tmp_path / "report.html").read_text("utf-8")


def test_a_proof_that_no_choice_works_has_a_page_with_what_has_to_give(coopt, written, tmp_path):
    open_list = ("max_iteration_time_s = 1.0", "max_iteration_time_s = 0.1\nglobal_batch = [48, 64]")
    instance, plan = written(open_list, ("global_batch = 64\n", "")), tmp_path / "plan.json"
    assert coopt("solve", instance, "-o", plan).exit_code == 3
    done = coopt("report", instance, plan, "-o", tmp_path / "report.html", "--no-front")
    assert done.exit_code == 0
    page = (tmp_path / "report.html").read_text("utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert page.count("set workload[0].max_iteration_time_s") == 2


def test_a_wrong_date_leaves_no_page(coopt, planned, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    done = coopt("report", *planned, "-o", tmp_path / "report.html")
    assert done.exit_code == 1
    assert "SOURCE_DATE_EPOCH" in done.stderr
    assert not (tmp_path / "report.html").exists()
