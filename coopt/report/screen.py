"""A plan on one screen: the decision, its bill, times against bounds, margins, and what is
proven.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.schema import Instance
from coopt.instance.variants import workloads_in
from coopt.network.orders import plan_order_notes
from coopt.network.part_networks import network_of
from coopt.network.plan_networks import Baseline
from coopt.plan.couplings import Part
from coopt.plan.evaluation import LimitCheck, plan_checks
from coopt.plan.parts import DirectLinks
from coopt.plan.schema import Cost, Design, Item, Plan
from coopt.report import words
from coopt.report.building import leaf_notes
from coopt.report.comparison import alike_sentence, rivals_sentence, runners_tables, saving_sentence
from coopt.report.couplings import spending_table
from coopt.report.explanation import claim_text
from coopt.report.parts import (
    degrees,
    schedule,
    side_by_side,
    split,
    tco_sentence,
    tiers_of,
    trained_text,
    uptime_text,
)
from coopt.report.remarks import (
    accuracy,
    first_sentences,
    idle_note,
    margin_note,
    memory_note,
    numbers_between,
    tp_across,
    turns_text,
)
from coopt.report.robust import value_name
from coopt.report.sentence import headline
from coopt.report.tables import FactTable, FigureTable, facts, figures

MOST_LINES, MOST_BOUNDS = 8, 3
"""Lines of a table and bounds that are shown; the others have more slack, and `--full` shows them.
"""


def plan_screen(
    instance: Instance,
    plan: Plan,
    baseline: Baseline | None = None,
    without_margin: float | None = None,
) -> Iterator[RenderableType]:
    """A plan of any kind of question in at most 40 lines of 80 columns; `plan_report` has the
    rest.
    """
    yield Text(headline(instance, plan), style="bold")
    yield from first_sentences(instance, plan)
    if plan.cost is not None:
        if plan.rivals is not None:
            yield rivals_sentence(plan.rivals)
        yield ""
        yield from _decision(instance, plan)
        yield ""
        yield from _bill(instance, plan, plan.cost, baseline)
        yield ""
        yield _margins(instance, plan)
        yield from remarks(instance, plan, without_margin)
    yield ""
    yield facts("Proof", _proof_rows(instance, plan))
    if plan.alternatives_stop is not None:
        yield ""
        yield from runners_tables(plan)


def remarks(instance: Instance, plan: Plan, without_margin: float | None = None) -> Iterator[str]:
    """What one has to know before one builds: what was not asked for, how far times are off, what a
    loss does, and which modules to order.
    """
    yield from numbers_between(instance, plan)
    yield from idle_note(instance, plan)
    yield from accuracy(instance, plan.runs)
    yield from memory_note(instance, plan.runs)
    yield from tp_across(plan.runs, none_inside=plan.tp_across)
    yield from margin_note(instance, plan, without_margin)
    networks = [network_of(part) for part in plan.parts]
    yield from leaf_notes([network for network in networks if isinstance(network, Design)])
    yield from plan_order_notes(instance, plan)


def _decision(instance: Instance, plan: Plan) -> Iterator[RenderableType]:
    """What is built and how each workload runs on it; of many lines those with the least slack."""
    if len(plan.parts) == 1:
        (part,) = plan.parts
        yield _network(instance, part)
        if len(part.workloads) > 1:
            yield ""
            yield from _runs(instance, plan)
            yield turns_text(instance)
    else:
        yield from _parts(instance, plan)


def _network(instance: Instance, part: Part) -> FactTable:
    """The only network, and how its workload runs where there is one."""
    network = network_of(part)
    domain = network.hb_domain
    idle = f", {words.count(network.spare_gpus)} idle spares" if network.spare_gpus else ""
    if isinstance(network, Design) and network.spare_domains:
        idle += f" ({words.counted(network.spare_domains, 'domain')} standing by)"
    racks = "" if network.racks is None else f", {words.counted(network.racks, 'rack')}"
    rows = [
        (
            "HB domains",
            (
                f"{words.times(domain.count, domain.name)} of"
                f" {words.counted(domain.size, 'GPU')}{racks}"
            ),
        ),
        ("GPUs", f"{words.times(network.gpus, instance.cluster.gpu.name)} train{idle}"),
        ("Network", _network_text(network)),
    ]
    if len(part.workloads) == 1:
        (run,) = part.workloads
        (workload,) = instance.workload
        took = words.allowed(run.iteration_time_s, run.bound_s)
        training_time = trained_text(run, workload)
        rows += [
            ("Split", split(run)),
            ("Schedule", schedule(run.mapping, workload.options.schedule)),
            (
                "Iteration",
                (
                    f"{took}{f' ({training_time})' if training_time else ''}, MFU"
                    f" {words.percent(run.mfu)}"
                ),
            ),
        ]
        if run.uptime is not None:
            rows.append(("Goodput", uptime_text(run.uptime)))
    return facts("Decision", rows)


def _network_text(network: Design | DirectLinks) -> str:
    if isinstance(network, DirectLinks):
        return f"{words.counted(network.links, 'direct link')} of {network.nic.name}"
    fabric = network.fabric
    if not fabric.tiers:
        return "none, one HB domain holds every GPU"
    networks = side_by_side(fabric.kind, fabric.planes, fabric.nic.planes)
    ratio = fabric.oversubscription
    bandwidth = "full bandwidth" if ratio <= 1 else f"{words.ratio(ratio)} oversubscribed"
    return f"{tiers_of(fabric)}{networks}, {bandwidth}"


def _runs(instance: Instance, plan: Plan) -> Iterator[RenderableType]:
    """How each workload runs on the only network."""
    workload_of = {workload.name: workload for workload in instance.workload}
    dated = any(workload.calendar for workload in instance.workload)
    rows = [
        (
            run.name,
            degrees(run.mapping),
            words.seconds(run.iteration_time_s),
            words.bound(run.bound_s),
            *((words.days_of(run, workload_of[run.name]),) if dated else ()),
            words.free(run.slack, run.bound_s),
        )
        for run in sorted(plan.runs, key=lambda run: run.slack)
    ]
    return _first_lines(
        ("Workload", "split"), ("iteration", "bound", *(("days",) if dated else ()), "slack"), rows
    )


def parts_table(instance: Instance, plan: Plan) -> FigureTable:
    """Every part with its domains, the GPUs that train there, and its workload with the least
    slack, in order.
    """
    sited = len({part.site for part in plan.parts}) > 1
    purchases_usd = plan.couplings.purchases_usd
    title = (
        "What stands when" if purchases_usd else "What stands where" if sited else "Who has what"
    )
    names, numbers, rows = _part_rows(instance, plan, plan.parts)
    if purchases_usd and len(purchases_usd) == len(
        plan.parts
    ):  # one network: what a phase buys is bought for it
        numbers = (*numbers, "buys $")
        rows = [(*row, _rounded(usd)) for row, usd in zip(rows, purchases_usd, strict=True)]
    return figures(title, names, numbers, rows)


def _parts(instance: Instance, plan: Plan) -> Iterator[RenderableType]:
    """The parts with the least slack, phases in turn, on few lines."""
    ranked = sorted(
        plan.parts, key=lambda part: min((run.slack for run in part.workloads), default=1.0)
    )
    parts_shown = sorted(ranked[:MOST_LINES], key=lambda part: part.phase or 0.0)
    yield from _first_lines(*_part_rows(instance, plan, (*parts_shown, *ranked[MOST_LINES:])))


def _part_rows(
    instance: Instance, plan: Plan, parts: Iterable[Part]
) -> tuple[tuple[str, ...], tuple[str, ...], list[tuple[str, ...]]]:
    """Names of the columns of words and of numbers, and a row for each part."""
    rows: list[tuple[str, ...]] = []
    dated = any(
        workload.calendar for part in plan.parts for workload in workloads_in(instance, part.phase)
    )
    goodput = ("goodput",) if any(run.uptime for run in plan.runs) else ()
    numbers = ("GPUs", "iteration", *(("days",) if dated else ()), *goodput, "slack")
    for part in parts:
        network = network_of(part)
        fabric = (
            "direct"
            if isinstance(network, DirectLinks)
            else network.fabric.kind
            if network.fabric.tiers
            else "-"
        )
        training = _training(instance, part, dated=dated) or ("-",) * len(numbers[1:])
        rows.append(
            (part.name, words.domains_built(network), fabric, words.count(network.gpus), *training)
        )
    return ("Part", "HB domains", "fabric"), numbers, rows


def _training(instance: Instance, part: Part, *, dated: bool) -> tuple[str, ...]:
    """How the workload with the least slack runs on a part; nothing where none trains there any
    more.
    """
    if not part.workloads:
        return ()
    # Of several workloads the tightest is shown: if that one is in time, so are the others.
    run = min(part.workloads, key=lambda run: run.slack)
    of = f"{words.digits(run.iteration_time_s, 4)} of {words.seconds(run.bound_s)}"
    workload = next(
        candidate for candidate in workloads_in(instance, part.phase) if candidate.name == run.name
    )
    days = (words.days_of(run, workload),) if dated else ()
    goodput = (words.percent(run.uptime.goodput),) if run.uptime else ()
    return of, *days, *goodput, words.percent(run.slack)


def _first_lines(
    names: Sequence[str], numbers: Sequence[str], rows: Sequence[Sequence[str]]
) -> Iterator[RenderableType]:
    """The first lines of a table, whose slack is the least, and how many there are more."""
    yield figures("", names, numbers, rows[:MOST_LINES], compact=True)
    if len(rows) > MOST_LINES:
        yield f"  and {words.count(len(rows) - MOST_LINES)} more, which have more slack"


def _bill(
    instance: Instance, plan: Plan, cost: Cost, baseline: Baseline | None
) -> Iterator[RenderableType]:
    """The bill by phase, by product, or by kind where products are many; what full bandwidth would
    cost more.
    """
    rows: list[tuple[str, ...]]
    if len(plan.couplings.years) > 1:
        yield spending_table(plan, cost)  # which has a column of electricity
        return
    if len(cost.items) <= MOST_LINES:
        rows = [
            (
                item.item,
                words.kind(item.kind),
                words.count(item.count),
                _rounded(item.usd),
                _rounded(item.w),
            )
            for item in cost.items
        ]
    else:
        # A screen has room for a few lines only; `coopt bom` has them all.
        rows = [
            _kind_line(kind, list(items))
            for kind, items in groupby(cost.items, key=lambda item: item.kind)
        ]
    total = ("total", "", "", _rounded(cost.capex_usd), _rounded(cost.power_w))
    yield figures("", ("Bill", "kind"), ("count", "$", "W"), rows, total=total, compact=True)
    if baseline is not None and plan.design is not None and plan.design.fabric.tiers:
        yield " ".join(
            filter(None, (saving_sentence(cost, baseline.cost), alike_sentence(cost, baseline)))
        )
    if instance.objective.minimize == "tco":
        yield tco_sentence(instance, cost)


def _kind_line(kind: str, items: list[Item]) -> tuple[str, str, str, str, str]:
    """The lines of a bill of one kind as one; counts of different products are not added up."""
    products = list(dict.fromkeys(item.item for item in items))
    name = products[0] if len(products) == 1 else f"{len(products)} products"
    count_text = words.count(sum(item.count for item in items)) if len(products) == 1 else ""
    return (
        name,
        kind,
        count_text,
        _rounded(sum(item.usd for item in items)),
        _rounded(sum(item.w for item in items)),
    )


def _rounded(number: float) -> str:
    return words.exact(round(number))


def _margins(instance: Instance, plan: Plan) -> FactTable:
    """The limits that are nearest, times of workloads aside, which stand above."""
    checks = [check for check in plan_checks(instance, plan) if check.unit != "s" and check.limit]
    nearest = sorted(checks, key=lambda check: 1 - check.value / check.limit)
    return facts(
        "Nearest limits",
        [
            (
                check.name,
                (
                    f"{words.with_unit(check.value, check.unit)} of"
                    f" {words.with_unit(check.limit, check.unit)},"
                    f" {words.percent(1 - check.value / check.limit)}"
                    f" {'left' if check.ok else 'TOO MUCH'}{_cooled(instance, check)}"
                ),
            )
            for check in nearest[:MOST_BOUNDS]
        ],
    )


def _cooled(instance: Instance, check: LimitCheck) -> str:
    """What a hall has to feed for a limit on power, which holds for IT."""
    pue = instance.objective.pue
    if not check.name.startswith("power"):
        return ""
    return f"; with cooling {words.with_unit(check.value * pue, check.unit)} (PUE {pue:g})"


def _proof_rows(instance: Instance, plan: Plan) -> Iterator[tuple[str, str]]:
    """What is proven, from how much, and how long that took."""
    solver = plan.solver
    if plan.status != "infeasible":
        yield (
            "Objective",
            claim_text(plan.objective, name=value_name(instance, plan.objective.kind), whole=True),
        )
    noun = "islands" if instance.sharing.mode == "partition" else "mappings"
    searched = f"{words.count(solver.columns_enumerated)} {noun}"
    networks = f" on {words.counted(solver.families, 'network')}" if solver.families else ""
    yield (
        "Searched",
        (
            f"{searched}{networks} in {plan.timing_s.total:.2f} s, {plan.solver.name}"
            f" {plan.solver.version}"
        ),
    )
