"""Files that need a search: the program behind a plan for other solvers, and the path of every flow
for controllers.
"""

from __future__ import annotations

import csv
import io
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import highspy
import numpy as np
import pyomo.core as pyo

from coopt.columns.table import columns
from coopt.instance.errors import InstanceError, alternatives
from coopt.instance.requirements import require_billed, require_no_failures
from coopt.instance.schema import Instance
from coopt.instance.variants import with_tp
from coopt.network.family import Family
from coopt.network.part_networks import require_workload
from coopt.network.routing.tiers import PlaneRoutes
from coopt.network.space import families
from coopt.plan.schema import Plan
from coopt.plan.store import check_same_question, placed_as
from coopt.solving.answer import method_of
from coopt.solving.arrays import SharedProblem, assemble, viable
from coopt.solving.backend import backend_of
from coopt.solving.driver import drive
from coopt.solving.flow_routes import Choice, routed_flows
from coopt.solving.highs import QuietHighs, linear_program
from coopt.solving.plan_traffic import trusted_part
from coopt.solving.runs import NamedPrograms, Program, Run
from coopt.solving.shared import subproblem
from coopt.traffic.flows import TrafficDemand, demand
from coopt.traffic.of_plan import LeafFlows, leaf_flows
from formulations.network import NETWORK, build

UNITS = {"capex": "USD", "power": "W", "tco": "USD"}
NOTHING = (
    "{}: nothing serves every workload, so that there is no program to write, needs bounds that can"
    " be met"
)
LONGEST = 200  # characters of a comment; readers have limits

COLUMNS = (
    "workload",
    "kind",
    "collective",
    "bytes",
    "source_gpu",
    "source_nic",
    "source_leaf",
    "source_aggregation",
    "top",
    "destination_aggregation",
    "destination_leaf",
    "destination_nic",
    "destination_gpu",
    "round",
)

CHOICE = Choice(
    algorithm="best", seed=0, failed_cores=0, time_limit_s=60.0
)  # as `coopt route` without options
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
    question = _as_solved(*placed_as(instance, plan))
    names = formulations_of(question)
    name = names[0] if len(names) == 1 else plan.solver.formulation
    if name not in names:
        raise InstanceError(
            f"{instance.name}: the plan's formulation {name!r} has no such file,"
            f" needs {alternatives(names)}"
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
        raise InstanceError(NOTHING.format(instance.name))
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
            f"{instance.name}: --program{option}: the answer is the best of {count} "
            f"program{'s' if count > 1 else ''}, needs a number from 1 to {count}"
        )
    return program - 1


def _as_solved(instance: Instance, plan: Plan) -> Instance:
    """The instance with the objective of the run that made the plan."""
    objective = instance.objective.model_copy(update={"minimize": plan.objective.kind})
    return instance.model_copy(update={"objective": objective})


def _model(instance: Instance, plan: Plan) -> tuple[SharedProblem, pyo.ConcreteModel]:
    candidates = tuple(families(instance))
    table = columns(instance, candidates, lambda _: None, lambda: None)
    serving = viable(instance, candidates, table)
    if not serving:
        raise InstanceError(NOTHING.format(instance.name))
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
    drive([replace(network, build=build_once)], backend, gap=instance.solver.gap, deadline=deadline)
    return problem, models[0]  # the search added its cuts to it


def _about(instance: Instance, plan: Plan, place: int, count: int) -> Iterator[str]:
    """What the file holds."""
    kind = plan.objective.kind
    yield f"{instance.name} ({instance.sha256}), formulation {plan.solver.formulation!r}"
    yield (
        f"minimizes {kind} in {UNITS[kind]}; the plan: {plan.status}, value {plan.objective.value}"
    )
    if count > 1:
        yield f"program {place + 1} of {count}; the answer is the best of them"
    if instance.beyond_one_network:
        yield (
            "as the search begins, which may add cuts; variables have the names of the mathematics"
        )
    if instance.asks("direct"):
        yield "direct links by one mapping; networks of switches are another problem"


def _about_network(instance: Instance, problem: SharedProblem) -> Iterator[str]:
    """What the variables of one network stand for."""
    d = problem.data
    yield "y_f builds family f, u_f: uplinks of a leaf, s_f: spines of a plane, z_c uses column c"
    for f, family in enumerate(problem.families):
        yield (
            f"y_{f}: {_network(family)}; {family.uplink_choices[0]} to {family.uplink_choices[-1]}"
            " uplinks"
        )
    for c, column in enumerate(problem.columns):
        name = instance.workload[column.workload].name
        yield (
            f"z_{c}: {name!r} on families of context {d.column_context[c]}, from {column.uplinks}"
            " uplinks"
        )


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
    """The model as HiGHS writes it, with names as in `formulations/` and costs in the objective's
    unit.
    """
    lp, variables = linear_program(program.model)
    lp.model_name_ = "coopt"
    lp.col_cost_ = np.asarray(lp.col_cost_) * program.unit
    lp.offset_ = lp.offset_ * program.unit + program.base
    lp.col_names_ = [_plain_name(variable.name) for variable in variables]
    lp.row_names_ = [
        _plain_name(row.name)
        for row in program.model.component_data_objects(pyo.Constraint, active=True)
    ]
    h = QuietHighs()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"model.{ending}"
        for status in (h.passModel(lp), h.writeModel(str(file))):
            assert status != highspy.HighsStatus.kError, f"HiGHS wrote no {ending}"
        return file.read_text("utf-8").replace(
            "\nsemi\nend", "\nend"
        )  # an empty section that not all readers know


