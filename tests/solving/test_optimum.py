"""What is claimed of an optimum holds, at odd prices too; which of equals is taken, and what is refused."""

from __future__ import annotations

import math
import re
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import coopt
from coopt.instance.catalog import find
from coopt.instance.schema import Instance, Limits, load
from coopt.instance.texts import InstanceError
from coopt.instance.variants import with_scaled_bounds
from coopt.network.space import families
from coopt.plan.parts import MappingChoice
from coopt.plan.store import Evaluation
from coopt.solving.answer import solve
from coopt.solving.driver import claim_of, infeasible
from coopt.solving.fastest import fastest_design
from coopt.solving.runs import Run, StoppedError, backend_of
from coopt.verifier.audit import verify
from tests.conftest import accepted, ask, example_count, question, switch, value_of
from tests.solving.oracle import enumerated, instances


@settings(max_examples=example_count(30))
@given(instances())
def test_the_times_a_plan_attains_are_bounds_it_meets(instance: Instance) -> None:
    first = solve(instance)
    assume(first.workloads)
    bounds = [{"max_iteration_time_s": run.iteration_time_s} for run in first.workloads]
    asked = [workload.model_copy(update=bound) for workload, bound in zip(instance.workload, bounds, strict=True)]
    exact = instance.model_copy(update={"workload": tuple(asked)})
    again = solve(exact)
    assert again.objective.value == first.objective.value
    assert all(run.iteration_time_s <= run.bound_s for run in again.workloads)
    assert verify(exact, again).accepted


@settings(max_examples=example_count(20))
@given(instances(), st.floats(0.5, 0.999))
def test_a_single_workload_is_told_its_own_shortfall(instance: Instance, share: float) -> None:
    alone = instance.model_copy(update={"workload": instance.workload[:1], "limits": Limits()})
    first = solve(alone)
    assume(first.workloads)
    tighter = alone.workload[0].model_copy(update={"max_iteration_time_s": share * first.workloads[0].iteration_time_s})
    plan = solve(alone.model_copy(update={"workload": (tighter,)}))
    assert plan.workloads or all("no single network" not in text for text in plan.explanation)


