"""Plans of the verifier's tests that no solver made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from coopt.instance.hardware import Gpu
from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.plan.couplings import NETWORK
from coopt.plan.parts import Fabric, NicChoice, SwitchChoice
from coopt.plan.schema import Plan
from coopt.verifier.parts.bills import bill, bill_total, levels
from coopt.verifier.parts.enumeration import FoundDesign, cheapest_design
from coopt.verifier.parts.layouts import Ports
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.spans import reach_of, speeds_of
from coopt.verifier.parts.stages import design_of_stage, last_stage
from coopt.verifier.training.communication import Speeds
from coopt.verifier.training.iteration import (
    breakdown,
    causal_flop_per_token,
    hardware_flop_per_token,
    iteration_s,
    model_flop_per_token,
    utilisation,
)
from coopt.verifier.training.mappings import ScalarMapping, splits
from coopt.verifier.training.memory import GIB, MemoryNeeds, memory_bytes
from coopt.verifier.training.placing import Placement, placements
from coopt.verifier.training.work import Clock


def built(instance: Instance, kind: ObjectiveKind | None = None) -> Plan:
    """The plan of the cheapest design that the verifier's own enumeration finds."""
    kind = kind or instance.objective.minimize
    found, _ = cheapest_design(instance, kind, math.inf)
    if found is None:
        return Plan.model_validate(_frame(instance, kind, "infeasible"))
    return Plan.model_validate(plan_table(instance, kind, found))


def plan_table(instance: Instance, kind: ObjectiveKind, found: FoundDesign) -> dict[str, Any]:
    """A design as a plan that calls it optimal."""
    family, ports = found.family, found.ports
    rows, optics = levels(family, ports), found.optics
    lines = bill(instance, family, rows, optics)
    sums = bill_total(lines, instance.objective)
    table = _frame(instance, kind, "optimal")
    value = sums.of(kind)
    table["objective"] = {"kind": kind, "value": value, "bound": value, "gap": 0.0}
    table["design"] = _design(instance, found)
    table["cost"] = {
        "capex_usd": sums.capex_usd,
        "power_w": sums.power_w,
        "tco_usd": sums.tco_usd,
        "items": _merged(lines),
    }
    table["workloads"] = [_workload(instance, found, i) for i in range(len(instance.workload))]
    whole = {key: table[key] for key in ("design", "cost", "workloads")}
    table["parts"] = [{"name": NETWORK, "power_w": sums.power_w, **whole}]
    return table


def _frame(instance: Instance, kind: str, status: str) -> dict[str, Any]:
    return {
        "schema": "coopt-plan/2",
        "instance": {"name": instance.name, "sha256": instance.sha256},
        "status": status,
        "stop_reason": "enumerated",
        "objective": {"kind": kind, "value": None, "bound": None, "gap": None},
        "solver": {
            "formulation": "none",
            "name": "none",
            "version": "0",
            "options": {"gap": 0.0},
            "nodes": 0,
            "columns_enumerated": 0,
            "columns_gated": {},
            "columns_kept": 0,
            "families": 0,
            "cuts": 0,
        },
        "timing_s": dict.fromkeys(("model", "columns", "build", "handover", "solve", "total"), 0.0),
    }


def _design(instance: Instance, found: FoundDesign) -> dict[str, Any]:
    network, ports = instance.network, found.ports
    nothing = Fabric(
        kind=network.fabrics[0], tiers=0, planes=0, oversubscription=1.0, switch_count=0, transceiver_count=0, tier=(),
        nic=NicChoice(name=network.nics[0].name, per_gpu=network.nics_per_gpu[0]),
        switch=SwitchChoice(name=network.switches[0].name),
    )  # fmt: skip
    stage = last_stage(found.family, ports, (ports.up,), found.optics)
    return design_of_stage(instance, stage, ports.up, nothing).model_dump(mode="json", by_alias=True)


def _merged(lines: Any) -> list[dict[str, Any]]:
    return [
        {
            "item": line.key.text,
            "kind": line.kind,
            "count": line.amount,
            "unit_usd": line.unit_usd,
            "usd": line.amount * line.unit_usd,
            "unit_w": line.unit_w,
            "w": line.amount * line.unit_w,
            "name": line.name,
            "idle": line.idle,
        }
        for line in lines
    ]


def fastest(instance: Instance, found: FoundDesign, index: int) -> tuple[ScalarMapping, Placement]:
    """The mapping and placement that are fastest on a design, of those that fit into memory."""
    return _fastest(instance.workload[index], instance.cluster.gpu, found.family, found.ports)


@lru_cache(maxsize=256)
def _fastest(workload: Workload, gpu: Gpu, family: DesignFamily, ports: Ports) -> tuple[ScalarMapping, Placement]:
    clock, needs, reach = Clock(workload, gpu), MemoryNeeds(workload), reach_of(family, ports)
    least_s, found = math.inf, None
    for split in splits(workload, family.gpus):
        if needs.of(split) > gpu.hbm_gb * 1e9:
            continue
        work = clock.work(split)
        if work.floor_s() >= least_s:
            continue  # wherever it lies
        for place in placements(workload, split, family.active, family.rooms, turned=family.charges_loads):
            time_s = iteration_s(work, place, speeds_of(family, reach, place, looped=split.interleave > 1))
            if time_s < least_s:
                least_s, found = time_s, (split, place)
    return found


def _speeds(found: FoundDesign, split: ScalarMapping, place: Placement) -> Speeds:
    reach = reach_of(found.family, found.ports)
    return speeds_of(found.family, reach, place, looped=split.interleave > 1)


def pairs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Numbers in pairs."""
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _workload(instance: Instance, found: FoundDesign, index: int) -> dict[str, Any]:
    workload, gpu, family = instance.workload[index], instance.cluster.gpu, found.family
    split, place = fastest(instance, found, index)
    work, speed = Clock(workload, gpu).work(split), _speeds(found, split, place)
    time_s = iteration_s(work, place, speed)
    flop = (model_flop_per_token(workload.model), hardware_flop_per_token(workload, split.recompute))
    return {
        "name": workload.name,
        "gpus": family.gpus,
        "mapping": split._asdict() | {"outermost": place.outermost},
        "placement": dict(zip(("tp", "pp", "dp", "cp", "ep"), pairs(place[:10]), strict=True)),
        "iteration_time_s": time_s,
        "bound_s": workload.bound_s,
        "breakdown_s": {part: s for part, s in breakdown(work, place, speed)._asdict().items() if part != "wan"},
        "memory_gib": memory_bytes(workload, split) / GIB,
        "memory_limit_gib": gpu.hbm_gb * 1e9 / GIB,
        "mfu": utilisation(workload, gpu, family.gpus, flop[0], time_s),
        "hfu": utilisation(workload, gpu, family.gpus, flop[1], time_s),
        "mfu_causal": utilisation(workload, gpu, family.gpus, causal_flop_per_token(workload.model), time_s),
        "knobs": workload.options.knobs,
        "tokens_per_s": workload.tokens_per_iteration / time_s,
    }
