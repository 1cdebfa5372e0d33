"""A front as a planner reads it on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.schema import Instance
from coopt.plan.front import Front, FrontPoint
from coopt.report import words
from coopt.report.fronts.measures import marks, network, time_of, value_of
from coopt.report.fronts.sentences import front_headline, front_notes
from coopt.report.tables import Figures, figures

COLUMNS = {"capex": "capex $", "power": "power W", "tco": "TCO $"}


def front_report(front: Front, instance: Instance) -> Iterator[RenderableType]:
    """The saving, the points, and how to read them; without points, why there are none."""
    yield Text(front_headline(front, instance), style="bold")
    yield from front.explanation
    if not front.points:
        return
    yield ""
    yield front_table(front, instance)
    yield from front_notes(front, instance)


def front_table(front: Front, instance: Instance) -> Figures:
    """The points by rising time and falling cost."""
    names = columns(front, instance)
    return figures("Cost against time", names[:2], names[2:], [row(front, instance, point) for point in front.points])


def columns(front: Front, instance: Instance) -> tuple[str, ...]:
    """What the cells of `row` are; the first two are words."""
    time = "s" if len(instance.workload) == 1 else "of bounds"
    others = (name.split()[0] for kind, name in COLUMNS.items() if kind != front.kind)
    return "built from", "mark", time, COLUMNS[front.kind], "saved", *others


def row(front: Front, instance: Instance, point: FrontPoint) -> tuple[str, ...]:
    """A point; what it saves is a share of what the fastest one costs."""
    cost, most = point.best.cost, value_of(front, front.points[0])
    short = {
        "capex": words.money(cost.capex_usd),
        "power": words.power(cost.power_w),
        "tco": words.money(cost.tco_usd),
    }
    value = value_of(front, point)
    return (
        network(instance, point.best.design),
        marks(front, point),
        words.digits(time_of(point), 4),
        f"{value:,.0f}",
        words.percent((most - value) / most) if most else "-",
        *(text for kind, text in short.items() if kind != front.kind),
    )
