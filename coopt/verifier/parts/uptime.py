"""What share of the time trains, one design at a time: an interval by bisection, lost GPUs host by
host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

from coopt.instance.reserves import Availability
from coopt.instance.workload import Workload
from coopt.plan.parts import Uptime
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree
from coopt.verifier.parts.bills import SwitchLevel
from coopt.verifier.parts.outages import DAY_S, HOUR_S, YEAR_S
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.training.mappings import ScalarMapping, ranks_of_expert
from coopt.verifier.training.memory import WEIGHT_BYTES
from coopt.verifier.training.placing import held_parameters

PANELS = 400
HOPELESS, NEVER = (
    600.0,
    1e-9,
)  # failures expected in one attempt, and a share of the time, at which nothing gets done
NOTHING = 1e-280  # probabilities below do not count
HALVINGS = 100
ONE_GPU = ScalarMapping(1, 1, 1, 1, 1, 1, 1, "none", False, 0)
"""One GPU that holds a model undivided."""


class Stoppages(NamedTuple):
    """Failures in a second, seconds of a checkpoint, between two of them and of a restart; the
    share that trains.
    """

    per_s: float
    checkpoint_s: float
    interval_s: float
    restart_s: float
    trained: float


def failure_rate(
    availability: Availability, family: DesignFamily, levels: Sequence[SwitchLevel]
) -> float:
    """Failures in a second of everything that trains and of the whole network, unless NICs have
    ports on other leaves: there these go on.
    """
    rates, gpus = availability.rates, family.gpus
    goes_on = family.attachment is not None and family.attachment.keeps_ports
    counts = {
        "gpu": gpus,
        "hbm": gpus,
        "software": gpus,
        "host": -(-gpus // rates.gpus_per_host),
        "nic": family.adapters_of(gpus),
        "optic": 0 if goes_on else 2 * sum(level.links for level in levels),
        "switch": 0 if goes_on else sum(level.switches for level in levels),
        "domain": family.domains,
    }
    return (
        math.fsum(rates.of_part[part].at(availability.at) * count for part, count in counts.items())
        / YEAR_S
    )


def saved_bytes(workload: Workload) -> float:
    """Bytes of weights, master copies and moments of a whole model."""
    model = workload.model
    undivided = held_parameters(workload, ONE_GPU)
    tables = (1 if model.tied_embeddings else 2) * model.vocab * model.hidden
    layers = model.layers + model.extra_predictions
    # what is held there is a part of each expert where a number of TP ranks splits one
    of_experts = undivided.expert_layer * ranks_of_expert(workload, ONE_GPU.tp)
    parameters = layers * (undivided.layer + of_experts) + tables
    return parameters * (WEIGHT_BYTES + workload.options.software.state_bytes)


def interrupted(
    availability: Availability,
    workload: Workload,
    family: DesignFamily,
    levels: Sequence[SwitchLevel],
) -> Stoppages:
    """What interrupts a workload on a design, while domains enough are whole."""
    rate = failure_rate(availability, family, levels)
    return interrupted_at(availability, workload, family.gpus, rate)


def interrupted_at(
    availability: Availability, workload: Workload, gpus: int, rate: float
) -> Stoppages:
    """What interrupts a workload on so many GPUs at a rate of failures a second."""
    moved_s = saved_bytes(workload) / (gpus * availability.checkpoint_gbyte_s_per_gpu * 1e9)
    saved_s = moved_s if availability.checkpoint_s is None else availability.checkpoint_s
    again_s = availability.restart_s + gpus / 1000 * availability.restart_s_per_1000_gpus + moved_s
    between_s = availability.checkpoint_interval_s or _best_interval_s(rate, saved_s)
    if rate == 0.0:
        share = 1.0 if math.isinf(between_s) else between_s / (between_s + saved_s)
    elif rate * (again_s + between_s + saved_s) > HOPELESS:
        share = 0.0
    else:
        # an interval with its checkpoint is tried until it succeeds, each time after a restart that
        # may fail as well
        mean_s = math.exp(rate * again_s) * math.expm1(rate * (between_s + saved_s)) / rate
        share = between_s / mean_s
    return Stoppages(rate, saved_s, between_s, again_s, share)


@lru_cache(maxsize=4096)
def _best_interval_s(rate: float, saved_s: float) -> float:
    """The interval at which the share that trains has no slope: 1 - exp(-rate (T + saved)) = rate
    T.
    """
    if rate == 0.0:
        return math.inf
    # with x = rate T the left side minus the right falls in x, above 0 at 0 and below at 1
    low, high = halved(0.0, 1.0, lambda x: -math.expm1(-x - rate * saved_s) > x)
    return (low + high) / 2 / rate


def halved(low: float, high: float, holds: Callable[[float], bool]) -> tuple[float, float]:
    """An interval around the largest number that something holds for, halved until it is narrow."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def lost_of(availability: Availability, family: DesignFamily) -> float:
    """Probability that a domain of a design has too few working GPUs."""
    nics = (
        (
            family.attachment.per_gpu // family.attachment.ports_in_plane,
            family.attachment.gpus_per_nic,
        )
        if family.attachment
        else (0, 1)
    )
    return lost_domain(availability, family.hb.size, family.active, *nics)


