"""What each entry of the instance's lists is worth: the cheapest plan without it, or with nothing else in its list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from coopt.instance.base import Entry
from coopt.instance.rules.agreement import disagreements
from coopt.instance.schema import Instance
from coopt.plan.contents import SOLD_AS
from coopt.plan.explanation import Rival
from coopt.plan.schema import Plan
from coopt.solving.reasons.labels import why_worse
from coopt.solving.reasons.limits import with_part
from coopt.solving.sensitivity.resolves import Resolver, cheaper, value_of

LISTS = ("hb_domains", "fabrics", "nics", "nics_per_gpu", "gpus_per_nic", "nic_planes", "switches", "optics")


@dataclass(frozen=True, kw_only=True)
class ListedChoice:
    """An entry of a list with more than one, by the key of the list."""

    part: str
    entry: Any

    @property
    def name(self) -> str:
        """The entry as it stands in the instance."""
        return self.entry.name if isinstance(self.entry, Entry) else str(self.entry)

    def alone(self, instance: Instance) -> Instance:
        """The instance with nothing else in the list."""
        return _with_list(instance, self.part, (self.entry,))

    def excluded(self, instance: Instance) -> Instance:
        """The instance without it in the list."""
        return _with_list(instance, self.part, tuple(one for one in _entries(instance, self.part) if one != self.entry))


def lists_of_choices(instance: Instance) -> Iterator[tuple[ListedChoice, ...]]:
    """The entries of every list with more than one, and the numbers of GPUs to choose from."""
    for part in ("cluster.gpus", *(f"network.{key}" for key in LISTS)):
        entries = _entries(instance, part)
        if len(entries) > 1:
            yield tuple(ListedChoice(part=part, entry=entry) for entry in entries)


def rivals_in(
    resolver: Resolver, instance: Instance, plan: Plan, value: float, entries: tuple[ListedChoice, ...]
) -> list[Rival]:
    """The rivals of one list; of two entries, one alone is the list without the other, which is said once."""
    every = (_rival(resolver, instance, plan, value, choice) for choice in entries)
    found = [one for one in every if one is not None]
    missed = any(one.excluded for one in found)
    return [one for one in found if one.excluded or not (missed and len(entries) == 2)]


def _rival(resolver: Resolver, instance: Instance, plan: Plan, value: float, choice: ListedChoice) -> Rival | None:
    """What the plan costs more without an entry; where nothing, what it costs with that entry alone.

    None where the rest of the instance needs the list as it is.
    """
    without, alone = choice.excluded(instance), choice.alone(instance)
    if _goes_together(instance, without):
        found = _compared(resolver, instance, plan, value, choice, without, excluded=True)
        if found.value is None or cheaper(value, found.value):
            return found
    if _goes_together(instance, alone):
        return _compared(resolver, instance, plan, value, choice, alone, excluded=False)
    return None


def _compared(
    resolver: Resolver,
    instance: Instance,
    plan: Plan,
    value: float,
    choice: ListedChoice,
    asked: Instance,
    *,
    excluded: bool,
) -> Rival:
    other = resolver.plan(asked)
    found = value_of(other)
    if found is None or other.cost is None:
        why = "; ".join(other.explanation) or "nothing meets every bound"
        extra = None
    else:
        assert plan.cost is not None
        extra = found - value
        same = not cheaper(value, found)
        why = "costs the same" if same else why_worse(instance.objective, plan.cost, other.cost)
    return Rival(
        part=choice.part,
        choice=choice.name,
        value=found,
        extra=extra,
        design=other.design,
        why=why or "costs more in another way",
        excluded=excluded,
    )


def _entries(instance: Instance, part: str) -> tuple[Any, ...]:
    table, key = part.split(".")
    found: tuple[Any, ...] = getattr(getattr(instance, table), key)
    return found


def _with_list(instance: Instance, part: str, entries: tuple[Any, ...]) -> Instance:
    """The instance with another list, and without discounts and panels for what it lists no longer."""
    table, key = part.split(".")
    changed = with_part(instance, table, {key: entries})
    if key == "fabrics" and "direct" not in entries:
        changed = with_part(changed, "network", {"panels": ()})
    if key not in SOLD_AS or not instance.sharing.discount:
        return changed
    names = {entry.name for entry in entries}
    kept = tuple(one for one in instance.sharing.discount if one.kind != SOLD_AS[key] or one.item in names)
    return with_part(changed, "sharing", {"discount": kept})


def _goes_together(instance: Instance, changed: Instance) -> bool:
    """Whether the changed instance is a question, as far as the instance is one."""
    return set(disagreements(changed)) <= set(disagreements(instance))
