"""Every equation of partitions reads as written, binds, and agrees with enumeration."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace

import numpy as np
import pyomo.environ as pyo

from coopt.solving.highs import options, solve
from formulations import partition
from formulations import partition as partition_prices
from formulations.partition import (
    REGRET,
    SHARES,
    TOTALS,
    Equation,
    add_bracket_range,
    add_budget,
    add_choice_cut,
    add_core_growth,
    add_core_ports,
    add_cost,
    add_cut_list,
    add_distinct_products,
    add_least_regret,
    add_limits,
    add_one_option,
    add_products_used,
    add_purchases,
    add_shares,
    build,
)
from formulations.partition_data import CoreLayer, PartitionData, PriceOutlook, Product
from tests.formulations.partitions import best, enumerated, two_workloads

OPTIMUM = 1 + 3 + 5 * 6  # both on product 0, its five units at the lower price


def without(equation: Equation, formulation: tuple[Equation, ...] = TOTALS) -> tuple[Equation, ...]:
    """The formulation less one equation."""
    assert equation in formulation
    return tuple(add for add in formulation if add is not equation)


def apart(**changes: object) -> PartitionData:
    """Nothing but prices couples the workloads."""
    return two_workloads(**{"kinds": (), "limits": (), "budget": None, **changes})


def test_cost_reads_as_written() -> None:
    m = build(two_workloads(weight=1.0), (add_cost,))
    assert str(m.cost.expr) == (
        "z[0] + 20.0*z[1] + 3.0*z[2] + 31.0*z[3] + 0.0*v[0,0] + 10.0*x[0,0] + 0.0*v[0,1] + 6.0*x[0,1] + 9.0*n[0]"
        " + 0.0*z[0] + z[1] + 0.0*z[2] + z[3] + 5.0*n[0]"
    )


def test_cost_binds() -> None:
    assert best(two_workloads()) == OPTIMUM == enumerated(two_workloads())


def test_one_option_reads_as_written() -> None:
    assert str(build(two_workloads(), (add_one_option,)).one_option[1].expr) == "z[2] + z[3]  ==  1"


def test_one_option_binds() -> None:
    assert best(two_workloads(), without(add_one_option)) == 0


def test_products_used_reads_as_written() -> None:
    m = build(two_workloads(), (add_products_used,))
    assert str(m.products_used[0, 1].expr) == "z[1]  <=  y[1]"
    assert len(m.products_used) == 4


def test_products_used_binds() -> None:
    barred = two_workloads(usd=np.array([1.0, 99.0, 99.0, 4.0]), budget=None)
    assert best(barred, without(add_products_used)) < best(barred) == enumerated(barred)


def test_joining_the_core_uses_its_product() -> None:
    joins = two_workloads(quantity=np.array([[2.0, 0], [2.0, 0], [3.0, 0], [3.0, 0]]))
    assert build(joins, ()).users_of[0, 1] == [1]


def test_distinct_products_reads_as_written() -> None:
    m = build(two_workloads(), (add_distinct_products,))
    assert str(m.distinct_products["hb"].expr) == "y[0] + y[1]  <=  1"


def test_distinct_products_binds() -> None:
    barred = two_workloads(usd=np.array([1.0, 99.0, 99.0, 4.0]), budget=None)
    assert best(barred, without(add_distinct_products)) < best(barred)


def test_limits_reads_as_written() -> None:
    m = build(two_workloads(), (add_limits,))
    assert str(m.limited["gpus"].expr) == "4.0*z[0] + 3.0*z[1] + 6.0*z[2] + 5.0*z[3] + n[0]  <=  20.0"


def test_limits_binds() -> None:
    few = replace(two_workloads(), limits=(replace(two_workloads().limits[0], cap=9.0, core=(0.0,)),))
    assert best(few, without(add_limits)) < best(few) == enumerated(few) < math.inf


def test_budget_reads_as_written() -> None:
    m = build(two_workloads(), (add_budget,))
    assert str(m.within_budget.expr) == (
        "z[0] + 20.0*z[1] + 3.0*z[2] + 31.0*z[3] + 0.0*v[0,0] + 10.0*x[0,0] + 0.0*v[0,1] + 6.0*x[0,1] + 9.0*n[0]"
        "  <=  100.0"
    )


def test_budget_binds() -> None:
    assert best(two_workloads(budget=OPTIMUM - 1.0)) == math.inf > best(two_workloads(budget=float(OPTIMUM)))


def test_core_ports_reads_as_written() -> None:
    m = build(two_workloads(), (add_core_ports,))
    assert str(m.core_ports[0].expr) == "3.0*z[1] + 2.0*z[3]  <=  4*n[0]"


def test_core_ports_binds() -> None:
    joins = apart(usd=np.array([99.0, 2.0, 99.0, 4.0]))
    assert best(joins) - best(joins, without(add_core_ports)) == 2 * (9 + 5)


def test_two_brackets_are_no_cheaper_than_one() -> None:
    first = replace(two_workloads().products[0], discount="incremental")
    steps = apart(products=(first, two_workloads().products[1]))
    assert best(steps) == enumerated(steps) == 1 + 3 + 4 * 10 + 6


def test_bracket_range_reads_as_written() -> None:
    m = build(two_workloads(), (add_bracket_range,))
    assert [str(m.bracket_from[0, b].expr) for b in (0, 1)] == ["0.0*v[0,0]  <=  x[0,0]", "4.0*v[0,1]  <=  x[0,1]"]
    assert [str(m.bracket_to[0, b].expr) for b in (0, 1)] == ["x[0,0]  <=  4.0*v[0,0]", "x[0,1]  <=  5.0*v[0,1]"]


def test_a_bracket_nobody_fills_ends_at_its_threshold() -> None:
    first = replace(two_workloads().products[0], start=np.array([0.0, 7.0]))
    assert build(apart(products=(first, two_workloads().products[1])), ()).ends_of[0].tolist() == [5, 7]


def test_bracket_range_binds() -> None:
    few = apart(quantity=two_workloads().quantity / 4)
    assert best(few, without(add_bracket_range)) < best(few)


def test_purchases_reads_as_written() -> None:
    m = build(two_workloads(), (add_purchases,))
    assert str(m.purchases[0].expr) == "2.0*z[0] + 3.0*z[2]  <=  x[0,0] + x[0,1]"


def test_purchases_binds() -> None:
    assert best(two_workloads(), without(add_purchases)) == 1 + 3


def test_shares_reads_as_written() -> None:
    m = build(two_workloads(), (add_shares,))
    assert str(m.held_by[1, 0].expr) == "3.0*z[2]  <=  share[1,0,0] + share[1,0,1]"
    assert str(m.share_of_bracket[1, 0, 1].expr) == "share[1,0,1]  <=  3.0*v[0,1]"
    assert str(m.shares[0, 1].expr) == "share[0,0,1] + share[1,0,1]  <=  x[0,1]"


def test_shares_binds() -> None:
    assert best(two_workloads(), without(add_shares, SHARES)) == 1 + 3


def test_the_core_holds_a_share_of_its_product() -> None:
    second = replace(two_workloads().products[0], name="c")
    m = build(apart(products=(two_workloads().products[0], second)), (add_shares,))
    assert str(m.held_by[2, 1].expr) == "n[0]  <=  share[2,1,0] + share[2,1,1]"


def growing(**changes: object) -> PartitionData:
    """One workload with two options over two phases, on a product that gets cheaper and a core that grows."""
    first = Product(name="a", start=np.array([0.0, 4.0]), usd=np.array([10.0, 6.0]))
    later = replace(first, usd=first.usd / 2, predecessor=0)
    data = PartitionData(
        workloads=1,
        workload=np.array([0, 0]),
        usd=np.array([1.0, 2.0]),
        opex=np.array([0.0, 0.0]),
        quantity=np.array([[3.0, 2.0], [2.0, 2.0]]),
        products=(first, later),
        cores=(
            CoreLayer(product=0, ports=2, up=np.array([2.0, 4.0])),
            CoreLayer(product=1, ports=2, up=np.array([4.0, 4.0]), predecessor=0),
        ),
    )
    return replace(data, **changes)


def test_purchases_of_a_phase_may_wait() -> None:
    m = build(growing(), (add_purchases,))
    assert str(m.purchases[1].expr) == (
        "2.0*z[0] + 2.0*z[1] + n[1] - n[0] + 3.0*z[0] + 2.0*z[1] + n[0]  <=  x[1,0] + x[1,1] + x[0,0] + x[0,1]"
    )
    assert best(growing()) == enumerated(growing())


def test_core_growth_reads_as_written() -> None:
    assert str(build(growing(), (add_core_growth,)).core_growth[1].expr) == "n[0]  <=  n[1]"


def test_core_growth_binds() -> None:
    shrinks = growing(cores=(growing().cores[0], replace(growing().cores[1], up=np.array([0.0, 0.0]))))
    assert best(shrinks, without(add_core_growth)) < best(shrinks)


def test_least_regret_reads_as_written() -> None:
    dear = PriceOutlook(
        usd=np.array([1.0, 2.0]),
        opex=np.array([0.0, 1.0]),
        prices=(np.array([20.0, 12.0]), np.array([10.0, 6.0])),
        core=(1.0, 2.0),
        min_value=7.0,
    )
    m = build(growing(outlooks=(dear,)), (add_least_regret,))
    assert str(m.cost.expr) == "regret"
    assert str(m.regrets[0].expr) == (
        "z[0] + 2.0*z[1] + 0.0*v[0,0] + 20.0*x[0,0] + 0.0*v[0,1] + 12.0*x[0,1] + 0.0*v[1,0] + 10.0*x[1,0] + "
        "0.0*v[1,1] + 6.0*x[1,1] + 0.0*z[0] + z[1] + n[0] + 2.0*n[1] - 7.0  <=  regret"
    )


def test_least_regret_binds() -> None:
    outlook = PriceOutlook(
        usd=np.zeros(2), opex=np.array([5.0, 0.0]), prices=(np.zeros(2), np.zeros(2)), core=(0.0, 0.0), min_value=1.0
    )
    data = growing(outlooks=(outlook,))
    assert best(data, REGRET) == enumerated(data) == 0.0
    assert best(replace(data, outlooks=(replace(outlook, opex=np.array([5.0, 4.0])),)), REGRET) == 3.0


def test_choice_cut_reads_as_written_and_binds() -> None:
    m = build(two_workloads(), TOTALS)
    add_choice_cut(m, [0, 2])
    assert str(m.cuts[1].expr) == "z[0] + z[2]  <=  1"
    assert (solve(m, time_limit_s=60, settings=options(gap=0.0, threads=1)).value or 0) > OPTIMUM


def test_cut_list_starts_empty() -> None:
    assert len(build(two_workloads(), (add_cut_list,)).cuts) == 0


def test_every_equation_is_in_a_formulation_and_tested_here() -> None:
    found = {f for module in (partition, partition_prices) for n, f in inspect.getmembers(module) if n[:4] == "add_"}
    assert found == {*TOTALS, *SHARES, *REGRET, add_choice_cut}
    tests = " ".join(name for name in globals() if name.startswith("test_"))
    assert all(equation.__name__.removeprefix("add_") in tests for equation in found)


def test_variables_say_their_unit() -> None:
    units = {v.name: v.doc for v in build(two_workloads(), SHARES).component_objects(pyo.Var)}
    assert units.pop("share") == units.pop("x") == "[units]"
    assert units.pop("n") == "[switches]"
    assert set(units) == {"z", "y", "v"}
