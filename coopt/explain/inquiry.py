"""One explanation in the making: who solves, who hears of it, and what time did not suffice for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from coopt.explain.sentences import of_untried
from coopt.instance.schema import Instance
from coopt.instance.texts import with_names
from coopt.instance.variants import rows_by_name
from coopt.plan.explanation import Explanation
from coopt.plan.schema import InstanceId, OnProgress, Plan, Progress
from coopt.solving.resolves import Resolver, UnprovenError, value_of

Answer = TypeVar("Answer")


@dataclass(kw_only=True)
class Inquiry:
    """One explanation: who solves, who hears of it, and the keys of what was left when time ran
    out.

    `known` are plans of the question, met on the way, with what they cost.
    """

    instance: Instance
    resolver: Resolver
    on_progress: OnProgress | None = None
    begun: float = field(default_factory=time.perf_counter)
    untried: list[str] = field(default_factory=list)
    within_s: float | None = None
    known: list[tuple[Plan, float]] = field(default_factory=list)

    def answers(self, key: str, ask: Callable[[], Answer]) -> Iterable[Answer]:
        """The answer to a question about a key; nothing where it was not proven in time."""
        self.tell(key)
        try:
            yield ask()
        except UnprovenError:
            self.untried.append(key)

    def plan_of(self, narrower: Instance) -> Plan:
        """The best plan of a question that allows less, which is one of the instance as well."""
        plan = self.resolver.plan(narrower)
        value = value_of(plan)
        if value is not None:
            self.known.append((plan, value))
        return plan

    def tell(self, message: str) -> None:
        """Say what is solved next."""
        if self.on_progress is not None:
            named = with_names(message, rows_by_name(self.instance))
            self.on_progress(
                Progress(stage="explain", message=named, elapsed_s=time.perf_counter() - self.begun)
            )

    def explanation(self, status: str, sentences: Iterable[str], **parts: Any) -> Explanation:
        """The explanation, with what is missing in it."""
        untried, instance = tuple(dict.fromkeys(self.untried)), self.instance
        remainder = (of_untried(untried, self.within_s),) if untried else ()
        return Explanation.model_validate(
            {
                "instance": InstanceId(name=instance.name, sha256=instance.sha256),
                "kind": instance.objective.minimize,
                "status": status,
                "sentences": (*sentences, *remainder),
                "untried": untried,
                **parts,
            }
        )
