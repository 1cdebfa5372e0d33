#!/usr/bin/env bash
# CP-SAT calls a mixed-integer program OPTIMAL whose optimum is lower.
#
# Versions   ortools==9.15.6755, model_builder with the solvers "scip" and "sat"
# Expected   Both solve min 3b + 4x + 3y, 2b + 2x >= 3, 3b + 2x + 2y >= 7, b binary, x and y from 0 to 10:
#            9.5, at b = 1, x = 0.5, y = 1.5. Or CP-SAT refuses what is not all whole numbers.
# Behaviour  CP-SAT searches whole values of a continuous variable, unless presolve sees that it needs
#            a fraction: x gets its half here and y does not. The status is OPTIMAL, and no line says that another
#            program was solved. With `mip_var_scaling`, which says how fine values are, it is 9.5.
# Output seen
#   scip OPTIMAL 9.5 b 1 x 0.5 y 1.5
#   sat OPTIMAL 11 b 1 x 0.5 y 2
#   sat, mip_var_scaling:1000 OPTIMAL 9.5 b 1 x 0.5 y 1.5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check ortools==9.15.6755
cat >"$folder/seen.py" <<'PYTHON'
from ortools.linear_solver.python import model_builder

for name, parameters in (("scip", ""), ("sat", ""), ("sat", "mip_var_scaling:1000")):
    model = model_builder.Model()
    b, x, y = model.new_bool_var("b"), model.new_num_var(0, 10, "x"), model.new_num_var(0, 10, "y")
    model.add(2 * b + 2 * x >= 3)
    model.add(3 * b + 2 * x + 2 * y >= 7)
    model.minimize(3 * b + 4 * x + 3 * y)
    solver = model_builder.Solver(name)
    if parameters:
        solver.set_solver_specific_parameters(parameters)
    status = solver.solve(model)
    values = " ".join(f"{one.name} {round(solver.value(one), 6):g}" for one in (b, x, y))
    print(", ".join(filter(None, (name, parameters))), status.name, f"{solver.objective_value:g}", values)
PYTHON
cd "$folder"
./venv/bin/python seen.py >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
scip OPTIMAL 9.5 b 1 x 0.5 y 1.5
sat OPTIMAL 11 b 1 x 0.5 y 2
sat, mip_var_scaling:1000 OPTIMAL 9.5 b 1 x 0.5 y 1.5
SEEN
