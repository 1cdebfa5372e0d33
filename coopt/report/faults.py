"""What a plan does without each of its parts in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.workload import LONGEST_S
from coopt.report import words
from coopt.report.couplings import run_without
from coopt.report.facts import uptime_text
from coopt.report.traffic import COLLECTIVES, NOTHING_TRAINS
from coopt.report.words import Cell, figures

if TYPE_CHECKING:
    from coopt.plan.traffic import Fault, FaultedWorkload, Faults, Spares

SURVIVES = "Training survives the loss of any one part"
LATE = "; the loss of one kind of part makes a workload miss its bound"


def faults_report(faults: Faults) -> Iterator[RenderableType]:
    """A sentence, a table of parts, then spares and alignment."""
    yield Text(faults_headline(faults), style="bold")
    names = [workload.name for workload in faults.faults[0].workloads]
    if not names:
        return
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
    asked, parts = (
        [fault for fault in faults.faults if fault.slower is not None],
        dict[float, list[str]](),
    )
    for fault in asked:
        parts.setdefault(fault.slower or 1.0, []).append(fault.part)
    longer = words.both(
        f"{slower:g} times as long without {_part_list([*dict.fromkeys(of)])}"
        for slower, of in parts.items()
    )
    missed = any(not workload.within_bound for fault in asked for workload in fault.workloads)
    if longer:
        yield f"[robust] makes bounds {longer}; {'not ' if missed else ''}every bound is kept then."
    for fault in asked:
        for workload in fault.workloads:
            if workload.job is not None and fault.part != "GPU":  # it has the line of its domain
                yield f"Without {_part_list([fault.part])}, {run_without(workload.job)}."


def _spares(faults: Faults, spares: Spares) -> str:
    domain = (
        "One spare domain, with GPUs, servers and NICs, costs"
        f" {words.money(spares.spare_domain_usd)}; it has no switch ports of its own and takes the"
        " links of the one that it stands in for, by a patch panel or by hand."
    )
    idle = f"{words.counted(spares.idle_gpus_per_domain, 'idle GPU')} in each domain"
    standing_by = f"{words.counted(spares.domains_standing_by, 'domain')} standing by"
    reserves = [idle] if spares.survives_gpu else []
    reserves += [standing_by] if spares.domains_standing_by else []
    goes_on = any(fault.part == "GPU" and fault.effect != "stops" for fault in faults.faults)
    waits = " Training waits for a GPU that fails until it is repaired, or takes a spare domain."
    return (
        f"Spares: {', '.join(reserves) or 'none'}.{'' if reserves or goes_on else waits} {domain}"
    )
