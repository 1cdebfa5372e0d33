"""An iteration as a timeline: a row a pipeline stage, with passes, waits and exposed traffic.

How long each takes is the plan's; where a stage waits is where 1F1B lets it wait, its backward
passes twice as long as its forward ones. Places are in pixels, y downwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from coopt.plan.parts import WorkloadPlan
from coopt.report import words
from coopt.report.facts import COMPONENTS
from coopt.report.network_drawings import excerpt

WIDTH, LEFT, ROW, BAR = 1000, 80, 22, 18
MOST_STAGES, MOST_PASSES = 6, 8
PASSES = ("compute", "logits", "tp", "cp", "ep", "pp")
"""What a pass consists of; what else takes time follows the last pass."""

# blue: the GPUs compute; warm: they talk; grey: they wait
COLOURS = {
    "compute": "#1f5fae",
    "logits": "#5b9bd8",
    "optimizer": "#0f3460",
    "tp": "#e07b00",
    "cp": "#8c5a2b",
    "ep": "#7d3c98",
    "pp": "#f2b134",
    "dp": "#bd1f01",
    "embedding": "#d4897b",
    "bubble": "#b4bcc6",
    "straggler": "#717b87",
}
OTHER = "#444b54"

Span = tuple[str, float, float]
"""A component, and when it begins and ends (s)."""


def timeline_svg(run: WorkloadPlan, micro_batches: int, name: str, description: str) -> str:
    """The timeline as one SVG element; `name` is its id on the page, `description` says it in
    words.
    """
    stages = excerpt(run.mapping.pp, MOST_STAGES)
    scale = (WIDTH - LEFT - 10) / run.iteration_time_s
    marks = list[str]()
    for line, stage in enumerate(stages):
        y = 4 + line * ROW
        marks.append(_text(0, y + BAR / 2, f"stage {stage}"))
        drawn: dict[str, list[str]] = {}
        for kind, start_s, end_s in stage_spans(run, stage, max(1, micro_batches)):
            x, wide = LEFT + start_s * scale, (end_s - start_s) * scale
            if wide > 0.0:
                drawn.setdefault(kind, []).append(f"M{x:.1f} {y}h{wide:.2f}v{BAR}h-{wide:.2f}z")
        for kind, spans in drawn.items():
            spent_s = run.breakdown_s[kind]
            share = words.percent(spent_s / run.iteration_time_s)
            title = f"{COMPONENTS.get(kind, kind)}: {words.seconds(spent_s)}, {share}"
            marks.append(
                f'<path fill="{COLOURS.get(kind, OTHER)}" d="{"".join(spans)}">'
                f"<title>{escape(title)}</title></path>"
            )
    deep = 4 + len(stages) * ROW
    for part, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        time = words.seconds(part * run.iteration_time_s) if part else "0"
        marks.append(_text(LEFT + part * (WIDTH - LEFT - 10), deep + 9, time, anchor))
    return (
        f'<svg id="{name}" class="timeline" role="img" aria-labelledby="{name}-says"'
        f' viewBox="0 0 {WIDTH} {deep + 20}" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{name}-says">{escape(description)}</title>{"".join(marks)}</svg>'
    )


def stage_spans(run: WorkloadPlan, stage: int, micro_batches: int) -> Iterator[Span]:
    """What a stage does from the start of an iteration to its end."""
    spent = {kind: spent_s for kind, spent_s in run.breakdown_s.items() if spent_s > 0.0}
    inside = {kind: spent[kind] for kind in PASSES if kind in spent}
    bubble_s, work_s = spent.get("bubble", 0.0), sum(inside.values())
    later = stage / max(1, run.mapping.pp - 1)  # the last stage begins last and ends first
    begin_s, middle_s = later * bubble_s / 3, (1.0 - later) * bubble_s
    count = min(micro_batches, MOST_PASSES)
    # The forward passes before the first backward one: one for each stage from here on.
    warm_up = min(count, max(1, round(count * (run.mapping.pp - stage) / (2 * micro_batches))))
    now_s = begin_s
    yield "bubble", 0.0, begin_s
    for number in range(count):
        if number == warm_up:
            yield "bubble", now_s, now_s + middle_s
            now_s += middle_s
        for kind, spent_s in inside.items():
            yield kind, now_s, now_s + spent_s / count
            now_s += spent_s / count
    end_s = work_s + bubble_s
    yield "bubble", now_s, end_s
    for kind, spent_s in spent.items():
        if kind not in inside and kind != "bubble":
            yield kind, end_s, end_s + spent_s
            end_s += spent_s


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.0f}" y="{y:.0f}"{place} dominant-baseline="central">{escape(text)}</text>'
