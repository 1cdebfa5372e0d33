"""Who sends how much to whom in an iteration of a plan."""

from __future__ import annotations

from pathlib import Path

from coopt.instance.files import instance_of
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.plan.traffic import TrafficReport
from coopt.solving.trusted import check_runs
from coopt.traffic.of_plan import demands
from coopt.traffic.summary import traffic_figures


def traffic(
    instance: Instance | str | Path,
    plan: Plan,
    *,
    workload: str | None = None,
    part: str | None = None,
    trees: bool = False,
) -> TrafficReport:
    """Say who sends how much to whom in an iteration, by class of traffic and by place.

    Parameters
    ----------
    instance
        The question, or the file that holds it.
    workload
        One workload of several; None for all of the part.
    part
        The part of the plan, where it has several.
    trees
        Whether all-reduces of data parallelism take two binary trees across domains in place of a ring.

    Raises
    ------
    InstanceError
        When the plan is none of this instance, or has several parts and none is named.

    Examples
    --------
    >>> import coopt
    >>> instance = coopt.load("instances/tiny-64.toml")
    >>> (training,) = coopt.traffic(instance, coopt.solve(instance)).workloads
    >>> training.talking_pairs > 0
    True
    """
    question = instance_of(instance)
    check_runs(question, plan, "traffic", part)
    family, sent = demands(question, plan, workload=workload, trees=trees, part=part)
    return traffic_figures(question, family, sent)
