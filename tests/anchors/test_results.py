"""Answers in seconds, bytes, dollars and watts against papers and sums by hand: by the planner and by the verifier."""

from functools import cache
from typing import Any

import pytest

import coopt
from coopt.plan.store import PlanEvaluation

GIB, YEAR_H = 2**30, 8760
NETWORK: dict[str, Any] = {
    **{"hb_domains": "hgx-a100-8", "fabrics": "rail-only", "nics": "cx6-200g"},
    **{"switches": "40x200g", "optics": "200g-aoc", "oversubscription": [1]},
}
KORTHIKANTI = {
    # arXiv 2205.05198: GPUs, stages, chunks, batch, micro-batch; seconds, MFU and HFU of Table 5 (selective, sequence
    # parallel); GiB of parameters and optimizer and of activations without recomputation and with, Fig. 1
    "gpt-22b": (8, 1, 1, 4, 4, 1.10, 0.417, 0.438, 45.5625, 59.25, 9.5625),
    "gpt-175b": (64, 8, 3, 64, 1, 13.75, 0.514, 0.528, 45.5625, 66.84375, 12.3515625),
    "gpt-530b": (280, 35, 3, 280, 1, 37.83, 0.560, 0.570, 31.640625, 114.0234375, 23.076171875),
    "gpt-1t": (512, 64, 1, 512, 1, 71.49, 0.563, 0.570, 32.958984375, 131.25, 26.5625),
}
HIDDEN = {"gpt-22b": 6144, "gpt-175b": 12_288, "gpt-530b": 20_480, "gpt-1t": 25_600}
TABLES = {model: 18 / 8 * 51_200 * hidden for model, hidden in HIDDEN.items()}
"""Bytes of the embedding in the first stage: 18 a parameter, over 8 tensor ranks; Fig. 1 leaves it out."""
RESERVE_GIB, GROUP_GIB = 1.5, 16 * 3 * 12 / 1024
"""The driver with its context, and what NCCL has for a group of ranks, which Fig. 1 leaves out."""


def megatron(model: str, recompute: str = "selective", *, sp: bool = True, **changes: Any) -> coopt.Instance:
    """A run of arXiv 2205.05198 on A100 servers, with one mapping."""
    gpus, p, v, batch, b, *_ = KORTHIKANTI[model]
    mapping = {"tp": 8, "pp": p, "dp": 1, "cp": 1, "micro_batch": b, "interleave": v, "zero": 0, "outermost": "pp"}
    workload = {
        **{"name": "w", "model": model, "global_batch": batch, "max_iteration_time_s": 1000},
        "options": {"software": "megatron-2022", "attention": "unfused"},
        "mapping": mapping | {"recompute": recompute, "sequence_parallel": sp},
    }
    cluster = {"gpu": {"extends": "a100-80g", "hbm_gb": 300}, "gpus": gpus}
    table = {"schema": 1, "name": "a", "margin": "none", "cluster": cluster, "workload": workload, "network": NETWORK}
    return coopt.Instance.model_validate(table | changes)


@cache
def answered(model: str, recompute: str = "selective", *, sp: bool = True) -> tuple[Any, dict[str, float]]:
    """How the planner and the verifier say that a run trains."""
    instance = megatron(model, recompute, sp=sp)
    plan = coopt.solve(instance)
    assert coopt.verify(instance, plan).accepted
    return plan.workloads[0], figures(coopt.evaluate_plan(instance, plan))


def figures(evaluation: PlanEvaluation) -> dict[str, float]:
    """The figures that the verifier derives, by name."""
    return {figure.name: figure.value for figure in evaluation.figures}


@pytest.mark.parametrize("model", KORTHIKANTI)
def test_iterations_and_utilisation_are_those_measured(model: str) -> None:
    _, _, _, batch, _, time_s, mfu, hfu, *_ = KORTHIKANTI[model]
    run, verified = answered(model)
    for found_s in (run.iteration_time_s, verified["iteration time"]):
        assert found_s == pytest.approx(time_s, rel=0.005)
    for found in (run.mfu, verified["MFU"]):
        assert found == pytest.approx(mfu, abs=0.004)
    assert run.hfu == pytest.approx(hfu, abs=0.004)
    assert run.tokens_per_s == pytest.approx(batch * 2048 / run.iteration_time_s)
    scale = 100 * run.iteration_time_s / time_s  # in the time measured, as published to a decimal of a percent
    assert (run.mfu * scale, run.hfu * scale) == pytest.approx((100 * mfu, 100 * hfu), abs=0.06)


@pytest.mark.parametrize("model", KORTHIKANTI)
def test_memory_is_that_of_figure_1(model: str) -> None:
    *_, states, plain, small = KORTHIKANTI[model]
    for recompute, sp, activations in (("none", False, plain), ("selective", True, small)):
        run, verified = answered(model, recompute, sp=sp)
        groups = 2 if model == "gpt-22b" else 3  # all ranks, tensor ranks, stages
        outside = RESERVE_GIB + groups * GROUP_GIB
        logits = run.memory_gib - states - activations - outside - TABLES[model] / GIB
        # where the first stage is the last one, it has logits in fp32 of a micro-batch of 4 as well
        expected = 4 * 4 * 2048 * 51_200 / 8 / GIB if model == "gpt-22b" else 0.0
        assert logits == pytest.approx(expected, abs=1e-9)
        assert verified["memory"] == pytest.approx(run.memory_gib)
        assert run.memory_limit_gib == pytest.approx(300e9 / GIB)


