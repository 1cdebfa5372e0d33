"""Questions to the performance model without a network around them."""

from typing import Any

import numpy as np

from coopt.instance.catalog import find
from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.perf.collectives import Reciprocals
from coopt.perf.iterations import Iteration, iteration
from coopt.perf.mapping import RECOMPUTE, Mappings, Placements
from tests.conftest import small_model


def gpu(name: str = "h100-sxm", **efficiency: Any) -> Gpu:
    """A GPU of the catalog with other efficiencies."""
    found = find("gpu", name)
    return found.model_copy(update={"efficiency": found.efficiency.model_copy(update=efficiency)})


def training(model: Any = None, batch: int = 64, precision: str = "bf16", **options: Any) -> Workload:
    """A workload with some options."""
    table = {"name": "w", "model": model or small_model(), "global_batch": batch, "max_iteration_time_s": 1.0}
    return Workload.model_validate(table | {"precision": precision, "options": options})


def mapped(**changes: Any) -> Mappings:
    """One mapping; every degree 1 that is not given."""
    row = {"zero": 1, **changes, "recompute": RECOMPUTE.index(changes.get("recompute", "none"))}
    return Mappings.of(**{name: [value] for name, value in row.items()})


def placed(mappings: Mappings, **inside: int) -> Placements:
    """What is given lies inside the domain, all of it where nothing is said."""
    names = ("tp", "cp", "pp", "dp")
    whole = {name: getattr(mappings, name) for name in names}
    return Placements(**{n: np.array([inside.get(n, 1)]) if inside else whole[n] for n in names})


def run(
    workload: Workload, mappings: Mappings, device: Gpu | None = None, hb_gbyte_s: float = 450.0, **inside: int
) -> Iteration:
    """The iteration of one mapping."""
    return iteration(workload, device or gpu(), hb_gbyte_s, mappings, placed(mappings, **inside))


def at(nic_gbit_s: float = 400.0) -> Reciprocals:
    """Every group at the full rate of its NICs."""
    r = 8e-9 / nic_gbit_s
    return Reciprocals.everywhere(r)


def seconds(parts: Iteration, nic_gbit_s: float = 400.0) -> float:
    """Iteration time of the only mapping."""
    return float(parts.time_s(at(nic_gbit_s))[0])


def breakdown(parts: Iteration, nic_gbit_s: float = 400.0) -> dict[str, float]:
    """Where it goes."""
    return {name: float(part[0]) for name, part in parts.breakdown_s(at(nic_gbit_s)).items()}
