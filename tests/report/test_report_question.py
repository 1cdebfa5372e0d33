"""The page says what was asked: every site, phase, volume price, core, loss and interval stands in it."""

import pytest

from coopt.instance.schema import Instance
from coopt.report.plan import question_rows
from tests.conftest import ask
from tests.kinds import QUESTIONS

BEYOND_ONE_NETWORK = {
    "Site east": "0.05 MW, PUE 1.25, electricity at $0.05 a kWh",
    "Site west": "0.2 MW, PUE 1.1, electricity at $0.08 a kWh",
    "From 2026 on": "32 GPUs for first (at most 1.000 s an iteration)",
    "From 2029.5 on": "64 GPUs for first (at most 0.1500 s an iteration), second (at most 0.2000 s an iteration); "
    "prices: nic x 0.5, gpu x 0.9; $10 of labour for each uplink added to an existing switch",
    "Volume price of cx7-400g": "10.0% off from 20 on (incremental)",
    "Different products": "at most 1 kind of HB domain",
    "Core": "16-port, 25 Gbit/s for each GPU that trains",
    "Losses": "any one NIC (time bounds are then 1.5 times as long)",
    "Prices": "nic x 0.5 to 2, switch x 0.2 to 9",
    "Aim": "least cost at the worst prices",
}


def test_everything_that_couples_islands_is_told() -> None:
    rows = dict(question_rows(Instance.model_validate(QUESTIONS["fleet"])))
    assert {key: value for key, value in rows.items() if key in BEYOND_ONE_NETWORK} == BEYOND_ONE_NETWORK
    assert not any("at most" in rows[f"Train {name}"] for name in ("first", "second"))  # those of phases hold


def test_regret_and_efficiency_are_told() -> None:
    robust = {"aim": "regret", "efficiency": [0.9, 1.1], "prices": {"nic": [1.0, 2.0]}}
    rows = dict(question_rows(Instance.model_validate(QUESTIONS["fleet"] | {"robust": robust})))
    assert (rows["Efficiency"], rows["Aim"]) == (
        "x 0.9 to 1.1",
        "least regret over all prices (cost above the best plan at the same prices)",
    )
    assert "Losses" not in rows


def test_prices_have_no_say_on_power() -> None:
    drawn = ask(objective={"minimize": "power"}, robust={"prices": {"nic": [1.0, 2.0]}})
    assert "Aim" not in dict(question_rows(drawn))


def test_oversubscription_end_to_end_is_told_where_switches_may_have_some() -> None:
    told = {
        ratio: dict(question_rows(ask(network__oversubscription=ratio, network__end_to_end_oversubscription=2.0)))[
            "Oversubscription"
        ]
        for ratio in (1.0, 4.0)
    }
    assert told == {1.0: "none", 4.0: "up to 4:1 per switch, up to 2:1 end to end"}


@pytest.mark.parametrize("kind", ["shared", "turns", "direct"])
def test_one_network_has_no_word_of_them(kind: str) -> None:
    assert not BEYOND_ONE_NETWORK.keys() & dict(question_rows(Instance.model_validate(QUESTIONS[kind]))).keys()
