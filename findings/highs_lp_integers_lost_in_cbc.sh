#!/usr/bin/env bash
# An LP file that HiGHS writes loses its integers in CBC, without a word.
#
# Versions   highspy==1.12.0 (writes the file), pulp==3.3.0 (ships the CBC binary that reads it)
# Expected   Both solve min 3x + 4y + 5n, 2x + 2y + 2n >= 3, x and y binary, n whole: 7.
# Behaviour  HiGHS heads its sections `bin` and `gen`. CBC's reader knows `binary` and `general`; it
#            takes `bin` and `gen` for the names of two more variables, solves a relaxation and calls
#            it optimal. With the longer headers, which HiGHS reads as well, and without
#            the empty section `semi`, both give 7.
# Output seen
#   HiGHS 7
#   CBC, file of HiGHS: Optimal - objective value 5.00000000, columns x y n bin gen
#   CBC, long headers: Optimal - objective value 7.00000000, columns x y n
#   HiGHS, long headers 7
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check highspy==1.12.0 pulp==3.3.0
cat >"$folder/seen.py" <<'PYTHON'
import subprocess
import sys

import highspy
import pulp


def in_highs(path):
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(path)
    highs.run()
    return f"{highs.getInfo().objective_function_value:g}"


def in_cbc(path):
    program = [pulp.PULP_CBC_CMD().path, path, "solve", "solution", "cbc.sol"]
    subprocess.run(program, check=True, capture_output=True)
    status, *rows = open("cbc.sol").read().splitlines()
    return f"{status}, columns {' '.join(row.split()[1] for row in rows)}"


highs = highspy.Highs()
highs.setOptionValue("output_flag", False)
x, y = highs.addBinary(name="x"), highs.addBinary(name="y")
n = highs.addIntegral(lb=0, ub=5, name="n")
highs.addConstr(2 * x + 2 * y + 2 * n >= 3)
highs.minimize(3 * x + 4 * y + 5 * n)
highs.writeModel("short.lp")
text = open("short.lp").read()
open("long.lp", "w").write(text.replace("\nbin\n", "\nbinary\n").replace("\ngen\n", "\ngeneral\n").replace("\nsemi\n", "\n"))

print("HiGHS", in_highs("short.lp"))
print("CBC, file of HiGHS:", in_cbc("short.lp"))
print("CBC, long headers:", in_cbc("long.lp"))
print("HiGHS, long headers", in_highs("long.lp"))
PYTHON
cd "$folder"
./venv/bin/python seen.py >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
HiGHS 7
CBC, file of HiGHS: Optimal - objective value 5.00000000, columns x y n bin gen
CBC, long headers: Optimal - objective value 7.00000000, columns x y n
HiGHS, long headers 7
SEEN
