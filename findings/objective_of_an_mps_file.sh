#!/usr/bin/env bash
# The objective of an MPS file that HiGHS writes is another one in CBC and in GLPK, without a word.
#
# Versions   highspy==1.16.0 (writes the first two files), pulp==3.3.0 (ships the CBC binary that reads them),
#            swiglpk==5.0.13 (GLPK 5.0), pyscipopt==6.3.0
# Expected   All find the optima that HiGHS was asked for: min x + 10, x >= 2 is 12; max x, x <= 4 is 4; min x,
#            x >= 5 with a second row of type N whose right-hand side is 7 is 5. Or they refuse the file.
# Behaviour  CBC skips the section OBJSENSE and minimises: 0, called optimal. GLPK takes the right-hand side of the
#            objective for its constant where the others take the negative: a fixed cost of 10 is a gain of 10.
#            HiGHS takes the right-hand side of any row N for that of the objective. Only SCIP finds all. A file that
#            all read alike minimises, has its constant as the cost of a column fixed at 1, and has one row N.
# Output seen
#   fixed cost: HiGHS 12, CBC 12, GLPK -8, SCIP 12
#   maximised: HiGHS 4, CBC 0, GLPK refused, SCIP 4
#   second row N: HiGHS -2, CBC 5, GLPK 5, SCIP 5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    highspy==1.16.0 pulp==3.3.0 swiglpk==5.0.13 pyscipopt==6.3.0
cat >"$folder/seen.py" <<'PYTHON'
import subprocess

import highspy
import pulp
import pyscipopt
import swiglpk as glpk


def quiet():
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    return highs


def in_highs(path):
    highs = quiet()
    highs.readModel(path)
    highs.run()
    return f"{highs.getInfo().objective_function_value:g}"


def in_cbc(path):
    program = [pulp.PULP_CBC_CMD().path, path, "solve", "solution", "cbc.sol"]
    subprocess.run(program, check=True, capture_output=True)
    status, _, value = open("cbc.sol").readline().strip().partition(" - objective value ")
    assert status == "Optimal", status
    return f"{float(value):g}"


def in_glpk(path):
    problem = glpk.glp_create_prob()
    if glpk.glp_read_mps(problem, glpk.GLP_MPS_FILE, None, path):
        return "refused"
    assert glpk.glp_simplex(problem, None) == 0 and glpk.glp_get_status(problem) == glpk.GLP_OPT
    return f"{glpk.glp_get_obj_val(problem):g}"


def in_scip(path):
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(path)
    model.optimize()
    return f"{model.getObjVal():g}"


glpk.glp_term_out(glpk.GLP_OFF)
fixed, most = quiet(), quiet()
x = fixed.addVariable(0, 5, name="x")
fixed.addConstr(x >= 2, name="least")
fixed.minimize(x + 10)
fixed.writeModel("fixed_cost.mps")
x = most.addVariable(0, 5, name="x")
most.addConstr(x <= 4, name="most")
most.maximize(x)
most.writeModel("maximised.mps")
with open("second_row_N.mps", "w") as file:
    file.write("NAME          second\nROWS\n N  cost\n N  power\n G  least\nCOLUMNS\n")
    file.write("    x         cost      1.0            power     1.0\n    x         least     1.0\n")
    file.write("RHS\n    RHS       least     5.0            power     7.0\nENDATA\n")
for name in ("fixed_cost", "maximised", "second_row_N"):
    path = f"{name}.mps"
    values = f"HiGHS {in_highs(path)}, CBC {in_cbc(path)}, GLPK {in_glpk(path)}, SCIP {in_scip(path)}"
    print(f"{name.replace('_', ' ')}: {values}")
PYTHON
cd "$folder"
./venv/bin/python seen.py | grep ": HiGHS " >seen.txt # without the banner
cat seen.txt
diff seen.txt - <<'SEEN'
fixed cost: HiGHS 12, CBC 12, GLPK -8, SCIP 12
maximised: HiGHS 4, CBC 0, GLPK refused, SCIP 4
second row N: HiGHS -2, CBC 5, GLPK 5, SCIP 5
SEEN
