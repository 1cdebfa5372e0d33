"""The paths of all flows between HB domains as a table."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, csv_text
from coopt.network.family import Family
from coopt.network.plan_networks import require_workload
from coopt.network.routing.tiers import PlaneRoutes
from coopt.plan.schema import Plan
from coopt.solving.flow_routes import Choice, routed_flows
from coopt.solving.plan_traffic import trusted_part
from coopt.traffic.flows import TrafficDemand, demand
from coopt.traffic.of_plan import LeafFlows, leaf_flows

COLUMNS = (
    "workload",
    "kind",
    "collective",
    "bytes",
    "source_gpu",
    "source_nic",
    "source_leaf",
    "source_aggregation",
    "top",
    "destination_aggregation",
    "destination_leaf",
    "destination_nic",
    "destination_gpu",
    "round",
)

CHOICE = Choice(
    algorithm="best", seed=0, failed_cores=0, time_limit_s=60.0
)  # as `coopt route` without options


def routes_csv(
    instance: Instance, plan: Plan, *, workload: str | None = None, part: str | None = None
) -> str:
    """One line for each flow between domains, with the names of what it crosses in the graph that
    is exported.

    Raises
    ------
    InstanceError
        When the plan has no design of this instance, no workload of that name, or one HB domain and
        so no network.
    """
    network = trusted_part(instance, plan, "the format routes", part)
    family, uplinks = network.family, network.uplinks
    if family.tiers == 0:
        raise InstanceError(
            f"{instance.place}: {network.part.text} has one HB domain ({family.hb.name}) and so no"
            " routes, needs several domains"
        )
    require_workload(plan, workload, network.part)
    rows = (
        (question.name, *line)
        for question, run in network.runs
        if workload in (None, question.name)
        for flows, routed in _routed(family, uplinks, demand(question, run))
        for line in _lines(family, uplinks, flows, routed)
    )
    return csv_text(COLUMNS, rows)


def _routed(
    family: Family, uplinks: int, traffic: TrafficDemand
) -> Iterator[tuple[LeafFlows, PlaneRoutes | None]]:
    """The flows with their routes; on one tier no switch lies above the leaves."""
    if family.tiers > 1:
        yield from routed_flows(family, uplinks, traffic, CHOICE)
    else:
        yield from ((flows, None) for flows in leaf_flows(family, traffic))


def _lines(
    family: Family, uplinks: int, flows: LeafFlows, routed: PlaneRoutes | None
) -> Iterator[tuple[str, ...]]:
    ports, plane_group = family.nic_planes, family.planes_together
    apart = (
        -(-family.planes // plane_group) * plane_group
    )  # numbers of planes from one port of a NIC to its next
    for port, (row, number) in product(range(ports), enumerate(flows.planes)):
        plane = port * apart + number
        switches = _upper_switches(family, uplinks, plane, flows, routed)
        leaves = (
            [f"leaf/{plane // plane_group}/{leaf}" for leaf in ends.tolist()]
            for ends in (flows.src, flows.dst)
        )
        gpus = (
            [divmod(gpu, family.active) for gpu in of[row].tolist()]
            for of in (flows.src_gpu, flows.dst_gpu)
        )
        sizes = (flows.size_bytes[row] / ports).tolist()
        for (
            (d, g),
            (e, h),
            nic,
            size_bytes,
            source_leaf,
            destination_leaf,
            (
                up,
                top,
                down,
            ),
        ) in zip(*gpus, flows.adapter[row].tolist(), sizes, *leaves, switches, strict=True):
            # a NIC is named for its first GPU
            source_nic, destination_nic = (gpu - gpu % family.gpus_per_nic for gpu in (g, h))
            source = (f"gpu/{d}/{g}", f"nic/{d}/{source_nic}/{nic}", source_leaf, up)
            destination = (
                down,
                destination_leaf,
                f"nic/{e}/{destination_nic}/{nic}",
                f"gpu/{e}/{h}",
            )
            yield (
                flows.kind,
                flows.collective,
                repr(size_bytes),
                *source,
                top,
                *destination,
                str(flows.round),
            )


def _upper_switches(
    family: Family, uplinks: int, plane: int, flows: LeafFlows, routed: PlaneRoutes | None
) -> Iterator[tuple[str, str, str]]:
    """Aggregation switch on the way up, spine or core, aggregation switch on the way down; empty
    where none is.
    """
    if routed is None:
        yield from (("", "", "") for _ in flows.src)
    elif family.pods is None:
        yield from (
            ("", f"spine/{plane}/{m}" if m >= 0 else "", "") for m in routed.middle.tolist()
        )
    else:
        group = family.core_group
        up, down = (
            ends // family.pods.leaves * family.slices(uplinks) + routed.middle
            for ends in (flows.src, flows.dst)
        )
        core = np.where(routed.core >= 0, routed.middle * group + routed.core, -1)
        for m, *ends, top in zip(
            *(of.tolist() for of in (routed.middle, up, down, core)), strict=True
        ):
            first, last = (f"aggregation/{plane}/{end}" if m >= 0 else "" for end in ends)
            yield first, f"core/{plane}/{top}" if m >= 0 and top >= 0 else "", last
