"""Go through all networks that grow: which is the cheapest that serves every phase?"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import cached_property

from coopt.instance.phases import of_phase
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.verifier.ledger import TOLERANCE
from coopt.verifier.parts import bill, total_of, within_limits
from coopt.verifier.phased.cheapest import least_value
from coopt.verifier.phased.stages import Path, Stage, paths
from coopt.verifier.trainer import Trainer


class Growths:
    """All networks of an instance as they grow, and which uplinks serve its phases; nothing is computed twice."""

    def __init__(self, instance: Instance, kind: ObjectiveKind) -> None:
        self.instance, self.kind = instance, kind
        self.questions = [of_phase(instance, t) for t in range(len(instance.phase))]
        self._strict = [Trainer(question) for question in self.questions]
        self._lenient = [Trainer(question, -TOLERANCE) for question in self.questions]

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """Every network."""
        return tuple(paths(self.instance, self.kind))

    def serving(self, stage: Stage, t: int) -> range:
        """Uplinks with which a stage meets the bounds and limits of a phase."""
        ups = self._within(stage, t)
        return ups[bisect_left(ups, True, key=lambda up: self._strict[t].trains(stage.family, stage.reach(up))) :]

    def may_serve(self, stage: Stage, t: int, uplinks: int) -> bool:
        """Whether a stage meets them, rounding in its favour."""
        in_limits = uplinks in self._within(stage, t)
        return in_limits and self._lenient[t].trains(stage.family, stage.reach(uplinks))

    def _within(self, stage: Stage, t: int) -> range:
        """Uplinks that keep the limits, which no further uplink mends."""
        question = self.questions[t]

        def over(uplinks: int) -> bool:
            lines = bill(question, stage.family, stage.levels(uplinks), stage.optics)
            return not within_limits(question, stage.family, total_of(lines, question.objective))

        return stage.uplinks[: bisect_left(stage.uplinks, True, key=over)]

    def least_below(self, bound: float) -> float | None:
        """The least value of a network that serves every phase, where it is below `bound` by more than rounding."""
        ceiling = bound - abs(bound) * TOLERANCE if math.isfinite(bound) else bound
        found: float | None = None
        for path in self.paths:
            allowed: list[range] = [self._within(stage, t) for t, stage in enumerate(path)]
            for t in range(len(path)):
                if not least_value(self.instance, self.kind, path, allowed) < ceiling:
                    break
                allowed[t] = self.serving(path[t], t)
            value = least_value(self.instance, self.kind, path, allowed)
            if value < ceiling:
                found = ceiling = value
        return found
