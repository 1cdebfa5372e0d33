#!/usr/bin/env bash
# Pyomo's check of units passes bits for numbers, and a bit rate for the clock or the symbols of a link.
#
# Versions   pyomo==6.10.1, pint==0.25.3
# Expected   assert_units_consistent refuses a row that adds bits to GPUs, or sets Gbit/s equal to GHz. A lane of PAM4 at
#            53.125 GBd carries 106.25 Gbit/s, so a rate in baud is not one in bits, or has a factor 2. Gb/s is a rate.
# Behaviour  pint's bit has no dimension, and Pyomo compares dimensions and factors: a bit is the number 1, a hertz, a
#            radian. A byte, of 8, is refused beside all of these and beside bits. Gbps is read as gigabaud, of one bit
#            each, so the lane converts to half its rate; Gb/s is gilbert per second, a current over a time.
# Output seen
#   bits + GPUs: consistent
#   bits = angle: consistent
#   Gbit/s = GHz: consistent
#   Gbit/s = Gbps: consistent
#   bytes + GPUs: refused
#   bytes = bits: refused
#   53.125 GBd in Gbit/s: 53.125
#   400 Gb/s in A/s: 318.31
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check pyomo==6.10.1 pint==0.25.3
cat >"$folder/seen.py" <<'PYTHON'
import logging

import pyomo.environ as pyo
from pyomo.core.base.units_container import InconsistentUnitsError
from pyomo.util.check_units import assert_units_consistent

logging.getLogger("pyomo").setLevel(logging.CRITICAL)
unit = pyo.units
model = pyo.ConcreteModel()
model.gpus = pyo.Var(units=unit.dimensionless)
model.angle = pyo.Var(units=unit.radian)
model.bits = pyo.Var(units=unit.bit)
model.bytes = pyo.Var(units=unit.byte)
model.rate = pyo.Var(units=unit.gigabit / unit.s)
model.link = pyo.Var(units=unit.Gbps)
model.clock = pyo.Var(units=unit.GHz)
ROWS = {
    "bits + GPUs": model.bits + model.gpus == 3,
    "bits = angle": model.bits == model.angle,
    "Gbit/s = GHz": model.rate == model.clock,
    "Gbit/s = Gbps": model.rate == model.link,
    "bytes + GPUs": model.bytes + model.gpus == 3,
    "bytes = bits": model.bytes == model.bits,
}
for name, row in ROWS.items():
    model.row = pyo.Constraint(expr=row)
    try:
        assert_units_consistent(model.row)
        print(f"{name}: consistent")
    except InconsistentUnitsError:
        print(f"{name}: refused")
    model.del_component("row")
lane = pyo.value(unit.convert(53.125 * unit.GBd, to_units=unit.gigabit / unit.s))
print(f"53.125 GBd in Gbit/s: {lane:.3f}")
print(f"400 Gb/s in A/s: {pyo.value(unit.convert(400 * unit.Gb / unit.s, to_units=unit.A / unit.s)):.2f}")
PYTHON
"$folder/venv/bin/python" "$folder/seen.py" >"$folder/seen.txt" 2>/dev/null
cat "$folder/seen.txt"
diff "$folder/seen.txt" - <<'SEEN'
bits + GPUs: consistent
bits = angle: consistent
Gbit/s = GHz: consistent
Gbit/s = Gbps: consistent
bytes + GPUs: refused
bytes = bits: refused
53.125 GBd in Gbit/s: 53.125
400 Gb/s in A/s: 318.31
SEEN
