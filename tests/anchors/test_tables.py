"""Software, scaling laws, failure rates and errors of the model, from the papers and counts behind them."""

import csv
import math
from pathlib import Path
from typing import Any

import pytest

from coopt.instance.catalog import FailureRates, entries
from coopt.instance.reserves import error_names
from coopt.instance.transformer import ScalingLaw, Software
from coopt.instance.workload import Workload
from coopt.validation.comparison import Comparison, comparison_of
from coopt.validation.published import read_measurements
from docs.calibration_record import later_errors, later_runs

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FLAGS = (
    *("fused_accumulation", "tp_overlap", "pp_overlap", "dropout", "narrow_inputs", "batch_first"),
    *("tp_forward_overlap", "recompute_modules", "grouped_experts", "shards_in_rounds", "fp8_head"),
)
# Bytes of a gradient; bytes an element of norms, residuals and dropout forward and backward; bytes of a logit;
# kernel traffic over fused kernels; overhead; flags that are on.
BUFFERS = 18.0, 26.0  # what sequence parallelism saves of a 22B layer (arXiv 2205.05198, Table 4)
UNFUSED = 22.0, 46.0  # the same kernels unfused, iteration_time: 22u forward, 46u backward
LOGIT = {"fused": 2 * 2 + 2 * 4 + 2 * 4 + 4, "unfused": 15 * 4}  # passes in 16 and 32 bits
SOFTWARE: dict[str, tuple[Any, ...]] = {
    "megatron-core": (
        *(4, *BUFFERS, LOGIT["fused"], 1.0, 1.0),
        "fused_accumulation tp_overlap pp_overlap narrow_inputs tp_forward_overlap recompute_modules",
    ),
    **{
        name: (
            *(2, *BUFFERS, LOGIT["fused"], 1.0, 1.0),
            f"fused_accumulation tp_overlap pp_overlap narrow_inputs tp_forward_overlap recompute_modules{more}",
        )
        for name, more in (("megatron-bridge", ""), ("automodel", " batch_first"))
    },
    "megatron-2022": (
        *(4, *BUFFERS, LOGIT["unfused"], 1.0, 1.0),
        "fused_accumulation tp_overlap dropout narrow_inputs",
    ),
    "megatron-2021": (2, *UNFUSED, LOGIT["unfused"], 1.0, 1.0, "dropout narrow_inputs"),
    "megatron-deepspeed": (2, *UNFUSED, LOGIT["unfused"], 1.0, 1.16, "dropout narrow_inputs"),
    "fsdp": (*(4, *BUFFERS, LOGIT["fused"], 1.2, 1.0), "fused_accumulation pp_overlap batch_first"),
    "fsdp-eager": (*(2, *BUFFERS, LOGIT["fused"], 1.8, 1.0), "fused_accumulation pp_overlap batch_first"),
    "maxtext": (
        *(2, *BUFFERS, LOGIT["fused"], 1.0, 1.0),
        "fused_accumulation tp_overlap pp_overlap batch_first narrow_inputs",
    ),
}
ROOM = {  # memory that stays free, to a twentieth; of all others for allocated peaks a tenth above predictions
    "fsdp": 1 - 1 / 1.70,  # reserved on published runs: up to 70% above predictions
    "fsdp-eager": 0.1 + 0.05,  # as all others, and buffers of gathered layers
    "maxtext": 0.05,  # XLA plans its buffers before a run
}
OF_MEGATRON = {"megatron-core", "megatron-bridge", "automodel"}
FLASH_2 = {"fsdp", "fsdp-eager"}  # 35% of a H100 by FlashAttention-2 (arXiv 2407.08608, abstract)


def software(name: str) -> Software:
    entry = entries("software")[name]
    assert isinstance(entry, Software)
    return entry


def test_every_framework_is_anchored() -> None:
    assert set(SOFTWARE) == set(entries("software"))


