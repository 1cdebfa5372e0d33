"""A question of every kind with its answer, and answers made of it that claim something else."""

from collections.abc import Callable
from functools import cache
from typing import Any

from coopt.instance.schema import Instance
from coopt.instance.variants import leaves_tp_open
from coopt.plan.couplings import Couplings
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from tests.solving.direct.test_direct_links import linked
from tests.solving.sites.test_sites import apart
from tests.verifier.cases import ask
from tests.verifier.fleets import FLEETS
from tests.verifier.test_partition_mutations import CASES as PARTITIONS
from tests.verifier.test_phased_claims import CASES as PHASED

FEW = {
    "cluster__gpus": 16,
    "workload__0__global_batch": 16,
    "workload__0__mapping": {"micro_batch": 1},
    "network__fabrics": "rail-only",
    "network__hb_domains": "hgx-h100-8",
}
DEAR_PANEL = {"name": "gold", "usd_per_port": 1e6, "w_per_port": 0}
KINDS: dict[str, Callable[[], Instance]] = {
    "shared": ask,
    "runners-up": lambda: ask(solver={"top": 3}),
    "partition": PARTITIONS["brackets"],
    "phased": PHASED["clos"],
    "sites": lambda: Instance.model_validate(apart()),
    "fleet": FLEETS["everything"],
    "direct": lambda: Instance.model_validate(linked()),
    "switches": lambda: Instance.model_validate(linked(network__panels=[DEAR_PANEL])),
    "robust": lambda: ask(robust={"survive": ["nic"], "slower": 1.5}, **FEW),
    "regret": lambda: ask(robust={"aim": "regret", "prices": {"nic": [0.5, 2.0]}}, **FEW),
}
SECTIONS = (*("design", "cost", "workloads", "rivals", "alternatives", "alternatives_stop"), *("parts", "couplings"))

NO_PLAN = {name: Plan.model_fields[name].default for name in SECTIONS} | {
    "couplings": Couplings().model_dump(mode="json", by_alias=True)
}
"""The sections of an answer that holds no plan."""


@cache
def solved(kind: str) -> tuple[Instance, Plan]:
    """The question of a kind and its optimum."""
    instance = KINDS[kind]()
    plan = solve(instance)
    assert plan.status == "optimal"
    return instance, plan


def written(kind: str) -> dict[str, Any]:
    """The optimum of a kind as a table."""
    return solved(kind)[1].model_dump(mode="json", by_alias=True)


def without_plan(kind: str, status: str, bound: float | None = None) -> dict[str, Any]:
    """The answer to a kind that no plan is known, or that there is none."""
    table = written(kind) | NO_PLAN
    table["tp_across"] = status == "infeasible" and leaves_tp_open(KINDS[kind]())
    return table | {"status": status, "objective": table["objective"] | {"value": None, "bound": bound, "gap": None}}
