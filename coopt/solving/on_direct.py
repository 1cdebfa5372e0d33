"""A plan's workloads on direct links between its HB domains, in place of its network."""

from __future__ import annotations

from dataclasses import replace

from coopt.instance.errors import InstanceError
from coopt.instance.listings import both
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.network.part_networks import PartNetwork
from coopt.network.schedules.board import Board
from coopt.network.schedules.schedule_form import Schedule, all_reduce_s
from coopt.perf.affine import NO_NETWORK, AffineSeconds, Reciprocals
from coopt.perf.iterations import iteration
from coopt.perf.mapping import expert_ranks
from coopt.perf.traffic import replicas_of
from coopt.plan.schema import Plan, WorkloadPlan
from coopt.plan.traffic import Trained
from coopt.solving.days import allowed_s
from coopt.solving.trusted import trusted_part
from coopt.traffic.ranks import RankGrid, split_of
from coopt.traffic.volumes import UNIT


def train_on(
    instance: Instance, plan: Plan, board: Board, schedule: Schedule, *, latency_s: float, part: str | None = None
) -> tuple[Trained, ...]:
    """Iteration times when data parallelism reduces and gathers over the links by a schedule.

    All GPUs of a domain share its links. Both halves of the exchange are phases of the schedule, each with its bytes.

    Raises
    ------
    InstanceError
        When the plan is not of this instance, the graph joins another number of domains, or anything but data
        parallelism crosses domains.
    """
    network = trusted_part(instance, plan, "training on a graph", part)
    family = network.family
    if family.domains != board.domains:
        raise InstanceError(
            f"graph {board.name!r}: joins {board.domains} domains and the plan has {family.domains}, needs as many"
        )
    return tuple(_trained(network, board, schedule, latency_s, *pair) for pair in network.runs)


def _trained(
    network: PartNetwork,
    board: Board,
    schedule: Schedule,
    latency_s: float,
    workload: Workload,
    chosen: WorkloadPlan,
) -> Trained:
    question, family, split = network.question, network.family, split_of(workload, chosen)
    _refuse_other_traffic(split)
    whole = iteration(workload, question.cluster.gpu, family.hb.gbyte_s, split.mapping, split.placement)
    replicas, y = replicas_of(workload, UNIT, split.mapping, split.placement), board.domains
    across_s = 0.0
    for half in (*replicas.shared_exchange(), *replicas.expert_exchange()):
        sent_bytes = float(half.at(Reciprocals.of_grid(replicas=1.0, stages=0.0)).sum() - half.at(NO_NETWORK).sum())
        data_bytes = family.active * sent_bytes * y / (y - 1)
        across_s += all_reduce_s(board, schedule, data_bytes, latency_s) / 2 if data_bytes else 0.0
    direct = replace(whole, dp=AffineSeconds(whole.dp.at(NO_NETWORK) + across_s))
    return Trained(
        name=workload.name,
        bound_s=allowed_s(question, family, network.uplinks, workload, chosen),
        planned_time_s=chosen.iteration_time_s,
        iteration_time_s=float(direct.time_s(NO_NETWORK)[0]),
        between_domains_s=across_s,
    )


def _refuse_other_traffic(split: RankGrid) -> None:
    _, across, *_ = expert_ranks(split.mapping, split.placement, expert_tp=split.workload.options.expert_tp)
    crossing = {
        "TP": split.extent("tl") > 1,
        "CP": split.extent("cl") > 1,
        "PP": split.extent("pl") > 1,
        "EP": bool(split.workload.model.experts) and int(across[0]) > 1,
    }
    named = [name for name, does in crossing.items() if does]
    if named:
        raise InstanceError(
            f"workload {split.workload.name!r}: {both(named)} crosses domains, and only what data parallelism "
            "takes on direct links is known: needs a plan whose other degrees stay inside (`mapping` in the instance)"
        )
