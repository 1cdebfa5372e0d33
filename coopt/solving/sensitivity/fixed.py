"""The one plan of a question whose lists leave a single choice, solved with its bounds lifted."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.instance.errors import InstanceError
from coopt.instance.kinds import require_decided
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.solving.evaluate import open_design, open_mapping, with_one_cp
from coopt.solving.sensitivity.limits import numeric_limits
from coopt.solving.sensitivity.resolves import Resolver

LIFTED = ("max_iteration_time_s", "min_tokens_per_s", "train_days", "power_mw", "capex_usd", "racks")


def only_plan(instance: Instance) -> Plan:
    """The plan that an instance leaves, whatever its bounds; what has no key of its own is the cheapest.

    Raises
    ------
    InstanceError
        When a choice is open, with the keys to pin, or when nothing can be built.
    """
    require_decided(instance, "what it leaves to evaluate")
    instance = instance.model_copy(update={"workload": with_one_cp(instance.workload)})
    if complaints := [*open_design(instance), *_open_workloads(instance)]:
        raise InstanceError(f"{instance.name}: {text}" for text in complaints)
    free = instance
    for limit in numeric_limits(instance):
        if limit.key.rpartition(".")[2] in LIFTED:
            free = limit.within(free, limit.loosest)
    plan = Resolver(instance, shared_out=False).plan(free)
    if plan.cost is None:
        raise InstanceError(f"{instance.name}: {text}" for text in plan.explanation)
    return plan


def _open_workloads(instance: Instance) -> Iterator[str]:
    """What workloads leave open on the numbers of GPUs that they may have."""
    counts = tuple(dict.fromkeys(phase.gpus for phase in instance.phase)) or instance.cluster.gpus
    shared_out = instance.sharing.mode == "partition"
    for workload in instance.workload:
        sizes = workload.gpus if shared_out else counts
        if sizes is None or (shared_out and len(sizes) > 1):
            yield f"workload {workload.name!r}: gpus leaves the size of its island open, needs one number to evaluate"
        elif not instance.site:
            yield from open_mapping(workload, sizes[-1])
