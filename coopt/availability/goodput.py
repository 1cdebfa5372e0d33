r"""What share of the time trains, when checkpoints are written, failures lose work and restarts take time.

Failures come at a rate :math:`\lambda`, at any moment, during restarts and checkpoints too. Between two checkpoints of
:math:`\delta` seconds lie T seconds of training; what was done since the last one is lost, and R seconds go by before
training goes on. An interval, with all its failed attempts, then takes (Daly, FGCS 22 (2006), equation 20)

.. math:: E = e^{\lambda R} \frac{e^{\lambda (T + \delta)} - 1}{\lambda}

seconds on average, and T / E of the time trains. That is largest where :math:`\lambda T = 1 - e^{-\lambda (T+\delta)}`;
for rare failures it is Young's :math:`\sqrt{2 \delta / \lambda}`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coopt.perf.mapping import Floats

STEPS = 60


def best_interval_s(per_s: Any, checkpoint_s: float) -> Floats:
    """Training between two checkpoints with which most of the time trains (s); infinite without failures.

    Solves x + ln(1 - x) + c = 0 for x = lambda T and c = lambda delta by Newton steps, which from above the root fall.
    """
    rate = np.asarray(per_s, dtype=np.float64)
    cost = rate * checkpoint_s
    left = np.exp(-cost - 1.0)  # the root is above 1 - e^-c, and below 1 - e^-(1 + c)
    x = 1.0 - left
    for _ in range(STEPS):
        x = np.clip(x + (x + np.log1p(-x) + cost) * (1.0 - x) / np.maximum(x, 1e-300), 0.0, 1.0 - left)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(rate > 0, x / rate, np.inf))


def trained_share(per_s: Any, *, interval_s: Any, checkpoint_s: float, restart_s: float) -> Floats:
    """Share of the time that trains, by the equation above; 1 without failures where no checkpoint is ever written.

    Parameters
    ----------
    per_s
        Failures in a second.
    interval_s, checkpoint_s, restart_s
        T, delta and R (s).
    """
    rate, interval = np.asarray(per_s, dtype=np.float64), np.asarray(interval_s, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        attempts = np.exp(rate * restart_s) * np.expm1(rate * (interval + checkpoint_s))
        never = np.where(np.isinf(interval), 1.0, interval / (interval + checkpoint_s))
        return np.asarray(np.where(rate > 0, rate * interval / attempts, never))
