"""Every limit that an instance sets as a number, by its key: what a plan takes of it, and the
instance with another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from itertools import combinations

from coopt.instance.couplings import MAX_SLOWDOWN
from coopt.instance.hardware import Gpu
from coopt.instance.network import MAX_TIERS
from coopt.instance.numerics import EQUAL
from coopt.instance.rules.couplings import idle_factors
from coopt.instance.schema import (
    NO_LIMIT,
    UNITS,
    Instance,
    ample_s,
    own_time,
    question_on,
    text_of,
    typed,
)
from coopt.instance.variants import (
    required_bounds,
    with_days_in_turn,
    with_gpu_cap,
    with_gpu_value,
    with_value,
)
from coopt.perf.memory import GIB
from coopt.plan import contents
from coopt.plan.explanation import Change
from coopt.plan.schema import Plan
from coopt.solving.resolves import MORE_POWER

MORE_CHANNELS, MORE_GPUS = 100, 2  # times as many channels, or GPUs, are worth a try
WIDEST_RATIO = 8.0  # of down to up bandwidth that is worth a try
MEMORY = "hbm_gb"
"""The key of a GPU's memory."""
LEAST_RATE_GBIT_S = 1e-6  # a core has to carry something: a rate of 0 is refused
Setting = Callable[[Instance, float], Instance]
Use = Callable[[Plan], float | None]


@dataclass(frozen=True, kw_only=True)
class NumericLimit:
    """A limit by its key in the instance, in the user's own unit.

    `loosest` is the number at which it limits nothing, or beyond which nobody would go; `used` is
    what a plan takes of it, None where that is no number of the plan. `with_number` moves more than
    the number at the key. `structural` limits shape networks, or say how sure days are, and do not
    bound what is used. With `moves_use` the number itself moves what plans take: days that are kept
    with a probability are fewer beside the mean where there are more of them. No number below
    `tightest` may be typed. Where `start` is given, days are typed as the last of them.
    """

    key: str
    unit: str
    now: float
    loosest: float
    tightest: float = 0.0
    used: Use = lambda _: None
    with_number: Setting | None = None
    whole: bool = False
    structural: bool = False
    moves_use: bool = False
    start: date | None = None

    @property
    def falling(self) -> bool:
        """Whether a smaller number is the looser one."""
        return self.loosest < self.now

    def exceeded_by(self, use: float) -> bool:
        """Whether a plan may not take so much of it."""
        return use < self.now if self.falling else use > self.now

    def moved(self, by: float, start: float | None = None) -> float:
        """The number a share tighter (negative) or looser, from where it is now; by one at least
        where it counts.
        """
        origin = self.now if start is None else start
        way = -1 if self.falling else 1
        if self.whole:
            return origin + way * (1 if by > 0 else -1) * max(1, round(abs(by) * origin))
        return origin * (1 + way * by)

    def within(self, instance: Instance, number: float) -> Instance:
        """The instance with another number, which is whole where it counts."""
        value = round(number) if self.whole else number
        return (
            with_value(instance, self.key, value)
            if self.with_number is None
            else self.with_number(instance, value)
        )

    def enough(self, number: float) -> float:
        """A number short enough to type and no tighter than a given one."""
        if self.start is not None:
            return float(min(math.ceil(number * (1 - EQUAL)), (date.max - self.start).days))
        return number if self.whole else typed(number, up=not self.falling)

    def text(self, number: float) -> str:
        """A number as it is typed."""
        return text_of(number) if self.start is None else f"{self.start + timedelta(days=number)}"


def numeric_limits(instance: Instance) -> tuple[NumericLimit, ...]:
    """Time bounds first, then caps of all parts together, of sites and channels, memory, losses and
    the core.
    """
    return (
        *_time_bounds(instance),
        *_caps(instance),
        *_sites(instance),
        *_sharing(instance),
        *_memory(instance),
        *_losses(instance),
        *_shapes(instance),
    )


def of_any_site(limit: NumericLimit) -> NumericLimit:
    """The limit, which on the power of a site may give as much as it takes: how little there is now
    says nothing.
    """
    return replace(limit, loosest=NO_LIMIT) if limit.key.startswith("site[") else limit


