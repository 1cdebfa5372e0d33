"""Collectives over two levels: x ranks inside the HB domain, y across domains on one rail."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.perf.affine import AffineSeconds

Dimension = Literal["tp", "pp", "dp"]


def gather(gpu: Gpu, hb_gbyte_s: Any, data_bytes: Any, x: Any, y: Any, dimension: Dimension) -> AffineSeconds:
    r"""An all-gather, or a reduce-scatter, of `data_bytes` over x·y ranks.

    Along the rail each rank moves its 1/x of the data, inside the domain the whole of it:

    .. math:: \frac{x-1}{x} \frac{D}{e_{nv} F} + \frac{y-1}{y} \frac{D}{x} \frac{r}{e_{ib}} + \text{latency}

    Parameters
    ----------
    hb_gbyte_s
        F, one-way bandwidth inside the domain (10^9 bytes/s).
    data_bytes
        Size of the whole tensor (bytes).
    dimension
        Whose r the rail part is charged at.
    """
    inside = (x - 1) / x * data_bytes / (gpu.efficiency.hb * hb_gbyte_s * 1e9)
    across = (y - 1) / y * (data_bytes / x) / gpu.efficiency.rail
    return AffineSeconds(inside + np.where(x * y > 1, gpu.efficiency.latency_s, 0.0), **{dimension: across})


def send(gpu: Gpu, hb_gbyte_s: Any, data_bytes: Any, crosses: Any) -> AffineSeconds:
    """A pipeline send of `data_bytes`, over the rail where `crosses`, else inside the domain."""
    inside = np.where(crosses, 0.0, data_bytes / (gpu.efficiency.hb * hb_gbyte_s * 1e9))
    return AffineSeconds(inside, pp=np.where(crosses, data_bytes / gpu.efficiency.send, 0.0))
