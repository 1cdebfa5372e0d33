"""Why workloads meet their bounds on no island: an optic is missing, a loss is too much, or the
bound is too short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from coopt.columns.islands.options import ListedIslands, within_bounds
from coopt.instance.couplings import Losses, Lost
from coopt.instance.schema import Instance
from coopt.instance.texts import both, change_text, grouped
from coopt.instance.variants import (
    at_min_efficiency,
    phases_of,
    required_bounds,
    with_value,
    within,
)
from coopt.network.cores import core_switch, with_core_optics
from coopt.network.growth import grows, grows_alone, lines
from coopt.network.space import domain_counts, families
from coopt.solving.explain import (
    as_rate,
    divides,
    missing_optic,
    no_family,
    no_split,
    rounded_up,
)
from coopt.solving.fleet.listing import as_arrays
from coopt.solving.fleet.placed import Slot
from coopt.solving.fleet.standing import list_islands
from coopt.solving.robust.survival import NETWORK, Subject, farthest, fatal_loss, survived_by_none
from coopt.solving.runs import Run, RunLog, StoppedError
from coopt.solving.shared import Field, field_of

CLOSE = 1e-5
"""Share by which a factor that helps may be above the least one."""

STOPPED = "and the search stopped before a sufficient bound was found"

AS_GOOD_AS_NONE = 2.0**40
"""Times a bound: what is not in time then never is."""


def no_island(run: Run, missing: Sequence[Slot]) -> tuple[str, ...]:
    """Workloads that meet their bounds on no island, whatever its site and however it grows."""
    if grows_alone(run.instance) and (sentences := tuple(_ungrown(run))):
        return sentences
    losses = run.instance.losses
    without = grouped(
        (missing_optic(run.instance, partial(_has_island, run, slot, losses)), slot)
        for slot in missing
    )
    lack = without.pop(None, [])
    alone = (sentence for slot in lack for sentence in _alone(run, slot))
    return (*alone, *(_unjoined(run.instance, *one) for one in without.items()))


def _has_island(run: Run, slot: Slot, losses: Losses, asked: Instance) -> bool:
    """Whether a slot has an island that survives some losses, in an instance that differs from the
    run's in its network alone.
    """
    billed = next(iter(with_core_optics(at_min_efficiency(asked))))
    original = run.instance.surviving(losses)
    return bool(
        list_islands(
            billed, slot.workloads, original, run.check_clock, run.listed or ListedIslands()
        ).paths
    )


def _ungrown(run: Run) -> Iterator[str]:
    """Why no network grows: what stands against one in each phase alone; else that none begins as
    it has to end.
    """
    instance = run.instance
    questions = phases_of(instance)
    titles = [f"phase of {phase.year:g}" for phase in instance.phase]
    if any(True for _ in lines(instance)):
        for title, question in zip(titles, questions, strict=True):
            found = field_of(replace(run, instance=question, log=RunLog()), question)
            if not isinstance(found, Field):
                yield from (f"{title}: {text}" for text in found())
        return
    alone = [
        f"{title}: {text}"
        for title, question in zip(titles, questions, strict=True)
        if next(families(question), None) is None
        for text in no_family(question)
    ]
    yield from alone
    if alone:
        return
    counts = [phase.gpus for phase in instance.phase]
    final, listing = counts[-1], ", ".join(f"{gpus:,}" for gpus in counts)
    spread = [
        final // domains
        for hb in instance.network.hb_domains
        for domains in domain_counts(final, hb)
        if all(gpus % (final // domains) == 0 for gpus in counts)
    ]
    if not spread:
        yield (
            f"no HB domain can have the same number of active GPUs in every phase ({listing}"
            " GPUs): needs GPU counts with a common divisor that is more than half a domain's size"
            " and at most its size"
        )
    elif any(family.active in spread and grows(family, counts) for family in families(instance)):
        yield (
            f"no network of {final:,} GPUs lets the uplinks of every phase spread evenly over the"
            " spines of the last phase: needs a larger oversubscription, or network.bundles ="
            " 'any'"
        )
    else:
        yield (
            f"no network of {final:,} GPUs can grow from {counts[0]:,}, as a rail-optimized network"
            " with three tiers would have to be rewired: needs another fabric, switches with more"
            " ports, or all GPUs from the start"
        )


def _unjoined(instance: Instance, optic: str | None, slots: Sequence[Slot]) -> str:
    """Slots that would have islands if some optic joined their links."""
    if instance.sharing.mode == "time":
        return f"no network meets the bounds {_asked(instance)}on the given GPUs: {optic}"
    one = len(slots) == 1
    named = f"workload{'' if one else 's'} {both([repr(slot.name) for slot in slots])}"
    meets = (
        "no network of its own meets its bound"
        if one
        else "no networks of their own meet their bounds"
    )
    return f"{named}: {meets} {_asked(instance)}on the given GPUs: {optic}"


def _alone(run: Run, slot: Slot) -> Iterator[str]:
    """Which losses no island of a slot survives, where it has one without them; else that its bound
    is too short.
    """
    instance = run.instance
    try:
        fatal = _fatal(run, slot)
    except StoppedError:  # that it has no island stays proven, and which loss is too much open
        yield f"{_unmet(instance, slot, _asked(instance))}, {STOPPED}"
        return
    if fatal is None:
        yield _too_short(run, slot)
        return
    for part in fatal:
        yield fatal_loss(
            part, instance.losses[part], _subject(instance, slot), _enough(run, slot, part)
        )
    if not fatal:
        yield survived_by_none(instance.losses, _subject(instance, slot))


def _fatal(run: Run, slot: Slot) -> list[Lost] | None:
    """The losses each of which alone leaves a slot without an island; None where it has none
    without any loss.
    """
    losses = run.instance.losses
    if not losses or not _has_island(run, slot, {}, run.instance):
        return None
    if len(losses) == 1:
        return [*losses]
    return [
        part for part in losses if not _has_island(run, slot, {part: losses[part]}, run.instance)
    ]


def _enough(run: Run, slot: Slot, part: Lost) -> float | None:
    """The least factor with which a slot survives a loss; infinite where none up to the farthest
    does, None where there is no time to find it.
    """
    slower = run.instance.losses[part]

    def helps(factor: float) -> bool:
        return _has_island(run, slot, {part: factor}, run.instance)

    try:
        return least_factor(lambda _: helps, slower, farthest(slower))
    except StoppedError:
        return None


def least_factor(
    helps_within: Callable[[float], Callable[[float], bool]], short: float, most: float
) -> float:
    """The least factor that helps, hardly more; infinite where none up to `most` does.

    Parameters
    ----------
    helps_within
        Given the largest factor that is asked for: whether a factor is enough, as every larger one
        is then.
    short
        A factor that is not enough.
    """
    if not helps_within(most)(most):
        return math.inf
    enough = min(2 * short, most)
    while not (helps := helps_within(enough))(enough):
        short, enough = enough, min(2 * enough, most)
    while enough > short * (1 + CLOSE):
        # the geometric mean leaves the root of the ratio on either side, which is what is bounded
        middle = math.sqrt(short * enough)
        if helps(middle):
            enough = middle
        else:
            short = middle
    return enough


def _subject(instance: Instance, slot: Slot) -> Subject:
    """The islands of a workload, or networks where all workloads share one."""
    when = " in every phase with training" if len(instance.years) > 1 else ""
    if instance.sharing.mode == "time":
        return NETWORK._replace(bounds=f"{NETWORK.bounds}{when}")
    return Subject(f"network of workload {slot.name!r}", f"its bound{when}")


def _unmet(instance: Instance, slot: Slot, asked: str) -> str:
    """That a slot has no island, `asked` as bounds have to be met."""
    if instance.sharing.mode == "time":
        return f"no network meets the bounds {asked}on the given GPUs"
    return f"workload {slot.name!r}: no network of its own meets its bound {asked}on the given GPUs"


def _too_short(run: Run, slot: Slot) -> str:
    """No island meets the bounds of a slot: how much longer these would have to be, or which sizes
    a mapping could divide.
    """
    instance = run.instance
    for workload in instance.workload:
        sizes = workload.gpus if workload.name in slot.workloads else None
        if sizes and not any(divides(workload, gpus) for gpus in sizes):
            return no_split(instance.having(cluster={"gpus": sizes}), workload)
    subject = _unmet(instance, slot, _asked(instance.surviving({})))
    bounds = "bounds" if instance.phase or len(slot.workloads) > 1 else "a bound"
    try:
        factor = least_factor(partial(_serves, run, slot), 1.0, AS_GOOD_AS_NONE)
    except StoppedError:
        return f"{subject}, {STOPPED}"
    if math.isinf(factor):
        core = "" if core_switch(instance) is None else " and has ports left for the core"
        halted, rarer = "", ""
        if instance.availability is not None:
            halted, rarer = ", or interruptions leave no progress", ", fewer failures"
        return (
            f"{subject}, however loose: no mapping divides evenly and fits into memory, or no"
            f" network joins the HB domains{core}{halted}: needs another batch, wider mapping"
            f" lists{rarer}, more memory or other parts"
        )
    return (
        f"{subject}: needs {bounds}{_longer(instance, slot, factor)}, more GPUs, wider mapping"
        " lists or other parts"
    )


def _longer(instance: Instance, slot: Slot, factor: float) -> str:
    """A bound that is so many times as long, margin included: in days where it is one of days, else
    in seconds, and in the workload's own unit where that is another one.
    """
    workloads = [one for one in instance.workload if one.name in slot.workloads]
    if instance.phase or len(workloads) > 1:
        return f" {rounded_up(factor)} times as long"
    (workload,) = workloads
    bound_s, change = workload.required_s * factor, change_text(factor - 1)
    if workload.train_days is not None:
        days = rounded_up(workload.train_days * factor)
        return f" of {days} days ({change}){workload.by_end(bound_s)}"
    return f" of {rounded_up(bound_s)} s ({change}){as_rate(workload, bound_s)}"


def _serves(run: Run, slot: Slot, longest: float) -> Callable[[float], bool]:
    """Whether a slot has an island without losses at bounds up to so many times as long."""
    instance = run.instance
    if as_arrays(instance):
        (workload,) = (one for one in instance.workload if one.name in slot.workloads)
        alone = within(workload, workload.bound_s * longest)
        asked = instance.model_copy(update={"workload": (alone,)})
        is_served = within_bounds(asked, alone, run.check_clock)
        return lambda factor: is_served(workload.bound_s * factor)
    return lambda factor: _has_island(run, slot, {}, _with_longer_bounds(instance, factor))


def _with_longer_bounds(instance: Instance, factor: float) -> Instance:
    """The question with every bound on an iteration so many times as long."""
    for bound in required_bounds(instance):
        is_rate = bound.key.endswith("min_tokens_per_s")
        value = bound.number / factor if is_rate else bound.number * factor
        instance = with_value(instance, bound.key, value)
    return instance


def _asked(instance: Instance) -> str:
    """In which phases, and in spite of what, bounds have to be met."""
    when = "in every phase with training, " if len(instance.years) > 1 else ""
    lost = "also after every loss in robust.survive, " if instance.losses else ""
    if instance.availability is not None:
        spares = instance.availability.listed_spares
        lost += f"with interruptions{' and ' * bool(spares)}{spares}, "
    return when + lost
