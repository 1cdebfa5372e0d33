"""Most flow between two leaves of Clos networks, by ngraph: `flows.py QUESTION ANSWER`, of links and of flows."""

import json
import sys
from pathlib import Path

from ngraph import FlowPlacement, Link, Network, Node, analyze


def most(links, source, target, placement):
    network = Network()
    leaves, cores = len(links), len(links[0])
    for name in [f"leaf{i}" for i in range(leaves)] + [f"core{m}" for m in range(cores)]:
        network.add_node(Node(name=name))
    for i, row in enumerate(links):
        for m, count in enumerate(row):
            for _ in range(count if placement is FlowPlacement.EQUAL_BALANCED else min(count, 1)):
                capacity = 1.0 if placement is FlowPlacement.EQUAL_BALANCED else float(count)
                network.add_link(Link(source=f"leaf{i}", target=f"core{m}", capacity=capacity))
    # Longer ways lead up and down again through other leaves, which no fabric routes.
    ends = f"^leaf{source}$", f"^leaf{target}$"
    (flow,) = analyze(network).max_flow(*ends, shortest_path=True, flow_placement=placement).values()
    return flow


question, answer = sys.argv[1:]
found = [
    most(one["links"], one["source"], one["target"], FlowPlacement[one["placement"]])
    for one in json.loads(Path(question).read_text("utf-8"))
]
Path(answer).write_text(json.dumps(found), "utf-8")
