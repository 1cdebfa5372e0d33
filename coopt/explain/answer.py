"""Explain an instance: why its plan is as it is, or what has to give for one to exist."""

from __future__ import annotations

from pathlib import Path

from coopt.explain import decided
from coopt.explain import sentences as say
from coopt.explain.choices import of_choices
from coopt.instance.schema import Instance, instance_of
from coopt.instance.texts import with_names
from coopt.instance.variants import rows_by_name
from coopt.plan.explanation import Explanation
from coopt.plan.schema import InstanceId, OnProgress, Plan
from coopt.plan.store import plan_of
from coopt.solving.runs import overridden


def explain(
    instance: Instance | str | Path,
    plan: Plan | str | Path | None = None,
    *,
    time_limit_s: float | None = None,
    on_progress: OnProgress | None = None,
) -> Explanation:
    """What binds a plan, what each bound and price would change, and what the alternatives cost; or
    what has to give.

    The question is solved again, changed in one thing at a time.

    Parameters
    ----------
    instance
        The question, or the file that holds it.
    plan
        A plan of this instance, or its file; without one, or with one that builds nothing, the
        instance is solved.
    time_limit_s
        Replaces `solver.time_limit_s`, for all solves together (s). Where neither is given,
        questions about a plan are answered for 150 s, and what has to give is sought for 60 s.
    on_progress
        Called with a `Progress` for every limit, choice and price that the question is solved again
        for.

    Returns
    -------
    Explanation
        With status "unknown" where the time limit passed before there was a plan, and what is left
        out where it passed later; Ctrl-C is passed on.

    Raises
    ------
    InstanceError
        When the instance does not allow the plan, the plan misses a bound of it or builds nothing
        for another instance, or it is the plan of another question.

    Examples
    --------
    >>> import coopt
    >>> why = coopt.explain(coopt.load("instances/tiny-64.toml"))
    >>> why.status, why.runner_up.regret, why.runner_up.why
    ('optimal', 0.0, 'costs the same')
    """
    question, plan = instance_of(instance), None if plan is None else plan_of(plan)
    limited = time_limit_s is not None or "time_limit_s" in question.solver.model_fields_set
    objective = None if plan is None else plan.overrides.objective
    instance = overridden("explain", question, {"time_limit_s": time_limit_s}, objective)
    ways_out_s = None if limited else decided.WAYS_OUT_S
    answer = of_choices if instance.open_keys else decided.explained
    explanation = answer(instance, plan, on_progress, ways_out_s)
    names = rows_by_name(instance)
    opening, *remainder = (with_names(text, names) for text in explanation.sentences)
    elsewhere = () if plan is None else say.of_another_question(instance, plan)
    identity = {
        "instance": InstanceId(name=instance.name, sha256=instance.sha256),
        "sentences": (*elsewhere, opening, *say.of_margins(instance), *remainder),
    }
    return explanation.model_copy(update=identity | {"workloads": names["workload"], "rows": names})
