"""What a plan has to stand: losses it survives, prices and efficiencies that may turn out otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from coopt.instance.base import Part, one_or_many, one_or_series
from coopt.instance.sharing import Discount, list_prices

if TYPE_CHECKING:
    from coopt.instance.schema import Instance
    from coopt.instance.workload import Workload

Lost = Literal["nic", "leaf", "plane", "domain"]
Factor = Annotated[float, Field(gt=0, le=1000)]
Interval = Annotated[tuple[Factor, Factor], one_or_series]
Longer = Annotated[float, Field(ge=1, le=1000)]


class Prices(Part):
    """Intervals of factors on the prices of a kind of item; [1, 1] where left out."""

    hb: Annotated[Interval, Field(description="HB domains with their idle GPUs")] = (1.0, 1.0)
    nic: Annotated[Interval, Field(description="NICs")] = (1.0, 1.0)
    switch: Annotated[Interval, Field(description="switches")] = (1.0, 1.0)
    optics: Annotated[Interval, Field(description="optics")] = (1.0, 1.0)
    gpu: Annotated[Interval, Field(description="GPUs that train")] = (1.0, 1.0)

    @model_validator(mode="after")
    def _rising(self) -> Prices:
        for kind, (low, high) in self.intervals.items():
            if low > high:
                raise ValueError(f"{kind} = [{low:g}, {high:g}]: needs the smaller factor first")
        return self

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """The interval of every kind."""
        return {kind: getattr(self, kind) for kind in type(self).model_fields}

    @property
    def worst(self) -> dict[str, float]:
        """The upper end of every interval."""
        return {kind: high for kind, (_, high) in self.intervals.items()}


class Slower(Part):
    """Factors by which bounds grow while a part is lost; 1 where left out, one number for all of them."""

    nic: Annotated[Longer, Field(description="while a NIC is lost")] = 1.0
    leaf: Annotated[Longer, Field(description="while a leaf switch is lost")] = 1.0
    plane: Annotated[Longer, Field(description="while a plane is lost")] = 1.0
    domain: Annotated[Longer, Field(description="while an HB domain is lost")] = 1.0

    @property
    def of_part(self) -> dict[Lost, float]:
        """The factor of every part."""
        return {"nic": self.nic, "leaf": self.leaf, "plane": self.plane, "domain": self.domain}


def _slower(value: Any) -> Any:
    """A number holds for every part."""
    if isinstance(value, Mapping | Slower):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 1000:
        raise ValueError("needs a factor from 1 to 1000, or a table of factors by part")
    return dict.fromkeys(Slower.model_fields, float(value))


class Robust(Part):
    """Losses to survive, and intervals in which prices and efficiency may turn out."""

    survive: Annotated[
        tuple[Lost, ...], one_or_many, Field(description="parts of which any one may be lost: nic, leaf, plane, domain")
    ] = ()
    slower: Annotated[
        Slower,
        BeforeValidator(_slower, json_schema_input_type=Longer | Slower),
        Field(description="bounds grow by this factor while a part is lost; a table has one for each part"),
    ] = Slower()
    prices: Annotated[Prices, Field(description="factors on prices: [least, most]")] = Prices()
    efficiency: Annotated[
        Interval,
        Field(description="factors on what compute and memory of the GPU reach: [least, most]; the least must do"),
    ] = (1.0, 1.0)
    aim: Annotated[
        Literal["worst-case", "regret"],
        Field(description="least cost at the worst prices, or least excess over the best plan at any prices"),
    ] = "worst-case"


def corners(prices: Prices) -> list[dict[str, float]]:
    """Every choice of an end of each interval: cost is linear in prices, so the extremes lie here."""
    ends = {kind: tuple(dict.fromkeys(interval)) for kind, interval in prices.intervals.items()}
    return [dict(zip(ends, chosen, strict=True)) for chosen in product(*ends.values())]


def at_prices(instance: Instance, factors: dict[str, float]) -> Instance:
    """The instance without intervals, its prices, by the unit and by volume, these factors times those it gives."""
    network, gpu = instance.network, instance.cluster.gpu
    new = {
        "hb_domains": tuple(
            hb.model_copy(update={"usd_per_gpu": hb.usd_per_gpu * factors["hb"]}) for hb in network.hb_domains
        ),
        "nics": tuple(nic.model_copy(update={"usd": nic.usd * factors["nic"]}) for nic in network.nics),
        "switches": tuple(one.model_copy(update={"usd": one.usd * factors["switch"]}) for one in network.switches),
        "optics": tuple(one.model_copy(update={"usd": one.usd * factors["optics"]}) for one in network.optics),
    }
    priced = {
        "network": network.model_copy(update=new),
        "cluster": instance.cluster.model_copy(
            update={"gpu": gpu.model_copy(update={"usd": gpu.usd * factors["gpu"]})}
        ),
        "sharing": instance.sharing.model_copy(update={"discount": tuple(_discounts_at(instance, factors))}),
    }
    return instance.model_copy(update=priced | {"robust": None})


def _discounts_at(instance: Instance, factors: dict[str, float]) -> Iterator[Discount]:
    """The volume prices in USD, times the factor of their kind."""
    listed = list_prices(instance)
    for discount in instance.sharing.discount:
        usd = (usd * factors[discount.kind] for usd in discount.prices(listed[discount.kind][discount.item]))
        yield discount.model_copy(update={"usd": tuple(usd), "off": None})


def as_billed(instance: Instance) -> Instance:
    """The instance at the prices of a plan's bill: the worst ones where these are what the plan aims at."""
    robust = instance.robust
    if robust is None or robust.aim == "regret" or set(robust.prices.worst.values()) == {1.0}:
        return instance
    return at_prices(instance, robust.prices.worst)


