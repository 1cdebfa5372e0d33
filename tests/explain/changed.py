"""Instances with one price, one list or one limit changed, without the code under test; and single ways out."""

import copy
import re
from typing import Any

from coopt.explain.limits import numeric_limits, of_any_site
from coopt.explain.relaxations import _single_limits
from coopt.instance.schema import Instance
from coopt.plan.explanation import Change, Relaxation
from coopt.solving.resolves import Resolver


def with_key(table: dict[str, Any], key: str, value: Any) -> Instance:
    """A question with another value under a key such as `site[1].power_mw`, by its table alone."""
    whole: Any = copy.deepcopy(table)
    *parents, last = re.findall(r"[a-z_]+|\d+", key)
    here: Any = whole
    for name in parents:
        if isinstance(here, list | tuple):
            here = here[int(name)]
        elif not name.isdigit():  # a list of one may stand without brackets
            here = here.setdefault(name, {})
    here[last] = value
    return Instance.model_validate(whole)


def network(instance: Instance, **update: Any) -> Instance:
    """Another [network]."""
    return instance.model_copy(update={"network": instance.network.model_copy(update=update)})


def limits(instance: Instance, **update: Any) -> Instance:
    """Other [limits]."""
    return instance.model_copy(update={"limits": instance.limits.model_copy(update=update)})


def bounded(instance: Instance, w: int, seconds: float) -> Instance:
    """Another time bound for one workload."""
    every = list(instance.workload)
    every[w] = every[w].model_copy(update={"max_iteration_time_s": seconds})
    return instance.model_copy(update={"workload": tuple(every)})


def memory(instance: Instance, hbm_gb: float) -> Instance:
    """Another GPU memory."""
    gpu = instance.cluster.gpu.model_copy(update={"hbm_gb": hbm_gb})
    return instance.model_copy(update={"cluster": instance.cluster.model_copy(update={"gpu": gpu})})


def kept_free(instance: Instance, time: float, memory: float) -> Instance:
    """The instance with shares of time and memory kept free."""
    table = instance.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return Instance.model_validate(table | {"margin": {"time": time, "memory": memory}})


def moved(instance: Instance, limit: str, number: float) -> Instance:
    """Another number for a limit by its key."""
    if limit.startswith("workload["):
        return bounded(instance, int(limit.split("[")[1].split("]")[0]), number)
    if limit == "cluster.gpu.hbm_gb":
        return memory(instance, number)
    if limit == "network.oversubscription":
        return network(instance, oversubscription=number)
    return limits(instance, **{limit.split(".")[1]: number})


def only(instance: Instance, part: str, choice: str) -> Instance:
    """A list of parts with one entry left."""
    table, key = part.split(".")
    every = getattr(getattr(instance, table), key)
    left = tuple(entry for entry in every if str(getattr(entry, "name", entry)) == choice)
    return instance.model_copy(update={table: getattr(instance, table).model_copy(update={key: left})})


def without(instance: Instance, part: str, choice: str) -> Instance:
    """A list of parts without one entry."""
    table, key = part.split(".")
    every = getattr(getattr(instance, table), key)
    left = tuple(entry for entry in every if str(getattr(entry, "name", entry)) != choice)
    return instance.model_copy(update={table: getattr(instance, table).model_copy(update={key: left})})


def at_price(instance: Instance, item: str, unit: str, price: float) -> Instance:
    """One price moved, under whatever list it stands."""
    if item == "electricity":
        return instance.model_copy(update={"objective": instance.objective.model_copy(update={"usd_per_kwh": price})})
    domain_key, key = ("w_per_gpu", "w") if unit == "W" else ("usd_per_gpu", "usd")
    parts = instance.network
    lists = {
        name: tuple(
            entry.model_copy(update={field: price}) if entry.name == item else entry for entry in getattr(parts, name)
        )
        for name, field in (("hb_domains", domain_key), ("nics", key), ("switches", key), ("optics", key))
    }
    changed = network(instance, **lists)
    gpus = [
        one.model_copy(update={key: price}) if one.name == item else one
        for one in (instance.cluster.gpu, *instance.cluster.generations)
    ]
    cluster = instance.cluster.model_copy(update={"gpu": gpus[0], "generations": tuple(gpus[1:])})
    return changed.model_copy(update={"cluster": cluster})


def way_out(instance: Instance, key: str, told: list[str] | None = None) -> tuple[Relaxation, Change]:
    """How much one limit alone has to give, found without all others, and its first change; what is in vain is told."""
    numbers, in_vain = [of_any_site(one) for one in numeric_limits(instance)], [] if told is None else told
    one = dict(_single_limits(Resolver(instance), instance, numbers, in_vain.append, None))[key]()
    return one, one.changes[0]
