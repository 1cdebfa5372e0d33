"""Partitions on the command line."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Solved, Written

SECOND = """
[[workload]]
name = "second"
model = "gpt-22b"
global_batch = 32
max_iteration_time_s = 2.0
mapping.micro_batch = 1

[sharing]
mode = "partition"
most_products = { hb = 1 }

[[sharing.discount]]
kind = "nic"
item = "cx7-400g"
from = [40, 80]
off = [0.1, 0.2]

[network]"""


@pytest.fixture
def shared_out(written: Written) -> Path:
    """Two workloads on up to 128 GPUs."""
    return written(("\n[network]", SECOND), ("gpus = 64", "gpus = 128"))


@pytest.fixture
def partitioned(solved: Solved) -> tuple[Path, Path]:
    """A partition and its plan."""
    return solved(("\n[network]", SECOND), ("gpus = 64", "gpus = 128"), name="parts.toml")


def test_a_partition_is_solved_shown_and_accepted(coopt, partitioned):
    instance, plan = partitioned
    shown = coopt("solve", instance, "--full")
    assert shown.stdout.startswith("Build 2 clusters")
    for part in (
        "Networks and their workloads",
        "Discounts",
        "Bill of materials",
        "products of kind HB domain in use: 1 of",
    ):
        assert part in shown.stdout
    assert coopt("verify", instance, plan).exit_code == 0
    table = json.loads(plan.read_text("utf-8"))
    assert [part["name"] for part in table["parts"]] == ["training", "second"]
    assert table["design"] is None


CORE = """
[sharing.core]
switch = "64x400g"
gbit_s_per_gpu = 100.0

[[sharing.discount]]"""


@pytest.fixture
def joined(solved: Solved) -> tuple[Path, Path]:
    """The same partition with a core, and its plan."""
    cored = SECOND.replace("\n[[sharing.discount]]", CORE, 1)
    return solved(("\n[network]", cored), ("gpus = 64", "gpus = 128"), name="joined.toml")


def test_a_core_is_shown_in_plan_report_bill_and_difference(coopt, partitioned, joined, tmp_path):
    instance, plan = joined
    core = json.loads(plan.read_text("utf-8"))["couplings"]["cores"][0]["core"]
    shown = coopt("solve", instance, "--full").stdout
    assert f"The core is {core['switches']} x 64x400g with {core['ports']} of " in shown
    assert "into the core" in shown
    assert f"{core['power_w']:.0f} W" in shown
    assert coopt("verify", instance, plan).exit_code == 0
    assert coopt("export", instance, plan, "--format", "bom-csv", "-o", tmp_path / "bill.csv").exit_code == 0
    assert "\n64x400g,switch," in (tmp_path / "bill.csv").read_text("utf-8")
    changes = json.loads(coopt("diff", partitioned[1], plan, "--json").stdout)["changes"]
    assert {"key": "core.ports", "before": None, "after": core["ports"]} in changes
    assert any(one["key"] == "core.islands[second].links" for one in changes)


def test_evaluate_refuses_a_partition_that_leaves_a_choice(coopt, written, shared_out):
    """Of its islands, and at sites of its mappings."""
    done = coopt("evaluate", shared_out)
    assert (done.exit_code, "leaves a choice" in " ".join(done.stderr.split())) == (1, True)
    at_site = SECOND.replace("[network]", '[[site]]\nname = "east"\npower_mw = 1.0\n\n[network]')
    file = written(("\n[network]", at_site), ("gpus = 64", "gpus = 128"))
    gpus = ("--set", "workload[0].gpus=64", "--set", "workload[1].gpus=64")
    done = coopt("evaluate", file, "--set", 'objective.include=["nic", "switch", "gpu"]', *gpus)
    assert (done.exit_code, "'second': mapping.tp" in " ".join(done.stderr.split())) == (1, True)


def test_an_infeasible_partition_says_which_limit_must_give(coopt, written):
    tight = SECOND.replace("[network]", "[limits]\npower_mw = 0.001\n\n[network]")
    done = coopt("solve", written(("\n[network]", tight), ("gpus = 64", "gpus = 128")))
    assert done.exit_code == 3
    assert "limits.power_mw = 0.001: needs at least" in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('mode = "partition"', 'mode = "time"', "sharing.discount: "),
        ("gpus = 128", "gpus = [64, 128]", "needs one number"),
        ('item = "cx7-400g"', 'item = "cx8-800g"', "needs cx7-400g"),
        ("off = [0.1, 0.2]", "off = [0.2, 0.1]", "do not rise"),
        ("off = [0.1, 0.2]", "off = [0.2]", "2 thresholds and 1"),
        ("off = [0.1, 0.2]", "", "usd or off"),
        ("from = [40, 80]", "from = [80, 40]", "needs rising thresholds"),
        ('kind = "nic"', 'kind = "gpu"', "gpu 'cx7-400g'"),
        ("most_products = { hb = 1 }", "most_products = { hb = 0 }", "at least 1"),
        ("[sharing]", "[solver]\ntop = 2\n\n[sharing]", "solver.top = 2"),
        (SECOND, "gpus = 32\n[network]", "needs sharing.mode = 'partition'"),
    ],
)
def test_what_does_not_go_together_is_refused(coopt, shared_out, old, new, words):
    text = shared_out.read_text("utf-8")
    assert old in text
    shared_out.write_text(text.replace(old, new), "utf-8")
    done = coopt("solve", shared_out)
    assert (done.exit_code, words in done.stderr) == (1, True), done.stderr


def test_workloads_of_all_parts_are_named_where_one_is_not_there(coopt, partitioned):
    for command in (("traffic",), ("export", "--format", "ranks"), ("export", "--format", "routes")):
        for words, says in (
            (("--workload", "nobody"), "--workload nobody: "),
            (("--workload", "second", "--part", "training"), "needs --part 'second'"),
        ):
            refused = coopt(*command, *partitioned, *words)
            assert (refused.exit_code, says in refused.stderr) == (1, True)
