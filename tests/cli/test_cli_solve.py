"""`coopt solve`: exit codes, streams and the plan file."""

import json
import os
import tomllib

import pytest

import coopt.solving.answer as solving
from coopt.instance.schema import load
from coopt.plan.schema import InstanceId, Plan
from coopt.plan.store import plan_json, read_plan, with_replaced
from coopt.verifier.checks.claims import check_question
from coopt.verifier.checks.verdict import Ledger

IMPOSSIBLE = ("time_s = 1.0", "time_s = 0.01")


def test_a_proven_plan_leads_with_the_decision_and_its_story_goes_to_stderr(coopt, written):
    done, full = coopt("solve", written()), coopt("solve", written(), "--full")
    assert done.exit_code == 0
    assert done.stdout.startswith("Build 8 x")
    assert "proven optimal in" in " ".join(done.stdout.splitlines()[:2])
    assert all(f"\n{title}" in done.stdout for title in ("Decision", "Bill", "Nearest limits", "What the plan"))
    assert all(line.startswith("coopt: ") for line in done.stderr.splitlines())
    assert "proven optimal" in done.stderr
    assert ("--full" in done.stderr, "--full" in full.stderr) == (True, False)
    titles = ("Decision", "Bill of materials", "Workload training", "How far the plan is from each bound", "Search")
    assert all(title in full.stdout for title in titles)


def test_json_is_one_document_and_the_plan_that_is_written(coopt, written, tmp_path):
    done = coopt("solve", written(), "--json", "-o", tmp_path / "plan.json")
    plan = Plan.model_validate(json.loads(done.stdout))
    assert plan == read_plan(tmp_path / "plan.json")
    assert (plan.alternatives, plan.alternatives_stop) == ((), None)
    assert f"coopt: plan written to {tmp_path / 'plan.json'}" in done.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["plan.json", "tiny.toml"]


def test_an_infeasible_instance_exits_3_and_its_answer_says_why(coopt, written, tmp_path):
    done = coopt("solve", written(IMPOSSIBLE))
    assert done.exit_code == 3
    assert done.stdout.splitlines()[0].endswith("proven infeasible.")
    assert "coopt explain " in done.stderr.splitlines()[-1]
    assert "Workload 'training'" in done.stdout
    again = coopt(
        "solve", written(), "--set", "workload.max_iteration_time_s=0.01", "--json", "-o", tmp_path / "plan.json"
    )
    assert (again.exit_code, json.loads(again.stdout)["status"]) == (3, "infeasible")
    assert again.stderr.rstrip().endswith("--set workload.max_iteration_time_s=0.01")
    assert read_plan(tmp_path / "plan.json").explanation


def test_a_search_without_time_or_interrupted_exits_4_without_a_plan(coopt, written, monkeypatch):
    done = coopt("solve", written(), "--time-limit", "1e-9")
    assert (done.exit_code, "(time limit)" in done.stdout.splitlines()[0]) == (4, True)

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(solving, "solve", interrupted)
    done = coopt("solve", written())
    assert (done.exit_code, done.stdout, done.stderr) == (4, "", "coopt: interrupted\n")


def test_a_plan_without_proof_exits_4_and_shows_the_gap(coopt, planned, monkeypatch):
    stopped = stopped_at(read_plan(planned[1]), 1.0)
    monkeypatch.setattr(solving, "solve", lambda *args, **options: stopped)
    done = coopt("solve", planned[0])
    assert done.exit_code == 4
    assert all(part in done.stdout for part in ("(interrupted)", "$182 k", "gap 10.0%"))


def stopped_at(plan: Plan, factor: float | None) -> Plan:
    """The answer of a search that ended early, with a plan so many times as dear or without one."""
    if factor is None:
        claim = plan.objective.model_copy(update={"value": None, "gap": None, "bound": 0.0})
        nothing = {"status": "unknown", "design": None, "cost": None, "workloads": (), "parts": ()}
        return plan.model_copy(update={"stop_reason": "interrupted", "objective": claim, **nothing})
    value = factor * plan.objective.value
    claim = plan.objective.model_copy(update={"value": value, "bound": 0.9 * value, "gap": 0.1})
    return plan.model_copy(update={"status": "feasible", "stop_reason": "interrupted", "objective": claim})


@pytest.mark.parametrize(
    ("factor", "old", "kept"),
    [
        *((factor, "proven", kept) for factor, kept in ((None, True), (1.0, True), (1.1, True), (0.9, False))),
        *((factor, old, factor is None) for old in ("another question", "another version") for factor in (None, 1.1)),
        (None, "no plan", False),
        (None, "nothing", False),
    ],
)
def test_a_search_that_ends_early_leaves_a_better_plan_in_its_file(
    coopt, planned, tmp_path, monkeypatch, factor, old, kept
):
    instance, file = planned
    plan, output = read_plan(file), tmp_path / "kept.json"
    other = plan.model_copy(update={"instance": plan.instance.model_copy(update={"sha256": "0" * 64})})
    held = {
        "proven": plan_json(plan),
        "another question": plan_json(other),
        "no plan": plan_json(stopped_at(plan, None)),
    }
    if old != "nothing":
        output.write_text(held.get(old, '{"schema": "coopt-plan/0"}'), "utf-8")
    before = output.read_bytes() if output.exists() else None
    monkeypatch.setattr(solving, "solve", lambda *args, **options: stopped_at(plan, factor))
    done = coopt("solve", instance, "-o", output)
    assert (done.exit_code, output.read_bytes() == before, "not overwritten" in done.stderr) == (4, kept, kept)


