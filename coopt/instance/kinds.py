"""What answers one kind of question only refuses the others."""

from __future__ import annotations

from coopt.instance.errors import InstanceError
from coopt.instance.question import BILLED
from coopt.instance.schema import Instance, ObjectiveKind

KIND_WORDS = {
    "partition": ("gives each workload an island of its own", "sharing.mode = 'partition'"),
    "phased": ("grows in phases", "[[phase]]"),
    "sites": ("spreads over several sites", "[[site]]"),
    "direct": ("may join domains by direct links", "the fabric 'direct'"),
    "robust": ("asks for a robust plan", "[robust]"),
    "choice": (
        "leaves GPUs, batches or knobs open",
        "a list in cluster.gpu, workload.global_batch or workload.options",
    ),
    "fleet": ("gives each workload an island of its own", "sharing.mode = 'partition'"),
}


def kind_words(instance: Instance) -> tuple[str, str]:
    """What a question of another kind than one network does, and what in it makes it do so."""
    if instance.problem == "fleet" and instance.sharing.mode == "time":
        return KIND_WORDS["robust" if instance.years == (None,) else "phased"]
    return KIND_WORDS[instance.problem]


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
    if instance.problem == "choice":
        words, table = KIND_WORDS["choice"]
        raise InstanceError(
            f"{instance.name}: {words}, and {task} needs one value in place of {table}; a plan says"
            " which it takes (`chosen`)"
        )


def has_front(instance: Instance) -> bool:
    """Whether cost against time can be traced: of what counts time in another way, for least time
    of one workload.

    Where GPUs or knobs are open and no bound is given, points are seconds of an iteration, which do
    not compare batches of several sizes and count no interruptions.
    """
    kind = instance.objective.minimize
    if kind == "time" and instance.problem == "choice":
        (workload,) = instance.workload
        return workload.bounded or not (workload.batches or instance.availability)
    return kind == BILLED[kind] or (kind == "time" and instance.problem == "shared")


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


def require_one_network(instance: Instance, task: str) -> None:
    """Refuse a question of another kind than one network that workloads use in turn.

    Raises
    ------
    InstanceError
        When the instance is of another kind; `task` is what was to be done.
    """
    if instance.problem != "shared":
        words, table = kind_words(instance)
        raise InstanceError(
            f"{instance.name}: {words}, which {task} does not know, needs an instance of one"
            f" network, without {table}"
        )
