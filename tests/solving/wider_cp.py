"""Degrees of CP that a question leaves out, run by hand: `python -m tests.solving.wider_cp COUNT [SEED]`.

An answer called the fastest is none where a wider list of degrees has a faster plan. Random questions over the models
of the catalog, with short and long sequences and with more GPUs than sequences of a batch.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

from coopt.instance.catalog import entries
from coopt.instance.schema import Instance
from coopt.solving.answer import solve
from tests.solving.drawn import by_hand

EVERY = [2**power for power in range(11)]
SEQUENCES = (4096, 8192, 32_768, 65_536, 131_072, 200_000, 262_144, 524_288, 1_048_576)


def questions(seed: int) -> Iterator[dict[str, Any]]:
    """Fastest mappings on a few islands, without end."""
    random, names = Random(seed), sorted(entries("model"))
    while True:
        model = entries("model")[random.choice(names)].model_dump(exclude_none=True, exclude={"sources"})
        gpus = random.choice((64, 128, 256, 512, 1024))
        workload = {
            "name": "w",
            "model": model | {"seq": random.choice(SEQUENCES)},
            "global_batch": max(1, gpus // random.choice((1, 2, 4, 16, 64, 256))),
            "mapping": {"zero": [1], "interleave": [1], "recompute": ["none", "full"]},
        }
        yield {
            "schema": 1, "name": "cp", "margin": "none",
            "cluster": {"gpu": random.choice(("h100-sxm", "b200", "gb200")), "gpus": gpus}, "workload": workload,
            "objective": {"minimize": "time"},
            "network": {
                **{"hb_domains": {"name": "h", "size": 8, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0}},
                **{"fabrics": "rail-only", "nics": "cx7-400g", "switches": "64x400g", "optics": "400g-199"},
            },
        }  # fmt: skip


def fastest_s(table: dict[str, Any], cp: list[int] | None = None) -> tuple[float, int]:
    """The shortest iteration of a question and its CP; infinite without a plan."""
    workload = table["workload"]
    mapping = workload["mapping"] | ({"cp": cp} if cp else {})
    plan = solve(Instance.model_validate(table | {"workload": workload | {"mapping": mapping}}))
    if plan.objective.value is None:
        assert plan.status == "infeasible", plan.stop_reason
        return math.inf, 0
    return plan.objective.value, plan.parts[0].workloads[0].mapping.cp


def campaign(count: int, seed: int = 0) -> Counter[str]:
    """How many answers a wider list beats, and does not."""
    found: Counter[str] = Counter()
    for _, table in zip(range(count), questions(seed), strict=False):
        (usual, cp), (wider, wide) = fastest_s(table), fastest_s(table, EVERY)
        beaten = wider < usual * (1 - 1e-9)
        found["wrong" if beaten else "right, none" if math.isinf(usual) else f"right, cp = {cp}"] += 1
        if beaten:
            workload = table["workload"]
            said = workload["model"]["name"], workload["model"]["seq"], workload["global_batch"], table["cluster"]
            sys.stdout.write(f"wrong: {usual} with cp = {cp}, {wider} with cp = {wide}: {said}\n")
    return found


if __name__ == "__main__":
    by_hand(campaign)
