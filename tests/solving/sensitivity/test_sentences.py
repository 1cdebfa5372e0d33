"""Sentences of explanations: counts one by one, rows by their names, and nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from coopt.instance.errors import with_names
from coopt.plan.explanation import Bound
from coopt.solving.sensitivity.explanations import STEP
from coopt.solving.sensitivity.sentences import of_bound


def counted(unit: str, used: float, bound: float) -> str:
    numbers = {"bound": bound, "used": used, "slack": 0.1, "step": STEP, "loosest": 99.0}
    one = {"limit": "wan[0].most", "unit": unit, "binds": False, "tighter": None, "looser": None, **numbers}
    return " ".join(of_bound("capex", 100.0, Bound.model_validate(one)))


def test_counts_are_told_one_by_one() -> None:
    assert "(wan[0].most) does not bind: the plan uses 1 of 1 channel, and" in counted("channels", 1.0, 1.0)
    assert "With wan[0].most = 1 channel, 1 fewer than the plan uses, no plan" in counted("channels", 2.0, 40.0)
    assert "With wan[0].most = 792 GPUs, 8 fewer than the plan uses, no plan" in counted("GPUs", 800.0, 1000.0)
    assert "With wan[0].most 1% tighter than what the plan uses, no plan" in counted("MW", 0.2, 0.4)
    assert "With wan[0].most 1% tighter than what the plan makes, no plan" in counted("tokens/s", 7.0, 6.0)


def test_a_step_to_the_loosest_number_is_told_once() -> None:
    loosest = {"bound": 2.0, "value": 90.0, "extra": -10.0}
    one: dict[str, Any] = {"limit": "sharing.most_products.hb", "unit": "products", "binds": True, "tighter": None}
    one |= {"bound": 1.0, "used": 1.0, "slack": 0.0, "step": STEP, "loosest": 2.0, "looser": loosest}
    (sentence,) = of_bound("capex", 100.0, Bound.model_validate(one | {"without": loosest}))
    assert sentence.endswith("; with 2 products the cheapest plan costs $10 less (-10.00%).")
    farther = loosest | {"bound": 3.0, "extra": -20.0}
    (sentence,) = of_bound("capex", 100.0, Bound.model_validate(one | {"without": farther, "loosest": 3.0}))
    assert sentence.endswith(
        "; with 3 products the cheapest plan costs $20 less (-20.00%), and with 2 products it costs $10 less (-10.00%)."
    )


def test_rows_are_called_by_their_names() -> None:
    names = {"site": ("oslo", "berlin"), "wan": ("oslo - berlin",), "phase": ("2026", "2028", "2030")}
    names |= {"phase[1].workloads": ("chat", "code"), "phase[2].workloads": ("code",), "workload": ("chat", "chat")}
    for key, said in {
        "site[1].power_mw": "site['berlin'].power_mw",
        "site[2].power_mw": "site[2].power_mw",
        "wan[0].most": "wan[0].most",
        "phase[1].workloads[0].train_days": "phase['2028'].workloads['chat'].train_days",
        "phase[0].workloads[0].train_days": "phase['2026'].workloads[0].train_days",
        "phase[2].workloads[0].train_days": "phase['2030'].workloads['code'].train_days",
        "workload[1].gpus": "workload[1].gpus",
        "prewan[0].most": "prewan[0].most",
    }.items():
        assert with_names(f"With {key} = 3.", names) == f"With {said} = 3."


@pytest.mark.parametrize(
    ("unit", "used", "said"), [("MW", 0.0, 1), ("channels", 1.0, 1), ("MW", 0.2, 2), ("GPUs", 8.0, 2)]
)
def test_nothing_is_said_of_less_than_none(unit: str, used: float, said: int) -> None:
    numbers = {"bound": 9.0, "used": used, "slack": 0.1, "step": STEP, "loosest": 99.0}
    one = Bound.model_validate(
        {"limit": "some", "unit": unit, "binds": False, "tighter": None, "looser": None, **numbers}
    )
    assert len(list(of_bound("capex", 100.0, one))) == said
