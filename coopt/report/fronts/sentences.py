"""A front in sentences: what patience saves, what the bound costs, how far it carries."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.instance.schema import Instance
from coopt.plan.front import Front, FrontPoint
from coopt.report import words
from coopt.report.fronts.measures import LESS, amount_of, answer_to, bound_of, network, time_of, time_words, value_of
from coopt.report.sentence import amount


def front_headline(front: Front, instance: Instance) -> str:
    """What going from the fastest to the cheapest saves, and where the front bends."""
    if front.stop_reason == "infeasible":
        return "There is no such design; proven infeasible."
    if not front.points:
        return f"Stopped early ({front.stop_reason}) before any point was proven."
    first, last = front.points[0], front.points[-1]
    if not front.complete:
        found = f"{words.counted(len(front.points), 'point')} proven of {words.count(front.size)}"
        return f"Stopped early ({front.stop_reason}), {found}: {_saving(front, instance, first, last)}."
    if len(front.points) == 1:
        where, what = _place(front, instance, first), network(instance, first.best.design)
        return f"One design is the fastest and the cheapest: {where} with {what}."
    bends = [point for point in front.points if point.knee]
    *others, last_one = [_place(front, instance, point) for point in bends] or [""]
    named = f"s at {', '.join(others)} and {last_one}" if others else f" at {last_one}"
    knees = f"; knee{named}" if bends else ""
    return f"{_saving(front, instance, first, last)}{knees}."


def front_notes(front: Front, instance: Instance) -> Iterator[str]:
    """What the bound of the instance costs, what is shown and proven, how near to trust."""
    if not front.points:
        return
    if front.complete:
        yield _answer(front, instance)
    shown = f"{words.count(len(front.points))} of {words.counted(front.size, 'point')} on the front"
    verb = LESS[front.kind].split()[0]
    yield f"Shown: {shown}, each proven: no design of its pace {verb} less, and none that {verb} as little is faster."
    if any(point.knee for point in front.points):
        yield "Knee: from there on waiting longer saves far less than up to there."
    errors = {instance.cluster.gpu.error(workload.precision) for workload in instance.workload} - {None}
    if errors:
        off = words.percent(max(error for error in errors if error is not None))
        closer = ": points that lie closer together may change places" if len(front.points) > 1 else ""
        yield f"Times are estimates, off by {off} on average on published runs{closer}."


def _saving(front: Front, instance: Instance, first: FrontPoint, last: FrontPoint) -> str:
    most, least = value_of(front, first), value_of(front, last)
    share = f" ({words.percent((most - least) / most)})" if most else ""
    saved = f"{amount(front.kind, most - least)} of {amount(front.kind, most)}{share}"
    start, end = (time_words(instance, time_of(point)) for point in (first, last))
    if len(instance.workload) > 1:
        return f"Going from {start.split()[0]} to {end} saves {saved}"
    return f"Going from {start} to {end} an iteration saves {saved}"


def _place(front: Front, instance: Instance, point: FrontPoint) -> str:
    return f"{time_words(instance, time_of(point))} ({amount_of(front, point)})"


def _answer(front: Front, instance: Instance) -> str:
    """What the bounds of the instance cost at least."""
    one = len(instance.workload) == 1
    bound = f"the bound of {time_words(instance, bound_of(instance))}" if one else "the bounds"
    kept = answer_to(front)
    if kept is None:
        fastest = time_words(instance, time_of(front.points[0]))
        return f"No design keeps {bound}: the fastest takes {fastest}."
    return f"Within {bound} the least is {amount_of(front, kept)}, with {network(instance, kept.best.design)}."
