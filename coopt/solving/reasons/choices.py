"""Why the GPU, the batch or the knobs of a plan and no others of its question: every other value, solved."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.instance.choices import Chosen, at_choice, seconds_weight
from coopt.instance.listings import both
from coopt.instance.schema import Instance
from coopt.plan.explanation import Rival
from coopt.plan.schema import Plan
from coopt.solving.reasons.labels import SAYINGS, number, why_worse
from coopt.solving.sensitivity.resolves import Resolver, cheaper, value_of

Other = tuple[str, str, Chosen]


def others_of(instance: Instance, chosen: Chosen) -> Iterator[Other]:
    """Every choice that differs in one value from the chosen one: the key of its list, the value, the choice."""
    for gpu in instance.cluster.generations:
        if gpu.name != chosen.gpu:
            yield "cluster.gpu", gpu.name, chosen.model_copy(update={"gpu": gpu.name})
    for w, workload in enumerate(instance.workload):
        taken = chosen.global_batch.get(workload.name)
        for batch in workload.batches:
            if batch != taken:
                batches = chosen.global_batch | {workload.name: batch}
                yield f"workload[{w}].global_batch", str(batch), chosen.model_copy(update={"global_batch": batches})
        knobs = chosen.options.get(workload.name, {})
        for key, values in workload.options.allowed.listed.items():
            for value in values:
                if value != knobs[key]:
                    options = chosen.options | {workload.name: knobs | {key: value}}
                    yield f"workload[{w}].options.{key}", str(value), chosen.model_copy(update={"options": options})


def rival_choice(resolver: Resolver, asked: Instance, plan: Plan, other: Other) -> Rival:
    """The best plan of another choice beside a plan of the chosen one.

    Raises
    ------
    UnprovenError
        When the time for all choices has passed.
    """
    part, name, chosen = other
    question, kind = at_choice(asked, chosen), asked.objective.minimize
    best = resolver.plan(question)
    found, ours = value_of(best), value_of(plan)
    assert ours is not None
    assert plan.cost is not None
    if found is None or best.cost is None:
        why = "; ".join(best.explanation) or "nothing meets every bound"
        return Rival(part=part, choice=name, value=None, extra=None, design=None, why=why)
    found *= seconds_weight(question, kind) / seconds_weight(at_choice(asked, plan.chosen), kind)
    same = not cheaper(found, ours) and not cheaper(ours, found)
    why = SAYINGS[kind].same if same else why_worse(asked.objective, plan.cost, best.cost)
    why = f"{why or 'it has less of everything'}, and {_times(plan, best)}"
    return Rival(
        part=part,
        choice=name,
        value=found,
        extra=0.0 if same else found - ours,
        design=best.design,
        why=why,
    )


def _times(plan: Plan, other: Plan) -> str:
    """`an iteration takes 0.3 s in place of 0.7 s`, by workload where there are several."""
    ours, theirs = plan.runs, {run.name: run for run in other.runs}
    return both(
        f"an iteration{f' of {run.name}' if len(ours) > 1 else ''} takes {number(theirs[run.name].iteration_time_s)} s "
        f"in place of {number(run.iteration_time_s)} s"
        for run in ours
        if run.name in theirs
    )
