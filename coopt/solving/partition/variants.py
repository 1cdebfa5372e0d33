"""What is left of a partition when the optic of its core is chosen."""

from __future__ import annotations

from dataclasses import dataclass

from coopt.columns.islands.options import Options
from coopt.instance.schema import Instance
from formulations.partition_data import PartitionData


@dataclass(frozen=True, kw_only=True, eq=False)
class Variant:
    """An instance whose core, if it has one, names its optic; the islands of its workloads, and the numbers."""

    instance: Instance
    options: Options
    data: PartitionData
