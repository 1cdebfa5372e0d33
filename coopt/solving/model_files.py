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
from coopt.instance.kinds import require_one_network
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.space import families
from coopt.plan.schema import Plan
from coopt.plan.store import check_same_question
from coopt.solving.arrays import SharedProblem, assemble, viable
from coopt.solving.backend import backend_of
from coopt.solving.driver import drive
from coopt.solving.highs import linear_program
from coopt.solving.loop import subproblem
from formulations.shared import FORMULATIONS, UPLINKS, build

UNITS = {"capex": "USD", "power": "W", "tco": "USD"}
LONGEST = 200  # characters of a comment; readers have limits


def model_lp(instance: Instance, plan: Plan) -> str:
    r"""The program in LP format, with lines of comment that begin with `\`; see `_written`."""
    return _written(instance, plan, "lp", "\\ ")


def model_mps(instance: Instance, plan: Plan) -> str:
    """The program in MPS format, with lines of comment that begin with `*`; see `_written`."""
    return _written(instance, plan, "mps", "* ")


def _written(instance: Instance, plan: Plan, ending: str, mark: str) -> str:
    """The program that the formulation of a plan makes of its instance, in units of the objective.

    Its optimum is the value of a proven plan. Cuts that recomputation took are searched again and are part of it.

    Raises
    ------
    InstanceError
        When the instance is not of one network, the plan is of another, or no network serves every workload, so that
        there is no program.
    """
    require_one_network(instance, "a file of the mixed-integer program")
    check_same_question(instance, plan)
    if plan.solver.formulation not in FORMULATIONS:
        raise InstanceError(
            f"{instance.name}: the plan's formulation {plan.solver.formulation!r} has no such file, "
            f"needs {' or '.join(FORMULATIONS)}"
        )
    asked = _as_solved(instance, plan)
    problem, model = _model(asked, plan)
    text = "".join(f"{mark}{line[:LONGEST]}\n" for line in _about(asked, plan, problem))
    return text + _text(model, problem.scale, ending)


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
        raise InstanceError(
            f"{instance.name}: no network serves every workload, so that there is no program to write, "
            "needs bounds that can be met"
        )
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


def _about(instance: Instance, plan: Plan, problem: SharedProblem) -> Iterator[str]:
    """What the file holds, and what its variables stand for."""
    kind, d = instance.objective.minimize, problem.data
    yield f"{instance.name} ({instance.sha256}), formulation {instance.solver.formulation!r}"
    yield f"minimizes {kind} in {UNITS[kind]}; the plan: {plan.status}, value {plan.objective.value}"
    yield "y_f builds family f, u_f: uplinks of a leaf, s_f: spines of a plane, z_c uses column c"
    for f, family in enumerate(problem.families):
        yield f"y_{f}: {_network(family)}; {family.uplink_choices[0]} to {family.uplink_choices[-1]} uplinks"
    for c, column in enumerate(problem.columns):
        name = instance.workload[column.workload].name
        yield f"z_{c}: {name!r} on families of context {d.column_context[c]}, from {column.uplinks} uplinks"


def _network(family: Family) -> str:
    parts = [f"{family.domains} x {family.hb.name} ({family.active} active)"]
    if family.tiers:
        parts += [
            f"{family.tiers}-tier {family.fabric} of {family.switch.name}",
            f"{family.nics_per_gpu} x {family.nic.name}",
        ]
    return ", ".join(parts)


def _text(model: pyo.ConcreteModel, scale: float, ending: str) -> str:
    """The model as HiGHS writes it, with names as in `formulations/` and costs in the objective's unit."""
    lp, variables = linear_program(model)
    lp.model_name_ = "coopt"
    lp.col_cost_ = np.asarray(lp.col_cost_) * scale
    lp.offset_ = lp.offset_ * scale
    lp.col_names_ = [_plain(variable.name) for variable in variables]
    lp.row_names_ = [_plain(row.name) for row in model.component_data_objects(pyo.Constraint, active=True)]
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"model.{ending}"
        for status in (h.passModel(lp), h.writeModel(str(file))):
            assert status != highspy.HighsStatus.kError, f"HiGHS wrote no {ending}"
        return file.read_text("utf-8").replace("\nsemi\nend", "\nend")  # an empty section that not all readers know


def _plain(name: str) -> str:
    """`mapping[0,3]` as `mapping_0_3`: brackets and commas mean something else in these files."""
    return re.sub(r"\W+", "_", name).strip("_")
