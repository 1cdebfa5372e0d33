"""The fastest design that an instance ranges over, whatever it costs: by enumeration, so exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coopt.columns.feasible import FeasibleMappings, feasible_mappings
from coopt.columns.grid import Context, DomainSet, context_of
from coopt.columns.pools import Pool, in_orders, place
from coopt.columns.table import columns
from coopt.instance.schema import Instance, require_billed, require_no_failures, require_one_network
from coopt.instance.variants import inside_first
from coopt.network.family import Family
from coopt.network.parts import cost_of, within_limits
from coopt.network.plan_networks import design_of
from coopt.network.space import families
from coopt.plan.parts import Cost
from coopt.plan.schema import InstanceId
from coopt.plan.store import Evaluation, limit_checks
from coopt.solving import explain
from coopt.solving.arrays import fastest_row, workload_plan

FIRST_ROWS = (
    2048  # rows that are timed first: those which nothing but compute would make the fastest
)


@dataclass(frozen=True, kw_only=True)
class _Network:
    """A family at the most uplinks that the limits leave: more are never slower."""

    family: Family
    uplinks: int
    cost: Cost


def fastest_design(instance: Instance) -> Evaluation | tuple[str, ...]:
    """The network and mappings of least iteration time within memory and limits.

    Every network is taken at the most uplinks that the limits leave; of equally fast ones the
    cheapest. With several workloads it is the largest share of a bound that is least. Bounds on
    time are reported, not enforced.

    Returns
    -------
    Evaluation or sentences
        Sentences that say why nothing can be built, or why nothing fits.
    """
    require_one_network(instance, "the action fastest of a suite")
    require_no_failures(instance, "the action fastest of a suite")
    require_billed(instance, "the action fastest of a suite")

    def in_time(outcome: Evaluation | tuple[str, ...]) -> bool:
        return not isinstance(outcome, tuple) and all(
            run.iteration_time_s <= run.bound_s for run in outcome.workloads
        )

    return inside_first(instance, _fastest_network, in_time)[0]


def _fastest_network(instance: Instance) -> Evaluation | tuple[str, ...]:
    """The fastest design where workloads say whether TP groups may extend over HB domains."""
    candidates = tuple(families(instance))
    if not candidates:
        return explain.no_family(instance)
    networks = tuple(_networks(instance, candidates))
    if not networks:
        return ("no network keeps the limits even at its fewest uplinks: needs looser [limits]",)
    fits = {
        (w, gpus): feasible_mappings(workload, instance.cluster.gpu, gpus)
        for w, workload in enumerate(instance.workload)
        for gpus in dict.fromkeys(network.family.gpus for network in networks)
    }
    sites = dict.fromkeys(context_of(network.family).site for network in networks)
    ranked = [
        entry
        for site in sites
        if all(len(fits[w, site.gpus].fit) for w in range(len(instance.workload)))
        for entry in _on_site(instance, site, networks, fits)
    ]
    if not ranked:
        table = columns(instance, candidates, lambda site: None, lambda: None)
        return explain.no_design(instance, candidates, table, lambda: None)
    _, _, network, pools = min(ranked, key=lambda entry: entry[:2])
    return _written_out(instance, network, pools)


def _networks(instance: Instance, candidates: tuple[Family, ...]) -> Iterator[_Network]:
    for family in candidates:
        for uplinks in reversed(family.uplink_choices):
            cost = cost_of(instance, family, uplinks)
            if within_limits(instance, family, cost):
                yield _Network(family=family, uplinks=uplinks, cost=cost)
                break


def _on_site(
    instance: Instance,
    site: DomainSet,
    networks: tuple[_Network, ...],
    fits: dict[tuple[int, int], FeasibleMappings],
) -> Iterator[tuple[float, float, _Network, tuple[Pool, ...]]]:
    """The largest share of a bound, the cost and the rows of every network of one site."""
    site_networks = [network for network in networks if context_of(network.family).site == site]
    seen = [(context_of(network.family), network.uplinks) for network in site_networks]
    pools = tuple(
        _quick(instance, site_networks[0].family, site, fits[w, site.gpus], seen)
        for w in range(len(instance.workload))
    )
    shares: dict[tuple[Context, int], float] = {}
    # times depend on context and uplinks alone: networks that differ in other parts have them once
    for context, uplinks in dict.fromkeys(seen):
        times = [fastest_row(pool, context, uplinks)[1] for pool in pools]
        shares[context, uplinks] = max(
            time_s / workload.bound_s
            for time_s, workload in zip(times, instance.workload, strict=True)
        )
    for network, key in zip(site_networks, seen, strict=True):
        yield shares[key], network.cost.of(instance.objective.minimize), network, pools


def _quick(
    instance: Instance,
    family: Family,
    site: DomainSet,
    source: FeasibleMappings,
    seen: list[tuple[Context, int]],
) -> Pool:
    """Placed mappings among which is the fastest on each of the networks.

    Rows whose time on no network undercuts the slowest of the best times found so far cannot be it.
    """
    gpu, order = instance.cluster.gpu, np.argsort(source.fastest_s, kind="stable")
    pool = place(source.workload, gpu, family.hb, site, source.fit.take(order[:FIRST_ROWS]))
    pool = in_orders(pool, family.discipline)
    slowest = max(
        fastest_row(pool, context, uplinks)[1] for context, uplinks in dict.fromkeys(seen)
    )
    rows = order[source.fastest_s[order] <= slowest]
    return in_orders(
        place(source.workload, gpu, family.hb, site, source.fit.take(rows)), family.discipline
    )


def _written_out(instance: Instance, network: _Network, pools: tuple[Pool, ...]) -> Evaluation:
    context, design = context_of(network.family), design_of(network.family, network.uplinks)
    plans = tuple(
        workload_plan(
            pool,
            instance.cluster.gpu,
            context,
            network.uplinks,
            fastest_row(pool, context, network.uplinks)[0],
        )
        for pool in pools
    )
    return Evaluation(
        instance=InstanceId(name=instance.name, sha256=instance.sha256),
        design=design,
        cost=network.cost,
        workloads=plans,
        limits=tuple(limit_checks(instance, design, network.cost, plans)),
    )
