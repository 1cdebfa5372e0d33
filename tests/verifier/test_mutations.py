from collections.abc import Callable
from itertools import islice

import pytest
from hypothesis import settings
from pydantic import ValidationError

from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from coopt.verifier.checks.claims import check_form
from coopt.verifier.checks.verdict import Ledger
from tests.conftest import ask as small
from tests.kinds import FEW, QUESTIONS
from tests.solving.direct.random_questions import random_question
from tests.solving.sites.test_outages import interrupted_sites
from tests.solving.sites.test_sites import LOST_CHANNEL, bordered
from tests.solving.test_days import GROWING, days, fastest_days, fleet
from tests.verifier.cases import DOMAINS, EXPERTS, GPU, MODEL, SOFTWARE, TWO_WORKLOADS, ask, switch
from tests.verifier.fleets import FLEETS
from tests.verifier.kinds import solved, written
from tests.verifier.mutants import INFORMATIVE, ONE_OF, names_of, nodes, one_sided, replaced, survivors
from tests.verifier.test_partition_mutations import CASES as PARTITIONS
from tests.verifier.test_phased_claims import CASES as PHASED

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


LIKE_OTHERS = ("parts.1.workloads", "parts.1.cost.items", "cost.items.1", "cost.items.2", "cost.items.3")
"""Where a plan of phases says what its first part or plans without phases say: mutants of the rest are tried."""
DEAD_END = "couplings.myopic.dead_end = "
"""A sentence for the reader."""
STILL_TRUE = ("status = 'unknown'", "objective.kind = ")
"""What is proven infeasible may be called unknown, and is so whatever is minimised."""
MAY_BE_LOWER = "parts.0.links.links_bound"
"""A weaker claim is no wrong one, down to what the verifier finds itself."""
CROSSING = (1004, 1010, 1011, 1029, 1115)
"""Random questions on direct links whose TP, context or expert groups cross domains."""
MUTATED: dict[str, tuple[Callable[[], Instance], int]] = {
    **{name: (case, 28) for name, case in CASES.items()},
    **{f"partition, {name}": (case, 54) for name, case in PARTITIONS.items()},
    **{f"phases, {name}": (case, 80) for name, case in PHASED.items()},
    **{f"fleet, {name}": (case, 75) for name, case in FLEETS.items()},
    "sites": (lambda: Instance.model_validate(QUESTIONS["sites"]), 60),
    "sites with borders": (lambda: Instance.model_validate(bordered()), 60),
    "a lost channel": (lambda: Instance.model_validate(bordered(robust=LOST_CHANNEL)), 60),
    "sites that fail": (lambda: interrupted_sites(4), 60),
    "direct": (lambda: Instance.model_validate(QUESTIONS["direct"]), 45),
    "a lost NIC": (lambda: Instance.model_validate(QUESTIONS["worst-case"]), 24),
    "a lost domain": (lambda: small(robust={"survive": ["domain"], "slower": 3.0}, **FEW), 30),
    "regret": (lambda: Instance.model_validate(QUESTIONS["regret"]), 30),
    "interruptions": (lambda: days(fastest_days() * 1.02), 27),
    "a fleet with interruptions": (lambda: fleet(0.4), 60),
    "a fleet with interruptions that grows": (lambda: fleet(0.4, phase=GROWING), 110),
    "a fleet with interruptions in doubt": (lambda: fleet(0.4, robust={"prices": {"gpu": [0.5, 2.0]}}), 60),
    **{f"direct {seed}": (lambda seed=seed: random_question(seed), 24) for seed in CROSSING},
}
"""Questions, and of how many mutants of their plans one is tried in a usual run. A campaign tries all."""


@pytest.mark.parametrize("name", MUTATED)
def test_every_meaningful_mutant_is_rejected(name: str) -> None:
    case, every = MUTATED[name]
    instance = case()
    plan = solve(instance)
    verdict = verify(instance, plan)
    assert verdict.failures == ()
    assert name not in CASES or not verdict.on_trust
    none, words = plan.status == "infeasible", names_of(instance)
    spared = STILL_TRUE if none else (*LIKE_OTHERS, DEAD_END) if instance.phase and not instance.site else ()
    if len(plan.parts) > 1:
        words |= {"site": [site.name for site in instance.site], "part": [part.name for part in plan.parts]}
    table = plan.model_dump(mode="json", by_alias=True)
    if plan.rivals is not None:
        table["rivals"]["lengths"] = []  # other lengths prove less, or as much
    left = survivors(instance, table, words, 1 if none or not settings().derandomize else every, spared=spared)
    assert [label for label in left if not label.startswith(MAY_BE_LOWER)] == []
    assert all(int(label.split(" = ")[1]) < plan.parts[0].links.links for label in left)


@pytest.mark.parametrize("case", ["rail-only on two tiers", "clos for two workloads"])
def test_what_the_top_repeats_of_its_only_part_is_the_same_there(case: str) -> None:
    instance = CASES[case]()
    plan, tried = solve(instance), 0
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


@pytest.mark.parametrize("path", INFORMATIVE, ids=lambda path: ".".join(path))
def test_informative_fields_are_fields_and_change_nothing(path: tuple[str, ...]) -> None:
    instance, plan = solved("shared")[0], written("shared")
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
    instance, plan = solved("shared")
    value = plan.objective.value
    weaker = plan.model_copy(
        update={
            "status": "feasible",
            "objective": plan.objective.model_copy(update={"bound": 0.9 * value, "gap": 1 - 0.9}),
        }
    )
    assert verify(instance, weaker).failures == ()
    assert survivors(instance, weaker.model_dump(mode="json", by_alias=True), every=9) == []
