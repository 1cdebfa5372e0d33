"""What plans keep free: bounds and memory shrink by the margin in every question, and cost never falls with it."""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Any

import pytest

from coopt.instance.base import InstanceError
from coopt.instance.catalog import entries
from coopt.instance.schema import Instance
from coopt.instance.variants import of_phase, with_scaled_bounds, within, without_margin
from coopt.report.notes import margin_note
from coopt.report.words import amount
from coopt.solving.answer import solve, value_without_margin
from coopt.verifier.audit import verify
from docs.calibration_record import read_record
from tests.conftest import ask, question, switch, value
from tests.kinds import QUESTIONS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "days.md").read_text("utf-8")


def test_a_margin_on_time_is_a_shorter_bound():
    margin, shorter = ask(margin={"time": 0.25}), ask(workload__0__max_iteration_time_s=1.0 / 1.25)
    assert margin.workload[0].bound_s == shorter.workload[0].bound_s
    assert solve(margin).workloads == solve(shorter).workloads


@pytest.mark.parametrize("kind", ["shared", "sites", "phased", "fleet", "regret"])
def test_plans_of_several_networks_verify_with_a_margin(kind: str) -> None:
    instance = Instance.model_validate(QUESTIONS[kind] | {"margin": {"time": 0.1}})
    plan = solve(instance)
    assert plan.status == "optimal"
    assert not verify(instance, plan).failures


def test_a_margin_on_memory_is_a_smaller_gpu():
    plan = solve(ask(margin={"time": 0.0, "memory": 0.5}))
    assert plan.workloads[0].memory_limit_gib == pytest.approx(solve(ask()).workloads[0].memory_limit_gib / 2)
    assert plan.workloads[0].memory_gib <= plan.workloads[0].memory_limit_gib


