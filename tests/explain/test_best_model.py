"""The model of least loss by a date, against questions with that date and those tokens."""

from typing import Any

import pytest

import coopt
from coopt.instance.schema import Instance, with_workload
from coopt.instance.transformer import Transformer
from tests.conftest import ask, small_model

SIZES = tuple(Transformer.model_validate(small_model(layers=n, name=f"of {n} layers")) for n in (8, 16))
DAYS = {"workload__0__max_iteration_time_s": None, "workload__0__train_days": 30.0, "workload__0__train_tokens": 1e9}
DAYS |= {"network__fabrics": "rail-only", "network__hb_domains": "hgx-h100-8"}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"availability": {"rates": "llama-3", "confidence": 0.9}, "margin": {"time": 0.1}},
        {"network__cables": "hall"},
    ],
)
def test_a_model_is_trained_on_the_tokens_that_are_in_time_and_no_more(changes: dict[str, Any]) -> None:
    instance = ask(**DAYS | changes)
    sized = coopt.best_model(instance, SIZES)
    losses = [each.loss for each in sized]
    assert losses == sorted(losses)
    (shape,) = (shape for shape in SIZES if shape.name == sized[0].model)
    assert sized[0].loss == instance.workload[0].law.loss(float(shape.parameters), sized[0].tokens)
    for factor, status in ((0.999, "optimal"), (1.001, "infeasible")):
        changed = with_workload(instance, 0, {"model": shape, "train_tokens": sized[0].tokens * factor})
        assert coopt.solve(Instance.model_validate(changed.model_dump(by_alias=True)), reasons=False).status == status


def test_models_that_nothing_trains_have_no_loss() -> None:
    """A model that is given twice is compared once."""
    sized = coopt.best_model(ask(**DAYS, limits={"capex_usd": 1.0}), SIZES + SIZES)
    assert [(each.status, each.loss) for each in sized] == [("infeasible", None)] * 2


@pytest.mark.parametrize(
    ("changes", "models", "needs"),
    [
        ({}, SIZES, "train_days"),
        (DAYS, ["mixtral-8x7b"], "dense"),
        (DAYS, ["gpt-2"], "models: the catalog"),
        (DAYS | {"robust": {"efficiency": [0.9, 1.1]}}, SIZES, r"single network, .* without \[robust\]"),
    ],
)
def test_what_has_no_date_or_no_law_is_refused(changes: dict[str, Any], models: Any, needs: str) -> None:
    with pytest.raises(coopt.InstanceError, match=needs):
        coopt.best_model(ask(**changes), models)
