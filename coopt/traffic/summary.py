"""The traffic of workloads in figures: by class and phase, by place, for each GPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Literal

import numpy as np

from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.plane_wires import leaf_numbers
from coopt.perf.mapping import Floats
from coopt.plan.schema import InstanceId
from coopt.plan.traffic import ClassBytes, GpuBytes, TrafficReport, WorkloadTraffic
from coopt.traffic.shares import talking_pairs, tiers_crossed
from coopt.traffic.streams import Demand
from coopt.traffic.volumes import Kind, Phase

Place = Literal["domain", "leaf", "above"]
PLACES: tuple[Place, ...] = ("domain", "leaf", "above")
ABOVE = len(PLACES) - 1


def summarised(instance: Instance, family: Family, found: Iterable[Demand]) -> TrafficReport:
    """The figures of every demand on the network of a family."""
    return TrafficReport(
        instance=InstanceId(name=instance.name, sha256=instance.sha256),
        workloads=tuple(_workload(family, one) for one in found),
    )


def _workload(family: Family, demand: Demand) -> WorkloadTraffic:
    by_class: dict[tuple[Kind, Phase], Floats] = defaultdict(lambda: np.zeros(len(PLACES)))
    sent, received = np.zeros((2, len(PLACES), demand.ranks))
    leaves = leaf_numbers(family) if family.tiers else np.zeros((0, 0), dtype=np.int64)
    for stream in demand.streams:
        place = np.minimum(tiers_crossed(family, stream, leaves), ABOVE)
        by_class[stream.kind, stream.phase] += np.bincount(place, stream.size_bytes, len(PLACES))
        for ends, totals in ((stream.src, sent), (stream.dst, received)):
            sums = np.bincount(place * demand.ranks + ends, stream.size_bytes, totals.size)
            totals += sums.reshape(totals.shape)
    pairs = talking_pairs(demand)
    possible = demand.ranks * (demand.ranks - 1)
    return WorkloadTraffic(
        name=demand.workload,
        gpus=demand.ranks,
        all_reduce="tree" if demand.trees else "ring",
        talking_pairs=pairs,
        silent_share=1.0 - pairs / possible if possible else 1.0,
        whole_bytes=float(sent.sum()),
        classes=tuple(_class(*names, sums) for names, sums in by_class.items() if sums.any()),
        per_gpu=tuple(_gpus(*row) for row in zip(PLACES, sent, received, strict=True)),
    )


def _class(kind: Kind, phase: Phase, sums: Floats) -> ClassBytes:
    domain, leaf, above = sums.tolist()
    return ClassBytes(kind=kind, phase=phase, domain_bytes=domain, leaf_bytes=leaf, above_bytes=above)


def _gpus(place: Place, sent: Floats, received: Floats) -> GpuBytes:
    return GpuBytes(
        place=place,
        least_sent_bytes=float(sent.min()),
        mean_sent_bytes=float(sent.mean()),
        most_sent_bytes=float(sent.max()),
        least_received_bytes=float(received.min()),
        most_received_bytes=float(received.max()),
    )
