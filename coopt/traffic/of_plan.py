"""The traffic of the workloads of a plan, on the network it builds."""

from __future__ import annotations

from collections.abc import Sequence

from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.plan_networks import built
from coopt.plan.schema import Plan, WorkloadPlan
from coopt.traffic.flows import Demand, demand
from coopt.traffic.ranks import Split, split_of

CHECK = "needs a plan that `coopt verify` accepts"


def demands(
    instance: Instance, plan: Plan, *, workload: str | None = None, trees: bool = False
) -> tuple[Family, tuple[Demand, ...]]:
    """What every workload of a plan sends, or the one that is named.

    Parameters
    ----------
    trees
        Whether all-reduces of data parallelism take two binary trees across domains in place of a ring.

    Raises
    ------
    InstanceError
        As `splits` does.
    """
    family, found = splits(instance, plan, workload=workload)
    return family, tuple(demand(split.workload, chosen, trees=trees) for split, chosen in found)


def splits(
    instance: Instance, plan: Plan, *, workload: str | None = None
) -> tuple[Family, tuple[tuple[Split, WorkloadPlan], ...]]:
    """How every workload of a plan is split over the GPUs of its network, or the one that is named.

    Raises
    ------
    InstanceError
        When the plan has no design of this instance, or does not split its workloads over its GPUs.
    """
    family, _ = built(instance, plan, "the split of a workload over GPUs")
    names = [one.name for one in instance.workload]
    if [one.name for one in plan.workloads] != names:
        raise InstanceError(f"{instance.name}: the plan is for other workloads, needs one for {', '.join(names)}")
    if workload is not None and workload not in names:
        raise InstanceError(f"--workload {workload}: the plan has none of this name, needs {' or '.join(names)}")
    found = []
    for question, chosen in zip(instance.workload, plan.workloads, strict=True):
        if workload in (None, question.name):
            split = split_of(question, chosen)
            if (split.ranks, split.active) != (family.gpus, family.active):
                raise InstanceError(
                    f"{instance.name}: workload {question.name!r} is split over {split.ranks} GPUs, {split.active} in "
                    f"a domain, and the plan has {family.gpus} and {family.active}, {CHECK}"
                )
            found.append((split, chosen))
    return family, tuple(found)


def only_one(found: tuple[Demand, ...], option: str) -> Demand:
    """The demand that a file holds.

    Raises
    ------
    InstanceError
        When there are several.
    """
    check_only_one([one.workload for one in found], option)
    return found[0]


def check_only_one(workloads: Sequence[str], option: str) -> None:
    """Refuse several workloads where a file holds one.

    Raises
    ------
    InstanceError
        With the names to choose from.
    """
    if len(workloads) > 1:
        names = " or ".join(workloads)
        raise InstanceError(f"{option}: holds one workload and the plan has {len(workloads)}, needs --workload {names}")
