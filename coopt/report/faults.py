"""What a plan does without each of its parts in turn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.workload import LONGEST_S
from coopt.report import words
from coopt.report.couplings import run_without
from coopt.report.facts import uptime_text
from coopt.report.traffic import COLLECTIVES, NOTHING_TRAINS
from coopt.report.words import Cell, figures, pieces

if TYPE_CHECKING:
    from coopt.plan.traffic import Fault, FaultedWorkload, Faults, Interrupted, Spares

SURVIVES = "Training survives the loss of any one part"


def faults_report(faults: Faults) -> list[RenderableType]:
    """A sentence, a table of parts, then spares and traffic between separate rails."""
    headline = Text(faults_headline(faults), style="bold")
    names = [workload.name for workload in faults.faults[0].workloads]
    if not names:
        return [headline]
    times = names if len(names) > 1 else ["iteration"]
    words_of, numbers = ("part", "how training continues"), ("parts", *times)
    return pieces(
        headline,
        figures("After the loss of one part", words_of, numbers, map(_row, faults.faults)),
        _required(faults),
        None if faults.spares is None else _spares(faults, faults.spares),
        *[
            (
                f"{outage.workload}: {uptime_text(outage.uptime)}.",
                _idle_replicas(outage, faults.spares),
            )
            for outage in faults.interrupted
        ],
        [
            f"Rails are separate, but {words.both(COLLECTIVES[kind] for kind in workload.traffic)}"
            f" traffic of {workload.workload} goes from one to another: the plan assumes that it is"
            " forwarded inside the HB domain. Check that the communication library does so."
            for workload in faults.unaligned
        ],
    )


def faults_headline(faults: Faults) -> str:
    """The worst that one lost part does."""
    if not faults.faults[0].workloads:
        return NOTHING_TRAINS
    stops = [fault.part for fault in faults.faults if fault.effect == "stops"]
    slowdowns = [fault.slowdown for fault in faults.faults if fault.slowdown is not None]
    late = [
        fault.part
        for fault in faults.faults
        if fault.slowdown and any(not workload.within_bound for workload in fault.workloads)
    ]
    late_text = (
        f"; after the loss of {_part_list(late)} it is longer than a bound allows" if late else ""
    )
    if not slowdowns:
        return f"Training stops after the loss of {_part_list(stops)}."
    longest = max(slowdowns)
    longer = (
        f"takes at most {longest:.3f} times as long" if longest >= 1.0005 else "takes no longer"
    )
    restarts = dict.fromkeys(
        fault.part for fault in faults.faults if fault.restarts and fault.effect != "stops"
    )
    restart_text = f" The loss of {_part_list(restarts)} costs a restart." if restarts else ""
    of_core = " of the core" if faults.spares is None else ""
    return (
        f"{SURVIVES}{of_core}{f' except {_part_list(stops)}' if stops else ''}; an iteration then"
        f" {longer}{late_text}.{restart_text}"
    )


def _idle_replicas(outage: Interrupted, spares: Spares | None) -> str:
    idle = words.percent(1 - outage.replicas_alone)
    text = f"With 0.1% of the GPUs failed, {idle} of this workload's replicas are idle"
    if spares is None or not spares.domains_standing_by:
        return f"{text}."
    spared = words.percent(1 - outage.replicas_with_spares)
    return f"{text} without spare domains, and {spared} with the plan's spares."


def _part_list(parts: Iterable[str]) -> str:
    return words.alternatives(
        f"{'an' if part.startswith(('HB', 'a')) else 'a'} {part}" for part in parts
    )


def _row(fault: Fault) -> tuple[Cell, ...]:
    restart = "restart; " if fault.restarts and fault.effect != "stops" else ""
    return (
        fault.part,
        restart + fault.remedy,
        words.count(fault.count),
        *(_time(workload, of_bound=fault.slower is not None) for workload in fault.workloads),
    )


def _time(workload: FaultedWorkload, *, of_bound: bool) -> str:
    if workload.iteration_time_s is None:
        return "stops"
    has_bound = of_bound and workload.bound_s < LONGEST_S
    allowed = f" of {words.seconds(workload.bound_s)}" if has_bound else ""
    late = "" if workload.within_bound else ", late"
    return f"{words.seconds(workload.iteration_time_s)}{allowed}{late}"


def _required(faults: Faults) -> list[str]:
    """By how much bounds are longer without what `[robust]` lists, and how workloads run then that
    run otherwise.
    """
    required = [fault for fault in faults.faults if fault.slower is not None]
    if not required:
        return []
    parts: dict[float, dict[str, None]] = {}
    for fault in required:
        parts.setdefault(fault.slower or 1.0, {})[fault.part] = None
    longer = words.both(
        f"{slower:g} x each time bound after the loss of {_part_list(of)}"
        for slower, of in parts.items()
    )
    missed = any(not workload.within_bound for fault in required for workload in fault.workloads)
    return [
        f"[robust] allows {longer}; {'not all' if missed else 'all'} of these bounds are met.",
        *(
            f"Without {_part_list([fault.part])}, {run_without(workload.job)}."
            for fault in required
            for workload in fault.workloads
            if workload.job is not None and fault.part != "GPU"  # it has the line of its domain
        ),
    ]


def _spares(faults: Faults, spares: Spares) -> str:
    idle = f"{words.counted(spares.idle_gpus_per_domain, 'idle GPU')} in each domain"
    standing_by = f"{words.counted(spares.domains_standing_by, 'domain')} standing by"
    reserves = [idle] if spares.survives_gpu else []
    reserves += [standing_by] if spares.domains_standing_by else []
    goes_on = any(fault.part == "GPU" and fault.effect != "stops" for fault in faults.faults)
    waits = " After a GPU fails, training waits until the GPU is repaired."
    # a domain that holds everything has no links
    linked = {fault.part for fault in faults.faults} - {"GPU", "HB domain"}
    moved = (
        " It has no switch ports of its own: the links of the failed domain are moved over at a"
        " patch panel or by hand."
    )
    return (
        f"Spares: {', '.join(reserves) or 'none'}.{'' if reserves or goes_on else waits} One"
        f" spare domain costs {words.money(spares.spare_domain_usd)} (GPUs, interconnect, NICs,"
        f" and servers where they have a price).{moved if linked else ''}"
    )
