"""Why workloads meet their bounds on no island: an optic is missing, a loss is too much, or the
bound is too short.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from coopt.columns.islands.options import ListedIslands
from coopt.instance.couplings import Losses, Lost
from coopt.instance.errors import both
from coopt.instance.schema import Instance
from coopt.instance.variants import at_least_efficiency
from coopt.network.core import with_core_optics
from coopt.solving.explain import missing_optic
from coopt.solving.fleet.placed import Slot
from coopt.solving.fleet.standing import list_islands
from coopt.solving.robust.survival import NETWORK, Subject, farthest, fatal_loss, survived_by_none
from coopt.solving.runs import Run, StoppedError


def no_island(run: Run, missing: Sequence[Slot]) -> tuple[str, ...]:
    """Workloads that meet their bounds on no island, whatever its site and however it grows."""
    without: dict[str | None, list[Slot]] = {}
    for slot in missing:
        optic = missing_optic(run.instance, partial(_has_island, run, slot, run.instance.losses))
        without.setdefault(optic, []).append(slot)
    lack = without.pop(None, [])
    alone = (sentence for slot in lack for sentence in _alone(run, slot))
    return (*alone, *(_unjoined(run.instance, *one) for one in without.items()))


def _has_island(run: Run, slot: Slot, losses: Losses, asked: Instance) -> bool:
    """Whether a slot has an island that survives some losses, in an instance that differs from the
    run's in its network alone.
    """
    billed = next(iter(with_core_optics(at_least_efficiency(asked))))
    original = run.instance.surviving(losses)
    return bool(
        list_islands(
            billed, slot.workloads, original, run.check_clock, run.listed or ListedIslands()
        ).paths
    )


def _unjoined(instance: Instance, optic: str | None, slots: Sequence[Slot]) -> str:
    """Slots that would have islands if some optic joined their links."""
    if instance.sharing.mode == "time":
        return f"no network meets the bounds {_asked(instance)}on the GPUs there are: {optic}"
    one = len(slots) == 1
    named = f"workload{'' if one else 's'} {both([repr(slot.name) for slot in slots])}"
    meets = "no island meets its bound" if one else "no islands meet their bounds"
    return f"{named}: {meets} {_asked(instance)}on the GPUs there are: {optic}"


def _alone(run: Run, slot: Slot) -> Iterator[str]:
    """Which losses no island of a slot survives, where it has one without them; else that its bound
    is too short.
    """
    instance = run.instance
    try:
        fatal = _fatal(run, slot)
    except StoppedError:  # that it has no island stays proven, and which loss is too much open
        yield _too_short(instance, slot, _asked(instance))
        return
    if fatal is None:
        yield _too_short(instance, slot, _asked(instance.surviving({})))
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
    """Infinite where no larger factor that is tried lets a slot survive a loss; else nobody knows
    which is enough.
    """
    slower = farthest(run.instance.losses[part])
    try:
        helps = _has_island(run, slot, {part: slower}, run.instance)
    except StoppedError:
        return None
    return None if helps else math.inf


def _subject(instance: Instance, slot: Slot) -> Subject:
    """The islands of a workload, or networks where all workloads share one."""
    when = " in every phase with training" if len(instance.years) > 1 else ""
    if instance.sharing.mode == "time":
        return NETWORK._replace(bounds=f"{NETWORK.bounds}{when}")
    return Subject(f"island of workload {slot.name!r}", f"its bound{when}", "it")


def _too_short(instance: Instance, slot: Slot, asked: str) -> str:
    if instance.sharing.mode == "time":
        return (
            f"no network meets the bounds {asked}on the GPUs there are: needs longer bounds, more"
            " GPUs, wider mapping lists or other parts"
        )
    return (
        f"workload {slot.name!r}: no island meets its bound {asked}on the GPUs there are: needs a"
        " longer bound, more GPUs, wider mapping lists or other parts"
    )


def _asked(instance: Instance) -> str:
    """In which phases, and in spite of what, bounds have to be met."""
    when = "in every phase with training, " if len(instance.years) > 1 else ""
    lost = "also after every loss in robust.survive, " if instance.losses else ""
    if instance.availability is not None:
        listed = instance.availability.spare_domains
        most = f" and at most {max(listed):,} spare domains" if listed else ""
        lost += f"with its interruptions{most}, "
    return when + lost