def test_mfu_is_model_flop_over_peak_flop() -> None:
    """72 B s l h^2 (1 + s / 6h + V / 12lh) FLOP an iteration (arXiv 2104.04473, equation 3), 312 TFLOP/s a GPU."""
    run, _ = answered("gpt-175b")
    flop = 72 * 64 * 2048 * 96 * 12_288**2 * (1 + 2048 / (6 * 12_288) + 51_200 / (12 * 96 * 12_288))
    assert run.mfu == pytest.approx(flop / (run.iteration_time_s * 64 * 312e12), rel=1e-6)
    # Megatron-LM of 2025 (training.py, num_floating_point_operations): scores of the causal half alone
    half = 72 * 64 * 2048 * 96 * 12_288**2 * (1 + 2048 / (12 * 12_288) + 51_200 / (12 * 96 * 12_288))
    assert run.mfu_causal == pytest.approx(run.mfu * half / flop, rel=1e-6)


RAIL_ONLY = {  # fabric: switches, transceivers, USD at 694 a port and 199 a transceiver (arXiv 2307.12169)
    "clos": (2560, 196_608, 152_829_952),
    "rail-only": (1536, 131_072, 94_306_304),
}


@pytest.mark.parametrize("fabric", RAIL_ONLY)
def test_networks_of_32768_gpus_cost_what_rail_only_says(fabric: str) -> None:
    switches, transceivers, usd = RAIL_ONLY[fabric]
    network = {
        **{"hb_domains": "gh200-256", "fabrics": fabric, "nics": "cx7-400g", "switches": "64x400g"},
        **{"optics": "400g-199", "oversubscription": [1]},
    }
    mapping = {"tp": 8, "pp": 64, "dp": 64, "micro_batch": 1, "interleave": 1, "recompute": "full", "outermost": "pp"}
    workload = {
        **{"name": "w", "model": "gpt-1t", "global_batch": 4096, "max_iteration_time_s": 1000},
        "mapping": mapping | {"cp": 1, "zero": 1, "sequence_parallel": True},
    }
    table: dict[str, Any] = {"schema": 1, "name": "a", "margin": "none", "cluster": {"gpu": "h100-sxm", "gpus": 32_768}}
    table |= {"workload": workload, "network": network, "objective": {"include": ["switch", "optics"]}}
    instance = coopt.Instance.model_validate(table)
    plan = coopt.solve(instance)
    assert coopt.verify(instance, plan).accepted
    assert plan.design is not None
    assert plan.cost is not None
    assert (plan.design.fabric.switch_count, plan.design.fabric.transceiver_count) == (switches, transceivers)
    assert plan.cost.capex_usd == plan.objective.value == usd
    power_w = switches * 747 + transceivers * 9
    assert plan.cost.power_w == power_w
    assert plan.cost.tco_usd == pytest.approx(usd + 4 * YEAR_H * power_w / 1000 * 1.25 * 0.08)
    verified = figures(coopt.evaluate_plan(instance, plan))
    assert (verified["purchase"], verified["power"]) == (usd, power_w)


def test_a_server_is_bought_run_and_owned() -> None:
    """8 A100 of 13,750 USD and 400 W with 6,335 USD and 392.5 W of host each, 3 years at 10 ct and PUE 1.5."""
    objective = {"include": ["gpu", "host", "hb"], "years": 3, "usd_per_kwh": 0.1, "pue": 1.5, "minimize": "tco"}
    terms = {"labour_share": 0.05, "support_share": 0.1}
    instance = megatron("gpt-22b", objective=objective | terms, limits={"power_mw": 0.01, "racks": 1})
    plan = coopt.solve(instance)
    usd, w = 8 * (13_750 + 6335), 8 * (400 + 392.5)
    assert plan.cost is not None
    assert plan.cost.capex_usd == pytest.approx(usd)
    assert plan.cost.power_w == pytest.approx(w)
    assert plan.objective.value == pytest.approx(
        usd * (1 + 0.05 + 3 * 0.1) + 3 * YEAR_H * w / 1000 * 1.5 * 0.1, rel=1e-12
    )
    limits = {limit.name: (limit.value, limit.limit) for limit in coopt.evaluate_plan(instance, plan).limits}
    assert limits["power"] == pytest.approx((w / 1e6, 0.01))
    assert limits["racks"] == (1, 1)


def test_days_asked_are_met_or_missed_to_the_hour() -> None:
    """300 B tokens on 64 A100 at 13.755 s for 131,072 tokens take 364.4 days."""
    asked = megatron("gpt-175b").workload[0].model_copy(update={"max_iteration_time_s": None, "train_tokens": 300e9})
    met, missed = (
        megatron("gpt-175b").model_copy(update={"workload": (asked.model_copy(update={"train_days": days}),)})
        for days in (365.0, 364.0)
    )
    plan = coopt.solve(met)
    time_s = plan.workloads[0].iteration_time_s
    assert time_s * 300e9 / (64 * 2048) / 86_400 == pytest.approx(364.4, abs=0.2)
    assert (plan.status, coopt.solve(missed).status) == ("optimal", "infeasible")
    assert met.workload[0].duration(time_s) == "364.4 days"


def test_a_plan_that_is_a_gibibyte_of_memory_or_a_factor_of_rate_off_is_rejected() -> None:
    instance = megatron("gpt-22b")
    plan = coopt.solve(instance)
    for changes in ({"memory_gib": plan.workloads[0].memory_gib * GIB / 1e9}, {"memory_limit_gib": 300.0}):
        (run,) = plan.workloads
        wrong = run.model_copy(update=changes)
        part = plan.parts[0].model_copy(update={"workloads": (wrong,)})
        lie = plan.model_copy(update={"workloads": (wrong,), "parts": (part,)})
        assert not coopt.verify(instance, lie).accepted
