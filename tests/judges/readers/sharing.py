"""When flows end that share links, by SimGrid: `sharing.py QUESTION ANSWER`, of cases, and of times (s).

Links are shared as CM02 has it, without latency and without the acknowledgements that cross the way of other flows.
"""

import ctypes
import json
import multiprocessing
import sys
import sysconfig
from pathlib import Path

# Its wheel has the library beside the module, which does not look there.
ctypes.CDLL(str(Path(sysconfig.get_path("platlib"), "libsimgrid.so.4.1")))

import simgrid  # noqa: E402

SETTINGS = (
    "network/model:CM02",
    "network/crosstraffic:0",
    "precision/timing:1e-12",
    "precision/work-amount:1e-12",
    "contexts/factory:thread",
)


def ends(case):
    """Times at which the flows of a case end; an engine is one for a process."""
    engine = simgrid.Engine(["sharing", "--log=root.threshold:critical", *(f"--cfg={one}" for one in SETTINGS)])
    zone = engine.netzone_root.add_netzone_full("all")
    links = [zone.add_link(f"link{i}", rate).set_latency(0.0).seal() for i, rate in enumerate(case["rates"])]
    found = [0.0] * len(case["flows"])

    def send(i, start, volume):
        simgrid.this_actor.sleep_until(start)
        simgrid.Mailbox.by_name(str(i)).put(i, volume)

    def receive(i):
        simgrid.Mailbox.by_name(str(i)).get()
        found[i] = simgrid.Engine.clock

    hosts = []
    for i, flow in enumerate(case["flows"]):
        pair = [zone.add_host(f"{side}{i}", 1e9).seal() for side in ("source", "target")]
        way = [simgrid.LinkInRoute(links[j]) for j in flow["links"]]
        zone.add_route(*pair, way, True)
        hosts.append(pair)
    zone.seal()
    for i, (flow, (source, target)) in enumerate(zip(case["flows"], hosts, strict=True)):
        source.add_actor(f"send{i}", send, i, flow["start_s"], flow["volume"])
        target.add_actor(f"receive{i}", receive, i)
    engine.run()
    return found


if __name__ == "__main__":
    question, answer = sys.argv[1:]
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        found = pool.map(ends, json.loads(Path(question).read_text("utf-8")), chunksize=1)
    Path(answer).write_text(json.dumps(found), "utf-8")
