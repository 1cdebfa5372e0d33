#!/usr/bin/env bash
# scipy.optimize.milp buys two and a half racks, and calls it a success.
#
# Versions   scipy==1.17.1, whose milp is HiGHS 1.12; highspy==1.15.1 and 1.16.0 beside it
# Expected   A whole number of racks from 0 to 2.5, as a budget of 10 and a price of 4 say, and at least one by a
#            row of its own: at most 2. Or the fractional bound is refused.
# Behaviour  Presolve tightens the lower bound by the row and leaves the upper one as it is: the optimum is 2.5, with
#            status 0 and a dual bound that agrees. A row that asks for nothing, or no presolve, gives 2. highspy says
#            so as well up to 1.15.1, where only primal_solution_status and the log show it. Round bounds of whole
#            numbers before a solver has them.
# Output seen
#   scipy, at least 1: status 0, success True, racks 2.5, dual bound -2.5
#   scipy, at least 0: status 0, success True, racks 2, dual bound -2
#   scipy, at least 1, no presolve: status 0, success True, racks 2, dual bound -2
#   highspy 1.15.1, at least 1: kOptimal, racks 2.5, solution infeasible
#   highspy 1.16.0, at least 1: kOptimal, racks 2, solution feasible
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for version in 1.15.1 1.16.0; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/python" -m pip install --quiet --disable-pip-version-check "highspy==$version"
done
"$folder/1.15.1/bin/python" -m pip install --quiet --disable-pip-version-check scipy==1.17.1
cat >"$folder/by_scipy.py" <<'PYTHON'
from scipy.optimize import Bounds, LinearConstraint, milp

for least, words, options in ((1, "", {}), (0, "", {}), (1, ", no presolve", {"presolve": False})):
    row = LinearConstraint([[1]], lb=least)
    got = milp([-1], integrality=[1], bounds=Bounds(0, 10 / 4), constraints=row, options=options)
    facts = f"status {got.status}, success {got.success}, racks {got.x[0]:g}, dual bound {got.mip_dual_bound:g}"
    print(f"scipy, at least {least}{words}: {facts}", flush=True)
PYTHON
cat >"$folder/by_highs.py" <<'PYTHON'
import highspy

highs = highspy.Highs()
highs.setOptionValue("output_flag", False)
racks = highs.addIntegral(lb=0, ub=10 / 4)
highs.addConstr(racks >= 1)
highs.maximize(racks)
status, info = highs.getModelStatus().name, highs.getInfo()
words = highs.solutionStatusToString(info.primal_solution_status).lower()
print(f"highspy {highs.version()}, at least 1: {status}, racks {highs.val(racks):g}, solution {words}")
PYTHON
cd "$folder"
{
    ./1.15.1/bin/python by_scipy.py
    ./1.15.1/bin/python by_highs.py
    ./1.16.0/bin/python by_highs.py
} | grep -E "^(scipy|highspy)" >seen.txt # without what HiGHS logs there
cat seen.txt
diff seen.txt - <<'SEEN'
scipy, at least 1: status 0, success True, racks 2.5, dual bound -2.5
scipy, at least 0: status 0, success True, racks 2, dual bound -2
scipy, at least 1, no presolve: status 0, success True, racks 2, dual bound -2
highspy 1.15.1, at least 1: kOptimal, racks 2.5, solution infeasible
highspy 1.16.0, at least 1: kOptimal, racks 2, solution feasible
SEEN
