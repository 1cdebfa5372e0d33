"""`coopt evaluate`: one given design, values set on the command line."""

import datetime
import json
import re
from pathlib import Path

import pytest

from coopt.cli.arguments import toml_value
from coopt.instance.schema import load
from coopt.instance.texts import InstanceError
from coopt.plan.store import read_plan
from coopt.solving.evaluate import evaluate_instance, mappings
from tests.cli.conftest import PHASES

INSTANCES = Path(__file__).parents[2] / "instances"
PINS = (
    "network.fabrics=rail-only",
    "workload.mapping.tp=8",
    "workload.0.mapping.pp = 4",
    "workload.mapping.interleave=1",
    "workload.mapping.recompute=full",
    "workload.mapping.sequence_parallel=true",
    'workload.mapping.zero=[1]',
)  # fmt: skip


def pinned(*more):
    return [word for pin in (*PINS, *more) for word in ("--set", pin)]


def test_a_pinned_design_is_evaluated(coopt, written):
    done = coopt("evaluate", written(), *pinned())
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("Given: 8 x hgx-h100-8")
    assert "TP 8 (8 in" in done.stdout
    evaluation = json.loads(coopt("evaluate", written(), *pinned(), "--json").stdout)
    assert evaluation["workloads"][0]["mapping"]["tp"] == 8
    assert evaluation["design"]["fabric"]["kind"] == "rail-only"
    late = coopt("evaluate", written(), *pinned("workload.max_iteration_time_s=0.1"))
    assert late.exit_code == 0
    assert "misses" in late.stdout.splitlines()[0]
    assert "NO" in late.stdout


def test_context_parallelism_that_is_left_out_is_what_the_other_degrees_leave(coopt, written):
    for also, degree in (((), 1), (("workload.mapping.dp=1",), 2), (("workload.mapping.cp=2",), 2)):
        evaluation = json.loads(coopt("evaluate", written(), *pinned(*also), "--json").stdout)
        assert evaluation["workloads"][0]["mapping"]["cp"] == degree


def test_no_bound_on_time_is_told_as_none(coopt, solved):
    """Of the fastest plan without a bound, neither words nor numbers make one up."""
    fastest, plan = solved(
        ("max_iteration_time_s = 1.0", ""), ("\n[network]", '\n[objective]\nminimize = "time"\n\n[network]')
    )
    limits = json.loads(coopt("evaluate", fastest, "--plan", plan, "--json").stdout)["limits"]
    assert not [one["name"] for one in limits if one["name"].startswith("time")]
    assert "000,000,000" not in coopt("evaluate", fastest, "--plan", plan).stdout
    lines = coopt("verify", fastest, plan).stdout.splitlines()
    for check, nones in (("deadline", 1), ("bound-time", 2)):
        (words,) = (line.split() for line in lines if line.split()[:1] == [check])
        assert words.count("none") == nones
    assert not any("1e+15" in line for line in lines)


@pytest.mark.parametrize("changes", [(), (("\n[network]", PHASES),)])
def test_an_open_choice_is_refused_with_the_keys_to_pin(coopt, written, changes):
    done = coopt("evaluate", written(*changes))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "(rail-only, clos)" in done.stderr
    assert "mapping.tp" in done.stderr


def test_a_plan_of_phases_is_worked_out_at_other_bounds(coopt, solved):
    instance, plan = solved(("\n[network]", PHASES), ("time_s = 1.0", "time_s = 3.0"))
    done = coopt("evaluate", instance, "--plan", plan, "--set", "workload.max_iteration_time_s=1.0")
    assert done.exit_code == 0, done.stderr
    assert "misses the bound on time" in done.stdout
    assert "from the plan's decisions" in done.stdout
    found = json.loads(coopt("evaluate", instance, "--plan", plan, "--json").stdout)
    assert found["value"] == json.loads(plan.read_text("utf-8"))["objective"]["value"]


def test_phases_without_a_choice_are_worked_out(coopt, written):
    wide = PHASES.replace("gpus = 64", "gpus = 128").replace("gpus = 16", "gpus = 64")
    instance = written(("gpus = 64", "gpus = 128"), ("\n[network]", wide), ("time_s = 1.0", "time_s = 0.01"))
    done = coopt("evaluate", instance, *pinned())
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("Given: 16 x hgx-h100-8")
    assert re.search(r"misses .*\btime, training", " ".join(done.stdout.split()))


