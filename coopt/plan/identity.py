"""Whether a plan answers a question."""

from __future__ import annotations

from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan


def check_same_question(instance: Instance, plan: Plan) -> None:
    """Refuse the plan of another instance.

    Raises
    ------
    InstanceError
        When the plan was made for another question.
    """
    if plan.instance.sha256 != instance.sha256:
        raise InstanceError(f"{instance.name}: the plan is of another instance, needs one of this instance")
