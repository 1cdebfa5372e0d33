"""A design as flat columns of a table: one name for each value, wherever rows of designs are written."""

from __future__ import annotations

from coopt.plan.schema import Design


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
        "switch": fabric.switch.name,
        "switches": fabric.switch_count,
        "transceivers": fabric.transceiver_count,
        "uplinks": fabric.tier[0].uplinks_per_switch if fabric.tier else 0,
        "racks": design.racks,
    }
