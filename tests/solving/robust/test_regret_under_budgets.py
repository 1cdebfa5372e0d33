"""The least regret under a budget: what is cheapest at some prices may be over it at the listed ones."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coopt.instance.schema import Instance
from tests.conftest import accepted, example_count, question, small_model
from tests.solving.fleet_oracle import Book, TooManyError, _fleets, enumerated, menus_of
from tests.solving.fleets import fleets
from tests.solving.partition_oracle import with_every_core_optic
from tests.solving.robust_oracle import KINDS

LISTED = dict.fromkeys(KINDS, 1.0)
GPU_FACTORS = [(0.1, 1.0), (0.2, 1.1), (0.5, 3.0), (2.0, 3.0), (0.1, 0.4)]
DOMAINS = st.lists(
    st.tuples(st.sampled_from([1, 2, 4, 8]), st.sampled_from([0.0, 400.0, 3_000.0])),
    min_size=2,
    max_size=3,
    unique=True,
)
FACTORS = [(0.3, 1.0), (0.5, 2.0), (2.0, 3.0)]


def affordable(instance: Instance) -> list[float]:
    """Capex at the listed prices of every fleet within the other limits, rising."""
    books = [Book(instance=one) for one in with_every_core_optic(instance)]
    return sorted(
        {
            usd
            for book in books
            for some in _fleets(book, menus_of(book, 1.0), LISTED)
            for usd in some.capex_usd(LISTED).tolist()
        }
    )


@st.composite
def budgeted(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    """Islands whose prices are open, and how many fleets a budget at the listed prices lets in at least."""
    table = draw(fleets()).model_dump(by_alias=True)
    kind = draw(st.sampled_from(["hb", "nic", "switch", "optics"]))
    prices = {"gpu": draw(st.sampled_from(GPU_FACTORS)), kind: draw(st.sampled_from(FACTORS))}
    table["robust"] = {"prices": prices, "aim": "regret"}
    table["objective"] |= {"include": [*KINDS], "minimize": draw(st.sampled_from(["capex", "capex", "tco"]))}
    table["cluster"]["gpu"]["usd"] = draw(st.sampled_from([100.0, 2_000.0, 20_000.0]))
    # idle GPUs of large domains are cheap at some prices, and other parts in place of them at others
    table["network"]["hb_domains"] = [
        {"name": f"hb{n}", "size": size, "gbyte_s": 450.0, "usd_per_gpu": usd, "w_per_gpu": 10.0, "racks": 0.25}
        for n, (size, usd) in enumerate(draw(DOMAINS))
    ]
    table["sharing"]["discount"] = []
    table["workload"] = table["workload"][: draw(st.integers(1, 2))]
    for workload in table["workload"]:
        workload["gpus"] = draw(st.sampled_from([[2], [4], [2, 6], [4, 8]]))
        workload["max_iteration_time_s"] = draw(st.sampled_from([0.3, 1.0, 10.0]))
    table["limits"].pop("capex_usd", None)
    return table, draw(st.integers(0, 6))


@settings(max_examples=example_count(1000, usual=30))
@given(budgeted())
def test_the_least_regret_under_a_budget_equals_plain_enumeration(asked: tuple[dict[str, Any], int]) -> None:
    table, place = asked
    try:
        free = Instance.model_validate(table)
        costs = affordable(free)
    except TooManyError:
        assume(False)
    assume(costs)
    budget = costs[min(place, len(costs) - 1)] * (1 + 1e-9)
    instance = Instance.model_validate(table | {"limits": table["limits"] | {"capex_usd": budget}})
    expected, plan = enumerated(instance), accepted(instance)
    assert math.isfinite(expected)
    assert plan.status == "optimal"
    assert plan.objective.value == pytest.approx(expected, rel=1e-9, abs=1e-9 * budget)


def test_what_is_cheapest_at_low_prices_and_over_the_budget_at_the_listed_ones_hides_no_other() -> None:
    """A large domain with six idle GPUs costs least where these cost $400; the budget leaves the small ones."""
    table = question(
        cluster={"gpu": {"extends": "h100-sxm", "usd": 2000.0}, "gpus": 16},
        workload=[
            {
                "name": "w",
                "model": small_model(),
                "global_batch": 48,
                "gpus": [2],
                "mapping": {"micro_batch": 1, "cp": 1, "recompute": "none"},
                "max_iteration_time_s": 10.0,
            }
        ],
        network={
            "hb_domains": [
                {"name": "large", "size": 8, "gbyte_s": 450.0, "usd_per_gpu": 0.0, "w_per_gpu": 30.0},
                {"name": "small", "size": 1, "gbyte_s": 450.0, "usd_per_gpu": 400.0, "w_per_gpu": 0.0},
            ],
            "fabrics": "rail-only",
            "nics": {"name": "n", "gbit_s": 400.0, "usd": 500.0, "w": 5.0},
            "switches": {"name": "s", "radix": 4, "port_gbit_s": 400.0, "usd": 2000.0, "w": 20.0},
            "optics": {"name": "o", "gbit_s": 400.0, "reach_m": 500.0, "usd": 100.0, "w": 12.0},
            "oversubscription": 2.0,
        },
        objective={"minimize": "capex", "include": [*KINDS]},
        limits={"capex_usd": 15_500},
        sharing={"mode": "partition"},
        robust={"prices": {"gpu": [0.2, 1.1]}, "aim": "regret"},
    )
    plan = accepted(Instance.model_validate(table))
    assert (plan.status, plan.objective.value) == ("optimal", 0.0)
    (part,) = plan.parts
    assert part.design is not None
    assert part.design.hb_domain.name == "small"
