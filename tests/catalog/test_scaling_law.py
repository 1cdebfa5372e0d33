"""Scaling laws: the published optimum, the tokens of a loss, and the best size for a compute by search."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from coopt.instance.catalog import entries, find
from coopt.instance.transformer import FLOP_PER_PARAMETER, ScalingLaw
from coopt.instance.workload import Workload
from coopt.perf.mapping import layer_parameters

LAWS = [one for one in entries("scaling_law").values() if isinstance(one, ScalingLaw)]


def law(name: str = "chinchilla") -> ScalingLaw:
    found = find("scaling_law", name)
    assert isinstance(found, ScalingLaw)
    return found


def test_chinchilla_is_70_billion_parameters_on_1_4_trillion_tokens() -> None:
    """The paper says 67 B and 1.5 T for its 5.76e23 FLOP by two approaches, 40 B by the third, whose law this is."""
    parameters, tokens = law().best_for_compute(5.76e23)
    assert 30e9 < parameters < 50e9
    assert parameters * tokens * FLOP_PER_PARAMETER == pytest.approx(5.76e23)
    assert law().loss(70e9, 1.4e12) == pytest.approx(1.94, abs=0.005)


def test_the_law_that_was_fitted_again_has_20_tokens_for_a_parameter() -> None:
    parameters, tokens = law("chinchilla-2024").best_for_compute(5.76e23)
    assert 15 < tokens / parameters < 30


@given(st.sampled_from(LAWS), st.floats(1e20, 1e27))
def test_no_other_size_has_less_loss_for_its_compute(one: ScalingLaw, flop: float) -> None:
    parameters, tokens = one.best_for_compute(flop)
    sizes = parameters * np.geomspace(0.1, 10, 41)
    losses = [one.loss(size, flop / FLOP_PER_PARAMETER / size) for size in sizes]
    assert one.loss(parameters, tokens) <= min(losses) + 1e-12


@given(st.sampled_from(LAWS), st.floats(1e9, 1e13), st.floats(0.01, 1.0))
def test_the_tokens_of_a_loss_lead_to_it_and_less_takes_more(one: ScalingLaw, size: float, above: float) -> None:
    loss = one.e + one.a / size**one.alpha + above
    tokens = one.tokens(size, loss)
    assert one.loss(size, tokens) == pytest.approx(loss)
    assert one.tokens(size, loss - above / 2) > tokens


def asked(**changes: Any) -> Workload:
    table = {"name": "w", "model": "gpt-22b", "global_batch": 64, "train_days": 30.0}
    return Workload.model_validate(table | changes)


def test_a_loss_or_a_compute_gives_tokens_and_so_does_what_was_written_out() -> None:
    size = asked(train_tokens=1e12).model.parameters
    by_compute = asked(compute_flop=6e23)
    assert by_compute.train_tokens == pytest.approx(1e23 / size)
    by_loss = asked(loss=2.1)
    assert law().loss(size, by_loss.train_tokens or 0.0) == pytest.approx(2.1)
    for one in (by_compute, by_loss):
        assert Workload.model_validate(one.model_dump()) == one


def test_parameters_are_those_of_layers_and_embeddings() -> None:
    for entry in entries("model").values():
        if not entry.experts and not entry.kv_rank and not entry.mamba_layers:
            tables = entry.vocab * entry.hidden * (1 if entry.tied_embeddings else 2)
            assert entry.parameters == pytest.approx(entry.layers * float(layer_parameters(entry, 1)) + tables)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loss": 1.7}, "a higher loss"),
        ({"loss": 2.1, "compute_flop": 1e23}, "one of them"),
        ({"loss": 2.1, "train_tokens": 1e9}, r"train_tokens = 1e\+09"),
        ({"loss": 2.1, "model": "mixtral-8x7b"}, "no scaling law"),
        ({"loss": 2.1, "scaling_law": "nobody"}, "of this name"),
    ],
)
def test_what_no_law_answers_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        asked(**changes)


def test_a_critical_batch_takes_twice_the_least_tokens() -> None:
    least = asked(train_tokens=1e12)
    batch = least.tokens_per_iteration
    twice = asked(train_tokens=1e12, critical_batch_tokens=float(batch))
    assert twice.needed_tokens == 2e12
    assert twice.iterations == 2 * least.iterations
    assert twice.required_s == pytest.approx(least.required_s / 2)
    assert math.isclose(asked(train_tokens=1e12, critical_batch_tokens=1e18).required_s, least.required_s, rel_tol=1e-9)
