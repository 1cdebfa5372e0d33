"""Mappings as limits of workloads: a plan's kept fixed, and what an instance leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

import numpy as np

from coopt.columns.grid import mappings as every_mapping
from coopt.instance.catalog import refusing
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, choice_left, counted
from coopt.instance.transformer import MappingLimits
from coopt.instance.workload import Workload
from coopt.perf.mapping import NAMED, Mappings
from coopt.plan.parts import MappingChoice


def pinned(instance: Instance, mappings: Sequence[MappingChoice] | None) -> tuple[Workload, ...]:
    """The workloads with their mapping limits narrowed to the given choices."""
    if mappings is None:
        return with_one_cp(instance.workload)
    if len(mappings) != len(instance.workload):
        raise InstanceError(
            f"{instance.place}: {counted(len(mappings), 'mapping')} given, needs"
            f" {len(instance.workload)}, one for each workload"
        )
    narrowed = []
    for workload, choice in zip(instance.workload, mappings, strict=True):
        layout = workload.mapping.pipeline_layout
        if choice.pipeline_layout and choice.pipeline_layout != layout:
            raise InstanceError(
                f"{instance.place}: mapping of workload {workload.name!r}: pipeline_layout ="
                f" {choice.pipeline_layout!r}, needs {repr(layout) if layout else 'none'} as in the"
                " instance"
            )
        values = choice.model_dump(exclude={"pipeline_layout"})
        with refusing(f"{instance.place}: mapping of workload {workload.name!r}", MappingLimits):
            limits = MappingLimits.model_validate(
                {key: (value,) for key, value in values.items()} | {"pipeline_layout": layout}
            )
        narrowed.append(workload.model_copy(update={"mapping": limits}))
    return tuple(narrowed)


def with_one_cp(workloads: Iterable[Workload]) -> tuple[Workload, ...]:
    """The workloads without context parallelism where they say nothing of it, and TP, PP and DP do
    not settle it.
    """

    def with_cp(workload: Workload) -> Workload:
        limits = workload.mapping
        if "cp" in limits.model_fields_set or None not in (limits.tp, limits.pp, limits.dp):
            return workload
        return workload.model_copy(update={"mapping": limits.model_copy(update={"cp": (1,)})})

    return tuple(map(with_cp, workloads))


def open_mapping(workload: Workload, gpus: int) -> Iterator[str]:
    """Sentences about lists of a mapping that leave a choice on so many GPUs."""
    choices, _ = every_mapping(workload, gpus)
    key = f"workload {workload.name!r}: mapping"
    if not len(choices):
        yield (
            f"{key}: no split of {gpus:,} GPUs within its lists divides GPUs, heads,"
            f" {workload.model.layers} layers and batch as it has to, needs other values"
        )
    for field in fields(Mappings):
        values = np.unique(getattr(choices, field.name)).tolist()
        if len(values) > 1 and field.name != "dp":
            names = NAMED.get(field.name)
            labels = [names[v] for v in values] if names else values
            yield choice_left(f"{key}.{field.name}", tuple(labels))
