"""Refuses questions with features that a task does not support."""

from __future__ import annotations

from coopt.instance.errors import InstanceError, both
from coopt.instance.question import BILLED
from coopt.instance.schema import Instance, ObjectiveKind


def require_no_failures(instance: Instance, task: str) -> None:
    """Refuse a question with failures, for a task that does not model them.

    Raises
    ------
    InstanceError
        If the instance has failures; `task` is the task in words.
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
        If the instance does; `task` is the task in words.
    """
    if instance.open_keys:
        raise InstanceError(
            f"{instance.name}: lists in {both(instance.open_keys)}: {task} needs one value in place"
            " of each; a plan says which it takes (`chosen`)"
        )


def require_billed(instance: Instance, task: str, of_plan: ObjectiveKind | None = None) -> None:
    """Refuse an objective that is not a sum of a bill.

    Raises
    ------
    InstanceError
        If the instance, or its plan, has such an objective; `task` is the task in words.
    """
    for kind in (instance.objective.minimize, of_plan):
        if kind is not None and kind != BILLED[kind]:
            raise InstanceError(
                f"{instance.name}: objective.minimize = {kind!r}: {task} compares bills, needs"
                " 'capex', 'power' or 'tco'; with the time of the plan as the bound of its"
                " workload, one of these asks for the same network"
            )


def require_one_network(instance: Instance, task: str, remedy: str = "") -> None:
    """Refuse a question that needs more than one network used by all workloads in turn.

    Parameters
    ----------
    task
        The task in words.
    remedy
        What supports such questions.

    Raises
    ------
    InstanceError
        If the instance needs more than one network.
    """
    if instance.beyond_one_network:
        raise InstanceError(
            f"{instance.name}: {task} is for one network, needs an instance without"
            f" {both(instance.beyond_one_network)}{remedy}"
        )
