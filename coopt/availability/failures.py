"""How often training is interrupted, and how often an HB domain has too few GPUs: rates times counts of parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from coopt.instance.catalog import FailureRates
from coopt.instance.reserves import Availability

HOURS_PER_YEAR = 8760.0
FAR = 20.0  # standard deviations beyond which nothing happens
TINY = 1e-280  # of probabilities that are nothing, and would be divided by


@dataclass(frozen=True, kw_only=True)
class PartCounts:
    """Parts whose failure ends a run: GPUs that train, their NICs, HB domains that train; ends of links and switches
    where NICs have one port.

    Numbers, or arrays of one shape: a network has other optics and switches with other uplinks.
    """

    gpus: int
    nics: int
    optics: Any
    switches: Any
    domains: int


def failures_per_hour(rates: FailureRates, at: str, counts: PartCounts) -> Any:
    """Interruptions of training in an hour.

    Parts fail independently of each other, so that rates add up: that is what published runs show
    (arXiv 2410.21680: time between failures falls as one over the number of nodes).
    """
    rate = {name: each.at(at) for name, each in rates.of_part.items()}
    of_gpus = counts.gpus * (rate["gpu"] + rate["hbm"] + rate["software"])
    of_hosts = math.ceil(counts.gpus / rates.gpus_per_host) * rate["host"] + counts.domains * rate["domain"]
    of_network = counts.nics * rate["nic"] + counts.optics * rate["optic"] + counts.switches * rate["switch"]
    return (of_gpus + of_hosts + of_network) / HOURS_PER_YEAR


def domain_lost(asked: Availability, *, size: int, active: int, nics_per_gpu: int, gpus_per_nic: int = 1) -> float:
    """Probability that an HB domain has fewer working GPUs than have to train.

    A GPU is gone while it, its memory or one of its NICs is repaired, all GPUs of a host while the host is, and all of
    a domain while what they share is. GPUs beyond `active` are hot spares: they stand in for those that are gone.

    Parameters
    ----------
    size, active
        GPUs of the domain, and how many of them train.
    gpus_per_nic
        GPUs of a host that are gone with one NIC, where each has one.
    """
    rates, hours = asked.rates, asked.repair_hours
    rate = {name: each.at(asked.at) for name, each in rates.of_part.items()}
    own_nics = nics_per_gpu if gpus_per_nic == 1 else 0
    gpu = _repaired_share(rate["gpu"] + rate["hbm"] + own_nics * rate["nic"], hours)
    nic = _repaired_share(rate["nic"], hours) if gpus_per_nic > 1 else 0.0
    host, shared = _repaired_share(rate["host"], hours), _repaired_share(rate["domain"], hours)
    full, rest = divmod(size, rates.gpus_per_host)  # the last host of a domain may hold fewer GPUs than the others
    small = 1 if rest else 0
    enough = math.fsum(
        binomial_at(full, host, a)
        * binomial_at(small, host, b)
        * _enough_of(size - gone, size - active - gone, gpu, nic, gpus_per_nic)
        for a in range(full + 1)
        for b in range(small + 1)
        if (gone := a * rates.gpus_per_host + b * rest) <= size - active
    )
    return min(max(1.0 - (1.0 - shared) * enough, 0.0), 1.0)


def _enough_of(gpus: int, most: int, gpu: float, nic: float, gpus_per_nic: int) -> float:
    """Probability that no more than `most` of some GPUs are gone, alone or with a NIC that they share."""
    nics = gpus // gpus_per_nic
    return math.fsum(
        binomial_at(nics, nic, lost) * binomial_up_to(gpus - lost * gpus_per_nic, gpu, most - lost * gpus_per_nic)
        for lost in range((most // gpus_per_nic if nic else 0) + 1)
    )


def _repaired_share(per_year: float, hours: float) -> float:
    """Share of the time that a part is under repair."""
    busy = per_year / HOURS_PER_YEAR * hours
    return busy / (1.0 + busy)


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
    middle = int(n * p)
    if k <= middle:
        return math.fsum(binomial_at(n, p, i) for i in range(k + 1))
    return 1.0 - math.fsum(binomial_at(n, p, i) for i in range(k + 1, n + 1) if i <= k + 64 * (1 + math.isqrt(middle)))


def enough_domains(lost: float, domains: int, spares: int) -> float:
    """Share of the time in which as many domains as train are whole, of those and the ones that stand by."""
    return binomial_up_to(domains + spares, lost, spares)


def throughput_without(
    lost_gpus: float, *, domains: int, size: int, active: int, of_replica: int, spares: int = 0
) -> float:
    """Mean share of the replicas that train while a share of the GPUs is gone, at random.

    A domain with fewer working GPUs than train does not train, and a replica needs `of_replica` whole ones: those
    are packed together, so that there are as many replicas as whole domains allow for.

    Parameters
    ----------
    lost_gpus
        Share of all GPUs that are gone.
    domains, size, active
        HB domains that train, the GPUs of each, and how many of these train.
    of_replica
        Domains of one data-parallel replica.
    spares
        Domains that stand by.
    """
    gone, every = 1.0 - binomial_up_to(size, lost_gpus, size - active), domains + spares
    replicas = domains // of_replica
    mean = math.fsum(
        binomial_at(every, gone, down) * min((every - down) // of_replica, replicas) for down in range(every + 1)
    )
    return mean / replicas


@lru_cache(maxsize=1 << 16)
def waiting_variance_s(lost: float, domains: int, spares: int, repair_s: float) -> float:
    r"""Variance of the time in which domains enough are whole, for each second (s), as they are lost and repaired.

    With :math:`\pi_i` the probability of i lost domains, :math:`C_i` that of at most i, :math:`\lambda_i` the rate at
    which another one is lost and A the share of time with domains enough, up to S lost ones,

    .. math:: \sigma^2 = 2 \sum_{i \le S} \frac{(1 - A)^2 C_i^2}{\lambda_i \pi_i}
        + 2 \sum_{i > S} \frac{A^2 (1 - C_i)^2}{\lambda_i \pi_i}

    which holds for any birth and death chain. A domain is lost for as long as a repair takes.
    """
    every = domains + spares
    if lost <= 0.0 or lost >= 1.0 or repair_s <= 0.0:
        return 0.0
    rate, mean = lost / (1.0 - lost) / repair_s, every * lost
    last = min(every, max(spares, int(mean + FAR * math.sqrt(mean))) + 100)  # more are never lost at once
    at = [binomial_at(every, lost, i) for i in range(last + 1)]
    enough, short = math.fsum(at[: spares + 1]), math.fsum(at[spares + 1 :])
    upto, above, total = 0.0, 0.0, []
    for i in range(spares + 1):
        upto += at[i]
        if at[i] > TINY and i < every:
            total.append((short * upto) ** 2 / ((every - i) * rate * at[i]))
    for i in range(last - 1, spares, -1):
        above += at[i + 1]
        if at[i] > TINY:
            total.append((enough * above) ** 2 / ((every - i) * rate * at[i]))
    return 2.0 * math.fsum(total)
