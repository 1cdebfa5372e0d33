"""The first screen of a plan: the decision, the bill, what is nearest to its limit and what it all
rests on, in 40 lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from rich.console import RenderableType

from coopt.instance.schema import Instance
from coopt.instance.texts import both, grouped
from coopt.plan.couplings import network_of
from coopt.plan.parts import Cost, Item
from coopt.plan.schema import Plan
from coopt.plan.store import LimitCheck, plan_checks
from coopt.report import words
from coopt.report.assumptions import rests_on
from coopt.report.comparison import runners_tables, saving_text
from coopt.report.couplings import spending_table
from coopt.report.facts import (
    MOST_PACES,
    ON_SCREEN,
    asked_of,
    days_text,
    pace_text,
    plan_facts,
    servers_apart,
    standing_table,
    tco_sentence,
)
from coopt.report.notes import first_sentences, remarks, turns_text
from coopt.report.plan import plan_opening, proof_rows, rests_rows
from coopt.report.words import (
    FactTable,
    FigureTable,
    PlanFact,
    compared,
    facts,
    figures,
    listed,
    of_group,
    pieces,
)

if TYPE_CHECKING:
    from coopt.network.plan_networks import Baseline


MOST_LINES, MOST_BOUNDS = 8, 2
"""Lines of a table and limits that the first screen shows; the others have more slack."""

SCREEN = (40, 80)
"""Lines and columns of the first screen."""

MOST_NOTES = 5
"""Notes that the first screen shows, of those that may cost most."""


class Room(NamedTuple):
    """What a screen has room for: lines of a table, limits, notes, what the headline or --full
    says of one network, and what full bandwidth would cost; in brief, sentences are shortened.
    """

    lines: int = MOST_LINES
    bounds: int = MOST_BOUNDS
    notes: int = MOST_NOTES
    brief: bool = False
    detail: bool = True
    saving: bool = True


BRIEF = Room(brief=True)

BARE = BRIEF._replace(detail=False, saving=False)

ROOMS = (
    Room(),
    BRIEF,
    BRIEF._replace(detail=False),
    *(BARE._replace(notes=notes) for notes in (5, 3)),
    *(BARE._replace(notes=notes, bounds=1) for notes in (3, 2)),
    *(BARE._replace(notes=2, bounds=1, lines=lines) for lines in (6, 5)),
    *(BARE._replace(notes=1, bounds=1, lines=lines) for lines in (8, 6, 4, 2)),
)
"""From the one with most of it; a screen is as full as it can be."""


def plan_screen(
    instance: Instance,
    plan: Plan,
    baseline: Baseline | None = None,
    without_margin: float | None = None,
    columns: int = SCREEN[1],
    taken: int = 0,
) -> list[RenderableType]:
    """Any plan in at most 40 lines, less those `taken`, of 80 columns or more; `plan_report` has
    the rest.
    """
    first, screen = first_sentences(instance, plan), list[RenderableType]()
    if plan.cost is None:
        for most in range(len(first), -1, -1):
            above, more = _most_important(first, (), most)
            screen = pieces(
                *plan_opening(instance, plan, above),
                more,
                facts("Proof", proof_rows(instance, plan)),
                runners_tables(plan),
            )
            if words.height(screen, columns) <= SCREEN[0] - taken:
                break
        return screen
    notes = first, remarks(instance, plan)
    known = plan_facts(instance, plan)
    in_brief = [*rests_on(instance, plan, brief=True)]
    standing = standing_table(instance, plan, compact=True)
    for room in ROOMS:
        above, below = _most_important(*notes, room.notes)
        rests = rests_rows(instance, plan, without_margin, in_brief if room.brief else known)
        screen = pieces(
            *plan_opening(instance, plan, above),
            _decision(instance, plan, known, room),
            _short_bill(instance, plan, plan.cost, baseline, room),
            standing,
            _nearest_limits(instance, plan, room),
            below,
            facts("What the plan rests on", [*rests, proof_rows(instance, plan)[0]]),
            runners_tables(plan),
        )
        if words.height(screen, columns) <= SCREEN[0] - taken:
            break
    return screen


def _most_important(
    first: Sequence[str], further: Sequence[str], most: int
) -> tuple[list[str], list[str]]:
    """Notes above all else and those further below that a screen has room for, the first ones, and
    how many more there are.
    """
    above, below = [*first[:most]], [*further[: max(most - len(first), 0)]]
    more = len(first) + len(further) - len(above) - len(below)
    return above, [*below, *([f"{words.counted(more, 'more note')} with --full."] if more else [])]


def _decision(
    instance: Instance, plan: Plan, known: Sequence[PlanFact], room: Room
) -> list[RenderableType]:
    """What is built and how each workload runs on it; of many lines those with the least slack, and
    of many parts what they are built of.
    """
    alone, most = len(plan.runs) == 1, room.lines
    if len(plan.parts) > most and not plan.couplings.growth:
        return pieces(_folded(plan, most), _pace(instance, plan, room))
    if len(plan.parts) == 1:
        groups = ("network", "run") if alone else ("network",) * room.detail
        names = {*ON_SCREEN} - ({"Schedule"} if not room.detail else set())
        shown = [
            replace(fact, text=fact.shown.partition(":")[0])
            if fact.name == "Goodput" and not room.detail
            else fact
            for fact in known
            if fact.group in groups and fact.name in names
        ]
        order = [run.name for run in sorted(plan.runs, key=lambda run: run.slack)]
    else:
        titles = _as_they_stand(plan, known)
        ranked = sorted(
            (part for part in plan.parts if part.name in titles),
            key=lambda part: min((run.slack for run in part.workloads), default=1.0),
        )
        nearest = sorted(ranked[:most], key=lambda part: part.phase or 0.0)
        shown, order = [], [part.name for part in (*nearest, *ranked[most:])]
        known = [replace(fact, of=titles.get(fact.of, fact.of)) for fact in known]
        order = [titles[name] for name in order]
    rows = [fact for name in order[:most] for fact in of_group(known, "row", name)]
    rows = _of_one_domain(plan, rows) if room.brief else rows
    single, more = len(plan.parts) == 1, words.counted(len(order) - most, "more row")
    column = "Workload" if single else "Part"
    return pieces(
        listed("Decision", shown) if shown else None,
        None if single and alone else compared("", column, rows, compact=True),
        f"  {more}, none with less slack (--full)" if len(order) > most else None,
        turns_text(instance, plan.runs) if single and not alone else None,
        None if single and alone else _pace(instance, plan, room),
    )


def _of_one_domain(plan: Plan, rows: Sequence[PlanFact]) -> list[PlanFact]:
    """Rows of parts whose HB domain stands above the column, where all parts have the same one."""
    names = {network_of(part).hb_domain.name for part in plan.parts}
    name = min(names)
    return [
        replace(fact, name=name, value=fact.shown.replace(f" x {name}", ""))
        if len(names) == 1 and fact.name == "HB domains"
        else fact
        for fact in rows
    ]


def _folded(plan: Plan, most: int) -> FigureTable:
    """What many parts are built of: those with domains of one kind and the same fabric in a line,
    with the least slack of any of them; of too many kinds of networks those with most GPUs.
    """
    kinds = grouped(
        ((part.site, network.hb_domain.name, fabric), (part, network))
        for part in plan.parts
        for network in (network_of(part),)
        for fabric in (part.design.fabric.title if part.design else "direct",)
    )
    rows = []
    for (site, domain, fabric), built in kinds.items():
        slack, name = min((run.slack, run.name) for part, _ in built for run in part.workloads)
        gpus = sum(network.gpus for _, network in built)
        domains = words.times(sum(network.hb_domain.count for _, network in built), domain)
        row = (words.counted(len(built), "cluster"), *filter(None, [site]), domains, fabric, name)
        rows.append((gpus, (*row, words.count(gpus), words.percent(slack))))
    several = any(part.site for part in plan.parts)
    names = ("Networks", *["site"] * several, "HB domains", "fabric", "least slack")
    ranked = [row for _, row in sorted(rows, key=lambda row: -row[0])]
    return figures("", names, ("GPUs", "slack"), ranked[:most], compact=True)


def _as_they_stand(plan: Plan, known: Sequence[PlanFact]) -> dict[str, str]:
    """Parts by name, those of a network that stands and trains as before as one, with the first
    name and all years.
    """
    alike: dict[tuple[object, ...], list[str]] = {}
    for part in plan.parts:
        said = ((fact.name, fact.shown) for fact in of_group(known, "row", part.name))
        alike.setdefault((part.slot, *said), []).append(part.name)
    return {
        first: ", ".join([first, *(name.rpartition(", ")[2] for name in later)])
        for first, *later in alike.values()
    }


def _pace(instance: Instance, plan: Plan, room: Room) -> str | None:
    """How long training takes in the last phase, or a number of tokens of the slowest workloads;
    of those that take turns also how long one after the other.
    """
    last = [part for part in plan.parts if part.phase == plan.parts[-1].phase]
    asked = [pair for part in last for pair in asked_of(instance, part)]
    most = 1 if room.brief else MOST_PACES
    in_turn = instance.sharing.mode == "time" and not plan.couplings.growth
    apart = in_turn and len(plan.parts) > 1  # of one part that is told of its turns
    told = "; ".join(
        filter(
            None,
            (
                days_text(instance, asked, most, in_turn=apart),
                pace_text(instance, asked, most, in_turn=in_turn),
            ),
        )
    )
    phase = "In the last phase, " if plan.couplings.growth else ""
    return words.sentence(f"{phase}{told}") if told else None


def _short_bill(
    instance: Instance, plan: Plan, cost: Cost, baseline: Baseline | None, room: Room
) -> list[RenderableType]:
    """The bill by phase, by product, or by kind where products are many; what full bandwidth would
    cost more.
    """
    if plan.couplings.growth:
        return [spending_table(plan, cost)]
    # A screen has room for a few lines only; `coopt bom` has them all.
    apart = [*servers_apart(cost.items, instance)]
    lines = apart if len(apart) <= room.lines else cost.items
    groups = (
        [[item] for item in lines]
        if len(lines) <= room.lines
        else [list(items) for _, items in groupby(lines, key=lambda item: item.kind)]
    )
    table = figures(
        "",
        ("Bill", "kind"),
        ("count", "$", "W"),
        map(_bill_line, groups),
        ("total", "", "", *(words.exact(round(n)) for n in (cost.capex_usd, cost.power_w))),
        compact=True,
    )
    compares = baseline is not None and plan.design is not None and plan.design.fabric.tiers
    return pieces(
        table,
        saving_text(cost, baseline.cost, None if room.brief else baseline.same_ratio)
        if baseline is not None and compares and room.saving
        else None,
        tco_sentence(instance, cost, rates=not room.brief)
        if instance.objective.minimize == "tco"
        else None,
    )


def _bill_line(items: Sequence[Item]) -> tuple[str, ...]:
    """Lines of one kind as one; counts of different products are not added up."""
    products = list(dict.fromkeys(item.item for item in items))
    alone = len(products) == 1
    return (
        products[0] if alone else f"{len(products)} products",
        words.kind(items[0].kind),
        words.count(sum(item.count for item in items)) if alone else "",
        words.exact(round(sum(item.usd for item in items))),
        words.exact(round(sum(item.w for item in items))),
    )


TIMES = ("time", "days", "with margin")
"""How the checks of times of workloads begin."""


def _nearest_limits(instance: Instance, plan: Plan, room: Room) -> FactTable:
    """The limits that are nearest, times of workloads aside, which stand above; equal ones as
    one, of which the first are named.
    """
    checks = [
        check
        for check in plan_checks(instance, plan)
        if check.limit and not any(f"{time}, " in check.name for time in TIMES)
    ]
    names: dict[str, list[str]] = {}
    for check in sorted(checks, key=lambda check: 1 - check.value / check.limit):
        of = names.setdefault(_limit(instance, check), [])
        of.append(check.name.rpartition(", ")[2] if of else check.name)
    told = 1 if room.brief else MOST_PACES
    nearest = [
        (both(of if len(of) <= told + 1 else [*of[:told], f"{len(of) - told} others"]), text)
        for text, of in names.items()
    ]
    return facts("Nearest limits", nearest[: room.bounds])


def _limit(instance: Instance, check: LimitCheck) -> str:
    """How much of a limit is left; of one on IT power what the hall has to feed."""
    value, limit = (words.with_unit(number, check.unit) for number in (check.value, check.limit))
    share = words.percent(abs(1 - check.value / check.limit))
    left = f"{share} {'left' if check.ok else 'TOO MUCH'}"
    pue = instance.objective.pue
    cooled = f"; with cooling {words.with_unit(check.value * pue, check.unit)} (PUE {pue:g})"
    # Sites have a PUE each.
    is_cooled = check.name.startswith("power") and not instance.site
    return f"{value} of {limit}, {left}{cooled if is_cooled else ''}"
