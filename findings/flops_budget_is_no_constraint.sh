#!/usr/bin/env bash
# A budget of 1e21 FLOPs is no constraint for most free solvers, and the answer is optimal.
#
# Versions   scipy==1.17.1, highspy==1.16.0, pyscipopt==6.3.0, pulp==3.3.0 (CBC 2.10.3), swiglpk==5.0.13 (GLPK 5.0)
# Expected   The most tokens x up to 1e15 with 42e9 x <= 1e21 (six FLOPs for each of 7e9 parameters) are 2.4e10.
# Behaviour  A right-hand side of 1e20 or more is infinite, and the row is gone: scipy's milp (status 0), HiGHS, SCIP
#            and CBC buy all 1e15 tokens. Only the log of HiGHS says so, and only scipy's linprog doubts the
#            answer. GLPK alone keeps it. Budgets of training runs lie from 1e21 to 1e27: count FLOPs in 1e21 and
#            tokens in 1e9, as HiGHS has no coefficients below 1e-9.
# Output seen
#   scipy milp 1e+15 tokens for 1e21 FLOPs, 23.8095 billion for 1 ZFLOP
#   scipy linprog 1e+15 (status 4) tokens for 1e21 FLOPs, 23.8095 billion for 1 ZFLOP
#   HiGHS 1e+15 tokens for 1e21 FLOPs, 23.8095 billion for 1 ZFLOP
#   SCIP 1e+15 tokens for 1e21 FLOPs, 23.8095 billion for 1 ZFLOP
#   CBC 1e+15 tokens for 1e21 FLOPs, 23.8095 billion for 1 ZFLOP
#   GLPK 2.38095e+10 tokens for 1e21 FLOPs, 23.8095 billion for 1 ZFLOP
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    scipy==1.17.1 highspy==1.16.0 pyscipopt==6.3.0 pulp==3.3.0 swiglpk==5.0.13
cat >"$folder/seen.py" <<'PYTHON'
import highspy
import pulp
import pyscipopt
import swiglpk as glpk
from scipy.optimize import Bounds, LinearConstraint, linprog, milp


def by_milp(cost, budget, most):
    got = milp([-1], constraints=LinearConstraint([[cost]], ub=[budget]), bounds=Bounds(0, most))
    assert got.status == 0, got.message
    return f"{got.x[0]:g}"


def by_linprog(cost, budget, most):
    got = linprog([-1], A_ub=[[cost]], b_ub=[budget], bounds=(0, most))
    return f"{got.x[0]:g}" + (f" (status {got.status})" if got.status else "")


def by_highs(cost, budget, most):
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    x = highs.addVariable(0, most)
    highs.addConstr(cost * x <= budget)
    highs.maximize(x)
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return f"{highs.val(x):g}"


def by_scip(cost, budget, most):
    model = pyscipopt.Model()
    model.hideOutput()
    x = model.addVar(lb=0, ub=most)
    model.addCons(cost * x <= budget)
    model.setObjective(x, "maximize")
    model.optimize()
    assert model.getStatus() == "optimal"
    return f"{model.getVal(x):g}"


def by_cbc(cost, budget, most):
    problem, x = pulp.LpProblem(sense=pulp.LpMaximize), pulp.LpVariable("x", 0, most)
    problem += x
    problem += cost * x <= budget
    assert pulp.LpStatus[problem.solve(pulp.PULP_CBC_CMD(msg=False))] == "Optimal"
    return f"{x.value():.6g}"


def by_glpk(cost, budget, most):
    glpk.glp_term_out(glpk.GLP_OFF)
    problem, row, one = glpk.glp_create_prob(), glpk.intArray(2), glpk.doubleArray(2)
    row[1], one[1] = 1, cost
    glpk.glp_set_obj_dir(problem, glpk.GLP_MAX)
    glpk.glp_add_cols(problem, 1)
    glpk.glp_set_col_bnds(problem, 1, glpk.GLP_DB, 0, most)
    glpk.glp_set_obj_coef(problem, 1, 1)
    glpk.glp_add_rows(problem, 1)
    glpk.glp_set_row_bnds(problem, 1, glpk.GLP_UP, 0, budget)
    glpk.glp_set_mat_row(problem, 1, 1, row, one)
    glpk.glp_simplex(problem, None)
    assert glpk.glp_get_status(problem) == glpk.GLP_OPT
    return f"{glpk.glp_get_col_prim(problem, 1):g}"


for name, by in (
    ("scipy milp", by_milp), ("scipy linprog", by_linprog), ("HiGHS", by_highs),
    ("SCIP", by_scip), ("CBC", by_cbc), ("GLPK", by_glpk),
):
    flops, zflops = by(42e9, 1e21, 1e15), by(42e9 * 1e9 / 1e21, 1, 1e15 / 1e9)
    print(f"{name} {flops} tokens for 1e21 FLOPs, {zflops} billion for 1 ZFLOP", flush=True)
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py | grep " for 1e21 FLOPs, " >seen.txt # without the banner
cat seen.txt
diff seen.txt - <<'SEEN'
scipy milp 1e+15 tokens for 1e21 FLOPs, 23.8095 billion for 1 ZFLOP
scipy linprog 1e+15 (status 4) tokens for 1e21 FLOPs, 23.8095 billion for 1 ZFLOP
HiGHS 1e+15 tokens for 1e21 FLOPs, 23.8095 billion for 1 ZFLOP
SCIP 1e+15 tokens for 1e21 FLOPs, 23.8095 billion for 1 ZFLOP
CBC 1e+15 tokens for 1e21 FLOPs, 23.8095 billion for 1 ZFLOP
GLPK 2.38095e+10 tokens for 1e21 FLOPs, 23.8095 billion for 1 ZFLOP
SEEN
