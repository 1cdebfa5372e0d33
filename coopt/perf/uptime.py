r"""Rates of interruptions, and the share of time left for training by checkpoints, lost work and
restarts.

The rates of parts times their counts give the rate at which a run ends, and the probability that an
HB domain has too few GPUs.

Failures occur at a rate :math:`\lambda`, also during restarts and checkpoints. Between two
checkpoints of :math:`\delta` seconds lie T seconds of training; a failure loses the work since the
last checkpoint, and training resumes R seconds later. An interval with all its failed attempts then
takes (Daly, FGCS 22 (2006), equation 20)

.. math:: E = e^{\lambda R} \frac{e^{\lambda (T + \delta)} - 1}{\lambda}

seconds on average, and the share T / E of the time is spent on training. It is maximal where
:math:`\lambda T = 1 - e^{-\lambda (T+\delta)}`; for rare failures that is Young's :math:`\sqrt{2
\delta / \lambda}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from coopt.instance.catalog import FailureRates
from coopt.instance.reserves import Availability
from coopt.instance.workload import Workload
from coopt.perf.mapping import Floats
from coopt.perf.memory import checkpoint_bytes

HOURS_PER_YEAR = 8760.0
HOUR_S, DAY_S = 3600.0, 86400.0
NEVER = 1e-9  # share of time that counts as none
FAR_DEVIATIONS = 20.0  # standard deviations with negligible probability beyond
TINY = 1e-280  # lower bound on probabilities used as divisors


@dataclass(frozen=True, kw_only=True)
class PartCounts:
    """Number of parts whose failure ends a run: training GPUs, their NICs, training HB domains;
    ends of links and switches if NICs have one port.

    Numbers, or arrays of one shape, since networks differ in optics and in switches with other
    uplinks.
    """

    gpus: int
    nics: int
    optics: Any
    switches: Any
    domains: int


def failures_per_hour(rates: FailureRates, at: str, counts: PartCounts) -> Any:
    """Return the number of interruptions of training per hour.

    Parts fail independently, so that rates add up, as published runs show (arXiv 2410.21680: time
    between failures falls as one over the number of nodes).
    """
    rate = {name: failures.at(at) for name, failures in rates.of_part.items()}
    of_gpus = counts.gpus * (rate["gpu"] + rate["hbm"] + rate["software"])
    of_hosts = (
        math.ceil(counts.gpus / rates.gpus_per_host) * rate["host"]
        + counts.domains * rate["domain"]
    )
    of_network = (
        counts.nics * rate["nic"] + counts.optics * rate["optic"] + counts.switches * rate["switch"]
    )
    return (of_gpus + of_hosts + of_network) / HOURS_PER_YEAR


def domain_lost(
    availability: Availability, *, size: int, active: int, nics_per_gpu: int, gpus_per_nic: int = 1
) -> float:
    """Return the probability that an HB domain has fewer working GPUs than must train.

    A GPU is unavailable during repairs of itself, its memory or one of its NICs; all GPUs of a host
    during repairs of the host; and all of a domain during repairs of shared parts. GPUs beyond
    `active` are hot spares.

    Parameters
    ----------
    size, active
        GPUs of the domain, and how many of them train.
    gpus_per_nic
        GPUs of a host that depend on the same NIC.
    """
    rates, hours = availability.rates, availability.repair_hours
    rate = {name: failures.at(availability.at) for name, failures in rates.of_part.items()}
    # a shared NIC that fails disables all its GPUs, and is counted separately
    own_nics = nics_per_gpu if gpus_per_nic == 1 else 0
    gpu = _repaired_share(rate["gpu"] + rate["hbm"] + own_nics * rate["nic"], hours)
    nic = _repaired_share(rate["nic"], hours) if gpus_per_nic > 1 else 0.0
    host, domain = _repaired_share(rate["host"], hours), _repaired_share(rate["domain"], hours)
    # the last host of a domain may hold fewer GPUs than the others
    full_hosts, rest_gpus = divmod(size, rates.gpus_per_host)
    small = 1 if rest_gpus else 0
    enough = math.fsum(
        binomial_at(full_hosts, host, a)
        * binomial_at(small, host, b)
        * _enough_of(size - gone, size - active - gone, gpu, nic, gpus_per_nic)
        for a in range(full_hosts + 1)
        for b in range(small + 1)
        if (gone := a * rates.gpus_per_host + b * rest_gpus) <= size - active
    )
    return min(max(1.0 - (1.0 - domain) * enough, 0.0), 1.0)


def _enough_of(gpus: int, most_gone: int, gpu: float, nic: float, gpus_per_nic: int) -> float:
    """Return the probability that at most `most_gone` of some GPUs are unavailable, alone or with a
    shared NIC.
    """
    nics = gpus // gpus_per_nic
    return math.fsum(
        binomial_at(nics, nic, lost_nics)
        * binomial_up_to(gpus - lost_nics * gpus_per_nic, gpu, most_gone - lost_nics * gpus_per_nic)
        for lost_nics in range((most_gone // gpus_per_nic if nic else 0) + 1)
    )


def _repaired_share(per_year: float, hours: float) -> float:
    """Return the share of time that a part is under repair."""
    repair_ratio = per_year / HOURS_PER_YEAR * hours
    return repair_ratio / (1.0 + repair_ratio)


def binomial_at(n: int, p: float, k: int) -> float:
    """Probability that exactly k of n fail."""
    if p in (0.0, 1.0):
        return float(k == n * p)
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))


@lru_cache(maxsize=1 << 16)
def binomial_up_to(n: int, p: float, k: int) -> float:
    """Probability that at most k of n fail."""
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    # sum the shorter tail to keep precision near 0 and 1
    mean = int(n * p)
    if k <= mean:
        return math.fsum(binomial_at(n, p, i) for i in range(k + 1))
    return 1.0 - math.fsum(
        binomial_at(n, p, i) for i in range(k + 1, n + 1) if i <= k + 64 * (1 + math.isqrt(mean))
    )


def enough_domains(lost_share: float, domains: int, spares: int) -> float:
    """Return the share of time with enough working domains, including spares, to train."""
    return binomial_up_to(domains + spares, lost_share, spares)


def throughput_without(
    lost_gpus: float, *, domains: int, size: int, active: int, of_replica: int, spares: int = 0
) -> float:
    """Return the mean share of replicas that train while a share of the GPUs, chosen at random, is
    unavailable.

    A domain with fewer working GPUs than required does not train, and a replica needs `of_replica`
    whole domains: working domains are combined into as many replicas as possible.

    Parameters
    ----------
    lost_gpus
        Share of all GPUs that are unavailable.
    domains, size, active
        Training HB domains, GPUs per domain, and how many of these train.
    of_replica
        Domains per data-parallel replica.
    spares
        Spare domains.
    """
    gone, all_domains = 1.0 - binomial_up_to(size, lost_gpus, size - active), domains + spares
    replicas = domains // of_replica
    mean = math.fsum(
        binomial_at(all_domains, gone, down) * min((all_domains - down) // of_replica, replicas)
        for down in range(all_domains + 1)
    )
    return mean / replicas


@lru_cache(maxsize=1 << 16)
def waiting_variance_s(lost_share: float, domains: int, spares: int, repair_s: float) -> float:
    r"""Return the variance of the total time with enough working domains, per second (s), as
    domains fail and are repaired.

    With :math:`\pi_i` the probability of i lost domains, :math:`C_i` that of at most i,
    :math:`\lambda_i` the rate at which another one is lost and A the share of time with enough
    domains, up to S lost ones,

    .. math:: \sigma^2 = 2 \sum_{i \le S} \frac{(1 - A)^2 C_i^2}{\lambda_i \pi_i}
        + 2 \sum_{i > S} \frac{A^2 (1 - C_i)^2}{\lambda_i \pi_i}

    which holds for any birth-death chain. A domain is unavailable for the time of a repair.
    """
    all_domains = domains + spares
    if lost_share <= 0.0 or lost_share >= 1.0 or repair_s <= 0.0:
        return 0.0
    rate, mean = lost_share / (1.0 - lost_share) / repair_s, all_domains * lost_share
    # more are never lost at once
    most_lost = min(all_domains, max(spares, int(mean + FAR_DEVIATIONS * math.sqrt(mean))) + 100)
    probabilities = [binomial_at(all_domains, lost_share, i) for i in range(most_lost + 1)]
    enough_share, short_share = (
        math.fsum(probabilities[: spares + 1]),
        math.fsum(probabilities[spares + 1 :]),
    )
    upto, beyond, total = 0.0, 0.0, []
    for i in range(spares + 1):
        upto += probabilities[i]
        if probabilities[i] > TINY and i < all_domains:
            total.append((short_share * upto) ** 2 / ((all_domains - i) * rate * probabilities[i]))
    for i in range(most_lost - 1, spares, -1):
        beyond += probabilities[i + 1]
        if probabilities[i] > TINY:
            total.append(
                (enough_share * beyond) ** 2 / ((all_domains - i) * rate * probabilities[i])
            )
    return 2.0 * math.fsum(total)


STEPS = 60


def best_interval_s(per_s: Any, checkpoint_s: float) -> Floats:
    """Return the training time between checkpoints that maximises the share of time in training
    (s); infinite without failures.

    Solves x + ln(1 - x) + c = 0 for x = lambda T and c = lambda delta by Newton's method, which
    decreases monotonically from above the root.
    """
    rate = np.asarray(per_s, dtype=np.float64)
    cost = rate * checkpoint_s
    gap = np.exp(-cost - 1.0)  # the root is above 1 - e^-c, and below 1 - e^-(1 + c)
    x = 1.0 - gap
    for _ in range(STEPS):
        x = np.clip(
            x + (x + np.log1p(-x) + cost) * (1.0 - x) / np.maximum(x, 1e-300), 0.0, 1.0 - gap
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(rate > 0, x / rate, np.inf))


def trained_share(per_s: Any, *, interval_s: Any, checkpoint_s: float, restart_s: float) -> Floats:
    """Return the share of time in training, by the equation above; 1 without failures and
    checkpoints.

    Parameters
    ----------
    per_s
        Failures per second.
    interval_s, checkpoint_s, restart_s
        T, delta and R (s).
    """
    rate, interval = np.asarray(per_s, dtype=np.float64), np.asarray(interval_s, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        attempts = np.exp(rate * restart_s) * np.expm1(rate * (interval + checkpoint_s))
        never = np.where(np.isinf(interval), 1.0, interval / (interval + checkpoint_s))
        return np.asarray(np.where(rate > 0, rate * interval / attempts, never))


HOPELESS = 100.0  # expected failures per attempt that make progress impossible
TERMS, LARGE = 40, 4.0  # of a series, and where its closed form loses no digits


def variance_s(per_s: Any, *, interval_s: Any, checkpoint_s: float, restart_s: float) -> Floats:
    r"""Return the variance of the duration of an interval with all its failed attempts, per second
    of training (s).

    An attempt of a seconds fails with probability :math:`1 - p = 1 - e^{-\lambda a}`, after Y
    seconds, and so do restarts. The number of failures before a success is geometrically
    distributed, so that with its mean :math:`N = (1 - p) / p`

    .. math:: \mathrm{Var} = N \, \mathrm{Var}(Y + Z) + \frac{N}{p} \, \mathrm{E}[Y + Z]^2

    where Z is a restart with its own failures, for which the same holds without a Z.
    """
    rate, interval = np.asarray(per_s, dtype=np.float64), np.asarray(interval_s, dtype=np.float64)
    moving = rate > 0
    safe, finite = np.where(moving, rate, 1.0), np.where(moving, interval, 1.0)
    restarts = _attempts(
        safe, np.full_like(safe, restart_s), np.zeros_like(safe), np.zeros_like(safe)
    )
    _, variance = _attempts(safe, finite + checkpoint_s, *restarts)
    return np.asarray(np.where(moving, variance / finite, 0.0))


def _attempts(
    rate: Floats, length_s: Floats, extra_s: Floats, extra_variance: Floats
) -> tuple[Floats, Floats]:
    """Return mean and variance of the duration of attempts until one succeeds, where each failure
    adds some time.
    """
    # exp of far more would overflow, and nothing gets done here already
    u = np.minimum(rate * length_s, HOPELESS)
    fails, mean_failures = -np.expm1(-u), np.expm1(u)
    failed_s = length_s * _partial(u, 1) / np.where(fails > 0, fails, 1.0)
    failed_square = length_s**2 * _partial(u, 2) / np.where(fails > 0, fails, 1.0)
    failure_s = failed_s + extra_s
    variance = (
        mean_failures * (failed_square - failed_s**2 + extra_variance)
        + mean_failures * np.exp(u) * failure_s**2
    )
    return length_s + mean_failures * failure_s, variance


def _partial(u: Floats, power: int) -> Floats:
    """Return the integral of y^k u exp(-u y) over y from 0 to 1, for k = 1 or 2, by its series
    unless u is large.
    """
    small, term, total = np.minimum(u, LARGE), np.minimum(u, LARGE), np.zeros_like(u)
    for k in range(TERMS):
        total = total + term / (k + power + 1)
        term = -term * small / (k + 1)
    large = np.maximum(u, LARGE)
    # below LARGE this loses digits to cancellation, and the series is short
    closed_form = (1 - np.exp(-large) * (1 + large)) / large
    if power == 2:
        closed_form = 2 * closed_form / large - np.exp(-large)
    return np.asarray(np.where(u <= LARGE, total, closed_form))


def promised_share(
    span_s: float, deviations: float, *, mean: Any, variance_s: Any, running: float, waits_s: float
) -> Any:
    r"""Return the share of a span that is spent on training with a given probability, or more.

    W seconds of work take m W on average, with a variance of v W; enough domains work for a share A
    of the time, whose total has a variance of :math:`\sigma^2` per second. The sum of many
    intervals is normally distributed, so that W seconds of work fit into the span D with a margin
    of z standard deviations if

    .. math:: \frac{m}{A} W + \frac{z}{A} \sqrt{\left(v + \frac{\sigma^2 m}{A}\right) W} \le D

    which is solved for W. Without z the share is A / m.
    """
    a, b = mean / running, deviations / running * np.sqrt(variance_s + waits_s * mean / running)
    root = 2 * span_s / (b + np.sqrt(b * b + 4 * a * span_s))
    return root * root / span_s


@dataclass(frozen=True, kw_only=True)
class Interruptions:
    """Failures per second and training time between checkpoints (s) for each network, and
    checkpoint and restart times (s).

    `trained` is the share of time in training while enough domains work, and `variance_s` the
    variance per second of training.
    """

    per_s: Floats
    interval_s: Floats
    checkpoint_s: float
    restart_s: float
    trained: Floats
    variance_s: Floats


def interruptions(
    availability: Availability, workload: Workload, counts: PartCounts
) -> Interruptions:
    """Return the interruptions of a workload on networks with these numbers of parts."""
    per_s = np.asarray(failures_per_hour(availability.rates, availability.at, counts)) / HOUR_S
    transfer_s = checkpoint_bytes(workload) / (
        availability.checkpoint_gbyte_s_per_gpu * 1e9 * counts.gpus
    )
    checkpoint_s = transfer_s if availability.checkpoint_s is None else availability.checkpoint_s
    restart_s = (
        availability.restart_s
        + availability.restart_s_per_1000_gpus * counts.gpus / 1000
        + transfer_s
    )
    given_interval_s = availability.checkpoint_interval_s
    interval_s: Any = (
        best_interval_s(per_s, checkpoint_s)
        if given_interval_s is None
        else np.full_like(per_s, given_interval_s)
    )
    times: dict[str, Any] = {
        "interval_s": interval_s,
        "checkpoint_s": checkpoint_s,
        "restart_s": restart_s,
    }
    trained = trained_share(per_s, **times)
    spread = (
        variance_s(per_s, **times) if availability.confidence is not None else np.zeros_like(per_s)
    )
    return Interruptions(per_s=per_s, **times, trained=trained, variance_s=spread)


def promise(
    availability: Availability,
    workload: Workload,
    interruption: Interruptions,
    running: float,
    waits_s: float,
) -> Any:
    """Return the share of its days that a workload can rely on; the mean share if its bound is not
    in days.
    """
    if availability.confidence is None or workload.train_days is None:
        return running * interruption.trained
    share = promised_share(
        workload.train_days * DAY_S,
        availability.deviations,
        mean=1.0 / np.maximum(interruption.trained, NEVER),
        variance_s=interruption.variance_s,
        running=running,
        waits_s=waits_s,
    )
    return np.where(running * interruption.trained < NEVER, 0.0, share)
