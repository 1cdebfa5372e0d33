"""Errors that grow with the distance from what was measured, and intervals that hold what they claim."""

import json
import math
import random
import runpy
from pathlib import Path
from typing import Any

import pytest

import coopt
from coopt.instance.catalog import entries
from coopt.instance.evidence import PLACE, Practice, differences, error_of, measured, nearest_runs, outside
from coopt.plan.parts import NearestRun
from coopt.verifier.parts.evidence import _fault_of_nearest, _outside
from tests.changes import with_part
from tests.conftest import ask

ROOT = Path(__file__).parents[2]
KNOWN = Practice("mixture of experts", "blackwell", "fp8", "gb200", "megatron-core", "none", False, 1, 256)


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "errors.py"))


@pytest.fixture(scope="module")
def rows(made: dict[str, Any]) -> Any:
    return made["Rows"].of(made["published_runs"]())


def test_the_law_is_that_of_the_published_rows(made: dict[str, Any], rows: Any) -> None:
    page, kept = json.loads(made["page"](rows)), json.loads(PLACE.read_text("utf-8"))
    assert page["runs"] == kept["runs"], "benchmarks/errors.py writes it"
    assert page["base"] == pytest.approx(kept["base"], rel=5e-3)
    for name in ("harder", "weights"):
        assert page[name] == pytest.approx(kept[name], abs=2e-3)


def test_intervals_of_nine_tenths_hold_in_every_bucket(made: dict[str, Any], rows: Any) -> None:
    """Each source by a law that was fitted, and scaled, without it."""
    whole, *buckets = rows.coverage()
    assert whole.n == len(rows.errors) == 419
    assert 0.88 <= whole.covered / whole.n <= 0.92
    assert [one for one in buckets if not one.holds] == []
    assert made["coverage"](rows) == made["COVERAGE"].read_text("utf-8")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"generation": "rubin", "gpu": "vr200"}, "on rubin GPUs"),
        ({"gpu": "ours (own)"}, "on ours (own)"),
        ({"experts_across": True, "gpu": "b300"}, "on b300 with EP across HB domains"),
        ({"micro_batch": 512}, "with micro-batches of 512"),
        ({"gpus": 65536}, "on 65,536 GPUs"),
        ({"software": "maxtext"}, "of mixtures of experts by maxtext"),
        ({"graphs": "scoped"}, "of mixtures of experts with CUDA graphs: scoped"),
    ],
)
def test_an_error_grows_with_what_no_run_has(change: dict[str, Any], told: str) -> None:
    assert error_of(KNOWN._replace(**change)) > error_of(KNOWN)
    assert told in outside(KNOWN._replace(**change))
    assert outside(KNOWN) == ()


def test_the_nearest_run_is_the_same_one_where_it_was_measured() -> None:
    law = measured().law
    for one in measured().runs:
        assert nearest_runs(one.practice)[0].practice.gaps_to(one.practice) == {}
        assert error_of(one.practice) == law.error(one.practice, 0.0)


@pytest.mark.parametrize("kind", [{}, {"workload__0__model__experts": 8, "workload__0__model__top_k": 2}])
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_hardware_without_runs_keeps_no_less_than_one_and_a_half_times_the_error(precision: str, kind: Any) -> None:
    own = {"extends": "h100-sxm", "name": "ours", "bf16_tflop_s": 1150}
    changes = {"margin": {"confidence": 0.8}, "workload__0__precision": precision} | kind
    known = entries("model_error")
    hopper = known[f"hopper {'16-bit' if precision == 'bf16' else precision}"]
    for gpu, table in ((own, hopper), ({"extends": "mi300x", "name": "x", "fp8_tflop_s": 2000}, known["all"])):
        kept = ask(cluster__gpu=gpu, **changes).workload[0].time_margin
        least = max(table.left_out, known["mixture of experts" if kind else "dense"].left_out)
        assert kept >= 1.5 * least * 0.8416 * math.sqrt(math.pi / 2)


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"error": 0.01}, "time-error"),
        ({"error": 0.5}, "time-error"),
        ({"error": None}, "time-error"),
        ({"nearest": ()}, "nearest-runs"),
        ({"nearest": "unknown"}, "nearest-runs"),
        ({"nearest": "further"}, "nearest-runs"),
        ({"nearest": "alike"}, "nearest-runs"),
        ({"outside": ("on h100-sxm",)}, "outside-measured"),
    ],
)
def test_the_verifier_rejects_other_evidence(change: dict[str, Any], check: str) -> None:
    instance = ask(workload__0__max_iteration_time_s=10.0)
    plan = coopt.solve(instance)
    (run,) = plan.runs
    first, second = run.nearest
    further = measured().runs[0]
    others = {
        "unknown": NearestRun(id="nobody-1"),
        "further": NearestRun(id=further.id, differs=tuple(further.practice.phrase(n) for n in ("generation", "gpu"))),
        "alike": NearestRun(id=second.id, differs=("in fp4",)),
    }
    wrong = change | ({"nearest": (first, others[change["nearest"]])} if change.get("nearest") else {})
    verdict = coopt.verify(instance, with_part(plan, workloads=(run.model_copy(update=wrong),)))
    assert coopt.verify(instance, plan).accepted
    assert {one.name for one in verdict.checks if not one.ok} == {check}


@pytest.mark.parametrize("share", [0.9, 1.1])
def test_the_verifier_works_margins_out_anew(share: float) -> None:
    instance = ask(margin={"confidence": 0.8}, workload__0__max_iteration_time_s=10.0)
    (workload,) = instance.workload
    moved = instance.having(workload=(workload.with_margin(share * workload.time_margin),))
    failing = {check.name for check in coopt.verify(moved, coopt.solve(moved)).checks if not check.ok}
    assert failing == {"time-margin"}


@pytest.mark.parametrize("seed", range(3))
def test_nearest_runs_are_named_as_the_verifier_names_them(seed: int) -> None:
    """Every property of a run differs in some draw: the words of each were once of two minds."""
    draw, runs = random.Random(seed), [one.practice for one in measured().runs]
    drawn = [Practice(*(getattr(draw.choice(runs), name) for name in Practice._fields)) for _ in range(60)]
    for own in drawn:
        named = [NearestRun(id=run.id, differs=differences(own, run.practice)) for run in nearest_runs(own)]
        assert _fault_of_nearest(tuple(own), named) == ""
        assert _outside(tuple(own)) == outside(own)
        assert _fault_of_nearest(tuple(own), [*named[:1], named[1].model_copy(update={"differs": ("else",)})])
