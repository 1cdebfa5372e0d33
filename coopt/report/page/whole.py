"""The page of a plan, and its picture, for a program that asks for them."""

from __future__ import annotations

from pathlib import Path

from coopt.instance.schema import Instance, instance_of
from coopt.instance.texts import InstanceError, write_text
from coopt.plan.explanation import Explanation
from coopt.plan.front import Front
from coopt.plan.schema import Plan
from coopt.plan.store import check_same_sha, decided, plan_of
from coopt.report.fronts.files import check_packages
from coopt.report.page.contents import Origin, PageCase, moment, page_html
from coopt.report.page.evidence import Picture, whole_plan
from coopt.verifier.audit import verify


def report(
    instance: Instance | str | Path,
    plan: Plan | str | Path,
    file: str | Path | None = None,
    *,
    front: Front | None = None,
    explanation: Explanation | None = None,
) -> str:
    """Write a plan as one HTML page that loads nothing from anywhere; the plan is verified first.

    Parameters
    ----------
    instance
        The question, or the file that holds it.
    file
        Where the page goes; None where its text is enough.
    front, explanation
        What `coopt.pareto` and `coopt.explain` found, for the chapters on cost against time and on
        sensitivity.

    Returns
    -------
    str
        The page.

    Raises
    ------
    InstanceError
        When the packages of `coopt[report]` are not installed, or the file cannot be written.

    Examples
    --------
    >>> import coopt
    >>> instance = coopt.load("instances/tiny-64.toml")
    >>> page = coopt.report(instance, coopt.solve(instance))
    >>> "Verified." in page
    True
    """
    check_packages("report")
    question, plan = instance_of(instance), plan_of(plan)
    called = "coopt.report in Python"
    place = "none" if isinstance(instance, Instance) else str(instance)
    page = page_html(
        PageCase(
            instance=question,
            plan=plan,
            verdict=verify(question, plan),
            origin=Origin(command=called, instance_file=place, plan_file="none", written=moment()),
            front=front,
            explanation=explanation,
        )
    )
    if file is not None:
        write_text(file, page)
    return page


def draw(instance: Instance | str | Path, plan: Plan | str | Path) -> Picture:
    """Draw a plan as one picture: hall, racks, network, and which GPUs hold which stage and shard.

    Returns
    -------
    Picture
        What a notebook displays; `image` is its SVG.

    Raises
    ------
    InstanceError
        When the plan is of another instance, or builds nothing.

    Examples
    --------
    >>> import coopt
    >>> instance = coopt.load("instances/tiny-64.toml")
    >>> picture = coopt.draw(instance, coopt.solve(instance))
    >>> picture.image[:4]
    '<svg'
    """
    question, plan = instance_of(instance), plan_of(plan)
    check_same_sha(question, plan)
    if plan.cost is None:
        raise InstanceError(
            f"{question.place}: the plan builds nothing (status {plan.status}), needs a plan with a"
            " design"
        )
    return whole_plan(*decided(question, plan))
