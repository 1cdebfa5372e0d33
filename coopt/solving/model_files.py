"""The mixed-integer program behind a plan, as a file that other solvers read."""

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
from coopt.instance.errors import InstanceError
from coopt.instance.kinds import require_billed, require_no_failures
from coopt.instance.listings import alternatives
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.space import families
from coopt.plan.schema import Plan
from coopt.plan.store import check_same_question
from coopt.solving.arrays import SharedProblem, assemble, viable
from coopt.solving.backend import backend_of
from coopt.solving.driver import drive
from coopt.solving.highs import QuietHighs, linear_program
from coopt.solving.loop import subproblem
from coopt.solving.programs import Program, formulations_of, programs_of
from formulations.shared import UPLINKS, build

UNITS = {"capex": "USD", "power": "W", "tco": "USD"}
NOTHING = "{}: nothing serves every workload, so that there is no program to write, needs bounds that can be met"
LONGEST = 200  # characters of a comment; readers have limits


def model_lp(instance: Instance, plan: Plan, program: int | None = None) -> str:
    r"""The program in LP format, with lines of comment that begin with `\`; see `_written`."""
    return _written(instance, plan, "lp", "\\ ", program)


def model_mps(instance: Instance, plan: Plan, program: int | None = None) -> str:
    """The program in MPS format, with lines of comment that begin with `*`; see `_written`."""
    return _written(instance, plan, "mps", "* ", program)


def _written(instance: Instance, plan: Plan, ending: str, mark: str, program: int | None) -> str:
    """The program that the formulation of a plan makes of its instance, in units of the objective.

    The optimum of one network is the value of a proven plan: cuts that recomputation took are searched again and are
    part of it. Other questions are written as their search begins.

    Parameters
    ----------
    program
        From 1, which one of several where the answer is the best of them, such as those of the rings of sites.

    Raises
    ------
    InstanceError
        When the plan is of another instance, nothing serves every workload, so that there is no program, or there are
        several and none is named.
    """
    if instance.problem == "shared":  # days are counted before the search, and only islands are a table of options
        require_no_failures(instance, "a file of the mixed-integer program")
    require_billed(instance, "a file of the mixed-integer program")
    check_same_question(instance, plan)
    asked = _as_solved(instance, plan)
    if plan.solver.formulation not in formulations_of(asked):
        raise InstanceError(
            f"{instance.name}: the plan's formulation {plan.solver.formulation!r} has no such file, "
            f"needs {alternatives(formulations_of(asked))}"
        )
    if asked.problem == "shared":
        problem, model = _model(asked, plan)
        lines, found = list(_about_network(asked, problem)), [Program(model=model, unit=problem.scale)]
    else:
        lines, found = [], list(programs_of(asked)(plan.solver.formulation))
    if not found:
        raise InstanceError(NOTHING.format(instance.name))
    place = _place(instance, len(found), program)
    text = "".join(f"{mark}{line[:LONGEST]}\n" for line in [*_about(asked, plan, place, len(found)), *lines])
    return text + _text(found[place], ending)


def _place(instance: Instance, count: int, program: int | None) -> int:
    """The position of the program that is meant."""
    if program is None and count == 1:
        return 0
    if program is None or not 1 <= program <= count:
        given = "" if program is None else f" = {program}"
        raise InstanceError(
            f"{instance.name}: --program{given}: the answer is the best of {count} "
            f"program{'s' if count > 1 else ''}, needs a number from 1 to {count}"
        )
    return program - 1


def _as_solved(instance: Instance, plan: Plan) -> Instance:
    """The instance with the objective and the formulation of the run that made the plan."""
    objective = instance.objective.model_copy(update={"minimize": plan.objective.kind})
    solver = instance.solver.model_copy(update={"formulation": plan.solver.formulation})
    return instance.model_copy(update={"objective": objective, "solver": solver})


def _model(instance: Instance, plan: Plan) -> tuple[SharedProblem, pyo.ConcreteModel]:
    every = tuple(families(instance))
    table = columns(instance, every, lambda _: None, lambda: None)
    serving = viable(instance, every, table)
    if not serving:
        raise InstanceError(NOTHING.format(instance.name))
    problem = assemble(instance, serving, table)
    if not plan.solver.cuts:
        return problem, build(problem.data, UPLINKS)
    backend = backend_of(instance.solver)
    network, built = subproblem(instance, problem, table), list[pyo.ConcreteModel]()

    def build_once() -> tuple[pyo.ConcreteModel, float]:
        model, unit = network.build()
        built.append(model)
        return model, unit

    deadline = time.perf_counter() + instance.solver.time_limit_s
    drive([replace(network, build=build_once)], backend, gap=instance.solver.gap, deadline=deadline)
    return problem, built[0]


def _about(instance: Instance, plan: Plan, place: int, count: int) -> Iterator[str]:
    """What the file holds."""
    kind = plan.objective.kind
    yield f"{instance.name} ({instance.sha256}), formulation {plan.solver.formulation!r}"
    yield f"minimizes {kind} in {UNITS[kind]}; the plan: {plan.status}, value {plan.objective.value}"
    if count > 1:
        yield f"program {place + 1} of {count}; the answer is the best of them"
    if instance.problem != "shared":
        yield "as the search begins, which may add cuts; variables have the names of the mathematics"
    if instance.problem == "direct":
        yield "direct links by one mapping; networks of switches are another problem"


def _about_network(instance: Instance, problem: SharedProblem) -> Iterator[str]:
    """What the variables of one network stand for."""
    d = problem.data
    yield "y_f builds family f, u_f: uplinks of a leaf, s_f: spines of a plane, z_c uses column c"
    for f, family in enumerate(problem.families):
        yield f"y_{f}: {_network(family)}; {family.uplink_choices[0]} to {family.uplink_choices[-1]} uplinks"
    for c, column in enumerate(problem.columns):
        name = instance.workload[column.workload].name
        yield f"z_{c}: {name!r} on families of context {d.column_context[c]}, from {column.uplinks} uplinks"


def _network(family: Family) -> str:
    parts = [f"{family.domains} x {family.hb.name} ({family.active} active)"]
    if family.tiers:
        names = dict.fromkeys(switch.name for switch in family.switches)
        parts += [
            f"{family.tiers}-tier {family.fabric} of {' below '.join(names)}",
            f"{family.nics_per_gpu} x {family.nic.name}",
        ]
    return ", ".join(parts)


def _text(program: Program, ending: str) -> str:
    """The model as HiGHS writes it, with names as in `formulations/` and costs in the objective's unit."""
    lp, variables = linear_program(program.model)
    lp.model_name_ = "coopt"
    lp.col_cost_ = np.asarray(lp.col_cost_) * program.unit
    lp.offset_ = lp.offset_ * program.unit + program.base
    lp.col_names_ = [_plain(variable.name) for variable in variables]
    lp.row_names_ = [_plain(row.name) for row in program.model.component_data_objects(pyo.Constraint, active=True)]
    h = QuietHighs()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"model.{ending}"
        for status in (h.passModel(lp), h.writeModel(str(file))):
            assert status != highspy.HighsStatus.kError, f"HiGHS wrote no {ending}"
        return file.read_text("utf-8").replace("\nsemi\nend", "\nend")  # an empty section that not all readers know


def _plain(name: str) -> str:
    """`mapping[0,3]` as `mapping_0_3`: brackets and commas mean something else in these files."""
    return re.sub(r"\W+", "_", name).strip("_")
