"""What the report says of islands, one line each."""

from __future__ import annotations

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.report.plan import plan_report
from coopt.report.tables import rendered
from tests.kinds import solved
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
