"""Why no partition answers an instance: sentences that name the limit and how far it must give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coopt.columns.islands.options import list_options
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.network.wiring import wirings  # noqa: F401
from coopt.solving.explain import rounded_up
from coopt.solving.partition.search import search_partition
from formulations.partition_data import Limit, PartitionData


def no_island(instance, missing):
    return ()


def over_limits(instance, data):
    return ()
