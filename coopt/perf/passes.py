"""Seconds of work that runs once forward and once backward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coopt.perf.kernels import Device, Rate


@dataclass(frozen=True)
class Passes:
    """Forward and backward seconds; arrays that broadcast."""

    forward: Any = 0.0
    backward: Any = 0.0

    def __add__(self, other: Passes) -> Passes:
        return Passes(self.forward + other.forward, self.backward + other.backward)

    def __mul__(self, factor: Any) -> Passes:
        return Passes(self.forward * factor, self.backward * factor)


def product(device: Device, m: Any, n: Any, k: Any, batch: Any = 1, rate: Rate | None = None) -> Passes:
    """A matrix product and both its gradients."""
    return Passes(device.product_s(m, n, k, batch, rate), device.gradients_s(m, n, k, batch, rate))


def pointwise(device: Device, forward_bytes: Any, backward_bytes: Any) -> Passes:
    """Pointwise kernels that would move these bytes if all were fused."""
    return Passes(device.pointwise_s(forward_bytes), device.pointwise_s(backward_bytes))
