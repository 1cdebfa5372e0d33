#!/usr/bin/env bash
# igraph refuses a network that networkx wrote, once a rate in it is no whole number.
#
# Versions   networkx==3.6.1 (writes GraphML), igraph==1.0.0 (reads it)
# Expected   Links of 400 and of 12.5 Gbit/s are read back with their rates, as whole numbers alone are.
# Behaviour  networkx declares an attribute once for each Python type that its values have: two keys named rate, a long
#            and a double. igraph refuses the second; networkx reads its own file. With
#            infer_numeric_types=True it declares one double, and both read it.
# Output seen
#   400 and 800: igraph [400.0, 800.0]
#   400 and 12.5: igraph InternalError, Duplicate attribute name found: 'rate'
#   400 and 12.5, read by networkx: [400, 12.5]
#   400 and 12.5, infer_numeric_types: igraph [400.0, 12.5]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check networkx==3.6.1 igraph==1.0.0
cat >"$folder/seen.py" <<'PYTHON'
import igraph
import networkx


def written(*rates, **options):
    network = networkx.Graph()
    for at, rate in enumerate(rates):
        network.add_edge(f"leaf{at}", "spine", rate=rate)
    networkx.write_graphml(network, "network.graphml", **options)


def by_igraph():
    try:
        return igraph.Graph.Read_GraphML("network.graphml").es["rate"]
    except igraph.InternalError as error:
        return f"InternalError, {str(error).partition(': ')[2].partition(' (')[0]}"


written(400, 800)
print("400 and 800: igraph", by_igraph())
written(400, 12.5)
print("400 and 12.5: igraph", by_igraph())
rates = networkx.read_graphml("network.graphml").edges(data="rate")
print("400 and 12.5, read by networkx:", [rate for *_, rate in rates])
written(400, 12.5, infer_numeric_types=True)
print("400 and 12.5, infer_numeric_types: igraph", by_igraph())
PYTHON
cd "$folder"
./venv/bin/python seen.py >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
400 and 800: igraph [400.0, 800.0]
400 and 12.5: igraph InternalError, Duplicate attribute name found: 'rate'
400 and 12.5, read by networkx: [400, 12.5]
400 and 12.5, infer_numeric_types: igraph [400.0, 12.5]
SEEN
