"""What robustness must agree on with the rest of an instance."""

from __future__ import annotations

import math
from collections.abc import Iterator

from coopt.instance.question import Question
from coopt.instance.robust import Prices, Robust


def robust_disagreements(instance: Question) -> Iterator[str]:
    """Sentences about robustness that does not go with the rest."""
    robust = instance.robust
    if robust is None:
        return
    gpu, (low, high) = instance.cluster.gpu, robust.efficiency
    if low > high:
        yield f"robust.efficiency = [{low:g}, {high:g}]: needs the smaller factor first"
    share = gpu.efficiency.largest_share
    if high * share > 1:
        most = math.floor(1000 / share) / 1000
        yield f"robust.efficiency = [{low:g}, {high:g}]: more than the peaks of {gpu.name}, needs at most {most:g}"
    for part in dict.fromkeys(robust.survive):
        if robust.survive.count(part) > 1:
            yield f"robust.survive: {part!r} appears twice, needs each part once"
    yield from _idle_factors(robust)
    if robust.aim == "regret" and robust.prices == Prices() and low == high:
        yield "robust.aim = 'regret': nothing may turn out otherwise, needs robust.prices or robust.efficiency"
    if instance.solver.top > 1:
        yield f"solver.top = {instance.solver.top}: runners-up are not searched for robust plans, needs 1"


def _idle_factors(robust: Robust) -> Iterator[str]:
    """Sentences about longer bounds that belong to no loss; a number for all parts belongs to any."""
    factors = robust.slower.of_part
    one_for_all = len(set(factors.values())) == 1
    for part, factor in factors.items():
        if factor > 1 and not robust.survive and one_for_all:
            yield f"robust.slower = {factor:g}: allows slower iterations after a loss, needs robust.survive"
            return
        if factor > 1 and part not in robust.survive and not one_for_all:
            yield f"robust.slower.{part} = {factor:g}: belongs to no loss, needs {part!r} in robust.survive"
