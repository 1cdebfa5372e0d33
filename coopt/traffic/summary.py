"""Summaries of traffic: figures, a sparse matrix, and a coarse matrix for pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.network.family import Family
from coopt.network.placing import leaf_numbers
from coopt.perf.mapping import Floats, Ints
from coopt.plan.schema import InstanceId
from coopt.plan.traffic import ClassBytes, GpuBytes, TrafficReport, WorkloadTraffic
from coopt.traffic.flows import Stream, TrafficDemand
from coopt.traffic.volumes import IterationPhase, TrafficClass

Place = Literal["domain", "leaf", "above"]
PLACES: tuple[Place, ...] = ("domain", "leaf", "above")
ABOVE = len(PLACES) - 1
MAX_GPUS, MAX_CELLS = (
    512,
    256,
)  # maximum number of GPUs drawn individually, and cells per axis beyond that
HEAD = "src_gpu,dst_gpu,bytes"
MAX_PAIRS = 5_000_000  # lines of a CSV of about 100 MB


def talking_pairs(demand: TrafficDemand) -> int:
    """Return the number of ordered pairs of GPUs with traffic."""
    # one number for each pair of GPUs
    keys = [
        (s.src * demand.active * demand.domains + s.dst)[s.size_bytes > 0] for s in demand.streams
    ]
    return len(np.unique(np.concatenate(keys))) if keys else 0


def sparse_matrix(demand: TrafficDemand) -> tuple[Ints, Ints, Floats]:
    """Return source, destination and bytes of every pair with traffic, sorted; shape (pairs,)
    each.

    Training GPUs are numbered from 0 through the first HB domain, then through the next.
    """
    if not demand.streams:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    keys = np.concatenate(
        [demand.rank_of(s.src) * demand.ranks + demand.rank_of(s.dst) for s in demand.streams]
    )
    sizes = np.concatenate([s.size_bytes for s in demand.streams])
    pairs, place = np.unique(keys[sizes > 0], return_inverse=True)
    totals = np.bincount(place, weights=sizes[sizes > 0], minlength=len(pairs))
    return pairs // demand.ranks, pairs % demand.ranks, np.asarray(totals, dtype=np.float64)


def tiers_crossed(family: Family, per_domain: int, stream: Stream, leaves: Ints) -> Ints:
    """Return the highest tier of every flow: 0 inside a domain, 1 on its leaf, 2 or 3 above; shape
    (flows,).

    `leaves` are the `leaf_numbers` of the family, shared by all streams; each domain has
    `per_domain` GPU numbers. A flow uses the first NIC of its GPU; the other NICs, each on its own
    rail, behave alike.
    """
    src_domain, dst_domain = stream.src // per_domain, stream.dst // per_domain
    if family.tiers == 0:
        return np.zeros(len(stream.src), dtype=np.int64)
    rows = family.nics_of_domain // family.planes
    src = leaves[
        stream.src % per_domain * family.nics_per_gpu // family.gpus_per_nic % rows, src_domain
    ]
    dst = leaves[
        stream.dst % per_domain * family.nics_per_gpu // family.gpus_per_nic % rows, dst_domain
    ]
    top = np.full(len(src), family.tiers, dtype=np.int64)
    if family.pods is not None:
        top[src // family.pods.leaves == dst // family.pods.leaves] = 2
    return np.where(src_domain == dst_domain, 0, np.where(src == dst, 1, top))


def traffic_figures(
    instance: Instance, family: Family | None, demands: Iterable[TrafficDemand]
) -> TrafficReport:
    """Return the figures of every demand on the network of a family; None for direct links, which
    carry all traffic between domains.
    """
    return TrafficReport(
        instance=InstanceId(name=instance.name, sha256=instance.sha256),
        workloads=tuple(_workload(family, demand) for demand in demands),
    )


def _places(family: Family | None, demand: TrafficDemand, stream: Stream, leaves: Ints) -> Ints:
    if family is None:
        return np.where(stream.src // demand.active == stream.dst // demand.active, 0, ABOVE)
    return np.minimum(tiers_crossed(family, demand.active, stream, leaves), ABOVE)


def _workload(family: Family | None, demand: TrafficDemand) -> WorkloadTraffic:
    by_class: dict[tuple[TrafficClass, IterationPhase], Floats] = defaultdict(
        lambda: np.zeros(len(PLACES))
    )
    numbers = demand.active * demand.domains
    sent_bytes, received_bytes = np.zeros((2, len(PLACES), numbers))
    leaves = (
        leaf_numbers(family)
        if family is not None and family.tiers
        else np.zeros((0, 0), dtype=np.int64)
    )
    for stream in demand.streams:
        place = _places(family, demand, stream, leaves)
        by_class[stream.kind, stream.phase] += np.bincount(place, stream.size_bytes, len(PLACES))
        for ends, totals in ((stream.src, sent_bytes), (stream.dst, received_bytes)):
            sums = np.bincount(place * numbers + ends, stream.size_bytes, totals.size)
            totals += sums.reshape(totals.shape)
    pairs = talking_pairs(demand)
    possible = demand.ranks * (demand.ranks - 1)
    return WorkloadTraffic(
        name=demand.workload,
        gpus=demand.ranks,
        all_reduce=demand.all_reduce,
        collectives=dict(demand.collectives),
        talking_pairs=pairs,
        silent_share=1.0 - pairs / possible if possible else 1.0,
        whole_bytes=float(sent_bytes.sum()),
        classes=tuple(_class(*names, sums) for names, sums in by_class.items() if sums.any()),
        per_gpu=tuple(
            _gpus(*row)
            for row in zip(
                PLACES, sent_bytes[:, demand.gpus], received_bytes[:, demand.gpus], strict=True
            )
        ),
    )


def _class(kind: TrafficClass, phase: IterationPhase, sums: Floats) -> ClassBytes:
    domain_bytes, leaf_bytes, above_bytes = sums.tolist()
    return ClassBytes(
        kind=kind,
        phase=phase,
        domain_bytes=domain_bytes,
        leaf_bytes=leaf_bytes,
        above_bytes=above_bytes,
    )


def _gpus(place: Place, sent_bytes: Floats, received_bytes: Floats) -> GpuBytes:
    return GpuBytes(
        place=place,
        least_sent_bytes=float(sent_bytes.min()),
        mean_sent_bytes=float(sent_bytes.mean()),
        most_sent_bytes=float(sent_bytes.max()),
        least_received_bytes=float(received_bytes.min()),
        most_received_bytes=float(received_bytes.max()),
    )


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Bytes per iteration from the cell of the row to that of the column.

    Attributes
    ----------
    kinds
        Classes of traffic, in the order of the first axis of `size_bytes`.
    size_bytes
        Shape (kinds, cells, cells).
    end, ends, per_cell
        What an axis counts, how many there are, and how many share a cell; the last cell may hold
        fewer.
    """

    kinds: tuple[TrafficClass, ...]
    size_bytes: Floats
    end: Literal["GPU", "HB domain"]
    ends: int
    per_cell: int