@pytest.mark.parametrize("name", SOFTWARE)
def test_frameworks_move_and_keep_the_bytes_that_are_known_of_them(name: str) -> None:
    one, (gradient, forward, backward, logit, traffic, overhead, on) = software(name), SOFTWARE[name]
    assert (one.gradient_bytes, one.norm_forward_bytes, one.norm_backward_bytes) == (gradient, forward, backward)
    assert (one.loss_bytes, one.kernel_traffic, one.overhead) == (logit, traffic, overhead)
    assert {flag for flag in FLAGS if getattr(one, flag)} == set(on.split())
    # master copy and two moments in fp32 (mixed precision, arXiv 1710.03740), or two moments in bf16
    assert one.state_bytes == (2 * 2 if name == "automodel" else 3 * 4)
    assert one.memory_margin == pytest.approx(round(20 * ROOM.get(name, 1 - 1 / 1.1)) / 20)
    assert one.reserve_gib == 0.5 + 1.0  # what the driver withholds, its context and modules
    assert one.attention == (0.35 if name in FLASH_2 else None)
    assert (one.attention_bits, one.latent_bits, one.mamba_output_bits, one.prediction_bits) == (4, 4, 4, 4)
    assert (one.wide_layers, one.kernel_s, one.graphs, one.parameter_bytes) == (0, None, "none", 2)


def test_the_host_of_megatron_starts_a_kernel_in_the_mean_of_what_is_measured() -> None:
    """13.5 us of a product on DGX H100, 99.7 us of a module on GB200 (Transformer Engine issue 2053)."""
    for name in SOFTWARE:
        mean_s = math.sqrt(13.5e-6 * 99.7e-6) if name in OF_MEGATRON else 0.0
        assert software(name).host_s == pytest.approx(mean_s, rel=0.01)


LAWS = {
    "chinchilla": (1.69, 406.4, 410.7, 0.34, 0.28),  # arXiv 2203.15556, equation 10
    "chinchilla-2024": (1.8172, 482.01, 2085.43, 0.3478, 0.3658),  # arXiv 2404.10102, abstract
}


@pytest.mark.parametrize("name", LAWS)
def test_laws_are_those_of_the_papers(name: str) -> None:
    law = entries("scaling_law")[name]
    assert isinstance(law, ScalingLaw)
    assert (law.e, law.a, law.b, law.alpha, law.beta) == LAWS[name]
    e, a, b, alpha, beta = LAWS[name]
    loss = e + a / 70e9**alpha + b / 1.4e12**beta
    assert law.loss(70e9, 1.4e12) == pytest.approx(loss)
    assert law.tokens(70e9, loss) == pytest.approx(1.4e12)
    assert set(LAWS) == set(entries("scaling_law"))


def test_compute_is_six_flop_a_parameter_and_token() -> None:
    """C = 6 N D (arXiv 2001.08361, section 2.1): 3.8e25 FLOP train Llama 3 405B on 15.6 T tokens (arXiv 2407.21783)."""
    table = {"name": "w", "model": "llama3-405b", "global_batch": 16, "max_iteration_time_s": 1}
    tokens = Workload.model_validate(table | {"compute_flop": 3.8e25}).train_tokens
    assert tokens == pytest.approx(15.6e12, rel=2e-3)
    law = entries("scaling_law")["chinchilla"]
    assert isinstance(law, ScalingLaw)
    parameters, best = law.best_for_compute(5.76e23)
    assert 6 * parameters * best == pytest.approx(5.76e23)


LLAMA_GPUS, LLAMA_YEARS = 16_384, 54 / 365  # Table 5 of arXiv 2407.21783: 419 interruptions in 54 days
GPU_YEARS = LLAMA_GPUS * LLAMA_YEARS
EVENTS = {  # counts of the table, and part-years
    "gpu": (148 + 19 + 17 + 6 + 6, GPU_YEARS),
    "hbm": (72, GPU_YEARS),
    "host": (32 + 3 + 3 + 4 * 2, GPU_YEARS / 8),
    "nic": (7, GPU_YEARS),
    "software": (54 + 7 + 2, GPU_YEARS),
    "optic": (35 - 1, 2 * 35_109 * LLAMA_YEARS),
}


