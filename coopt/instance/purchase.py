"""What is bought beside what is in use: spare parts, labour and support, as shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field

from coopt.instance.base import Table
from coopt.instance.listings import both

Share = Annotated[float, Field(ge=0, le=1)]


class SpareRates(Table):
    """What is bought beside what is in use, as shares of it, rounded up."""

    nic: Annotated[Share, Field(description="NICs")] = 0.0
    switch: Annotated[Share, Field(description="switches of each product")] = 0.0
    optics: Annotated[Share, Field(description="optics of each product")] = 0.0

    def of(self, kind: str) -> float:
        """The share of a kind of item; 0 of kinds without spares."""
        return float(getattr(self, kind)) if kind in SpareRates.model_fields else 0.0


class WorkRates(Table):
    """Labour and support, as shares of what is bought."""

    labour_share: Annotated[float, Field(ge=0, le=10, description="labour to install it, once")] = 0.0
    support_share: Annotated[float, Field(ge=0, le=10, description="its support, a year")] = 0.0
    years: Annotated[float, Field(ge=0, le=100, description="time over which it is supported (years)")] = 4.0

    def due(self, capex_usd: float) -> Iterator[tuple[str, float]]:
        """What is paid for labour and for support over the years, by name (USD); nothing at a share of 0."""
        if self.labour_share:
            yield LABOUR, capex_usd * self.labour_share
        if self.support_share and self.years:
            yield f"{SUPPORT}, {self.years:g} years", capex_usd * self.support_share * self.years


LABOUR, SUPPORT = "labour to install", "support"


def not_counted(works: Iterable[WorkRates], spares: Iterable[SpareRates]) -> str:
    """What else it takes to have what is bought in place, of that which some purchase has no rate for."""
    works, spares = tuple(works), tuple(spares)
    without = {
        "installation": not all(one.labour_share for one in works),
        "support": not all(one.support_share for one in works),
        "freight": True,
        "spare parts": not all(any(one.of(kind) for kind in SpareRates.model_fields) for one in spares),
    }
    return both(name for name, missing in without.items() if missing)
