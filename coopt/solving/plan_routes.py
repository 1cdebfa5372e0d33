"""Routes for the traffic of a plan, and what they do to its iteration times.

Where flows are pinned to paths, a plan has routes of its own. No routing undercuts what pinned
flows are charged, so that the bound of the first search is one on all plans with routes. Where
those found for its plan are slower and miss a bound, the search goes on among networks with more
uplinks.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from coopt.columns.algorithm_loads import algorithm_patterns
from coopt.columns.grid import context_of, groups_of
from coopt.columns.loads import crossings
from coopt.columns.times import delayed
from coopt.instance.network import Discipline, Network
from coopt.instance.numerics import REORDERED
from coopt.instance.schema import Instance, instance_of
from coopt.instance.texts import InstanceError
from coopt.instance.workload import Workload
from coopt.network.plan_networks import PartNetwork
from coopt.network.routing.layers import efficiency, flow_rates, group_rates
from coopt.network.routing.tiers import PlaneRoutes
from coopt.perf.algorithms import HALVING, RINGS, TREES
from coopt.perf.collectives import KINDS, Reciprocals
from coopt.perf.collectives import Flows as WayFlows
from coopt.plan.couplings import Part
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import InstanceId, Plan
from coopt.plan.store import plan_of
from coopt.plan.traffic import CollectiveRoutes, LinkLoad, RoutedWorkload, Routing
from coopt.solving.days import allowed_s
from coopt.solving.driver import claim_of, identity, unknown, within_gap
from coopt.solving.flow_routes import NAMES, SPRAY, Choice, routed_flows
from coopt.solving.plan_traffic import CLOSE, iteration_of, trusted_part
from coopt.solving.runs import Run
from coopt.traffic.flows import demand
from coopt.traffic.of_plan import LeafFlows
from coopt.traffic.ranks import RankGrid, split_of

WAYS: dict[WayFlows, str] = {"ring": RINGS, "halving": HALVING, "trees": TREES}
FLOWS = {name: flows for flows, name in WAYS.items()}
CHARGED_AS = {
    "copies": "edp",
    "hop": "pp",
    "pair": "tied",
}  # other groups have the name of their kind of traffic
LESS_SHARE = 1e-6
"""By what share a ratio has to be lower, so that a network is ruled out that has it."""
MISSED = "the routes found miss a bound on time"
MISSED_BELOW = "the routes found for a cheaper plan miss a bound on time"


def route_plan(
    instance: Instance | str | Path,
    plan: Plan | str | Path,
    *,
    part: str | None = None,
    algorithm: str | None = None,
    seed: int = 0,
    failed_cores: int = 0,
    time_limit_s: float = 60.0,
    with_links: bool = True,
) -> Routing:
    """Route every collective of a plan over the switches above its leaves.

    Parameters
    ----------
    part
        The name of the part whose traffic is routed, where the plan has several.
    algorithm
        One of `coopt.solving.flow_routes.NAMES`, or None for what `network.routing` names; `exact`
        solves an integer program on two tiers, and gives the best it has after the time limit.
    failed_cores
        Spines, or core switches on three tiers, that are out in every plane.
    with_links
        Whether to list the load of every link, of which large networks have many.

    Raises
    ------
    InstanceError
        When the plan has no design of this instance, the algorithm is not known, or leaves cannot
        reach each other.

    Examples
    --------
    >>> import coopt
    >>> instance = coopt.load("instances/tiny-64.toml")
    >>> coopt.route(instance, coopt.solve(instance)).workloads[0].within_bound
    True
    """
    instance, plan = instance_of(instance), plan_of(plan)
    if algorithm is not None and algorithm not in NAMES:
        raise InstanceError(
            f"algorithm {algorithm!r}: is not known, needs one of {', '.join(NAMES)}"
        )
    is_pinned = algorithm is None and instance.network.discipline.routing == "pinned"
    algorithm, stretched = _algorithm_of(instance.network, algorithm)
    network = trusted_part(instance, plan, "route", part)
    family = network.family
    if failed_cores and family.tiers < 2:
        raise InstanceError(
            f"failed cores: {failed_cores}, but the plan has no switches above its leaves, needs 0"
        )
    choice = Choice(
        algorithm=algorithm, seed=seed, failed_cores=failed_cores, time_limit_s=time_limit_s
    )
    collectives: list[CollectiveRoutes] = []
    links: list[LinkLoad] = []
    times = []
    for workload, run in network.runs:
        split = split_of(workload, run)
        charged = _charged(network, split, run, stretched)
        flown = _flown(network, workload, run, choice)
        routes = [
            _collective(
                workload.name, of_planes, charged, stretched, family.nic_planes, pinned=is_pinned
            )
            for of_planes in flown
        ]
        collectives += routes
        if with_links:
            links += [
                load
                for pairs in flown
                for pair in pairs
                for load in _links(workload.name, network, *pair)
            ]
        times.append(
            _routed(network, workload, run, _routed_time_s(network, split, run, charged, routes))
        )
    return Routing(
        instance=InstanceId(name=instance.name, sha256=instance.sha256),
        algorithm=algorithm,
        seed=seed,
        failed_cores=failed_cores,
        routing=max((routes.routing for routes in collectives), default=1.0),
        collectives=tuple(collectives),
        workloads=tuple(times),
        links=tuple(links),
        seconds=sum(routes.seconds for routes in collectives),
    )


def _flown(
    network: PartNetwork, workload: Workload, run: WorkloadPlan, choice: Choice
) -> list[list[tuple[LeafFlows, PlaneRoutes]]]:
    """The routed flows of each round of each collective, plane by plane; none where leaves are all
    there is.
    """
    rounds: dict[tuple[str, str, str, int], list[tuple[LeafFlows, PlaneRoutes]]] = defaultdict(list)
    if network.family.tiers > 1:
        for flows, routed in routed_flows(
            network.family, network.uplinks, demand(workload, run), choice
        ):
            rounds[flows.kind, flows.collective, flows.flows, flows.round_index].append(
                (flows, routed)
            )
    return list(rounds.values())


def _routed(
    network: PartNetwork, workload: Workload, run: WorkloadPlan, routed_s: float
) -> RoutedWorkload:
    """The iteration time with routes beside the planned one and its bound."""
    bound_s = allowed_s(network.question, network.family, network.uplinks, workload, run)
    return RoutedWorkload(
        name=workload.name,
        iteration_time_s=run.iteration_time_s,
        routed_time_s=routed_s,
        bound_s=bound_s,
        within_bound=routed_s <= bound_s * (1 + CLOSE),
    )


def _algorithm_of(network: Network, algorithm: str | None) -> tuple[str, float]:
    """The algorithm, and what stretches flows on the links that it gives them.

    Where none is asked for it is that of the discipline: flows are sprayed, which has an
    efficiency, spread so that the busiest link has a factor more than the mean, pinned, or drawn
    once at random. The ratio of a leaf names none.
    """
    sprayed = SPRAY, 1.0 / network.spray_efficiency
    if algorithm is not None:
        return sprayed if algorithm == SPRAY else (algorithm, 1.0)
    charge, routing, _ = network.discipline
    if charge == "loads" and not isinstance(routing, str):
        return SPRAY, routing
    return sprayed if routing == "spray" else ("ecmp" if routing == "ecmp" else "best", 1.0)


RoundOf = tuple[str, str, int]
"""A kind of traffic, who sends to whom, and the round."""


@dataclass(frozen=True, kw_only=True)
class KindLoad:
    """What links carry of a kind of traffic in NIC rates, spread over all of them, and stretched as
    they are used.

    `charged` is the slowdown that the plan is charged, at least 1; `share` is that of the bytes,
    where rounds follow each other.
    """

    even: float
    stretched: float
    charged: float
    share: float = 1.0


def _charged(
    network: PartNetwork, split: RankGrid, run: WorkloadPlan, stretched: float
) -> dict[RoundOf, KindLoad]:
    """The loads of every kind of traffic round rings, and of every round of other ways that the
    plan names.
    """
    family, uplinks = network.family, max(network.uplinks, 1)
    groups = groups_of(split.workload, split.mapping, split.placement)
    # factors of 1: what links carry before the discipline stretches it
    evenly = Discipline(family.discipline.charge, 1.0, 1.0)
    layout, algorithms = (
        context_of(family).layout,
        iteration_of(network, split).algorithms.of_names(run.collectives).flows,
    )
    even, charged = (
        crossings(layout, discipline, groups, algorithms=algorithms, exact=True)
        for discipline in (evenly, family.discipline)
    )
    carried = [load.carried(uplinks)[:, 0].tolist() for load in (even, charged)]
    rings = {kind: (load, max(1.0, slow)) for kind, load, slow in zip(KINDS, *carried, strict=True)}
    loads = {(kind, "ring", 0): (*figures, 1.0) for kind, figures in rings.items()}
    by_algorithm = [
        load.carried_by_algorithms(uplinks)[:, 0].tolist() if load.algorithms else []
        for load in (even, charged)
    ]
    turns: Counter[tuple[str, str]] = Counter()
    for n, pattern in enumerate(algorithm_patterns(groups, algorithms)):
        way = pattern.kind, pattern.flows
        figures = (
            (by_algorithm[0][n], max(1.0, by_algorithm[1][n]))
            if even.algorithms
            else rings[pattern.kind]
        )
        loads[*way, turns[way]] = (*figures, float(pattern.share[0]))
        turns[way] += 1
    return {
        way: KindLoad(even=load, stretched=load * stretched, charged=slow, share=share)
        for way, (load, slow, share) in loads.items()
    }


def _collective(
    workload: str,
    of_planes: list[tuple[LeafFlows, PlaneRoutes]],
    charged: dict[RoundOf, KindLoad],
    stretched: float,
    ports: int,
    *,
    pinned: bool,
) -> CollectiveRoutes:
    """What a collective, or a round of one, comes to, over planes that are alike.

    Each port of a NIC carries its share of every flow. Flows that are `pinned` keep to one link of
    a bundle each, so that its busiest link has the next whole number.
    """
    flows_of_plane = of_planes[0][0]
    alpha = max(routed.alpha for _, routed in of_planes)
    bound = max(routed.bound for _, routed in of_planes)
    kind = CHARGED_AS.get(flows_of_plane.collective, flows_of_plane.collective)
    # two exchange as in a ring
    load = charged.get(
        (kind, flows_of_plane.flows, flows_of_plane.round_index), charged[kind, "ring", 0]
    )
    rates = np.concatenate(
        [group_rates(flows.group, flow_rates(routed.hops)) for flows, routed in of_planes]
    )
    weights = np.concatenate(
        [np.full(len(np.unique(flows.group)), len(flows.planes)) for flows, _ in of_planes]
    )
    # CLOSE keeps a load that rounding put above a whole number from counting as the next one
    stretch = (
        (math.ceil(alpha * (1 - CLOSE)) if pinned else alpha) / flows_of_plane.per_nic * stretched
    )
    return CollectiveRoutes(
        workload=workload,
        kind=flows_of_plane.kind,
        collective=flows_of_plane.collective,
        way=WAYS[flows_of_plane.flows],
        round=flows_of_plane.round,
        share=flows_of_plane.share,
        flows=ports
        * sum(len(flows.planes) * int((flows.src != flows.dst).sum()) for flows, _ in of_planes),
        per_nic=flows_of_plane.per_nic,
        alpha=alpha,
        bound=bound,
        optimal=alpha <= bound * (1 + REORDERED),
        efficiency=efficiency(np.repeat(rates, weights)),
        stretch=stretch,
        charged=load.charged,
        routing=stretch / load.even if stretch > load.charged * (1 + CLOSE) else 1.0,
        seconds=sum(routed.seconds for _, routed in of_planes),
    )


def _links(
    workload: str, network: PartNetwork, flows: LeafFlows, routed: PlaneRoutes
) -> Iterator[LinkLoad]:
    for level, loads in enumerate(routed.loads, start=2):
        for lower_switch, upper_switch in np.argwhere(loads.links > 0).tolist():
            yield LinkLoad(
                workload=workload,
                collective=flows.collective,
                round=flows.round,
                planes=network.family.nic_planes * len(flows.planes),
                plane=flows.planes[0],
                level=level,
                lower=lower_switch,
                upper=upper_switch,
                links=int(loads.links[lower_switch, upper_switch]),
                up=loads.up[lower_switch, upper_switch].item(),
                down=loads.down[lower_switch, upper_switch].item(),
            )


def _routed_time_s(
    network: PartNetwork,
    split: RankGrid,
    run: WorkloadPlan,
    charged: dict[RoundOf, KindLoad],
    collectives: list[CollectiveRoutes],
) -> float:
    """Iteration time where each kind of traffic waits for the worst of its collectives, in each of
    its rounds.

    Collectives go the ways that the plan names, whatever they take.
    """
    slow = {way: max(1.0, load.stretched) for way, load in charged.items()}
    for routes in collectives:
        kind, flows = CHARGED_AS.get(routes.collective, routes.collective), FLOWS[routes.way]
        at = kind, flows, max(routes.round - 1, 0)
        at = at if at in slow else (kind, "ring", 0)
        slow[at] = max(slow[at], routes.stretch)
    rates: dict[str, Any] = {kind: slow[kind, "ring", 0] / network.family.byte_s for kind in KINDS}
    algorithms: dict[tuple[str, str], float] = defaultdict(float)
    for way, factor in slow.items():
        if way[1] != "ring":
            algorithms[way[:2]] += factor * charged[way].share / network.family.byte_s
    iteration_model = iteration_of(network, split)
    iteration_model = delayed(
        replace(iteration_model, algorithms=iteration_model.algorithms.of_names(run.collectives)),
        network.waits_s.get(split.workload.name, 0.0),
    )
    return float(iteration_model.time_s(Reciprocals(**rates, algorithms=algorithms or None))[0])


def with_routes(run: Run, answer: Callable[[Run], Plan]) -> Plan:
    """The answer to a question, with the slowdowns of the routes that were found for it.

    It is optimal where routes for the first plan meet all bounds. Another one is compared with the
    bound of the first.
    """
    first_plan = plan = answer(run)
    question = run.instance
    while plan.parts and not run.backend.cancel.is_set():
        plan, missed = _plan_with_routes(question, plan, run)
        if not missed:
            break
        run.tell("routes", f"{MISSED} in {', '.join(part.name for part in missed)}")
        tighter = _with_more_uplinks(question, missed)
        if tighter is None:
            return _unmet(run, first_plan)
        question, plan = tighter, answer(replace(run, instance=tighter))
    return plan if question is run.instance else _beside(run, plan, first_plan)


def _plan_with_routes(question: Instance, plan: Plan, run: Run) -> tuple[Plan, list[Part]]:
    """The plan with slowdowns of routes, and the parts in which a workload misses its bound by
    them.
    """
    parts, missed = [], []
    for part in plan.parts:
        if part.design is None or part.design.fabric.tiers < 2:
            parts.append(part)
            continue
        run.tell("routes", f"routing the flows of {part.name}")
        routing = route_plan(question, plan, part=part.name, with_links=False)
        slow = slowed_by(routing.collectives)
        runs = tuple(
            workload.model_copy(update={"routes": slow.get(workload.name, {})})
            for workload in part.workloads
        )
        parts.append(part.model_copy(update={"workloads": runs}))
        if not all(workload.within_bound for workload in routing.workloads):
            missed.append(part)
    top = parts[0].workloads if plan.workloads else ()
    return plan.model_copy(update={"parts": tuple(parts), "workloads": top}), missed


def slowed_by(collectives: Iterable[CollectiveRoutes]) -> dict[str, dict[str, float]]:
    """How far routes slow each kind of traffic of each workload: the slowest collective, over all
    of its rounds.
    """
    means: dict[tuple[str, str, str], float] = {}
    for routes in collectives:
        name = routes.workload, routes.kind, CHARGED_AS.get(routes.collective, routes.collective)
        means[name] = means.get(name, 0.0) + routes.share * max(1.0, routes.stretch, routes.charged)
    slow: dict[str, dict[str, float]] = {}
    for (workload, _, kind), mean in means.items():
        kinds = slow.setdefault(workload, {})
        kinds[kind] = max(kinds.get(kind, 1.0), mean)
    return slow


def _with_more_uplinks(question: Instance, missed: Iterable[Part]) -> Instance | None:
    """The question without networks as tapered as these; None where none is left."""
    tiers = [
        tier
        for part in missed
        if part.design
        for tier in part.design.fabric.tier
        if tier.uplinks_per_switch
    ]
    # a network as tapered as the worst of these may have the routes that miss: the limit goes just
    # below its ratio
    ratio = max(tier.down_ports / tier.uplinks_per_switch for tier in tiers) * (1 - LESS_SHARE)
    ratios = question.network.oversubscription
    if isinstance(ratios, tuple):
        lower: tuple[float, ...] | float = tuple(value for value in ratios if value <= ratio)
    else:
        lower = min(ratios, ratio) if ratio >= 1 else ()
    if lower == ():
        return None
    return question.model_copy(
        update={"network": question.network.model_copy(update={"oversubscription": lower})}
    )


def _beside(run: Run, plan: Plan, first_plan: Plan) -> Plan:
    """A plan of fewer networks as an answer to the whole question, whose bound is that of the first
    search.
    """
    if plan.objective.value is None or first_plan.objective.bound is None:
        return _unmet(run, first_plan)
    claim = claim_of(plan.objective.kind, plan.objective.value, first_plan.objective.bound)
    proven = within_gap(run, claim)
    return plan.model_copy(
        update={
            "instance": identity(run.instance),
            "objective": claim,
            "status": "optimal" if proven else "feasible",
            "stop_reason": "optimal" if proven else MISSED_BELOW,
            "alternatives": (),
            "alternatives_stop": plan.alternatives_stop and "not proven",
            "timing_s": plan.timing_s.model_copy(update={"total": run.elapsed_s()}),
        }
    )


def _unmet(run: Run, first_plan: Plan) -> Plan:
    """The answer that no plan was found whose routes meet all bounds, with what the first search
    proved.
    """
    bound = first_plan.objective.bound
    return unknown(run, MISSED, -math.inf if bound is None else bound)
