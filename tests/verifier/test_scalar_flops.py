from __future__ import annotations

import pytest

from coopt.instance.hardware import Gpu
from coopt.verifier.training.iteration import hardware_flop_per_token, met_parameters, model_flop_per_token, utilisation
from tests.verifier.cases import GPU, ask, workload
from tests.verifier.test_scalar_experts import LATENT, mixed
from tests.verifier.test_scalar_layer import tiny
from tests.verifier.test_scalar_memory import gpt


def test_flop_of_the_published_formulas() -> None:
    layers, h, s = 96, 12288, 2048
    here = gpt(layers, h, 96, 64, attention="unfused")
    vocab = here.model.vocab
    plain = 72 * layers * h**2 * (1 + s / (6 * h) + vocab / (12 * layers * h))
    full = 96 * layers * h**2 * (1 + s / (6 * h) + vocab / (16 * layers * h))
    selective = 72 * layers * h**2 * (1 + s / (3 * h) + vocab / (12 * layers * h))
    assert model_flop_per_token(here.model) == pytest.approx(plain, rel=1e-12)
    assert hardware_flop_per_token(here, "full") == pytest.approx(full, rel=1e-12)
    assert hardware_flop_per_token(here, "selective") == pytest.approx(selective, rel=1e-12)
    flash = gpt(layers, h, 96, 64)
    assert hardware_flop_per_token(flash, "selective") == hardware_flop_per_token(flash, "none")


def test_a_token_meets_the_experts_it_visits() -> None:
    attention = 64 * (64 + 2 * 32) + 64 * 64
    width = (256 + 3 * (2 * 128 + 32)) / 4
    assert met_parameters(mixed().model) == attention + 2 * 64 * width + 0.75 * 64 * 8


def test_latent_attention_is_counted_by_its_ranks() -> None:
    # n_q = 64, n_v = 32, and keys and values unfold to 4·20 columns.
    attention = 64 * 24 + 24 * 64 + 64 * 44 + 40 * 80 + 64 * 32
    here = tiny(**LATENT)
    assert met_parameters(here.model) == attention + 2 * 64 * 128
    core = 4 * 24 * 32
    expected = 6 * (2 * met_parameters(here.model) + 101 * 64) + 6 * 2 * core
    assert model_flop_per_token(here.model) == expected
    assert hardware_flop_per_token(here, "full") == expected + 4 * met_parameters(here.model) + 4 * core


def test_a_further_prediction_is_a_layer_and_a_loss() -> None:
    one, two = tiny(extra_predictions=1).model, tiny(extra_predictions=2).model
    more = 6 * (met_parameters(one) + 101 * 64) + 6 * 4 * 32 * 32
    assert model_flop_per_token(two) - model_flop_per_token(one) == more


def test_utilisation_is_one_at_the_peak_of_the_precision() -> None:
    here, gpu = ask().workload[0], ask().cluster.gpu
    time_s = 7e9 * here.tokens_per_iteration / (64 * 300e12)
    assert utilisation(here, gpu, 64, 7e9, time_s) == pytest.approx(1)
    narrow = Gpu.model_validate(GPU | {"fp8_tflop_s": 600})
    assert utilisation(workload(precision="fp8"), narrow, 64, 7e9, time_s) == pytest.approx(0.5)
