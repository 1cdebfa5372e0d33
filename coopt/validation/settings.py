"""Values of fitted parameters, and the hardware and software that has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coopt.instance.catalog import entries
from coopt.instance.hardware import Gpu
from coopt.instance.software import Software
from coopt.validation.adjust import hardware_values, with_hardware
from coopt.validation.facts import FitSet
from coopt.validation.runs import Run


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Values by generation and precision, and by framework, in place of the catalog's."""

    hardware: Mapping[tuple[str, str], Mapping[str, float]] = field(default_factory=dict)
    software: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def gpu(self, gpu: Gpu) -> Gpu:
        """A GPU with the values of its generation."""
        for precision in ("16-bit", "fp8", "fp4"):
            values = self.hardware.get((gpu.generation, precision))
            if values is not None:
                gpu = with_hardware(gpu, precision, values)
        return gpu

    def framework(self, software: Software) -> Software:
        """A framework with its values."""
        values = self.software.get(software.name)
        return software if values is None else software.model_copy(update=dict(values))

    def replaced(self, asked: FitSet, values: Mapping[str, float]) -> Settings:
        """With other values for one set of parameters."""
        if asked.software:
            return Settings(hardware=self.hardware, software={**self.software, asked.software: values})
        return Settings(hardware={**self.hardware, (asked.generation, asked.precision): values}, software=self.software)

    def values_of(self, asked: FitSet, run: Run) -> dict[str, float]:
        """The values a set of parameters has now, as `run` meets them."""
        if asked.software:
            table = self.framework(run.software)
            return {name: float(getattr(table, name)) for name in asked.parameters}
        return hardware_values(self.gpu(run.gpu), asked.precision, asked.parameters)

    def prior_of(self, asked: FitSet) -> dict[str, float]:
        """The values a set of parameters is held to: stated, or those of the generation or precision before."""
        if asked.after is None:
            return {name: asked.prior[name] for name in asked.parameters if name in asked.prior}
        generation, precision = asked.after
        members = [gpu for gpu in entries("gpu").values() if isinstance(gpu, Gpu) and gpu.generation == generation]
        return hardware_values(self.gpu(members[0]), precision, asked.parameters)