def test_options_reach_the_solver(coopt, written):
    words = ["--objective", "power", "--time-limit", "60", "--gap", "0.05", "--threads", 2, "--seed", 4]
    plan = json.loads(coopt("solve", written(), "--json", *words, "--solver", "appsi_highs").stdout)
    assert plan["objective"]["kind"] == "power"
    assert plan["solver"]["name"] == "appsi_highs"
    assert plan["solver"]["options"].items() >= {"gap": 0.05, "time_limit_s": 60, "random_seed": 4}.items()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_without_leave_to_write_is_refused(coopt, written, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    assert coopt("solve", written(), "-o", tmp_path / "locked" / "plan.json").exit_code == 1


def test_a_link_stays_and_what_it_points_to_is_written(coopt, written, tmp_path):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target.json", tmp_path / "link.json"
    link.symlink_to(target)
    for _ in range(2):  # a target that is not there yet, and one that is
        assert coopt("solve", written(), "-o", link).exit_code == 0
        assert link.is_symlink()
        assert read_plan(target).status == "optimal"
    assert sorted(file.name for file in target.parent.iterdir()) == ["target.json"]


def test_runners_up_stand_in_the_plan_and_in_the_report(coopt, solved):
    instance, file = solved(options=("--top", 2))
    assert "Runners-up" in coopt("solve", instance, "--top", 2).stdout
    assert len(read_plan(file).alternatives) == 1
    assert coopt("verify", instance, file).exit_code == 0


def test_values_replaced_on_the_command_line_make_the_question_of_the_plan(coopt, written, tmp_path):
    instance, file = written(), tmp_path / "plan.json"
    pins = ("--set", "cluster.gpus=128", "--set", "network.fabrics=clos")
    done = coopt("solve", instance, *pins, "-o", file)
    assert done.exit_code == 0
    assert 'cluster.gpus = 128, network.fabrics = "clos".' in done.stdout
    plan = read_plan(file)
    assert plan.overrides.values == {"cluster.gpus": 128, "network.fabrics": "clos"}
    assert (plan.design.gpus, plan.design.fabric.kind) == (128, "clos")
    assert plan.instance.sha256 == load(instance, dict(plan.overrides.values)).sha256 != load(instance).sha256
    for command in ("verify", "explain", "certify", "simulate", "faults", "traffic"):
        assert coopt(command, instance, file, *pins).exit_code == 0, command
    refused, rejected = (coopt(command, instance, file) for command in ("simulate", "verify"))
    assert (refused.exit_code, "here: cluster.gpus = 128" in refused.stderr) == (1, True)
    assert (rejected.exit_code, "--set" in rejected.stdout) == (5, True)


def test_a_plan_that_was_solved_with_nothing_replaced_may_not_say_so(coopt, planned):
    instance, file = planned
    plan = json.loads(file.read_text("utf-8"))
    for key in ("cluster.gpus", "workload.max_iteration_time_s", "workload.0.global_batch", "another"):
        file.write_text(json.dumps(plan | {"overrides": plan["overrides"] | {"values": {key: 32}}}), "utf-8")
        rejected = coopt("verify", instance, file)
        assert (rejected.exit_code, rejected.stdout[:16]) == (5, "Rejected: 1 of 3")


@pytest.mark.parametrize(
    "values",
    [
        {"cluster.gpus": 128, "margin.time": 0.01},
        {"cluster.gpus": [64, 128]},
        {"cluster.gpus.least": 64, "cluster.gpus.most": 128, "cluster.gpus.step": 64},
        {"cluster.gpu": "h200", "network.hb_domains": "hgx-h200-8"},
        {"cluster.gpu.extends": "h100-sxm", "cluster.gpu.name": "ours"},
        {"network.oversubscription": 3, "network.hall.racks_per_row": 10, "network.nics_per_gpu": 2},
        {"workload.global_batch": [64, 128], "workload.critical_batch_tokens": 4e6, "workload.train_tokens": 1e12},
        {"workload.0.mapping.tp": 4, "workload.0.options.dp_mode": ["sync", "overlap"]},
        {"workload.0.options.software": "fsdp", "robust.slower": 2, "robust.survive": "nic"},
        {"solver.gap": 0.1, "objective.minimize": "tco", "limits.racks": 100, "name": "other"},
    ],
    ids=lambda values: ", ".join(values),
)
def test_what_was_set_is_found_in_the_instance(planned, values):
    table = tomllib.loads(planned[0].read_text("utf-8"))
    if "cluster.gpu.extends" in values or "cluster.gpus.least" in values:
        key = "gpu" if "cluster.gpu.extends" in values else "gpus"
        table["cluster"][key] = {}
    asked, plan = load(table, values), with_replaced(read_plan(planned[1]), values)
    named = plan.model_copy(update={"instance": InstanceId(name=asked.name, sha256=asked.sha256)})
    assert check_question(Ledger(), asked, named)
