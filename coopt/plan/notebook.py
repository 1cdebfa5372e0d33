"""Parts of an answer as rows, which notebooks show and data frames hold, and what their plots need."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from coopt.instance.errors import InstanceError
from coopt.instance.tables import Row
from coopt.plan.couplings import Part
from coopt.plan.parts import Cost

SHOWN = ("part", "workload", "gpus", "tp", "pp", "dp", "iteration_time_s", "bound_s", "slack", "mfu")
"""Columns of the mappings that a notebook shows."""


def bill_rows(cost: Cost | None) -> Iterator[Row]:
    """The lines of the bill of everything."""
    if cost is not None:
        yield from (item.model_dump() for item in cost.items)


def mapping_rows(parts: tuple[Part, ...]) -> Iterator[Row]:
    """How every workload runs in every part: its mapping, times (s), memory (GiB) and utilisation."""
    for part in parts:
        for run in part.workloads:
            results = run.model_dump(
                exclude={"mapping", "placement", "breakdown_s", "knobs", "collectives", "routes", "name", "gpus"}
            )
            whose = {"part": part.name, "workload": run.name, "gpus": run.gpus}
            yield {**whose, **run.mapping.model_dump(), **results, "slack": run.slack}


def breakdown_rows(parts: tuple[Part, ...]) -> Iterator[Row]:
    """Where the time of an iteration goes, in seconds."""
    for part in parts:
        for run in part.workloads:
            for component, spent_s in run.breakdown_s.items():
                yield {"part": part.name, "workload": run.name, "component": component, "time_s": spent_s}


def check_matplotlib() -> None:
    """Refuse to plot without matplotlib.

    Raises
    ------
    InstanceError
        When it is not installed.
    """
    if find_spec("matplotlib") is None:
        raise InstanceError("plot: matplotlib is not installed, needs `pip install 'coopt[jupyter]'`")
