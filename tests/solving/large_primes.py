"""Batches and numbers of GPUs with large prime factors, run by hand: `python -m tests.solving.large_primes COUNT`.

A plan that is more than 5% slower than with the best batch within 2%, or with the best number with up to a quarter of
the GPUs idle, at no more money, has to say so: with both numbers and the key; so has an answer that there is none. What
is best is searched here with that key on, over all networks.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.report.suggestions import other_numbers
from coopt.report.words import count as counted
from coopt.solving.divisibility import fastest_runs
from tests.solving.drawn import by_hand

SERVERS = (
    ("h100-sxm", "hgx-h100-8", 8),
    ("h200", "hgx-h200-8", 8),
    ("b200", "hgx-b200-8", 8),
    ("gb200", "gb200-nvl72", 72),
)
PRIMES = (5, 7, 11, 13, 17, 19, 23, 29, 31)
SLOWER = 0.05
MODELS = ("llama3-8b", "llama3-70b", "llama3-405b", "mixtral-8x7b", "deepseek-v3")
KEYS = ("batch_tolerance", "cluster.idle_gpus")


def questions(seed: int, *, small: bool) -> Iterator[Instance]:
    """The fastest plan, or the cheapest within what the fastest takes and a little more, without end; small ones of the
    first model and server alone."""
    random = Random(seed)
    while True:
        gpu, hb, size = random.choice(SERVERS[: 1 if small else None])
        gpus = size * random.choice(PRIMES) * 2 ** random.randrange(1 if small else 5 if size == 8 else 2)
        batch = random.choice(PRIMES) * 2 ** max(0, (gpus // 16).bit_length() + random.randrange(-2, 2))
        workload = {
            "name": "w", "model": random.choice(MODELS[: 1 if small else None]),
            "precision": random.choice(("bf16", "fp8")), "global_batch": batch, "train_tokens": 1e13,
        }  # fmt: skip
        network = {
            "hb_domains": hb,
            "fabrics": random.choice((["rail-only"], ["rail-only", "clos"], ["rail-optimized", "rail-only"])),
            "nics": "cx7-400g", "switches": random.choice((["qm9700"], ["64x400g", "qm9700"])),
            "optics": ["400g-sr4", "400g-dr4", "400g-fr4"], "oversubscription": random.choice((1.0, 2.0, 4.0)),
        }  # fmt: skip
        table: dict[str, Any] = {"schema": 1, "name": "primes", "cluster": {"gpu": gpu, "gpus": gpus}}
        table |= {"workload": [workload], "network": network, "objective": {"minimize": "time"}}
        fastest, room = Instance.model_validate(table), random.choice((None, 1.02, 1.1, 1.5))
        if room is not None:
            plan = coopt.solve(fastest, reasons=False)
            if plan.objective.value is None:
                continue
            days = fastest.workload[0].days(plan.objective.value) * room * (1 + fastest.workload[0].time_margin)
            table = table | {"workload": [workload | {"train_days": days}], "objective": {"minimize": "capex"}}
        yield Instance.model_validate(table)


def with_key(instance: Instance, key: str, plan: Plan) -> Plan:
    """The fastest plan with a key on, at no more money than a plan takes."""
    table = instance.model_dump(by_alias=True, exclude_unset=True)
    if key == "batch_tolerance":
        table["workload"][0][key] = 0.02
    else:
        table["cluster"]["idle_gpus"] = True
    if table["objective"]["minimize"] == "capex":
        table["limits"] = {"capex_usd": plan.objective.value}
        table["objective"] = table["objective"] | {"minimize": "time"}
    return coopt.solve(Instance.model_validate(table), reasons=False)


def with_all_said(instance: Instance, plan: Plan) -> float:
    """The least time for a sequence (s) with what a plan has or its first screen says of other numbers; 0 where that
    lacks a number or the key."""
    (run,), (workload,) = fastest_runs(plan), instance.workload
    screen = " ".join(other_numbers(instance, plan))
    least_s = run.iteration_time_s / workload.global_batch
    for better in plan.better_numbers:
        batch = better.value if better.key.endswith("batch_tolerance") else workload.global_batch
        least_s = min(least_s, better.iteration_time_s / batch)
        if not all(part in screen for part in (f"{better.key} = ", counted(better.now), counted(better.value))):
            return 0.0
    return least_s


def verdict(instance: Instance, plan: Plan, key: str) -> str:
    """What an answer is beside the best one with a key on."""
    best = with_key(instance, key, plan)
    if best.objective.value is None:
        return "right, no plan either"
    if plan.objective.value is None:
        return "right, said" if any(f"{key} = " in sentence for sentence in plan.explanation) else "wrong, not said"
    sequence_s = best.objective.value / best.chosen.global_batch.get("w", instance.workload[0].global_batch)
    own_s = min(run.iteration_time_s for run in fastest_runs(plan)) / instance.workload[0].global_batch
    said_s = with_all_said(instance, plan)
    if sequence_s < said_s * (1 - SLOWER) or said_s == 0:
        return f"wrong, {1 - sequence_s / own_s:.3f}"
    return "right, said" if sequence_s < own_s * (1 - SLOWER) else "right, none better"


def campaign(count: int, seed: int = 0, *, small: bool = False) -> Counter[str]:
    """How many answers are nearly the best, say that they are not, and do neither."""
    found: Counter[str] = Counter()
    for _, instance in zip(range(count), questions(seed, small=small), strict=False):
        plan = coopt.assess(instance, coopt.solve(instance))
        assert coopt.verify(instance, plan).accepted
        for key in KEYS:
            said = verdict(instance, plan, key)
            found[f"{key}: {said}"] += 1
            if "wrong" in said:
                table = instance.model_dump_json(by_alias=True, exclude_unset=True)
                sys.stdout.write(f"{key}: {said}: {plan.explanation} {table}\n")
    return found


if __name__ == "__main__":
    by_hand(campaign)
