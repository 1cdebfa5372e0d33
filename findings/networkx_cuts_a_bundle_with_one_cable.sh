#!/usr/bin/env bash
# networkx cuts a bundle of four cables with one of them, and asks for more cuts than switches of the whole network.
#
# Versions   networkx==3.6.1; igraph==1.0.0 and scipy==1.17.1 beside it
# Expected   Three switches, each pair joined by four cables, as a MultiGraph: eight cables separate a switch from the
#            others, two switches are the most that can fail. Or a MultiGraph is refused, as maximum_flow does.
# Behaviour  Between two nodes, and for the cut itself, parallel edges are one: edge_connectivity(network, a, b) is 2,
#            edge_disjoint_paths finds 2, and the two cables of minimum_edge_cut leave the network in one piece. Over the
#            whole network the same functions start from the degree, which counts every cable: 8 cables, and 8 of 3
#            nodes. Nothing is said. Counted as igraph or a flow with summed capacities does, it is 8 and 2.
# Output seen
#   networkx: 8 cables in all, 2 between a and b, 2 disjoint paths, 8 of 3 nodes
#   networkx: pieces without the 2 cables of the least cut: 1
#   igraph: 8 cables in all, 8 between a and b, 2 of 3 nodes
#   networkx, summed capacities: 8
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  networkx==3.6.1 igraph==1.0.0 scipy==1.17.1
cat >"$folder/seen.py" <<'PYTHON'
import igraph
import networkx

CABLES = [pair for pair in ((0, 1), (1, 2), (2, 0)) for _ in range(4)]
network = networkx.MultiGraph(CABLES)
paths = len(list(networkx.edge_disjoint_paths(network, 0, 1)))
print(
    f"networkx: {networkx.edge_connectivity(network)} cables in all, "
    f"{networkx.edge_connectivity(network, 0, 1)} between a and b, {paths} disjoint paths, "
    f"{networkx.node_connectivity(network)} of 3 nodes"
)
cut = networkx.minimum_edge_cut(network)
left = network.copy()
left.remove_edges_from(cut)
print(
    f"networkx: pieces without the {len(cut)} cables of the least cut:",
    networkx.number_connected_components(left),
)
other = igraph.Graph(CABLES)
print(
    f"igraph: {other.edge_connectivity()} cables in all, {other.edge_connectivity(0, 1)} between a and b, "
    f"{other.vertex_connectivity()} of 3 nodes"
)
summed = networkx.Graph()
summed.add_edges_from(set(CABLES), capacity=4)
print("networkx, summed capacities:", networkx.maximum_flow_value(summed, 0, 1))
PYTHON
cd "$folder"
./venv/bin/python seen.py >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
networkx: 8 cables in all, 2 between a and b, 2 disjoint paths, 8 of 3 nodes
networkx: pieces without the 2 cables of the least cut: 1
igraph: 8 cables in all, 8 between a and b, 2 of 3 nodes
networkx, summed capacities: 8
SEEN
