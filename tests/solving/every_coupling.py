"""Random small questions of every coupling against plain enumeration, and each plan past the verifier.

`python -m tests.solving.every_coupling COUNT [SEED]` asks until every coupling has been in that many questions, half of
them with a plan at least, and tells for each how many were right, how many truly had none, and what was wrong.
"""

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator

from hypothesis import strategies as st

from coopt.instance.schema import Instance
from coopt.instance.variants import with_scaled_bounds
from coopt.solving.answer import solve
from tests.solving.drawn import by_hand, drawn
from tests.solving.fleet_oracle import TooManyError
from tests.solving.test_enumeration import KINDS, Kind
from tests.solving.wide_prices import fault


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
def questions(draw: st.DrawFn, names: tuple[str, ...] = ()) -> tuple[Instance, Kind]:
    """A small question of one of the kinds that are named, or else of any, a fleet as often as any other; at times with
    longer bounds."""
    fleet = [name for name in KINDS if name.startswith("fleets")]
    any_kind = st.sampled_from(fleet) | st.sampled_from([name for name in KINDS if name not in fleet])
    kind = KINDS[draw(st.sampled_from(names) if names else any_kind)]
    return with_scaled_bounds(draw(kind.questions), draw(st.sampled_from([1.0, 3.0, 10.0]))), kind


def campaign(count: int, start: int = 0, batch: int = 40) -> Counter[str]:
    """How many questions of each coupling were answered right, wrong, or truly had no plan; drawn batch by batch."""
    found: Counter[str] = Counter()
    asked: dict[str, set[str]] = defaultdict(set)
    """Couplings, and the kinds of questions that have them."""
    kinds = {id(kind): name for name, kind in KINDS.items()}

    def compare(instance: Instance, kind: Kind) -> None:
        try:
            least = kind.least(instance)
        except TooManyError:
            return
        wrong = fault(instance, solve(instance), least, rounding=1e-6)
        outcome = "wrong" if wrong else "no plan" if math.isinf(least) else "right"
        for name in couplings(instance):
            asked[name].add(kinds[id(kind)])
        found.update(f"{name}: {outcome}" for name in couplings(instance))
        if wrong:
            sys.stderr.write(f"{wrong} {instance.model_dump_json(exclude_none=True)}\n")

    def enough(name: str) -> bool:
        right, none = found[f"{name}: right"], found[f"{name}: no plan"]
        return right >= count / 2 and right + none >= count

    batches = 0
    while not asked or not all(enough(name) for name in asked):
        # once couplings have been met, those that lack questions are asked for
        lacking = sorted({kind for name, some in asked.items() for kind in some if not enough(name)})
        for question in drawn(questions(tuple(lacking) if batches >= 10 else ()), batch, start):
            compare(*question)
        start, batches = start + 1, batches + 1
        sys.stderr.write(f"{dict(sorted(found.items()))}\n")
    return found


if __name__ == "__main__":
    by_hand(campaign)