@pytest.mark.parametrize(("table", "value"), [("[network]", "[2]"), (PHASES.strip(), "1")])
def test_the_ratio_that_is_advised_is_one_that_is_taken(coopt, written, table, value):
    wide = table.replace("gpus = 64", "gpus = 128").replace("gpus = 16", "gpus = 64")
    instance = written(("gpus = 64", "gpus = 128"), ("[network]", f"{wide}\noversubscription = 2.0"))
    done = coopt("evaluate", instance, *pinned())
    assert done.exit_code == 1
    assert f"(--set network.oversubscription={value})" in done.stderr
    again = coopt("evaluate", instance, *pinned(f"network.oversubscription={value}"))
    assert "oversubscription" not in again.stderr


def test_one_network_with_open_mappings_leads_to_their_ranking(coopt, written):
    for network, leads in ((("--set", "network.fabrics=rail-only"), True), ((), False)):
        done = coopt("evaluate", written(), *network)
        assert done.exit_code == 1
        assert ("`coopt evaluate --mappings 10`" in " ".join(done.stderr.split())) == leads


def test_a_setting_may_name_a_row_as_answers_do():
    """A workload by its place or its name, a phase by its year, a channel by its ends."""
    file = INSTANCES / "questions" / "two-teams.toml"
    for row, key in ((0, "[0]"), (1, "[1]"), (1, "['code']"), (0, '["language"]')):
        set_by_name = load(file, {f"workload{key}.mapping.tp": 4})
        assert set_by_name == load(file, {f"workload.{row}.mapping.tp": 4})
        assert set_by_name.workload[row].mapping.tp == (4,)
    with pytest.raises(InstanceError, match="has 2 entries"):
        load(file, {"workload['cod'].mapping.tp": 4})
    phased = load(INSTANCES / "phased-128.toml", {"phase['2026'].gpus": 16})
    assert [phase.gpus for phase in phased.phase] == [16, 128]
    sites = INSTANCES / "questions" / "two-sites.toml"
    ends = " - ".join(load(sites).wan[0].between)
    assert load(sites, {f"wan['{ends}'].most": 3}).wan[0].most == 3


def test_values_are_toml_where_they_can_be():
    read = {"2": 2, "2.5": 2.5, "true": True, "[8, 16]": [8, 16], '"rail-only"': "rail-only"}
    for text, value in (read | {"2024-01-01": datetime.date(2024, 1, 1)}).items():
        assert toml_value(text) == value
    for text in ("rail-only", "", "1\ny = 2", "a=b", "[" * 10_000, "9" * 5000):
        assert toml_value(text) == text


def test_mappings_of_a_given_network_are_ranked(coopt, planned):
    instance, plan = planned
    done = coopt("evaluate", instance, "--plan", plan, "--mappings", 3)
    assert done.exit_code == 0, done.stderr
    assert "most 1.000 s" in done.stdout
    (ranked,) = json.loads(coopt("evaluate", instance, "--plan", plan, "--mappings", 50, "--json").stdout)["workloads"]
    times = [one["iteration_time_s"] for one in ranked["mappings"]]
    assert times == sorted(times)
    assert len({json.dumps(one["mapping"]) for one in ranked["mappings"]}) == len(times) == 50
    assert ranked["mappings"][0]["mapping"] == json.loads(plan.read_text("utf-8"))["workloads"][0]["mapping"]
    assert ranked["listed"] > ranked["fitting"] >= 50


def test_every_ranked_mapping_is_what_an_evaluation_of_it_finds(planned):
    instance, plan = load(planned[0]), read_plan(planned[1])
    (ranked,) = mappings(instance, plan, most=5).workloads
    for run in ranked.mappings:
        (alone,) = evaluate_instance(instance, plan.design, [run.mapping]).workloads
        assert alone == run


def test_a_network_without_a_plan_has_to_be_a_single_one(coopt, written):
    done = coopt("evaluate", written(), "--mappings", 1)
    assert (done.exit_code, done.stdout, "(rail-only, clos)" in done.stderr) == (1, "", True)
    done = coopt("evaluate", written(), "--mappings", 1, "--set", "network.fabrics=clos")
    assert done.stdout.startswith("Given: 8 x hgx-h100-8")


def test_where_no_mapping_fits_the_ranking_says_so(coopt, written):
    file = written(("gpt-22b", "gpt-1t"), ("mapping.micro_batch = 1", "mapping.tp = 1\nmapping.pp = 1"))
    done = coopt("evaluate", file, "--mappings", 1, "--set", "network.fabrics=clos")
    assert done.exit_code == 0
    assert "fits into memory." in done.stdout


def test_gpus_that_no_mapping_divides_are_refused_with_those_that_one_does(coopt, planned):
    done = coopt("evaluate", planned[0], "--mappings", 3, "--set", "cluster.gpus=776", "--set", "network.fabrics=clos")
    assert done.exit_code == 1
    assert "of 776 GPUs" in done.stderr
    assert "GPU count (such as" in done.stderr
