from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
from pydantic import ValidationError

from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from coopt.verifier.checks.claims import check_form
from coopt.verifier.checks.verdict import Ledger
from tests.conftest import FEW_MAPPINGS
from tests.verifier.cases import DOMAINS, EXPERTS, GPU, MODEL, SOFTWARE, ask, switch
from tests.verifier.mutants import INFORMATIVE, ONE_OF, mutants, nodes, one_sided, replaced
from tests.verifier.plans import built

TWO_WORKLOADS = [
    {
        "name": "first",
        "model": MODEL,
        "global_batch": 64,
        "max_iteration_time_s": 0.5,
        "mapping": FEW_MAPPINGS,
        "allow_tp_across": True,
    },
    {
        "name": "second",
        "model": MODEL | {"name": "grouped", "kv_heads": 8, "gated": True, "tied_embeddings": False},
        "global_batch": 128,
        "train_days": 10.0,
        "allow_tp_across": True,
        "train_tokens": 2e11,
        "mapping": FEW_MAPPINGS | {"recompute": ["none", "selective", "full"]},
        "options": {"attention": "unfused"},
    },
]
MIXTURE = [
    {
        "name": "experts",
        "model": MODEL | EXPERTS,
        "global_batch": 64,
        "precision": "fp8",
        "allow_tp_across": True,
        "max_iteration_time_s": 1.0,
        "mapping": {"tp": [2, 4], "cp": 2, "pp": [3, 4], "ep": [8, 16], "zero": 1, "micro_batch": 1},
        "options": {"dp_mode": "overlap", "software": SOFTWARE | {"overhead": 1.1}, "slowdown": 1.05},
    }
]
SINGLE = {"name": "single", "gbit_s": 400, "fibre": "lane", "reach_m": 500, "usd": 600, "w": 8}
TWO_ENDS = [
    SINGLE,
    SINGLE | {"name": "twin", "gbit_s": 800, "breakout": 2, "usd": 800},
    SINGLE | {"name": "other", "gbit_s": 800, "breakout": 2, "usd": 700, "fibre": "wavelength", "reach_m": 60},
    SINGLE | {"name": "cable", "fibre": None, "reach_m": 60, "usd": 650},
]
ONE_OF_MANY = re.compile(
    r"(?<![-\d.,])1 (switches|links|planes|tiers|GPUs|NICs|ports|uplinks|domains|racks|transceivers|years)\b"
)
CASES: dict[str, Callable[[], Instance]] = {
    "rail-only on one tier with spares": lambda: ask(
        network__fabrics="rail-only", network__hb_domains=[DOMAINS[2], DOMAINS[0]], objective__minimize="tco"
    ),
    "rail-only on two tiers": lambda: ask(
        network__fabrics=["rail-only", "clos"],
        network__hb_domains=[DOMAINS[0]],
        network__switches=[switch(4), switch(8)],
        network__nics_per_gpu=[1, 2],
    ),
    "rail-optimized on two tiers": lambda: ask(network__fabrics="rail-optimized", limits__racks=7),
    "rail-optimized on three tiers": lambda: ask(
        network__fabrics="rail-optimized",
        network__switches=[switch(8)],
        network__hb_domains=[DOMAINS[0]],
        objective__include=["switch", "optics", "gpu"],
        limits__capex_usd=2e6,
        limits__power_mw=1.0,
    ),
    "clos on three tiers": lambda: ask(
        network__fabrics="clos", network__switches=[switch(8)], network__hb_domains=[DOMAINS[0]]
    ),
    "domains that are not filled alike": lambda: ask(
        network__fabrics="rail-only", network__hb_domains=[DOMAINS[2]], network__domain_fill="any"
    ),
    "bundles in pods": lambda: ask(
        cluster__gpus=48,
        workload__0__global_batch=48,
        workload__0__max_iteration_time_s=5.0,
        network__fabrics="clos",
        network__oversubscription=1.0,
        network__switches=[switch(8)],
        network__hb_domains=[DOMAINS[1]],
        network__pod_bundles=2,
    ),
    "modules of their own at either end": lambda: ask(
        network__fabrics="rail-optimized",
        network__switches=[switch(8) | {"cages": 4}],
        network__hb_domains=[DOMAINS[0]],
        network__optics=TWO_ENDS,
    ),
    "clos for two workloads": lambda: ask(network__fabrics="clos", workload=TWO_WORKLOADS, objective__minimize="power"),
    "one domain": lambda: ask(cluster__gpus=[8, 16], workload__0__max_iteration_time_s=2.0),
    "experts": lambda: ask(
        workload=MIXTURE, network__fabrics="rail-only", cluster__gpus=96, cluster__gpu=GPU | {"fp8_tflop_s": 600}
    ),
    "infeasible": lambda: ask(workload__0__max_iteration_time_s=0.01),
}
MAKERS: dict[str, Callable[[Instance], Plan]] = {"built": built, "solved": solve}


