"""Plans as files, and whether a plan answers a question."""

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
        When the plan was made for another question, or for one that leaves GPUs, batches or knobs
        open.
    """
    check_same_sha(instance, plan)
    require_decided(instance, "what is asked of its plan")


def check_same_sha(instance: Instance, plan: Plan) -> None:
    """Refuse the plan of another instance, whatever that one leaves open.

    Raises
    ------
    InstanceError
        When the plan was made for another question.
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
    """The question that a plan chose of those that its instance leaves open, with the plan as its
    answer.

    Parameters
    ----------
    same
        Whether the plan has to be the answer to this very question.

    Raises
    ------
    InstanceError
        When the plan is of another question, or its choice is none of the instance.
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
    """Each question that an instance leaves open, with the plan as an answer to it: its bound is
    one on all of them.

    Raises
    ------
    InstanceError
        When the plan is of another question.
    """
    check_same_sha(instance, plan)
    for choice in choices_of(instance):
        question = at_choice(instance, choice)
        yield question, _answering(question, plan)


def placed_as(instance: Instance, plan: Plan) -> tuple[Instance, Plan]:
    """The question that says of TP groups across HB domains what a plan does, with the plan as its
    answer.
    """
    question = with_tp(instance, across=plan.tp_across)
    if question is instance or plan.instance.sha256 != instance.sha256:
        return question, plan  # nothing to say, or the plan of another question, which it stays
    return question, _answering(question, plan, plan.chosen)


def _answering(question: Instance, plan: Plan, choice: Chosen | None = None) -> Plan:
    identity = InstanceId(name=question.name, sha256=question.sha256)
    return plan.model_copy(update={"instance": identity, "chosen": choice or Chosen()})


def with_replaced(plan: Plan, values: Mapping[str, Any]) -> Plan:
    """The plan, which says what values replaced those of the file of its instance."""
    return plan.model_copy(
        update={"overrides": plan.overrides.model_copy(update={"values": dict(values)})}
    )


def plan_json(plan: Plan) -> str:
    """The plan as one JSON document."""
    return plan.model_dump_json(by_alias=True, indent=2)


def proof_json(proof: Proof) -> str:
    """The proof as one JSON document, without what is as by default."""
    return proof.model_dump_json(by_alias=True, exclude_defaults=True)


def read_plan(path: str | Path) -> Plan:
    """Read a plan file; InstanceError names every key that is wrong."""
    return _document(path, Plan, "a plan", "`coopt solve INSTANCE -o {}` writes one")


def holds_better(path: str | Path, answer: Plan) -> bool:
    """Whether a file holds a plan that an answer of a search which ended early must not replace.

    That is any plan where the answer has none, and a plan of the same question that is cheaper or
    proven to be closer to the optimum.
    """
    if answer.status in ("optimal", "infeasible") or not Path(path).is_file():
        return False
    try:
        kept = read_plan(path)
    except InstanceError:
        # what cannot be read may be a plan of another version
        return not answer.parts and Path(path).stat().st_size > 0
    if not kept.parts or not answer.parts:
        return bool(kept.parts)
    is_same = (kept.instance.sha256, kept.objective.kind) == (
        answer.instance.sha256,
        answer.objective.kind,
    )
    return is_same and _rank(kept) < _rank(answer)


def _rank(plan: Plan) -> tuple[float, float]:
    """The value of a plan, then how far its bound is below; the smaller, the better."""
    value, bound = plan.objective.value, plan.objective.bound
    return math.inf if value is None else value, -math.inf if bound is None else -bound


def read_proof(path: str | Path) -> Proof:
    """Read the file of a proof; InstanceError names every key that is wrong."""
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