def cells_of(
    demand: TrafficDemand, *, most_gpus: int = MAX_GPUS, most_cells: int = MAX_CELLS
) -> Cells:
    """Return traffic between GPUs if they are few, else between groups of domains."""
    small = demand.ranks <= most_gpus
    ends = demand.ranks if small else demand.domains
    per_cell = 1 if small else -(-ends // most_cells)
    cells, width = -(-ends // per_cell), per_cell * (1 if small else demand.active)
    kinds = tuple(dict.fromkeys(stream.kind for stream in demand.streams))
    sizes = np.zeros((len(kinds), cells, cells))
    for stream in demand.streams:
        src, dst = (demand.rank_of(gpus) if small else gpus for gpus in (stream.src, stream.dst))
        place = src // width * cells + dst // width
        sizes[kinds.index(stream.kind)] += np.bincount(
            place, stream.size_bytes, cells * cells
        ).reshape(cells, cells)
    return Cells(
        kinds=kinds,
        size_bytes=sizes,
        end="GPU" if small else "HB domain",
        ends=ends,
        per_cell=per_cell,
    )


def matrix_csv(demand: TrafficDemand, *, most_pairs: int = MAX_PAIRS) -> str:
    """Return source, destination and bytes per iteration of every pair with traffic, one per line,
    sorted.

    Training GPUs are numbered from 0 through the first HB domain, then through the next.

    Raises
    ------
    InstanceError
        If there are more than `most_pairs` pairs, too many for common programs.
    """
    src, dst, sizes = sparse_matrix(demand)
    if len(src) > most_pairs:
        raise InstanceError(
            f"--matrix: {len(src):,} pairs of GPUs communicate, needs at most {most_pairs:,}"
            " (--heat-map draws any number)"
        )
    lines = (
        f"{a},{b},{_plain(c)}"
        for a, b, c in zip(src.tolist(), dst.tolist(), sizes.tolist(), strict=True)
    )
    return "\n".join([HEAD, *lines]) + "\n"


def _plain(size_bytes: float) -> str:
    return str(int(size_bytes)) if size_bytes.is_integer() else repr(size_bytes)
