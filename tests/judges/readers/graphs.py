"""What a library makes of GraphML: `graphs.py LIBRARY QUESTION ANSWER`, of paths, and of nodes and edges."""

import json
import sys
from pathlib import Path


def networkx(path):
    import networkx

    graph = networkx.read_graphml(path)
    kinds = [kind for _, kind in graph.nodes(data="kind")]
    edges = [(data["links"], data["gbit_s"]) for _, _, data in graph.edges(data=True)]
    return kinds, edges


def igraph(path):
    import igraph

    graph = igraph.Graph.Read_GraphML(path)
    return graph.vs["kind"], list(zip(graph.es["links"], graph.es["gbit_s"], strict=True))


def sums(kinds, edges):
    counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
    return {"kinds": counts, "edges": len(edges), "gbit_s": sum(links * gbit_s for links, gbit_s in edges)}


library, question, answer = sys.argv[1:]
paths = json.loads(Path(question).read_text("utf-8"))
Path(answer).write_text(json.dumps([sums(*globals()[library](path)) for path in paths]), "utf-8")
