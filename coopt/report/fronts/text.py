"""A front of cost against time in words: its axes, its points, its sentences and its table."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.reserves import known_error
from coopt.instance.schema import Instance
from coopt.instance.workload import ROUND_UP
from coopt.plan.front import Front, FrontPoint
from coopt.plan.schema import Design
from coopt.report import words
from coopt.report.notes import turns_text
from coopt.report.parts import nics_in_words
from coopt.report.sentence import decision
from coopt.report.tables import FigureTable, figures

VERBS = {"capex": "costs less", "power": "draws less", "tco": "costs less"}
KINDS = {"capex": "capex", "power": "power", "tco": "TCO"}
MOST_DAYS = 3  # workloads whose days still have columns
COLUMNS = {"capex": "capex $", "power": "power W", "tco": "TCO $"}


def time_of(point: FrontPoint) -> float:
    """The days of the only workload where its bound is on days, else its iteration time in seconds,
    else the pace.
    """
    if point.days is not None:
        return point.days
    runs = point.best.workloads if point.best else ()
    return runs[0].iteration_time_s if len(runs) == 1 else point.pace


def in_seconds(instance: Instance) -> bool:
    """Whether points are placed by the time of their only workload on their only network, rather
    than by pace.

    Where a choice is open and no bound is given, their paces are seconds
    (`coopt.solving.fronts.sweep`).
    """
    if len(instance.workload) != 1:
        return False
    return instance.problem == "shared" or (
        instance.problem == "choice" and not instance.workload[0].bounded
    )


def in_days(instance: Instance) -> bool:
    """Whether that time is told in days, as its bound is."""
    return in_seconds(instance) and instance.workload[0].calendar


def with_margin(instance: Instance) -> bool:
    """Whether days count what the margin keeps free: the bound on them holds with it
    (docs/days.md).
    """
    return in_days(instance) and instance.workload[0].time_margin > 0.0


def bound_of(instance: Instance) -> float | None:
    """The bounds of the instance in the measure of `time_of`; None where any time will do."""
    if not instance.workload[0].bounded:
        return None
    if in_days(instance):
        return instance.workload[0].train_days or 0.0
    return instance.workload[0].bound_s if in_seconds(instance) else 1.0


def time_words(instance: Instance, time: float) -> str:
    """`3.377 s`, `62.05 days`, or `0.979 times the bounds` for several workloads or networks."""
    if in_days(instance):
        return f"{words.digits(time, 4)} days"
    return (
        words.seconds(time) if in_seconds(instance) else f"{words.digits(time, 4)} times the bounds"
    )


def time_label(instance: Instance) -> str:
    """The name of the time axis."""
    if in_days(instance):
        return f"time of training{' with the margin' if with_margin(instance) else ''} (days)"
    return (
        "iteration time (s)" if in_seconds(instance) else "iteration time as a share of the bounds"
    )


def value_of(front: Front, point: FrontPoint) -> float:
    """The objective of a point, in USD or W."""
    return point.cost.of(front.kind)


def value_scale(front: Front) -> tuple[float, str]:
    """What the values of the front are divided by for an axis, and its name with the unit."""
    max_value = max((value_of(front, point) for point in front.points), default=0.0)
    power = front.kind == "power"
    # One unit for the whole axis, that of the largest value.
    size, prefix = next(
        (pair for pair in (words.WATTS if power else words.SCALES) if max_value >= pair[0]),
        (1.0, ""),
    )
    unit = (prefix or "W") if power else f"{prefix}$"
    return size, f"{KINDS[front.kind]} ({unit})"


def answer_to(front: Front, instance: Instance) -> FrontPoint | None:
    """The cheapest point that keeps the bounds of the instance, the fastest where it has none.

    `coopt.pareto` always shows it where there is one.
    """
    if not instance.workload[0].bounded:
        return front.points[0]
    # Points fall in cost as pace grows, so the last one within the bounds is the cheapest.
    within = [point for point in front.points if point.pace <= ROUND_UP]
    return within[-1] if within else None


def points_label(front: Front) -> str:
    """`20 of 264 points, each proven`: the name of the points in a picture."""
    return f"{words.count(len(front.points))} of {words.counted(front.size, 'point')}, each proven"


def marks(front: Front, instance: Instance, point: FrontPoint) -> str:
    """`knee`, `bound` or both: why a point is worth a look."""
    answer = "bound" if instance.workload[0].bounded else "fastest"
    flags = [("knee", point.knee), (answer, front.complete and point == answer_to(front, instance))]
    return ", ".join(name for name, on in flags if on)


def network(instance: Instance, design: Design) -> str:
    """`h100-hb64, 2-tier rail-only, 3.2:1`: what tells designs of a front apart."""
    fabric = design.fabric
    gpus = f"{words.counted(design.gpus, 'GPU')}, " if instance.cluster.has_several_counts else ""
    spares = f", {words.counted(design.spare_domains, 'spare')}" if design.spare_domains else ""
    if not fabric.tiers:
        return f"{gpus}{design.hb_domain.name}, no network{spares}"
    ratio = "" if fabric.oversubscription <= 1 else f", {words.ratio(fabric.oversubscription)}"
    return f"{gpus}{design.hb_domain.name}, {fabric.tiers}-tier {fabric.kind}{ratio}{spares}"


def built_from(instance: Instance, point: FrontPoint) -> str:
    """What is built at a point, in a few words."""
    if point.best is not None:
        return network(instance, point.best.design)
    assert point.plan is not None
    text = decision(instance, point.plan) or words.counted(len(point.plan.parts), "network")
    gpus = sum(part.design.gpus for part in point.plan.parts if part.design)
    open_ones = [words.counted(gpus, "GPU")] if instance.cluster.has_several_counts and gpus else []
    open_ones += [point.plan.chosen.text] if point.plan.chosen.text else []
    return f"{', '.join(open_ones)}: {text}" if open_ones else text


def details(instance: Instance, front: Front, point: FrontPoint) -> Iterator[tuple[str, str]]:
    """Everything about a point that fits into a list: name and what it is."""
    if point.best is None:
        yield "Build", built_from(instance, point)
    else:
        yield from _design_details(point.best.design)
    yield "Capex", f"${point.cost.capex_usd:,.0f}"
    yield "Power", f"{point.cost.power_w:,.0f} W"
    yield "TCO", f"${point.cost.tco_usd:,.0f}"
    gap = point.claim.gap or 0.0
    yield "Proof", f"no design of this pace {VERBS[front.kind]}, gap {words.percent(gap)}"
    runs = point.runs
    workload_of = {workload.name: workload for workload in instance.workload}
    for label, run in runs:
        mapping = run.mapping
        is_alone = len(runs) == 1
        rate = workload_of[run.name].in_own_units(run.iteration_time_s)
        yield (
            "Iteration" if is_alone else label,
            words.seconds(run.iteration_time_s) + (f", {rate}" if rate else ""),
        )
        yield (
            "Split" if is_alone else f"Split of {label}",
            (
                f"TP {mapping.tp}, CP {mapping.cp}, PP {mapping.pp}, DP {mapping.dp}, EP"
                f" {mapping.ep}, micro-batch {mapping.micro_batch}"
            ),
        )
        yield "MFU" if is_alone else f"MFU of {label}", words.percent(run.mfu)


def _design_details(design: Design) -> Iterator[tuple[str, str]]:
    fabric = design.fabric
    yield "Build", words.design_text(design)
    if fabric.tiers:
        yield "Switches", words.times(fabric.switch_count, fabric.switch_text)
        yield "Transceivers", words.count(fabric.transceiver_count)
        yield "NICs", nics_in_words(fabric.nic)


def amount_of(front: Front, point: FrontPoint) -> str:
    """The objective of a point as it stands in a sentence."""
    return words.amount(front.kind, value_of(front, point))


def front_headline(front: Front, instance: Instance) -> str:
    """What going from the fastest to the cheapest saves, and where the front bends."""
    if front.stop_reason == "infeasible":
        return "There is no such design; proven infeasible."
    if not front.points:
        return f"Stopped early ({front.stop_reason}) before any point was proven."
    fastest_point, cheapest_point = front.points[0], front.points[-1]
    if not front.complete:
        of_all = "" if fastest_point.plan is not None else f" of {words.count(front.size)}"
        count_text = f"{words.counted(len(front.points), 'point')} proven{of_all}"
        saving_text = (
            _found_alone(front, instance)
            if len(front.points) == 1
            else _saving(front, instance, fastest_point, cheapest_point)
        )
        return f"Stopped early ({front.stop_reason}), {count_text}: {saving_text}."
    if len(front.points) == 1:
        return f"One design is the fastest and the cheapest: {_found_alone(front, instance)}."
    bends = [point for point in front.points if point.knee]
    *earlier_places, last_one = [_place(front, instance, point) for point in bends] or [""]
    places_text = (
        f"s at {', '.join(earlier_places)} and {last_one}" if earlier_places else f" at {last_one}"
    )
    knees = f"; knee{places_text}" if bends else ""
    return f"{_saving(front, instance, fastest_point, cheapest_point)}{knees}."


def front_notes(front: Front, instance: Instance) -> Iterator[str]:
    """What the bound of the instance costs, how many points are shown and proven, and the error of
    their times.
    """
    if not front.points:
        return
    if front.complete:
        yield _answer(front, instance)
    if front.tp_across:
        yield (
            "TP groups may extend over several HB domains: no plan that keeps them inside one meets"
            " the bounds."
        )
    if front.over == ("budget",):
        told = "Each stands at what it costs, once where it is the fastest of several budgets."
        yield f"Points are the fastest designs within budgets that are evenly spaced. {told}"
    elif front.over == ("days",):
        stay = (
            ""
            if all(workload.calendar for workload in instance.workload)
            else "; other bounds stay"
        )
        told = (
            "Each stands at the days that it takes, once where it is the cheapest of several dates."
        )
        yield f"Points are the cheapest designs of dates that are evenly spaced{stay}. {told}"
    elif front.over:
        yield f"Only the bounds of {words.both(front.over)} move, the others stay."
    if instance.problem == "shared" and len(instance.workload) > 1:
        yield turns_text(instance)
    if with_margin(instance):
        added = words.percent(instance.workload[0].time_margin)
        yield (
            f"Days count the {added} that the margin keeps free on top of iteration times; plans"
            " tell theirs without."
        )
    verb = VERBS[front.kind].split()[0]
    if front.points[0].plan is not None:
        yield f"Shown: {_count_text(front)}. Each is proven: no plan as fast {verb} less."
    else:
        count = (
            f"{words.count(len(front.points))} of {words.counted(front.size, 'point')} on the front"
        )
        proven = f"no design as fast {verb} less, and none that {verb} as little is faster"
        yield f"Shown: {count}. Each is proven: {proven}."
    if any(point.knee for point in front.points):
        longer = "longer training" if in_days(instance) else "a longer iteration"
        yield f"At a knee the saving slows down: up to it {longer} saves much, beyond it far less."
    errors = [known_error(instance.cluster.gpu, workload) for workload in instance.workload]
    known_errors = [error.error for error in errors if error is not None]
    if known_errors:
        error_text = words.percent(max(known_errors))
        closer = (
            "; points that lie closer together than that may change places"
            if len(front.points) > 1
            else ""
        )
        yield (
            f"Times are estimates, off by {error_text} on average on runs that were left out of the"
            f" fit{closer}."
        )


def _count_text(front: Front) -> str:
    """How many points were found, and whether there may be more."""
    points = f"{words.count(len(front.points))} of {words.counted(front.size, 'point')} found"
    if front.stop_reason == "whole front":
        return f"{points}; paces that differ by less than 0.1% count as one"
    return f"{points}; others may lie between them"


def _saving(
    front: Front, instance: Instance, start_point: FrontPoint, end_point: FrontPoint
) -> str:
    max_value, min_value = value_of(front, start_point), value_of(front, end_point)
    share = f" ({words.percent((max_value - min_value) / max_value)})" if max_value else ""
    saved = (
        f"{words.amount(front.kind, max_value - min_value)} of"
        f" {words.amount(front.kind, max_value)}{share}"
    )
    start, end = (time_words(instance, time_of(point)) for point in (start_point, end_point))
    if not in_seconds(instance):
        pairs = (
            (name, start_point.workload_days[name], end_point.workload_days[name])
            for name in _told_in_days(front)
        )
        own_days = (
            f"{name} {words.digits(begin, 4)} to {words.digits(end_days, 4)} days"
            for name, begin, end_days in pairs
        )
        days = f" ({', '.join(own_days)})" if _told_in_days(front) else ""
        return f"Going from {start.split()[0]} to {end}{days} saves {saved}"
    training = "of training with the margin " if with_margin(instance) else "of training "
    noun = training if in_days(instance) else "an iteration "
    return f"Going from {start} to {end} {noun}saves {saved}"


def _found_alone(front: Front, instance: Instance) -> str:
    """Time, cost and build of the only point: from one point there is nowhere to go."""
    (point,) = front.points
    return f"{_place(front, instance, point)} with {built_from(instance, point)}"


def _place(front: Front, instance: Instance, point: FrontPoint) -> str:
    return f"{time_words(instance, time_of(point))} ({amount_of(front, point)})"


def _answer(front: Front, instance: Instance) -> str:
    """What the bounds of the instance cost at least."""
    answer, bound_given = answer_to(front, instance), bound_of(instance)
    if bound_given is None and answer is not None:
        return (
            f"No bound is given; the fastest comes to {amount_of(front, answer)}, with"
            f" {built_from(instance, answer)}."
        )
    bound = (
        f"the bound of {time_words(instance, bound_given)}"
        if bound_given is not None and in_seconds(instance)
        else "the bounds"
    )
    if answer is None:
        min_time = time_words(instance, time_of(front.points[0]))
        return f"No design keeps {bound}: the fastest takes {min_time}."
    return (
        f"Within {bound} the least is {amount_of(front, answer)}, with"
        f" {built_from(instance, answer)}."
    )


def front_report(front: Front, instance: Instance) -> Iterator[RenderableType]:
    """The saving, the points, and how to read them; without points, why there are none."""
    yield Text(front_headline(front, instance), style="bold")
    yield from front.explanation
    if not front.points:
        return
    yield front_table(front, instance)
    yield from front_notes(front, instance)


def front_table(front: Front, instance: Instance) -> FigureTable:
    """The points by rising time and falling cost."""
    names = columns(front, instance)
    return figures(
        "Cost against time",
        names[:2],
        names[2:],
        [row(front, instance, point) for point in front.points],
    )


def columns(front: Front, instance: Instance) -> tuple[str, ...]:
    """What the cells of `row` are; the first two are words."""
    days = "days with margin" if with_margin(instance) else "days"
    time = days if in_days(instance) else "s" if in_seconds(instance) else "of bounds"
    other_names = (name.split()[0] for kind, name in COLUMNS.items() if kind in _other_kinds(front))
    kept_free = any(
        workload.calendar and workload.time_margin > 0.0 for workload in instance.workload
    )
    own_days = (
        f"days{' with margin' if kept_free else ''}, {name}" for name in _told_in_days(front)
    )
    return "built from", "mark", time, *own_days, COLUMNS[front.kind], "saved", *other_names


def _other_kinds(front: Front) -> list[str]:
    """What is told of a bill besides the objective; nothing where days of several workloads take
    the room.
    """
    return [] if len(_told_in_days(front)) > 1 else [kind for kind in COLUMNS if kind != front.kind]


def _told_in_days(front: Front) -> tuple[str, ...]:
    """The workloads whose days have columns of their own: all that have any, where they are few."""
    names = tuple(front.points[0].workload_days) if front.points else ()
    return names if len(names) <= MOST_DAYS else ()


def row(front: Front, instance: Instance, point: FrontPoint) -> tuple[str, ...]:
    """A point; what it saves is a share of what the fastest one costs."""
    cost, max_value = point.cost, value_of(front, front.points[0])
    amounts = {
        "capex": words.money(cost.capex_usd),
        "power": words.power(cost.power_w),
        "tco": words.money(cost.tco_usd),
    }
    value = value_of(front, point)
    return (
        built_from(instance, point),
        marks(front, instance, point),
        words.digits(time_of(point), 4),
        *(words.digits(point.workload_days[name], 4) for name in _told_in_days(front)),
        f"{value:,.0f}",
        words.percent((max_value - value) / max_value) if max_value else "-",
        *(text for kind, text in amounts.items() if kind in _other_kinds(front)),
    )