def test_a_time_limit_that_ends_the_search_leaves_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search starts from a design, which is no proof."""
    from coopt.solving.runs import Run

    asked = load(Path(__file__).parents[2] / "instances" / "rail-only-gpt-1t.toml")
    expected = solve(asked)
    monkeypatch.setattr(Run, "deadline", 0.0)
    plan = solve(asked)
    assert (plan.status, plan.stop_reason, plan.objective.bound) == ("feasible", "time limit", None)
    assert plan.objective.value == expected.objective.value
    assert verify(asked, plan).accepted


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workload__0__max_iteration_time_s": 0.01}, "the fastest design takes"),
        (
            {
                "workload__0__mapping": {"tp": 1, "pp": 1, "micro_batch": 1, "zero": 0},
                "workload__0__model": "gpt-22b",
                "cluster__gpu": "a100-80g",
            },
            "GiB",
        ),
        ({"workload__0__mapping": {"tp": 64, "pp": 8}}, "no TP x PP x DP split"),
        ({"network__max_tiers": 1, "network__fabrics": "clos"}, "joins 64 GPUs"),
        (
            {"cluster__gpus": 61, "network__hb_domains": "hgx-h100-8", "network__domain_fill": "even"},
            "needs another GPU count (such as 56 or 64)",
        ),
        ({"limits": {"capex_usd": 10.0}}, "limits.capex_usd = 10"),
    ],
)
def test_infeasible_says_which_limit_must_give(changes: dict[str, object], words: str) -> None:
    plan = solve(ask(**changes))
    assert plan.status == "infeasible"
    assert words in " ".join(plan.explanation)


def test_days_that_are_too_few_are_answered_in_days() -> None:
    few = {"max_iteration_time_s": None, "train_days": 0.01, "train_tokens": 1e12}
    table = ask().workload[0].model_dump(mode="json") | few
    for changes, dated in (({}, False), ({"cluster__start": "2027-01-04"}, True)):
        (said,) = solve(ask(workload=[table], **changes)).explanation
        assert ["an iteration" in said, ", by " in said] == [False, dated]
        (least,) = re.findall(r"at least ([\d,.]+) days", said)
        enough = {"train_days": float(least.replace(",", ""))}
        assert solve(ask(workload=[table | enough], **changes)).status == "optimal"


def test_lists_that_defaults_keep_narrow_are_named() -> None:
    deadline = {"workload__0__max_iteration_time_s": 0.01, "workload__0__mapping": {}}
    old = {"workload__0__options": {"software": "megatron-2021"}}
    lists = {"cp": "[1, 2, 4, 8, 16]", "micro_batch": "[1, 2, 4, 8, 16]", "recompute": '["none", "full"]'}
    cp, micro_batch, recompute = (f"mapping.{key} = {values}" for key, values in lists.items())
    (said,) = solve(ask(**deadline, **old)).explanation
    assert said.endswith(f"; {micro_batch} and {recompute} are defaults, and wider lists were not searched")
    (said,) = solve(ask(**deadline)).explanation
    assert said.endswith(f"; {cp} and {micro_batch} are defaults, and wider lists were not searched")
    (said,) = solve(ask(**deadline | {"workload__0__mapping": {"cp": [1, 2]}})).explanation
    assert said.endswith(f"; {micro_batch} is a default, and wider lists were not searched")
    (said,) = solve(ask(**deadline | {"workload__0__mapping": {"cp": 1, "micro_batch": 1}})).explanation
    assert "default" not in said


def test_batches_and_counts_that_divide_are_offered_near_those_that_do_not() -> None:
    asked = {"cluster__gpus": 56, "workload__0__mapping": {"dp": 7}}
    (said,) = solve(ask(**asked)).explanation
    near = re.search(r"another batch \(such as (\d+) or (\d+)\), batch_tolerance = 0.02 or wider", said)
    assert near, "a batch that 7 does not divide is one on any number of GPUs"
    assert "GPU count" not in said
    for batch in map(int, near.groups()):
        assert batch % 7 == 0
        assert "no TP x PP x DP split" not in " ".join(solve(ask(**asked, workload__0__global_batch=batch)).explanation)
    assert "default" not in said, "all degrees that divide both 56 and the sequence are in the default list"
    (said,) = solve(ask(cluster__gpus=56, workload__0__mapping={"pp": 1, "tp": [1, 2]})).explanation
    counts = re.search(r"GPU count \(such as (\d+) or (\d+)\)", said)
    assert counts
    island = ask(sharing={"mode": "partition"}, workload__0__gpus=56, workload__0__mapping={"pp": 1, "tp": [1, 2]})
    assert counts[0] in solve(island).explanation[0]
    for gpus in map(int, counts.groups()):
        found = solve(ask(cluster__gpus=gpus, workload__0__mapping={"pp": 1, "tp": [1, 2]}))
        assert "no TP x PP x DP split" not in " ".join(found.explanation)


def test_the_stated_relaxation_is_enough() -> None:
    words = solve(ask(workload__0__max_iteration_time_s=0.01)).explanation[0]
    enough = float(words.split("at least ")[1].split(" s")[0])
    assert solve(ask(workload__0__max_iteration_time_s=enough)).status == "optimal"


def test_activations_on_the_host_make_room_where_the_gpu_has_none() -> None:
    mapping = {"tp": 4, "pp": 2, "cp": 1, "micro_batch": 8, "recompute": "none", "zero": 1}
    small = find("gpu", "h100-sxm").model_dump() | {"name": "small", "hbm_gb": 8.9}
    at_home = ask(cluster__gpu=small, workload__0__mapping=mapping)
    plan = solve(at_home)
    assert plan.status == "infeasible"
    assert "mapping.offload_percent = [0] is a default" in plan.explanation[0]
    away = mapping | {"offload_percent": [0, 50, 100]}
    for rate in (55.0, 0.5):
        instance = ask(cluster__gpu=small | {"host_gbyte_s": rate}, workload__0__mapping=away)
        plan = accepted(instance)
        assert value_of(plan) == enumerated(instance)
        if plan.workloads:
            assert plan.workloads[0].mapping.offload_percent == 50
        else:
            assert rate == 0.5
    assert ask(cluster__gpu=small | {"host_gbyte_s": 1.0}, workload__0__mapping=away).sha256 != instance.sha256
    assert ask(cluster__gpu=small | {"host_gbyte_s": 60.0}, workload__0__mapping=mapping).sha256 == at_home.sha256
    unknown = r"workload\[0\].mapping.offload_percent = \[50\]: .* GPU 'small' .* host_gbyte_s"
    with pytest.raises(ValidationError, match=unknown):
        ask(cluster__gpu=small | {"host_gbyte_s": None}, workload__0__mapping=mapping | {"offload_percent": 50})


@pytest.mark.parametrize("gpus", [24, 64, 96])
def test_an_attained_rate_is_a_bound_that_is_met(gpus: int) -> None:
    mine = {"cluster__gpus": gpus, "workload__0__global_batch": 3 * gpus, "workload__0__model": "gpt-22b"}
    first = coopt.solve(ask(**mine, workload__0__max_iteration_time_s=50.0))
    workload = question(**mine)["workload"][0] | {"max_iteration_time_s": None}
    days = first.workloads[0].iteration_time_s / 86400
    tokens = 3.0 * gpus * 2048
    for bound in ({"min_tokens_per_s": first.workloads[0].tokens_per_s}, {"train_days": days, "train_tokens": tokens}):
        instance = ask(**mine | {"workload": [workload | bound]})
        again = coopt.solve(instance)
        assert again.status == "optimal"
        assert coopt.verify(instance, again).accepted


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"objective": "speed"}, "minimize = 'speed'"),
        ({"gap": -0.1}, "gap = -0.1"),
        ({"gap": float("nan")}, "gap = nan"),
        ({"threads": 0}, "threads = 0"),
        ({"seed": -1}, "seed = -1"),
        ({"solver": ""}, "name = ''"),
        ({"time_limit_s": -1.0}, "time_limit_s = -1.0"),
        ({"time_limit_s": float("inf")}, "time_limit_s = inf"),
    ],
)
def test_values_out_of_range_are_refused(given: dict[str, object], says: str) -> None:
    with pytest.raises(InstanceError) as refused:
        coopt.solve(ask(), **given)  # type: ignore[arg-type]
    assert says in str(refused.value)


def test_a_mapping_of_too_many_gpus_is_refused() -> None:
    instance = ask()
    plan = coopt.solve(instance)
    choice: MappingChoice = plan.workloads[0].mapping.model_copy(update={"cp": 2})
    with pytest.raises(InstanceError, match="split of 64 GPUs"):
        coopt.evaluate(instance, plan.design, [choice])


@pytest.mark.parametrize(
    "changes",
    [
        {"network__oversubscription": 1e9},
        {"network__optics": [{"name": "o", "gbit_s": 400, "reach_m": 500, "usd": 1e300, "w": 1}]},
        {"objective": {"years": 1e300}},
        {"limits": {"capex_usd": 1e-300}},
        {"workload__0__max_iteration_time_s": 1e308},
        {"workload__0__name": "\x1b[31mred"},
    ],
)
def test_numbers_and_names_beyond_reason_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        ask(**changes)


@pytest.mark.parametrize(
    "changes", [{"cluster__gpus": [64, 64]}, {"network__nics_per_gpu": [1, 1]}, {"network__oversubscription": 60.0}]
)
def test_no_family_comes_twice(changes: dict[str, object]) -> None:
    found = list(families(Instance.model_validate(question(**changes))))
    assert len(set(found)) == len(found)


def test_an_interrupt_after_the_proof_keeps_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    from coopt.solving import shared

    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    expected = coopt.solve(ask())
    monkeypatch.setattr(shared, "fastest_of_equal_cost", pressed)
    plan = coopt.solve(ask())
    assert (plan.status, plan.objective.value) == ("optimal", expected.objective.value)


@pytest.mark.parametrize("given", [{"seed": 0}, {"seed": 11}, {"seed": 3, "threads": 2}])
def test_two_runs_give_the_same_plan(given: dict[str, object]) -> None:
    fixed = {"timing_s"}
    first, again = (coopt.solve(ask(), **given).model_dump(exclude=fixed) for _ in range(2))  # type: ignore[arg-type]
    assert first == again
    assert first["solver"]["options"]["random_seed"] == given.get("seed", 0)


PAIR = {"name": "pair", "size": 2, "gbyte_s": 450, "usd_per_gpu": 10, "w_per_gpu": 1}


def listing(*fabrics: str, **changes: object) -> Instance:
    """16 domains of 2 GPUs: four leaves a rail and 12 switches in all, whether rails meet above the leaves or not."""
    return ask(
        cluster__gpus=32, workload__0__max_iteration_time_s=20.0, workload__0__mapping={"tp": 2, "pp": 2},
        network__hb_domains=PAIR, network__fabrics=list(fabrics), network__switches=switch(8, 5000),
        network__oversubscription=1.0, network__charge="loads",
        **changes,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["time", "partition"])
@pytest.mark.parametrize("fabrics", list(permutations(("rail-only", "rail-optimized"))))
def test_rails_are_joined_where_it_costs_nothing(fabrics: tuple[str, str], mode: str) -> None:
    sharing = {"sharing": {"mode": mode}, "workload__0__mapping__dp": [8]} if mode == "partition" else {}
    apart, both = (coopt.solve(listing(*names, **sharing)) for names in (("rail-only",), fabrics))
    assert both.objective.value == apart.objective.value
    ((part,), (alone,)) = both.parts, apart.parts
    assert part.design.fabric.tiers == 2
    assert part.design.fabric.kind == "rail-optimized"
    assert part.workloads[0].iteration_time_s == pytest.approx(alone.workloads[0].iteration_time_s, rel=1e-9)


@pytest.mark.parametrize(
    ("value", "proven", "bound", "gap"),
    [
        (200.0, 150.0, 150.0, 0.25),
        (200.0, 200.0, 200.0, 0.0),
        (200.0, 200.0 + 1e-7, 200.0, 0.0),  # a bound that a tolerance of the solver lifted above the plan it found
        (200.0, math.inf, 200.0, 0.0),  # nothing else is feasible
        (200.0, -math.inf, None, None),  # nothing is proven
        (0.0, 0.0, 0.0, 0.0),
        (0.0, -1.0, 0.0, 0.0),  # nothing is worth less than nothing
        (0.0, -6.606369424844161e-10, 0.0, 0.0),  # so that a regret of nothing is proven
    ],
)
def test_a_bound_is_at_most_the_value_it_bounds(
    value: float, proven: float, bound: float | None, gap: float | None
) -> None:
    claim = claim_of("capex", value, proven)
    assert (claim.kind, claim.value, claim.bound, claim.gap) == ("capex", value, bound, gap)


def test_what_only_the_last_digits_keep_from_the_value_is_no_gap() -> None:
    short = math.nextafter(690.0, 0.0)
    claim = claim_of("power", 690.0, short)
    assert (claim.bound, claim.gap) == (690.0, 0.0)
    claim = claim_of("power", 690.0, 690.0 * (1 - 1e-11))
    assert claim.bound == 690.0 * (1 - 1e-11)
    assert claim.gap > 0


def test_that_there_is_no_plan_stays_proven_where_time_runs_out_for_the_reasons() -> None:
    def reasons() -> tuple[str, ...]:
        raise StoppedError("time limit")

    run = Run(instance=ask(), backend=backend_of(ask().solver), on_progress=None)
    plan = infeasible(run, reasons)
    assert plan.status == "infeasible"
    assert "time limit" in plan.explanation[0]


@settings(max_examples=example_count(40))
@given(instances())
def test_a_plan_within_memory_and_limits_exists_at_the_fastest_pace_and_none_below(instance: Instance) -> None:
    found = fastest_design(instance)
    if not isinstance(found, Evaluation):
        assert found
        assert solve(with_scaled_bounds(instance, 1e6), reasons=False).status == "infeasible"
        return
    assert all(check.ok for check in found.limits if not check.name.startswith("time"))
    pace = max(run.iteration_time_s / run.bound_s for run in found.workloads)
    assert solve(with_scaled_bounds(instance, pace * (1 + 1e-9))).status == "optimal"
    assert solve(with_scaled_bounds(instance, pace * (1 - 1e-9)), reasons=False).status == "infeasible"


def test_of_equally_fast_networks_the_cheapest_is_taken() -> None:
    found = fastest_design(ask())
    assert isinstance(found, Evaluation)
    cheapest = solve(ask(workload__0__max_iteration_time_s=found.workloads[0].iteration_time_s))
    assert found.cost.capex_usd == cheapest.cost.capex_usd  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cluster__gpus": 67, "network__domain_fill": "even"}, "67 GPUs"),
        ({"limits": {"capex_usd": 1.0}}, "[limits]"),
        (
            {"cluster__gpus": [8, 64], "limits": {"capex_usd": 6e4}, "workload__0__mapping": {"tp": [2], "pp": [8]}},
            "[limits]",
        ),
        ({"cluster__gpus": 16, "workload__0__model": "gpt-1t"}, "more GPUs, more memory"),
    ],
)
def test_where_nothing_can_be_built_a_sentence_says_why(changes: dict[str, object], says: str) -> None:
    found = fastest_design(ask(**changes))
    assert isinstance(found, tuple)
    assert any(says in sentence for sentence in found)
