#!/usr/bin/env bash
# The maximum flow over a link of 400 Gbit/s is 0.57 Gbit/s in scipy, and over one of 12.5 Gbit/s 12 in OR-tools.
#
# Versions   scipy==1.17.1 (sparse.csgraph.maximum_flow), ortools==9.15.6755 (SimpleMaxFlow), numpy==2.3.5
# Expected   What a link carries, in the unit that was given; or a capacity that the solver cannot hold is refused, as
#            both do with a fraction that comes alone.
# Behaviour  scipy keeps capacities in 32 bits and wraps whole numbers of 64 bits: 400e9 bits a second become 568041472,
#            with no error or warning. 3200e9 wraps to 249364480: the faster link carries less. OR-tools takes 64 bits,
#            refuses 12.5 for one arc, and cuts the fraction off where arcs come as arrays: rates below 1 are 0, the
#            status is OPTIMAL. Give scipy whole Gbit/s and OR-tools whole bits.
# Output seen
#   scipy, two links of 400 Gbit/s in bits: 568041472
#   scipy, two links of 3200 Gbit/s in bits: 249364480
#   scipy, the same in Gbit/s: 400
#   scipy, 12.5 Gbit/s: ValueError
#   OR-tools, 400 Gbit/s in bits, as an array: OPTIMAL 400000000000
#   OR-tools, 12.5 Gbit/s: TypeError
#   OR-tools, 12.5 Gbit/s, as an array: OPTIMAL 12
#   OR-tools, 0.9 Gbit/s, as an array: OPTIMAL 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  scipy==1.17.1 ortools==9.15.6755 numpy==2.3.5
cat >"$folder/seen.py" <<'PYTHON'
import warnings

import numpy as np
from ortools.graph.python import max_flow
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

warnings.simplefilter("error")


def by_scipy(rate):
    links = csr_array(([rate, rate], ([0, 1], [1, 2])), shape=(3, 3))
    try:
        return maximum_flow(links, 0, 2).flow_value
    except ValueError as error:
        return type(error).__name__


def by_ortools(rate, array):
    flow = max_flow.SimpleMaxFlow()
    try:
        if array:
            flow.add_arcs_with_capacity(np.array([0, 1]), np.array([1, 2]), np.array([rate, rate]))
        else:
            flow.add_arc_with_capacity(0, 1, rate)
    except TypeError as error:
        return type(error).__name__
    return f"{flow.solve(0, 2).name} {flow.optimal_flow()}"


print("scipy, two links of 400 Gbit/s in bits:", by_scipy(400_000_000_000))
print("scipy, two links of 3200 Gbit/s in bits:", by_scipy(3_200_000_000_000))
print("scipy, the same in Gbit/s:", by_scipy(400))
print("scipy, 12.5 Gbit/s:", by_scipy(12.5))
print("OR-tools, 400 Gbit/s in bits, as an array:", by_ortools(400_000_000_000, array=True))
print("OR-tools, 12.5 Gbit/s:", by_ortools(12.5, array=False))
print("OR-tools, 12.5 Gbit/s, as an array:", by_ortools(12.5, array=True))
print("OR-tools, 0.9 Gbit/s, as an array:", by_ortools(0.9, array=True))
PYTHON
cd "$folder"
./venv/bin/python seen.py >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
scipy, two links of 400 Gbit/s in bits: 568041472
scipy, two links of 3200 Gbit/s in bits: 249364480
scipy, the same in Gbit/s: 400
scipy, 12.5 Gbit/s: ValueError
OR-tools, 400 Gbit/s in bits, as an array: OPTIMAL 400000000000
OR-tools, 12.5 Gbit/s: TypeError
OR-tools, 12.5 Gbit/s, as an array: OPTIMAL 12
OR-tools, 0.9 Gbit/s, as an array: OPTIMAL 0
SEEN