def names_of(instance: Instance) -> dict[str, list[str]]:
    """Words of the instance that could stand in a field, by the field's name."""
    network = instance.network
    optics = [optic.name for optic in network.optics]
    return {
        "status": ["optimal", "feasible", "infeasible", "unknown"],
        "objective.kind": ["capex", "power", "tco"],
        "kind": ["hb", "nic", "switch", "optics", "gpu"],
        "fabric.kind": ["rail-only", "rail-optimized", "clos"],
        "hb_domain.name": [domain.name for domain in network.hb_domains],
        "nic.name": [nic.name for nic in network.nics],
        "switch.name": [part.name for part in network.switches],
        "optic": optics,
        "optic_below": optics,
        "item": optics,
        "name": [workload.name for workload in instance.workload],
        "recompute": ["none", "selective", "full"],
    }


FEWEST = 20 // ONE_OF
"""Mutants of the emptiest answer that are plans at all: with fewer, a survivor may just not have been tried."""


def survivors(
    instance: Instance,
    plan: dict[str, Any],
    words: dict[str, list[str]] | None = None,
    every: int = 1,
    first: int = 0,
    spared: tuple[str, ...] = (),
) -> list[str]:
    """Mutants that pass, or fail without a sentence or with one on `1 links`; enough have to be tried.

    Parameters
    ----------
    words
        What could stand in a field, by its name; as the instance has it where left out.
    every, first
        One of so many mutants of those that a run tries is looked at, from the first on.
    spared
        Mutants whose label begins so are not looked at.
    """
    found, tried, whole = [], 0, Plan.model_validate(plan)
    for label, table in islice(mutants(plan, words or names_of(instance)), first, None, every * ONE_OF):
        if label.startswith(spared):
            continue
        try:
            changed = Plan.model_validate(table)
        except ValidationError:
            continue
        if changed == whole:
            continue
        tried += 1
        verdict = verify(instance, changed)
        told = verdict.failures and all(
            check.why.endswith(".") and not ONE_OF_MANY.search(check.why) for check in verdict.failures
        )
        if verdict.accepted or not told:
            found.append(label)
    assert tried >= FEWEST, tried
    return found


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_meaningful_mutant_is_rejected(case: Callable[[], Instance], make: Callable[[Instance], Plan]) -> None:
    instance = case()
    plan = make(instance)
    assert verify(instance, plan).failures == ()
    allowed, table = WEAKER_CLAIMS.get(plan.status, []), plan.model_dump(mode="json", by_alias=True)
    half = (
        {} if plan.status == "infeasible" else {"every": 2, "first": int(make is solve)}
    )  # the other maker's has others
    assert [label for label in survivors(instance, table, **half) if label not in allowed] == []


@pytest.mark.parametrize("case", ["rail-only on two tiers", "clos for two workloads"])
def test_what_the_top_repeats_of_its_only_part_is_the_same_there(case: str) -> None:
    instance = CASES[case]()
    plan, tried = built(instance), 0
    for label, table in islice(
        one_sided(plan.model_dump(mode="json", by_alias=True), names_of(instance)), 0, None, ONE_OF
    ):
        try:
            changed = Plan.model_validate(table)
        except ValidationError:
            continue
        ledger = Ledger()
        check_form(ledger, instance, changed)
        assert "repeated" in {check.name for check in ledger.verdict().failures} or changed == plan, label
        tried += 1
    assert tried > 500 / ONE_OF


WITNESS = {"name": "SCIP", "version": "10", "status": "optimal", "value": 1.0, "bound": 1.0, "agrees": True}

WEAKER_CLAIMS = {
    "infeasible": ["status = 'unknown'", *(f"objective.kind = {kind!r}" for kind in ("capex", "power", "tco"))],
}
"""Mutants that stay true: what is proven infeasible may be called unknown, and is so whatever is minimised."""


@pytest.mark.parametrize("path", INFORMATIVE, ids=lambda path: ".".join(path))
def test_informative_fields_are_fields_and_change_nothing(path: tuple[str, ...]) -> None:
    instance = ask()
    plan = solve(instance).model_dump(mode="json", by_alias=True)
    value = dict(nodes(plan))[path]
    other = {
        "str": "else",
        "int": 7,
        "list": ["else"],
        "dict": {**value, "model": 7.0} if path == ("timing_s",) else {"x": 7},
        "NoneType": WITNESS,
    }
    changed = Plan.model_validate(replaced(plan, path, other[type(value).__name__]))
    assert verify(instance, changed).accepted


def test_a_weaker_bound_with_its_own_gap_is_a_true_claim() -> None:
    instance = ask()
    plan = built(instance)
    value = plan.objective.value
    assert value is not None
    weaker = plan.model_copy(
        update={
            "status": "feasible",
            "objective": plan.objective.model_copy(update={"bound": 0.9 * value, "gap": 1 - 0.9}),
        }
    )
    assert verify(instance, weaker).failures == ()
    assert survivors(instance, weaker.model_dump(mode="json", by_alias=True)) == []
