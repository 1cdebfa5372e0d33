"""Everything a page is made of; who calls has loaded, solved and verified it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.plan.explanation import Explanation
from coopt.plan.front import Front
from coopt.plan.schema import Plan
from coopt.verifier.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Which command wrote the page, from which files, and when."""

    command: str
    instance_file: str
    plan_file: str
    written: datetime


@dataclass(frozen=True, kw_only=True)
class Case:
    """A question, its answer, what the verifier thinks of it; where that was asked, what else could be had and why."""

    instance: Instance
    plan: Plan
    verdict: Verdict
    origin: Origin
    front: Front | None = None
    explanation: Explanation | None = None

    @property
    def answered(self) -> bool:
        """Whether the plan is right, and settles what can be built."""
        return self.verdict.accepted and self.plan.status != "unknown"

    @property
    def buildable(self) -> bool:
        """Whether there is a design that one may build."""
        return self.plan.design is not None and self.verdict.accepted


def moment(environment: Mapping[str, str] = os.environ) -> datetime:
    """Now, or the second that SOURCE_DATE_EPOCH names, so that the same call writes the same page.

    Raises
    ------
    InstanceError
        When SOURCE_DATE_EPOCH is no number of seconds since 1970.
    """
    given = environment.get("SOURCE_DATE_EPOCH")
    if given is None:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        return datetime.fromtimestamp(int(given), UTC)
    except (ValueError, OverflowError, OSError):
        raise InstanceError(f"SOURCE_DATE_EPOCH: {given!r}, needs whole seconds since 1970") from None
