"""Questions that are related, run by hand: `python -m tests.solving.related COUNT [SEED]`.

No enumeration is needed to know that

- twice the GPUs and the batch cost no less: of a plan whose replicas are halved, half is left, and as fast;
- a workload that trains on the same GPUs in two phases, at the same prices, is bought once, for the same purchase.
"""

import math
import sys
from collections import Counter

from hypothesis import strategies as st

from coopt.instance.schema import Instance
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from tests.solving.drawn import by_hand, drawn
from tests.solving.oracle import instances


@st.composite
def questions(draw: st.DrawFn) -> Instance:
    """Small clusters on which replicas are of an even number once GPUs and batch are doubled."""
    table = draw(instances(64)).model_dump(by_alias=True, exclude_unset=True)
    gpus = table["cluster"]["gpus"]
    gpus = max(gpus) if isinstance(gpus, list | tuple) else gpus
    table["cluster"]["gpus"] = 16 * (gpus // 16)
    table["network"]["domain_fill"] = "even"  # as it is in phases
    table["network"]["oversubscription"] = draw(st.sampled_from([1.0, 2.0, 3.0]))
    for workload in table["workload"]:
        workload["mapping"] |= {"tp": [1, 2, 4], "pp": [1, 2], "micro_batch": [1, 2], "recompute": ["none"], "ep": [1]}
        workload["mapping"] |= {"zero": [0]}  # more replicas would share out the optimizer
        workload["options"] |= {"dp_mode": "sync"}
        workload["max_iteration_time_s"] *= draw(st.sampled_from([1.0, 3.0, 10.0]))
    table["objective"]["minimize"] = "capex"
    table["limits"] = {}
    return Instance.model_validate(table)


def doubled(instance: Instance) -> Instance:
    table = instance.model_dump(by_alias=True, exclude_unset=True)
    table["cluster"]["gpus"] = 2 * instance.cluster.gpus[0]
    for workload in table["workload"]:
        workload["global_batch"] *= 2
    return Instance.model_validate(table)


def in_two_phases(instance: Instance) -> Instance:
    table = instance.model_dump(by_alias=True, exclude_unset=True)
    table["cluster"]["gpus"] = instance.cluster.gpus[0]
    names = [workload.name for workload in instance.workload]
    table["phase"] = [{"year": year, "gpus": instance.cluster.gpus[0], "workloads": names} for year in (2026, 2028)]
    return Instance.model_validate(table)


def least(instance: Instance) -> float:
    """The least purchase; infinite where there is no plan. What is answered is accepted."""
    plan = solve(instance)
    if plan.objective.value is None:
        assert plan.status == "infeasible", plan.stop_reason
        return math.inf
    assert verify(instance, plan).accepted
    return plan.objective.value


def campaign(count: int, start: int = 0) -> Counter[str]:
    """How many relations held, and did not."""
    found: Counter[str] = Counter()

    def told(name: str, instance: Instance, holds: bool, values: tuple[float, float]) -> None:
        found[f"{name}: {'right' if holds else 'wrong'}{', none' if math.isinf(values[0]) else ''}"] += 1
        if not holds:
            sys.stdout.write(f"{name} {values}: {instance.model_dump_json(by_alias=True, exclude_unset=True)}\n")

    for instance in drawn(questions(), count, start):
        once = least(instance)
        twice, phased = least(doubled(instance)), least(in_two_phases(instance))
        told("doubled", instance, once <= twice * (1 + 1e-9), (once, twice))
        same = once == phased or math.isclose(once, phased, rel_tol=1e-9)
        told("in phases", instance, same, (once, phased))
    return found


if __name__ == "__main__":
    by_hand(campaign)
