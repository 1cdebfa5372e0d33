"""The cheapest way to grow on one network, when the fewest uplinks of every phase are known."""

from __future__ import annotations

import math
from collections.abc import Sequence

from coopt.instance.schema import Instance, ObjectiveKind
from coopt.verifier.parts import bill
from coopt.verifier.phased.spending import electricity_usd, links_per_uplink, price_factor
from coopt.verifier.phased.stages import Path


def least_value(instance: Instance, kind: ObjectiveKind, path: Path, allowed: Sequence[Sequence[int]]) -> float:
    """Least objective over uplinks that never fall, each phase's among those `allowed`; infinite where there are none.

    A unit that a phase adds costs the least price so far, so what a phase has in place is charged that price and
    credited the one of the next phase. Adding links costs labour, in proportion to what is added.
    """
    best: dict[int, float] = {}
    for t, choices in enumerate(allowed):
        arrive = _arriving(instance, path, t, best, choices) if t else dict.fromkeys(choices, 0.0)
        best = {uplinks: _standing(instance, kind, path, t, uplinks) + value for uplinks, value in arrive.items()}
    return min(best.values(), default=math.inf)


def _arriving(
    instance: Instance, path: Path, t: int, best: dict[int, float], choices: Sequence[int]
) -> dict[int, float]:
    """The least so far with the labour of a phase, by its uplinks; those that come from none are left out."""
    new, old = links_per_uplink(path[t - 1], path[t])
    rate = instance.phase[t].retrofit_usd_per_link
    waiting = sorted(best.items(), reverse=True)
    found, least = {}, math.inf
    for uplinks in choices:
        while waiting and waiting[-1][0] <= uplinks:
            was, value = waiting.pop()
            least = min(least, value + rate * (old - new) * was)
        if least < math.inf:
            found[uplinks] = least + rate * new * uplinks
    return found


def _standing(instance: Instance, kind: ObjectiveKind, path: Path, t: int, uplinks: int) -> float:
    """What all units in place add, less what those of the next phase need not pay again."""
    stage, last = path[t], t + 1 == len(path)
    value = power_w = 0.0
    for line in bill(instance, stage.family, stage.levels(uplinks), stage.optics):
        now = least_factor(instance, t, line.kind)
        later = 0.0 if last else least_factor(instance, t + 1, line.kind)
        value += line.amount * line.unit_usd * (now - later)
        power_w += line.amount * line.unit_w
    return value + (electricity_usd(instance, t, power_w) if kind == "tco" else 0.0)


def least_factor(instance: Instance, t: int, kind: str) -> float:
    """The least that is paid for a kind up to a phase."""
    return min(price_factor(instance, before, kind) for before in range(t + 1))
