"""`coopt route` and `coopt faults`: what a plan's network does under real routes, and without a part."""

from __future__ import annotations

import csv
import json

import pytest


def test_routes_say_the_factor_and_the_time(coopt, planned):
    done = coopt("route", *planned)
    assert done.exit_code == 0
    assert done.stdout.startswith(("Routed by best", "Nothing to route: "))


def test_routes_as_json_hold_every_load(coopt, planned):
    found = json.loads(coopt("route", *planned, "--algorithm", "ecmp", "--seed", "3", "--json").stdout)
    assert found["schema"] == "coopt-routing/1"
    assert (found["algorithm"], found["seed"], found["failed_cores"]) == ("ecmp", 3, 0)
    assert found["routing"] >= 1
    assert found["workloads"][0]["routed_time_s"] >= found["workloads"][0]["iteration_time_s"] * (1 - 1e-9)


def test_loads_of_links_go_to_a_table(coopt, planned, tmp_path):
    file = tmp_path / "links.csv"
    done = coopt("route", *planned, "--links", file)
    assert done.exit_code == 0
    rows = list(csv.reader(file.read_text("utf-8").splitlines()))
    assert rows[0][:3] == ["workload", "collective", "planes"]
    assert f"loads of {len(rows) - 1:,} bundles written" in done.stderr


WRONG = {
    "no workloads": lambda plan: plan | {"workloads": []},
    "another name": lambda plan: _changed(plan, name="other"),
    "no placement": lambda plan: _changed(plan, placement={}),
    "another placement": lambda plan: _changed(plan, placement=plan["workloads"][0]["placement"] | {"tp": [64, 1]}),
    "another time": lambda plan: _changed(plan, iteration_time_s=1e-9),
    "no micro-batch": lambda plan: _changed(plan, mapping=plan["workloads"][0]["mapping"] | {"micro_batch": 0}),
    "huge": lambda plan: _changed(plan, mapping=plan["workloads"][0]["mapping"] | {"ep": 2**63}),
    "no tp": lambda plan: _changed(plan, mapping=plan["workloads"][0]["mapping"] | {"tp": 0}),
}


def _changed(plan, **changes):
    return plan | {"workloads": [plan["workloads"][0] | changes]}


@pytest.mark.parametrize("command", ["route", "faults", "traffic"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_plan_that_is_not_the_instances_is_refused_in_a_sentence(coopt, planned, command, wrong):
    instance, file = planned
    file.write_text(json.dumps(WRONG[wrong](json.loads(file.read_text("utf-8")))), "utf-8")
    done = coopt(command, instance, file)
    assert done.exit_code == 1, done.output
    assert done.stderr.startswith("coopt: ")
    assert "needs" in done.stderr


@pytest.mark.parametrize("command", ["route", "faults"])
def test_a_plan_without_a_design_is_refused(coopt, planned, command, tmp_path):
    instance, file = planned
    plan = json.loads(file.read_text("utf-8"))
    empty = plan | {"status": "infeasible", "design": None, "cost": None, "workloads": []}
    (tmp_path / "empty.json").write_text(json.dumps(empty), "utf-8")
    done = coopt(command, instance, tmp_path / "empty.json")
    assert done.exit_code == 1
    assert "has no design" in done.stderr


def test_faults_tell_the_worst_first(coopt, planned):
    done = coopt("faults", *planned)
    assert done.exit_code == 0
    assert done.stdout.startswith("Training ")
    assert "HB domain" in done.stdout


def test_faults_as_json_list_every_kind_of_part(coopt, planned):
    found = json.loads(coopt("faults", *planned, "--json").stdout)
    assert found["schema"] == "coopt-faults/1"
    assert {"GPU", "NIC", "HB domain"} <= {fault["part"] for fault in found["faults"]}
    assert all(fault["effect"] in ("none", "slower", "stops") for fault in found["faults"])


def test_a_plan_trains_on_direct_links_where_only_gradients_cross(coopt, written, tmp_path):
    instance = written(
        ("time_s = 1.0\nmapping.micro_batch = 1", "time_s = 100.0\nmapping = { tp = 8, pp = 1 }"),
        ("global_batch = 64", "global_batch = 256"),  # a small batch lets TP cross domains to halve what gradients take
    )
    file = tmp_path / "plan.json"
    assert coopt("solve", instance, "-o", file).exit_code == 0
    domains = json.loads(file.read_text("utf-8"))["design"]["hb_domain"]["count"]
    done = coopt("collective", f"ring:{domains}", "--train", instance, file, "--json")
    assert done.exit_code == 0, done.stderr
    (one,) = json.loads(done.stdout)["training"]
    assert 0 < one["between_domains_s"] < one["iteration_time_s"]
    assert "with these links" in coopt("collective", f"ring:{domains}", "--train", instance, file).stdout
