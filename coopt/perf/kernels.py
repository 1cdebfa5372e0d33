"""Time of single kernels on one GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.perf.mapping import Floats

# rows, columns and relative efficiency of the output tiles a library chooses from
TILES = ((256, 128, 1.0), (128, 256, 1.0), (128, 128, 0.95), (256, 64, 0.85), (64, 256, 0.85))
BYTES = 2  # of a 16-bit number


def product_s(gpu: Gpu, m: Any, n: Any, k: Any, batch: Any = 1) -> Floats:
    r"""Seconds of `batch` matrix products (m x k)·(k x n).

    The longer of whole tiles over whole waves of multiprocessors, and of moving the three matrices:

    .. math::
        \min_{t} \lceil \lceil m/t_m \rceil \lceil n/t_n \rceil B / SM \rceil \cdot SM \cdot
        \frac{2 t_m t_n}{x_t} \frac{k + k_0}{e_g \hat F}
        \quad\text{and}\quad \frac{2 B (mk + kn + mn)}{e_m \hat M}

    Parameters
    ----------
    m, n, k, batch
        Sizes; arrays that broadcast.
    """
    m, n, k, batch = (np.asarray(x, dtype=np.float64) for x in (m, n, k, batch))
    waves = [np.ceil(np.ceil(m / tm) * np.ceil(n / tn) * batch / gpu.sm_count) * (tm * tn / x) for tm, tn, x in TILES]
    flop = 2.0 * gpu.sm_count * np.minimum.reduce(np.broadcast_arrays(*waves)) * (k + gpu.efficiency.gemm_k0)
    tile = flop / (gpu.efficiency.gemm * gpu.bf16_tflop_s * 1e12)
    traffic = stream_s(gpu, BYTES * batch * (m * k + k * n + m * n))
    return np.asarray(np.maximum(tile, traffic), dtype=np.float64)


def gradients_s(gpu: Gpu, m: Any, n: Any, k: Any, batch: Any = 1) -> Floats:
    """Seconds of the data gradient (m, k, n) and the weight gradient (k, n, m) of a product."""
    return product_s(gpu, m, k, n, batch) + product_s(gpu, k, n, m, batch)


def stream_s(gpu: Gpu, moved_bytes: Any) -> Floats:
    """Seconds of a kernel that only moves bytes through HBM."""
    return np.asarray(moved_bytes, dtype=np.float64) / (gpu.efficiency.hbm * gpu.hbm_gbyte_s * 1e9)
