"""Cells of tables in which each part, or each workload, has a line."""

from __future__ import annotations

from coopt.instance.workload import Workload
from coopt.plan.parts import DirectLinks, WorkloadPlan
from coopt.plan.schema import Design
from coopt.report import words


def domains_built(network: Design | DirectLinks) -> str:
    """`8 x hgx-h100-8 + 1 spare`: the HB domains of a network, and those that stand by."""
    spares = network.spare_domains if isinstance(network, Design) else 0
    more = f" + {words.counted(spares, 'spare')}" if spares else ""
    return f"{words.times(network.hb_domain.count, network.hb_domain.name)}{more}"


def days_of(run: WorkloadPlan, workload: Workload) -> str:
    """`65.01 of 65.5`: the days of training with interruptions, and those it may take; `-` without such a bound."""
    if workload.train_days is None:
        return "-"
    taken = workload.iterations * run.elapsed_s(run.uptime.promised if run.uptime else 1.0) / 86400
    return f"{taken:.4g} of {workload.train_days:.4g}"
