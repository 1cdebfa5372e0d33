"""Execution of one case, with text as input and output, so that any process with coopt installed
can run it.
"""

from __future__ import annotations

import time
import traceback
from typing import Any

from coopt._version import __version__
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.network.plan_networks import any_to_any
from coopt.solving.answer import solve
from coopt.solving.evaluate import evaluate_instance
from coopt.solving.fastest import fastest_design
from coopt.suite.folder import AnyToAny, Outcome, network_of
from coopt.suite.form import Action, Case
from coopt.verifier.audit import verify


def outcome_json(version: str, case_id: str, action: Action, question: str) -> str:
    """Run a case and return its outcome as JSON; errors become outcomes too.

    Parameters
    ----------
    version
        Version of the calling program; a worker with another version refuses the case.
    question
        The resolved instance as JSON.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        found = _answered(version, action, question)
    except InstanceError as error:
        found = {"status": "refused", "why": error.complaints}
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})"
        found = {"status": "failed", "why": (reason,)}
    found |= {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    return Outcome(case_id=case_id, action=action, **found).model_dump_json(by_alias=True)


def _answered(version: str, action: Action, question: str) -> dict[str, Any]:
    """Return what the outcome of a case says, by the fields of `Outcome`."""
    if version != __version__:
        reason = (
            f"the worker has coopt {__version__}, needs {version}, the version that started"
            " the suite"
        )
        return {"status": "failed", "why": (reason,)}
    instance = Instance.model_validate_json(question)
    if action == "fastest":
        evaluation = fastest_design(instance)
        if isinstance(evaluation, tuple):
            return {"status": "infeasible", "why": evaluation}
        return {"status": "fastest", "fastest": evaluation}
    plan = solve(instance)
    full_network = any_to_any(instance, plan)
    baseline = None if full_network is None else AnyToAny(**network_of(full_network[1]))
    return {"status": plan.status, "why": plan.explanation, "plan": plan, "any_to_any": baseline}


def verified(case: Case, outcome: Outcome) -> bool:
    """Whether a stored outcome belongs to a case, and its plan, if any, verifies."""
    plan, fastest = outcome.plan, outcome.fastest
    if outcome.action != case.action or (plan is not None and plan.status != outcome.status):
        return False
    if plan is None and fastest is None:
        return outcome.status not in ("optimal", "feasible", "unknown", "fastest")
    instance = Instance.model_validate_json(case.question)
    if plan is not None:
        return verify(instance, plan).accepted
    assert fastest is not None
    choices = [run.mapping for run in fastest.workloads]
    try:
        return evaluate_instance(instance, fastest.design, choices).cost == fastest.cost
    except InstanceError:
        return False