def at_efficiency(instance: Instance, factor: float) -> Instance:
    """The instance of one network whose GPU reaches this factor times what it is said to reach."""
    gpu = instance.cluster.gpu
    efficiency = gpu.efficiency.times(factor)
    cluster = instance.cluster.model_copy(update={"gpu": gpu.model_copy(update={"efficiency": efficiency})})
    return instance.model_copy(update={"cluster": cluster, "robust": None})


def after_a_loss(instance: Instance, slower: float) -> Instance:
    """The instance of one network whose bounds are this much longer."""
    workloads = tuple(within(workload, workload.bound_s * slower) for workload in instance.workload)
    return instance.model_copy(update={"workload": workloads, "robust": None})


def within(workload: Workload, bound_s: float) -> Workload:
    """The workload with another bound."""
    others = dict.fromkeys(("min_tokens_per_s", "train_days", "train_tokens"))
    return workload.model_copy(update={"max_iteration_time_s": bound_s} | others)


def robust_disagreements(instance: Instance) -> Iterator[str]:
    """Sentences about robustness that does not go with the rest."""
    robust = instance.robust
    if robust is None:
        return
    gpu, (low, high) = instance.cluster.gpu, robust.efficiency
    if low > high:
        yield f"robust.efficiency = [{low:g}, {high:g}]: needs the smaller factor first"
    share = gpu.efficiency.largest_share
    if high * share > 1:
        most = math.floor(1000 / share) / 1000
        yield f"robust.efficiency = [{low:g}, {high:g}]: more than the peaks of {gpu.name}, needs at most {most:g}"
    for part in dict.fromkeys(robust.survive):
        if robust.survive.count(part) > 1:
            yield f"robust.survive: {part!r} appears twice, needs each part once"
    yield from _idle_factors(robust)
    if robust.aim == "regret" and robust.prices == Prices() and low == high:
        yield "robust.aim = 'regret': nothing may turn out otherwise, needs robust.prices or robust.efficiency"
    if instance.solver.top > 1:
        yield f"solver.top = {instance.solver.top}: runners-up are not searched for robust plans, needs 1"


def _idle_factors(robust: Robust) -> Iterator[str]:
    """Sentences about longer bounds that belong to no loss; a number for all parts belongs to any."""
    factors = robust.slower.of_part
    one_for_all = len(set(factors.values())) == 1
    for part, factor in factors.items():
        if factor > 1 and not robust.survive and one_for_all:
            yield f"robust.slower = {factor:g}: allows slower iterations after a loss, needs robust.survive"
            return
        if factor > 1 and part not in robust.survive and not one_for_all:
            yield f"robust.slower.{part} = {factor:g}: belongs to no loss, needs {part!r} in robust.survive"
