"""Flows that share links: SimGrid has them end when coopt's event engine does."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from coopt.verifier.simulation.events import EventClock, FairRates, Flow
from tests.judges.judge import Bench, Judge, agree

CASES = 30
SAME = 1e-9


def drawn(random: Random) -> dict[str, Any]:
    """A few links of different rates (byte/s), and flows over some of them that start one after the other."""
    rates = [random.choice((1.0, 2.5, 4.0, 10.0)) * 1e9 for _ in range(random.randrange(2, 8))]
    flows = [
        {
            "links": sorted(random.sample(range(len(rates)), random.randrange(1, min(len(rates), 4) + 1))),
            "start_s": random.choice((0.0, random.uniform(0.0, 3.0))),
            "volume": random.randrange(10**8, 10**10),
        }
        for _ in range(random.randrange(2, 25))
    ]
    return {"rates": rates, "flows": flows}


def ends(case: dict[str, Any]) -> list[float]:
    """When each flow ends, as coopt simulates it (s)."""
    numbers = [str(i) for i in range(len(case["flows"]))]
    uses = [{link: 1.0 / case["rates"][link] for link in flow["links"]} for flow in case["flows"]]
    clock = EventClock(FairRates([Flow(number, 1.0, each) for number, each in zip(numbers, uses, strict=True)]))
    found: dict[str, float] = {}

    def start(number: str, volume: float) -> None:
        clock.transfer(number, volume, lambda: found.__setitem__(number, clock.now))

    for number, flow in zip(numbers, case["flows"], strict=True):
        clock.after(flow["start_s"], lambda number=number, volume=flow["volume"]: start(number, float(volume)))
    clock.run()
    return [found[number] for number in numbers]


def _shared(bench: Bench) -> str:
    random = Random(0)
    asked = [drawn(random) for _ in range(CASES)]
    pairs = list(zip(asked, bench.answers("sharing", question=asked), strict=True))
    errors = [max(abs(a / b - 1.0) for a, b in zip(said, ends(case), strict=True)) for case, said in pairs]
    faults = [f"case {i}: {error:.1e}" for i, error in enumerate(errors) if not error <= SAME or math.isnan(error)]
    return agree(faults, CASES, "cases") + f" to {max(errors):.0e}"


JUDGES = (
    Judge(
        program="SimGrid",
        judged="shares of links in simulations (CM02)",
        packages=("simgrid==4.1",),
        dependencies=("pybind11==2.13.6", "setuptools==84.2.1", "wheel==0.48.0"),  # not pybind11 3
        system=("cmake", "g++", "libboost-dev", "python3-dev"),
        built=True,
        read=_shared,
    ),
)
