"""The flows of a mapping as the switches of a plane see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coopt.network.family import Family
from coopt.network.graphs.numbering import leaf_numbers, rails_of
from coopt.perf.mapping import Ints
from coopt.traffic.streams import Demand
from coopt.traffic.volumes import Kind


@dataclass(frozen=True, kw_only=True)
class LeafFlows:
    """Flows of one collective that run at the same time on each of `planes`, from leaf `src[i]` to leaf `dst[i]`.

    `group[i]` numbers the ring or all-to-all; `per_nic` flows at most share a NIC in one direction. Arrays of shape
    (flows,); planes with the same flows stand together.
    """

    kind: Kind
    collective: str
    planes: tuple[int, ...]
    src: Ints
    dst: Ints
    group: Ints
    per_nic: int


def leaf_flows(family: Family, demand: Demand) -> Iterator[LeafFlows]:
    """Everything that crosses domains, collective by collective and plane by plane.

    All phases of a collective have the same flows, so that each pair counts once.
    """
    for kind, collective in dict.fromkeys((s.kind, s.collective) for s in demand.streams):
        table = _pairs(demand, kind, collective)
        if len(table) and family.tiers:
            yield from _on_planes(family, demand, kind, collective, table)


def _pairs(demand: Demand, kind: Kind, collective: str) -> Ints:
    """Source, destination and group of the pairs in different domains; shape (pairs, 3)."""
    rows = []
    for stream in demand.streams:
        if (stream.kind, stream.collective) == (kind, collective):
            across = stream.src // demand.active != stream.dst // demand.active
            rows.append(np.stack([stream.src, stream.dst, stream.group], axis=1)[across])
    return np.asarray(np.unique(np.concatenate(rows), axis=0), dtype=np.int64)


def _on_planes(family: Family, demand: Demand, kind: Kind, collective: str, table: Ints) -> Iterator[LeafFlows]:
    per_gpu, leaves = family.nics_per_gpu, leaf_numbers(family)
    rows = rails_of(family) // family.planes
    src, dst, group = (np.repeat(column, per_gpu) for column in table.T)
    rail = src % demand.active * per_gpu + np.tile(np.arange(per_gpu), len(table))
    plane, row = rail // rows, rail % rows
    ends = np.stack([leaves[row, src // demand.active], leaves[row, dst // demand.active], group], axis=1)
    per_nic = max(int(np.unique(column, return_counts=True)[1].max()) for column in (table[:, 0], table[:, 1]))
    order = np.argsort(plane, kind="stable")
    numbers, starts = np.unique(plane[order], return_index=True)
    alike: dict[bytes, list[int]] = {}
    kept: dict[bytes, Ints] = {}
    for number, flows in zip(numbers.tolist(), np.split(ends[order], starts[1:]), strict=True):
        named = flows.copy()
        named[:, 2] = np.unique(flows[:, 2], return_inverse=True)[1]
        key = named.tobytes()
        alike.setdefault(key, []).append(number)
        kept[key] = named
    for key, planes in alike.items():
        a, b, g = kept[key].T
        yield LeafFlows(kind=kind, collective=collective, planes=tuple(planes), src=a, dst=b, group=g, per_nic=per_nic)
