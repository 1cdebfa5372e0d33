"""Questions whose prices lie up to twelve orders of magnitude and more apart, with ties, and limits that are just met.

`python -m tests.solving.wide_prices COUNT` compares as many random answers with plain enumeration, kind by kind.
"""

import math
import random
import sys
from collections import Counter
from typing import Any

from hypothesis import Phase, given, reject, seed, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from tests.solving.drawn import by_hand
from tests.solving.fleet_oracle import enumerated
from tests.solving.test_enumeration import KINDS

PRICED = {"usd", "w", "usd_per_gpu", "w_per_gpu", "retrofit_usd_per_link"}

ASKED = ("one network", "islands", "islands that share a core", "growth", "doubts and losses")


@st.composite
def questions(draw: st.DrawFn) -> Instance:
    """A small question of some kind with wide prices."""
    asked = draw(KINDS[draw(st.sampled_from(ASKED))].questions)
    return repriced(asked, draw(st.randoms(use_true_random=False)))


def repriced(instance: Instance, rng: random.Random) -> Instance:
    """The question at other prices and watts: a few numbers from 1e-9 to 1e12, so that some are alike."""
    few = [0.0, 1.0, *(float(f"{10 ** rng.uniform(-9, 12):.{rng.choice([1, 3, 16])}g}") for _ in range(4))]

    def walked(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {inner: walked(one, inner) for inner, one in value.items()}
        if isinstance(value, list):
            return [walked(one, key) for one in value]
        return rng.choice(few) if key in PRICED and value is not None else value

    table = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    for name in ("cluster", "network", "phase"):
        if name in table:
            table[name] = walked(table[name])
    try:
        return Instance.model_validate(table)
    except ValidationError:
        reject()  # a list price may lie below those of larger quantities now


def limited(instance: Instance, plan: Plan, rng: random.Random) -> Instance | None:
    """The question with a limit that its plan just meets; None where it has no plan."""
    if plan.cost is None or not plan.cost.capex_usd > 1e-6 or not 1e-6 < plan.cost.power_w / 1e6 < 1e15:
        return None
    spent = [] if instance.phase else [("capex_usd", plan.cost.capex_usd)]
    name, used = rng.choice([*spent, ("power_mw", plan.cost.power_w / 1e6)])
    return instance.model_copy(update={"limits": instance.limits.model_copy(update={name: used})})


def fault(instance: Instance, plan: Plan, least: float, rounding: float = 0.0) -> str:
    """What is wrong with the answer, where the least value is known, some of it by rounding; empty where nothing is."""
    if math.isinf(least):
        wrong = "" if plan.status == "infeasible" else f"infeasible, answered {plan.status}"
    elif plan.status != "optimal" or plan.objective.value is None:
        wrong = f"least {least!r}, answered {plan.status} ({plan.stop_reason})"
    else:
        regret = instance.robust is not None and instance.robust.aim == "regret"
        scale = max(least, *(one.best for one in plan.couplings.turns)) if regret else least
        off = abs(plan.objective.value - least)
        wrong = "" if off <= max(rounding, 1e-12 * scale) else f"least {least!r}, answered {plan.objective.value!r}"
    refused = [check.name for check in verify(instance, plan).failures]
    return wrong or (f"refused for {', '.join(refused)}" if refused else "")


def campaign(count: int, start: int = 0) -> Counter[str]:
    """How many of so many answers are wrong, by kind of problem and fault."""
    found: Counter[str] = Counter()

    @seed(start)
    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate])
    @given(questions(), st.randoms(use_true_random=False))
    def compare(asked: Instance, rng: random.Random) -> None:
        plan = solve(asked)
        for one in (asked, limited(asked, plan, rng)):
            if one is not None:
                wrong = fault(one, plan if one is asked else solve(one), enumerated(one))
                found["wrong" if wrong else "right"] += 1
                if sum(found.values()) % 50 == 0:
                    sys.stderr.write(f"{dict(found)}\n")
                if wrong:
                    sys.stderr.write(f"{wrong} {one.model_dump_json(exclude_none=True)}\n")

    compare()
    return found


if __name__ == "__main__":
    by_hand(campaign)
