"""What share of the time trains, one design at a time: an interval by bisection, lost GPUs host by host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

from coopt.instance.reserves import Availability
from coopt.instance.workload import Workload
from coopt.plan.parts import Uptime
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree
from coopt.verifier.parts.bills import SwitchLevel
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.training.mappings import ScalarMapping
from coopt.verifier.training.memory import WEIGHT_BYTES
from coopt.verifier.training.placing import held_parameters

YEAR_S = 365 * 86400.0
HOUR_S, DAY_S = 3600.0, 86400.0
PANELS = 400
HOPELESS, NEVER = 600.0, 1e-9  # failures expected in one attempt, and a share of the time, at which nothing gets done
NOTHING = 1e-280  # probabilities below do not count
HALVINGS = 200
WHOLE = ScalarMapping(1, 1, 1, 1, 1, 1, 1, "none", False, 0)
"""One GPU that holds a model undivided."""


class Stoppages(NamedTuple):
    """Failures in a second, seconds of a checkpoint, between two of them and of a restart; the share that trains."""

    per_s: float
    checkpoint_s: float
    interval_s: float
    restart_s: float
    trained: float


def failure_rate(asked: Availability, family: DesignFamily, levels: Sequence[SwitchLevel]) -> float:
    """Failures in a second of everything that trains and of the whole network, unless it is built once for each port of
    a NIC: there other ports go on."""
    rates, gpus = asked.rates, family.gpus
    counts = {
        "gpu": gpus,
        "hbm": gpus,
        "software": gpus,
        "host": -(-gpus // rates.gpus_per_host),
        "nic": family.nics_of(gpus),
        "optic": 2 * sum(level.links for level in levels) if family.copies == 1 else 0,
        "switch": sum(level.switches for level in levels) if family.copies == 1 else 0,
        "domain": family.domains,
    }
    return math.fsum(rates.of_part[part].at(asked.at) * count for part, count in counts.items()) / YEAR_S


def saved_bytes(workload: Workload) -> float:
    """Bytes of weights, master copies and moments of a whole model."""
    model = workload.model
    held = held_parameters(workload, WHOLE)
    tables = (1 if model.tied_embeddings else 2) * model.vocab * model.hidden
    layers = model.layers + model.extra_predictions
    parameters = layers * (held.layer + held.expert_layer) + tables
    return parameters * (WEIGHT_BYTES + workload.options.software.state_bytes)


def interrupted(
    asked: Availability, workload: Workload, family: DesignFamily, levels: Sequence[SwitchLevel]
) -> Stoppages:
    """What interrupts a workload on a design, while domains enough are whole."""
    rate = failure_rate(asked, family, levels)
    moved_s = saved_bytes(workload) / (family.gpus * asked.checkpoint_gbyte_s_per_gpu * 1e9)
    saved_s = moved_s if asked.checkpoint_s is None else asked.checkpoint_s
    again_s = asked.restart_s + family.gpus / 1000 * asked.restart_s_per_1000_gpus + moved_s
    between_s = asked.checkpoint_interval_s or _best_interval_s(rate, saved_s)
    if rate == 0.0:
        share = 1.0 if math.isinf(between_s) else between_s / (between_s + saved_s)
    elif rate * (again_s + between_s + saved_s) > HOPELESS:
        share = 0.0
    else:
        mean_s = math.exp(rate * again_s) * math.expm1(rate * (between_s + saved_s)) / rate
        share = between_s / mean_s
    return Stoppages(rate, saved_s, between_s, again_s, share)


@lru_cache(maxsize=4096)
def _best_interval_s(rate: float, saved_s: float) -> float:
    """The interval at which the share that trains has no slope: 1 - exp(-rate (T + saved)) = rate T."""
    if rate == 0.0:
        return math.inf
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if -math.expm1(-middle - rate * saved_s) > middle else (low, middle)
    return (low + high) / 2 / rate


def lost_of(asked: Availability, family: DesignFamily) -> float:
    """Probability that a domain of a design has too few working GPUs."""
    nics = (family.gear.per_gpu, family.gear.gpus_per_nic) if family.gear else (0, 1)
    return lost_domain(asked, family.hb.size, family.active, *nics)


@lru_cache(maxsize=4096)
def lost_domain(asked: Availability, size: int, active: int, per_gpu: int, sharing: int = 1) -> float:
    """Probability that fewer than `active` GPUs of a domain work: lost GPUs, host by host, NIC by NIC in each."""
    rate = {part: each.at(asked.at) for part, each in asked.rates.of_part.items()}
    down = {
        "gpu": _share_down(rate["gpu"] + rate["hbm"] + (sharing == 1) * per_gpu * rate["nic"], asked.repair_hours),
        "nic": _share_down((sharing > 1) * rate["nic"], asked.repair_hours),
        "host": _share_down(rate["host"], asked.repair_hours),
        "domain": _share_down(rate["domain"], asked.repair_hours),
    }
    lost = [1.0]
    left = size
    while left:
        held = min(asked.rates.gpus_per_host, left)
        left -= held
        up = [1.0]
        for first in range(0, held, sharing):
            beside = min(sharing, held - first)
            mine = [(1 - down["nic"]) * _exactly(beside, down["gpu"], k) for k in range(beside + 1)]
            mine[beside] += down["nic"]
            up = _added(up, mine)
        lost = _added(lost, [(1 - down["host"]) * here + down["host"] * (k == held) for k, here in enumerate(up)])
    return 1 - (1 - down["domain"]) * math.fsum(lost[: size - active + 1])


def _added(some: Sequence[float], others: Sequence[float]) -> list[float]:
    """How likely each sum of two independent counts is."""
    wider = [0.0] * (len(some) + len(others) - 1)
    for i, one in enumerate(some):
        for k, other in enumerate(others):
            wider[i + k] += one * other
    return wider


def _share_down(per_year: float, hours: float) -> float:
    up_s, down_s = (YEAR_S / per_year if per_year else math.inf), hours * HOUR_S
    return down_s / (up_s + down_s)


def _exactly(n: int, p: float, k: int) -> float:
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


@lru_cache(maxsize=1 << 16)
def running_share(lost: float, domains: int, spares: int) -> float:
    """Probability that no more domains are lost than stand by, by adding up what each further one makes likely."""
    if lost <= 0.0 or lost >= 1.0:
        return 1.0 if lost <= 0.0 else 0.0
    every = domains + spares
    odds = math.log(lost) - math.log1p(-lost)
    at, terms = every * math.log1p(-lost), []
    for down in range(spares + 1):
        terms.append(math.exp(at))
        at += math.log((every - down) / (down + 1)) + odds
    return min(math.fsum(terms), 1.0)


def running_of(asked: Availability, family: DesignFamily) -> float:
    """Share of the time in which domains enough of a design are whole."""
    lost = lost_of(asked, family)
    return running_share(lost, family.domains, family.spares)


def promised_share(
    asked: Availability, workload: Workload, family: DesignFamily, found: Stoppages, running: float
) -> float:
    """The share of its days that a workload can count on: less than the mean where a probability is asked for."""
    if asked.confidence is None or workload.train_days is None:
        return running * found.trained
    if running * found.trained < NEVER:
        return 0.0
    span_s, deviations = workload.train_days * DAY_S, NormalDist().inv_cdf(asked.confidence)
    lost = lost_of(asked, family)
    waits_s = _waiting_spread_s(lost, family.domains, family.spares, asked.repair_hours * HOUR_S)
    mean = 1 / found.trained / running
    rough = deviations * math.sqrt(_interval_spread_s(found) + waits_s * mean) / running
    low, high = 0.0, span_s / mean * 2
    for _ in range(HALVINGS):
        work_s = (low + high) / 2
        low, high = (work_s, high) if mean * work_s + rough * math.sqrt(work_s) <= span_s else (low, work_s)
    return low / span_s


@lru_cache(maxsize=4096)
def _interval_spread_s(found: Stoppages) -> float:
    """Variance of an interval with its failed attempts, over its training: attempt by attempt."""
    if found.per_s == 0.0:
        return 0.0
    again = _until_success(found.per_s, found.restart_s, 0.0, 0.0)
    return _until_success(found.per_s, found.interval_s + found.checkpoint_s, *again)[1] / found.interval_s


def _until_success(per_s: float, length_s: float, more_s: float, more_variance: float) -> tuple[float, float]:
    """Mean and variance of attempts of that length until one succeeds; a failed one takes more, by itself at random."""
    if length_s == 0.0:
        return 0.0, 0.0
    fails = -math.expm1(-per_s * length_s)
    first, second = (_integral(per_s, length_s, power) / fails for power in (1, 2))
    failures = fails / (1 - fails)
    each_s, each_variance = first + more_s, second - first**2 + more_variance
    return length_s + failures * each_s, failures * each_variance + failures / (1 - fails) * each_s**2


def _integral(per_s: float, length_s: float, power: int) -> float:
    """The integral of y^power times the density of the first failure, from 0 to a length: Simpson's rule."""
    step = length_s / PANELS
    weights = (1, *((4, 2) * (PANELS // 2))[:-1], 1)
    return (
        step
        / 3
        * math.fsum(w * (k * step) ** power * per_s * math.exp(-per_s * k * step) for k, w in enumerate(weights))
    )


@lru_cache(maxsize=4096)
def _waiting_spread_s(lost: float, domains: int, spares: int, repair_s: float) -> float:
    """Variance of the time with domains enough, a second: of a chain of losses and repairs."""
    if not 0.0 < lost < 1.0 or repair_s <= 0.0:
        return 0.0
    every, rate = domains + spares, lost / (1 - lost) / repair_s
    odds = math.log(lost) - math.log1p(-lost)
    logs = [every * math.log1p(-lost)]
    for down in range(every):
        logs.append(logs[-1] + math.log((every - down) / (down + 1)) + odds)
    chance = [math.exp(at) for at in logs]
    enough, short = math.fsum(chance[: spares + 1]), math.fsum(chance[spares + 1 :])
    parts, below_or_at = [], 0.0
    for down in range(spares + 1):
        below_or_at += chance[down]
        parts.append((short * below_or_at, down))
    over = 0.0
    for down in range(every - 1, spares, -1):
        over += chance[down + 1]
        parts.append((enough * over, down))
    real = [(part, down) for part, down in parts if chance[down] > NOTHING and down < every]
    return 2 * math.fsum(part**2 / (rate * (every - down) * chance[down]) for part, down in real)


def uptime_of(
    asked: Availability,
    workload: Workload,
    family: DesignFamily,
    levels: Sequence[SwitchLevel],
    pace: float = 1.0,
    port_out: float = 0.0,
) -> Uptime:
    """What a plan is to say of a workload's interruptions, with what ports of NICs that are out make of its pace."""
    found, running = interrupted(asked, workload, family, levels), running_of(asked, family)
    return Uptime(
        failure_s=1 / found.per_s if found.per_s else None,
        checkpoint_s=found.checkpoint_s,
        interval_s=found.interval_s if math.isfinite(found.interval_s) else None,
        restart_s=found.restart_s,
        running=running,
        goodput=running * found.trained * pace,
        promised=promised_share(asked, workload, family, found, running) * pace,
        port_out=port_out,
        pace=pace,
    )


def check_uptime(ledger: Ledger, workload: Workload, claim: Uptime | None, expected: Uptime | None) -> None:
    """Check what a plan says of a workload's interruptions; it says nothing where the instance does not ask."""
    who = f"workload {workload.name!r}"
    if claim is None and expected is None:
        return
    if claim is None or expected is None:
        why = f"Failures are {'not ' if expected is None else ''}asked for, the plan says otherwise of {who}."
        ledger.holds("uptime", claim is expected, claim is not None, expected is not None, why)
        return
    told, true = claim.model_dump(), expected.model_dump()
    apart = [key for key, value in told.items() if not _alike(value, true[key])]
    shown = [tuple(f"{key} {value}" for key, value in one.items()) for one in (told, true)]
    why = f"Interruptions of {who} differ in: {', '.join(apart)}."
    ledger.holds("uptime", not apart, shown[0], shown[1], why, TOLERANCE)


def _alike(claimed: float | None, recomputed: float | None) -> bool:
    if claimed is None or recomputed is None:
        return claimed is recomputed
    return agree(claimed, recomputed)
