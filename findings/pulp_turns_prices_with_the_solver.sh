#!/usr/bin/env bash
# PuLP prices another megawatt at 2 with CBC and at -2 with HiGHS, for the same plan.
#
# Versions   pulp==3.3.2 with its CBC and highspy==1.16.0; pyomo==6.10.1, linopy==0.10.1, cvxpy==1.9.3,
#            ortools==9.15.6755, pyscipopt==6.3.0 beside it
# Expected   Most is trained, max 3a + 2b, with a + b <= 4 MW and a <= 3. Another MW is worth 2, and 2 is its dual
#            value, as in HiGHS itself, and as with every solver of one library. In min 3a + 2b, a + b >= 4, a <= 3,
#            another one asked for costs 2.
# Behaviour  PuLP hands HiGHS the negated objective of a maximum, and gives its duals back as they are: -2, where plan
#            and value agree with CBC. PySCIPOpt says -2 as well. Of the minimum all say 2, so a test on costs shows
#            nothing. A capacity that is worth most looks like one to be sold; only the size of a dual is safe.
# Output seen, maximum and minimum
#   PuLP, CBC: plan 11 at 2 a MW, plan 8 at 2
#   PuLP, HiGHS: plan 11 at -2 a MW, plan 8 at 2
#   highspy: plan 11 at 2 a MW, plan 8 at 2
#   Pyomo, HiGHS: plan 11 at 2 a MW, plan 8 at 2
#   linopy, HiGHS: plan 11 at 2 a MW, plan 8 at 2
#   CVXPY, HiGHS: plan 11 at 2 a MW, plan 8 at 2
#   OR-tools, GLOP: plan 11 at 2 a MW, plan 8 at 2
#   PySCIPOpt: plan 11 at -2 a MW, plan 8 at 2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check pulp==3.3.2 highspy==1.16.0 \
    pyomo==6.10.1 linopy==0.10.1 cvxpy==1.9.3 ortools==9.15.6755 pyscipopt==6.3.0
cat >"$folder/seen.py" <<'PYTHON'
import cvxpy
import highspy
import linopy
import pulp
import pyomo.environ as pyo
from ortools.linear_solver.python import model_builder
from pyscipopt import SCIP_PARAMSETTING, Model


def power(most, a, b):
    return a + b <= 4 if most else a + b >= 4


def with_pulp(solver):
    def solve(most):
        problem = pulp.LpProblem("plan", pulp.LpMaximize if most else pulp.LpMinimize)
        a, b = pulp.LpVariable("a", 0, 3), pulp.LpVariable("b", 0, 9)
        problem += 3 * a + 2 * b
        problem += (power(most, a, b), "power")
        problem.solve(solver(msg=False))
        (row,) = problem.constraints.values()
        return pulp.value(problem.objective), row.pi

    return solve


def with_highspy(most):
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    a, b = highs.addVariable(0, 3), highs.addVariable(0, 9)
    highs.addConstr(power(most, a, b))
    (highs.maximize if most else highs.minimize)(3 * a + 2 * b)
    return highs.getObjectiveValue(), highs.getSolution().row_dual[0]


def with_pyomo(most):
    model = pyo.ConcreteModel()
    model.a, model.b = pyo.Var(bounds=(0, 3)), pyo.Var(bounds=(0, 9))
    model.worth = pyo.Objective(expr=3 * model.a + 2 * model.b, sense=pyo.maximize if most else pyo.minimize)
    model.power = pyo.Constraint(expr=power(most, model.a, model.b))
    model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    pyo.SolverFactory("appsi_highs").solve(model)
    return pyo.value(model.worth), model.dual[model.power]


def with_linopy(most):
    model = linopy.Model()
    a, b = model.add_variables(0, 3, name="a"), model.add_variables(0, 9, name="b")
    model.add_constraints(power(most, a, b), name="power")
    model.add_objective(3 * a + 2 * b, sense="max" if most else "min")
    model.solve("highs", output_flag=False)
    return model.objective.value, float(model.constraints["power"].dual)


def with_cvxpy(most):
    a, b = cvxpy.Variable(nonneg=True), cvxpy.Variable(nonneg=True)
    row, worth = power(most, a, b), 3 * a + 2 * b
    problem = cvxpy.Problem(cvxpy.Maximize(worth) if most else cvxpy.Minimize(worth), [row, a <= 3, b <= 9])
    return problem.solve(solver=cvxpy.HIGHS), float(row.dual_value)


def with_ortools(most):
    model, solver = model_builder.Model(), model_builder.Solver("glop")
    a, b = model.new_num_var(0, 3, "a"), model.new_num_var(0, 9, "b")
    row = model.add(power(most, a, b))
    (model.maximize if most else model.minimize)(3 * a + 2 * b)
    solver.solve(model)
    return solver.objective_value, solver.dual_value(row)


def with_pyscipopt(most):
    model = Model()
    model.hideOutput()
    model.setPresolve(SCIP_PARAMSETTING.OFF)
    model.setHeuristics(SCIP_PARAMSETTING.OFF)
    model.disablePropagation()
    a, b = model.addVar("a", ub=3), model.addVar("b", ub=9)
    row = model.addCons(power(most, a, b))
    model.setObjective(3 * a + 2 * b, "maximize" if most else "minimize")
    model.optimize()
    return model.getObjVal(), model.getDualsolLinear(row)


LIBRARIES = {
    "PuLP, CBC": with_pulp(pulp.PULP_CBC_CMD), "PuLP, HiGHS": with_pulp(pulp.HiGHS), "highspy": with_highspy,
    "Pyomo, HiGHS": with_pyomo, "linopy, HiGHS": with_linopy, "CVXPY, HiGHS": with_cvxpy,
    "OR-tools, GLOP": with_ortools, "PySCIPOpt": with_pyscipopt,
}
for name, solve in LIBRARIES.items():
    (most, worth), (least, cost) = solve(True), solve(False)
    print(f"{name}: plan {most:.4g} at {worth:.4g} a MW, plan {least:.4g} at {cost:.4g}")
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py | grep -vE "^(Running HiGHS|Includes)" >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
PuLP, CBC: plan 11 at 2 a MW, plan 8 at 2
PuLP, HiGHS: plan 11 at -2 a MW, plan 8 at 2
highspy: plan 11 at 2 a MW, plan 8 at 2
Pyomo, HiGHS: plan 11 at 2 a MW, plan 8 at 2
linopy, HiGHS: plan 11 at 2 a MW, plan 8 at 2
CVXPY, HiGHS: plan 11 at 2 a MW, plan 8 at 2
OR-tools, GLOP: plan 11 at 2 a MW, plan 8 at 2
PySCIPOpt: plan 11 at -2 a MW, plan 8 at 2
SEEN