def _poisson_below(count: int, mean: float) -> float:
    """The probability of at most `count` events where so many are expected."""
    return sum(math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in range(count + 1))


@pytest.mark.parametrize("part", EVENTS)
def test_failure_rates_are_counts_over_part_years(part: str) -> None:
    """Intervals are those of Garwood: 2.5% for as few events at the upper end, 2.5% for as many at the lower one."""
    rates = entries("failure_rates")["llama-3"]
    assert isinstance(rates, FailureRates)
    rate, (count, years) = rates.of_part[part], EVENTS[part]
    assert rate.per_year == pytest.approx(count / years, rel=4e-3)
    assert rate.low is not None
    assert rate.high is not None
    assert _poisson_below(count, rate.high * years) == pytest.approx(0.025, abs=2.5e-3)
    assert 1 - _poisson_below(count - 1, rate.low * years) == pytest.approx(0.025, abs=2.5e-3)


def test_other_failure_rates_are_those_published() -> None:
    """0.051% of leaf switches a month (Alibaba HPN); 6.50 and 2.34 in 1,000 node-days (arXiv 2410.21680)."""
    rates = dict(entries("failure_rates"))
    assert set(rates) == {"llama-3", "rsc-1", "rsc-2"}
    per_year = {name: one.of_part for name, one in rates.items() if isinstance(one, FailureRates)}
    assert per_year["llama-3"]["switch"].per_year == pytest.approx(12 * 0.051e-2, rel=5e-3)
    assert per_year["rsc-1"]["host"].per_year == pytest.approx(365 * 6.50 / 1000)
    assert per_year["rsc-2"]["host"].per_year == pytest.approx(365 * 2.34 / 1000)
    assert {one.gpus_per_host for one in rates.values() if isinstance(one, FailureRates)} == {8}


def _mean_size(errors: list[float]) -> float:
    return sum(map(abs, errors)) / len(errors)


def test_errors_of_the_model_are_the_means_of_runs_that_were_left_out() -> None:
    with (BENCHMARKS / "left_out.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    runs, fitted = later_runs()
    later = later_errors(runs, fitted)
    named = [(row["hardware"], row["kind"], "all", float(row["error"])) for row in rows]
    named += [(*error_names(run.gpu, run.workload), "all", later[run.id]) for run in runs]
    kinds: dict[str, list[float]] = {}
    for *names, error in named:
        for name in names:
            kinds.setdefault(name, []).append(error)
    kinds = {name: errors for name, errors in kinds.items() if len(errors) > 3}
    known: dict[str, Any] = dict(entries("model_error"))
    assert set(known) - set(kinds) == {"hybrid"}
    for name, errors in kinds.items():
        assert known[name].runs == len(errors)
        assert known[name].left_out == pytest.approx(_mean_size(errors), abs=5e-4)


@pytest.fixture(scope="module")
def published() -> Comparison:
    return comparison_of(read_measurements(BENCHMARKS / "published.csv"))


def test_gpus_say_how_far_predictions_are_off_on_published_runs(published: Comparison) -> None:
    means = {group.name: group.mean_abs_error for group in published.hardware}
    told: dict[str, set[float | None]] = {}
    gpus: dict[str, Any] = dict(entries("gpu"))
    for gpu in gpus.values():
        for precision, kind in (("bf16", "16-bit"), ("fp8", "fp8"), ("fp4", "fp4")):
            told.setdefault(f"{gpu.generation} {kind}", set()).add(gpu.error(precision))
    assert {name for name in means if "hybrid" not in name} <= set(told)
    for name, errors in told.items():
        (error,) = errors  # one for a generation
        assert (error is None) == (name not in means)
        assert error is None or error == pytest.approx(means[name], abs=2e-3)


def test_hybrids_say_the_error_on_published_runs_that_no_fit_uses(published: Comparison) -> None:
    (group,) = [group for group in published.architecture if "hybrid" in group.name]
    hybrid: Any = entries("model_error")["hybrid"]
    assert (hybrid.runs, hybrid.left_out) == (group.n, pytest.approx(group.mean_abs_error, abs=6e-4))
