"""Who sends how much to whom in an iteration of a plan, on its network and on direct links in place
of it.

The mappings, placements and times of a plan are made those of its instance before anything is built
on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from coopt.columns.grid import DomainSet, context_of
from coopt.columns.grid import mappings as every_mapping
from coopt.columns.pools import Pool, in_orders, place
from coopt.columns.times import waiting
from coopt.instance.hardware import HbDomain
from coopt.instance.schema import Instance, instance_of
from coopt.instance.texts import InstanceError, both
from coopt.instance.workload import Workload
from coopt.network.plan_networks import PartNetwork, part_named, part_network, question_of
from coopt.network.schedules.board import Board
from coopt.network.schedules.schedule_form import Schedule, all_reduce_s
from coopt.perf.algorithms import HALVING, ONE_RING, RINGS, TREES
from coopt.perf.collectives import NO_NETWORK, AffineSeconds, Reciprocals
from coopt.perf.iterations import Iteration, iteration
from coopt.perf.mapping import expert_ranks
from coopt.perf.traffic import replicas_of
from coopt.plan.couplings import Part
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import Plan
from coopt.plan.store import plan_of
from coopt.plan.traffic import TrafficReport, Trained
from coopt.solving.arrays import row_of
from coopt.solving.days import allowed_s
from coopt.solving.direct.rows import grids_of
from coopt.solving.given_mappings import pinned
from coopt.traffic.of_plan import demands
from coopt.traffic.ranks import RankGrid, split_of
from coopt.traffic.summary import traffic_figures
from coopt.traffic.volumes import UNIT

CLOSE = 1e-9  # of the time
NEEDED = "needs a plan that `coopt verify` accepts"


def traffic(
    instance: Instance | str | Path,
    plan: Plan | str | Path,
    *,
    workload: str | None = None,
    part: str | None = None,
    trees: bool = False,
) -> TrafficReport:
    """Say who sends how much to whom in an iteration, by class of traffic and by place.

    Parameters
    ----------
    instance
        The question, or the file that holds it.
    workload
        One workload of several; None for all of the part.
    part
        The part of the plan, where it has several.
    trees
        Whether all-reduces of data parallelism take two binary trees across domains in place of a
        ring.

    Raises
    ------
    InstanceError
        When the plan is none of this instance, or has several parts and none is named.

    Examples
    --------
    >>> import coopt
    >>> instance = coopt.load("instances/tiny-64.toml")
    >>> (training,) = coopt.traffic(instance, coopt.solve(instance)).workloads
    >>> training.talking_pairs > 0
    True
    """
    question, plan = instance_of(instance), plan_of(plan)
    check_runs(question, plan, "traffic", part)
    family, demand = demands(question, plan, workload=workload, trees=trees, part=part)
    return traffic_figures(question, family, demand)


def train_on(
    instance: Instance,
    plan: Plan,
    board: Board,
    schedule: Schedule,
    *,
    latency_s: float,
    part: str | None = None,
) -> tuple[Trained, ...]:
    """Iteration times when data parallelism reduces and gathers over the links by a schedule.

    All GPUs of a domain share its links. Both halves of the exchange are phases of the schedule,
    each with its bytes.

    Raises
    ------
    InstanceError
        When the plan is not of this instance, the graph joins another number of domains, or
        anything but data parallelism crosses domains.
    """
    network = trusted_part(instance, plan, "training on the links of a graph", part)
    family = network.family
    if family.domains != board.domains:
        raise InstanceError(
            f"graph {board.name!r}: joins {board.domains} HB domains, but the plan has"
            f" {family.domains}, needs as many as the plan"
        )
    return tuple(_trained(network, board, schedule, latency_s, *pair) for pair in network.runs)


def _trained(
    network: PartNetwork,
    board: Board,
    schedule: Schedule,
    latency_s: float,
    workload: Workload,
    run: WorkloadPlan,
) -> Trained:
    question, family, split = network.question, network.family, split_of(workload, run)
    _refuse_other_traffic(split)
    iteration_model = iteration_of(network, split)
    replicas, y = replicas_of(workload, UNIT, split.mapping, split.placement), board.domains
    across_s = 0.0
    for half in (*replicas.shared_exchange().steps, *replicas.expert_exchange().steps):
        # at one second a byte seconds are bytes; from each of y domains goes (y - 1)/y of the data
        # of one of the two phases of an all-reduce
        sent_bytes = float(half.at(Reciprocals.everywhere(1.0)).sum() - half.at(NO_NETWORK).sum())
        data_bytes = family.active * sent_bytes * y / (y - 1)
        across_s += all_reduce_s(board, schedule, data_bytes, latency_s) / 2 if data_bytes else 0.0
    direct = replace(
        iteration_model,
        dp=AffineSeconds(iteration_model.dp.at(NO_NETWORK) + across_s),
        to_nics_s_byte=np.zeros(1),
    )
    return Trained(
        name=workload.name,
        bound_s=allowed_s(question, family, network.uplinks, workload, run),
        planned_time_s=run.iteration_time_s,
        iteration_time_s=float(direct.time_s(NO_NETWORK)[0]),
        between_domains_s=across_s,
    )


def iteration_of(network: PartNetwork, split: RankGrid) -> Iteration:
    """An iteration of a workload on the GPUs and HB domains of a network."""
    gpu, hb = network.question.cluster.gpu, network.family.hb
    return iteration(
        split.workload,
        gpu,
        hb.gbyte_s,
        split.mapping,
        split.placement,
        to_nics_gbyte_s=hb.to_nics_gbyte_s,
    )


def _refuse_other_traffic(split: RankGrid) -> None:
    _, across, *_ = expert_ranks(
        split.mapping, split.placement, expert_tp=split.workload.options.expert_tp
    )
    crossing = {
        "TP": split.extent("tl") > 1,
        "CP": split.extent("cl") > 1,
        "PP": split.extent("pl") > 1,
        "EP": bool(split.workload.model.experts) and int(across[0]) > 1,
    }
    names = [name for name, does in crossing.items() if does]
    if names:
        raise InstanceError(
            f"workload {split.workload.name!r}: {both(names)}"
            f" {'crosses' if len(names) == 1 else 'cross'} domains, but only data parallelism can"
            " be timed on direct links: needs a plan whose other degrees stay inside an HB domain"
            " (workload.mapping of the instance)"
        )


def trusted_part(
    instance: Instance, plan: Plan, purpose: str, part: str | None = None
) -> PartNetwork:
    """The network of the part that is named, or of the only one, once the model gives what the plan
    says of it.

    Raises
    ------
    InstanceError
        As `part_network` does, and when the model does not give a mapping, placement or time that
        the plan says.
    """
    network = part_network(instance, plan, purpose, part)
    family, context = network.family, context_of(network.family)

    def time_s(pool: Pool, row: int) -> float:
        delayed = waiting(pool, network.waits_s.get(pool.workload.name, 0.0))
        return float(delayed.time_s(context, network.uplinks)[row])

    _check_runs(network.question, network.part, family.hb, context.site, time_s)
    return network


def check_runs(instance: Instance, plan: Plan, purpose: str, part: str | None = None) -> None:
    """Refuse a part, on switches or on direct links, of which the model does not give what the plan
    says.

    Raises
    ------
    InstanceError
        As `trusted_part` does.
    """
    network_part = part_named(instance, plan, part)
    if network_part.links is None:
        trusted_part(instance, plan, purpose, part)
        return
    question, links = question_of(instance, network_part), network_part.links
    hb = next((hb for hb in question.network.hb_domains if hb.name == links.hb_domain.name), None)
    nic = next((nic for nic in question.network.nics if nic.name == links.nic.name), None)
    if hb is None or nic is None:
        raise InstanceError(
            f"{instance.place}: the plan's network is not one this instance allows, {NEEDED}"
        )
    byte_s = min(nic.gbit_s / 8, hb.to_nics_gbyte_s / links.nic.per_gpu) * 1e9
    # all GPUs of a domain share its links: the seconds that each byte of one of them takes
    seen = {
        phase.name: links.hb_domain.active / (phase.pace_links * byte_s) for phase in links.phases
    }

    def time_s(pool: Pool, row: int) -> float:
        grids, position = grids_of(pool.workload, pool.mappings, pool.placements)
        return float(pool.iteration.time_s(grids[position[row]].reciprocals(seen))[row])

    _check_runs(
        question,
        network_part,
        hb.with_nics_at(math.inf),
        DomainSet(gpus=links.gpus, hb=hb.name, domains=links.hb_domain.count),
        time_s,
    )


def _check_runs(
    question: Instance,
    part: Part,
    hb: HbDomain,
    site: DomainSet,
    time_s: Callable[[Pool, int], float],
) -> None:
    """Place every mapping as the plan says, and compare its time."""
    narrowed = pinned(question, [run.mapping for run in part.workloads])
    for workload, run in zip(narrowed, part.workloads, strict=True):
        choices, _ = every_mapping(workload, site.gpus)
        pool = in_orders(
            place(workload, question.cluster.gpu, hb, site, choices), question.network.discipline
        )
        row = row_of(pool, run)
        if row is None or not math.isclose(time_s(pool, row), run.iteration_time_s, rel_tol=CLOSE):
            raise InstanceError(
                f"{question.place}: what the plan says of workload {workload.name!r} does not"
                f" follow from this instance, {NEEDED}"
            )
        for kind, algorithms in pool.iteration.algorithms.take(np.array([row])).by_kind.items():
            names, name = [way.name for way in algorithms], run.collectives.get(kind, RINGS)
            if name not in names and name in (ONE_RING, HALVING, TREES):
                raise InstanceError(
                    f"{question.place}: workload {workload.name!r}: collectives.{kind} = {name!r}"
                    f" cannot run here (only {', '.join(map(repr, names))} can), {NEEDED}"
                )
