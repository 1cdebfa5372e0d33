"""Check a table of routes of a plan whose flows are pinned to paths: all flows, on paths that
exist, none too full.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
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
from coopt.verifier.parts.workload_checks import charged_slowdowns, flows_named
from coopt.verifier.simulation.networks import FabricNetwork, network_of
from coopt.verifier.simulation.plans import PlacedRun, placed_runs
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
            f"{instance.name}: network.routing = {instance.network.routing!r}: only pinned flows"
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
            f"{instance.name}: routes are of one network with switches, needs"
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
    ledger: Ledger, network: FabricNetwork, run: PlacedRun, rows: list[tuple[int, dict[str, str]]]
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


def _rounds(run: PlacedRun, *, looped: bool) -> dict[Round, list[DomainFlow]]:
    """Who sends to whom at the same time, by the ways that the plan names."""
    expert_tp = run.workload.options.expert_tp is True
    flows_by_kind = domain_flows(run.place, looped=looped, expert_tp=expert_tp)
    if not run.workload.model.tied_embeddings and not run.place.two_way:
        del flows_by_kind["tied"]
    groups = ring_groups(run.place, expert_tp=expert_tp)
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
    network: FabricNetwork, run: PlacedRun, flows: list[DomainFlow]
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
    run: PlacedRun,
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
        self._family, self._ports, self._wiring = family, ports, wiring
        self._per_gpu, self._per_plane = family.network.per_gpu, family.rails // family.planes
        self._gpus_per_nic = family.network.gpus_per_nic
        self._order = numbering_of(family, ports.down)
        self._planes_of_switch = planes_on_switch(family) if ports.tiers == 1 else 1
        self._group = (
            core_count(self._order.leaves, ports, family.network.at(3).radix)
            if ports.tiers == 3
            else 0
        )

    def of(self, row: Mapping[str, str]) -> RoutedFlow | None:
        """The flow of a line and its links; None where it is no path."""
        nics = [_numbers(row[f"{side}_nic"], "nic", 3) for side in ("source", "destination")]
        gpus = [_numbers(row[f"{side}_gpu"], "gpu", 2) for side in ("source", "destination")]
        if None in nics or [nic and nic[:2] for nic in nics] != [
            gpu and self._first_of_nic(*gpu) for gpu in gpus
        ]:
            return None
        (source, gpu, adapter), (target, target_gpu, target_adapter) = (nic or () for nic in nics)
        rail = (gpu * self._per_gpu + adapter) // self._gpus_per_nic
        # Flows stay on their rail: both ends are the same NIC of their domains.
        if (gpu, adapter) != (target_gpu, target_adapter) or not self._exist(
            source, target, gpu, adapter
        ):
            return None
        plane, place = divmod(rail, self._per_plane)
        leaves = [self._order.leaf(domain, place) for domain in (source, target)]
        switches = ceil_ratio(
            self._family.planes, self._planes_of_switch
        )  # of planes that first ports of NICs lead to
        port = (_numbers(row["source_leaf"], "leaf", 2) or (0,))[0] // switches
        for side, leaf in zip(("source", "destination"), leaves, strict=True):
            if (
                row[f"{side}_leaf"]
                != f"leaf/{port * switches + plane // self._planes_of_switch}/{leaf}"
            ):
                return None
        links = self._links(row, plane, port * self._family.planes, *leaves)
        is_there = links is not None and port < self._family.copies
        return (
            RoutedFlow(RailFlow(source, target, rail, port), *links)
            if links is not None and is_there
            else None
        )

    def _first_of_nic(self, domain: int, gpu: int) -> tuple[int, int]:
        """The GPU that a NIC is named for: the first of those that share it."""
        return domain, gpu - gpu % self._gpus_per_nic

    def _exist(self, source: int, target: int, gpu: int, adapter: int) -> bool:
        domains = self._family.domains
        return (
            source < domains
            and target < domains
            and gpu < self._family.active
            and adapter < self._per_gpu
        )

    def _links(
        self, row: Mapping[str, str], plane: int, offset: int, a: int, b: int
    ) -> tuple[tuple[Link, ...], tuple[Link, ...]] | None:
        """The links up and down between two leaves; None where they are not there.

        Planes of further ports of NICs, numbered from an offset, are wired as those of the first.
        """
        up, top, down = row["source_aggregation"], row["top"], row["destination_aggregation"]
        if a == b or self._wiring is None:
            return None if a != b or up or top or down else ((), ())
        graph_plane = plane if self._wiring.planes > 1 else 0
        leaf_a, leaf_b = (1, graph_plane, a), (1, graph_plane, b)
        if self._ports.tiers == 2:
            spine = _numbers(top, "spine", 2)
            if up or down or spine is None or spine[0] != plane + offset:
                return None
            spine_node = (2, graph_plane, spine[1])
            return self._existing(((leaf_a, spine_node),), ((leaf_b, spine_node),))
        ends = [_numbers(name, "aggregation", 2) for name in (up, down)]
        if any(end is None or end[0] != plane + offset for end in ends):
            return None
        (pod, j), (target_pod, k) = (
            divmod(end[1], self._ports.up) for end in ends if end is not None
        )
        switch_a, switch_b = (2, graph_plane, pod, j), (2, graph_plane, target_pod, k)
        if not top:
            return (
                self._existing(((leaf_a, switch_a),), ((leaf_b, switch_a),))
                if switch_a == switch_b
                else None
            )
        core = _numbers(top, "core", 2)
        if core is None or core[0] != plane + offset:
            return None
        core_switch = (3, graph_plane, *divmod(core[1], self._group))
        return self._existing(
            ((leaf_a, switch_a), (switch_a, core_switch)),
            ((leaf_b, switch_b), (switch_b, core_switch)),
        )

    def _existing(
        self, up: tuple[Link, ...], down: tuple[Link, ...]
    ) -> tuple[tuple[Link, ...], tuple[Link, ...]] | None:
        assert self._wiring is not None
        return (
            (up, down) if all(self._wiring.graph.has_edge(*link) for link in (*up, *down)) else None
        )


def _numbers(name: str, kind: str, count: int) -> tuple[int, ...] | None:
    """The numbers of a name such as nic/0/1/0; None for any other."""
    word, *numbers = name.split("/")
    if (
        word != kind
        or len(numbers) != count
        or not all(digits.isdecimal() and digits.isascii() for digits in numbers)
    ):
        return None
    return tuple(map(int, numbers))
