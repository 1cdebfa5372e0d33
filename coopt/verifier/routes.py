"""Check a table of routes of a plan whose flows are pinned to paths: all flows, on paths that
exist, none too full.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from typing import NamedTuple

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, counted
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import TOLERANCE, Ledger
from coopt.verifier.parts.layouts import Ports, ceil_ratio, core_count, planes_on_switch
from coopt.verifier.parts.link_loads import DomainFlow, domain_flows, ring_groups, way_flows
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.spans import reach_of
from coopt.verifier.parts.wiring import Node, WiredGraph, numbering_of
from coopt.verifier.parts.workload_checks import ClaimedRun, charged_slowdowns, flows_named
from coopt.verifier.simulation.networks import FabricNetwork, network_of
from coopt.verifier.simulation.plans import placed_runs
from coopt.verifier.training.gathers import halving_shares

KINDS = {"copies": "edp", "hop": "pp", "pair": "tied"}
"""Kinds of traffic that a table calls otherwise; the rest has the name of its collective."""
ENDS = ("gpu", "nic", "leaf", "aggregation")
FIRST_FAULTS = 3
"""Lines that a reason names."""

Link = tuple[Node, Node]


class RailFlow(NamedTuple):
    """A flow between two domains over a rail, the number of the NIC in both, and over one of the
    ports of NICs.
    """

    sender: int
    receiver: int
    rail: int
    port: int = 0


class Round(NamedTuple):
    """Flows of a kind of traffic that are under way together, with the share of its bytes; "0"
    where all are.
    """

    kind: str
    number: str = "0"
    share: float = 1.0


class RoutedFlow(NamedTuple):
    """A flow with the links it takes, up and down, between switches."""

    flow: RailFlow
    up: tuple[Link, ...]
    down: tuple[Link, ...]


def check_routes(
    ledger: Ledger, instance: Instance, plan: Plan, table: str, part: str | None = None
) -> None:
    """Check routes as `coopt export --format routes` writes them, for the part that is named or the
    only one.

    Every flow that the workloads send has a route and no other has; each route is a path of the
    network; and no link carries more whole flows than the plan is charged for.

    Raises
    ------
    InstanceError
        When flows of the instance have no paths of their own, the table has other columns, or the
        plan no such part.
    """
    if instance.network.discipline.routing != "pinned":
        raise InstanceError(
            f"{instance.place}: network.routing = {instance.network.routing!r}: only pinned flows"
            ' have paths that a plan states, needs "pinned" where routes are checked'
        )
    parts = [network_part for network_part in plan.parts if part in (None, network_part.name)]
    if len(parts) != 1 or parts[0].design is None:
        names = ", ".join(
            repr(network_part.name)
            for network_part in plan.parts
            if network_part.design is not None
        )
        raise InstanceError(
            f"{instance.place}: routes are of one network with switches, needs"
            f" {f'--part with one of {names}' if names else 'a plan that has one'}"
        )
    (network_part,) = parts
    network = network_of(instance, network_part.name, parts[0].design)
    assert isinstance(network, FabricNetwork)
    rows = _rows(table)
    runs = placed_runs(instance, network_part)
    for run in runs:
        run_rows = [(line, row) for line, row in rows if row["workload"] == run.workload.name]
        _check_run(ledger, network, run, run_rows)
    trained = {run.workload.name for run in runs}
    named = dict.fromkeys(row["workload"] for _, row in rows)
    strange = tuple(name for name in named if name not in trained)
    ledger.same(
        "route-flows",
        strange,
        (),
        "The table has routes of workloads that do not train on this network:"
        f" {', '.join(map(repr, strange))}.",
    )


def _rows(table: str) -> list[tuple[int, dict[str, str]]]:
    """The lines of a table by number, the header being the first."""
    reader = csv.DictReader(io.StringIO(table))
    ends = [f"{side}_{end}" for side in ("source", "destination") for end in ENDS]
    lacking = {"workload", "collective", "top", *ends} - set(reader.fieldnames or ())
    if lacking:
        raise InstanceError(
            f"routes: no column {', '.join(sorted(lacking))}, needs the columns of `coopt export"
            " --format routes`"
        )
    return [
        (line, {key: value or "" for key, value in row.items() if key})
        for line, row in enumerate(reader, start=2)
    ]


def _check_run(
    ledger: Ledger, network: FabricNetwork, run: ClaimedRun, rows: list[tuple[int, dict[str, str]]]
) -> None:
    family, subject = network.family, f"workload {run.workload.name!r}"
    looped, ways_by_kind = run.split.interleave > 1, flows_named(run.claim, run.place)
    flows_by_round = _rounds(run, looped=looped)
    paths = _Paths(family, network.ports, network.wiring)
    rounds = {step[:2]: step for step in flows_by_round}
    routed: defaultdict[Round, list[RoutedFlow]] = defaultdict(list)
    faults = []
    for line, row in rows:
        found = paths.of(row)
        if found is None:
            faults.append(line)
        else:
            key = KINDS.get(row["collective"], row["collective"]), row.get("round") or "0"
            routed[rounds.get(key, Round(*key))].append(found)
    # A line that is no path carries no flow, so that the flow it was for is missing below.
    first_lines = ", ".join(map(str, faults[:FIRST_FAULTS]))
    further = ", ..." * (len(faults) > FIRST_FAULTS)
    ledger.same(
        "route-paths",
        0,
        len(faults),
        f"Of {subject}, {counted(len(faults), 'route')} {'is' if len(faults) == 1 else 'are'} not"
        f" along links of the network: line{'s' * (len(faults) > 1)} {first_lines}{further}.",
    )
    expected = {
        step: list(_on_rails(network, run, flows)) for step, flows in flows_by_round.items()
    }
    gpus_per_nic = family.attachment.gpus_per_nic if family.attachment else 1
    unlike = 0
    for step in {*expected, *routed}:
        claimed_flows = [route.flow for route in routed.get(step, ())]
        if ways_by_kind.get(step.kind) == "trees":  # an edge may be one of both trees
            counts = Counter(claimed_flows), Counter(expected.get(step, []) * gpus_per_nic)
            unlike += sum(((counts[0] - counts[1]) + (counts[1] - counts[0])).values())
        else:
            unlike += len(set(claimed_flows) ^ set(expected.get(step, ())))
    ledger.same(
        "route-flows",
        0,
        unlike,
        f"Flows of {subject} without a route, or with a route but never sent: {unlike}.",
    )
    charged = (
        charged_slowdowns(reach_of(family, network.ports), run.claim, run.place, looped=looped)
        | run.claim.routes
    )
    loads: defaultdict[str, float] = defaultdict(float)
    for step, routes in routed.items():
        loads[step.kind] += step.share * _slowest(
            routes, step.kind, run, network.wiring, gpus_per_nic
        )
    texts = [
        tuple(f"{kind} {slow[kind]:.6g}" for kind in loads if kind in slow)
        for slow in (charged, loads)
    ]
    # Routes may be better than what the plan is charged for, and never worse.
    is_slower = any(loads[kind] > charged.get(kind, 0.0) * (1 + TOLERANCE) for kind in loads)
    ledger.holds(
        "route-loads",
        not is_slower,
        texts[0],
        texts[1],
        f"The routes of {subject} slow traffic by these factors: {', '.join(texts[1])}; the plan"
        f" assumes {', '.join(texts[0]) or 'none'}.",
        TOLERANCE,
    )


def _rounds(run: ClaimedRun, *, looped: bool) -> dict[Round, list[DomainFlow]]:
    """Who sends to whom at the same time, by the ways that the plan names."""
    expert_tp = run.workload.options.expert_tp is True
    flows_by_kind = domain_flows(run.place, looped=looped, expert_tp=expert_tp)
    if not run.workload.model.tied_embeddings and not run.place.two_way:
        del flows_by_kind["tied"]
    groups = ring_groups(run.place, range(run.place.pp_across), expert_tp=expert_tp)
    for kind, way in flows_named(run.claim, run.place).items():
        flows_by_kind[kind] = way_flows(groups[kind], "trees") if way == "trees" else []
    flows_by_round = {Round(kind): flows for kind, flows in flows_by_kind.items() if flows}
    for kind, way in flows_named(run.claim, run.place).items():
        shares = halving_shares(len(groups[kind][0])) if way == "halving" else []
        for turn, share in enumerate(shares):
            flows_by_round[Round(kind, str(turn + 1), share)] = way_flows(
                groups[kind], "halving", turn
            )
    return flows_by_round


def _on_rails(
    network: FabricNetwork, run: ClaimedRun, flows: list[DomainFlow]
) -> Iterator[RailFlow]:
    """What domains send each other, NIC by NIC."""
    nics = network.family.active_nics
    stage_nics = nics // run.place.pp_in
    for sender, receiver, stage in flows:
        first_rail, end_rail = (
            (0, nics) if stage is None else (stage * stage_nics, (stage + 1) * stage_nics)
        )
        for port in range(network.family.copies):
            yield from (
                RailFlow(sender, receiver, rail, port) for rail in range(first_rail, end_rail)
            )


def _slowest(
    routes: list[RoutedFlow],
    kind: str,
    run: ClaimedRun,
    wiring: WiredGraph | None,
    gpus_per_nic: int,
) -> float:
    """How far the busiest link slows a kind of traffic; a switch pins each flow to one link of a
    bundle.

    A NIC that has several to send to divides its rate among them.
    """
    # planes of further ports carry the same links under other numbers
    crowds = Counter(("up", route.flow.port, link) for route in routes for link in route.up)
    crowds.update(("down", route.flow.port, link) for route in routes for link in route.down)
    if not crowds or wiring is None:
        return 1.0
    most_flows = max(
        ceil_ratio(count, int(wiring.graph.edges[link]["links"]))
        for (*_, link), count in crowds.items()
    )
    senders = Counter(route.flow._replace(receiver=0) for route in routes)
    receivers = Counter(route.flow._replace(sender=0) for route in routes)
    nic_flows = (
        (run.place.ep_across - 1) * gpus_per_nic
        if kind == "ep"
        else max(*senders.values(), *receivers.values())
    )
    return max(1.0, most_flows / nic_flows)


class _Paths:
    """Reads routes by the names of an exported network, and follows them on the graph."""

    def __init__(self, family: DesignFamily, ports: Ports, wiring: WiredGraph | None) -> None:
        self._family, self._wiring = family, wiring
        self._order = numbering_of(family, ports.down)
        self._planes_of_switch = planes_on_switch(family) if ports.tiers == 1 else 1
        network, sharers = family.network, family.network.gpus_per_nic
        # a NIC is named for the first of the GPUs that share it
        self._ends = {
            (f"gpu/{domain}/{gpu}", f"nic/{domain}/{gpu - gpu % sharers}/{adapter}"): (domain, rail)
            for domain in range(family.domains)
            for gpu in range(family.active)
            for adapter in range(network.per_gpu)
            for rail in [(gpu * network.per_gpu + adapter) // sharers]
        }
        self._switches = dict(self._named(ports)) if wiring is not None else {}

    def _named(self, ports: Ports) -> Iterator[tuple[tuple[str, int, str], Node]]:
        """The switches above leaves by column, plane that is drawn, and name without its plane."""
        assert self._wiring is not None
        for node in self._wiring.graph:
            level, plane, *place = node
            if level == 3:
                group = core_count(self._order.leaves, ports, self._family.network.at(3).radix)
                yield ("top", plane, f"core//{place[0] * group + place[1]}"), node
            elif level == 2 and ports.tiers == 3:
                name = f"aggregation//{place[0] * ports.up + place[1]}"
                yield ("aggregation", plane, name), node
            elif level == 2:
                yield ("top", plane, f"spine//{place[0]}"), node

    def of(self, row: Mapping[str, str]) -> RoutedFlow | None:
        """The flow of a line and its links; None where it is no path."""
        sides, family = ("source", "destination"), self._family
        ends = [self._ends.get((row[f"{side}_gpu"], row[f"{side}_nic"])) for side in sides]
        # Flows stay on their rail: both ends are the same NIC of their domains.
        if None in ends or len({end[1] for end in ends if end}) > 1:
            return None
        (source, rail), (target, _) = (end for end in ends if end)
        plane, place = divmod(rail, family.rails // family.planes)
        leaves = [self._order.leaf(domain, place) for domain in (source, target)]
        # of planes that first ports of NICs lead to
        switches = ceil_ratio(family.planes, self._planes_of_switch)
        for port in range(family.copies):
            number = port * switches + plane // self._planes_of_switch
            if [row[f"{side}_leaf"] for side in sides] == [f"leaf/{number}/{n}" for n in leaves]:
                links = self._links(row, plane, port * family.planes, *leaves)
                flow = RailFlow(source, target, rail, port)
                return None if links is None else RoutedFlow(flow, *links)
        return None

    def _links(
        self, row: Mapping[str, str], plane: int, offset: int, a: int, b: int
    ) -> tuple[tuple[Link, ...], tuple[Link, ...]] | None:
        """The links up and down between two leaves; None where they are not there.

        Planes of further ports of NICs, numbered from an offset, are wired as those of the first.
        """
        columns = ("source_aggregation", "top", "destination_aggregation")
        names = [(column.partition("_")[2] or column, row[column]) for column in columns]
        if a == b or self._wiring is None:
            return None if a != b or any(name for _, name in names) else ((), ())
        drawn = plane if self._wiring.planes > 1 else 0
        switches = [
            self._switches.get((column, drawn, name.replace(f"/{plane + offset}/", "//", 1)))
            for column, name in names
            if name
        ]
        if None in switches or bool(names[0][1]) != bool(names[2][1]):
            return None
        # where nothing is above it, the switch up is the one down
        way = [node for node, _ in groupby([(1, drawn, a), *filter(None, switches), (1, drawn, b)])]
        middle = len(way) // 2
        up, down = tuple(pairwise(way[: middle + 1])), tuple(pairwise(way[middle:][::-1]))
        there = all(self._wiring.graph.has_edge(*link) for link in (*up, *down))
        return (up, down) if there else None
