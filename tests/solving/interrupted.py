"""Parts that fail so often that it decides, bounds on days, and what the verifier says can be counted on."""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from coopt.columns.grid import Context, context_of
from coopt.columns.pools import Pool
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.network.family import Family, levels
from coopt.verifier.parts.bills import SwitchLevel
from coopt.verifier.parts.outages import OutageShares, outages_of
from coopt.verifier.parts.space import DesignFamily, NicAttachment
from coopt.verifier.parts.uptime import uptime_of
from tests.solving.oracle import every_mapping, fastest_s, in_turn_days

ITERATIONS = 1e6


@st.composite
def failures(draw: st.DrawFn) -> dict[str, Any]:
    """A table of rates, restarts, repairs and spares."""
    rate = st.sampled_from([0.0, 0.0, 1.0, 10.0])
    rates = {part: {"per_year": draw(rate)} for part in ("gpu", "host", "nic", "domain", "software")}
    often = {part: {"per_year": draw(st.sampled_from([0.0, 1.0, 20.0, 200.0]))} for part in ("optic", "switch")}
    flaps = {"flap": {"per_year": draw(st.sampled_from([0.0, 0.0, 100.0, 1000.0]))}}
    return {
        "rates": {"name": "drawn", "gpus_per_host": draw(st.sampled_from([1, 4, 8])), **rates, **often, **flaps},
        "flap_s": draw(st.sampled_from([0.0, 10.0, 3600.0])),
        "restart_s": draw(st.sampled_from([0.0, 300.0, 20_000.0])),
        "repair_hours": draw(st.sampled_from([0.0, 2.0, 24.0])),
        "spare_domains": draw(st.sampled_from([None, None, [0], [0, 1, 3], [2, 4]])),
        "confidence": draw(st.sampled_from([None, None, 0.8, 0.95])),
        "checkpoint_interval_s": draw(st.sampled_from([None, None, 3600.0])),
    }


def in_days(table: dict[str, Any], bound_s: float) -> dict[str, Any]:
    """The workload with days in which it trains as many iterations as `bound_s` seconds each allow for."""
    tokens = ITERATIONS * table["global_batch"] * table["model"]["seq"]
    bound = {"train_days": bound_s * ITERATIONS / 86400, "train_tokens": tokens, "max_iteration_time_s": None}
    return table | bound


def promised(instance: Instance, family: Family, uplinks: int, workload: Workload) -> float:
    """The share of its days that a workload can count on if no port is out, as the verifier counts it."""
    return uptime_of(instance.availability, workload, *_counted(family, uplinks)).promised


def _mean_s(pool: Pool, context: Context, uplinks: int, out: OutageShares) -> float:
    done = (1 - out.share) / pool.time_s(context, uplinks)
    for share, left in ((out.leaf, out.leaf_rate), (out.link, out.link_rate)):
        if share and left:
            done = done + share / pool.time_s(replace(context, byte_s=context.byte_s * left), uplinks)
    return float((1 / done).min(initial=math.inf))


def _counted(family: Family, uplinks: int) -> tuple[DesignFamily, list[SwitchLevel]]:
    """A network as the verifier has it."""
    nics = family.nic_planes, family.gpus_per_nic
    attachment = NicAttachment(family.fabric, family.nic, family.nics_per_gpu, family.switch, family.discipline, *nics)
    there = DesignFamily(
        family.gpus, family.hb, family.domains, attachment if family.tiers else None, 0, family.spare_domains
    )
    return there, [SwitchLevel(level.switches, level.links) for level in levels(family, uplinks)]


def in_time(instance: Instance, family: Family, uplinks: int, gpu: Gpu | None = None) -> bool:
    """Whether every workload is in time with its interruptions, on another GPU where one is given, and all in turn."""
    shares = [promised(instance, family, uplinks, one) if one.calendar else 1.0 for one in instance.workload]
    runs = list(zip(instance.workload, shares, strict=True))
    if any(least_s(instance, family, uplinks, one, gpu) > one.bound_s * share for one, share in runs):
        return False
    times_s = [least_s(instance, family, uplinks, one, gpu) / share for one, share in runs]
    return in_turn_days(instance, times_s) <= (instance.limits.train_days_total or math.inf)


def least_s(
    instance: Instance, family: Family, uplinks: int, workload: Workload, other_gpu: Gpu | None = None
) -> float:
    """What an iteration of the fastest mapping takes, on average where days are bound."""
    gpu, context = other_gpu or instance.cluster.gpu, context_of(family)
    if not workload.calendar:
        return fastest_s(workload, gpu, family, uplinks)
    out = outages_of(instance.availability, *_counted(family, uplinks))
    return _least_s(workload, gpu, family.hb, replace(context, bundle=0), uplinks, out)


@lru_cache(maxsize=1 << 14)
def _least_s(workload: Workload, gpu: Gpu, hb: HbDomain, context: Context, uplinks: int, out: OutageShares) -> float:
    """Networks that differ in their optics only, or in prices, have the same times and lose the same."""
    return _mean_s(every_mapping(workload, gpu, hb, context.site, context.discipline), context, uplinks, out)
