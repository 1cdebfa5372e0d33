"""Refusals of questions that hold what a task cannot answer, whatever the task is."""

from __future__ import annotations

from coopt.instance.errors import InstanceError, both
from coopt.instance.question import BILLED
from coopt.instance.schema import Instance, ObjectiveKind


def require_no_failures(instance: Instance, task: str) -> None:
    """Refuse a question with failures where these are not counted.

    Raises
    ------
    InstanceError
        When the instance has them; `task` is what was to be done.
    """
    if instance.availability is not None:
        raise InstanceError(
            f"{instance.name}: {task} does not count failures, needs an instance without"
            " [availability]"
        )


def require_decided(instance: Instance, task: str) -> None:
    """Refuse a question that leaves GPUs, batches or knobs open.

    Raises
    ------
    InstanceError
        When the instance does; `task` is what was to be done.
    """
    if instance.open_keys:
        raise InstanceError(
            f"{instance.name}: lists in {both(instance.open_keys)}: {task} needs one value in place"
            " of each; a plan says which it takes (`chosen`)"
        )


def require_billed(instance: Instance, task: str, of_plan: ObjectiveKind | None = None) -> None:
    """Refuse an objective that is no sum of a bill where only those are known.

    Raises
    ------
    InstanceError
        When the instance has one, or its plan; `task` is what was to be done.
    """
    for kind in (instance.objective.minimize, of_plan):
        if kind is not None and kind != BILLED[kind]:
            raise InstanceError(
                f"{instance.name}: objective.minimize = {kind!r}: {task} compares bills, needs"
                " 'capex', 'power' or 'tco'; with the time of the plan as the bound of its"
                " workload, one of these asks for the same network"
            )


def require_one_network(instance: Instance, task: str, remedy: str = "") -> None:
    """Refuse a question of more than one network that workloads use in turn.

    Parameters
    ----------
    task
        What was to be done.
    remedy
        What answers the question otherwise.

    Raises
    ------
    InstanceError
        When the instance asks for more.
    """
    if instance.beyond_one_network:
        raise InstanceError(
            f"{instance.name}: {task} is for one network, needs an instance without"
            f" {both(instance.beyond_one_network)}{remedy}"
        )
