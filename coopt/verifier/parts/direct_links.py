"""Check HB domains on direct links: ports, routes of everything that is sent, time and bill."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import networkx as nx

from coopt.instance.errors import alternatives, counted
from coopt.instance.hardware import Nic, Optic, Panel
from coopt.instance.schema import Instance
from coopt.plan.parts import DirectLinks, LinkPhase
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree
from coopt.verifier.parts.bills import BillTotal, CountedItem, bill_total, cheapest_panel, check_bill, domain_lines
from coopt.verifier.parts.design_checks import check_domains
from coopt.verifier.parts.link_demands import (
    LATENESS,
    LinkedRun,
    Sends,
    StageGrid,
    has_neighbours,
    least_links,
    sends_on,
    speeds_on,
)
from coopt.verifier.parts.optics import allowed_optics
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.workload_checks import ClaimedRun, check_mappings, check_run_at_speed, match_workloads
from coopt.verifier.training.work import Clock

SHARE_ROUNDING = 1e-9
"""Shares of routes that add up to 1 within this."""


class LinkNics(NamedTuple):
    """The NIC that links start at, and how many of it each GPU has."""

    nic: Nic
    per_gpu: int


def check_direct(ledger: Ledger, instance: Instance, plan: Plan, claim: DirectLinks) -> BillTotal | None:
    """Check everything that a plan on direct links says of itself; the recomputed sums of its bill, if it has one."""
    family, gear = check_domains(ledger, instance, claim), _gear(ledger, instance, claim)
    if family is None or gear is None or family.domains < 2:
        ledger.holds("links", False, claim.links, "domains and NICs of the instance", "Nothing is there to be joined.")
        return None
    run = _run(ledger, instance, plan, family)
    links = _links(ledger, claim, family, gear)
    if run is None or links is None:
        return None
    byte_s = gear.nic.gbit_s * 1e9 / 8
    work = Clock(run.workload, instance.cluster.gpu).work(run.split)
    linked = LinkedRun(work, run.place, family, byte_s, run.workload.bound_s)
    sends, links_needed = sends_on(linked.grid), least_links(linked)
    holds = links_needed <= claim.links_bound <= claim.links
    needed = counted(links_needed, "link")
    why = f"At least {needed} must be there; the plan says {claim.links_bound}, and has {claim.links}."
    ledger.holds("links-bound", holds, claim.links_bound, links_needed, why)
    why = "Paths over direct links stand with the links, not with a workload."
    if run.claim.routes:
        ledger.holds("routes", False, ", ".join(run.claim.routes), "none", why)
    paces = _phases(ledger, claim, linked.grid, links, sends)
    if paces is not None:
        s_byte = {name: family.active / (pace * byte_s) for name, pace in paces.items()}
        speed = speeds_on(linked.grid, family.hb.gbyte_s * 1e9, s_byte)
        check_run_at_speed(ledger, run, family.gpus, speed, instance.cluster.gpu, late=LATENESS)
    return _bill(ledger, instance, plan, claim, family, gear)


def _gear(ledger: Ledger, instance: Instance, claim: DirectLinks) -> LinkNics | None:
    network, name, per_gpu = instance.network, claim.nic.name, claim.nic.per_gpu
    nic = next((nic for nic in network.nics if nic.name == name), None)
    names = tuple(nic.name for nic in network.nics)
    nic_listed = ledger.holds("nic", nic is not None, name, names, f"The instance lists no NIC {name!r}.")
    why = (
        f"The plan allows each GPU {counted(per_gpu, 'NIC')}, the instance {', '.join(map(str, network.nics_per_gpu))}."
    )
    count_allowed = ledger.holds("nics-per-gpu", per_gpu in network.nics_per_gpu, per_gpu, None, why)
    planes, shared = claim.nic.planes, claim.nic.shared_by
    alone = ledger.holds(
        "nic-planes", planes == 1, planes, 1, f"Direct links lead to no planes, the plan says {planes}."
    )
    why = f"Every GPU has NICs of its own on direct links, the plan lets {shared} share one."
    alone = ledger.holds("gpus-per-nic", shared == 1, shared, 1, why) and alone
    return LinkNics(nic, per_gpu) if nic is not None and nic_listed and count_allowed and alone else None


def _run(ledger: Ledger, instance: Instance, plan: Plan, family: DesignFamily) -> ClaimedRun | None:
    """The one workload, whose stages that hold the same parameters are neighbours."""
    runs = check_mappings(ledger, match_workloads(ledger, instance.workload, plan.workloads), family)
    if not runs:
        return None
    (run,) = runs
    place, tied = run.place, run.workload.model.tied_embeddings
    why = (
        f"Stages lie in {counted(place.pp_across, 'block')} of domains, {place.pp_in} in each; some hold the same "
        "parameters, a tied embedding or two copies, and are no neighbours: direct links do not carry what these send."
    )
    fine = has_neighbours(place, tied=tied)
    return run if ledger.holds("crossing", fine, place.pp_across, "at most 2 blocks of stages", why) else None


def _links(ledger: Ledger, claim: DirectLinks, family: DesignFamily, gear: LinkNics) -> nx.Graph | None:
    """Check bundles of links; the graph they make, None where they make none."""
    graph = nx.Graph()
    graph.add_nodes_from(range(family.domains))
    pairs = [bundle.between for bundle in claim.bundles]
    pairs_sound = all(0 <= i < j < family.domains for i, j in pairs) and len(set(pairs)) == len(pairs)
    counts_sound = all(bundle.links >= 1 for bundle in claim.bundles)
    total = sum(bundle.links for bundle in claim.bundles)
    why = (
        f"Bundles of links join two domains each, once, and hold {counted(total, 'link')}; the plan says {claim.links}."
    )
    if not ledger.holds("links", pairs_sound and counts_sound and total == claim.links, claim.links, total, why):
        return None
    for bundle in claim.bundles:
        graph.add_edge(*bundle.between, links=bundle.links)
    ports = family.hb.size * gear.per_gpu
    used_ports = max(degree for _, degree in graph.degree(weight="links"))
    why = f"A domain has {counted(ports, 'port')}, the plan says {claim.ports} and uses up to {used_ports}."
    ledger.holds("link-ports", claim.ports == ports and used_ports <= ports, claim.ports, ports, why)
    connected = nx.is_connected(graph)
    return graph if ledger.holds("connected", connected, connected, True, "Links leave some domains apart.") else None


def _phases(
    ledger: Ledger, claim: DirectLinks, grid: StageGrid, links: nx.Graph, sends_by_phase: dict[str, Sends]
) -> dict[str, float] | None:
    """The pace of every phase; None where what is sent is not routed."""
    why = f"The mapping makes {grid.stages} blocks of stages, of {counted(grid.replicas, 'domain')} each."
    shape = f"{grid.stages} x {grid.replicas}"
    holds = ledger.same("grid", f"{claim.stages} x {claim.replicas}", shape, why)
    names = tuple(sends_by_phase)
    claimed = tuple(phase.name for phase in claim.phases)
    holds = (
        ledger.same("link-phases", claimed, names, f"Traffic of {names} crosses domains, the plan routes {claimed}.")
        and holds
    )
    if not holds:
        return None
    paces = {phase.name: _pace(ledger, phase, sends_by_phase[phase.name], links) for phase in claim.phases}
    return {name: pace for name, pace in paces.items() if pace is not None} if all(paces.values()) else None


def _pace(ledger: Ledger, phase: LinkPhase, sends: Sends, links: nx.Graph) -> float | None:
    """The pace at which the busiest link is full, where routes carry everything over links that are there."""
    carried: defaultdict[tuple[int, int], float] = defaultdict(float)
    load: defaultdict[tuple[int, int], float] = defaultdict(float)
    bad_path = None
    for route in phase.routes:
        steps = list(zip(route.path, route.path[1:], strict=False))
        if len(steps) < 1 or len(set(route.path)) < len(route.path) or not route.share > 0:
            bad_path = bad_path or route.path
            continue
        ends = (route.path[0], route.path[-1])
        carried[ends] += route.share
        for step in steps:
            load[step] += route.share * float(sends.get(ends, 0))
            bad_path = bad_path or (None if links.has_edge(*step) else route.path)
    unmet = [ends for ends in {*sends, *carried} if ends not in sends or abs(carried[ends] - 1) > SHARE_ROUNDING]
    why = f"In phase {phase.name!r} route {bad_path} leaves the links, or not all is sent between {unmet[:3]}."
    if not ledger.holds("link-routes", bad_path is None and not unmet, len(phase.routes), len(sends), why):
        return None
    pace = min(links.edges[step]["links"] / amount for step, amount in load.items())
    why = f"Phase {phase.name!r} is as fast as so many links: {pace:.9g}; the plan says {phase.pace_links:.9g}."
    ledger.holds("link-pace", agree(phase.pace_links, pace), phase.pace_links, pace, why, TOLERANCE)
    return float(pace)


def _bill(
    ledger: Ledger, instance: Instance, plan: Plan, claim: DirectLinks, family: DesignFamily, gear: LinkNics
) -> BillTotal | None:
    """Check the bill: two NICs, transceivers and panel ports a link, and the domains; its recomputed sums."""
    kind = plan.objective.kind
    panel = cheapest_panel(instance, kind)
    name = panel.name if panel else None
    optics = allowed_optics(instance, kind, gear.nic, 2)
    optic, names = next((one for one in optics if one.name == claim.optic), None), tuple(one.name for one in optics)
    why = f"Links may have the optics {alternatives(names) or 'none'}, the plan takes {claim.optic}."
    ledger.holds("optics", optic is not None, claim.optic, names, why)
    ledger.same("panel", claim.panel, name, f"The cheapest panel is {name}, the plan takes {claim.panel}.")
    if optic is None or plan.cost is None:
        return None
    lines = link_lines(instance, family, gear.nic, optic, panel, claim.links)
    sums = bill_total(lines, instance.objective)
    check_bill(ledger, lines, sums, plan.cost)
    return sums


def link_lines(
    instance: Instance, family: DesignFamily, nic: Nic, optic: Optic, panel: Panel | None, links: int
) -> list[CountedItem]:
    """The bill of domains and of so many links: a NIC, a transceiver and a panel port at each end."""
    ends = 2 * links
    lines = [*domain_lines(instance, family), CountedItem("nic", nic.name, ends, nic.usd, nic.w)]
    lines.append(CountedItem("optics", optic.name, ends, optic.usd, optic.w))
    if panel is not None:
        lines.append(CountedItem("switch", panel.name, ends, panel.usd_per_port, panel.w_per_port))
    return [line for line in lines if line.kind in instance.objective.include and line.amount]
