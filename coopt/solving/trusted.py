"""A plan whose mappings, placements and times are those of its instance, before anything is built on them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from coopt.columns.context import DomainSet, context_of
from coopt.columns.grid import mappings as every_mapping
from coopt.columns.pools import Pool, in_orders, place
from coopt.columns.waits import waiting
from coopt.instance.errors import InstanceError
from coopt.instance.hardware import HbDomain
from coopt.instance.schema import Instance
from coopt.network.part_networks import PartNetwork, part_named, part_network, question_of
from coopt.perf.affine import Reciprocals
from coopt.perf.ways import HALVING, ONE_RING, RINGS, TREES
from coopt.plan.schema import Part, Plan, WorkloadPlan
from coopt.solving.evaluate import pinned
from coopt.solving.workloads import placement_of

CLOSE = 1e-9  # of the time
NEEDED = "needs a plan that `coopt verify` accepts"


def trusted_part(instance: Instance, plan: Plan, asked: str, part: str | None = None) -> PartNetwork:
    """The network of the part that is named, or of the only one, once the model gives what the plan says of it.

    Parameters
    ----------
    asked
        What it is wanted for, as a refusal calls it.

    Raises
    ------
    InstanceError
        When the part has no design of this instance, other workloads, or a mapping, placement or time that the model
        does not give.
    """
    found = part_network(instance, plan, asked, part)
    family, context = found.family, context_of(found.family)

    def time_s(pool: Pool, row: int) -> float:
        late = waiting(pool, found.waits_s.get(pool.workload.name, 0.0))
        return float(late.time_s(context, found.uplinks)[row])

    _check_runs(found.question, found.part, family.hb, context.site, time_s)
    return found


def check_runs(instance: Instance, plan: Plan, asked: str, part: str | None = None) -> None:
    """Refuse a part, on switches or on direct links, of which the model does not give what the plan says.

    Raises
    ------
    InstanceError
        As `trusted_part` does.
    """
    chosen = part_named(instance, plan, part)
    if chosen.links is None:
        trusted_part(instance, plan, asked, part)
        return
    question, links = question_of(instance, chosen), chosen.links
    hb = next((hb for hb in question.network.hb_domains if hb.name == links.hb_domain.name), None)
    nic = next((nic for nic in question.network.nics if nic.name == links.nic.name), None)
    if hb is None or nic is None:
        raise InstanceError(f"{instance.name}: the plan's network is not one this instance allows, {NEEDED}")
    byte_s, seen = nic.gbit_s * 1e9 / 8, {"pp": 0.0, "dp": 0.0}
    seen |= {phase.name: links.hb_domain.active / (phase.pace_links * byte_s) for phase in links.phases}

    def time_s(pool: Pool, row: int) -> float:
        return float(pool.iteration.time_s(Reciprocals.of_grid(replicas=seen["dp"], stages=seen["pp"]))[row])

    _check_runs(question, chosen, hb, DomainSet(gpus=links.gpus, hb=hb.name, active=links.hb_domain.active), time_s)


def _check_runs(
    question: Instance, part: Part, hb: HbDomain, site: DomainSet, time_s: Callable[[Pool, int], float]
) -> None:
    """Place every mapping as the plan says, and compare its time."""
    narrowed = pinned(question, [chosen.mapping for chosen in part.workloads])
    for workload, chosen in zip(narrowed, part.workloads, strict=True):
        whole, _ = every_mapping(workload, site.gpus)
        pool = in_orders(place(workload, question.cluster.gpu, hb, site, whole), question.network.discipline)
        row = _row_of(pool, chosen)
        if row is None or not math.isclose(time_s(pool, row), chosen.iteration_time_s, rel_tol=CLOSE):
            raise InstanceError(
                f"{question.name}: what the plan says of workload {workload.name!r} is not what this instance gives, "
                f"{NEEDED}"
            )
        for kind, ways in pool.iteration.ways.take(np.array([row])).named.items():
            there, name = [one.name for one in ways], chosen.collectives.get(kind, RINGS)
            if name not in there and name in (ONE_RING, HALVING, TREES):
                raise InstanceError(
                    f"{question.name}: workload {workload.name!r}: collectives.{kind} = {name!r}, needs one of "
                    f"{', '.join(map(repr, there))}, {NEEDED}"
                )


def _row_of(pool: Pool, chosen: WorkloadPlan) -> int | None:
    """The row of a pool that is placed as a plan says; None where there is none."""
    for row in range(len(pool)):
        one = np.array([row])
        if placement_of(pool.workload, pool.mappings.take(one), pool.placements.take(one)) == chosen.placement:
            return row
    return None
