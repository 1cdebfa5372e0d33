"""Random small questions of every coupling against plain enumeration, and each plan past the verifier.

`python -m tests.solving.every_coupling COUNT [SEED]` asks until every coupling has been in that many questions, half of
them with a plan at least, and tells for each how many were right, how many truly had none, and what was wrong.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from coopt.instance.schema import Instance
from coopt.solving.answer import solve
from tests.solving import fleet_oracle, growing, oracle, partition_oracle, robust_oracle
from tests.solving.fleets import JOINED, SIDES, fleets
from tests.solving.sites import oracle as site_oracle
from tests.solving.wide_prices import fault

Question = tuple[Instance, Callable[[Instance], float]]


def couplings(instance: Instance) -> Iterator[str]:
    """What ties the parts of a plan, by the words of `docs/fleets.md`."""
    sharing, robust = instance.sharing, instance.robust
    parted = sharing.mode == "partition"
    said = {
        "one network": not instance.beyond_one_network,
        "GPUs": parted,
        "power": instance.limits.power_mw is not None or bool(instance.site),
        "budget": instance.limits.capex_usd is not None,
        "racks": instance.limits.racks is not None,
        "products": parted and bool(sharing.most_products),
        "volume prices": parted and bool(sharing.discount),
        "core": sharing.core is not None,
        "sites of islands": parted and len(instance.site) > 1,
        "ring of sites": bool(instance.site) and not parted,
        "growth": bool(instance.phase),
        "worst case": robust is not None and robust.aim == "worst-case",
        "regret": robust is not None and robust.aim == "regret",
        "losses": robust is not None and bool(robust.survive),
    }
    yield from (name for name, holds in said.items() if holds)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """A small question of some kind, and the enumeration that knows its least value."""
    kind = draw(st.sampled_from(["one network", "growth", "doubt", "islands", "sites", *["fleet"] * 5]))
    if kind == "one network":
        return draw(oracle.instances()), oracle.enumerated
    if kind == "growth":
        return draw(growing.clusters()), growing.enumerated
    if kind == "doubt":
        return draw(oracle.instances()).model_copy(
            update={"robust": draw(robust_oracle.wishes())}
        ), robust_oracle.enumerated
    if kind == "islands":
        return draw(partition_oracle.partitions(core=draw(st.booleans()))), partition_oracle.enumerated
    if kind == "sites":
        return draw(site_oracle.instances()), site_oracle.enumerated
    sides = draw(st.sampled_from([(), SIDES, JOINED]))
    fleet = fleets(
        phases=(1, 1, 2, 3), sites=(0, 1, 2), cores=sides != SIDES, doubts=not sides, losses=not sides, many_sided=sides
    )
    return loosened(draw(fleet), draw(st.sampled_from([1.0, 3.0, 10.0]))), fleet_oracle.enumerated


def loosened(instance: Instance, factor: float) -> Instance:
    """The question with every bound on an iteration as many times as long."""
    table = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    named = (one for phase in table.get("phase", ()) for one in phase["workloads"])
    for bounded in (*table["workload"], *named):
        if "max_iteration_time_s" in bounded:
            bounded["max_iteration_time_s"] *= factor
    return Instance.model_validate(table)


def campaign(count: int, start: int, batch: int = 40) -> Counter[str]:
    """How many questions of each coupling were answered right, wrong, or truly had no plan; drawn batch by batch."""
    found: Counter[str] = Counter()
    asked: set[str] = set()

    def compare(question: Question) -> None:
        instance, enumerated = question
        try:
            least = enumerated(instance)
        except fleet_oracle.TooManyError:
            return
        wrong = fault(instance, solve(instance), least, rounding=1e-6)
        outcome = "wrong" if wrong else "no plan" if math.isinf(least) else "right"
        asked.update(couplings(instance))
        found.update(f"{name}: {outcome}" for name in couplings(instance))
        if wrong:
            sys.stderr.write(f"{wrong} {instance.model_dump_json(exclude_none=True)}\n")

    def enough(name: str) -> bool:
        right, none = found[f"{name}: right"], found[f"{name}: no plan"]
        return right >= count / 2 and right + none >= count

    while not asked or not all(enough(name) for name in asked):
        drawing = settings(max_examples=batch, deadline=None, database=None, phases=[Phase.generate])
        seed(start)(drawing(given(questions())(compare)))()
        start += 1_000_003
        sys.stderr.write(f"{dict(sorted(found.items()))}\n")
    return found


if __name__ == "__main__":
    told = campaign(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    sys.stdout.write("".join(f"{name}: {count}\n" for name, count in sorted(told.items())))
