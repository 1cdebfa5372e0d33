"""Every equation of every program reads as written and binds, and optima are those of enumeration, never below what is
left with fractions."""

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.partition_naive import NAIVE
from formulations import choice, links, network, ring, routing
from tests.conftest import example_count
from tests.formulations import links as link_numbers
from tests.formulations import (
    partitions,
    read,
    small,
    test_direct,
    test_partition,
    test_routing,
    test_shared,
    test_sites,
)


class Program(NamedTuple):
    """A program: how its equations read, with data, and bind; random numbers, its formulations and the enumeration."""

    module: Any
    reads: list[tuple[Any, Any, dict[str, str]]]
    binds: list[tuple[Any, Any]]
    numbers: st.SearchStrategy[Any]
    enumerated: Callable[[Any], float | None]
    formulations: dict[str, tuple[Any, ...]]
    campaign: int
    unbound: tuple[Any, ...] = ()
    """Equations that say what is sought, or bind fractions alone."""
    units: tuple[tuple[str, str], ...] = ()
    data_of: Callable[[Any], Any] = lambda numbers: numbers


DRAWN_LINKS = st.integers(0, 239).map(test_direct.random_problem).filter(lambda problem: len(problem["ports"]) < 5)
PROGRAMS = {
    "network": Program(
        network,
        [(equation, *case) for equation, case in test_shared.READS.items()],
        [(equation, data) for equation, (data, *_) in test_shared.BINDS.items()],
        small.problems(),
        small.enumerated,
        network.FORMULATIONS,
        250,
        (network.add_cost, network.add_least_spines),
    ),
    "choice": Program(
        choice,
        test_partition.READS,
        test_partition.BINDS,
        partitions.problems(),
        partitions.enumerated,
        choice.FORMULATIONS | {"naive": NAIVE},
        60,
        (choice.add_cost, choice.add_shares, choice.add_least_regret),
        (("x", "[units]"), ("n", "[switches]")),
    ),
    "ring": Program(
        ring,
        [(equation, test_sites.two_sites(), rows) for equation, rows in test_sites.READS.items()]
        + [(equation, test_sites.bordered(), rows) for equation, rows in test_sites.READS_WITH_BORDERS.items()],
        [*test_sites.BINDS.items()],
        test_sites.problems(),
        test_sites.enumerated,
        {"ring": ring.RING},
        200,
        (ring.add_cost,),
    ),
    "routing": Program(
        routing,
        [(equation, *case) for equation, case in test_routing.READS.items()],
        test_routing.BINDS,
        test_routing.problems(),
        test_routing.enumerated,
        {"routes": routing.ROUTES},
        40,
        (routing.add_worst_load,),
        (("x", "[flows]"), ("worst", "[1/U]")),
    ),
    "links": Program(
        links,
        [(equation, test_direct.three(), rows) for equation, rows in test_direct.READS.items()],
        [],
        DRAWN_LINKS,
        link_numbers.enumerated,
        {"links": links.LINKS, "averages": links.AVERAGES},
        25,
        data_of=link_numbers.without_symmetry,
    ),
}
READS = [(name, *case) for name, program in PROGRAMS.items() for case in program.reads]
BINDS = [(name, *case) for name, program in PROGRAMS.items() for case in program.binds]


@pytest.mark.parametrize(("name", "equation", "data", "rows"), READS, ids=lambda one: getattr(one, "__name__", None))
def test_an_equation_reads_as_written(name: str, equation: Any, data: Any, rows: dict[str, str]) -> None:
    model = PROGRAMS[name].module.build(data, (equation,))
    assert read.texts(model, *rows) == rows
    if name == "routing":  # nothing else
        assert len(list(model.component_data_objects(pyo.Constraint))) == len(rows) - (
            equation is routing.add_worst_load
        )


@pytest.mark.parametrize(("name", "equation", "data"), BINDS, ids=lambda one: getattr(one, "__name__", None))
def test_an_equation_binds(name: str, equation: Any, data: Any) -> None:
    build, formulation = PROGRAMS[name].module.build, next(iter(PROGRAMS[name].formulations.values()))
    least, left = (read.optimum(build(data, some)) for some in (formulation, read.without(formulation, equation)))
    assert left < least
    if name == "network":
        assert (least, left) == test_shared.BINDS[equation][1:]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_equation_is_told_and_tried_and_variables_say_their_unit(name: str) -> None:
    """Cuts are added to a list that is empty first, and tried apart."""
    program = PROGRAMS[name]
    equations = {function for key, function in inspect.getmembers(program.module) if key.startswith("add_")}
    cuts = {one for one in equations if "cut" in one.__name__ or one.__name__ == "add_tangent"}
    assert all(inspect.getdoc(equation) for equation in equations)
    assert {equation for equation, *_ in program.reads} == equations - cuts
    assert not program.binds or {equation for equation, _ in program.binds} == equations - cuts - {*program.unbound}
    every = [one for one in vars(program.module).values() if isinstance(one, tuple) and equations.issuperset(one)]
    assert equations - cuts <= {one for formulation in every for one in formulation}
    units = {
        one.name: one.doc
        for one in program.module.build(program.reads[0][1], max(every, key=len)).component_objects(pyo.Var)
    }
    assert [(key, units[key]) for key, _ in program.units] == [*program.units]


@pytest.mark.parametrize("name", PROGRAMS)
def test_optima_agree_with_enumeration_and_fractions_are_never_above(name: str) -> None:
    program = PROGRAMS[name]

    @settings(max_examples=example_count(program.campaign))
    @given(program.numbers)
    def compare(numbers: Any) -> None:
        found, data = program.enumerated(numbers), program.data_of(numbers)
        best = math.inf if found is None else found
        for key, formulation in program.formulations.items():
            if name != "links":  # which tangents are added to until all phases are in time
                value = read.optimum(program.module.build(data, formulation))
                assert value == pytest.approx(best, abs=1e-5), key
            assert read.relaxed(program.module.build(data, formulation)) <= best + 1e-6 * max(1.0, abs(best)), key

    compare()