@lru_cache(maxsize=4096)
def lost_domain(
    availability: Availability, size: int, needed_gpus: int, per_gpu: int, sharing: int = 1
) -> float:
    """Probability that fewer than `needed_gpus` GPUs of a domain work: lost GPUs, host by host, NIC
    by NIC in each.
    """
    rate = {
        part: part_rate.at(availability.at)
        for part, part_rate in availability.rates.of_part.items()
    }
    down = {
        "gpu": _share_down(
            rate["gpu"] + rate["hbm"] + (sharing == 1) * per_gpu * rate["nic"],
            availability.repair_hours,
        ),
        "nic": _share_down((sharing > 1) * rate["nic"], availability.repair_hours),
        "host": _share_down(rate["host"], availability.repair_hours),
        "domain": _share_down(rate["domain"], availability.repair_hours),
    }
    lost_chances = [1.0]
    gpus_left = size
    while gpus_left:
        host_gpus = min(availability.rates.gpus_per_host, gpus_left)
        gpus_left -= host_gpus
        host_chances = [1.0]
        for start in range(0, host_gpus, sharing):
            nic_gpus = min(sharing, host_gpus - start)
            nic_chances = [
                (1 - down["nic"]) * _exactly(nic_gpus, down["gpu"], k) for k in range(nic_gpus + 1)
            ]
            # a NIC that is out takes all GPUs that share it, as a host does with all of its own
            nic_chances[nic_gpus] += down["nic"]
            host_chances = _sum_chances(host_chances, nic_chances)
        host_chances = [
            (1 - down["host"]) * chance + down["host"] * (k == host_gpus)
            for k, chance in enumerate(host_chances)
        ]
        lost_chances = _sum_chances(lost_chances, host_chances)
    # a domain works while no more GPUs are lost than it has beyond those that train
    return 1 - (1 - down["domain"]) * math.fsum(lost_chances[: size - needed_gpus + 1])


def _sum_chances(chances: Sequence[float], further_chances: Sequence[float]) -> list[float]:
    """How likely each sum of two independent counts is."""
    sums = [0.0] * (len(chances) + len(further_chances) - 1)
    for i, chance in enumerate(chances):
        for k, further_chance in enumerate(further_chances):
            sums[i + k] += chance * further_chance
    return sums


def _share_down(per_year: float, hours: float) -> float:
    up_s, down_s = (YEAR_S / per_year if per_year else math.inf), hours * HOUR_S
    return down_s / (up_s + down_s)


def _exactly(n: int, p: float, k: int) -> float:
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


@lru_cache(maxsize=1 << 16)
def running_share(lost_share: float, domains: int, spares: int) -> float:
    """Probability that no more domains are lost than stand by, by adding up what each further one
    makes likely.
    """
    if lost_share <= 0.0 or lost_share >= 1.0:
        return 1.0 if lost_share <= 0.0 else 0.0
    return min(math.fsum(_lost_chances(lost_share, domains + spares, spares)), 1.0)


def _lost_chances(lost_share: float, domains: int, most: int) -> list[float]:
    """How likely it is that so many of all domains are lost, from none up to the most."""
    # in logarithms, as powers of so many domains fall below what a float holds
    odds, logs = math.log(lost_share) - math.log1p(-lost_share), [domains * math.log1p(-lost_share)]
    for down in range(most):
        logs.append(logs[-1] + math.log((domains - down) / (down + 1)) + odds)
    return [math.exp(log_chance) for log_chance in logs]


def running_of(availability: Availability, family: DesignFamily) -> float:
    """Share of the time in which domains enough of a design are whole."""
    return running_share(lost_of(availability, family), family.domains, family.spares)


def promised_share(
    availability: Availability,
    workload: Workload,
    family: DesignFamily,
    stoppages: Stoppages,
    running: float,
) -> float:
    """The share of its days that a workload can count on: less than the mean where a probability is
    asked for.
    """
    if availability.confidence is None or workload.train_days is None:
        return running * stoppages.trained
    if running * stoppages.trained < NEVER:
        return 0.0
    span_s, deviations = workload.train_days * DAY_S, NormalDist().inv_cdf(availability.confidence)
    lost_share = lost_of(availability, family)
    waits_s = _waiting_spread_s(
        lost_share, family.domains, family.spares, availability.repair_hours * HOUR_S
    )
    mean = 1 / stoppages.trained / running
    rough = deviations * math.sqrt(_interval_spread_s(stoppages) + waits_s * mean) / running
    # the mean time of work grows as it, its deviation as the root: the most that keeps the days
    most_s, _ = halved(0.0, span_s / mean * 2, lambda s: mean * s + rough * math.sqrt(s) <= span_s)
    return most_s / span_s


