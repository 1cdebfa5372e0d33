"""What a plan stands: lost parts, and prices that turn out otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.couplings import Prices
from coopt.instance.schema import Instance
from coopt.instance.workload import LONGEST_S
from coopt.plan.couplings import Outlooks, Survived, Turn
from coopt.plan.schema import Plan, WorkloadPlan
from coopt.report import words
from coopt.report.parts import degrees, uptime_text
from coopt.report.tables import Cell, facts, figures
from coopt.report.traffic import COLLECTIVES, NOTHING_TRAINS

if TYPE_CHECKING:
    from coopt.plan.difference import Difference
    from coopt.plan.evaluation import PlanEvaluation
    from coopt.plan.traffic import Fault, FaultedWorkload, Faults, Spares

SURVIVES = "Training survives the loss of any one part"
AIM = "outlooks.aim"
"""The key of the aim in the difference of plans."""
LATE = "; the loss of one kind of part makes a workload miss its bound"


def robust_tables(instance: Instance, plan: Plan) -> Iterator[RenderableType]:
    """Terms and losses, and for regret every way prices may turn out; nothing where nothing may
    turn out otherwise.
    """
    kind, outlooks = plan.objective.kind, plan.couplings.outlooks
    rows = [*_efficiency_rows(plan.couplings.outlooks), *_loss_rows(plan)]
    if outlooks is not None:
        rows += _aim_rows(instance, kind, outlooks)
    if not rows:
        return
    yield ""
    yield facts("What it stands", rows)
    if outlooks is not None and outlooks.turns:
        yield ""
        yield figures(
            "However prices turn out",
            ("factors on prices",),
            ("this plan", "best plan", "regret"),
            [
                (
                    _factors(turn),
                    *(words.amount(kind, value) for value in (turn.value, turn.best, turn.regret)),
                )
                for turn in outlooks.turns
            ],
        )


def doubt_rows(instance: Instance) -> Iterator[tuple[str, str]]:
    """What a question asks a plan to stand."""
    robust = instance.robust
    if robust is None:
        return
    if losses := [
        f"one {part} (bounds {slower:g} times as long)" for part, slower in instance.losses.items()
    ]:
        yield "Losses", ", ".join(losses)
    if spans := {
        kind: ends for kind, ends in robust.prices.intervals.items() if ends != (1.0, 1.0)
    }:
        yield (
            "Prices",
            ", ".join(
                f"{kind} x {low_factor:g} to {high_factor:g}"
                for kind, (low_factor, high_factor) in spans.items()
            ),
        )
    if robust.efficiency != (1.0, 1.0):
        yield "Efficiency", "x {:g} to {:g}".format(*robust.efficiency)
    yield (
        "Aim",
        (
            "least cost at the worst prices"
            if robust.aim == "worst-case"
            else "least regret at any prices"
        ),
    )


def prices_of_value(plan: Plan) -> str:
    """At which prices the objective is, where it would differ at those of the instance."""
    return " at the worst prices" if plan.at_worst_prices else ""


def value_name(instance: Instance, kind: str) -> str:
    """What the value of an objective measures: `capex`, or `regret of capex`."""
    return f"regret of {kind}" if instance.minimizes_regret else kind


def regret_words(instance: Instance, evaluation: PlanEvaluation) -> str:
    """The regret of a given plan behind what it costs; nothing where none is minimised, or where it
    is not known.
    """
    if not instance.minimizes_regret or evaluation.objective is None:
        return ""
    return f", a regret of {words.amount(evaluation.kind, evaluation.objective)}"


def unknown_regret(instance: Instance, evaluation: PlanEvaluation) -> Iterator[str]:
    """That the regret of a given plan is not known."""
    if instance.minimizes_regret and evaluation.objective is None:
        yield (
            "Its regret is not known: it is measured from the best plans of this instance, which"
            " were not sought."
        )


def price_notes(difference: Difference) -> Iterator[str]:
    """That the bills of two plans are at other prices, where one of them alone aims at the worst
    case.
    """
    aims = [(change.before, change.after) for change in difference.changes if change.key == AIM]
    if any("worst-case" in pair for pair in aims):
        yield (
            "The bill of a plan that aims at the worst case is at the worst prices, another at"
            " those of its instance."
        )


def _efficiency_rows(outlooks: Outlooks | None) -> Iterator[tuple[str, str]]:
    low_share, high_share = (1.0, 1.0) if outlooks is None else outlooks.efficiency
    if (low_share, high_share) != (1.0, 1.0):
        yield (
            "Efficiency",
            (
                f"{low_share:g} to {high_share:g} times that of the catalog; bounds are met at"
                f" {low_share:g}"
            ),
        )


def _loss_rows(plan: Plan) -> Iterator[tuple[str, str]]:
    """Every loss and how workloads run after it, by part where there are several."""
    for losses in plan.couplings.losses:
        part = f"{losses.part}: " if len(plan.parts) > 1 else ""
        for loss in losses.survived:
            yield "Loss", f"{part}{_loss(loss)}"
            for run in loss.workloads:
                yield "", _run_text(run)


def _aim_rows(instance: Instance, kind: str, outlooks: Outlooks) -> Iterator[tuple[str, str]]:
    robust = instance.robust
    if robust is None or (robust.prices == Prices() and robust.aim == "worst-case"):
        return
    aim = (
        "least cost at the worst prices"
        if outlooks.at_worst_prices
        else "least regret over all prices"
    )
    yield "Aim", aim
    yield "Objective", f"{words.amount(kind, outlooks.list_value)} at list prices"


def _loss(loss: Survived) -> str:
    if loss.slowdown is None:
        return (
            f"any one {loss.part} lost: training goes on with fewer GPUs; "
            f"every bound, {loss.slower:g} times as long, is still met"
        )
    return (
        f"any one {loss.part} lost: traffic of a domain takes {loss.slowdown:.3g} times as long; "
        f"every bound, {loss.slower:g} times as long, is still met"
    )


def _run_text(run: WorkloadPlan) -> str:
    """How a workload runs without a domain."""
    gpus = math.prod(inside for name, (inside, _) in run.placement.items() if name != "ep")
    domains = words.counted(run.gpus // gpus, "domain")
    return (
        f"{run.name}: {words.count(run.gpus)} GPUs, {gpus} in each of {domains},"
        f" {degrees(run.mapping)}, {words.seconds(run.iteration_time_s)} of"
        f" {words.seconds(run.bound_s)}"
    )


def _factors(turn: Turn) -> str:
    changes = [f"{kind} {factor:g}" for kind, factor in turn.factors.items() if factor != 1.0]
    return ", ".join(changes) or "as listed"


def faults_report(faults: Faults) -> Iterator[RenderableType]:
    """A sentence, a table of parts, then spares and alignment."""
    yield Text(faults_headline(faults), style="bold")
    names = [workload.name for workload in faults.faults[0].workloads]
    if not names:
        return
    yield ""
    times = names if len(names) > 1 else ["iteration"]
    yield figures(
        "Without one",
        ("part", "what keeps it going"),
        ("how many", *times),
        map(_row, faults.faults),
    )
    yield from _asked(faults)
    if faults.spares is not None:
        yield _spares(faults, faults.spares)
    for outage in faults.interrupted:
        yield f"{outage.workload}: {uptime_text(outage.uptime)}."
        yield (
            f"With 0.1% of the GPUs gone, {words.percent(1 - outage.replicas_alone)} of its"
            " replicas stand still without spare domains,"
            f" {words.percent(1 - outage.replicas_with_spares)} with those of the plan."
        )
    for workload in faults.unaligned:
        traffic = words.both(COLLECTIVES[kind] for kind in workload.traffic)
        yield (
            f"Not aligned to rails: {traffic} of {workload.workload}. Where rails are not joined"
            " above the leaves, it is forwarded inside the domain; check that the communication"
            " library does so."
        )


def faults_headline(faults: Faults) -> str:
    """The worst that one lost part does."""
    if not faults.faults[0].workloads:
        return NOTHING_TRAINS
    stops = [fault.part for fault in faults.faults if fault.effect == "stops"]
    slowdowns = [fault.slowdown for fault in faults.faults if fault.slowdown is not None]
    late_kinds = sum(
        any(not workload.within_bound for workload in fault.workloads)
        for fault in faults.faults
        if fault.slowdown
    )
    worst = max(slowdowns, default=1.0)
    text = (
        f"Training survives the loss of any one part but {_part_list(stops)}" if stops else SURVIVES
    )
    late_text = (
        f"; the loss of any of {words.counted(late_kinds, 'kind')} of part makes a workload miss"
        " its bound"
    )
    tail = late_text if late_kinds > 1 else LATE if late_kinds else ""
    restarts = list(
        dict.fromkeys(
            fault.part for fault in faults.faults if fault.restarts and fault.effect != "stops"
        )
    )
    restart_text = f" The loss of {_part_list(restarts)} costs a restart." if restarts else ""
    return f"{text}, at worst {worst:.3f} times as long an iteration{tail}.{restart_text}"


def _part_list(parts: list[str]) -> str:
    names = [
        f"{'an' if part[0] in 'AEIOUH' and part[:2] != 'He' else 'a'} {part}" for part in parts
    ]
    return words.alternatives(names)


def _row(fault: Fault) -> tuple[Cell, ...]:
    restart = "restart; " if fault.restarts and fault.effect != "stops" else ""
    times = (_time(workload, of_bound=fault.slower is not None) for workload in fault.workloads)
    return fault.part, restart + fault.remedy, words.count(fault.count), *times


def _time(workload: FaultedWorkload, *, of_bound: bool) -> str:
    if workload.iteration_time_s is None:
        return "stops"
    allowed = (
        f" of {words.seconds(workload.bound_s)}"
        if of_bound and workload.bound_s < LONGEST_S
        else ""
    )
    return (
        words.seconds(workload.iteration_time_s)
        + allowed
        + ("" if workload.within_bound else ", late")
    )


def _asked(faults: Faults) -> Iterator[str]:
    """By how much bounds are longer without what `[robust]` lists, and how workloads run then that
    run otherwise.
    """
    asked, parts = _losses_asked(faults), dict[float, list[str]]()
    for slower, fault in asked:
        parts.setdefault(slower, []).append(fault.part)
    if parts:
        longer = (
            f"{slower:g} times as long without {_part_list([*dict.fromkeys(of)])}"
            for slower, of in parts.items()
        )
        missed = any(
            not workload.within_bound for _, fault in asked for workload in fault.workloads
        )
        kept = "not every bound is kept then" if missed else "every bound is kept then"
        yield f"[robust] makes bounds {words.both(longer)}; {kept}."
    for _, fault in asked:
        for workload in fault.workloads:
            if workload.job is not None and fault.part != "GPU":  # it has the line of its domain
                yield f"Without {_part_list([fault.part])}, {_run_text(workload.job)}."


def _losses_asked(faults: Faults) -> list[tuple[float, Fault]]:
    """The losses that `[robust]` asks a plan to stand, each with the factor by which bounds are
    longer then.
    """
    return [(fault.slower, fault) for fault in faults.faults if fault.slower is not None]


def _spares(faults: Faults, spares: Spares) -> str:
    domain = (
        "One spare domain, with GPUs, servers and NICs, costs"
        f" {words.money(spares.spare_domain_usd)}; it has no switch ports of its own and takes the"
        " links of the one that it stands in for, by a patch panel or by hand."
    )
    reserves = (
        [f"{words.counted(spares.idle_gpus_per_domain, 'idle GPU')} in each domain"]
        if spares.survives_gpu
        else []
    )
    if spares.domains_standing_by:
        reserves.append(f"{words.counted(spares.domains_standing_by, 'domain')} standing by")
    if reserves:
        return f"Spares: {', '.join(reserves)}. {domain}"
    waits = "Training waits for a GPU that fails until it is repaired, or takes a spare domain. "
    return f"Spares: none. {'' if _stands_gpu(faults) else waits}{domain}"


def _stands_gpu(faults: Faults) -> bool:
    return any(fault.part == "GPU" and fault.effect != "stops" for fault in faults.faults)
