"""A design as flat columns of a table: one name for each value, wherever rows of designs are written."""

from __future__ import annotations

from collections.abc import Sequence

from coopt.plan.couplings import CorePlan
from coopt.plan.direct_links import DirectLinks
from coopt.plan.schema import Design, Plan

ADDED = ("gpus", "spare_gpus", "hb_count", "switches", "transceivers", "racks")
"""Values of several designs that add up."""


def flat_plan(plan: Plan) -> dict[str, object]:
    """What a plan of any kind builds up to the end, by the names of one design; nothing without a plan."""
    if plan.direct is not None:
        return _flat_links(plan.direct)
    last = max((part.phase for part in plan.parts if part.phase is not None), default=None)
    whole = _together([part.design for part in plan.parts if part.phase == last and part.design is not None])
    return _with_cores(whole, [one.core for one in plan.couplings.cores if one.phase == last])


def _with_cores(whole: dict[str, object], cores: Sequence[CorePlan]) -> dict[str, object]:
    """Islands with the switches of the cores they share, and the transceivers at both ends of their links."""
    ends = 2 * sum(core.ports for core in cores)
    added = {"switches": sum(core.switches for core in cores), "transceivers": ends} if cores else {}
    for name, count in added.items():
        islands = whole[name]
        assert isinstance(islands, int)
        whole[name] = islands + count
    return whole


def _together(designs: Sequence[Design]) -> dict[str, object]:
    """Several designs: what adds up is added, what all have alike stands, what differs is None."""
    rows = [flat_design(design) for design in designs]
    whole: dict[str, object] = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        if name in ADDED:
            counts = [value for value in values if isinstance(value, int)]
            whole[name] = sum(counts) if len(counts) == len(values) else None
        else:
            whole[name] = values[0] if len(set(values)) == 1 else None
    return whole


def _flat_links(direct: DirectLinks) -> dict[str, object]:
    """Domains on direct links, which have no tiers and no switches."""
    domain = direct.hb_domain
    return {
        "gpus": direct.gpus,
        "spare_gpus": direct.spare_gpus,
        "hb_name": domain.name,
        "hb_size": domain.size,
        "hb_count": domain.count,
        "fabric": "direct",
        "nic": direct.nic.name,
        "nics_per_gpu": direct.nic.per_gpu,
        "transceivers": 2 * direct.links,
        "racks": direct.racks,
    }


def flat_design(design: Design) -> dict[str, object]:
    """GPUs, HB domains and network, by the names that `docs/suites.md` describes."""
    fabric, domain = design.fabric, design.hb_domain
    return {
        "gpus": design.gpus,
        "spare_gpus": design.spare_gpus,
        "hb_name": domain.name,
        "hb_size": domain.size,
        "hb_count": domain.count,
        "fabric": fabric.kind,
        "tiers": fabric.tiers,
        "planes": fabric.planes,
        "oversubscription": fabric.oversubscription,
        "nic": fabric.nic.name,
        "nics_per_gpu": fabric.nic.per_gpu,
        "switch": fabric.switch_text,
        "switches": fabric.switch_count,
        "transceivers": fabric.transceiver_count,
        "uplinks": fabric.tier[0].uplinks_per_switch if fabric.tier else 0,
        "racks": design.racks,
    }
