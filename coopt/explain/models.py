"""The model with the lowest loss that a cluster can train by a date, within the limits of a
question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from coopt.instance.catalog import entries, find
from coopt.instance.schema import Instance, instance_of
from coopt.instance.texts import InstanceError, both
from coopt.instance.transformer import FLOP_PER_PARAMETER, Transformer
from coopt.plan.explanation import SizedModel
from coopt.plan.store import decided
from coopt.solving.answer import solve

TOKENS_OF_A_PARAMETER = 20.0  # of the first question, whose tokens only a confidence depends on
ROUNDS = 3  # questions for the tokens that are trained with a confidence
LONG_DAYS = 1e7


def best_model(
    instance: Instance | str | Path, models: Sequence[str | Transformer]
) -> tuple[SizedModel, ...]:
    """Models by the loss that they reach by the date of a question, the lowest first.

    Each is trained by the fastest cluster within `[limits]` for the days of the question's
    workload, with its margin and interruptions, and its loss follows by the workload's scaling law.

    Parameters
    ----------
    instance
        A question of one workload on one network with `train_days` or `by`; its model and tokens
        are replaced.
    models
        Dense models, or their names in the catalog.

    Raises
    ------
    InstanceError
        Where the question has no days or several workloads, or where a model is unknown or has no
        scaling law.

    Examples
    --------
    >>> import coopt
    >>> changes = {"max_iteration_time_s": None, "train_days": 30.0, "train_tokens": 1e9}
    >>> asked = {f"workload.0.{key}": value for key, value in changes.items()}
    >>> (only,) = coopt.best_model(coopt.load("instances/tiny-64.toml", asked), ["gpt-22b"])
    >>> only.status
    'optimal'
    """
    instance = instance_of(instance)
    if instance.several_networks:
        raise InstanceError(
            f"{instance.place}: best-model plans a single network, needs an instance without"
            f" {both(instance.several_networks)}"
        )
    if len(instance.workload) != 1 or instance.workload[0].train_days is None:
        raise InstanceError(
            f"{instance.place}: best-model trains each model by a date, needs exactly one workload,"
            " with the key train_days or by"
        )
    try:
        named = [find("model", model) if isinstance(model, str) else model for model in models]
    except ValueError as error:
        raise InstanceError(f"models: {error}") from None
    sized = []
    for place, shape in enumerate(named):
        if shape in named[:place]:  # given twice
            continue
        assert isinstance(shape, Transformer)
        if not shape.has_scaling_law:
            raise InstanceError(
                f"models: no scaling law is known for {shape.name}, needs a dense model of text"
                " alone with one kind of ordinary attention"
            )
        sized.append(_trained(instance, shape))
    return tuple(sorted(sized, key=lambda each: math.inf if each.loss is None else each.loss))


def _trained(instance: Instance, model: Transformer) -> SizedModel:
    """One model on the fastest cluster within the limits."""
    confident = instance.availability is not None and instance.availability.confidence is not None
    tokens, sized = TOKENS_OF_A_PARAMETER * model.parameters, None
    for _ in range(ROUNDS if confident else 1):
        question = _sized(instance, model, tokens)
        plan = solve(question, objective="time")
        sized = SizedModel(model=model.name, parameters=model.parameters, status=plan.status)
        if plan.objective.value is None or plan.cost is None:
            break
        question, _ = decided(question, plan)
        (workload,) = question.workload
        iteration_s = plan.objective.value * (1.0 + workload.time_margin)
        seen = (instance.workload[0].train_days or 0.0) * 86400.0 / iteration_s
        tokens = seen * workload.tokens_per_iteration / workload.tokens_for_one
        (part,) = plan.parts
        network = part.design or part.links
        sized = sized.model_copy(
            update={
                "tokens": tokens,
                "loss": workload.law.loss(float(model.parameters), tokens),
                "gpu": question.cluster.gpu.name,
                "gpus": network.gpus if network else None,
                "capex_usd": plan.cost.capex_usd,
                "power_w": plan.cost.power_w,
            }
        )
    assert sized is not None
    return sized


def _sized(instance: Instance, model: Transformer, tokens: float) -> Instance:
    """The question of one model, with so many tokens and no hurry."""
    table = instance.model_dump(by_alias=True)
    (workload,) = table["workload"]
    asked = {
        "model": model.model_dump(by_alias=True),
        "compute_flop": FLOP_PER_PARAMETER * model.parameters * tokens,
        "train_days": LONG_DAYS,
    }
    dropped = dict.fromkeys(("loss", "by", "train_tokens"))
    table["workload"] = [workload | dropped | asked]
    return Instance.model_validate(table)


def dense_models() -> list[Transformer]:
    """The models of the catalog for which scaling laws hold."""
    models = entries("model").values()
    return [model for model in models if isinstance(model, Transformer) and model.has_scaling_law]
