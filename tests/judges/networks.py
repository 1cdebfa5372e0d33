"""Networks of plans in other libraries of graphs, and flows on Clos networks in ngraph."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import islice
from random import Random

import numpy as np

from coopt import InstanceError
from coopt.network.cabling import Cable
from coopt.network.plan_cabling import cables_of_plan
from coopt.network.routing.layers import TwoLayer, spread_loads, striped_clos
from coopt.report.cabling import cabling_text
from tests.judges.exports import MOST_NODES, drawn, exported
from tests.judges.judge import Bench, Judge, agree, js_answers
from tests.judges.plans import cases

NETWORKS = 30
CABLED, MOST_CABLES = 10, 24  # lists that NetBox imports, at some 0.3 s a cable


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


def _lists() -> Iterator[tuple[str, list[Cable], dict[str, str]]]:
    """Names, cables and the three lists of parts of plans with few cables."""
    for case in cases():
        for part in case.parts:
            try:
                cables = list(cables_of_plan(case.instance, case.plan, part))
            except InstanceError:
                continue  # links into a shared core, which are in no list
            if 0 < len(cables) <= MOST_CABLES:
                forms = ("devices", "interfaces", "cables")
                texts = {form: cabling_text(case.instance, case.plan, f"netbox-{form}", part) for form in forms}
                yield f"{case.name} {part}", cables, texts


def _imported(bench: Bench) -> str:
    """NetBox takes the lists, and then has the devices, rates and cables of the plan."""
    listed = list(islice(_lists(), CABLED))
    answers = bench.answers("netbox", str(bench.source), question=[texts for *_, texts in listed])
    faults = []
    for (name, cables, _), said in zip(listed, answers, strict=True):
        ends = [end for cable in cables for end in (cable.lower, cable.upper)]
        expected = [
            [cable.label, *([end.device, end.port] for end in (cable.lower, cable.upper)), cable.length_m]
            for cable in cables
        ]
        speeds = sorted(round(cable.gbit_s * 1e6) for cable in cables for _ in "ab")  # kbit/s
        same = sorted(said["cables"]) == sorted(expected) and said["speeds"] == speeds
        if said["faults"] or not same or said["devices"] != len({end.device for end in ends}):
            faults.append(f"{name}: {'; '.join(said['faults'][:2]) or 'other cables'}")
    return agree(faults, len(listed), "networks")


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
    Judge(
        program="NetBox",
        judged="lists of `coopt cabling`: devices, interfaces and cables by the forms of its import pages",
        packages=("netbox-community/netbox@v4.6.8",),
        dependencies=("psycopg[binary,pool]==3.3.4",),
        registry="GitHub",
        system=("postgresql",),
        newest_python=True,
        read=_imported,
    ),
)
