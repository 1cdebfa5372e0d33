"""Limits and bounds that bind, in questions of every coupling: `python -m tests.solving.tightened COUNT [SEED]`.

A small question is answered, and asked again with a number that its plan does not meet: a limit below what the plan
takes of it, mostly one that another plan keeps, or bounds on time shorter than its iterations. Each answer is that of
plain enumeration and accepted by the verifier. So every option that dominance has removed is missed where another one
is over a limit, in every scenario, phase and site.
"""

import math
import random
import sys
from collections import Counter

from coopt.instance.schema import Instance
from coopt.instance.variants import with_scaled_bounds
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from tests.solving.drawn import by_hand, drawn
from tests.solving.every_coupling import couplings
from tests.solving.every_coupling import questions as any_question
from tests.solving.fleet_oracle import TooManyError
from tests.solving.wide_prices import fault

SHORT = (1e-9, 1e-6, 1e-3, 0.02, 0.1, 0.3)
"""Shares by which numbers are below what a plan takes."""
BETWEEN = (0.0, 0.2, 0.5, 0.9)
"""Where they are between the least that any plan takes and what this one does."""
MEASURES = {"capex_usd": "capex", "power_mw": "power"}


def tightened(instance: Instance, plan: Plan, rng: random.Random) -> Instance | None:
    """The question with a number that its plan does not meet, and another one does where that is known; None where it
    has no plan."""
    if plan.cost is None:
        return None
    uses = {"power_mw": _use(plan, "power_mw")} | ({} if instance.phase else {"capex_usd": _use(plan, "capex_usd")})
    racks = [part.design.racks for part in plan.parts if part.design is not None]
    if racks and not instance.phase and None not in racks:
        uses["racks"] = sum(one or 0 for one in racks)
    name, left = rng.choice([*uses, "time"]), 1 - rng.choice(SHORT)
    if name != "time":
        number = uses[name] * left
        if name == "racks":
            number = math.ceil(number) - 1
        elif rng.random() < 0.8 and instance.robust is None:
            number = _least(instance, name) * (1 + 1e-9)
            number += rng.choice(BETWEEN) * (uses[name] - number)
        if 0 < number < uses[name]:
            return _changed(instance, limits={name: number})
    used = max(run.iteration_time_s / run.bound_s for part in plan.parts for run in part.workloads)
    return with_scaled_bounds(instance, used * left)


def _changed(instance: Instance, **tables: dict[str, object]) -> Instance | None:
    """The question with other keys in its tables; None where they do not go with the rest."""
    table = instance.model_dump(by_alias=True)
    try:
        return Instance.model_validate(table | {name: table[name] | keys for name, keys in tables.items()})
    except ValueError:
        return None


def _use(plan: Plan, name: str) -> float:
    assert plan.cost is not None
    return plan.cost.capex_usd if name == "capex_usd" else plan.cost.power_w / 1e6


def _least(instance: Instance, name: str) -> float:
    """The least that any plan takes; 0 where that may not be asked."""
    asked = _changed(instance, objective={"minimize": MEASURES[name]})
    plan = None if asked is None else solve(asked)
    return 0.0 if plan is None or plan.cost is None else _use(plan, name)


def campaign(count: int, start: int = 0) -> Counter[str]:
    """How many questions were answered right or wrong, and in how many of each coupling the number bound."""
    found: Counter[str] = Counter()

    for number, (free, kind) in enumerate(drawn(any_question(), count, start)):
        plan = solve(free, time_limit_s=60.0)
        instance = tightened(free, plan, random.Random(number))
        if instance is None:
            continue
        try:
            least = kind.least(instance)
        except TooManyError:
            continue
        wrong = fault(instance, solve(instance), least, rounding=1e-6)
        found["wrong" if wrong else "right"] += 1
        binds = math.isinf(least) or plan.objective.value is None or least > plan.objective.value * (1 + 1e-9)
        found.update(f"  {name}" for name in couplings(instance) if binds)
        found["bound"] += binds
        found["bound, with a plan"] += binds and math.isfinite(least)
        if wrong:
            sys.stdout.write(f"{wrong} {instance.model_dump_json(exclude_none=True)}\n")
            sys.stdout.flush()
    return found


if __name__ == "__main__":
    by_hand(campaign)
