"""`coopt route` and `coopt faults`: what a plan's network does under real routes, and without a part."""

import csv
import json

import pytest


def test_routes_say_the_factor_and_the_time_and_hold_every_load(coopt, planned, tmp_path):
    assert coopt("route", *planned).stdout.startswith(("Routed by best", "Nothing to route: "))
    found = json.loads(coopt("route", *planned, "--algorithm", "ecmp", "--seed", "3", "--json").stdout)
    assert found["schema"] == "coopt-routing/1"
    assert (found["algorithm"], found["seed"], found["failed_cores"]) == ("ecmp", 3, 0)
    assert found["routing"] >= 1
    assert found["workloads"][0]["routed_time_s"] >= found["workloads"][0]["iteration_time_s"] * (1 - 1e-9)
    done = coopt("route", *planned, "--links", tmp_path / "links.csv")
    rows = list(csv.reader((tmp_path / "links.csv").read_text("utf-8").splitlines()))
    assert rows[0][:3] == ["workload", "collective", "planes"]
    assert f"loads of {len(rows) - 1:,} bundles of links written" in done.stderr


WRONG = {  # what is changed of the only part
    "no workloads": lambda part: part["workloads"].clear(),
    "another name": lambda part: part["workloads"][0].update(name="other"),
    "another time": lambda part: part["workloads"][0].update(iteration_time_s=1e-9),
    "no placement": lambda part: part["workloads"][0].update(placement={}),
    "another placement": lambda part: part["workloads"][0]["placement"].update(tp=[64, 1]),
    "another mapping": lambda part: part["workloads"][0]["mapping"].update(tp=3),
    "no micro-batch": lambda part: part["workloads"][0]["mapping"].update(micro_batch=0),
    "no chunk": lambda part: part["workloads"][0]["mapping"].update(interleave=0),
    "huge": lambda part: part["workloads"][0]["mapping"].update(ep=2**63),
    "no tp": lambda part: part["workloads"][0]["mapping"].update(tp=0),
    "no ports": lambda part: part["design"]["fabric"]["tier"][0].update(down_ports=0),
    "too many ports": lambda part: part["design"]["fabric"]["tier"][0].update(down_ports=10**9),
    "no levels": lambda part: part["design"]["fabric"].update(tier=[]),
    "another switch": lambda part: part["design"]["fabric"]["switch"].update(name="none"),
    "another domain": lambda part: part["design"]["hb_domain"].update(name="none"),
    "too few domains": lambda part: part["design"]["hb_domain"].update(count=3),
    "too many active": lambda part: part["design"]["hb_domain"].update(active=64, count=1),
}
EXPORTS = tuple(("export", "--format", name) for name in ("megatron", "bridge", "ranks", "routes"))


@pytest.mark.parametrize("wrong", WRONG)
def test_a_plan_that_is_not_the_instances_is_refused_in_a_sentence(coopt, planned, wrong):
    instance, file = planned
    plan = json.loads(file.read_text("utf-8"))
    (part,) = plan["parts"]
    WRONG[wrong](part)
    file.write_text(json.dumps(plan | {key: part[key] for key in ("design", "workloads")}), "utf-8")
    for command, *options in (("route",), ("faults",), ("traffic",), ("simulate",), *EXPORTS):
        if (wrong, command) != ("another time", "simulate"):  # which tells its own
            done = coopt(command, instance, file, *options)
            assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1), command
            assert (done.stderr[:7], "needs" in done.stderr) == ("coopt: ", True), command


def test_a_plan_without_a_design_is_refused(coopt, planned):
    instance, file = planned
    plan = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps(plan | {"status": "infeasible", "design": None, "cost": None, "workloads": []}), "utf-8")
    for command in ("route", "faults"):
        done = coopt(command, instance, file)
        assert (done.exit_code, "has no design" in done.stderr) == (1, True), command


def test_faults_list_every_kind_of_part_and_tell_the_worst_first(coopt, planned):
    told = coopt("faults", *planned).stdout
    assert told.startswith("Training ")
    assert "HB domain" in told
    found = json.loads(coopt("faults", *planned, "--json").stdout)
    assert found["schema"] == "coopt-faults/1"
    assert {"GPU", "NIC", "HB domain"} <= {fault["part"] for fault in found["faults"]}
    assert all(fault["effect"] in ("none", "slower", "stops") for fault in found["faults"])


def test_a_plan_trains_on_direct_links_where_only_gradients_cross(coopt, solved):
    planned = solved(
        ("time_s = 1.0\nmapping.micro_batch = 1", "time_s = 100.0\nmapping = { tp = 8, pp = 1 }"),
        ("global_batch = 64", "global_batch = 256"),  # a small batch lets TP cross domains to halve what gradients take
    )
    domains = json.loads(planned[1].read_text("utf-8"))["design"]["hb_domain"]["count"]
    done = coopt("collective", f"ring:{domains}", "--train", *planned, "--json")
    assert done.exit_code == 0, done.stderr
    (one,) = json.loads(done.stdout)["training"]
    assert 0 < one["between_domains_s"] < one["iteration_time_s"]
    assert "with these links" in coopt("collective", f"ring:{domains}", "--train", *planned).stdout
