"""A front of cost against time in words: its axes, its points, its sentences and its table."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.numerics import SOLVED
from coopt.instance.question import ObjectiveKind
from coopt.instance.reserves import largest_error
from coopt.instance.schema import Instance
from coopt.instance.texts import that_hold
from coopt.instance.workload import ROUND_UP
from coopt.plan.front import Front, FrontPoint
from coopt.plan.parts import Design
from coopt.report import words
from coopt.report.facts import degrees
from coopt.report.notes import turns_text
from coopt.report.plan import decision
from coopt.report.words import FigureTable, figures

VERBS = {"capex": "costs less", "power": "draws less", "tco": "costs less"}
LEAST = {"capex": "cheapest", "power": "lowest-power", "tco": "cheapest"}
KINDS = {"capex": "capex", "power": "power", "tco": "TCO"}
MOST_DAYS = 3  # workloads whose days still have columns
COLUMNS: dict[ObjectiveKind, str] = {"capex": "capex $", "power": "power W", "tco": "TCO $"}


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
    compares_seconds = bool(instance.open_keys) and not instance.workload[0].bounded
    placed = not instance.beyond_one_network or compares_seconds
    return placed and len(instance.workload) == 1


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
    workload = instance.workload[0]
    if not workload.bounded:
        return None
    bound = workload.bound_s if in_seconds(instance) else 1.0
    return workload.train_days or 0.0 if in_days(instance) else bound


def time_words(instance: Instance, time: float) -> str:
    """`3.377 s`, `62.05 days`, or `0.979 times the bounds` for several workloads or networks."""
    unit = "s" if in_seconds(instance) else "times the bounds"
    return f"{words.digits(time, 4)} {'days' if in_days(instance) else unit}"


def time_label(instance: Instance) -> str:
    """The name of the time axis."""
    if in_days(instance):
        return f"time of training{' with the margin' if with_margin(instance) else ''} (days)"
    return (
        "iteration time (s)"
        if in_seconds(instance)
        else "iteration time as a multiple of the bounds"
    )


def value_of(front: Front, point: FrontPoint) -> float:
    """The objective of a point, in USD or W."""
    return point.cost.of(front.kind)


def value_scale(front: Front) -> tuple[float, str]:
    """What the values of the front are divided by for an axis, and its name with the unit."""
    max_value = max((value_of(front, point) for point in front.points), default=0.0)
    power = front.kind == "power"
    scales = words.WATTS if power else words.SCALES
    # One unit for the whole axis, that of the largest value.
    size, prefix = next((pair for pair in scales if max_value >= pair[0]), scales[-1])
    return size, f"{KINDS[front.kind]} ({prefix}{'' if power else '$'})"


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
    in_steps = front.stop_reason != "whole front" and any(point.plan for point in front.points)
    known = " found" * in_steps
    of = words.counted(front.size, "point")
    return f"{words.count(len(front.points))} of {of}{known}, each proven"


def marks(front: Front, instance: Instance, point: FrontPoint) -> str:
    """`knee`, `bound` or both: why a point is worth a look."""
    answer = "bound" if instance.workload[0].bounded else "fastest"
    flags = [("knee", point.knee), (answer, front.complete and point == answer_to(front, instance))]
    return ", ".join(name for name, on in flags if on)


def network(instance: Instance, design: Design) -> str:
    """`h100-hb64, 2-tier rail-only, 3.2:1`: what tells designs of a front apart."""
    fabric = design.fabric
    several, blocked = instance.cluster.has_several_counts, fabric.oversubscription > 1
    return ", ".join(
        that_hold(
            {
                words.counted(design.gpus, "GPU"): several,
                design.hb_domain.name: True,
                f"{fabric.tiers}-tier {fabric.title}" if fabric.tiers else "no network": True,
                words.ratio(fabric.oversubscription): blocked and fabric.tiers > 0,
                words.counted(design.spare_domains, "spare"): design.spare_domains > 0,
            }
        )
    )


def built_from(instance: Instance, point: FrontPoint) -> str:
    """What is built at a point, in a few words."""
    if point.best is not None:
        return network(instance, point.best.design)
    assert point.plan is not None
    text = decision(instance, point.plan) or words.counted(len(point.plan.parts), "network")
    gpus = sum(part.design.gpus for part in point.plan.parts if part.design)
    counted = words.counted(gpus, "GPU") if instance.cluster.has_several_counts and gpus else ""
    chosen = ", ".join(filter(None, (counted, point.plan.chosen.text)))
    return f"{chosen}: {text}" if chosen else text


def details(instance: Instance, front: Front, point: FrontPoint) -> list[tuple[str, str]]:
    """Everything about a point that fits into a list: name and what it is."""
    asked = {workload.name: workload for workload in instance.workload}
    fabric = None if point.best is None else point.best.design.fabric
    build = built_from(instance, point)
    rows = [("Build", build if point.best is None else words.design_text(point.best.design))]
    if fabric is not None and fabric.tiers:
        rows += [
            ("Switches", words.times(fabric.switch_count, fabric.switch_text)),
            ("Transceivers", words.count(fabric.transceiver_count)),
            ("NICs", fabric.nic.text),
        ]
    rows += [
        ("Capex", f"${point.cost.capex_usd:,.0f}"),
        ("Power", f"{point.cost.power_w:,.0f} W"),
        ("TCO", f"${point.cost.tco_usd:,.0f}"),
        ("Proof", f"no design that is as fast {VERBS[front.kind]}{_within(point)}"),
    ]
    for label, run in point.runs:
        of = "" if len(point.runs) == 1 else f" of {label}"
        rate = asked[run.name].in_own_units(run.iteration_time_s)
        split = f"{degrees(run.mapping)}, micro-batch {run.mapping.micro_batch}"
        time = f"{words.seconds(run.iteration_time_s)}{f', {rate}' if rate else ''}"
        rows += [
            (f"Iteration{of}", time),
            (f"Split{of}", split),
            (f"MFU{of}", words.model_utilisation(run).removeprefix("MFU ")),
        ]
    return rows


def amount_of(front: Front, point: FrontPoint) -> str:
    """The objective of a point as it stands in a sentence."""
    return words.amount(front.kind, value_of(front, point))


def front_headline(front: Front, instance: Instance) -> str:
    """What going from the fastest to the cheapest saves, and where the front bends."""
    if front.stop_reason == "infeasible":
        return "No design meets the limits of this front; proven infeasible."
    if not front.points:
        return f"Stopped early ({front.stop_reason}) before any point was proven."
    first, alone = front.points[0], len(front.points) == 1
    found = f"{_place(front, instance, first)} with {built_from(instance, first)}"
    saving = found if alone else _saving(front, instance)
    if not front.complete:
        of_all = "" if first.plan is not None else f" of {words.count(front.size)}"
        count_text = f"{words.counted(len(front.points), 'point')} proven{of_all}"
        return f"Stopped early ({front.stop_reason}), {count_text}: {saving}."
    if alone:
        return (
            "One design is the fastest, and no slower one within the limits of this front"
            f" {VERBS[front.kind]}{_within(first)}: {found}."
        )
    bends = [_place(front, instance, point) for point in front.points if point.knee]
    knees = f"; knee{'s' if len(bends) > 1 else ''} at {words.both(bends)}" if bends else ""
    return f"{saving}{knees}."


def _within(*points: FrontPoint) -> str:
    """How much less something else may cost than is proven of points; nothing where none may."""
    gap = max(point.claim.gap or 0.0 for point in points)
    return f" by more than {words.percent(gap)}" if gap > SOLVED else ""


def front_sentences(front: Front, instance: Instance) -> list[str]:
    """All sentences of a front: its headline, why points are missing, and how to read it."""
    return [front_headline(front, instance), *front.explanation, *front_notes(front, instance)]


def front_notes(front: Front, instance: Instance) -> list[str]:
    """What the bound of the instance costs, how many points are shown and proven, and the error of
    their times.
    """
    if not front.points:
        return []
    verb, workloads = VERBS[front.kind].split()[0], instance.workload
    gpus = instance.cluster.most_gpus
    error = max(
        largest_error(gpu, workload, gpus)
        for gpu in instance.cluster.kinds
        for workload in workloads
    )
    one_network = front.points[0].plan is None
    within = _within(*front.points)
    stay = "" if all(workload.calendar for workload in workloads) else "; other bounds stay fixed"
    longer = "longer training" if in_days(instance) else "a longer iteration"
    closer = "; points whose times are closer than that may be in the wrong order"
    close = closer if len(front.points) > 1 else ""
    alone = f", and none that {verb} as little is faster" if one_network else ""
    found = f"{words.count(len(front.points))} of {words.counted(front.size, 'point')}"
    between = "found; others may lie between them"
    if front.stop_reason == "whole front":
        between = "found; points whose times differ by less than 0.1% count as one"
    moved: dict[tuple[str, ...], str] = {
        ("budget",): (
            "Each point is the fastest design within a budget; budgets are evenly spaced. A"
            " design that is the fastest for several budgets is shown once, at what it costs."
        ),
        ("days",): (
            f"Each point is the {LEAST[front.kind]} design that trains within a number of days;"
            f" these are evenly spaced{stay}. A design that is the answer for several is shown"
            " once, at the days it needs."
        ),
    }
    notes = [
        _answer(front, instance) if front.complete else "",
        "TP groups may span several HB domains, as no plan with TP inside one meets the bounds."
        if front.tp_across
        else "",
        moved.get(
            front.over,
            f"Only the bounds of {words.both(front.over)} move; the others stay fixed."
            if 0 < len(front.over) < len(workloads)
            else "",
        ),
        turns_text(instance) if one_network and len(workloads) > 1 else "",
        f"Days here include the margin of {words.percent(workloads[0].time_margin)} on iteration"
        " times; the days in a plan do not."
        if with_margin(instance)
        else "",
        f"Shown: {found} {'on the front' if one_network else between}. Each is proven: no"
        f" {'design' if one_network else 'plan'} as fast {verb} less{within}{alone}.",
        f"At a knee the saving slows down: {longer} saves much up to it and far less beyond it."
        if any(point.knee for point in front.points)
        else "",
        f"Times are estimates, off by up to {words.percent(error)} on average{close}."
        if error
        else "",
    ]
    return [note for note in notes if note]


def _saving(front: Front, instance: Instance) -> str:
    """What the slowest point saves of what the fastest one takes."""
    first, last = front.points[0], front.points[-1]
    largest, saved = value_of(front, first), value_of(front, first) - value_of(front, last)
    share = f" ({words.percent(saved / largest)})" if largest else ""
    saves = f"saves {words.amount(front.kind, saved)} of {words.amount(front.kind, largest)}{share}"
    start, end = (time_words(instance, time_of(point)) for point in (first, last))
    if in_seconds(instance):
        margin = " with the margin" if with_margin(instance) else ""
        noun = f"of training{margin}" if in_days(instance) else "an iteration"
        return f"Allowing {end} {noun} in place of {start} {saves}"
    days = ", ".join(
        f"{name} {words.digits(first.workload_days[name], 4)} to"
        f" {words.digits(last.workload_days[name], 4)} days"
        for name in _reported_in_days(front)
    )
    return f"Allowing {end} in place of {start.split()[0]}{f' ({days})' if days else ''} {saves}"


def _place(front: Front, instance: Instance, point: FrontPoint) -> str:
    return f"{time_words(instance, time_of(point))} ({amount_of(front, point)})"


def _answer(front: Front, instance: Instance) -> str:
    """What the bounds of the instance cost at least."""
    answer, bound_given = answer_to(front, instance), bound_of(instance)
    bound = "the bounds"
    if bound_given is not None and in_seconds(instance):
        bound = f"the bound of {time_words(instance, bound_given)}"
    if answer is None:
        min_time = time_words(instance, time_of(front.points[0]))
        return f"No design meets {bound}: the fastest takes {min_time}."
    verb = VERBS[front.kind].split()[0]
    least = f"{amount_of(front, answer)}, with {built_from(instance, answer)}"
    if bound_given is None:
        return f"No bound is given; the fastest design {verb} {least}."
    here = " of this front" if front.explanation else ""  # which ends early
    return f"Within {bound} the {LEAST[front.kind]} design{here} {verb} {least}."


def front_report(front: Front, instance: Instance) -> list[RenderableType]:
    """The saving, the points, and how to read them; without points, why there are none."""
    headline = Text(front_headline(front, instance), style="bold")
    table = [front_table(front, instance)] if front.points else []
    return [headline, *front.explanation, *table, *front_notes(front, instance)]


def front_table(front: Front, instance: Instance) -> FigureTable:
    """The points by rising time and falling cost."""
    names = columns(front, instance)
    return figures(
        f"{'Power' if front.kind == 'power' else 'Cost'} against time",
        names[:2],
        names[2:],
        [row(front, instance, point) for point in front.points],
    )


def columns(front: Front, instance: Instance) -> tuple[str, ...]:
    """What the cells of `row` are; the first two are words."""
    days = "days with margin" if with_margin(instance) else "days"
    time = days if in_days(instance) else "s" if in_seconds(instance) else "x bounds"
    other_names = (name.split()[0] for kind, name in COLUMNS.items() if kind in _other_kinds(front))
    kept_free = any(
        workload.calendar and workload.time_margin > 0.0 for workload in instance.workload
    )
    own_days = (
        f"days{' with margin' if kept_free else ''},\n{name}" for name in _reported_in_days(front)
    )
    return "built from", "mark", time, *own_days, COLUMNS[front.kind], "saved", *other_names


def _other_kinds(front: Front) -> list[ObjectiveKind]:
    """What is shown of a bill besides the objective; nothing where days of several workloads take
    the room.
    """
    crowded = len(_reported_in_days(front)) > 1
    return [kind for kind in COLUMNS if kind != front.kind and not crowded]


def _reported_in_days(front: Front) -> tuple[str, ...]:
    """The workloads whose days have columns of their own: all that have any, where they are few."""
    names = tuple(front.points[0].workload_days) if front.points else ()
    return names if len(names) <= MOST_DAYS else ()


def row(front: Front, instance: Instance, point: FrontPoint) -> tuple[str, ...]:
    """A point; what it saves is a share of what the fastest one costs."""
    value, max_value = value_of(front, point), value_of(front, front.points[0])
    return (
        built_from(instance, point),
        marks(front, instance, point),
        words.digits(time_of(point), 4),
        *(words.digits(point.workload_days[name], 4) for name in _reported_in_days(front)),
        f"{value:,.0f}",
        words.percent((max_value - value) / max_value) if max_value else "-",
        *(words.amount(kind, point.cost.of(kind)) for kind in _other_kinds(front)),
    )
