#!/usr/bin/env bash
# OR-tools does not read the LP files that it writes.
#
# Versions   ortools==9.15.6755, model_builder
# Expected   A model that was written as LP and read again has the same optimum, as with MPS: 7.
# Behaviour  export_to_lp_string writes the LP format of CPLEX (Minimize, Subject to, Binaries), as do
#            HiGHS, SCIP and Gurobi. import_from_lp_string reads that of lp_solve (min: ...; int x;),
#            and returns False for its own file. MPS goes both ways.
# Output seen
#   built 7
#   LP written: Minimize / Subject to / Bounds / Binaries / Generals / End
#   LP read again: False
#   LP of lp_solve read: True 7
#   MPS read again: True 7
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check ortools==9.15.6755
cat >"$folder/seen.py" <<'PYTHON'
from ortools.linear_solver.python import model_builder


def optimum(model):
    solver = model_builder.Solver("scip")
    solver.solve(model)
    return f"{solver.objective_value:g}"


def read_again(how, text):
    model = model_builder.Model()
    read = getattr(model, how)(text)
    return f"{read} {optimum(model)}" if read else f"{read}"


model = model_builder.Model()
x, y, n = model.new_bool_var("x"), model.new_bool_var("y"), model.new_int_var(0, 5, "n")
model.add(2 * x + 2 * y + 2 * n >= 3)
model.minimize(3 * x + 4 * y + 5 * n)
text = model.export_to_lp_string()
lp_solve = "min: 3 x + 4 y + 5 n; c: 2 x + 2 y + 2 n >= 3; x <= 1; y <= 1; n <= 5; int x, y, n;"
print("built", optimum(model))
print("LP written:", " / ".join(line for line in text.splitlines() if line[:1].isalpha()))
print("LP read again:", read_again("import_from_lp_string", text))
print("LP of lp_solve read:", read_again("import_from_lp_string", lp_solve))
print("MPS read again:", read_again("import_from_mps_string", model.export_to_mps_string()))
PYTHON
cd "$folder"
./venv/bin/python seen.py >seen.txt 2>/dev/null
cat seen.txt
diff seen.txt - <<'SEEN'
built 7
LP written: Minimize / Subject to / Bounds / Binaries / Generals / End
LP read again: False
LP of lp_solve read: True 7
MPS read again: True 7
SEEN
