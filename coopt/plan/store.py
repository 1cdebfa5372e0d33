"""Plans as files, and whether a plan answers a question."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from coopt.instance.complaints import sentences
from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.instance.texts import read_text
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


def plan_json(plan: Plan) -> str:
    """The plan as one JSON document."""
    return plan.model_dump_json(by_alias=True, indent=2)


def read_plan(path: str | Path) -> Plan:
    """Read a plan file; InstanceError names every key that is wrong."""
    file = Path(path)
    text = read_text(file, "a JSON text file", f"a plan (`coopt solve INSTANCE -o {file.name}` writes one)")
    try:
        return Plan.model_validate(json.loads(text))
    except ValidationError as error:
        raise InstanceError(f"{file.name}: {sentence}" for sentence in sentences(error, Plan)) from None
    except RecursionError:
        raise InstanceError(f"{file.name}: nested too deeply, needs a plan") from None
    except ValueError as error:
        raise InstanceError(f"{file.name}: not JSON: {error}") from None
