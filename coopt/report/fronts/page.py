"""A front as one page that loads nothing from anywhere."""

from __future__ import annotations

from importlib.resources import files

from coopt.instance.schema import Instance
from coopt.plan.front import Front
from coopt.report.charts.front import front_chart
from coopt.report.fronts.sentences import front_headline, front_notes
from coopt.report.fronts.text import columns, row


def front_page(front: Front, instance: Instance) -> str:
    """The chart with the sentences above it and the table below."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    text = files("coopt").joinpath("report", "fronts", "page.html.j2").read_text("utf-8")
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    return made.from_string(text).render(
        name=instance.name,
        headline=front_headline(front, instance),
        sentences=[*front.explanation, *front_notes(front, instance)],
        chart=Markup(front_chart(front, instance)) if front.points else "",
        columns=columns(front, instance),
        rows=[row(front, instance, point) for point in front.points],
    )
