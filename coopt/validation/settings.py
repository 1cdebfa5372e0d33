"""Parameters that can be fitted: their location in the catalog, their values, and the user's
selection.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import cast

from coopt.instance.catalog import entries
from coopt.instance.hardware import Gpu, Precision
from coopt.instance.texts import InstanceError, both
from coopt.instance.transformer import Reached, Software
from coopt.validation.facts import FitSet, published_facts
from coopt.validation.runs import MeasuredRun

Values = Mapping[str, float]
MAX_PARAMETERS = 4  # more parameters overfit


@dataclass(frozen=True, kw_only=True)
class ParameterRange:
    """Valid range of a parameter, and the spacing of initial guesses."""

    low: float
    high: float
    step: float


LINK = ParameterRange(low=0.2, high=1.0, step=0.1)
RANGES: dict[str, ParameterRange] = {
    "gemm": ParameterRange(low=0.4, high=0.95, step=0.1),
    "gemm_k0": ParameterRange(low=0.0, high=1000.0, step=100.0),
    "hbm": ParameterRange(low=0.2, high=0.95, step=0.1),
    "attention": ParameterRange(low=0.2, high=0.8, step=0.1),
    "kernel_s": ParameterRange(low=0.0, high=5e-5, step=4e-6),
    **dict.fromkeys(("hb", "rail", "send"), LINK),
    "latency_s": ParameterRange(low=0.0, high=1e-3, step=5e-6),
    "step_s": ParameterRange(low=0.0, high=1e-4, step=1e-6),
    "send_s": ParameterRange(low=0.0, high=2e-2, step=1e-3),
    "overhead": ParameterRange(low=1.0, high=3.0, step=0.05),
}
NARROW = ("gemm", "hbm", "kernel_s")
OF_SOFTWARE = ("overhead",)
# where GPUs of a generation differ in watts: whose share of a peak is fitted
REFERENCE = {"blackwell": "gb200", "cdna3": "mi325x", "cdna4": "mi355x"}
# FLOP/s of products rise with watts to this power (judgement), between 1/3, where voltage rises
# with the clock, and 1, where it cannot fall
WATTS_POWER = 2 / 3
OF_HARDWARE = tuple(name for name in RANGES if name not in OF_SOFTWARE)


def fittable_parameters(precision: str) -> tuple[str, ...]:
    """Return the parameters specific to a precision."""
    return OF_HARDWARE if precision == "16-bit" else NARROW


def hardware_values(gpu: Gpu, precision: str, names: tuple[str, ...]) -> dict[str, float]:
    """Return the values in the catalog for a GPU and precision."""
    table = gpu.efficiency if precision == "16-bit" else _narrow_shares(gpu, precision)
    return {name: float(getattr(table, name)) for name in names}


def reference_of(generation: str) -> Gpu:
    """Return the catalog GPU whose efficiencies are fitted for its generation."""
    members = [
        gpu
        for gpu in entries("gpu").values()
        if isinstance(gpu, Gpu) and gpu.generation == generation
    ]
    return next((gpu for gpu in members if gpu.name == REFERENCE.get(generation)), members[0])


def _by_watts(gpu: Gpu, precision: str, values: Values) -> Values:
    r"""Scale `values` of the reference GPU of a generation to a GPU with another power limit.

    .. math:: e_g = e_{ref} \left(\frac{W / \hat F}{W_{ref} / \hat F_{ref}}\right)^{2/3}
    """
    if "gemm" not in values or gpu.generation not in REFERENCE:
        return values
    name = cast("Precision", "bf16" if precision == "16-bit" else precision)
    reference = reference_of(gpu.generation)
    if not (gpu.peak_flop_s(name) and reference.peak_flop_s(name)):
        return values
    watts = (gpu.w / gpu.peak_flop_s(name)) / (reference.w / reference.peak_flop_s(name))
    return {**values, "gemm": values["gemm"] * watts**WATTS_POWER}


def with_hardware(gpu: Gpu, precision: str, values: Values) -> Gpu:
    """Return the GPU with other efficiencies in a precision; other precisions are unchanged."""
    changes: dict[str, object] = dict(values)
    if precision != "16-bit":
        changes = {precision: _narrow_shares(gpu, precision).model_copy(update=changes)}
    return gpu.model_copy(update={"efficiency": gpu.efficiency.model_copy(update=changes)})


def _narrow_shares(gpu: Gpu, precision: str) -> Reached:
    """Return the efficiencies of a precision below 16 bits, or those it inherits."""
    return gpu.reached("fp8" if precision == "fp8" else "fp4")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Fitted values by generation and precision, and by framework, that replace those of the
    catalog.
    """

    hardware: Mapping[tuple[str, str], Mapping[str, float]] = field(default_factory=dict)
    software: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def gpu(self, gpu: Gpu) -> Gpu:
        """Return a GPU with the values fitted to its generation."""
        for precision in ("16-bit", "fp8", "fp4"):
            values = self.hardware.get((gpu.generation, precision))
            if values is not None:
                gpu = with_hardware(gpu, precision, _by_watts(gpu, precision, values))
        return gpu

    def framework(self, software: Software) -> Software:
        """Return a framework with the values fitted to it."""
        values = self.software.get(software.name)
        return software if values is None else software.model_copy(update=dict(values))

    def replaced(self, fit_set: FitSet, values: Mapping[str, float]) -> Settings:
        """Return these settings with other values for one set of parameters."""
        if fit_set.software:
            return replace(self, software={**self.software, fit_set.software: values})
        key = (fit_set.generation, fit_set.precision)
        return replace(self, hardware={**self.hardware, key: values})

    def values_of(self, fit_set: FitSet, run: MeasuredRun) -> dict[str, float]:
        """Return the current values of a set of parameters for `run`."""
        if fit_set.software:
            table = self.framework(run.software)
            return {name: float(getattr(table, name)) for name in fit_set.parameters}
        return hardware_values(
            self.gpu(reference_of(run.generation)), fit_set.precision, fit_set.parameters
        )

    def prior_of(self, fit_set: FitSet) -> dict[str, float]:
        """Return the prior values of a set of parameters: given, or those of the preceding
        generation or precision.
        """
        if fit_set.after is None:
            return {
                name: fit_set.prior[name] for name in fit_set.parameters if name in fit_set.prior
            }
        generation, precision = fit_set.after
        return hardware_values(self.gpu(reference_of(generation)), precision, fit_set.parameters)


