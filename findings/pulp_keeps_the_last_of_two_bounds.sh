#!/usr/bin/env bash
# PuLP, linopy and OR-tools buy no GPU where 7 to 10 were asked for in one row; HiGHS buys 7, four others refuse.
#
# Versions   pulp==3.3.2, linopy==0.10.1, ortools==9.15.6755 (pywraplp, model_builder and CP-SAT), highspy==1.16.0,
#            pyomo==6.10.1, pyscipopt==6.3.0, cvxpy==1.9.3
# Expected   7 <= a + b <= 10 holds both bounds, as Python reads it with numbers and as highspy documents it, or is
#            refused: the fewest GPUs of two kinds are 7.
# Behaviour  Python turns it into (7 <= a + b) and (a + b <= 10): the first row counts for true, and only the second
#            reaches the model. PuLP, linopy and pywraplp let a row count for true, so the fewest GPUs are 0, with
#            status optimal and no word. highspy remembers the first row. The others refuse to be true or false. Two
#            rows, one for each bound, are right everywhere.
# Output seen, the fewest GPUs
#   PuLP: 0, as two rows 7
#   linopy: 0, as two rows 7
#   OR-tools, pywraplp: 0, as two rows 7
#   OR-tools, model_builder: refused, NotImplementedError, as two rows 7
#   OR-tools, CP-SAT: refused, NotImplementedError, as two rows 7
#   highspy: 7, as two rows 7
#   Pyomo: refused, PyomoException, as two rows 7
#   PySCIPOpt: refused, TypeError, as two rows 7
#   CVXPY: refused, Exception, as two rows 7
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check pulp==3.3.2 linopy==0.10.1 \
    ortools==9.15.6755 highspy==1.16.0 pyomo==6.10.1 pyscipopt==6.3.0 cvxpy==1.9.3
cat >"$folder/seen.py" <<'PYTHON'
import cvxpy
import highspy
import linopy
import pulp
import pyomo.environ as pyo
from ortools.linear_solver import pywraplp
from ortools.linear_solver.python import model_builder
from ortools.sat.python import cp_model
from pyscipopt import Model


def chained(a, b):
    return [7 <= a + b <= 10]


def apart(a, b):
    return [7 <= a + b, a + b <= 10]


def with_pulp(rows):
    problem = pulp.LpProblem("gpus", pulp.LpMinimize)
    a, b = (pulp.LpVariable(name, 0, 10) for name in "ab")
    problem += a + b
    for row in rows(a, b):
        problem += row
    problem.solve(pulp.PULP_CBC_CMD(msg=False))
    return pulp.value(problem.objective)


def with_linopy(rows):
    model = linopy.Model()
    a, b = (model.add_variables(0, 10, name=name) for name in "ab")
    for row in rows(a, b):
        model.add_constraints(row)
    model.add_objective(a + b)
    model.solve("highs", output_flag=False)
    return model.objective.value


def with_pywraplp(rows):
    solver = pywraplp.Solver.CreateSolver("GLOP")
    a, b = (solver.NumVar(0, 10, name) for name in "ab")
    for row in rows(a, b):
        solver.Add(row)
    solver.Minimize(a + b)
    solver.Solve()
    return solver.Objective().Value()


def with_model_builder(rows):
    model, solver = model_builder.Model(), model_builder.Solver("glop")
    a, b = (model.new_num_var(0, 10, name) for name in "ab")
    for row in rows(a, b):
        model.add(row)
    model.minimize(a + b)
    solver.solve(model)
    return solver.objective_value


def with_cp_sat(rows):
    model, solver = cp_model.CpModel(), cp_model.CpSolver()
    a, b = (model.new_int_var(0, 10, name) for name in "ab")
    for row in rows(a, b):
        model.add(row)
    model.minimize(a + b)
    solver.solve(model)
    return solver.objective_value


def with_highspy(rows):
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    a, b = (highs.addVariable(0, 10) for _ in "ab")
    for row in rows(a, b):
        highs.addConstr(row)
    highs.minimize(a + b)
    return highs.getObjectiveValue()


def with_pyomo(rows):
    model = pyo.ConcreteModel()
    model.a, model.b = pyo.Var(bounds=(0, 10)), pyo.Var(bounds=(0, 10))
    model.rows = pyo.ConstraintList()
    for row in rows(model.a, model.b):
        model.rows.add(row)
    model.gpus = pyo.Objective(expr=model.a + model.b)
    pyo.SolverFactory("appsi_highs").solve(model)
    return pyo.value(model.gpus)


def with_pyscipopt(rows):
    model = Model()
    model.hideOutput()
    a, b = (model.addVar(name, ub=10) for name in "ab")
    for row in rows(a, b):
        model.addCons(row)
    model.setObjective(a + b)
    model.optimize()
    return model.getObjVal()


def with_cvxpy(rows):
    a, b = cvxpy.Variable(nonneg=True), cvxpy.Variable(nonneg=True)
    return cvxpy.Problem(cvxpy.Minimize(a + b), rows(a, b)).solve(solver=cvxpy.HIGHS)


def fewest(solve, rows):
    try:
        return f"{solve(rows):.0f}"
    except Exception as error:
        return f"refused, {type(error).__name__}"


LIBRARIES = {
    "PuLP": with_pulp, "linopy": with_linopy, "OR-tools, pywraplp": with_pywraplp,
    "OR-tools, model_builder": with_model_builder, "OR-tools, CP-SAT": with_cp_sat, "highspy": with_highspy,
    "Pyomo": with_pyomo, "PySCIPOpt": with_pyscipopt, "CVXPY": with_cvxpy,
}
for name, solve in LIBRARIES.items():
    print(f"{name}: {fewest(solve, chained)}, as two rows {fewest(solve, apart)}")
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py | grep -vE "^(Running HiGHS|Includes)" >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
PuLP: 0, as two rows 7
linopy: 0, as two rows 7
OR-tools, pywraplp: 0, as two rows 7
OR-tools, model_builder: refused, NotImplementedError, as two rows 7
OR-tools, CP-SAT: refused, NotImplementedError, as two rows 7
highspy: 7, as two rows 7
Pyomo: refused, PyomoException, as two rows 7
PySCIPOpt: refused, TypeError, as two rows 7
CVXPY: refused, Exception, as two rows 7
SEEN
