"""What the report says of islands, one line each."""

from __future__ import annotations

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.report.plan import plan_report
from coopt.report.terminal import rendered
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
