"""Parameters that may be fitted, where they stand in the catalog, and hardware with other values of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from coopt.instance.hardware import Gpu, Reached

Values = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Range:
    """The values a parameter may take and keep its meaning, and how far apart the first guesses lie."""

    low: float
    high: float
    step: float


LINK = Range(low=0.2, high=1.0, step=0.1)
RANGES: dict[str, Range] = {
    "gemm": Range(low=0.4, high=0.95, step=0.1),
    "gemm_k0": Range(low=0.0, high=1000.0, step=100.0),
    "hbm": Range(low=0.2, high=0.95, step=0.1),
    "attention": Range(low=0.2, high=0.8, step=0.1),
    "kernel_s": Range(low=0.0, high=5e-5, step=4e-6),
    **dict.fromkeys(("hb", "rail", "send"), LINK),
    "latency_s": Range(low=0.0, high=1e-3, step=5e-6),
    "step_s": Range(low=0.0, high=1e-4, step=1e-6),
    "send_s": Range(low=0.0, high=2e-2, step=1e-3),
    "overhead": Range(low=1.0, high=3.0, step=0.05),
}
NARROW = ("gemm", "hbm", "kernel_s")
OF_SOFTWARE = ("overhead",)
OF_HARDWARE = tuple(name for name in RANGES if name not in OF_SOFTWARE)


def fittable(precision: str) -> tuple[str, ...]:
    """Parameters that a precision has of its own."""
    return OF_HARDWARE if precision == "16-bit" else NARROW


def hardware_values(gpu: Gpu, precision: str, names: tuple[str, ...]) -> dict[str, float]:
    """What the catalog has for a GPU and precision."""
    table = gpu.efficiency if precision == "16-bit" else _own(gpu, precision)
    return {name: float(getattr(table, name)) for name in names}


def with_hardware(gpu: Gpu, precision: str, values: Values) -> Gpu:
    """A GPU that reaches other shares in a precision; other precisions stay as they are."""
    own = gpu.efficiency
    if precision == "16-bit":
        changed = own.model_copy(update=dict(values))
    else:
        changed = own.model_copy(update={precision: _own(gpu, precision).model_copy(update=dict(values))})
    return gpu.model_copy(update={"efficiency": changed})


def _own(gpu: Gpu, precision: str) -> Reached:
    """The shares of a precision below 16 bits, or those it takes over."""
    return gpu.reached("fp8" if precision == "fp8" else "fp4")
