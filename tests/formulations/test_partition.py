"""Every equation of partitions reads as written, binds, and agrees with enumeration."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from benchmarks.partition_naive import NAIVE
from formulations import choice
from formulations.choice_data import ChoiceData, CoreLayer, ScenarioCosts
from tests.conftest import example_count
from tests.formulations import read
from tests.formulations.partitions import best, enumerated, problems, relaxed, standing, two_workloads
from tests.formulations.read import without

OPTIMUM = 1 + 3 + 5 * 6  # both on product 0, its five units at the lower price
A, B = two_workloads().products


def apart(**changes: object) -> ChoiceData:
    """Nothing but prices couples the workloads."""
    return two_workloads(**{"kinds": (), "limits": (), "budget": None, **changes})


def growing(**changes: object) -> ChoiceData:
    """One workload with two options over two phases, on a product that gets cheaper and a core that grows."""
    data = ChoiceData(
        workloads=1, workload=np.array([0, 0]), usd=np.array([1.0, 2.0]), opex=np.array([0.0, 0.0]),
        quantity=np.array([[3.0, 2.0], [2.0, 2.0]]), products=(A, replace(A, usd=A.usd / 2, predecessor=0)),
        cores=(
            CoreLayer(product=0, ports=2, up=np.array([2.0, 4.0])),
            CoreLayer(product=1, ports=2, up=np.array([4.0, 4.0]), predecessor=0),
        ),
    )  # fmt: skip
    return replace(data, **changes)


DEAR = ScenarioCosts(
    usd=np.array([1.0, 2.0]), opex=np.array([0.0, 1.0]), prices=(np.array([20.0, 12.0]), np.array([10.0, 6.0])),
    core=(1.0, 2.0), min_value=7.0,
)  # fmt: skip
SPENT = "z[0] + 20.0*z[1] + 3.0*z[2] + 31.0*z[3] + 0.0*v[0,0] + 10.0*x[0,0] + 0.0*v[0,1] + 6.0*x[0,1] + 9.0*n[0]"
READS: list[tuple[choice.Equation, ChoiceData, dict[str, str]]] = [
    (choice.add_cost, two_workloads(weight=1.0), {"cost": f"{SPENT} + 0.0*z[0] + z[1] + 0.0*z[2] + z[3] + 5.0*n[0]"}),
    (choice.add_one_option, two_workloads(), {"one_option[1]": "z[2] + z[3]  ==  1"}),
    (choice.add_products_used, two_workloads(), {"products_used[0,1]": "z[1]  <=  y[1]"}),
    (choice.add_distinct_products, two_workloads(), {"distinct_products[hb]": "y[0] + y[1]  <=  1"}),
    (
        choice.add_limits,
        two_workloads(),
        {"limited[gpus]": "4.0*z[0] + 3.0*z[1] + 6.0*z[2] + 5.0*z[3] + n[0]  <=  20.0"},
    ),
    (choice.add_budget, two_workloads(), {"within_budget": f"{SPENT}  <=  100.0"}),
    (choice.add_core_ports, two_workloads(), {"core_ports[0]": "3.0*z[1] + 2.0*z[3]  <=  4*n[0]"}),
    (
        choice.add_bracket_range,
        two_workloads(),
        {"bracket_from[0,0]": "0.0*v[0,0]  <=  x[0,0]", "bracket_from[0,1]": "4.0*v[0,1]  <=  x[0,1]"}
        | {"bracket_to[0,0]": "x[0,0]  <=  4.0*v[0,0]", "bracket_to[0,1]": "x[0,1]  <=  5.0*v[0,1]"},
    ),
    (
        choice.add_bracket_range,  # four units stand
        two_workloads(products=(standing(4), B)),
        {"bracket_from[0,1]": "0.0*v[0,1]  <=  x[0,1]", "bracket_to[0,1]": "x[0,1]  <=  v[0,1]"},
    ),
    (choice.add_purchases, two_workloads(), {"purchases[0]": "2.0*z[0] + 3.0*z[2]  <=  x[0,0] + x[0,1]"}),
    (
        choice.add_purchases,  # those of a phase may wait for the next
        growing(),
        {
            "purchases[1]": "2.0*z[0] + 2.0*z[1] + n[1] - n[0] + 3.0*z[0] + 2.0*z[1] + n[0]  <=  "
            "x[1,0] + x[1,1] + x[0,0] + x[0,1]"
        },
    ),
    (
        choice.add_shares,
        two_workloads(),
        {
            "held_by[1,0]": "3.0*z[2]  <=  share[1,0,0] + share[1,0,1]",
            "share_of_bracket[1,0,1]": "share[1,0,1]  <=  3.0*v[0,1]",
            "shares[0,1]": "share[0,0,1] + share[1,0,1]  <=  x[0,1]",
        },
    ),
    (
        choice.add_shares,  # the core holds one of its product
        apart(products=(A, replace(A, name="c"))),
        {"held_by[2,1]": "n[0]  <=  share[2,1,0] + share[2,1,1]"},
    ),
    (choice.add_core_growth, growing(), {"core_growth[1]": "n[0]  <=  n[1]"}),
    (
        choice.add_least_regret,
        growing(scenarios=(DEAR,)),
        {
            "cost": "regret",
            "regrets[0]": "z[0] + 2.0*z[1] + 0.0*v[0,0] + 20.0*x[0,0] + 0.0*v[0,1] + 12.0*x[0,1] + 0.0*v[1,0] + "
            "10.0*x[1,0] + 0.0*v[1,1] + 6.0*x[1,1] + 0.0*z[0] + z[1] + n[0] + 2.0*n[1] - 7.0  <=  regret",
        },
    ),
]


BARRED = two_workloads(usd=np.array([1.0, 99.0, 99.0, 4.0]), budget=None)
FEW = replace(two_workloads(), limits=(replace(two_workloads().limits[0], cap=9.0, core=(0.0,)),))
SHRINKS = growing(cores=(growing().cores[0], replace(growing().cores[1], up=np.array([0.0, 0.0]))))
BINDS: list[tuple[choice.Equation, ChoiceData]] = [
    (choice.add_one_option, two_workloads()),
    (choice.add_products_used, BARRED),
    (choice.add_distinct_products, BARRED),
    (choice.add_limits, FEW),
    (choice.add_budget, two_workloads(budget=OPTIMUM - 1.0)),
    (choice.add_core_ports, apart(usd=np.array([99.0, 2.0, 99.0, 4.0]))),
    (choice.add_bracket_range, apart(quantity=two_workloads().quantity / 4)),
    (choice.add_purchases, two_workloads()),
    (choice.add_core_growth, SHRINKS),
]


def test_what_is_left_without_an_equation_costs_what_it_should() -> None:
    assert best(two_workloads()) == OPTIMUM == enumerated(two_workloads())
    assert best(two_workloads(budget=float(OPTIMUM))) == pytest.approx(OPTIMUM)
    assert best(two_workloads(budget=OPTIMUM - 1.0)) == math.inf
    assert best(two_workloads(), without(choice.TOTALS, choice.add_one_option)) == 0
    assert (
        best(two_workloads(), without(choice.TOTALS, choice.add_purchases))
        == best(two_workloads(), without(choice.SHARES, choice.add_shares))
        == 1 + 3
    )
    joins = apart(usd=np.array([99.0, 2.0, 99.0, 4.0]))
    assert best(joins) - best(joins, without(choice.TOTALS, choice.add_core_ports)) == 2 * (9 + 5)
    for data in (BARRED, FEW, growing()):
        assert best(data) == enumerated(data) < math.inf


def test_least_regret_binds() -> None:
    scenario = ScenarioCosts(
        usd=np.zeros(2), opex=np.array([5.0, 0.0]), prices=(np.zeros(2), np.zeros(2)), core=(0.0, 0.0), min_value=1.0
    )
    data = growing(scenarios=(scenario,))
    assert best(data, choice.REGRET) == enumerated(data) == 0.0
    assert best(replace(data, scenarios=(replace(scenario, opex=np.array([5.0, 4.0])),)), choice.REGRET) == 3.0


def test_brackets_end_at_their_thresholds_and_cost_no_less_and_cores_use_their_product() -> None:
    steps, first = apart(products=(replace(A, discount="incremental"), B)), replace(A, start=np.array([0.0, 7.0]))
    assert best(steps) == enumerated(steps) == 1 + 3 + 4 * 10 + 6
    assert choice.build(apart(products=(first, B)), ()).ends_of[0].tolist() == [5, 7]
    joins = two_workloads(quantity=np.array([[2.0, 0], [2.0, 0], [3.0, 0], [3.0, 0]]))
    assert choice.build(joins, ()).users_of[0, 1] == [1]


@pytest.mark.parametrize("units", range(1, 7))
@pytest.mark.parametrize("equations", [choice.TOTALS, choice.SHARES])
def test_units_that_stand_cost_nothing_and_further_ones_their_price(
    units: int, equations: tuple[choice.Equation, ...]
) -> None:
    data = two_workloads(products=(standing(units), B), budget=None)
    further_usd = 10 * max(5 - units, 0)
    assert best(data, equations) == pytest.approx(1 + 3 + further_usd)
    assert standing(units).bill(5.0) == further_usd


def test_a_choice_cut_reads_as_written_and_binds_and_none_is_there_before() -> None:
    assert len(choice.build(two_workloads(), (choice.add_cut_list,)).cuts) == 0
    m = choice.build(two_workloads(), choice.TOTALS)
    choice.add_choice_cut(m, [0, 2])
    assert read.texts(m, "cuts[1]") == {"cuts[1]": "z[0] + z[2]  <=  1"}
    assert OPTIMUM < read.optimum(m) < math.inf


@settings(max_examples=example_count(60))
@given(problems())
def test_shares_relax_no_worse_than_totals_and_those_no_worse_than_big_m(data: ChoiceData) -> None:
    naive, totals, shares = (relaxed(data, formulation) for formulation in (NAIVE, choice.TOTALS, choice.SHARES))
    assert naive <= totals + 1e-6 * max(1, abs(naive))
    assert totals <= shares + 1e-6 * max(1, abs(totals))
