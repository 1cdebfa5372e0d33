"""Answers that fit their question in every number and are not true of it: those of another one, dressed as its own.

`python -m tests.verifier.lies COUNT` tells how many lies are taken for proven, and how many honest plans are refused.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pydantic import ValidationError

from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from tests.verifier.kinds import KINDS

ASKED = ("shared", "partition", "phased", "robust", "regret", "fleet")
SAME = 1e-12  # of a value: nearer ones are one value, and claiming it is no lie
LISTS = ("hb_domains", "fabrics", "nics", "switches", "optics", "nics_per_gpu", "oversubscription")
Table = dict[str, Any]


class Lie(NamedTuple):
    """A question, an answer that is not true of it, and where it comes from."""

    instance: Instance
    plan: Plan
    source: str


def table_of(instance: Instance) -> Table:
    """The question as one writes it."""
    return instance.model_dump(mode="json", by_alias=True, exclude_none=True)


def varied(instance: Instance, rng: random.Random) -> Instance:
    """The question with other prices, bounds, objective, and a bound that its best plan just meets now and then."""
    table = table_of(instance)
    for key in ("nics", "switches", "optics"):
        for product in table["network"].get(key, ()):
            product["usd"] = round(product["usd"] * rng.uniform(0.3, 3.0), rng.choice([0, 2, 9]))
    _at_bounds(table, rng.choice([1.0, rng.uniform(0.8, 2.0)]))
    if not (instance.phase or instance.robust):
        table["objective"]["minimize"] = rng.choice(["capex", "power", "tco"])
    asked = Instance.model_validate(table)
    if rng.random() < 0.3 and asked.problem in ("shared", "robust"):
        plan = solve(asked)
        for workload, run in zip(table["workload"], plan.workloads, strict=False):
            workload["max_iteration_time_s"] = run.iteration_time_s
    return Instance.model_validate(table)


def _at_bounds(table: Table, factor: float) -> None:
    for workload in (*table["workload"], *(one for phase in table.get("phase", ()) for one in phase["workloads"])):
        if "max_iteration_time_s" in workload:
            workload["max_iteration_time_s"] *= factor


def restricted(table: Table, rng: random.Random) -> None:
    """Less to choose from."""
    listed = {key: table["network"].get(key) for key in LISTS}
    several = [key for key, values in listed.items() if isinstance(values, list) and len(values) > 1]
    key = rng.choice(several)
    table["network"][key].pop(rng.randrange(len(table["network"][key])))


def tightened(table: Table, rng: random.Random) -> None:
    """Less time."""
    _at_bounds(table, 1 - 10 ** rng.uniform(-13, -0.3))


def relaxed(table: Table, rng: random.Random) -> None:
    """More time."""
    _at_bounds(table, 1 + 10 ** rng.uniform(-8, 0))


def swapped(table: Table, rng: random.Random) -> None:
    """Another objective."""
    table["objective"]["minimize"] = rng.choice(
        [kind for kind in ("capex", "power", "tco") if kind != table["objective"]["minimize"]]
    )


CHANGES: tuple[Callable[[Table, random.Random], None], ...] = (restricted, tightened, relaxed, swapped)


def dressed(instance: Instance, plan: Plan) -> Plan:
    """The plan as an answer to a question, with its bounds, its objective, and nothing said of another."""
    table = plan.model_dump(mode="json", by_alias=True)
    table["instance"] = {"name": instance.name, "sha256": instance.sha256}
    table["overrides"] = {}
    kind = instance.objective.minimize
    if plan.objective.kind != kind and plan.cost is not None and plan.status == "optimal":
        value = {"capex": plan.cost.capex_usd, "power": plan.cost.power_w, "tco": plan.cost.tco_usd}[kind]
        table["objective"] |= {"kind": kind, "value": value, "bound": value, "gap": 0.0}
    table["objective"]["kind"] = kind
    bounds = {workload.name: workload.bound_s for workload in instance.workload}
    for runs in (table["workloads"], *(part["workloads"] for part in table["parts"])):
        for run in runs:
            run["bound_s"] = bounds.get(run["name"], run["bound_s"])
    return Plan.model_validate(table)


def lies(rng: random.Random, honest: list[tuple[Instance, Plan]]) -> Iterator[Lie]:
    """Lies without end; the true answers met on the way are added to `honest`."""
    bases = [KINDS[kind]() for kind in ASKED]
    while True:
        base = rng.choice(bases)
        try:
            instance = varied(base, rng)
            truth = solve(instance)
            honest.append((instance, truth))
            for change in rng.sample(CHANGES, len(CHANGES)):
                table = table_of(instance)
                change(table, rng)
                answer = solve(Instance.model_validate(table))
                if answer.status in ("optimal", "infeasible") and _differs(instance, truth, dressed(instance, answer)):
                    yield Lie(instance, dressed(instance, answer), f"{instance.problem}, {change.__name__}")
        except (ValidationError, InstanceError, IndexError):
            continue  # no such question


def _differs(instance: Instance, truth: Plan, claim: Plan) -> bool:
    """Whether a claim is of another value than the truth, or that there is none."""
    if truth.status not in ("optimal", "infeasible"):
        return False
    value, best = claim.objective.value, truth.objective.value
    if value is None or best is None:
        return value is not best
    regret = instance.robust is not None and instance.robust.aim == "regret"
    scale = max(turn.value for turn in truth.robust.turns) if regret and truth.robust else abs(best)
    return abs(value - best) > SAME * scale


def campaign(count: int, start: int) -> Counter[str]:
    """What becomes of so many lies, and of the true answers to their questions."""
    honest: list[tuple[Instance, Plan]] = []
    found: Counter[str] = Counter()
    told = lies(random.Random(start), honest)
    judged = 0
    for lie in (next(told) for _ in range(count)):
        verdict = verify(lie.instance, lie.plan)
        word = "refused" if not verdict.accepted else "undecided" if verdict.on_trust else "taken for proven"
        found[f"lies {word}"] += 1
        if word == "taken for proven":
            sys.stderr.write(
                f"LIE {lie.source}: {lie.plan.objective} {lie.instance.model_dump_json(exclude_none=True)}\n"
            )
        while judged < min(len(honest), count):
            instance, truth = honest[judged]
            judged += 1
            answer = verify(instance, truth)
            found[f"honest plans {'accepted' if answer.accepted else 'refused'}"] += 1
            if not answer.accepted:
                names = [check.name for check in answer.failures]
                sys.stderr.write(f"HONEST {names} {instance.model_dump_json(exclude_none=True)}\n")
        if sum(found.values()) % 50 < 3:
            sys.stderr.write(f"{dict(found)}\n")
    return found


if __name__ == "__main__":
    sys.stdout.write(f"{campaign(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)}\n")
