#!/usr/bin/env bash
# networkx reads a cabling plan in DOT as seven switches in five pieces; it has three, joined.
#
# Versions   networkx==3.6.1 (nx_pydot.read_dot), pydot==4.0.1 (parses DOT)
# Expected   leaf1:p1 -- spine:p1 is a cable from port p1 of leaf1 to port p1 of the spine: three nodes, one piece,
#            with the ports as attributes of the edge, which Graphviz calls tailport and headport.
# Behaviour  The port stays in the name: every cable joins nodes of its own, "leaf1:p1" and "spine:p1", and the switches
#            that the file declares stand alone. Nothing is said. Paths, cuts and counts of links are of another network.
#            With tailport and headport in brackets the same cables are read as they are.
# Output seen
#   ports behind names: 7 nodes, 5 pieces, degree of the spine 0
#   ports in brackets: 3 nodes, 1 pieces, degree of the spine 2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check networkx==3.6.1 pydot==4.0.1
cat >"$folder/seen.py" <<'PYTHON'
from pathlib import Path

import networkx

SWITCHES = "".join(f'{name} [shape=record, label="<p1> 1|<p2> 2"];' for name in ("leaf1", "leaf2", "spine"))


def read(*cables):
    Path("cables.dot").write_text(f"graph cabling {{ {SWITCHES} {' '.join(cables)} }}")
    network = networkx.Graph(networkx.nx_pydot.read_dot("cables.dot"))
    pieces = networkx.number_connected_components(network)
    return f"{len(network)} nodes, {pieces} pieces, degree of the spine {network.degree('spine')}"


print("ports behind names:", read("leaf1:p1 -- spine:p1;", "leaf2:p1 -- spine:p2;"))
bracketed = "{} -- spine [tailport={}, headport={}];"
print("ports in brackets:", read(bracketed.format("leaf1", "p1", "p1"), bracketed.format("leaf2", "p1", "p2")))
PYTHON
cd "$folder"
./venv/bin/python seen.py >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
ports behind names: 7 nodes, 5 pieces, degree of the spine 0
ports in brackets: 3 nodes, 1 pieces, degree of the spine 2
SEEN
