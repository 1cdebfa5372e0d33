"""Networks of plans in other libraries of graphs, and flows on Clos networks in ngraph."""

from __future__ import annotations

import math
from functools import partial
from random import Random

import numpy as np

from coopt.network.routing.layers import TwoLayer, spread_loads, striped_clos
from tests.judges.exports import MOST_NODES, drawn, exported
from tests.judges.judge import Bench, Judge, agree, js_answers

NETWORKS = 30


def _same_graph(bench: Bench, library: str) -> str:
    files = exported("graphml", False)
    answers = bench.answers("graphs", library, question=[str(file.path) for file in files])
    faults = []
    for file, said in zip(files, answers, strict=True):
        expected = drawn(file)
        counts = all(said[name] == expected[name] for name in ("kinds", "edges"))
        if not counts or not math.isclose(said["gbit_s"], expected["gbit_s"], rel_tol=1e-12):
            faults.append(f"{file.case.name}: {said} for {expected}")
    return agree(faults, len(files), "networks")


def _laid_out(bench: Bench) -> str:
    files = [file for file in exported("dot", False) if sum(drawn(file)["kinds"].values()) <= MOST_NODES]
    answers = js_answers(bench, "dots", [str(file.path) for file in files])
    faults = []
    for file, said in zip(files, answers, strict=True):
        expected = {"nodes": sum(drawn(file)["kinds"].values()), "edges": drawn(file)["edges"]}
        if said != expected:
            faults.append(f"{file.case.name}: {said} for {expected}")
    return agree(faults, len(files), "networks")


def _most_flow(bench: Bench) -> str:
    """One flow of which coopt spreads 1/alpha: what the fullest bundle lets through."""
    random, questions, expected = Random(0), [], []
    for _ in range(NETWORKS):
        leaves, cores = random.randrange(2, 7), random.randrange(1, 7)
        uneven = TwoLayer(links=np.array([[random.randrange(1, 5) for _ in range(cores)] for _ in range(leaves)]))
        even = striped_clos(leaves, cores * random.randrange(1, 4), cores)
        for clos, placement in ((uneven, "PROPORTIONAL"), (even, "EQUAL_BALANCED")):
            source, target = random.sample(range(leaves), 2)
            loads = spread_loads(clos, np.array([source]), np.array([target]), np.array([1.0]))
            fullest = max(float((side / clos.links).max()) for side in (loads.up, loads.down))
            questions.append({"links": clos.links.tolist(), "source": source, "target": target, "placement": placement})
            expected.append(1.0 / fullest)
    answers = bench.answers("flows", question=questions)
    faults = [
        f"{asked}: {said!r} for {value!r}"
        for asked, said, value in zip(questions, answers, expected, strict=True)
        if not math.isclose(said, value, rel_tol=1e-9)
    ]
    return agree(faults, len(questions), "most flows")


JUDGES = (
    Judge(
        program="networkx",
        judged="GraphML",
        packages=("networkx==3.6.1",),
        read=partial(_same_graph, library="networkx"),
    ),
    Judge(program="igraph", judged="GraphML", packages=("igraph==1.0.0",), read=partial(_same_graph, library="igraph")),
    Judge(
        program="Graphviz (in WebAssembly)",
        judged="DOT",
        packages=("@hpcc-js/wasm-graphviz@1.29.2",),
        registry="npm",
        read=_laid_out,
    ),
    Judge(
        program="ngraph",
        judged="spread of `coopt route` (WCMP, ECMP) by maximum flow",
        packages=("ngraph==0.24.1",),
        read=_most_flow,
        may_be_skipped=False,
    ),
)