def shorter_links(instance: Instance) -> tuple[float, ...] | None:
    """Lengths of links that the optics of the instance reach, in place of its own; None where all
    are reached.
    """
    reached_m = max(optic.reach_m for optic in instance.network.optics)
    lengths_m = instance.network.link_reach_m
    shorter_m = tuple(min(length_m, reached_m) for length_m in lengths_m)
    return None if shorter_m == lengths_m else shorter_m


def _time_bounds(instance: Instance) -> Iterator[NumericLimit]:
    """The bounds of workloads, and those that phases give in place of them."""
    availability = instance.availability
    for bound in required_bounds(instance):
        workload = bound.workload
        if workload.takes_turns:
            continue  # which is the limit on all of them in turn
        row, _, key = bound.key.rpartition(".")
        # a phase has no day of its own, and days may stand in place of the one that was given
        dated = key == "train_days" and row.startswith("workload") and workload.by is not None
        yield NumericLimit(
            key=f"{row}.by" if dated else bound.key,
            unit=UNITS[key],
            now=bound.number,
            with_number=partial(_with_days, bound.key) if dated else None,
            start=workload.start if dated else None,
            loosest=own_time(workload, ample_s(workload)),
            used=partial(_slowest, instance, workload.name, bound.phases),
            moves_use=workload.calendar
            and availability is not None
            and availability.confidence is not None,
        )


def _with_days(key: str, instance: Instance, days: float) -> Instance:
    return with_value(instance, key, days)


def _slowest(instance: Instance, name: str, phases: frozenset[int], plan: Plan) -> float | None:
    """The longest iteration of a workload in these phases, in the unit of its bound, with the
    margin of its GPUs; days count interruptions.
    """
    years, times = plan.couplings.years, list[float]()
    for part in plan.parts:
        on = instance if part.design is None else question_on(instance, part.design.hb_domain.name)
        workloads = {workload.name: workload for workload in on.workload}
        for run in part.workloads:
            if run.name == name and years.index(part.phase) in phases:
                workload = workloads[name]
                promised = run.uptime.promised if run.uptime and workload.calendar else 1.0
                times.append(own_time(workload, run.iteration_time_s / promised))
    is_rate = any(one.name == name and one.min_tokens_per_s for one in instance.workload)
    return (min if is_rate else max)(times) if times else None


def _caps(instance: Instance) -> Iterator[NumericLimit]:
    for key, cap in instance.limits.given.items():
        yield NumericLimit(
            key=f"limits.{key}",
            unit=UNITS[key],
            now=cap,
            loosest=NO_LIMIT,
            used=lambda plan, key=key: contents.used_of(instance, plan).get(key),  # type: ignore[misc]
            with_number=with_days_in_turn if key == "train_days_total" else None,
        )


def _sites(instance: Instance) -> Iterator[NumericLimit]:
    """Power of every site and channels between any two."""
    for i, site in enumerate(instance.site):
        yield NumericLimit(
            key=f"site[{i}].power_mw",
            unit="MW",
            now=site.power_mw,
            loosest=site.power_mw * MORE_POWER,
            used=partial(_fed_mw, site.name),
        )
    for i, wan in enumerate(instance.wan):
        yield NumericLimit(
            key=f"wan[{i}].most",
            unit="channels",
            now=wan.most,
            loosest=wan.most * MORE_CHANNELS,
            used=lambda plan, ends=frozenset(wan.between): plan.couplings.lit_channels(ends),  # type: ignore[misc]
            whole=True,
        )


def _fed_mw(site: str, plan: Plan) -> float:
    """What a site feeds, in the phase in which it feeds most (MW)."""
    return (
        max((use.facility_w for use in plan.couplings.sites if use.site == site), default=0.0) / 1e6
    )


def _sharing(instance: Instance) -> Iterator[NumericLimit]:
    """What islands share: GPUs, products, and a core."""
    sharing, network = instance.sharing, instance.network
    if sharing.mode != "partition":
        return
    # the GPUs that islands share, in each phase where there are several
    for t, (key, cap) in enumerate(instance.gpu_caps.items()):
        yield NumericLimit(
            key=key,
            unit="GPUs",
            now=cap,
            loosest=cap * MORE_GPUS,
            with_number=lambda question, number, t=t: with_gpu_cap(question, t, number),  # type: ignore[misc]
            used=lambda plan, t=t: contents.gpus(plan, t),  # type: ignore[misc]
            whole=True,
        )
    products = {
        "hb": network.hb_domains,
        "nic": network.nics,
        "switch": network.switches,
        "optics": network.optics,
    }
    for kind, number in sharing.most_products.given.items():
        if number < len(products[kind]):
            yield NumericLimit(
                key=f"sharing.most_products.{kind}",
                unit="products",
                now=number,
                loosest=len(products[kind]),
                used=lambda plan, kind=kind: float(len(contents.products(plan, kind))),  # type: ignore[misc]
                whole=True,
            )
    if sharing.core is not None:
        yield NumericLimit(
            key="sharing.core.gbit_s_per_gpu",
            unit="Gbit/s",
            now=sharing.core.gbit_s_per_gpu,
            loosest=LEAST_RATE_GBIT_S,
        )


