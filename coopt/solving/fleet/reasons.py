"""Why no fleet answers an instance: sentences that name the workloads without an island."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from coopt.instance.errors import both
from coopt.instance.schema import Instance
from coopt.solving.explain import missing_optic
from coopt.solving.fleet.arrays import Slot


def no_island(
    instance: Instance, missing: Sequence[Slot], has_island: Callable[[Slot, Instance], bool]
) -> tuple[str, ...]:
    """Workloads that meet their bounds on no island, whatever its site and however it grows.

    Parameters
    ----------
    has_island
        Whether a slot has an island in an instance that differs in the length of links.
    """
    without: dict[str | None, list[Slot]] = {}
    for slot in missing:
        without.setdefault(missing_optic(instance, partial(has_island, slot)), []).append(slot)
    lack = without.pop(None, [])
    return (*(_alone(instance, slot) for slot in lack), *(_unjoined(instance, *one) for one in without.items()))


def _unjoined(instance: Instance, optic: str | None, slots: Sequence[Slot]) -> str:
    """Slots that would have islands if some optic joined their links."""
    if instance.sharing.mode == "time":
        return f"no network meets the bounds {_asked(instance)}on the GPUs there are: {optic}"
    one = len(slots) == 1
    named = f"workload{'' if one else 's'} {both([repr(slot.name) for slot in slots])}"
    meets = "no island meets its bound" if one else "no islands meet their bounds"
    return f"{named}: {meets} {_asked(instance)}on the GPUs there are: {optic}"


def _alone(instance: Instance, slot: Slot) -> str:
    if instance.sharing.mode == "time":
        return (
            f"no network meets the bounds {_asked(instance)}on the GPUs there are: needs longer bounds, more GPUs, "
            "wider mapping lists or other parts"
        )
    return (
        f"workload {slot.name!r}: no island meets its bound {_asked(instance)}on the GPUs there are: needs a longer "
        "bound, more GPUs, wider mapping lists or other parts"
    )


def _asked(instance: Instance) -> str:
    """In which phases, and in spite of what, bounds have to be met."""
    phased = "in every phase with training, " if instance.phase else ""
    lost = "" if instance.robust is None or not instance.robust.survive else "also after every loss in robust.survive, "
    if instance.availability is not None:
        listed = instance.availability.spare_domains
        most = f" and at most {max(listed):,} spare domains" if listed else ""
        lost += f"with its interruptions{most}, "
    return phased + lost
