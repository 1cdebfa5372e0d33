"""The program behind a plan as a file for other solvers."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import highspy
import numpy as np
import pyomo.core as pyo

from coopt.columns.table import columns
from coopt.instance.schema import Instance, require_billed, require_no_failures
from coopt.instance.texts import InstanceError, alternatives, counted
from coopt.instance.variants import with_tp
from coopt.network.family import Family
from coopt.network.space import families
from coopt.plan.schema import Plan
from coopt.plan.store import check_same_question, placed_as
from coopt.solving.answer import method_of
from coopt.solving.arrays import SharedProblem, assemble, viable
from coopt.solving.driver import drive
from coopt.solving.highs import QuietHighs, linear_program
from coopt.solving.runs import NamedPrograms, Program, Run, backend_of
from coopt.solving.shared import subproblem
from formulations.network import NETWORK, build

UNITS = {"capex": "USD", "power": "W", "tco": "USD"}
NOTHING = (
    "{}: no network serves every workload, so there is no mixed-integer program to write, needs"
    " an instance that has a plan (`coopt explain` lists changes that allow one)"
)
NO_LINKS = (
    "{}: no mapping goes on direct links within the bounds and limits, and where direct links are"
    " allowed no program has networks of switches, needs network.fabrics without 'direct'"
)
SECTIONS = {
    "min": "minimize",
    "st": "subject to",
    "bounds": "bounds",
    "bin": "binary",
    "gen": "general",
    "semi": "semi-continuous",
    "end": "end",
}
"""Sections of an LP file as HiGHS calls them, in words that all readers know."""
OPTIONAL = {"bounds", "binary", "general", "semi-continuous"}
CONSTANT = "constant_of_the_objective"
LONGEST = 200  # characters of a comment; readers have limits

UNHURRIED_S = (
    1e9  # for what comes before a program; a number, since an answer that there is none states it
)


def model_lp(instance: Instance, plan: Plan, program: int | None = None) -> str:
    r"""The program in LP format, with lines of comment that begin with `\`; see `_program_file`."""
    return _program_file(instance, plan, "lp", "\\ ", program)


def model_mps(instance: Instance, plan: Plan, program: int | None = None) -> str:
    """The program in MPS format, with lines of comment that begin with `*`; see `_program_file`."""
    return _program_file(instance, plan, "mps", "* ", program)


def formulations_of(instance: Instance) -> tuple[str, ...]:
    """The names of the formulations of an instance."""
    return method_of(instance).formulations(instance)


def programs_of(instance: Instance) -> NamedPrograms:
    """What an instance is made into, however long that takes; all formulations have the same list
    of what may be.

    TP groups lie inside HB domains where the instance leaves that open: so it is asked first.
    """
    unhurried = instance.solver.model_copy(update={"time_limit_s": UNHURRIED_S})
    instance = with_tp(instance, across=False).model_copy(update={"solver": unhurried})
    run = Run(instance=instance, backend=backend_of(instance.solver), on_progress=None)
    return method_of(instance).programs(run)


def _program_file(
    instance: Instance, plan: Plan, ending: str, mark: str, program: int | None
) -> str:
    """The program that the formulation of a plan makes of its instance, in units of the objective.

    The optimum of one network is the value of a proven plan: cuts that recomputation took are
    searched again and are part of it. Other questions are written as their search begins.

    Parameters
    ----------
    program
        From 1, which one of several where the answer is the best of them, such as those of the
        rings of sites.

    Raises
    ------
    InstanceError
        When the plan is of another instance, nothing serves every workload, so that there is no
        program, or there are several and none is named.
    """
    # days are counted before the search, and only islands are a table of options
    if not instance.beyond_one_network:
        require_no_failures(instance, "a file of the mixed-integer program")
    require_billed(instance, "a file of the mixed-integer program")
    check_same_question(instance, plan)
    question, plan = placed_as(instance, plan)
    objective = question.objective.model_copy(update={"minimize": plan.objective.kind})
    question = question.model_copy(update={"objective": objective})
    names = formulations_of(question)
    name = names[0] if len(names) == 1 else plan.solver.formulation
    if name not in names:
        raise InstanceError(
            f"{instance.place}: the plan was solved by formulation {name!r}, which this instance"
            f" does not have, needs {alternatives(names)}"
        )
    if not question.beyond_one_network:
        problem, model = _model(question, plan)
        lines, programs = (
            list(_about_network(question, problem)),
            [Program(model=model, unit=problem.scale)],
        )
    else:
        lines, programs = [], list(programs_of(question)(name))
    if not programs:
        with_switches = question.asks("direct") and plan.parts
        raise InstanceError((NO_LINKS if with_switches else NOTHING).format(instance.place))
    place = _place(instance, len(programs), program)
    text = "".join(
        f"{mark}{line[:LONGEST]}\n"
        for line in [*_about(question, plan, place, len(programs)), *lines]
    )
    return text + _text(programs[place], ending)


def _place(instance: Instance, count: int, program: int | None) -> int:
    """The position of the program that is meant."""
    if program is None and count == 1:
        return 0
    if program is None or not 1 <= program <= count:
        option = "" if program is None else f" = {program}"
        raise InstanceError(
            f"{instance.place}: --program{option}: the search begins with"
            f" {counted(count, 'program')}, needs a number from 1 to {count}"
        )
    return program - 1


def _model(instance: Instance, plan: Plan) -> tuple[SharedProblem, pyo.ConcreteModel]:
    candidates = tuple(families(instance))
    table = columns(instance, candidates, lambda _: None, lambda: None)
    serving = viable(instance, candidates, table)
    if not serving:
        raise InstanceError(NOTHING.format(instance.place))
    problem = assemble(instance, serving, table)
    if not plan.solver.cuts:
        return problem, build(problem.data, NETWORK)
    backend = backend_of(instance.solver)
    network, models = subproblem(instance, problem, table), list[pyo.ConcreteModel]()

    def build_once() -> tuple[pyo.ConcreteModel, float]:
        model, unit = network.build()
        models.append(model)
        return model, unit

    deadline = time.perf_counter() + instance.solver.time_limit_s
    once = replace(network, build=build_once, closer=None)
    drive([once], backend, gap=instance.solver.gap, deadline=deadline)
    return problem, models[0]  # the search added its cuts to it


def _about(instance: Instance, plan: Plan, place: int, count: int) -> Iterator[str]:
    """What the file holds."""
    kind = plan.objective.kind
    yield f"{instance.name} ({instance.sha256}), formulation {plan.solver.formulation!r}"
    value = "" if plan.objective.value is None else f" with value {plan.objective.value}"
    yield f"minimizes {kind} in {UNITS[kind]}; the plan is {plan.status}{value}"
    if count > 1:
        beside = " and of networks of switches" if instance.asks("direct") else ""
        yield f"program {place + 1} of {count}; the answer is the best of their solutions{beside}"
    if instance.beyond_one_network:
        yield (
            "the program at the start of the search, which may add cuts; variables have the"
            " names of docs/mathematics.md"
        )
    if instance.asks("direct"):
        none = "networks of switches are in none of these programs"
        yield f"covers direct links for one mapping; {none}"


def _about_network(instance: Instance, problem: SharedProblem) -> Iterator[str]:
    """What the variables of one network stand for."""
    d = problem.data
    yield (
        "y_f: whether family f is built, u_f: uplinks of a leaf, s_f: spines of a plane, z_c:"
        " whether mapping c of a workload is used; families of one context have the same domains"
        " and NICs"
    )
    for f, family in enumerate(problem.families):
        yield (
            f"y_{f}: {_network(family)}, context {d.context[f]}; uplinks"
            f" {' to '.join(dict.fromkeys(str(family.uplink_choices[n]) for n in (0, -1)))}"
        )
    for c, column in enumerate(problem.columns):
        name = instance.workload[column.workload].name
        yield (
            f"z_{c}: workload {name!r} on families of context {d.column_context[c]}, with at"
            f" least {counted(column.uplinks, 'uplink')}"
        )


def _network(family: Family) -> str:
    parts = [f"{family.domains} x {family.hb.name} ({family.active} active)"]
    if family.tiers:
        names = dict.fromkeys(switch.name for switch in family.switches)
        parts += [
            f"{family.tiers}-tier {family.fabric} of {' below '.join(names)}",
            f"{family.bought_per_gpu} x {family.nic.name}",
        ]
    return ", ".join(parts)


def _text(program: Program, ending: str) -> str:
    """The model as HiGHS writes it, with names as in `formulations/` and costs in the objective's
    unit.
    """
    lp, variables = linear_program(program.model)
    lp.model_name_ = "coopt"
    lp.col_cost_ = np.asarray(lp.col_cost_) * program.unit
    constant = lp.offset_ * program.unit + program.base
    lp.offset_ = 0.0
    lp.col_names_ = [_plain_name(variable.name) for variable in variables]
    lp.row_names_ = [
        _plain_name(row.name)
        for row in program.model.component_data_objects(pyo.Constraint, active=True)
    ]
    h = QuietHighs()
    assert h.passModel(lp) != highspy.HighsStatus.kError
    if constant:
        # readers leave a constant out or turn its sign; each reads a variable that is 1
        h.addCol(constant, 1.0, 1.0, 0, np.array([], dtype=np.int32), np.array([]))
        h.passColName(len(variables), CONSTANT)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"model.{ending}"
        assert h.writeModel(str(file)) != highspy.HighsStatus.kError, f"HiGHS wrote no {ending}"
        text = file.read_text("utf-8")
    return text if ending == "mps" else _in_common_words(text, lp.col_names_[0])


def _in_common_words(text: str, first_variable: str) -> str:
    """A file in LP format with sections that all readers know, and no empty ones, nor an empty
    objective.
    """
    text = text.replace("\n obj: \n", f"\n obj: +0 {first_variable}\n", 1)
    sections: list[list[str]] = []
    for line in text.splitlines():
        if line in SECTIONS:
            sections.append([SECTIONS[line]])
        elif sections:
            sections[-1].append(line)
        else:
            sections.append([line])
    kept = (lines for lines in sections if len(lines) > 1 or lines[0] not in OPTIONAL)
    return "\n".join(line for lines in kept for line in lines) + "\n"


def _plain_name(name: str) -> str:
    """`mapping[0,3]` as `mapping_0_3`: brackets and commas mean something else in these files."""
    return re.sub(r"\W+", "_", name).strip("_")
