"""A front for spreadsheets: one row for each point."""

from __future__ import annotations

import csv
import io

from coopt.plan.flat import flat_design
from coopt.plan.front import Front, FrontPoint

Cells = dict[str, object]


def front_csv(front: Front) -> str:
    """Pace, value, bound and gap, cost, design, and how every workload runs; a header alone without points."""
    text = io.StringIO()
    rows = [_point(point) | _runs(point) for point in front.points]
    names = list(rows[0]) if rows else ["pace", "knee"]
    writer = csv.DictWriter(text, fieldnames=names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _point(point: FrontPoint) -> Cells:
    best = point.best
    claim, cost = best.objective, best.cost
    return {
        "pace": point.pace,
        "knee": point.knee,
        "objective": claim.kind,
        "value": claim.value,
        "bound": claim.bound,
        "gap": claim.gap,
        "capex_usd": cost.capex_usd,
        "power_w": cost.power_w,
        "tco_usd": cost.tco_usd,
        **flat_design(best.design),
    }


def _runs(point: FrontPoint) -> Cells:
    """Columns of every workload; its name stands before them where there are several."""
    cells: Cells = {}
    for run in point.best.workloads:
        before = "" if len(point.best.workloads) == 1 else f"{run.name}."
        own: Cells = {"iteration_time_s": run.iteration_time_s, "tokens_per_s": run.tokens_per_s, "mfu": run.mfu}
        own |= {"memory_gib": run.memory_gib} | run.mapping.model_dump()
        cells |= {before + name: value for name, value in own.items()}
    return cells
