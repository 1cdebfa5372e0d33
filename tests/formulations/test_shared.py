"""Every equation reads as written, binds, and agrees with enumeration."""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings

from coopt.solving.highs import options, solve
from formulations import shared
from formulations.shared import (
    FORMULATIONS,
    FRONT,
    UPLINKS,
    Resource,
    SharedData,
    add_cost,
    add_cut_list,
    add_least_spines,
    add_limit_cut,
    add_limits,
    add_mapping,
    add_one_family,
    add_spine_ports,
    add_uplink_cut,
    add_uplink_range,
    add_uplinks_demanded,
    build,
)
from tests.conftest import example_count
from tests.formulations.small import best, enumerated, model, problems, two_families

POWER = Resource(name="power", fixed=np.array([1.0, 9.0]), uplink=np.array([1.0, 0.0]), spine=np.zeros(2), cap=7.0)


def without(formulation: tuple[shared.Equation, ...], equation: shared.Equation) -> tuple[shared.Equation, ...]:
    assert equation in formulation
    return tuple(add for add in formulation if add is not equation)


def fractional(data: SharedData, formulation: tuple[shared.Equation, ...]) -> float:
    """The optimum with fractions in place of whole numbers."""
    m = build(data, formulation)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(m)
    answer = solve(m, time_limit_s=10, settings=options(gap=0.0, threads=1))
    assert answer.value is not None
    return answer.value


def test_cost_reads_as_written() -> None:
    m = model(two_families(), add_cost)
    assert str(m.cost.expr) == "10.0*y[0] + 2.0*u[0] + s[0] + 30.0*y[1] + 0.0*u[1] + 0.0*s[1]"


def test_cost_binds() -> None:
    assert best(two_families(), UPLINKS) == 10 + 2 * 5 + 2


def test_one_family_reads_as_written() -> None:
    assert str(model(two_families(), add_one_family).one_family.expr) == "y[0] + y[1]  ==  1"


def test_one_family_binds() -> None:
    assert best(two_families(), without(UPLINKS, add_one_family)) == 0


def test_uplink_range_reads_as_written() -> None:
    m = model(two_families(), add_uplink_range)
    assert str(m.least_uplinks[0].expr) == "2*y[0]  <=  u[0]"
    assert str(m.most_uplinks[0].expr) == "u[0]  <=  8*y[0]"


def test_uplink_range_binds() -> None:
    data = two_families(need=np.array([1, 0]), min_uplinks=np.array([6, 0]))
    assert best(data, UPLINKS) == 10 + 2 * 6 + 2
    assert best(data, without(UPLINKS, add_uplink_range)) == 10 + 2 * 1 + 1


def test_spine_ports_reads_as_written() -> None:
    m = model(two_families(), add_spine_ports)
    assert str(m.spine_ports[0].expr) == "4*u[0]  <=  16*s[0]"
    assert str(m.spine_ports[1].expr) == "s[1]  ==  0"


def test_spine_ports_binds() -> None:
    assert best(two_families(), without(UPLINKS, add_spine_ports)) == best(two_families(), UPLINKS) - 2


def test_least_spines_reads_as_written() -> None:
    m = model(two_families(min_uplinks=np.array([5, 0])), add_least_spines)
    assert {f: str(row.expr) for f, row in m.least_spines.items()} == {0: "2*y[0]  <=  s[0]"}


def test_least_spines_binds_where_fractions_are_allowed() -> None:
    data = two_families(min_uplinks=np.array([5, 0]))
    assert fractional(data, FRONT) == 10 + 2 * 5 + 2
    assert fractional(data, without(FRONT, add_least_spines)) == 10 + 2 * 5 + 20 / 16


def test_mapping_reads_as_written() -> None:
    assert str(model(two_families(), add_mapping).mapping[0, 1].expr) == "z[1]  ==  y[1]"


def test_mapping_binds() -> None:
    assert best(two_families(), without(UPLINKS, add_mapping)) == 10 + 2 * 2 + 1


def test_uplinks_demanded_reads_as_written() -> None:
    assert str(model(two_families(), add_uplinks_demanded).uplinks_demanded[0, 0].expr) == "5*z[0]  <=  u[0]"


def test_uplinks_demanded_binds() -> None:
    assert best(two_families(), without(UPLINKS, add_uplinks_demanded)) == 10 + 2 * 2 + 1


def test_limits_reads_as_written() -> None:
    m = model(two_families(resources=(POWER,)), add_limits)
    assert str(m.limits["power"].expr) == "y[0] + u[0] + 0.0*s[0] + 9.0*y[1] + 0.0*u[1] + 0.0*s[1]  <=  7.0"


def test_limits_bind() -> None:
    assert best(two_families(resources=(POWER,)), UPLINKS) == 22
    tight = replace(POWER, cap=5.0)
    assert best(two_families(resources=(tight,)), UPLINKS) == math.inf
    assert best(two_families(resources=(replace(POWER, cap=5.0, fixed=np.array([1.0, 5.0])),)), UPLINKS) == 30


@pytest.mark.parametrize("formulation", FORMULATIONS.values(), ids=FORMULATIONS)
def test_cuts_read_as_written_and_bind(formulation: tuple[shared.Equation, ...]) -> None:
    m = build(two_families(), formulation)
    add_uplink_cut(m, 0, 7)
    add_limit_cut(m, 0, 6)
    assert [str(row.expr) for row in m.cuts.values()] == ["7*z[0]  <=  u[0]", "u[0]  <=  6*y[0]"]
    assert solve(m, time_limit_s=10, settings=options(gap=0.0, threads=1)).value == 30


@settings(max_examples=example_count(250))
@given(problems())
def test_all_formulations_agree_with_enumeration(data: shared.SharedData) -> None:
    expected = enumerated(data)
    for name, formulation in FORMULATIONS.items():
        assert best(data, formulation) == pytest.approx(expected, abs=1e-6), name


def test_every_equation_is_tested() -> None:
    equations = {name for name in vars(shared) if name.startswith("add_")}
    text = "".join(file.read_text("utf-8") for file in Path(__file__).parent.glob("test_shared*.py"))
    stems = {name.removeprefix("add_") for name in equations} - {"cut_list", "uplink_cut", "limit_cut"}
    missing = [s for s in stems if not all(re.search(rf"def test_{s}_{end}", text) for end in ("reads?_as", "bind"))]
    assert not missing
    assert add_cut_list in UPLINKS
    assert all(inspect.getdoc(getattr(shared, name)) for name in equations)
