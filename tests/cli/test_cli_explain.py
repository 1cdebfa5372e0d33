"""`coopt explain` and `coopt diff` as a user meets them."""

import json
import shlex
from pathlib import Path

import pytest

import coopt as package
from coopt.plan.difference import Difference
from coopt.plan.store import read_plan
from tests.cli.conftest import PHASES


def test_a_plan_is_explained_in_sentences_and_tables(coopt, written):
    """Networks and GPUs that were not compared are named with a command that works."""
    done = coopt("explain", written())
    assert done.exit_code == 0
    assert done.stdout.startswith("The plan (8")
    for words in (
        "does not bind",
        "each bound costs",
        "the plan stays the best",
        "The runner-up (",
        "only clos in network.fabrics",
    ):
        assert words in done.stdout
    assert "only rail-only in network.fabrics" not in done.stdout  # that is the plan
    notes = [line.partition("to compare ")[2] for line in done.stderr.splitlines() if "to compare " in line]
    left_out = {
        "rail-optimized networks": "only rail-optimized in network.fabrics",
        "another number of GPUs": " in cluster.gpus,",
        "a faster GPU such as b200": " in cluster.gpu,",
    }
    assert [note.partition(":")[0] for note in notes] == list(left_out)
    for note, part in zip(notes, left_out.values(), strict=True):
        again = coopt(*shlex.split(note.partition(": ")[2])[1:])
        assert (again.exit_code, part in again.stdout) == (0, True)


def test_what_makes_an_instance_feasible_is_an_answer(coopt, solved, written):
    """An infeasible plan is explained as its instance."""
    instance, plan = solved(("max_iteration_time_s = 1.0", "max_iteration_time_s = 0.1"))
    done = coopt("explain", instance)
    assert (done.exit_code, coopt("explain", instance, plan).stdout) == (0, done.stdout)
    enough = done.stdout.split("set workload[0].max_iteration_time_s = ")[1].split(" ")[0]
    assert coopt("solve", written(("max_iteration_time_s = 1.0", f"max_iteration_time_s = {enough}"))).exit_code == 0


def test_a_dearer_plan_is_told_what_is_cheaper(coopt, written, two_plans):
    done = coopt(
        "explain", written(('hb_domains = "hgx-h100-8"', 'hb_domains = ["hgx-h100-8", "h100-hb16"]')), two_plans[1]
    )
    assert done.exit_code == 0
    assert "another question, " in done.stdout
    assert "cheapest one: 8 x hgx-h100-8" in done.stdout


def test_a_plan_of_other_values_is_told_with_them_and_as_what_it_is_here(coopt, solved):
    """Bounds bind where something cheaper waits beyond them, not where the plan is dearer than another within."""
    dear = ("--set", "network.optics=400g-fr4")
    instance, plan = solved(('optics = "400g-199"', 'optics = ["400g-199", "400g-fr4"]'), options=dear)
    said = " ".join(coopt("explain", instance, plan).stdout.split())
    for words in ("another question, ", 'network.optics = "400g-fr4"', "other optics", "that meets all bounds"):
        assert words in said
    assert " binds: " not in said
    assert "another question" not in coopt("explain", instance, *dear, plan).stdout


def test_another_fabric_is_told_with_what_it_gives(coopt, written):
    lists = (
        ('fabrics = ["rail-only", "clos"]', 'fabrics = ["rail-only", "rail-optimized"]'),
        ("[network]", "[network]\nmax_tiers = 2"),
        ("gpus = 64", "gpus = 512"),
        ("global_batch = 64", "global_batch = 512"),
    )
    found = json.loads(coopt("explain", written(*lists), "--json").stdout)
    ((rival,), design) = (
        ([one for one in found["rivals"] if one["part"] == "network.fabrics" and not one["excluded"]]),
        found["design"],
    )
    assert (design["fabric"]["kind"], rival["choice"]) == ("rail-only", "rail-optimized")
    joins, speeds = rival["gives"].split(". ")
    assert "any two GPUs" in joins
    slower = 8 / 7 + 50 / 450  # seven NICs of eight, and what they carry for another GPU passes through the domain
    assert speeds == (
        "An iteration takes as long as in the plan; after the loss of a leaf, traffic between HB domains "
        f"takes {slower:.4g} times as long on both networks"
    )
    assert any(rival["gives"] in said for said in found["sentences"])


def test_a_plan_that_misses_a_bound_is_refused(coopt, planned, written):
    _, plan = planned
    late = written(("max_iteration_time_s = 1.0", "max_iteration_time_s = 0.65"), name="late.toml")
    done = coopt("explain", late, plan)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "violates workload[0].max_iteration_time_s" in done.stderr


