"""Cost against time as a chart: point at a design to see it, click to see all of it."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from typing import Any

from coopt.instance.schema import Instance
from coopt.plan.front import Front, FrontPoint
from coopt.report.fronts.text import (
    amount_of,
    answer_to,
    bound_of,
    built_from,
    details,
    front_headline,
    points_label,
    time_label,
    time_of,
    time_words,
    value_of,
    value_scale,
)

INK, LINE, DOT, KNEE, BOUND, GRID = "#1b2430", "#9db4cf", "#174f93", "#a31515", "#4c5866", "#e4e8ee"
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


def front_chart(front: Front, question: Instance, *, plotly_js: bool = True) -> str:
    """An HTML fragment that loads nothing from anywhere.

    Parameters
    ----------
    plotly_js
        Whether to bring the code of plotly along; once on a page, before all charts, is enough.
    """
    from plotly.offline import get_plotlyjs

    folder = files("coopt").joinpath("report", "fronts")
    style, script = (folder.joinpath(name).read_text("utf-8") for name in ("front.css", "front.js"))
    options = "".join(
        f'<option value="{n}">{escape(_point_text(front, question, point))}</option>'
        for n, point in enumerate(front.points)
    )
    code = f"<script>{get_plotlyjs()}</script>\n" if plotly_js else ""
    return (
        f"<style>{style}</style>\n"
        '<div class="front-chart">\n'
        f'<div class="front-plot" role="img" aria-label="{escape(front_headline(front, question))}"></div>\n'
        '<div class="front-point"><label>Point <select class="front-select">'
        f'{options}</select></label><dl class="front-details" aria-live="polite"></dl></div>\n'
        f'<script type="application/json" class="front-data">{_script_json(_data(front, question))}</script>\n'
        f"</div>\n{code}<script>{script}</script>\n"
    )


def _script_json(data: object) -> str:
    """JSON that cannot end the script it stands in."""
    return json.dumps(data).replace("<", "\\u003c")


def _point_text(front: Front, question: Instance, point: FrontPoint) -> str:
    knee = ", knee" if point.knee else ""
    return f"{time_words(question, time_of(point))}, {amount_of(front, point)}{knee}"


def _data(front: Front, question: Instance) -> dict[str, Any]:
    """Traces and layout as plotly takes them, the list of every point, and the point that is shown first."""
    places = range(len(front.points))
    knees = [n for n in places if front.points[n].knee]
    curve = _trace(front, question, list(places), points_label(front))
    curve |= {"mode": "lines+markers", "line": {"shape": "hv", "color": LINE, "width": 2}}
    curve["marker"] = {"size": 8, "color": DOT}
    knee_marks = _trace(front, question, knees, "knee") | {"mode": "markers"}
    knee_marks["marker"] = {"size": 15, "symbol": "diamond-open", "color": KNEE, "line": {"width": 2.5}}
    return {
        "traces": [curve, knee_marks] if knees else [curve],
        "layout": _layout(front, question),
        "start": front.points.index(answer) if (answer := answer_to(front, question)) else 0,
        "details": [list(details(question, front, point)) for point in front.points],
    }


def _trace(front: Front, question: Instance, places: list[int], name: str) -> dict[str, Any]:
    size, _ = value_scale(front)
    points = [front.points[n] for n in places]
    return {
        "type": "scatter",
        "name": name,
        "x": [time_of(point) for point in points],
        "y": [value_of(front, point) / size for point in points],
        "customdata": places,
        "text": [
            f"<b>{escape(_point_text(front, question, point))}</b><br>{escape(built_from(question, point))}"
            for point in points
        ],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _layout(front: Front, question: Instance) -> dict[str, Any]:
    _, label = value_scale(front)
    bound, times = bound_of(question), [time_of(point) for point in front.points]
    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": BOUND, "ticks": "outside", "automargin": True}
    layout: dict[str, Any] = {
        "font": {"family": FONT, "size": 14, "color": INK},
        "margin": {"l": 20, "r": 16, "t": 48, "b": 20},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": "#fff", "bordercolor": DOT, "font": {"color": INK, "family": FONT}, "align": "left"},
        "paper_bgcolor": "#fff",
        "plot_bgcolor": "#fff",
        "xaxis": axis | {"title": {"text": time_label(question)}},
        "yaxis": axis | {"title": {"text": label}, "tickformat": ",~r"},
    }
    if bound is not None and times and times[0] <= bound <= times[-1]:
        line = {"type": "line", "x0": bound, "x1": bound, "yref": "paper", "y0": 0, "y1": 1}
        layout["shapes"] = [line | {"line": {"color": BOUND, "dash": "dash", "width": 1.5}}]
        note = {"x": bound, "yref": "paper", "y": 0.98, "xanchor": "left", "yanchor": "top", "showarrow": False}
        layout["annotations"] = [note | {"text": f" bound {time_words(question, bound)}", "font": {"color": BOUND}}]
    return layout
