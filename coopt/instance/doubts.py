"""How far the prices of products may be off."""

from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from coopt.instance.base import PRICE_DOUBT, Entry, Name, Positive, Table, one_or_many
from coopt.instance.catalog import KINDS, entries, tables_of
from coopt.instance.schema import Instance

PRICES = ("usd", "usd_per_gpu", "host_usd_per_gpu", "usd_per_port")
"""Fields with prices."""


class PriceBasis(Table):
    """On what basis the prices of some products of the catalog stand."""

    kind: Annotated[Name, Field(description="kind of the products")]
    names: Annotated[tuple[Name, ...], one_or_many, Field(description="the products")]
    basis: Annotated[
        Literal["list", "street", "volume", "study", "estimate"],
        Field(description="who would pay it"),
    ]
    date: Annotated[str, Field(description="year, or year and month", pattern=r"^\d{4}(-\d\d)?$")]
    least: Annotated[Positive | None, Field(description="the lowest price known (USD)")] = None
    most: Annotated[Positive | None, Field(description="the highest price known (USD)")] = None
    source: Annotated[str, Field(description="where the lowest and the highest stand")] = ""


@cache
def price_bases() -> dict[tuple[str, str], PriceBasis]:
    """The basis of every price of the catalog, by kind and name."""
    rows = [PriceBasis.model_validate(row) for row in tables_of("price")["price"]]
    return {(row.kind, name): row for row in rows for name in row.names}


def price_of(entry: Entry) -> float:
    """The price of a product, or of one of its GPUs or ports, with the servers (USD)."""
    return sum(getattr(entry, field, None) or 0.0 for field in PRICES)


def basis_of(entry: Entry) -> PriceBasis | None:
    """The basis of a price as the catalog has it; None for other prices."""
    kind = next(kind for kind, form in KINDS.items() if isinstance(entry, form))
    basis = price_bases().get((kind, entry.name))
    return basis if basis and price_of(entries(kind)[entry.name]) == price_of(entry) else None


def entry_of(instance: Instance, product: tuple[str, str]) -> Entry | None:
    """The entry of a product by kind and name, listed or of what stands; None where the instance
    has none.
    """
    kind, name = product
    network, standing = instance.network, instance.existing
    lists: dict[str, tuple[Entry | None, ...]] = {
        "hb": (*network.hb_domains, *(one.hb_domain for one in standing)),
        "nic": (*network.nics, *(one.nic for one in standing)),
        "optics": (
            *network.optics,
            *(end for one in standing for ends in one.ends for end in ends),
        ),
        # panels are billed as switches
        "switch": (
            *network.switches,
            *network.panels,
            *(s for one in standing for s in one.switches),
        ),
        "gpu": instance.cluster.kinds,
    }
    if kind == "fibre":
        return next((one for one in network.fibre if name in (one.name, one.metre)), None)
    return next((entry for entry in lists.get(kind, ()) if entry and entry.name == name), None)


def price_doubt(instance: Instance, product: tuple[str, str], *, rises: bool) -> float:
    """The share by which the price of a product may rise, or fall: to the highest or the lowest
    price that is known of it, or else by how it is known; 0 where no source is named, as for quotes
    of one's own.
    """
    entry = entry_of(instance, product)
    if entry is None:
        return 0.0
    sources = [entry.source_of(field) for field in PRICES]
    doubt = max((PRICE_DOUBT[source.tag] for source in sources if source), default=0.0)
    basis = basis_of(entry)
    end = basis and (basis.most if rises else basis.least)
    return abs(end / price_of(entry) - 1.0) if doubt and end else doubt
