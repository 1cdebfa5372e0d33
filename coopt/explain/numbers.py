"""Numbers of limits that are just enough, and the way out that they are, solved as it is typed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from coopt.explain.limits import NumericLimit
from coopt.explain.lists import adds_unmated
from coopt.explain.thresholds import Threshold, first_number
from coopt.instance.schema import Instance, question_on
from coopt.instance.texts import counted
from coopt.plan.contents import built
from coopt.plan.explanation import Change, Relaxation
from coopt.plan.parts import Design
from coopt.plan.schema import Plan
from coopt.solving.resolves import Resolver

Answer = TypeVar("Answer")


class Answers(Protocol):
    """The answer to a question by its key; nothing where it was not proven in time."""

    def __call__(self, key: str, ask: Callable[[], Answer], /) -> Iterable[Answer]:
        """Ask."""


def ways_out(answers: Iterable[Relaxation | None]) -> Iterator[Relaxation]:
    return (answer for answer in answers if answer is not None)


def relaxation(
    instance: Instance, wider: Instance, changes: Sequence[Change], plan: Plan
) -> Relaxation | None:
    """A way out of an instance with the plan of the wider one; None where that has none, or adds
    parts that do not mate.
    """
    if plan.cost is None or plan.objective.value is None or adds_unmated(instance, wider, plan):
        return None
    domain_names = {network.hb_domain.name for network in built(plan)}
    domain_names -= {domain.name for domain in instance.network.hb_domains}
    notes = [
        domain.study_note(question_on(wider, domain.name).cluster.gpu.name)
        for domain in wider.network.hb_domains
        if domain.name in domain_names
    ]
    design = plan.design
    if (
        design is not None
        and design.spare_gpus
        and wider.cluster.most_gpus != instance.cluster.most_gpus
    ):
        notes.append(_idle_note(design))
    return Relaxation(
        changes=tuple(changes),
        value=plan.objective.value,
        design=design,
        notes=tuple(filter(None, notes)),
    )


def _idle_note(design: Design) -> str:
    """Which GPUs a design has beside those that train."""
    domains = counted(design.spare_domains, "spare HB domain")
    among = f", those of {domains} included" if design.spare_domains else ""
    return (
        f"This plan trains on {counted(design.gpus, 'GPU')} and leaves {design.spare_gpus:,}"
        f" idle{among}."
    )


def keys_of(relaxation: Relaxation) -> frozenset[str]:
    return frozenset(change.limit for change in relaxation.changes)


def least_number(resolver: Resolver, instance: Instance, limit: NumericLimit) -> Threshold | None:
    """The number for a limit that is just enough; None where none is."""

    def answer(number: float) -> Plan | None:
        return resolver.any_plan(limit.within(instance, number))

    farthest = answer(limit.loosest)
    return None if farthest is None else first_number(limit, answer, farthest)


def with_numbers(instance: Instance, numbers: Sequence[tuple[NumericLimit, float]]) -> Instance:
    for limit, number in numbers:
        instance = limit.within(instance, number)
    return instance


def solved(
    resolver: Resolver, instance: Instance, moves: Sequence[tuple[NumericLimit, Threshold]]
) -> Relaxation | None:
    """The relaxation with the plan that its numbers, as they are typed, let in; None where they let
    none in.
    """
    changes = [_change(*move) for move in moves]
    typed = [(limit, limit.enough(threshold.number)) for limit, threshold in moves]
    wider = with_numbers(instance, typed)
    return relaxation(instance, wider, changes, resolver.plan(wider))


def _change(limit: NumericLimit, threshold: Threshold) -> Change:
    is_exact = threshold.within is None or limit.whole
    number, to = threshold.number, limit.enough(threshold.number)
    return Change(
        limit=limit.key,
        now=limit.text(limit.now),
        to=limit.text(to),
        least=number if is_exact else None,
        share=(number if is_exact else to) / limit.now - 1,
        within=None if is_exact else threshold.within,
    )
