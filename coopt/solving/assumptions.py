"""What a plan takes for granted, and how long training takes where it is otherwise: how flows share
links, how evenly routers load experts, and that nothing fails.

The networks of the plan stay as they are; a mapping that suits the other case better takes the
place of its own.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

from coopt.columns.grid import context_of
from coopt.columns.grid import mappings as every_mapping
from coopt.columns.pools import Pool, in_orders, place
from coopt.instance.reserves import MAX_SPARES, published_failures
from coopt.instance.schema import Instance, instance_of
from coopt.instance.workload import Workload
from coopt.network.plan_networks import PartNetwork, part_network
from coopt.network.space import outages_of
from coopt.perf.uptime import enough_domains
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import Assumption, Plan
from coopt.plan.store import decided, placed_as, plan_of
from coopt.solving.arrays import pace_of, row_of, workload_plan
from coopt.solving.cliffs import with_cliffs
from coopt.solving.days import family_domain_lost, uptime_of
from coopt.solving.divisibility import Trial, TrialNetwork, with_better_numbers
from coopt.solving.given_mappings import pinned

ENOUGH = 0.99
"""Share of the time in which domains enough work, with which spare domains are enough."""
HARDLY = 1e-3
"""Share of the time that trains, below which it is not said how long training takes."""


def assess(instance: Instance | str | Path, plan: Plan | str | Path) -> Plan:
    """Add what a reader has to know beside a plan: `assumptions` with what each is worth,
    `better_numbers` of batch, GPUs and degrees, and `cliffs` nearby.

    `coopt solve` and `coopt serve` do so with every plan that they find; it takes about a second.
    Ctrl-C leaves the plan with what it has until then.

    Examples
    --------
    >>> import coopt
    >>> instance = coopt.load("instances/tiny-64.toml")
    >>> plan = coopt.assess(instance, coopt.solve(instance))
    >>> [assumption.key for assumption in plan.assumptions]
    ['availability.rates = "llama-3"', 'availability.rates = "llama-3"']
    """
    instance, plan = instance_of(instance), plan_of(plan)
    try:
        for step in (with_assumptions, with_better_numbers, with_cliffs):
            plan = step(instance, plan)
        if instance.several_networks:
            from coopt.solving.fleet.nearest import with_nearest  # loaded only where it is asked

            plan = with_nearest(instance, plan)
    except KeyboardInterrupt:  # the plan is found
        pass
    return plan


def with_assumptions(instance: Instance, plan: Plan) -> Plan:
    """The plan with its assumptions, of networks of switches that are not joined over sites."""
    if plan.cost is None or instance.asks("ring"):
        return plan
    return plan.model_copy(update={"assumptions": tuple(_assumptions(instance, plan))})


def _assumptions(instance: Instance, plan: Plan) -> Iterator[Assumption]:
    question, answer = placed_as(*decided(instance, plan))
    # of a network that grows the last phase in which something trains counts
    trained = {part.slot: part for part in answer.parts if part.workloads}
    tied = {run.name for run in plan.ties}
    for part in trained.values():
        if part.design is not None:
            name = part.name if len(answer.parts) > 1 else None
            network = part_network(question, answer, "its assumptions", name)
            for workload, run in network.runs:
                # what the model cannot tell apart is compared with its like
                alike = {"micro_batch": (run.mapping.micro_batch,)} if run.name in tied else {}
                yield from _of_run(network, workload.having(mapping=alike), run)


def _of_run(network: PartNetwork, workload: Workload, run: WorkloadPlan) -> Iterator[Assumption]:
    """What a workload takes for granted on its network."""
    family, discipline = network.family, network.family.discipline
    if family.tiers > 1 and discipline.charge == "loads" and discipline.routing != "ecmp":
        at_random = discipline._replace(routing="ecmp", efficiency=1.0)
        on_random = replace(network, family=replace(family, discipline=at_random))
        yield _otherwise('network.routing = "ecmp"', on_random, workload, run)
    if workload.model.experts:
        balance = "forced" if workload.balance == "trained" else "trained"
        changed = workload.model_copy(update={"balance": balance})
        yield _otherwise(f'workload.balance = "{balance}"', network, changed, run)
    if network.question.availability is None:
        yield from _failures(network, workload, run)


def _otherwise(key: str, network: PartNetwork, workload: Workload, run: WorkloadPlan) -> Assumption:
    """How long an iteration takes on a network, by the mapping that is the fastest there."""
    family, gpus, gpu = network.family, network.family.gpus, network.question.cluster.gpu
    context, uplinks = context_of(family), network.uplinks
    pool, row = _placed(network, workload, run)
    kept = workload_plan(pool, gpu, context, uplinks, row)
    trial = Trial.on_all(workload, family, value=gpus)
    # the mapping that is kept is hardly slower than the fastest, so that no lower bounds are tried
    found = TrialNetwork(network.question.cluster, family, uplinks).fastest(
        [trial], kept.iteration_time_s, step=math.inf
    )
    other = kept if found is None else workload_plan(found.pool, gpu, context, uplinks, found.row)
    other = min(kept, other, key=attrgetter("iteration_time_s"))
    other = other.model_copy(update={"bound_s": run.bound_s})
    ratio = other.iteration_time_s / run.iteration_time_s
    return Assumption(key=key, workload=run.name, time_ratio=ratio, run=other)


def _placed(network: PartNetwork, workload: Workload, run: WorkloadPlan) -> tuple[Pool, int]:
    """The placements of a run's mapping, and the row of its own."""
    family = network.family
    alone = network.question.model_copy(update={"workload": (workload,)})
    (narrowed,) = pinned(alone, [run.mapping])
    choices, _ = every_mapping(narrowed, family.gpus)
    context, gpu = context_of(family), network.question.cluster.gpu
    pool = in_orders(place(narrowed, gpu, family.hb, context.site, choices), context.discipline)
    row = row_of(pool, run)
    assert row is not None, f"workload {workload.name!r} is not placed as its plan has it"
    return pool, row


def _failures(network: PartNetwork, workload: Workload, run: WorkloadPlan) -> Iterator[Assumption]:
    """Published rates of failure, on the domains of the plan and with enough that stand by."""
    published = published_failures()
    question = network.question.having(availability=published)
    outages = outages_of(question, keeps_ports=network.family.keeps_ports)
    family = replace(network.family, outages=outages)
    pool, row = _placed(replace(network, family=family), workload, run)
    pace = pace_of(pool, context_of(family), network.uplinks, row) if workload.calendar else 1.0
    loss = family_domain_lost(published, family)
    enough = bisect_left(
        range(MAX_SPARES),
        ENOUGH,
        key=lambda spares: enough_domains(loss, family.domains, spares),
    )
    for spares in dict.fromkeys((family.spare_domains, max(enough, family.spare_domains))):
        spared = replace(family, spare_domains=spares)
        uptime = uptime_of(question, spared, network.uplinks, workload, pace)
        assert uptime is not None
        yield Assumption(
            key=f'availability.rates = "{published.rates.name}"',
            workload=run.name,
            spare_domains=spares,
            time_ratio=1.0 / uptime.goodput if uptime.goodput > HARDLY else None,
        )
