"""How far the prices of products may be off."""

from __future__ import annotations

from coopt.instance.base import PRICE_DOUBT, Entry
from coopt.instance.schema import Instance

PRICES = ("usd", "usd_per_gpu", "host_usd_per_gpu", "usd_per_port")
"""Fields with prices."""


def entry_of(instance: Instance, product: tuple[str, str]) -> Entry | None:
    """The entry of a product by kind and name; None where the instance has none."""
    kind, name = product
    network = instance.network
    # panels are billed as switches
    lists: dict[str, tuple[Entry, ...]] = {
        "hb": network.hb_domains,
        "nic": network.nics,
        "optics": network.optics,
        "switch": (*network.switches, *network.panels),
        "gpu": instance.cluster.generations or (instance.cluster.gpu,),
    }
    return next((entry for entry in lists.get(kind, ()) if entry.name == name), None)


def price_doubt(instance: Instance, product: tuple[str, str]) -> float:
    """The share by which the price of a product may be off; 0 where no source is named, as for
    quotes of one's own.
    """
    entry = entry_of(instance, product)
    sources = [] if entry is None else [entry.source_of(field) for field in PRICES]
    return max((PRICE_DOUBT[source.tag] for source in sources if source is not None), default=0.0)
