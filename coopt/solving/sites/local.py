"""What a site is asked: the same question for its shares of GPUs and batch."""

from __future__ import annotations

import numpy as np

from coopt.instance.schema import Instance
from coopt.instance.sites import part_of
from coopt.instance.workload import Workload
from coopt.perf.mapping import Mappings
from coopt.perf.parameters import held_expert_parameters, held_parameters


def local_question(instance: Instance, shares: int) -> Instance:
    """The instance for a site that takes some of the shares; the time bound is that of the whole."""
    assert instance.cluster.shares is not None
    whole = instance.cluster.shares
    parts = tuple(part_of(workload, shares, whole) for workload in instance.workload)
    gpus = tuple(gpus * shares // whole for gpus in instance.cluster.gpus)
    cluster = instance.cluster.model_copy(update={"gpus": gpus, "shares": None})
    alone = {"site": (), "wan": (), "limits": instance.limits.model_copy(update=dict.fromkeys(_LIMITS))}
    return instance.model_copy(update={"cluster": cluster, "workload": parts, **alone})


_LIMITS = ("power_mw", "capex_usd", "racks")


def gradient_bytes(workload: Workload) -> float:
    """Bytes of the gradients of all parameters, as one GPU would hold them that trains the model alone."""
    alone = Mappings.of(tp=np.ones(1, dtype=np.int64))
    experts = held_expert_parameters(workload.model, alone, expert_tp=workload.options.expert_tp)
    return float(workload.options.software.gradient_bytes * (held_parameters(workload.model, alone) + experts)[0])