@pytest.mark.parametrize(
    "changes", [{}, {"sharing": {"mode": "partition"}, "workload__0__gpus": [128, 256]}, {"network__max_tiers": 2}]
)
def test_a_margin_on_ports_is_smaller_switches(changes: dict[str, Any]) -> None:
    """Half of 16 ports, and of 32, which a question may ask for in their place."""
    switches = [switch(16, 11000), switch(32, 30000)]
    fewer = [one | {"radix": one["radix"] // 2} for one in switches]
    kept = ask(margin={"time": 0.0, "ports": 0.5}, network__switches=switches, cluster__gpus=256, **changes)
    small = ask(network__switches=fewer, cluster__gpus=256, **changes)
    plan = solve(kept)
    assert plan.status == "optimal"
    assert plan.objective.value == value(small)
    assert verify(kept, plan).accepted
    whole = solve(without_margin(kept))
    assert whole.objective.value == value(ask(network__switches=switches, cluster__gpus=256, **changes))


def test_the_first_screen_says_how_many_ports_stay_free() -> None:
    kept = ask(margin={"time": 0.0, "ports": 0.2}, network__switches=[switch(16, 11000)], cluster__gpus=256)
    (note,) = margin_note(kept, solve(kept))
    assert note == "Kept free: 0.0% on top of iteration times, 20.0% of the ports of each switch (4 of 16 on 16-port)."


def test_a_plan_that_uses_ports_that_stay_free_is_rejected() -> None:
    kept = ask(margin={"time": 0.0, "ports": 0.2}, cluster__gpus=512)
    whole = solve(without_margin(kept))
    claim = whole.model_copy(update={"instance": solve(kept).instance})
    assert verify(without_margin(kept), whole).accepted
    assert not verify(kept, claim).accepted


def test_switches_are_written_out_with_all_their_ports() -> None:
    """Whole cages of four are used on large ones."""
    instance = ask(margin={"time": 0.0, "ports": 0.1}, network__switches=["64x400g", switch(16, 11000)])
    assert [one.radix for one in instance.network.switches] == [56, 14]
    assert [one["radix"] for one in instance.model_dump()["network"]["switches"]] == [64, 16]
    again = Instance.model_validate_json(instance.model_dump_json(by_alias=True))
    assert (again, again.sha256) == (instance, instance.sha256)
    with pytest.raises(ValueError, match=r"margin\.ports = 0\.9: leaves switch '16-port' with 1 of its ports"):
        ask(margin={"time": 0.0, "ports": 0.9}, network__switches=[switch(16, 11000)])


def test_the_error_of_the_model_is_one_standard_error_unless_told():
    (one,) = ask(margin={}).workload
    dense = entries("model_error")["dense"]
    assert one.time_margin == pytest.approx(dense.left_out * math.sqrt(math.pi / 2))
    (sure,) = ask(margin={"confidence": 0.95}).workload
    assert sure.time_margin == pytest.approx(one.time_margin * NormalDist().inv_cdf(0.95))
    (experts,) = ask(margin={}, workload__0__model__experts=8, workload__0__model__top_k=2).workload
    assert experts.time_margin > one.time_margin


def test_margins_stay_with_questions_that_follow():
    instance = ask(
        margin={"time": 0.1},
        phase=[
            {"year": 0, "gpus": 32, "workloads": [{"name": "w", "max_iteration_time_s": 2.0}]},
            {"year": 1, "gpus": 64},
        ],
    )
    assert of_phase(instance, 0).workload[0].bound_s == pytest.approx(2.0 / 1.1)
    assert with_scaled_bounds(instance, 3.0).workload[0].bound_s == pytest.approx(3.0 / 1.1)
    assert of_phase(with_scaled_bounds(instance, 3.0), 0).workload[0].bound_s == pytest.approx(6.0 / 1.1)
    assert within(instance.workload[0], 0.5).bound_s == 0.5
    again = Instance.model_validate_json(instance.model_dump_json(by_alias=True))
    assert again == instance
    assert again.workload[0].bound_s == instance.workload[0].bound_s


def test_workloads_of_others_stay_as_they_are():
    bare = ask()
    Instance.model_validate(dict(bare.model_dump(by_alias=True)) | {"workload": bare.workload, "margin": {"time": 0.5}})
    assert bare.workload[0].bound_s == 1.0


def test_what_a_margin_costs_is_told():
    instance = ask(margin={"time": 3.0})
    plan = solve(instance)
    assert value_without_margin(instance, plan) == solve(ask()).objective.value
    assert value_without_margin(ask(), solve(ask())) is None


def test_what_a_margin_costs_has_no_share_of_nothing():
    """Without it a plan may be free of charge: one HB domain whose price is that of its servers."""
    kept = ask(margin={"time": 0.1})
    plan = solve(kept)
    (note,) = margin_note(kept, plan, 0.0)
    assert note.endswith(f"that costs {amount('capex', plan.objective.value)}.")


def test_a_margin_costs_no_regret():
    regret = ask(margin={"time": 0.1}, robust={"aim": "regret", "prices": {"nic": [0.5, 2.0]}})
    plan = solve(regret)
    assert value_without_margin(regret, plan) is None
    (note,) = margin_note(regret, plan, value_without_margin(regret, plan))
    assert note == "Kept free: 10.0% on top of iteration times."


def test_the_table_of_errors_is_that_of_the_calibration():
    made = runpy.run_path(str(DOCS / "model_errors.py"))
    assert made["page"]() == made["PLACE"].read_text("utf-8"), "docs/model_errors.py writes it"
    lines = read_record(DOCS.parent / "benchmarks" / "calibration.csv")
    (whole,) = [float(line["left_out_mean"]) for line in lines if line["set"] == "all"]
    assert fmean(made["sizes"](made["read_rows"]())["all"]) == pytest.approx(whole, abs=1e-4)


def test_intervals_that_claim_nine_tenths_hold_for_85_to_95_percent_of_rows_whose_source_is_left_out() -> None:
    """Errors of a row are those of other sources alone, of its hardware or its kind of model, the larger ones."""
    rows = runpy.run_path(str(DOCS / "model_errors.py"))["read_rows"]()
    held: dict[str, dict[str, list[bool]]] = {}
    for row in rows:
        others = [one for one in rows if one["source"] != row["source"]]
        alike = [[abs(float(one["error"])) for one in others if one[key] == row[key]] for key in ("hardware", "kind")]
        error = max(fmean(sizes) for sizes in alike if sizes) * math.sqrt(math.pi / 2)
        off, margin = float(row["error"]), NormalDist().inv_cdf(0.95) * error
        for name in ("all", row["kind"]):
            own = held.setdefault(name, {"interval": [], "bound": []})
            own["interval"].append(abs(off) <= margin)
            own["bound"].append(1 / (1 + off) <= 1 + margin)
    shown = {name: {what: f"{fmean(each):.1%}" for what, each in own.items()} for name, own in held.items()}
    for own in held.values():
        assert 0.85 <= fmean(own["interval"]) <= 0.95 + 1 / len(own["interval"]), shown  # to within a row
    assert fmean(held["all"]["bound"]) == pytest.approx(0.95, abs=0.01)  # an error of one standard deviation
    assert f"{shown['all']['bound']} take no longer" in PAGE
    assert f"{shown['all']['interval']} lie in the interval of 90%" in PAGE
    dense, experts = (shown[kind]["interval"] for kind in ("dense", "mixture of experts"))
    assert f"({dense} of dense models, {experts} of mixtures of experts)" in PAGE


@pytest.mark.parametrize(
    ("margin", "words"),
    [
        ({"time": -0.1}, "margin.time"),
        ({"memory": 1.0}, "margin.memory"),
        ({"ports": -0.1}, "margin.ports"),
        ({"time": "often"}, "margin.time"),
        ({"confidence": 1.0}, "margin.confidence"),
    ],
)
def test_bad_margins_are_refused(margin, words):
    with pytest.raises((InstanceError, ValueError), match=words.split(".")[1]):
        ask(margin=margin)


def test_hardware_without_measurements_needs_a_number():
    with pytest.raises(ValueError, match="no published runs tell the error on mi300x"):
        Instance.model_validate(question(cluster={"gpu": "mi300x", "gpus": 64}, margin={}))
