"""How workloads share what is built: in turn, or each on islands of its own."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from coopt.instance.base import Count, Fraction, Name, Positive, Price, Table, one_or_many, one_or_series

Kind = Literal["hb", "nic", "switch", "optics", "gpu"]
Prices = Annotated[tuple[Price, ...], one_or_series]
Shares = Annotated[tuple[Fraction, ...], one_or_series]


class MostProducts(Table):
    """How many different products of a kind all islands together may use; what is left out is free."""

    hb: Annotated[Count | None, Field(description="kinds of HB domain")] = None
    nic: Annotated[Count | None, Field(description="network adapters")] = None
    switch: Annotated[Count | None, Field(description="switches")] = None
    optics: Annotated[Count | None, Field(description="optics")] = None


class Discount(Table):
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


class Sharing(Table):
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


class Core(Table):
    """Switches between islands, and what islands must be able to send through them."""

    switch: Annotated[Name, Field(description="name of a listed switch, which the core consists of")]
    gbit_s_per_gpu: Annotated[
        Positive, Field(description="what every GPU that trains can send to other islands (Gbit/s)")
    ]
    optic: Annotated[
        Name | None, Field(description="name of the listed optic at both ends of its links; chosen where left out")
    ] = None
