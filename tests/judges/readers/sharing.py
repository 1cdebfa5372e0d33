"""When flows end that share links, by SimGrid: `sharing.py QUESTION ANSWER`, of cases, and of times (s).

Links are shared as CM02 has it, without latency and without the acknowledgements that cross the way of other flows.
"""

import json
import multiprocessing
import sys
from pathlib import Path

import simgrid

SETTINGS = (
    "network/model:CM02",
    "network/crosstraffic:0",
    "surf/precision:1e-12",
    "maxmin/precision:1e-12",
    "contexts/factory:thread",
)


def ends(case):
    """Times at which the flows of a case end; an engine is one for a process."""
    engine = simgrid.Engine(["sharing", "--log=root.threshold:critical", *(f"--cfg={one}" for one in SETTINGS)])
    zone = simgrid.NetZone.create_full_zone("all")
    links = [zone.create_link(f"link{i}", rate).set_latency(0.0).seal() for i, rate in enumerate(case["rates"])]
    found = [0.0] * len(case["flows"])

    def send(i, start, volume):
        simgrid.this_actor.sleep_until(start)
        simgrid.Mailbox.by_name(str(i)).put(i, volume)

    def receive(i):
        simgrid.Mailbox.by_name(str(i)).get()
        found[i] = simgrid.Engine.clock

    hosts = []
    for i, flow in enumerate(case["flows"]):
        pair = [zone.create_host(f"{side}{i}", 1e9).seal() for side in ("source", "target")]
        way = [simgrid.LinkInRoute(links[j]) for j in flow["links"]]
        zone.add_route(pair[0].netpoint, pair[1].netpoint, None, None, way, True)
        hosts.append(pair)
    zone.seal()
    for i, (flow, (source, target)) in enumerate(zip(case["flows"], hosts, strict=True)):
        simgrid.Actor.create(f"send{i}", source, send, i, flow["start_s"], flow["volume"])
        simgrid.Actor.create(f"receive{i}", target, receive, i)
    engine.run()
    return found


if __name__ == "__main__":
    question, answer = sys.argv[1:]
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        found = pool.map(ends, json.loads(Path(question).read_text("utf-8")), chunksize=1)
    Path(answer).write_text(json.dumps(found), "utf-8")
