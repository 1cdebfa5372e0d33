"""Answers as rows, which notebooks show and data frames hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from coopt.instance.errors import InstanceError
from coopt.instance.tables import Row, html

if TYPE_CHECKING:
    from coopt.plan.explanation import Explanation
    from coopt.plan.front import Front, FrontPoint
    from coopt.plan.schema import Plan

SHOWN = ("part", "workload", "gpus", "tp", "pp", "dp", "iteration_time_s", "bound_s", "slack", "mfu")
"""Columns of the mappings that a notebook shows."""


def plan_tables(plan: Plan) -> dict[str, Callable[[], Iterable[Row]]]:
    """The tables of a plan by name, each as a function that returns its rows."""
    return {
        "bill": lambda: bill_rows(plan),
        "mappings": lambda: mapping_rows(plan),
        "breakdown": lambda: breakdown_rows(plan),
    }


def bill_rows(plan: Plan) -> Iterator[Row]:
    """The lines of the bill of everything."""
    if plan.cost is not None:
        yield from (item.model_dump() for item in plan.cost.items)


def mapping_rows(plan: Plan) -> Iterator[Row]:
    """How every workload runs in every part: its mapping, times (s), memory (GiB) and utilisation."""
    for part in plan.parts:
        for run in part.workloads:
            results = run.model_dump(
                exclude={"mapping", "placement", "breakdown_s", "knobs", "collectives", "routes", "name", "gpus"}
            )
            whose = {"part": part.name, "workload": run.name, "gpus": run.gpus}
            yield {**whose, **run.mapping.model_dump(), **results, "slack": run.slack}


def breakdown_rows(plan: Plan) -> Iterator[Row]:
    """Where the time of an iteration goes, in seconds."""
    for part in plan.parts:
        for run in part.workloads:
            for component, spent_s in run.breakdown_s.items():
                yield {"part": part.name, "workload": run.name, "component": component, "time_s": spent_s}


def front_rows(front: Front) -> Iterator[Row]:
    """The points of a front: pace as a multiple of the bounds, times, cost (USD), power (W), and what is built.

    Times are the seconds of an iteration, with the workload's name before them where there are several, and the days of
    training where points have them; a point without a time that another has holds None.
    """
    times = [_point_times(point) for point in front.points]
    no_times: Row = dict.fromkeys(name for found in times for name in found)
    for point, found in zip(front.points, times, strict=True):
        designs = (
            [point.best.design] if point.best else [part.design for part in point.plan.parts] if point.plan else []
        )
        built = "; ".join(f"{one.hb_domain.count} x {one.hb_domain.name}, {one.fabric.kind}" for one in designs if one)
        cost = {"capex_usd": point.cost.capex_usd, "tco_usd": point.cost.tco_usd, "power_w": point.cost.power_w}
        yield {"pace": point.pace, **no_times, **found, **cost, "knee": point.knee, "built": built}


def _point_times(point: FrontPoint) -> Row:
    """The columns of a point for its times."""
    from coopt.plan.contents import runs_at  # which imports plans, as this is imported by them

    runs = runs_at(point)
    seconds = {f"{label}.iteration_time_s": run.iteration_time_s for label, run in runs}
    if len(runs) == 1:
        seconds = {"iteration_time_s": runs[0][1].iteration_time_s}
    return seconds if point.days is None else {**seconds, "days": point.days}


def explanation_tables(explanation: Explanation) -> dict[str, Callable[[], Iterable[Row]]]:
    """The tables of an explanation by name, each as a function that returns its rows; other designs by their cost."""
    return {
        "bounds": lambda: (
            {
                **bound.model_dump(include={"limit", "unit", "bound", "used", "slack", "binds"}),
                "tighter": bound.tighter.extra if bound.tighter else None,
                "looser": bound.looser.extra if bound.looser else None,
            }
            for bound in explanation.bounds
        ),
        "rivals": lambda: (rival.model_dump(exclude={"design"}) for rival in explanation.rivals),
        "prices": lambda: (
            price.model_dump(include={"item", "unit", "low", "now", "high"}) for price in explanation.prices
        ),
    }


def check_matplotlib() -> None:
    """Refuse to plot without matplotlib.

    Raises
    ------
    InstanceError
        When it is not installed.
    """
    if find_spec("matplotlib") is None:
        raise InstanceError("plot: matplotlib is not installed, needs `pip install 'coopt[jupyter]'`")


VALUES = {
    **{"capex": (",.0f", "USD"), "power": (",.0f", "W"), "tco": (",.0f", "USD")},
    **{"time": (".4g", "s"), "usd_per_token": (".4g", "USD"), "carbon": (",.0f", "kg")},
}


def plan_text(plan: Plan) -> str:
    """`Plan('tiny', optimal, capex 181,640 USD, 1 part)`."""
    claim = plan.objective
    form, unit = VALUES[claim.kind]
    value = "" if claim.value is None else f"{claim.kind} {claim.value:{form}} {unit}, "
    count = len(plan.parts)
    return f"Plan({plan.instance.name!r}, {plan.status}, {value}{count} part{'' if count == 1 else 's'})"


def plan_html(plan: Plan) -> str:
    """The bill and how workloads run."""
    runs = [{key: row[key] for key in SHOWN} for row in mapping_rows(plan)]
    return html(plan_text(plan), plan.explanation, [list(bill_rows(plan)), runs])