@lru_cache(maxsize=4096)
def _interval_spread_s(stoppages: Stoppages) -> float:
    """Variance of an interval with its failed attempts, over its training: attempt by attempt."""
    if stoppages.per_s == 0.0:
        return 0.0
    restart = _until_success(stoppages.per_s, stoppages.restart_s, 0.0, 0.0)
    _, variance = _until_success(
        stoppages.per_s, stoppages.interval_s + stoppages.checkpoint_s, *restart
    )
    return variance / stoppages.interval_s


def _until_success(
    per_s: float, length_s: float, more_s: float, more_variance: float
) -> tuple[float, float]:
    """Mean and variance of attempts of that length until one succeeds; a failed one takes more, by
    itself at random.
    """
    if length_s == 0.0:
        return 0.0, 0.0
    fails = -math.expm1(-per_s * length_s)
    mean, mean_square = (_integral(per_s, length_s, power) / fails for power in (1, 2))
    # failed attempts before a success follow a geometric law
    failures = math.expm1(per_s * length_s)
    each_s, each_variance = mean + more_s, mean_square - mean**2 + more_variance
    return (
        length_s + failures * each_s,
        failures * each_variance + failures * (1 + failures) * each_s**2,
    )


def _integral(per_s: float, length_s: float, power: int) -> float:
    """The integral of y^power times the density of the first failure, from 0 to a length: Boole's
    rule.
    """
    step = length_s / PANELS
    weights = (7, *((32, 12, 32, 14) * (PANELS // 4))[:-1], 7)
    return (
        step
        * (2 / 45)
        * math.fsum(
            w * (k * step) ** power * per_s * math.exp(-per_s * k * step)
            for k, w in enumerate(weights)
        )
    )


@lru_cache(maxsize=4096)
def _waiting_spread_s(lost_share: float, domains: int, spares: int, repair_s: float) -> float:
    """Variance of the time with domains enough, a second: of a chain of losses and repairs."""
    if not 0.0 < lost_share < 1.0 or repair_s <= 0.0:
        return 0.0
    all_domains, rate = domains + spares, lost_share / (1 - lost_share) / repair_s
    chance = _lost_chances(lost_share, all_domains, all_domains)
    training, waiting = math.fsum(chance[: spares + 1]), math.fsum(chance[spares + 1 :])
    parts, head = [], 0.0
    for down in range(spares + 1):
        head += chance[down]
        parts.append((waiting * head, down))
    # from either end inwards, so that small chances are not lost in the sum of large ones
    tail = 0.0
    for down in range(all_domains - 1, spares, -1):
        tail += chance[down + 1]
        parts.append((training * tail, down))
    # of a chain of births and deaths: over each cut, what the chances beside it lack, squared, by
    # the flow over it
    terms = [(part, down) for part, down in parts if chance[down] > NOTHING and down < all_domains]
    return 2 * math.fsum(
        part**2 / (rate * (all_domains - down) * chance[down]) for part, down in terms
    )


def uptime_of(
    availability: Availability,
    workload: Workload,
    family: DesignFamily,
    levels: Sequence[SwitchLevel],
    pace: float = 1.0,
    port_out: float = 0.0,
) -> Uptime:
    """What a plan is to say of a workload's interruptions, with what ports of NICs that are out
    make of its pace.
    """
    stoppages, running = (
        interrupted(availability, workload, family, levels),
        running_of(availability, family),
    )
    promised = promised_share(availability, workload, family, stoppages, running) * pace
    claimed = stops_as_claimed(stoppages, running, pace, port_out)
    return claimed.model_copy(update={"promised": promised})


def stops_as_claimed(stoppages: Stoppages, running: float, pace: float, port_out: float) -> Uptime:
    """Stoppages in the words of a plan that relies on the mean."""
    goodput = running * stoppages.trained * pace
    return Uptime(
        failure_s=1 / stoppages.per_s if stoppages.per_s else None,
        checkpoint_s=stoppages.checkpoint_s,
        interval_s=stoppages.interval_s if math.isfinite(stoppages.interval_s) else None,
        restart_s=stoppages.restart_s,
        running=running,
        goodput=goodput,
        promised=goodput,
        port_out=port_out,
        pace=pace,
    )


def check_uptime(
    ledger: Ledger, workload: Workload, claim: Uptime | None, expected: Uptime | None
) -> None:
    """Check what a plan says of a workload's interruptions; it says nothing where the instance does
    not ask.
    """
    subject = f"workload {workload.name!r}"
    if claim is None or expected is None:
        if claim is not expected:
            ledger.holds(
                "uptime",
                False,
                claim is not None,
                expected is not None,
                f"The instance has {'no ' if expected is None else ''}[availability], but the plan"
                f" states {'some' if expected is None else 'no'} interruptions of {subject}.",
            )
        return
    claimed_values, expected_values = claim.model_dump(), expected.model_dump()
    differing = [
        key for key, value in claimed_values.items() if not agree(value, expected_values[key])
    ]
    texts = [
        tuple(f"{key} {value}" for key, value in values.items())
        for values in (claimed_values, expected_values)
    ]
    ledger.holds(
        "uptime",
        not differing,
        texts[0],
        texts[1],
        f"The interruptions that the plan states for {subject} are wrong in"
        f" {', '.join(differing)}.",
        TOLERANCE,
    )
