"""Which mappings of a model fit into the memory of its GPUs, and what takes the memory: `coopt
fits`, without prices, network or times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from coopt.columns.feasible import ruling_out
from coopt.columns.grid import allowed_recompute, mappings, splits_sequences, splits_tensors
from coopt.instance.base import Table
from coopt.instance.catalog import entries, find, refusing
from coopt.instance.hardware import Gpu
from coopt.instance.reserves import DEFAULT_MARGIN
from coopt.instance.schema import load
from coopt.instance.texts import InstanceError, alternatives, both
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.perf.mapping import RECOMPUTE, Mappings, part_of_tp
from coopt.perf.memory import GIB, memory_bytes, memory_parts
from coopt.validation.published import Measurement, UnusableError
from coopt.validation.runs import device_of
from coopt.validation.splits import BY_COST

SHOWN = 20
BATCH_PER_GPU = 2  # sequences, where no batch is given
USUAL: dict[str, Any] = {
    "cp": 1,
    "micro_batch": 1,
    "interleave": 1,
    "recompute": "none",
    "zero": 1,
    "offload_percent": 0,
}
"""What a mapping whose degrees are given has besides, where nothing else is said."""
OPEN = {"micro_batch": 1, "interleave": 1, "offload_percent": 0}
"""What all mappings of a list have, where nothing else is said: other values only need more."""
# changes that save memory, in the order in which they cost time
SAVING: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("zero", (1, 2, 3)),
    ("recompute", tuple(map(RECOMPUTE.index, BY_COST[1:]))),
    ("sequence_parallel", (True,)),
    ("offload_percent", (25, 50, 75, 100)),
)


class MappingMemory(Table):
    """A mapping, and the memory of its fullest GPU (GiB)."""

    mapping: dict[str, int | bool | str]
    memory_gib: float
    parts_gib: Annotated[dict[str, float], Field(description="by component, largest first")]
    fits: bool


class Fits(Table):
    """The mappings of one workload that fit into memory."""

    workload: str
    model: str
    gpu: str
    gpus: int
    seq: int
    global_batch: int
    precision: str
    memory_limit_gib: Annotated[float, Field(description="of a GPU, less the margin")]
    memory_margin: Annotated[float, Field(description="share of a GPU's memory that stays free")]
    mappings: Annotated[int, Field(description="that were looked at")]
    fitting: Annotated[int, Field(description="of them, those that fit")]
    listed: Annotated[
        tuple[MappingMemory, ...],
        Field(description="fewest ranks of a replica first; of equal degrees, the cheapest"),
    ]
    instead: Annotated[
        tuple[MappingMemory, ...],
        Field(description="where a single mapping does not fit: single changes with which it does"),
    ] = ()


def fits_of(
    question: str,
    given: Mapping[str, Any],
    limits: Mapping[str, Any],
    settings: Mapping[str, Any],
    shown: int = SHOWN,
) -> list[Fits]:
    """Return what fits, for each workload of an instance file on each of its GPUs, or for a model
    of the catalog.

    Parameters
    ----------
    question
        A file that ends in `.toml`, or the name of a model.
    given
        `gpu`, `gpus`, `batch`, `seq`, `precision` and `software`; those of an instance otherwise.
    limits
        Values of a mapping, by the names of `workload.mapping`.
    settings
        Values of the instance to replace.

    Raises
    ------
    InstanceError
        For unknown names, or a mapping that does not divide.
    """
    asked = {name: value for name, value in given.items() if value is not None}
    fixed = {name: value for name, value in limits.items() if value is not None}
    if question.endswith(".toml"):
        instance = load(question, dict(settings))
        cluster = instance.cluster
        listed = cluster.kinds
        kinds = [_gpu(asked["gpu"])] if "gpu" in asked else listed
        gpus = asked.get("gpus", max(cluster.gpus))
        if "software" in asked:
            raise InstanceError(
                "--software: applies to a MODEL, needs --set workload.0.options.software=NAME for"
                " an INSTANCE"
            )
        workloads, margin = (
            [_changed(one, asked) for one in instance.workload],
            instance.kept_margin,
        )
    else:
        if settings:
            raise InstanceError(
                f"--set: replaces values of an instance, needs an instance file in place of"
                f" {question}"
            )
        if missing := [f"--{name}" for name in ("gpu", "gpus") if name not in asked]:
            raise InstanceError(f"{question}: needs {both(missing)}")
        kinds, gpus = [_gpu(asked["gpu"])], asked["gpus"]
        workloads, margin = [_workload(question, gpus, asked)], DEFAULT_MARGIN
    share = margin.memory_share(workloads)
    return [
        _fits(workload, gpu.with_memory_margin(share), gpus, fixed, shown)
        for workload in workloads
        for gpu in kinds
    ]


def _gpu(name: str) -> Gpu:
    """Return a GPU by the name in the catalog, or by a usual one such as H100."""
    known = entries("gpu").get(name)
    if known is None:
        try:
            known = find("gpu", device_of(Measurement(id="", gpu=name)).gpu)
        except UnusableError:
            known = _found("gpu", name, "--gpu")
    assert isinstance(known, Gpu)
    return known


def _found(kind: str, name: str, option: str) -> Any:
    try:
        return find(kind, name)
    except ValueError as error:
        raise InstanceError(f"{option} = {name!r}: {error}") from None


def _workload(name: str, gpus: int, asked: Mapping[str, Any]) -> Workload:
    """Return a workload that trains a model of the catalog."""
    model = _found("model", name, "MODEL")
    assert isinstance(model, Transformer)
    if "seq" in asked:
        model = model.model_copy(update={"seq": asked["seq"]})
    software = {"options": {"software": asked["software"]}} if "software" in asked else {}
    table = {
        "name": name,
        "model": model.model_dump(),
        "global_batch": asked.get("batch", BATCH_PER_GPU * gpus),
        "precision": asked.get("precision", "bf16"),
        "max_iteration_time_s": 1e6,
        **software,
    }
    with refusing(name, Workload):
        return Workload.model_validate(table)


def _changed(workload: Workload, asked: Mapping[str, Any]) -> Workload:
    """Return a workload of an instance with what the command says otherwise."""
    keys = {"batch": "global_batch", "precision": "precision"}
    changes: dict[str, Any] = {key: asked[name] for name, key in keys.items() if name in asked}
    if "seq" in asked:
        changes["model"] = {"seq": asked["seq"]}
    return workload.having(**changes)


def _fits(workload: Workload, gpu: Gpu, gpus: int, fixed: Mapping[str, Any], shown: int) -> Fits:
    is_one = "tp" in fixed and "pp" in fixed
    values = (USUAL if is_one else OPEN) | dict(fixed)
    if workload.layout and "interleave" not in fixed:
        values.pop("interleave")  # follows from the stages
    if is_one:
        ranks = gpus // (fixed["tp"] * fixed["pp"])  # that shards lie on
        splits_norms = fixed["tp"] > 1 and True in workload.mapping.sequence_parallel
        values = {"sequence_parallel": splits_norms, **values}
        values["zero"] = fixed.get("zero", int(ranks > 1))
    limits = {name: (value,) for name, value in values.items()} | {"outermost": ("pp",)}
    limited = workload.model_copy(update={"mapping": workload.mapping.model_copy(update=limits)})
    if not gpu.peak_flop_s(workload.precision):
        raise InstanceError(
            f"precision = {workload.precision}: {gpu.name} does not have it, needs another"
            " --precision or --gpu"
        )
    if values.get("recompute") == "act" and not workload.model.has_act:
        raise InstanceError(
            "--recompute = act: recomputes activation functions of experts and latents, but"
            f" {workload.model.name} has neither, needs another value"
        )
    rows, _ = mappings(limited, gpus)
    if not len(rows):
        raise InstanceError(_why_none(limited, gpus, values))
    needed_bytes = memory_bytes(limited, rows)
    fit = needed_bytes <= gpu.usable_bytes
    order = _order(rows, fit)
    is_single = len(rows) == 1
    places = order[:shown] if fit.any() or not is_single else np.zeros(1, dtype=np.int64)
    instead = _instead(workload, gpu, rows) if is_single and not fit.any() else ()
    return Fits(
        workload=workload.name,
        model=workload.model.name,
        gpu=gpu.name,
        gpus=gpus,
        seq=workload.model.seq,
        global_batch=workload.global_batch,
        precision=workload.precision,
        memory_limit_gib=gpu.usable_bytes / GIB,
        memory_margin=gpu.memory_margin,
        mappings=len(rows),
        fitting=int(fit.sum()),
        listed=tuple(_memories(limited, gpu, rows.take(places))),
        instead=instead,
    )


def _order(rows: Mappings, fit: Any) -> Any:
    """Return the places of what fits: for equal degrees only the cheapest, small replicas first."""
    places = np.flatnonzero(fit)
    found = rows.take(places)
    cost = np.array([BY_COST.index(kind) for kind in RECOMPUTE])[found.recompute]
    unsplit = (found.tp > 1) & ~found.sequence_parallel
    keys = (found.ep, found.pp, found.tp, found.cp)
    ranks = found.tp * found.pp * found.cp
    order = np.lexsort((found.zero, unsplit, cost, *keys, ranks))
    _, first = np.unique(np.stack(keys)[:, order], axis=1, return_index=True)
    return places[order[np.sort(first)]]


def _memories(workload: Workload, gpu: Gpu, rows: Mappings) -> list[MappingMemory]:
    needed_bytes, parts = memory_bytes(workload, rows), memory_parts(workload, rows)
    by_size = [
        sorted(
            ((name, float(part[place]) / GIB) for name, part in parts.items()),
            key=lambda part: -part[1],
        )
        for place in range(len(rows))
    ]
    return [
        MappingMemory(
            mapping=rows.choice(place),
            memory_gib=float(needed_bytes[place]) / GIB,
            parts_gib={name: gib for name, gib in of_row if gib > 0.0},
            fits=bool(needed_bytes[place] <= gpu.usable_bytes),
        )
        for place, of_row in enumerate(by_size)
    ]


def _instead(workload: Workload, gpu: Gpu, row: Mappings) -> tuple[MappingMemory, ...]:
    """Return single changes of a mapping with which it fits, the cheapest of each kind."""
    kinds = tuple(map(RECOMPUTE.index, allowed_recompute(workload)))
    allowed = {"recompute": kinds, "sequence_parallel": workload.mapping.sequence_parallel}
    found = []
    for name, every in SAVING:
        values = [value for value in every if value in allowed.get(name, every)]
        if name == "sequence_parallel" and row.tp[0] == 1:
            continue
        for value in values:
            column = np.array([value], dtype=getattr(row, name).dtype)
            changed = replace(row, **{name: column})
            if memory_bytes(workload, changed)[0] <= gpu.usable_bytes:
                found += _memories(workload, gpu, changed)
                break
    return tuple(found)


def _why_none(workload: Workload, gpus: int, values: Mapping[str, Any]) -> str:
    """Return why no mapping has these values."""
    t, p, c = (int(values.get(name, 1)) for name in ("tp", "pp", "cp"))
    b, name = int(values.get("micro_batch", 1)), workload.model.name
    if gpus % (t * p * c):
        return f"TP {t} x PP {p} x CP {c} = {t * p * c} does not divide {gpus} GPUs"
    d = gpus // (t * p * c)
    if "tp" in values and "pp" in values and workload.global_batch % (d * b):
        return (
            f"a batch of {workload.global_batch:,}: needs a multiple of DP {d} x micro-batch {b} ="
            f" {d * b}"
        )
    if values.items() <= OPEN.items():
        return (
            f"no allowed mapping of {name} divides {gpus} GPUs and a batch of"
            f" {workload.global_batch:,}, needs other numbers, or other allowed values"
        )
    named = ", ".join(
        f"{key} {str(value).lower() if isinstance(value, bool) else value}"
        for key, value in values.items()
    )
    if keys := ruling_out(workload, gpus):
        return (
            f"{alternatives(keys)}: rules out every mapping of {name} on {gpus} GPUs that has"
            f" {named}, needs another value"
        )
    if t % (part := part_of_tp(workload.options.expert_tp)):
        return f"--tp = {t}: is no multiple of options.expert_tp = {part}, needs one"
    if not splits_tensors(workload, t):
        return (
            f"--tp = {t}: does not divide all head counts and widths of {name} that TP splits,"
            " needs a degree that does"
        )
    if workload.model.seq % c:
        return (
            f"--cp = {c}: does not divide the sequence of {workload.model.seq:,} tokens of {name}"
        )
    if not splits_sequences(workload, t, c):
        return (
            f"--cp = {c}: does not divide the heads that one of {t} TP ranks has in the linear"
            f" attention or state-space layers of {name}"
        )
    chunks = int(values.get("interleave", 1))
    if p * chunks > workload.model.layers:
        of_each = f" with {chunks} chunks in each stage" if chunks > 1 else ""
        return f"--pp = {p}{of_each}: {name} has {workload.model.layers} layers"
    return f"no mapping of {name} on {gpus} GPUs has {named}, needs other values"
