"""Datacenters that train one model together, and the wide-area links between them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from coopt.instance.base import Count, Name, NonNegative, Part, Positive, Price, Watts, one_or_many

if TYPE_CHECKING:
    from coopt.instance.schema import Instance
    from coopt.instance.workload import Workload

MOST_SITES = 6  # rings through more sites are too many to try one by one


class Site(Part):
    """A datacenter."""

    name: Annotated[Name, Field(description="how the answer calls it")]
    power_mw: Annotated[Positive, Field(description="facility power it can feed: IT power times PUE (MW)")]
    pue: Annotated[float | None, Field(ge=1, le=100, description="facility over IT power; else objective.pue")] = None
    usd_per_kwh: Annotated[
        float | None,
        Field(ge=0, le=1000, description="price of electricity (USD/kWh); objective.usd_per_kwh if left out"),
    ] = None


class Wan(Part):
    """Wide-area channels that can be lit between two sites."""

    between: Annotated[tuple[Name, Name], one_or_many, Field(description="the two sites")]
    gbit_s: Annotated[Positive, Field(description="what gradients get of one channel, each way (Gbit/s)")]
    usd: Annotated[Price, Field(description="price of one channel, both ends and its share of the fibre (USD)")]
    w: Annotated[Watts, Field(description="power of one channel, half at each end (W)")] = 0.0
    latency_ms: Annotated[NonNegative, Field(description="time that a signal takes one way (ms)")]
    most: Annotated[Count, Field(description="channels that can be lit")]

    @property
    def name(self) -> str:
        """`east - west`."""
        return " - ".join(self.between)


def part_of(workload: Workload, shares: int, whole: int) -> Workload:
    """What a site with some of the shares trains: its part of every batch, in the time of the whole."""
    own = {"global_batch": workload.global_batch * shares // whole, "max_iteration_time_s": workload.bound_s}
    return workload.model_copy(update=own | dict.fromkeys(("min_tokens_per_s", "train_days", "train_tokens")))


def site_disagreements(instance: Instance) -> Iterator[str]:
    """Sentences about sites that do not go with each other or with the rest."""
    if not instance.site:
        if instance.wan or instance.cluster.shares is not None:
            what = "wan" if instance.wan else "cluster.shares"
            yield f"{what}: joins or divides among sites, and there are none, needs [[site]] tables"
        return
    if instance.sharing.mode == "partition":
        if instance.wan or instance.cluster.shares is not None:
            what = "wan" if instance.wan else "cluster.shares"
            yield f"{what}: every island stands at one site, needs to be left out with sharing.mode = 'partition'"
    else:
        yield from _shares(instance)
    yield from _links(instance)
    if len(instance.site) > MOST_SITES:
        yield f"site: {len(instance.site)} sites, needs at most {MOST_SITES}"
    if "gpu" not in instance.objective.include:
        yield "objective.include: lacks 'gpu', whose power the sites have to feed, needs 'gpu' in it"
    if instance.solver.top > 1:
        yield f"solver.top = {instance.solver.top}: runners-up are not searched for several sites, needs 1"


def _shares(instance: Instance) -> Iterator[str]:
    shares = instance.cluster.shares
    if shares is None:
        yield "cluster.shares: is missing, needs the number of equal shares of GPUs and batch that sites take"
        return
    if len(instance.cluster.gpus) > 1:
        counts = ", ".join(map(str, instance.cluster.gpus))
        yield f"cluster.gpus = {counts}: sites share one number of GPUs, needs one"
    parts = [("cluster.gpus", gpus) for gpus in instance.cluster.gpus]
    parts += [(f"workload {w.name!r}: global_batch", w.global_batch) for w in instance.workload]
    for key, value in parts:
        if value % shares:
            yield f"cluster.shares = {shares}: does not divide {key} = {value}, needs a divisor"


def _links(instance: Instance) -> Iterator[str]:
    names = [site.name for site in instance.site]
    seen: set[frozenset[str]] = set()
    for w, wan in enumerate(instance.wan):
        ends = frozenset(wan.between)
        for name in wan.between:
            if name not in names:
                yield f"wan[{w}].between: no site is named {name!r}, needs two of {', '.join(names)}"
        if len(ends) < 2:
            yield f"wan[{w}].between: joins {wan.between[0]!r} with itself, needs two different sites"
        if ends in seen:
            yield f"wan[{w}].between: {wan.name} is there already, needs one table for two sites"
        seen.add(ends)
    for one, other in pairwise(sorted(names)):
        if one == other:
            yield f"site: name {one!r} appears twice, needs different names"
