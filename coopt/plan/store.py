"""Plans as files, and checks that a plan answers a question."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from coopt.instance.complaints import sentences
from coopt.instance.errors import InstanceError
from coopt.instance.requirements import require_decided
from coopt.instance.schema import Chosen, Instance, at_choice, choices_of
from coopt.instance.texts import check_digits, read_text
from coopt.instance.variants import with_tp
from coopt.plan.claims import Proof
from coopt.plan.schema import InstanceId, Plan


def check_same_question(instance: Instance, plan: Plan) -> None:
    """Refuse the plan of another instance.

    Raises
    ------
    InstanceError
        If the plan was made for another question, or for one that leaves GPUs, batches or knobs
        open.
    """
    check_same_sha(instance, plan)
    require_decided(instance, "what is asked of its plan")


def check_same_sha(instance: Instance, plan: Plan) -> None:
    """Refuse the plan of another instance, whatever it leaves open.

    Raises
    ------
    InstanceError
        If the plan was made for another question.
    """
    if plan.instance.sha256 != instance.sha256:
        replaced = plan.overrides.replaced
        remedy = (
            f", or the values that replaced some of the file when it was solved (--set): {replaced}"
        )
        raise InstanceError(
            f"{instance.name}: the plan is of another instance, needs one of this"
            f" instance{remedy if replaced else ''}"
        )


def decided(instance: Instance, plan: Plan, *, same: bool = True) -> tuple[Instance, Plan]:
    """Return the question that a plan chose among those that its instance leaves open, with the
    plan as its answer.

    Parameters
    ----------
    same
        Whether the plan must be the answer to this very question.

    Raises
    ------
    InstanceError
        If the plan is of another question, or its choice is not one of the instance.
    """
    if not instance.open_keys:
        return instance, plan
    if same:
        check_same_sha(instance, plan)
    if plan.cost is None:
        require_decided(instance, "an answer without a plan")
    if plan.chosen not in choices_of(instance):
        raise InstanceError(
            f"{instance.name}: the plan chose {plan.chosen.text!r}, needs a choice of this instance"
        )
    question = at_choice(instance, plan.chosen)
    return question, _answering(question, plan)


def claims_of(instance: Instance, plan: Plan) -> Iterator[tuple[Instance, Plan]]:
    """Yield each question that an instance leaves open, with the plan as an answer, since its bound
    applies to all of them.

    Raises
    ------
    InstanceError
        If the plan is of another question.
    """
    check_same_sha(instance, plan)
    for choice in choices_of(instance):
        question = at_choice(instance, choice)
        yield question, _answering(question, plan)


def placed_as(instance: Instance, plan: Plan) -> tuple[Instance, Plan]:
    """Return the question with the plan's decision on TP groups across HB domains, and the plan as
    its answer.
    """
    question = with_tp(instance, across=plan.tp_across)
    if question is instance or plan.instance.sha256 != instance.sha256:
        return question, plan  # nothing to say, or the plan of another question, which it stays
    return question, _answering(question, plan, plan.chosen)


def _answering(question: Instance, plan: Plan, choice: Chosen | None = None) -> Plan:
    identity = InstanceId(name=question.name, sha256=question.sha256)
    return plan.model_copy(update={"instance": identity, "chosen": choice or Chosen()})


def with_replaced(plan: Plan, values: Mapping[str, Any]) -> Plan:
    """Return the plan with a record of the values that replaced those of the instance's file."""
    return plan.model_copy(
        update={"overrides": plan.overrides.model_copy(update={"values": dict(values)})}
    )


def plan_json(plan: Plan) -> str:
    """Return the plan as a JSON document."""
    return plan.model_dump_json(by_alias=True, indent=2)


def proof_json(proof: Proof) -> str:
    """Return the proof as a JSON document, without default values."""
    return proof.model_dump_json(by_alias=True, exclude_defaults=True)


def read_plan(path: str | Path) -> Plan:
    """Read a plan file; InstanceError names every invalid key."""
    return _document(path, Plan, "a plan", "`coopt solve INSTANCE -o {}` writes one")


def holds_better(path: str | Path, answer: Plan) -> bool:
    """Whether a file holds a plan that the answer of an interrupted search must not replace.

    That is any plan if the answer has none, and a plan of the same question that is cheaper or has
    a smaller gap.
    """
    if answer.status in ("optimal", "infeasible") or not Path(path).is_file():
        return False
    try:
        kept = read_plan(path)
    except InstanceError:
        # an unreadable file may be a plan of another version
        return not answer.parts and Path(path).stat().st_size > 0
    if not kept.parts or not answer.parts:
        return bool(kept.parts)
    is_same = (kept.instance.sha256, kept.objective.kind) == (
        answer.instance.sha256,
        answer.objective.kind,
    )
    return is_same and _rank(kept) < _rank(answer)


def _rank(plan: Plan) -> tuple[float, float]:
    """Return the value of a plan and its gap to the bound; smaller is better."""
    value, bound = plan.objective.value, plan.objective.bound
    return math.inf if value is None else value, -math.inf if bound is None else -bound


def read_proof(path: str | Path) -> Proof:
    """Read a proof file; InstanceError names every invalid key."""
    return _document(path, Proof, "a proof", "`coopt prove INSTANCE PLAN.json -o {}` writes one")


Document = TypeVar("Document", Plan, Proof)


def _document(path: str | Path, form: type[Document], document: str, remedy: str) -> Document:
    file = Path(path)
    text = read_text(file, "a JSON text file", f"{document} ({remedy.format(file.name)})")
    try:
        return form.model_validate(json.loads(text))
    except ValidationError as error:
        raise InstanceError(
            f"{file.name}: {sentence}" for sentence in sentences(error, form)
        ) from None
    except RecursionError:
        raise InstanceError(f"{file.name}: nested too deeply, needs {document}") from None
    except ValueError as error:
        check_digits(text, file.name)
        wrong = (
            f"holds TOML, as instances do, needs {document} in JSON"
            if _is_toml(text)
            else f"not JSON: {error}"
        )
        raise InstanceError(f"{file.name}: {wrong}") from None


def _is_toml(text: str) -> bool:
    try:
        return bool(tomllib.loads(text))
    except (ValueError, RecursionError):
        return False
