"""What the report says of islands, one line each."""

from __future__ import annotations

from typing import Any

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.report.plan import plan_report
from coopt.report.screen import plan_screen
from coopt.report.tables import rendered
from tests.conftest import question
from tests.kinds import solved
from tests.solving.interrupted import in_days
from tests.solving.test_partition_cores import two


def line(instance: Instance, plan: Plan, title: str, name: str) -> list[str]:
    """The words of the first line that begins with a name, below a title."""
    below = rendered(plan_report(instance, plan)).split(title, 1)[1]
    return next(words for words in map(str.split, below.splitlines()) if words[:1] == [name])


def test_slack_is_a_share_of_the_bound() -> None:
    instance, plan = solved("partition")
    for run in plan.runs:
        slack = 1 - run.iteration_time_s / run.bound_s
        assert line(instance, plan, "Islands", run.name)[-1] == f"{100 * slack:.1f}%"


def test_an_island_of_one_domain_names_its_nic_only_where_a_core_makes_it_buy_some() -> None:
    for core, nic in ((None, "-"), ({"gbit_s_per_gpu": 100.0}, "cx7-400g")):
        instance = two(core=core)
        shown = line(instance, coopt.solve(instance), "Networks", "a")
        assert shown == ["a", "none,", "one", "HB", "domain", nic, "-", "-", "-"]


def test_an_incremental_bracket_is_reached_by_units_beyond_its_threshold() -> None:
    """Two domains hold 72 GPUs: the last of them is discounted where the discount begins at 71."""
    none, one = ["list", "price", "(0", "of", "1)"], ["from", "{}", "(1", "of", "1)"]
    for applies, begin, reached in (
        ("incremental", 72, none),
        ("incremental", 71, one),
        ("all-units", 72, one),
    ):
        discount = {"kind": "gpu", "item": "h100-sxm", "from": [begin], "off": [0.05], "applies": applies}
        instance = two(sharing={"mode": "partition", "discount": [discount]})
        shown = line(instance, coopt.solve(instance), "Discounts", "h100-sxm")
        assert shown[1:-3] == [applies, *(word.format(begin) for word in reached)], (applies, begin)


def test_spares_and_interruptions_of_each_island_are_told_where_failures_count() -> None:
    """A rate of failures at which one island waits for no repair, and the other has no days to keep."""
    table: Any = question(
        cluster__gpus=128, sharing={"mode": "partition"}, availability={"rates": "llama-3", "spare_domains": 2}
    )
    bare = table["workload"][0] | {"gpus": 64}
    timed = in_days(bare, 2 * bare["max_iteration_time_s"]) | {"name": "timed"}
    instance = Instance.model_validate(table | {"workload": [bare | {"name": "free"}, timed]})
    plan = coopt.solve(instance)
    shown = rendered(plan_report(instance, plan))
    by_name = {part.name: part for part in plan.parts}
    for name in ("free", "timed"):
        design, (run,) = by_name[name].design, by_name[name].workloads
        assert design is not None
        assert run.uptime is not None
        assert design.spare_domains == 2
        island = line(instance, plan, "Islands", name)
        assert island[1:6] == [str(design.hb_domain.count), "x", design.hb_domain.name, "+", "2"]
        told = line(instance, plan, "Spares and interruptions", name)
        days = run.elapsed_s(run.uptime.goodput) * instance.workload[1].iterations / 86400 if name == "timed" else None
        when = ["-"] if days is None else [f"{days:.4g}", "of", f"{instance.workload[1].train_days:.4g}"]
        share = f"{100 * run.uptime.goodput:.1f}%"
        assert told[1 : len(when) + 5] == [*when, "2", "domains", str(design.spare_gpus), share]
    for change in ({"availability": None}, {}):
        other = instance.model_copy(update=change)
        assert ("Spares and interruptions" in rendered(plan_report(other, coopt.solve(other)))) == (not change)
    assert "with domains enough" in shown


def test_days_stand_beside_seconds_on_the_screen_where_bounds_are_on_days() -> None:
    for mode in ("partition", "time"):
        table: Any = question(cluster__gpus=128, sharing={"mode": mode})
        one = table["workload"][0] | ({"gpus": 64} if mode == "partition" else {})
        dated = in_days(one, 2 * one["max_iteration_time_s"]) | {"name": "dated"}
        instance = Instance.model_validate(table | {"workload": [one | {"name": "free"}, dated]})
        plan = coopt.solve(instance)
        shown = rendered(plan_screen(instance, plan))
        (run,) = (run for run in plan.runs if run.name == "dated")
        taken = run.iteration_time_s * instance.workload[1].iterations / 86400
        (told,) = (text for text in shown.splitlines() if text.startswith("dated"))
        assert f"{taken:.4g} of {instance.workload[1].train_days:.4g}" in told
        (free,) = (text for text in shown.splitlines() if text.startswith("free"))
        assert free.split()[-2] == "-"
