"""How many parameters were fitted to measurements: as many as the catalog says so of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from coopt.instance.base import Entry
from coopt.instance.catalog import entries
from coopt.instance.hardware import Gpu
from coopt.validation.adjust import NARROW, OF_HARDWARE, OF_SOFTWARE
from coopt.validation.runs import Run

FITTED = re.compile(r"\bfitted\b")
NOT_FITTED = re.compile(r"\b(not|never|nothing) (been )?fitted\b")


def fitted_parameters(runs: Iterable[Run]) -> frozenset[str]:
    """Names of the fitted parameters that predictions of `runs` rest on; 16-bit ones count for every precision."""
    kinds = {(run.generation, precision) for run in runs for precision in ("16-bit", run.precision)}
    frameworks = {run.software.name for run in runs}
    hardware = {name for generation, precision in kinds for name in fitted_of_hardware(generation, precision)}
    return frozenset(hardware | {name for framework in frameworks for name in fitted_of_software(framework)})


def fitted_of_hardware(generation: str, precision: str) -> frozenset[str]:
    """`hopper fp8 gemm` and the like: what the catalog calls fitted for any GPU of a generation."""
    table = "efficiency" if precision == "16-bit" else f"efficiency.{precision}"
    names = OF_HARDWARE if precision == "16-bit" else NARROW
    marked = {
        field
        for gpu in entries("gpu").values()
        if isinstance(gpu, Gpu) and gpu.generation == generation
        for field in _marked(gpu)
    }
    found = {name for name in names if f"{table}.{name}" in marked or table in marked}
    return frozenset(f"{generation} {precision} {name}" for name in found)


def fitted_of_software(framework: str) -> frozenset[str]:
    """What the catalog calls fitted of a framework."""
    marked = set(_marked(entries("software")[framework]))
    return frozenset(f"{framework} {name}" for name in OF_SOFTWARE if name in marked)


def _marked(entry: Entry) -> Iterator[str]:
    """Fields whose source says that they are fitted."""
    for source in entry.sources:
        if FITTED.search(source.source) and not NOT_FITTED.search(source.source):
            yield from source.fields
