"""Every limit that an instance sets as a number, by its key: what a plan takes of it, and the instance with another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from coopt.instance.couplings import PhaseWorkload
from coopt.instance.network import MOST_TIERS
from coopt.instance.schema import Instance
from coopt.instance.variants import workloads_of
from coopt.instance.workload import BOUNDS, Workload
from coopt.perf.memory import GIB
from coopt.plan import contents
from coopt.plan.schema import Plan
from coopt.solving.reasons.again import NO_MEMORY_LIMIT_GB, WIDEST_RATIO
from coopt.solving.reasons.limits import UNITS, own_time, typed, with_entry, with_gpu, with_part, with_workload

NO_LIMIT = 1e15  # the largest number that an instance may set
AMPLE = 1e6  # seconds of an iteration, or times its bound
MORE_CHANNELS, MORE_GPUS, MORE_POWER = 100, 2, 4  # times as many channels, GPUs or MW of a site are worth a try
MOST_SLOWER = 1000.0  # the largest factor that `robust.slower` may have
LEAST_RATE_GBIT_S = 1e-6  # a core has to carry something: a rate of 0 is refused
Change = Callable[[Instance, float], Instance]
Use = Callable[[Plan], float | None]


@dataclass(frozen=True, kw_only=True)
class NumericLimit:
    """A limit by its key in the instance, in the user's own unit.

    `loosest` is the number at which it limits nothing, or beyond which nobody would go; `used` is what a plan takes of
    it, None where that is no number of the plan. `structural` limits shape networks, or say how sure days are, and do
    not bound what is used.
    With `moves_use` the number itself moves what plans take: days that are kept with a probability are fewer beside the
    mean where there are more of them.
    """

    key: str
    unit: str
    now: float
    loosest: float
    changed: Change
    used: Use = lambda _: None
    whole: bool = False
    structural: bool = False
    moves_use: bool = False

    @property
    def falling(self) -> bool:
        """Whether a smaller number is the looser one."""
        return self.loosest < self.now

    def moved(self, by: float, start: float | None = None) -> float:
        """The number a share tighter (negative) or looser, from where it is now; by one at least where it counts."""
        origin = self.now if start is None else start
        way = -1 if self.falling else 1
        if self.whole:
            return origin + way * (1 if by > 0 else -1) * max(1, round(abs(by) * origin))
        return origin * (1 + way * by)

    def within(self, instance: Instance, number: float) -> Instance:
        """The instance with another number, which is whole where it counts."""
        return self.changed(instance, round(number) if self.whole else number)

    def enough(self, number: float) -> float:
        """A number short enough to type and no tighter than a given one."""
        return number if self.whole else typed(number, up=not self.falling)


def ample_s(workload: Workload) -> float:
    """An iteration time that rules out no plan; no longer, since searches for direct links fail at far longer ones."""
    return min(AMPLE * max(workload.bound_s, 1.0), NO_LIMIT)


def numeric_limits(instance: Instance) -> tuple[NumericLimit, ...]:
    """Time bounds first, then caps of all parts together, of sites and channels, memory, losses and the core."""
    return (
        *_time_bounds(instance),
        *_phase_bounds(instance),
        *_caps(instance),
        *_sites(instance),
        *_sharing(instance),
        _memory(instance),
        *_losses(instance),
        *_confidence(instance),
        *_shapes(instance),
    )


def _time_bounds(instance: Instance) -> Iterator[NumericLimit]:
    """The bounds of workloads, where some phase keeps to them."""
    asked = instance.availability
    for w, workload in enumerate(instance.workload):
        phases = _kept_in(instance, workload.name)
        if workload.bounded and (phases is None or phases):
            key = _bound_key(workload)
            yield NumericLimit(
                key=f"workload[{w}].{key}",
                unit=UNITS[key],
                now=getattr(workload, key),
                loosest=own_time(workload, ample_s(workload)),
                changed=lambda question, number, w=w, key=key: with_workload(question, w, {key: number}),  # type: ignore[misc]
                used=partial(_slowest, workload, phases),
                moves_use=workload.calendar and asked is not None and asked.confidence is not None,
            )


def _kept_in(instance: Instance, name: str) -> set[int] | None:
    """The phases in which a workload has the bound of its own table; None where there are no phases."""
    if not instance.phase:
        return None
    own: set[int] = set()
    for t, phase in enumerate(instance.phase):
        chosen = [one for one in phase.workloads if one.name == name]
        if not phase.workloads or any(not one.bound for one in chosen):
            own.add(t)
    return own


def _bound_key(workload: Workload | PhaseWorkload) -> str:
    return next(key for key in BOUNDS if getattr(workload, key) is not None)


def _slowest(workload: Workload, phases: set[int] | None, plan: Plan) -> float | None:
    """The longest iteration of a workload in these phases, in the unit of its bound; days count interruptions."""
    times = [
        one.run.iteration_time_s / (one.run.uptime.promised if one.run.uptime and workload.calendar else 1.0)
        for one in contents.running(plan)
        if one.run.name == workload.name and (phases is None or one.phase in phases)
    ]
    return own_time(workload, max(times)) if times else None


def _phase_bounds(instance: Instance) -> Iterator[NumericLimit]:
    """The bounds that phases give in place of those of the workloads."""
    for t, phase in enumerate(instance.phase):
        for place, chosen in enumerate(phase.workloads):
            if chosen.bound:
                workload, key = workloads_of(instance, phase)[place], _bound_key(chosen)
                yield NumericLimit(
                    key=f"phase[{t}].workloads[{place}].{key}",
                    unit=UNITS[key],
                    now=getattr(chosen, key),
                    loosest=own_time(workload, ample_s(workload)),
                    changed=partial(_with_phase_bound, t, place, key),
                    used=partial(_slowest, workload, {t}),
                )


def _with_phase_bound(t: int, place: int, key: str, instance: Instance, number: float) -> Instance:
    phase = instance.phase[t]
    chosen = with_entry(phase.workloads, place, {key: number})
    return instance.model_copy(update={"phase": with_entry(instance.phase, t, {"workloads": chosen})})


def _caps(instance: Instance) -> Iterator[NumericLimit]:
    for key, cap in instance.limits.given.items():
        yield NumericLimit(
            key=f"limits.{key}",
            unit=UNITS[key],
            now=cap,
            loosest=NO_LIMIT,
            changed=partial(_with_value, "limits", key),
            used=lambda plan, key=key: contents.used_of(instance.limits, plan).get(key),  # type: ignore[misc]
        )


def _with_value(table: str, key: str, instance: Instance, number: float) -> Instance:
    return with_part(instance, table, {key: number})


def _sites(instance: Instance) -> Iterator[NumericLimit]:
    """Power of every site and channels between any two."""
    for i, site in enumerate(instance.site):
        yield NumericLimit(
            key=f"site[{i}].power_mw",
            unit="MW",
            now=site.power_mw,
            loosest=site.power_mw * MORE_POWER,
            changed=partial(_with_row, "site", i, "power_mw"),
            used=lambda plan, name=site.name: contents.fed_mw(plan, name),  # type: ignore[misc]
        )
    for i, wan in enumerate(instance.wan):
        yield NumericLimit(
            key=f"wan[{i}].most",
            unit="channels",
            now=wan.most,
            loosest=wan.most * MORE_CHANNELS,
            changed=partial(_with_row, "wan", i, "most"),
            used=lambda plan, ends=frozenset(wan.between): plan.couplings.lit_channels(ends),  # type: ignore[misc]
            whole=True,
        )


def _with_row(table: str, place: int, key: str, instance: Instance, number: float) -> Instance:
    return instance.model_copy(update={table: with_entry(getattr(instance, table), place, {key: number})})


def _sharing(instance: Instance) -> Iterator[NumericLimit]:
    """What islands share: GPUs, products, and a core."""
    sharing, network = instance.sharing, instance.network
    if sharing.mode != "partition":
        return
    yield from _gpus(instance)
    listed = {"hb": network.hb_domains, "nic": network.nics, "switch": network.switches, "optics": network.optics}
    for kind, most in sharing.most_products.given.items():
        if most < len(listed[kind]):
            yield NumericLimit(
                key=f"sharing.most_products.{kind}",
                unit="products",
                now=most,
                loosest=len(listed[kind]),
                changed=partial(_with_products, kind),
                used=partial(_in_use, kind),
                whole=True,
            )
    if sharing.core is not None:
        yield NumericLimit(
            key="sharing.core.gbit_s_per_gpu",
            unit="Gbit/s",
            now=sharing.core.gbit_s_per_gpu,
            loosest=LEAST_RATE_GBIT_S,
            changed=_with_core_rate,
        )


def _gpus(instance: Instance) -> Iterator[NumericLimit]:
    """The GPUs that islands share, in each phase where there are several."""
    for n, (key, now) in enumerate(instance.gpu_caps.items()):
        t = n if instance.phase else None
        yield NumericLimit(
            key=key,
            unit="GPUs",
            now=now,
            loosest=now * MORE_GPUS,
            changed=partial(_with_gpus, t),
            used=lambda plan, t=t: contents.gpus(plan, t),  # type: ignore[misc]
            whole=True,
        )


def _with_gpus(t: int | None, instance: Instance, number: float) -> Instance:
    """Other GPUs in a phase; those of earlier ones are no more, and of later ones no fewer."""
    if t is None:
        return with_part(instance, "cluster", {"gpus": (number,)})
    counts = [
        number if n == t else min(phase.gpus, number) if n < t else max(phase.gpus, number)
        for n, phase in enumerate(instance.phase)
    ]
    phases = tuple(
        phase.model_copy(update={"gpus": count}) for phase, count in zip(instance.phase, counts, strict=True)
    )
    changed = with_part(instance, "cluster", {"gpus": (counts[-1],)})
    return changed.model_copy(update={"phase": phases})


def _in_use(kind: str, plan: Plan) -> float:
    return float(len(contents.products(plan, kind)))


def _with_products(kind: str, instance: Instance, number: float) -> Instance:
    most = instance.sharing.most_products.model_copy(update={kind: number})
    return with_part(instance, "sharing", {"most_products": most})


def _with_core_rate(instance: Instance, number: float) -> Instance:
    assert instance.sharing.core is not None
    core = instance.sharing.core.model_copy(update={"gbit_s_per_gpu": number})
    return with_part(instance, "sharing", {"core": core})


def _memory(instance: Instance) -> NumericLimit:
    return NumericLimit(
        key="cluster.gpu.hbm_gb",
        unit="GB",
        now=instance.cluster.gpu.hbm_gb,
        loosest=NO_MEMORY_LIMIT_GB,
        changed=with_gpu,
        used=lambda plan: instance.cluster.gpu.whole_gb(
            max(one.run.memory_gib for one in contents.running(plan)) * GIB
        ),
    )


def _losses(instance: Instance) -> Iterator[NumericLimit]:
    """How much slower training may be after each loss."""
    robust = instance.robust
    for part in robust.survive if robust else ():
        assert robust is not None
        yield NumericLimit(
            key=f"robust.slower.{part}",
            unit="times the bounds",
            now=robust.slower.of_part[part],
            loosest=MOST_SLOWER,
            changed=partial(_with_slower, part),
        )


def _with_slower(part: str, instance: Instance, number: float) -> Instance:
    assert instance.robust is not None
    slower = instance.robust.slower.model_copy(update={part: number})
    return with_part(instance, "robust", {"slower": slower})


def _confidence(instance: Instance) -> Iterator[NumericLimit]:
    """The probability that days are kept; that of a half is the mean."""
    asked = instance.availability
    if asked is None or asked.confidence is None or not any(one.calendar for one in instance.workload):
        return
    yield NumericLimit(
        key="availability.confidence",
        unit="",
        now=asked.confidence,
        loosest=0.5,
        changed=partial(_with_value, "availability", "confidence"),
        structural=True,
    )


def _shapes(instance: Instance) -> Iterator[NumericLimit]:
    """Limits on the form of networks."""
    network = instance.network
    if network.max_tiers < MOST_TIERS:
        yield NumericLimit(
            key="network.max_tiers",
            unit="tiers",
            now=network.max_tiers,
            loosest=MOST_TIERS,
            changed=partial(_with_value, "network", "max_tiers"),
            whole=True,
            structural=True,
        )
    if network.ratios is None and network.largest_ratio < WIDEST_RATIO:
        yield NumericLimit(
            key="network.oversubscription",
            unit="to 1",
            now=network.largest_ratio,
            loosest=WIDEST_RATIO,
            changed=partial(_with_value, "network", "oversubscription"),
            structural=True,
        )
