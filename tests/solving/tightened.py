"""Limits and bounds that bind, in questions of every coupling: `python -m tests.solving.tightened COUNT [SEED]`.

A small question is answered, and asked again with a number that its plan does not meet: a limit a little below what the
plan takes of it, or bounds on time a little shorter than its iterations. Each answer is that of plain enumeration and
accepted by the verifier. So every option that dominance has removed is missed where another one is over a limit,
in every scenario, phase and site.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from coopt.instance.schema import Instance
from coopt.instance.variants import with_scaled_bounds
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from tests.solving.every_coupling import couplings
from tests.solving.every_coupling import questions as any_question
from tests.solving.fleet_oracle import TooManyError
from tests.solving.test_enumeration import Kind
from tests.solving.wide_prices import fault

SHORT = (1e-6, 1e-3, 0.02, 0.1, 0.3)
"""Shares by which numbers are below what a plan takes."""


def tightened(instance: Instance, plan: Plan, rng: random.Random) -> Instance | None:
    """The question with a number that its plan does not meet; None where it has no plan."""
    if plan.cost is None:
        return None
    left = 1 - rng.choice(SHORT)
    uses = {} if instance.phase else {"capex_usd": plan.cost.capex_usd}
    uses["power_mw"] = plan.cost.power_w / 1e6
    racks = [part.design.racks for part in plan.parts if part.design is not None]
    if racks and not instance.phase and None not in racks:
        uses["racks"] = sum(one or 0 for one in racks)
    if instance.asks("ring"):  # the enumeration of rings knows no other limits
        uses = {key: use for key, use in uses.items() if key == "racks"}
    name = rng.choice([*uses, "time"])
    if name == "time":
        used = max(run.iteration_time_s / run.bound_s for part in plan.parts for run in part.workloads)
        return with_scaled_bounds(instance, used * left)
    number = math.ceil(uses[name] * left) - 1 if name == "racks" else uses[name] * left
    if number <= 0:
        return None
    try:
        table = instance.model_dump(by_alias=True)
        return Instance.model_validate(table | {"limits": table["limits"] | {name: number}})
    except ValueError:
        return None  # the limit does not go with the rest


def campaign(count: int, start: int = 0) -> Counter[str]:
    """How many questions were answered right or wrong, and in how many of each coupling the number bound."""
    found: Counter[str] = Counter()

    @seed(start)
    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate])
    @given(any_question(), st.randoms(use_true_random=False))
    def compare(question: tuple[Instance, Kind], rng: random.Random) -> None:
        free, kind = question
        plan = solve(free, time_limit_s=60.0)
        instance = tightened(free, plan, rng)
        if instance is None:
            return
        try:
            least = kind.least(instance)
        except TooManyError:
            return
        wrong = fault(instance, solve(instance), least, rounding=1e-6)
        found["wrong" if wrong else "right"] += 1
        binds = math.isinf(least) or plan.objective.value is None or least > plan.objective.value * (1 + 1e-9)
        found.update(f"  {name}" for name in couplings(instance) if binds)
        found["bound"] += binds
        if wrong:
            sys.stdout.write(f"{wrong} {instance.model_dump_json(exclude_none=True)}\n")
            sys.stdout.flush()

    compare()
    return found


if __name__ == "__main__":
    told = campaign(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    sys.stdout.write("".join(f"{name}: {number}\n" for name, number in sorted(told.items())))
    sys.exit(int(told["wrong"] > 0))