def _plain_name(name: str) -> str:
    """`mapping[0,3]` as `mapping_0_3`: brackets and commas mean something else in these files."""
    return re.sub(r"\W+", "_", name).strip("_")


def routes_csv(
    instance: Instance, plan: Plan, *, workload: str | None = None, part: str | None = None
) -> str:
    """One line for each flow between domains, with the names of what it crosses in the graph that
    is exported.

    Raises
    ------
    InstanceError
        When the plan has no design of this instance, no workload of that name, or one HB domain and
        so no network.
    """
    network = trusted_part(instance, plan, "the format routes", part)
    family, uplinks, pairs = network.family, network.uplinks, network.runs
    if family.tiers == 0:
        raise InstanceError(
            f"{instance.name}: the plan is one HB domain and has no network, needs several domains"
        )
    require_workload(plan, workload, network.part)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for question, run in pairs:
        if workload in (None, question.name):
            for flows, routed in _routed(family, uplinks, demand(question, run)):
                table.writerows(
                    (question.name, *line) for line in _lines(family, uplinks, flows, routed)
                )
    return text.getvalue()


def _routed(
    family: Family, uplinks: int, traffic: TrafficDemand
) -> Iterator[tuple[LeafFlows, PlaneRoutes | None]]:
    """The flows with their routes; on one tier no switch lies above the leaves."""
    if family.tiers > 1:
        yield from routed_flows(family, uplinks, traffic, CHOICE)
    else:
        yield from ((flows, None) for flows in leaf_flows(family, traffic))


def _lines(
    family: Family, uplinks: int, flows: LeafFlows, routed: PlaneRoutes | None
) -> Iterator[tuple[str, ...]]:
    ports, plane_group = family.nic_planes, family.planes_together
    apart = (
        -(-family.planes // plane_group) * plane_group
    )  # numbers of planes from one port of a NIC to its next
    for port, (row, number) in product(range(ports), enumerate(flows.planes)):
        plane = port * apart + number
        switches = _upper_switches(family, uplinks, plane, flows, routed)
        leaves = (
            [f"leaf/{plane // plane_group}/{leaf}" for leaf in ends.tolist()]
            for ends in (flows.src, flows.dst)
        )
        gpus = (
            [divmod(gpu, family.active) for gpu in of[row].tolist()]
            for of in (flows.src_gpu, flows.dst_gpu)
        )
        sizes = (flows.size_bytes[row] / ports).tolist()
        records = zip(*gpus, flows.adapter[row].tolist(), sizes, *leaves, switches, strict=True)
        for (
            (d, g),
            (e, h),
            nic,
            size_bytes,
            source_leaf,
            destination_leaf,
            (
                up,
                top,
                down,
            ),
        ) in records:
            # a NIC is named for its first GPU
            source_nic, destination_nic = (gpu - gpu % family.gpus_per_nic for gpu in (g, h))
            source = (f"gpu/{d}/{g}", f"nic/{d}/{source_nic}/{nic}", source_leaf, up)
            destination = (
                down,
                destination_leaf,
                f"nic/{e}/{destination_nic}/{nic}",
                f"gpu/{e}/{h}",
            )
            yield (
                flows.kind,
                flows.collective,
                repr(size_bytes),
                *source,
                top,
                *destination,
                str(flows.round),
            )


def _upper_switches(
    family: Family, uplinks: int, plane: int, flows: LeafFlows, routed: PlaneRoutes | None
) -> Iterator[tuple[str, str, str]]:
    """Aggregation switch on the way up, spine or core, aggregation switch on the way down; empty
    where none is.
    """
    if routed is None:
        yield from (("", "", "") for _ in flows.src)
    elif family.pods is None:
        yield from (
            ("", f"spine/{plane}/{m}" if m >= 0 else "", "") for m in routed.middle.tolist()
        )
    else:
        group = family.core_group
        up, down = (
            ends // family.pods.leaves * family.slices(uplinks) + routed.middle
            for ends in (flows.src, flows.dst)
        )
        core = np.where(routed.core >= 0, routed.middle * group + routed.core, -1)
        for m, *switches in zip(
            *(of.tolist() for of in (routed.middle, up, core, down)), strict=True
        ):
            yield _pod_path(plane, *switches) if m >= 0 else ("", "", "")


def _pod_path(plane: int, up: int, core: int, down: int) -> tuple[str, str, str]:
    top = f"core/{plane}/{core}" if core >= 0 else ""
    return f"aggregation/{plane}/{up}", top, f"aggregation/{plane}/{down}"