def test_a_time_limit_ends_with_code_4(coopt, written):
    """It holds for all that is solved."""
    done = coopt("explain", written(("[network]", "[solver]\ntime_limit_s = 1e-9\n\n[network]")))
    assert (done.exit_code, "(time limit)" in done.stdout) == (4, True)
    done = coopt("explain", written(("\n[network]", PHASES)), "--time-limit", 1e-9)
    (line,) = done.stdout.splitlines()
    assert (done.exit_code, "(time limit)" in line) == (4, True)


@pytest.fixture
def two_plans(solved) -> tuple[Path, Path]:
    """The cheapest plan on servers of eight, and that on domains of sixteen."""
    eight, sixteen = (
        solved(('hb_domains = "hgx-h100-8"', f'hb_domains = "{hb}"'), name=f"{hb}.toml")[1]
        for hb in ("hgx-h100-8", "h100-hb16")
    )
    return eight, sixteen


def test_two_plans_differ_in_what_is_listed(coopt, two_plans):
    done = coopt("diff", *two_plans)
    assert "answer different questions" in done.stdout
    assert done.exit_code == 0
    assert "$306 k more" in done.stdout.splitlines()[0]
    for words in ("design.hb_domain.name", "workloads[training].iteration_time_s", "Bill of materials", "+306,144"):
        assert words in done.stdout


def test_a_difference_is_exact_and_turns_around(coopt, two_plans):
    first, second = (read_plan(file) for file in two_plans)
    there, back = (
        Difference.model_validate_json(coopt("diff", *pair, "--json").stdout) for pair in (two_plans, two_plans[::-1])
    )
    assert {(one.key, one.before, one.after) for one in there.changes} == {
        (one.key, one.after, one.before) for one in back.changes
    }
    assert sum(one.usd for one in there.bill) == second.cost.capex_usd - first.cost.capex_usd
    assert sum(one.w for one in there.bill) == pytest.approx(second.cost.power_w - first.cost.power_w)
    keys = [one.key for one in there.changes]
    assert "design.fabric.nic.name" not in keys
    assert len(keys) == len(set(keys))


TWO_ISLANDS = """
[[workload]]
name = "second"
model = "gpt-22b"
global_batch = 8
max_iteration_time_s = 3.0
gpus = [8, 16]
mapping.micro_batch = 1

[sharing]
mode = "partition"

[network]"""


def test_what_is_solved_again_is_said_on_the_way(coopt, written):
    several = ('switches = "64x400g"', 'switches = ["64x400g", "128x400g"]')
    asked, file = [], written(("\n[network]", TWO_ISLANDS), ("time_s = 1.0", "time_s = 2.0"), several)
    package.explain(package.load(file), on_progress=asked.append)
    assert {step.stage for step in asked} == {"explain"}
    said = [step.message for step in asked]
    assert said[0] == "the best plan for the question as asked"
    assert {"workload['training'].max_iteration_time_s", "network.switches"} <= set(said)
    assert any(one.endswith("of cx7-400g") for one in said)
    stopped = coopt("explain", file, "--time-limit", 1e-9)
    assert "coopt: explain: the best plan for the question as asked" in stopped.stderr


@pytest.mark.parametrize(
    ("bound_s", "sought", "missing", "limited"),
    [("0.001", "WAYS_OUT_S", ("relaxations",), "relaxations"), ("1.0", "WITH_PLAN_S", ("bounds", "rivals"), "bounds")],
)
def test_reasons_of_several_networks_are_sought_for_a_while_where_nobody_sets_a_limit(
    coopt, written, monkeypatch, bound_s, sought, missing, limited
):
    """Ways out where nothing answers, and what binds a plan."""
    few = (("gpus = 64", "gpus = 16"), ("global_batch = 64", "global_batch = 16"))
    file = written(("time_s = 1.0", f"time_s = {bound_s}"), *few)
    asked = ("explain", file, "--set", "sharing.mode=partition", "--json")
    monkeypatch.setattr(f"coopt.explain.decided.{sought}", 1e-6)
    done = coopt(*asked)
    found = json.loads(done.stdout)
    assert (done.exit_code, found["status"]) == (4, "optimal" if bound_s == "1.0" else "infeasible")
    assert [found[name] for name in missing] == [[]] * len(missing)
    assert bound_s == "1.0" or "workload[0].max_iteration_time_s" in found["untried"]
    assert "--time-limit" in found["sentences"][-1]
    assert json.loads(coopt(*asked, "--time-limit", 200).stdout)[limited]
