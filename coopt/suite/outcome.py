"""What came of a case, as it is kept in a file of its own."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coopt._version import __version__
from coopt.plan.evaluation import Evaluation
from coopt.plan.record import Record
from coopt.plan.schema import Plan
from coopt.suite.form import Action

Status = Literal["optimal", "feasible", "infeasible", "unknown", "fastest", "refused", "failed"]


class AnyToAny(Record):
    """Switches and optics of the cheapest full-bandwidth any-to-any network for the same domains."""

    network_usd: float
    network_w: float


class Outcome(Record):
    """The answer to one case: a plan, an evaluation of the fastest design, or sentences that say why there is none.

    `cpu_s` and `wall_s` are those of the process that worked on it.
    """

    schema_: Annotated[Literal["coopt-case/1"], Field(alias="schema")] = "coopt-case/1"
    case_id: str
    action: Action
    status: Status
    why: tuple[str, ...] = ()
    plan: Plan | None = None
    fastest: Evaluation | None = None
    any_to_any: AnyToAny | None = None
    cpu_s: float = 0.0
    wall_s: float = 0.0
    coopt: str = __version__

    @property
    def answered(self) -> bool:
        """Whether asking again would bring nothing new; what failed may work another time."""
        return self.status != "failed"
