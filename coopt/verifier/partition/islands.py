"""Check a partition: every island as a design of its own, then what couples them."""

from __future__ import annotations

from typing import NamedTuple

from coopt.instance.hardware import Nic, Optic
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.plan.islands import Island
from coopt.plan.parts import Design
from coopt.plan.schema import Plan, WorkloadPlan
from coopt.verifier.claim_checks import check_objective
from coopt.verifier.cores import core_switch
from coopt.verifier.design_checks import check_design
from coopt.verifier.layouts import Level
from coopt.verifier.ledger import Ledger
from coopt.verifier.network_checks import check_network
from coopt.verifier.optics import names_of, optics_named
from coopt.verifier.partition.bound import alone
from coopt.verifier.partition.couplings import check_couplings
from coopt.verifier.partition.joints import Joint, as_built, check_core, joint_of
from coopt.verifier.partition.prices import check_bill, units_of
from coopt.verifier.parts import bill, total_of
from coopt.verifier.port_checks import check_ports
from coopt.verifier.space import Family
from coopt.verifier.spans import reach_of
from coopt.verifier.workload_checks import check_mapping, check_run, same_workloads


class Built(NamedTuple):
    """An island as derived from the plan: what it is, and its levels of switches with their optics."""

    family: Family
    levels: tuple[Level, ...]
    optics: tuple[Optic, ...]
    racks: int | None
    joint: Joint | None


def check_partition(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check islands, bill and couplings."""
    if plan.cost is not None and plan.islands:
        built = _islands(ledger, as_built(instance, plan.objective.kind, plan), plan)
        if built is not None:
            check_core(ledger, instance, plan, [one.joint for one in built])
            units = [units_of(one.family, one.levels, one.optics, one.joint) for one in built]
            sums = check_bill(ledger, instance, units, plan.cost)
            check_couplings(ledger, instance, units, [one.racks for one in built], sums)
            check_objective(ledger, plan, sums)


def _islands(ledger: Ledger, instance: Instance, plan: Plan) -> list[Built] | None:
    """Check each island; None where one is so wrong that no bill can be made."""
    wanted = tuple(workload.name for workload in instance.workload)
    names = tuple(island.workload for island in plan.islands)
    why = f"The instance has workloads {', '.join(wanted)}, the plan islands of {', '.join(names)}."
    if not ledger.same("islands", names, wanted, why):
        return None
    if not same_workloads(ledger, instance.workload, plan.workloads):
        return None
    found = []
    for workload, island, claim in zip(instance.workload, plan.islands, plan.workloads, strict=True):
        ledger.subject = f"Island of {workload.name!r}: "
        fits = _check_size(ledger, instance, workload, island.design.gpus)
        own = alone(instance, workload, island.design.gpus)
        found.append(_island(ledger, own, plan, island, claim) if fits else None)
    ledger.subject = ""
    built = [one for one in found if one is not None]
    return built if len(built) == len(found) else None


def _check_size(ledger: Ledger, instance: Instance, workload: Workload, gpus: int) -> bool:
    there, listed = instance.cluster.gpus[0], workload.gpus
    fits = 1 <= gpus <= there and (listed is None or gpus in listed)
    allowed = f"1 to {there}" if listed is None else ", ".join(map(str, listed))
    why = f"It trains on {gpus} GPUs, sizes allowed are {allowed}."
    return ledger.holds("island-size", fits, gpus, allowed, why)


def _island(ledger: Ledger, instance: Instance, plan: Plan, island: Island, claim: WorkloadPlan) -> Built | None:
    design, kind, (workload,) = island.design, plan.objective.kind, instance.workload
    family = check_design(ledger, instance, design)
    ports = check_ports(ledger, instance, family, design.fabric, kind) if family else None
    if family is None or ports is None:
        return None
    run = check_mapping(ledger, workload, claim, family)
    placements = [] if run is None else [(workload.name, run.place)]
    levels = check_network(ledger, family, ports, design.fabric, placements)
    if run is not None:
        check_run(ledger, run, family, reach_of(family, ports), instance.cluster.gpu)
    optics, nic = optics_named(instance, kind, family, names_of(design.fabric)), _nic(ledger, instance, design)
    if optics is None or nic is None:
        return None
    joint = joint_of(instance, kind, family, ports, nic)
    far = [] if joint is None else [line for line in joint.lines() if line.kind in instance.objective.include]
    power_w = total_of([*bill(instance, family, levels, optics), *far], instance.objective).power_w
    why = f"It draws {power_w:,.2f} W, the plan says {island.power_w:,.2f} W."
    ledger.close("island-power", island.power_w, power_w, why)
    return Built(family, levels, optics, design.racks, joint)


def _nic(ledger: Ledger, instance: Instance, design: Design) -> Nic | None:
    """The NIC of an island, where it has the rate of the core; None where not, or where it is not listed."""
    nic = next((one for one in instance.network.nics if one.name == design.fabric.nic.name), None)
    core = core_switch(instance)
    if nic is None or core is None:
        return nic
    why = f"NIC {nic.name!r} has {nic.gbit_s:g} Gbit/s, the ports of the core have {core.port_gbit_s:g}."
    return nic if ledger.holds("core-rate", nic.gbit_s == core.port_gbit_s, nic.name, core.name, why) else None