def sets_selected(
    generation: str | None, precision: str | None, parameters: str | None, rows: Sequence[str]
) -> tuple[FitSet, ...]:
    """Return the selected default sets, with other parameters or rows if given.

    Raises
    ------
    InstanceError
        If a generation or parameter is unknown, or parameters are given for more than one
        generation.
    """
    names = tuple(dict.fromkeys(filter(None, map(str.strip, (parameters or "").split(",")))))
    if parameters is not None and not 1 <= len(names) <= MAX_PARAMETERS:
        raise InstanceError(
            f"--parameters = {parameters!r}: needs 1 to {MAX_PARAMETERS} names, such as gemm,hbm"
        )
    gpus = [gpu for gpu in entries("gpu").values() if isinstance(gpu, Gpu)]
    known = dict.fromkeys(gpu.generation for gpu in gpus if gpu.generation)
    if generation is not None and generation not in known:
        raise InstanceError(
            f"--generation = {generation!r}: no GPU of the catalog has it, needs one of"
            f" {', '.join(known)}"
        )
    if generation is None and names:
        raise InstanceError("--parameters: fits one generation at a time, needs --generation NAME")
    # parameters that are named without a precision are those of 16 bits
    narrow = precision or ("16-bit" if names else None)
    meant = [
        fit_set
        for fit_set in published_facts().fit
        if (generation is None and narrow is None)
        or (
            not fit_set.software
            and generation in (None, fit_set.generation)
            and narrow in (None, fit_set.precision)
        )
    ]
    if generation is not None and narrow is not None and not meant:
        default = {"generation": generation, "precision": narrow, "parameters": NARROW}
        meant = [FitSet.model_validate(default)]
    for fit_set in meant:
        allowed = OF_SOFTWARE if fit_set.software else fittable_parameters(fit_set.precision)
        if unknown := [name for name in names if name not in allowed]:
            raise InstanceError(
                f"--parameters: {', '.join(unknown)} cannot be fitted for {fit_set.precision},"
                f" needs some of {', '.join(allowed)}"
            )
    if not meant:
        named, further = (
            (f"--precision {precision}", "--generation")
            if generation is None
            else (f"--generation {generation}", "--precision")
        )
        raise InstanceError(f"nothing to fit for {named} alone, needs {further} as well")
    given = {"parameters": names, "rows": tuple(rows)}
    changes = {name: values for name, values in given.items() if values}
    return tuple(fit_set.model_copy(update=changes) for fit_set in meant)


def check_globs(globs: Sequence[str], ids: Collection[str]) -> None:
    """Refuse patterns that match no row.

    Raises
    ------
    InstanceError
        With a sentence for each pattern.
    """
    idle = [glob for glob in globs if not any(fnmatchcase(name, glob) for name in ids)]
    if idle:
        known = both([*map(repr, islice(ids, 3)), *(["others"] if len(ids) > 3 else [])])
        raise InstanceError(
            f"--rows = {glob!r}: no run has such an id, needs a pattern for some of {known}"
            for glob in idle
        )
