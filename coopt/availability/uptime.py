r"""What interrupts a workload on a network, and what share of the time trains beside checkpoints, losses, restarts.

Failures come at a rate :math:`\lambda`, at any moment, during restarts and checkpoints too. Between two checkpoints of
:math:`\delta` seconds lie T seconds of training; what was done since the last one is lost, and R seconds go by before
training goes on. An interval, with all its failed attempts, then takes (Daly, FGCS 22 (2006), equation 20)

.. math:: E = e^{\lambda R} \frac{e^{\lambda (T + \delta)} - 1}{\lambda}

seconds on average, and T / E of the time trains. That is largest where :math:`\lambda T = 1 - e^{-\lambda (T+\delta)}`;
for rare failures it is Young's :math:`\sqrt{2 \delta / \lambda}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coopt.availability.failures import PartCounts, failures_per_hour
from coopt.instance.reserves import Availability
from coopt.instance.workload import Workload
from coopt.perf.mapping import Floats
from coopt.perf.memory import checkpoint_bytes

STEPS = 60

HOUR_S, DAY_S = 3600.0, 86400.0
NEVER = 1e-9  # share of the time below which nothing gets done


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


HOPELESS = 100.0  # failures expected in one attempt, at which nothing gets done
TERMS, FAR = 40, 4.0  # of a series, and where its closed form loses no digits


def variance_s(per_s: Any, *, interval_s: Any, checkpoint_s: float, restart_s: float) -> Floats:
    r"""Variance of what an interval takes with all its failed attempts, for each second that trains (s).

    An attempt of a seconds fails with :math:`1 - p = 1 - e^{-\lambda a}`, after Y seconds, and so do restarts. Failures
    before a success follow a geometric law, so that with :math:`N = (1 - p) / p` of them on average

    .. math:: \mathrm{Var} = N \, \mathrm{Var}(Y + Z) + \frac{N}{p} \, \mathrm{E}[Y + Z]^2

    where Z is a restart with its own failures, for which the same holds without a Z.
    """
    rate, interval = np.asarray(per_s, dtype=np.float64), np.asarray(interval_s, dtype=np.float64)
    moving = rate > 0
    safe, finite = np.where(moving, rate, 1.0), np.where(moving, interval, 1.0)
    again = _attempts(safe, np.full_like(safe, restart_s), np.zeros_like(safe), np.zeros_like(safe))
    _, variance = _attempts(safe, finite + checkpoint_s, *again)
    return np.asarray(np.where(moving, variance / finite, 0.0))


def _attempts(rate: Floats, length_s: Floats, extra_s: Floats, extra_variance: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of attempts until one succeeds, where each failure takes some more seconds."""
    u = np.minimum(rate * length_s, HOPELESS)
    fails, mean_failures = -np.expm1(-u), np.expm1(u)
    first = length_s * _partial(u, 1) / np.where(fails > 0, fails, 1.0)
    second = length_s**2 * _partial(u, 2) / np.where(fails > 0, fails, 1.0)
    each = first + extra_s
    variance = mean_failures * (second - first**2 + extra_variance) + mean_failures * np.exp(u) * each**2
    return length_s + mean_failures * each, variance


def _partial(u: Floats, power: int) -> Floats:
    """The integral of y^k u exp(-u y) over y from 0 to 1, for k = 1 or 2: by its series where u is not large."""
    small, term, total = np.minimum(u, FAR), np.minimum(u, FAR), np.zeros_like(u)
    for k in range(TERMS):
        total = total + term / (k + power + 1)
        term = -term * small / (k + 1)
    large = np.maximum(u, FAR)
    closed = (1 - np.exp(-large) * (1 + large)) / large
    if power == 2:
        closed = 2 * closed / large - np.exp(-large)
    return np.asarray(np.where(u <= FAR, total, closed))


def promised_share(
    span_s: float, deviations: float, *, mean: Any, variance_s: Any, running: float, waits_s: float
) -> Any:
    r"""Share of a span that trains with a probability: what is done in it is, with that probability, no less.

    Work of W seconds takes m W on average, with a variance of v W; domains enough are whole for a share A of the time,
    whose total has a variance of :math:`\sigma^2` a second. Many intervals add up to a normal law, so that
    W seconds are done in the span D with z standard deviations to spare where

    .. math:: \frac{m}{A} W + \frac{z}{A} \sqrt{\left(v + \frac{\sigma^2 m}{A}\right) W} \le D

    which is solved for W. Without z it is A / m.
    """
    a, b = mean / running, deviations / running * np.sqrt(variance_s + waits_s * mean / running)
    root = 2 * span_s / (b + np.sqrt(b * b + 4 * a * span_s))
    return root * root / span_s


@dataclass(frozen=True, kw_only=True)
class Interruptions:
    """Failures in a second and the training between checkpoints (s), for each network; checkpoint and restart (s).

    `trained` is the share of the time that trains while domains enough are whole, `variance_s` how far a second of
    training spreads.
    """

    per_s: Floats
    interval_s: Floats
    checkpoint_s: float
    restart_s: float
    trained: Floats
    variance_s: Floats


def interruptions(asked: Availability, workload: Workload, counts: PartCounts) -> Interruptions:
    """What interrupts a workload on networks with so many parts."""
    per_s = np.asarray(failures_per_hour(asked.rates, asked.at, counts)) / HOUR_S
    transfer_s = checkpoint_bytes(workload) / (asked.checkpoint_gbyte_s_per_gpu * 1e9 * counts.gpus)
    checkpoint_s = transfer_s if asked.checkpoint_s is None else asked.checkpoint_s
    restart_s = asked.restart_s + asked.restart_s_per_1000_gpus * counts.gpus / 1000 + transfer_s
    given = asked.checkpoint_interval_s
    interval_s: Any = best_interval_s(per_s, checkpoint_s) if given is None else np.full_like(per_s, given)
    taken: dict[str, Any] = {"interval_s": interval_s, "checkpoint_s": checkpoint_s, "restart_s": restart_s}
    trained = trained_share(per_s, **taken)
    spread = variance_s(per_s, **taken) if asked.confidence is not None else np.zeros_like(per_s)
    return Interruptions(per_s=per_s, **taken, trained=trained, variance_s=spread)


def promise(asked: Availability, workload: Workload, found: Interruptions, running: float, waits_s: float) -> Any:
    """The share of its days that a workload can count on; without a bound on days that of the mean."""
    if asked.confidence is None or workload.train_days is None:
        return running * found.trained
    share = promised_share(
        workload.train_days * DAY_S,
        asked.deviations,
        mean=1.0 / np.maximum(found.trained, NEVER),
        variance_s=found.variance_s,
        running=running,
        waits_s=waits_s,
    )
    return np.where(running * found.trained < NEVER, 0.0, share)
