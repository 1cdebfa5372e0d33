"""Plots of answers for notebooks."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape

from matplotlib.figure import Figure

from coopt.instance.texts import Row


class Plot(Figure):
    """A matplotlib figure that a notebook displays by itself."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=110)
        return file.getvalue()


def as_image(plot: Plot, about: str) -> str:
    """The plot as an element of a page."""
    content = base64.b64encode(plot._repr_png_()).decode("ascii")
    return f'<img alt="{escape(about, quote=True)}" src="data:image/png;base64,{content}">'


def plan_plot(bill_lines: Iterable[Row], times: Iterable[Row]) -> Plot:
    """Plot the cost by kind of part, and the time of each workload by cause."""
    plot = Plot(figsize=(9.0, 3.6), layout="constrained")
    bill, time = plot.subplots(1, 2)
    usd_by_kind: dict[str, float] = {}
    for line in bill_lines:
        usd_by_kind[line["kind"]] = usd_by_kind.get(line["kind"], 0.0) + line["usd"] / 1e6
    bill.barh(list(usd_by_kind), list(usd_by_kind.values()))
    bill.set(xlabel="million USD", title="Bill")
    time_so_far: dict[str, float] = {}
    colours: dict[str, str] = {}
    for row in times:
        if row["time_s"]:
            run, component = f"{row['workload']}, {row['part']}", str(row["component"])
            label = (
                f"_{component}" if component in colours else component
            )  # named once in the legend
            colour = colours.setdefault(component, f"C{len(colours)}")
            time.barh(run, row["time_s"], left=time_so_far.get(run, 0.0), color=colour, label=label)
            time_so_far[run] = time_so_far.get(run, 0.0) + row["time_s"]
    time.set(xlabel="iteration time (s)", title="Time")
    if time_so_far:
        plot.legend(loc="outside lower center", ncols=6, fontsize=8)
    return plot


TIMES = {
    "days": "training time (days, including any margin)",
    "iteration_time_s": "iteration time (s)",
    "pace": "iteration time as a multiple of the bound",
}
"""Columns that a front may be drawn over, the plainest first."""


def front_plot(kind: str, rows: Sequence[Row]) -> Plot:
    """Plot minimum cost over time, with knees highlighted."""
    plot = Plot(figsize=(7.0, 4.0), layout="constrained")
    axes = plot.subplots()
    column, unit = {"power": ("power_w", "MW")}.get(kind, (f"{kind}_usd", "million USD"))
    time, label = next(
        (name, label) for name, label in TIMES.items() if all(name in row for row in rows)
    )
    times, costs = [row[time] for row in rows], [row[column] / 1e6 for row in rows]
    axes.plot(times, costs, drawstyle="steps-post", marker="o")
    knees = [n for n, row in enumerate(rows) if row["knee"]]
    axes.plot([times[n] for n in knees], [costs[n] for n in knees], "D", label="knee")
    axes.set(xlabel=label, ylabel=f"{kind}, {unit}")
    if knees:
        axes.legend()
    return plot
