"""What a plan has to stand: losses it survives, prices and efficiencies that may turn out otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from coopt.instance.base import Table, one_or_many, one_or_series

Lost = Literal["nic", "leaf", "plane", "domain"]
Factor = Annotated[float, Field(gt=0, le=1000)]
Interval = Annotated[tuple[Factor, Factor], one_or_series]
Longer = Annotated[float, Field(ge=1, le=1000)]


class Prices(Table):
    """Intervals of factors on the prices of a kind of item; [1, 1] where left out."""

    hb: Annotated[Interval, Field(description="HB domains; their idle GPUs go by gpu")] = (1.0, 1.0)
    nic: Annotated[Interval, Field(description="NICs")] = (1.0, 1.0)
    switch: Annotated[Interval, Field(description="switches")] = (1.0, 1.0)
    optics: Annotated[Interval, Field(description="optics")] = (1.0, 1.0)
    gpu: Annotated[Interval, Field(description="GPUs, those that stay idle too")] = (1.0, 1.0)

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


class Slower(Table):
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


class Robust(Table):
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
