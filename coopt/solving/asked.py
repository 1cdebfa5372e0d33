"""What a caller asks in place of what the instance says."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from coopt.instance.complaints import sentences
from coopt.instance.errors import InstanceError
from coopt.instance.rules.agreement import disagreements
from coopt.instance.schema import Instance, Objective, Solver


def overridden(caller: str, instance: Instance, solver: dict[str, Any], objective: str | None) -> Instance:
    """The instance with the values that a caller gave in place of its own.

    Raises
    ------
    InstanceError
        When a value is out of range, or does not go with the rest; `caller` names who was called.
    """
    given = {key: value for key, value in solver.items() if value is not None}
    aim = {} if objective is None else {"minimize": objective}
    try:
        parts = {
            "solver": Solver.model_validate({**instance.solver.model_dump(), **given}),
            "objective": Objective.model_validate({**instance.objective.model_dump(), **aim}),
        }
    except ValidationError as error:
        raise InstanceError(f"{caller}: {sentence}" for sentence in sentences(error, Solver)) from None
    asked = instance.model_copy(update=parts)
    known = set(disagreements(instance))
    if new := [sentence for sentence in disagreements(asked) if sentence not in known]:
        raise InstanceError(f"{caller}: {sentence}" for sentence in new)
    return asked
