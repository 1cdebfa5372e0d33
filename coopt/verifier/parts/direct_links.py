"""Check HB domains on direct links: ports, routes of everything that is sent, time and bill.

The paces at which a mapping is in time, and the links that these take at least, are found beside.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import networkx as nx

from coopt.instance.hardware import HbDomain, Nic, Optic, Panel
from coopt.instance.numerics import SOLVED
from coopt.instance.schema import Instance
from coopt.instance.texts import alternatives, both, counted
from coopt.plan.parts import DirectLinks, LinkPhase
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, UnsoundError, agree
from coopt.verifier.parts.bills import (
    BillTotal,
    CountedItem,
    bill_total,
    cheapest_panel,
    domain_lines,
)
from coopt.verifier.parts.design_checks import check_domains, check_nics
from coopt.verifier.parts.link_demands import (
    Paces,
    Sends,
    StageGrid,
    grid_of,
    has_neighbours,
    joining_links,
    sends_on,
    shares_sent,
    speeds_on,
)
from coopt.verifier.parts.optics import optics_of
from coopt.verifier.parts.part_checks import check_bill
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.workload_checks import (
    ClaimedRun,
    check_mappings,
    check_run_at_speed,
    match_workloads,
)
from coopt.verifier.training.iteration import iteration_s
from coopt.verifier.training.placing import Placement
from coopt.verifier.training.work import Clock, Work

LATENESS = 1e-6
"""Share by which an iteration on direct links may exceed its bound, because flows come out of a
linear program.
"""
FIRST_PAIRS = 3
"""Pairs of domains that a reason names."""
SLOWEST_S_BYTE = 1.0
HALVINGS = 60


class LinkNics(NamedTuple):
    """The NIC that links start at, and how many of it each GPU has."""

    nic: Nic
    per_gpu: int

    def link_byte_s(self, hb: HbDomain) -> float:
        """Byte/s of a link each way: all NICs of a GPU share what it reaches of them."""
        wire_gbyte_s = self.nic.gbit_s / 8
        crowded = wire_gbyte_s * self.per_gpu > hb.to_nics_gbyte_s
        return 1e9 * (hb.to_nics_gbyte_s / self.per_gpu if crowded else wire_gbyte_s)


def check_direct(ledger: Ledger, instance: Instance, plan: Plan, claim: DirectLinks) -> BillTotal:
    """Check everything that a plan on direct links says of itself; the recomputed sums of its bill.

    Raises
    ------
    UnsoundError
        Where no links stand, or not all is sent over them.
    """
    family = check_domains(ledger, instance, claim)
    nic, sound = check_nics(ledger, instance.network, claim.nic, (1,), (1,))
    if nic is None or not sound or family.domains < 2:
        ledger.require(
            "links",
            False,
            claim.links,
            "several HB domains, and NICs of the instance",
            "Direct links need several HB domains, and NICs that the instance allows.",
        )
    assert nic is not None
    nics = LinkNics(nic, claim.nic.per_gpu)
    sums = _bill(ledger, instance, plan, claim, family, nics)
    run = _run(ledger, instance, plan, family)
    links = _links(ledger, claim, family, nics)
    byte_s = nics.link_byte_s(family.hb)
    work = Clock(run.workload, instance.cluster.gpu).work(run.split)
    linked_run = LinkedRun(work, run.place, family, byte_s, run.workload.bound_s)
    links_needed = least_links(linked_run)
    ledger.holds(
        "links-bound",
        links_needed <= claim.links_bound <= claim.links,
        claim.links_bound,
        links_needed,
        "No number of links meets the time bound with the plan's mapping."
        if links_needed == sys.maxsize
        else f"Traffic needs at least {counted(links_needed, 'link')}; the plan states"
        f" {claim.links_bound} as the least number, and has {claim.links}.",
    )
    if run.claim.routes:
        ledger.holds(
            "routes",
            False,
            ", ".join(run.claim.routes),
            "none",
            "The plan lists routes with a workload, but routes over direct links belong with"
            " the links.",
        )
    paces = _phases(ledger, claim, linked_run.grid, links)
    s_byte = {name: family.active / (pace * byte_s) for name, pace in paces.items()}
    speed = speeds_on(linked_run.grid, family.hb.gbyte_s * 1e9, s_byte)
    check_run_at_speed(ledger, run, family.gpus, speed, instance.cluster.gpu, lateness=LATENESS)
    return sums


def _run(ledger: Ledger, instance: Instance, plan: Plan, family: DesignFamily) -> ClaimedRun:
    """The one workload, whose stages that hold the same parameters are neighbours."""
    matched = match_workloads(ledger, instance.workload, plan.workloads)
    runs = check_mappings(ledger, matched, family)
    if not runs:
        raise UnsoundError
    (run,) = runs
    place = run.place
    ledger.require(
        "crossing",
        has_neighbours(place, tied=run.workload.model.tied_embeddings),
        place.pp_across,
        "stages that share parameters are neighbours",
        f"The pipeline spans {counted(place.pp_across, 'block')} of domains with"
        f" {counted(place.pp_in, 'stage')} in each. Some stages share parameters (a tied embedding"
        " or a second copy) but are not neighbours, and direct links cannot carry what these"
        " exchange.",
    )
    return run


def _links(ledger: Ledger, claim: DirectLinks, family: DesignFamily, nics: LinkNics) -> nx.Graph:
    """Check bundles of links; the graph they make."""
    graph = nx.Graph()
    graph.add_nodes_from(range(family.domains))
    pairs = [bundle.between for bundle in claim.bundles]
    total = sum(bundle.links for bundle in claim.bundles)
    ledger.require(
        "links",
        all(0 <= i < j < family.domains for i, j in pairs)
        and len(set(pairs)) == len(pairs)
        and all(bundle.links >= 1 for bundle in claim.bundles)
        and total == claim.links,
        claim.links,
        total,
        "Each bundle has to join another pair of domains with 1 link or more, and all have to add"
        f" up to the plan's {counted(claim.links, 'link')}; they add up to {total}.",
    )
    for bundle in claim.bundles:
        graph.add_edge(*bundle.between, links=bundle.links)
    ports = family.hb.size * nics.per_gpu
    used_ports = max(degree for _, degree in graph.degree(weight="links"))
    ledger.holds(
        "link-ports",
        claim.ports == ports and used_ports <= ports,
        claim.ports,
        ports,
        f"A domain has {counted(ports, 'port')}. The plan says {claim.ports} and uses up to"
        f" {used_ports}.",
    )
    connected = nx.is_connected(graph)
    ledger.require(
        "connected", connected, connected, True, "The links leave some domains unconnected."
    )
    return graph


def _phases(
    ledger: Ledger, claim: DirectLinks, grid: StageGrid, links: nx.Graph
) -> dict[str, float]:
    """The pace of every phase, in which everything that is sent has to be routed."""
    shape, sends_by_phase = f"{grid.stages} x {grid.replicas}", sends_on(grid)
    names = tuple(sends_by_phase)
    claimed_shape = f"{claim.stages} x {claim.replicas}"
    claimed_names = tuple(phase.name for phase in claim.phases)
    ledger.same(
        "grid",
        claimed_shape,
        shape,
        f"The mapping needs {counted(grid.stages, 'block')} of pipeline stages, each of"
        f" {counted(grid.replicas, 'HB domain')}, but the plan says {claimed_shape}.",
    )
    ledger.require(
        "link-phases",
        claimed_names == names,
        claimed_names,
        names,
        f"Traffic of {both(names) or 'no kind'} crosses domains, but the plan routes"
        f" {both(claimed_names) or 'none'}.",
    )
    return {
        phase.name: _pace(ledger, phase, sends_by_phase[phase.name], links)
        for phase in claim.phases
    }


def _pace(ledger: Ledger, phase: LinkPhase, sends: Sends, links: nx.Graph) -> float:
    """The pace at which the busiest link is full, where routes carry everything over links that are
    there.
    """
    carried: defaultdict[tuple[int, int], float] = defaultdict(float)
    load: defaultdict[tuple[int, int], float] = defaultdict(float)
    bad_paths: list[tuple[int, ...]] = []
    for route in phase.routes:
        steps = list(zip(route.path, route.path[1:], strict=False))
        # a path has a link at least, and comes to no domain twice
        if len(steps) < 1 or len(set(route.path)) < len(route.path) or not route.share > 0:
            bad_paths.append(route.path)
            continue
        ends = (route.path[0], route.path[-1])
        carried[ends] += route.share
        for step in steps:
            load[step] += route.share * float(sends.get(ends, 0))
            if not links.has_edge(*step):
                bad_paths.append(route.path)
    unmet = [
        ends
        for ends in {*sends, *carried}
        if ends not in sends or abs(carried[ends] - 1) > TOLERANCE
    ]
    ledger.require(
        "link-routes",
        not bad_paths and not unmet,
        len(phase.routes),
        len(sends),
        f"In phase {phase.name!r}, the route {' - '.join(map(str, bad_paths[0])) or 'of no domain'}"
        " is no path over links of the plan that comes to each domain once, or has no share."
        if bad_paths
        else f"In phase {phase.name!r}, routes do not carry exactly what is sent between"
        f" {counted(len(unmet), 'pair')} of domains"
        f"{':' if len(unmet) <= FIRST_PAIRS else ', such as'}"
        f" {', '.join('{} and {}'.format(*ends) for ends in sorted(unmet)[:FIRST_PAIRS])}.",
    )
    pace = min(links.edges[step]["links"] / amount for step, amount in load.items())
    ledger.holds(
        "link-pace",
        agree(phase.pace_links, pace),
        phase.pace_links,
        pace,
        f"Traffic of phase {phase.name!r} passes at {pace:.9g} times the rate of a link, but the"
        f" plan says {phase.pace_links:.9g} times.",
        TOLERANCE,
    )
    return float(pace)


def _bill(
    ledger: Ledger,
    instance: Instance,
    plan: Plan,
    claim: DirectLinks,
    family: DesignFamily,
    nics: LinkNics,
) -> BillTotal:
    """Check the bill: two NICs, transceivers and panel ports a link, and the domains; its
    recomputed sums.
    """
    kind = plan.objective.kind
    panel = cheapest_panel(instance, kind)
    name = panel.name if panel else None
    optics = optics_of(instance, kind, nics.nic, 2)
    named_optics = [candidate for candidate in optics if candidate.name == claim.optic]
    names = tuple(candidate.name for candidate in optics)
    ledger.holds(
        "optics",
        bool(named_optics),
        claim.optic,
        names,
        f"Links may use the optics {alternatives(names) or 'none'}, but the plan uses"
        f" {claim.optic}.",
    )
    ledger.same(
        "panel",
        claim.panel,
        name,
        f"Links need {f'panel {name}' if name else 'no panel'}, but the plan has"
        f" {claim.panel or 'none'}.",
    )
    if not named_optics or plan.cost is None:
        raise UnsoundError
    lines = link_lines(instance, family, nics.nic, named_optics[0], panel, claim.links)
    sums = bill_total(lines, instance.objective)
    check_bill(ledger, lines, sums, plan.cost)
    return sums


def link_lines(
    instance: Instance,
    family: DesignFamily,
    nic: Nic,
    optic: Optic,
    panel: Panel | None,
    links: int,
) -> list[CountedItem]:
    """The bill of domains and of so many links: a NIC, a transceiver and a panel port at each
    end.
    """
    ends = 2 * links
    lines = [*domain_lines(instance, family), CountedItem("nic", nic.name, ends, nic.usd, nic.w)]
    lines.append(CountedItem("optics", optic.name, ends, optic.usd, optic.w))
    if panel is not None:
        lines.append(CountedItem("switch", panel.name, ends, panel.usd_per_port, panel.w_per_port))
    return [line for line in lines if line.kind in instance.objective.include and line.amount]


class LinkedRun(NamedTuple):
    """A mapping on links of so many byte/s each way."""

    work: Work
    place: Placement
    family: DesignFamily
    link_byte_s: float
    bound_s: float

    @property
    def grid(self) -> StageGrid:
        """The domains as stages and the domains of each."""
        return grid_of(self.work.split, self.place)

    def least_pace(self, phase: str, other_paces: Paces) -> float:
        """The pace below which an iteration is late, where other phases have these paces and the
        rest takes no time; infinite where all are.
        """
        return _least_pace(self, phase, tuple(other_paces.items()))

    def ends(self, stage: int) -> float:
        """The least links at a domain of a block of stages with which all phases that it sends in
        are in time, one after the other; infinite where none are.
        """
        grid = self.grid
        shares = {
            phase: domain_shares.get(stage * grid.replicas)
            for phase, domain_shares in shares_sent(grid).items()
        }
        parts = {phase: float(share) for phase, share in shares.items() if share}
        return self.slowest_pace(
            lambda s_byte: {phase: s_byte * share for phase, share in parts.items()}
        )

    def in_time_below(self, links: int) -> bool:
        """Whether an iteration is in time at the paces at which each phase alone fills so many
        links.
        """
        # each link carries both ways, and what is sent takes one hop at least
        filled = {
            phase: 2 * links / float(sum(shares.values()))
            for phase, shares in shares_sent(self.grid).items()
        }
        s_byte = {phase: self.s_byte(pace * (1 + 2 * SOLVED)) for phase, pace in filled.items()}
        return self._time_s(s_byte) <= self.bound_s * (1 + LATENESS)

    def slowest_pace(self, s_byte_of: Callable[[float], Paces]) -> float:
        """The least pace of what takes so many seconds a byte of each phase; infinite where none is
        in time.
        """

        def late_s(s_byte: float) -> float:
            return self._time_s(s_byte_of(s_byte)) - self.bound_s * (1 + LATENESS)

        # late even if nothing took any time on links
        if late_s(0.0) > 0:
            return math.inf
        return self.family.active / (_first_late(late_s, SLOWEST_S_BYTE) * self.link_byte_s)

    def s_byte(self, pace: float) -> float:
        """Seconds a byte of what has that pace."""
        return self.family.active / (pace * self.link_byte_s)

    def _time_s(self, s_byte: Paces) -> float:
        """An iteration at seconds a byte of each phase."""
        return iteration_s(
            self.work, self.place, speeds_on(self.grid, self.family.hb.gbyte_s * 1e9, s_byte)
        )


@lru_cache(maxsize=1 << 10)
def _least_pace(run: LinkedRun, phase: str, other_paces: tuple[tuple[str, float], ...]) -> float:
    """As `LinkedRun.least_pace`, kept for whatever else is checked of the same plan."""
    s_byte = {
        other_phase: run.s_byte(pace) for other_phase, pace in other_paces if other_phase != phase
    }
    return run.slowest_pace(lambda own_s_byte: s_byte | {phase: own_s_byte})


def _first_late(late_s: Callable[[float], float], limit: float) -> float:
    """An argument that is late, where all greater ones are too, and hardly any less one is; `limit`
    where that is not.

    Lateness is a convex line, so that nothing is late before its chord to a later argument is; soon
    both lie on its last straight piece.
    """
    low, high = 0.0, limit
    low_s, high_s = late_s(low), late_s(high)
    for _ in range(HALVINGS if high_s > 0 else 0):
        # the chord meets 0 no later than the line does; beyond it by rounding, so that the argument
        # found is late
        crossing = (low - low_s * (high - low) / (high_s - low_s)) * (1 + TOLERANCE)
        if crossing >= high or (crossing_s := late_s(crossing)) > 0:
            return min(crossing, high)
        low, low_s = crossing, crossing_s
        # doubling finds the scale where the limit is far off, halving then closes in
        trial = min(2 * crossing, (low + high) / 2)
        trial_s = late_s(trial)
        if trial_s > 0:
            high, high_s = trial, trial_s
        else:
            low, low_s = trial, trial_s
    return high


def least_links(run: LinkedRun) -> int:
    """The fewest links that join all senders to receivers and give each domain whole links for all
    that it sends, or more than there are where none are enough.
    """
    grid = run.grid
    ends = [run.ends(stage) for stage in range(grid.stages)]
    if math.inf in ends:
        return sys.maxsize
    # whole links at each domain; one that is needed by rounding alone is none, and each link has
    # two ends
    domain_ends = sum(math.ceil(links * (1 - SOLVED)) for links in ends) * grid.replicas
    return max(joining_links(grid), math.ceil(domain_ends / 2))
