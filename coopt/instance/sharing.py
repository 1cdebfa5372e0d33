"""How workloads share what is built: in turn, or each on islands of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from coopt.instance.base import Count, Fraction, Name, Part, Price, one_or_many, one_or_series
from coopt.instance.core import Core, core_disagreements

if TYPE_CHECKING:
    from coopt.instance.schema import Instance

Kind = Literal["hb", "nic", "switch", "optics", "gpu"]
Prices = Annotated[tuple[Price, ...], one_or_series]
Shares = Annotated[tuple[Fraction, ...], one_or_series]


class MostProducts(Part):
    """How many different products of a kind all islands together may use; what is left out is free."""

    hb: Annotated[Count | None, Field(description="kinds of HB domain")] = None
    nic: Annotated[Count | None, Field(description="network adapters")] = None
    switch: Annotated[Count | None, Field(description="switches")] = None
    optics: Annotated[Count | None, Field(description="optics")] = None


class Discount(Part):
    """Prices of one product by the quantity bought over all islands."""

    kind: Annotated[Kind, Field(description="what the product is: hb counts GPUs in HB domains, gpu the idle ones too")]
    item: Annotated[Name, Field(description="name of the product")]
    begins: Annotated[
        tuple[Count, ...],
        one_or_series,
        Field(alias="from", min_length=1, description="units from which on each price holds, rising"),
    ]
    usd: Annotated[Prices | None, Field(description="price of a unit from each of them on (USD)")] = None
    off: Annotated[Shares | None, Field(description="or the share of the price taken off")] = None
    applies: Annotated[
        Literal["all-units", "incremental"],
        Field(description="whether a price holds for every unit bought or for those beyond its threshold"),
    ] = "all-units"

    @model_validator(mode="after")
    def _one_price_each(self) -> Discount:
        what = f"discount on {self.item!r}"
        if (self.usd is None) == (self.off is None):
            raise ValueError(f"{what}: needs either usd or off, one for each entry of from")
        given = self.usd if self.usd is not None else self.off
        assert given is not None
        if len(given) != len(self.begins):
            raise ValueError(f"{what}: {len(self.begins)} thresholds and {len(given)} prices, needs one for each")
        if list(self.begins) != sorted(set(self.begins)):
            raise ValueError(f"{what}: from = {list(self.begins)}, needs rising thresholds")
        return self

    def prices(self, usd: float) -> tuple[float, ...]:
        """The prices from each threshold on, of a product whose price is `usd` (USD); shares give whole cents."""
        if self.usd is not None:
            return self.usd
        assert self.off is not None
        return tuple(round(usd * (1 - off), 2) for off in self.off)


class Sharing(Part):
    """How workloads share the cluster: all of it in turn, or an island of HB domains each at the same time."""

    mode: Annotated[
        Literal["time", "partition"], Field(description="all of the cluster in turn, or a part of it each")
    ] = "time"
    most_products: Annotated[MostProducts, Field(description="partition: most different products of a kind")] = (
        MostProducts()
    )
    discount: Annotated[
        tuple[Discount, ...], one_or_many, Field(description="partition: prices by the quantity of all islands")
    ] = ()
    core: Annotated[Core | None, Field(description="partition: switches that join all islands; none if left out")] = (
        None
    )


def partition_disagreements(instance: Instance) -> Iterator[str]:
    """Sentences about `[sharing]` that do not go with the rest of an instance."""
    sharing = instance.sharing
    sized = [workload.name for workload in instance.workload if workload.gpus is not None]
    if sharing.mode == "time":
        asked = {"most_products": sharing.most_products != MostProducts(), "discount": sharing.discount}
        for key, given in {**asked, "core": sharing.core}.items():
            if given:
                yield f"sharing.{key}: only islands are bought together, needs sharing.mode = 'partition'"
        for name in sized:
            yield f"workload {name!r}: gpus: every workload has all GPUs in turn, needs sharing.mode = 'partition'"
        return
    if len(instance.cluster.gpus) > 1:
        yield (
            f"cluster.gpus = {list(instance.cluster.gpus)}: islands take as many GPUs as they need of those there are, "
            "needs one number"
        )
    if instance.solver.top > 1:
        yield f"solver.top = {instance.solver.top}: a partition has no runners-up, needs 1"
    yield from _discounts(instance)
    yield from core_disagreements(instance)


def list_prices(instance: Instance) -> dict[Kind, dict[str, float]]:
    """The price of a unit of every product an instance lists (USD), by kind and name."""
    network, gpu = instance.network, instance.cluster.gpu
    return {
        "hb": {hb.name: hb.usd_per_gpu for hb in network.hb_domains},
        "nic": {nic.name: nic.usd for nic in network.nics},
        "switch": {switch.name: switch.usd for switch in network.switches},
        "optics": {optic.name: optic.usd for optic in network.optics},
        "gpu": {gpu.name: gpu.usd},
    }


def _discounts(instance: Instance) -> Iterator[str]:
    include, listed = instance.objective.include, list_prices(instance)
    seen: set[tuple[Kind, str]] = set()
    for discount in instance.sharing.discount:
        kind, item = discount.kind, discount.item
        where = f"sharing.discount: {kind} {item!r}"
        if item not in listed[kind]:
            yield f"{where}: the instance does not list it, needs one of {', '.join(listed[kind])}"
            continue
        if kind not in include:
            yield f"{where}: objective.include does not count {kind}, needs it there or no discount"
        if (kind, item) in seen:
            yield f"{where}: has two discounts, needs one with all its thresholds"
        seen.add((kind, item))
        prices = [listed[kind][item], *discount.prices(listed[kind][item])]
        if any(later > earlier for earlier, later in pairwise(prices)):
            shown = ", ".join(f"{price:,.10g}" for price in prices)
            yield f"{where}: prices {shown} USD, needs prices that do not rise with the quantity"
