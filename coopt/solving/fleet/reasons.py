"""Why no fleet answers an instance: sentences that name the workload or the limit, and how far it must give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from coopt.instance.errors import both
from coopt.instance.schema import Instance
from coopt.solving.explain import missing_optic, rounded_up
from coopt.solving.fleet.arrays import Slot
from coopt.solving.partition.answer import UNTRIED, counting, least_choice, least_sentence, with_other
from coopt.solving.runs import Run, StoppedError
from formulations.partition_data import PartitionData


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


def over_limits(run: Run, datas: Sequence[PartitionData]) -> tuple[str, ...]:
    """Every workload has islands, and no choice of them keeps all limits: what each limit alone would have to be."""
    found: list[str] = []
    try:
        for sentence in _capped(run, datas):
            found.append(sentence)
    except StoppedError:
        return (*found, UNTRIED)
    return tuple(found) or (
        "no choice of islands keeps all limits, and none of them alone is to blame: needs several of them looser",
    )


def _capped(run: Run, datas: Sequence[PartitionData]) -> Iterator[str]:
    """The least of each limit with which every other one holds, by the islands that its phase allows."""
    plain = [replace(data, outlooks=()) for data in datas]
    for number, limit in enumerate(plain[0].limits):
        found = least_choice(run, [counting(data, number) for data in plain])
        if found is not None:
            least = found[2].objective
            yield least_sentence(limit.name, limit.cap, rounded_up(least), least)
    budget = plain[0].budget
    if budget is not None:
        free = [replace(with_other(data, 0.0 * data.other, ()), budget=None, weight=1.0) for data in plain]
        found = least_choice(run, free)
        if found is not None:
            yield least_sentence("limits.capex_usd", budget, rounded_up(found[2].capex_usd), found[2].capex_usd)
    for number, kind in enumerate(plain[0].kinds):
        for most in range(kind.most + 1, len(kind.products) + 1):
            wider = [
                replace(data, kinds=(*data.kinds[:number], replace(kind, most=most), *data.kinds[number + 1 :]))
                for data in plain
            ]
            if least_choice(run, wider) is not None:
                yield f"sharing.most_products.{kind.name} = {kind.most}: with {most} every other limit can be kept"
                break