def _memory(instance: Instance) -> Iterator[NumericLimit]:
    """The memory of each kind of GPUs that islands may have."""
    for gpu in instance.cluster.generations if instance.mixes_gpus else (instance.cluster.gpu,):
        row = f"['{gpu.name}']" if instance.mixes_gpus else ""
        yield NumericLimit(
            key=f"cluster.gpu{row}.{MEMORY}",
            unit="GB",
            now=gpu.hbm_gb,
            loosest=NO_LIMIT,
            used=partial(_held_gb, instance, gpu),
            with_number=partial(with_gpu_value, gpu.name, MEMORY),
        )


def _held_gb(instance: Instance, gpu: Gpu, plan: Plan) -> float | None:
    """The most memory that a GPU of a kind has to have; None where a plan has none of the kind."""
    held_gib = [
        run.memory_gib
        for part in plan.parts
        if part.design is None
        or question_on(instance, part.design.hb_domain.name).cluster.gpu.name == gpu.name
        for run in part.workloads
    ]
    return gpu.whole_gb(max(held_gib) * GIB) if held_gib else None


def _losses(instance: Instance) -> Iterator[NumericLimit]:
    """How much slower training may be after each loss."""
    for part, slower in instance.losses.items():
        yield NumericLimit(
            key=f"robust.slower.{part}",
            unit="times the bounds on time",
            now=slower,
            loosest=MAX_SLOWDOWN,
            tightest=1.0,
        )


def fewer_losses(instance: Instance) -> Iterator[tuple[Instance, Change, tuple[str, ...]]]:
    """Questions with fewer losses, most of them first, what changes, and keys of longer bounds that
    go as well.
    """
    losses, lost = instance.losses, tuple(instance.losses)
    for kept in (
        kept for number in reversed(range(len(lost))) for kept in combinations(lost, number)
    ):
        yield (
            instance.surviving({part: losses[part] for part in kept}),
            Change(
                limit="robust.survive", now=text_of(lost), to=text_of(kept), least=None, share=None
            ),
            tuple(idle_factors(instance, kept)),
        )


def _shapes(instance: Instance) -> Iterator[NumericLimit]:
    """The probability that days are kept, of which a half is the mean; limits on the form of
    networks.
    """
    network, terms = instance.network, instance.availability
    is_dated = any(workload.calendar for workload in instance.workload)
    is_wide = network.ratios is not None or network.largest_ratio >= WIDEST_RATIO
    most_networks = max(
        hb.size * nics * planes
        for hb in network.hb_domains
        for nics in network.nics_per_gpu
        for planes in network.nic_planes
    )
    # number now, where it is a limit, its unit, and the loosest number
    shapes: dict[str, tuple[float | None, str, float]] = {
        "availability.confidence": (terms.confidence if terms and is_dated else None, "", 0.5),
        "network.max_tiers": (
            network.max_tiers if network.max_tiers < MAX_TIERS else None,
            "tiers",
            MAX_TIERS,
        ),
        "network.max_networks": (network.max_networks, "networks", most_networks),
        "network.oversubscription": (
            None if is_wide else network.largest_ratio,
            "to 1",
            WIDEST_RATIO,
        ),
        "network.end_to_end_oversubscription": (
            network.end_to_end_oversubscription,
            "to 1",
            WIDEST_RATIO**2,  # of a leaf and of a pod
        ),
    }
    for key, (now, unit, loosest) in shapes.items():
        if now is not None:
            yield NumericLimit(
                key=key,
                unit=unit,
                now=now,
                loosest=loosest,
                whole=unit in ("tiers", "networks"),
                structural=True,
            )
