"""Where the prices of a bill come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from coopt.instance.base import Entry, Tag
from coopt.instance.schema import Instance
from coopt.plan.parts import ItemKind
from coopt.plan.schema import Item
from coopt.report.catalog import provenance

SAID: dict[Tag, str] = {
    "S": "read in the source",
    "2nd": "quoted by somebody else",
    "D": "derived",
    "M": "recalled, seen in no source",
}
FIELDS = {"hb": ("usd_per_gpu", "w_per_gpu")}  # of a price and of a power; other kinds have `usd` and `w`
OWN = "stated in the instance without a source"


@dataclass(frozen=True, kw_only=True)
class Sourced:
    """A line of the bill with the origin of its price and of its power, in words."""

    item: str
    usd: str
    w: str


def sourced(instance: Instance, items: Iterable[Item]) -> tuple[Sourced, ...]:
    """The origin of every line; a line that the instance does not know says so."""
    return tuple(_sourced(instance, item) for item in items)


def _sourced(instance: Instance, item: Item) -> Sourced:
    entry = next((one for one in _entries(instance, item.kind) if item.item in (one.name, f"{one.name} (idle)")), None)
    if entry is None:
        return Sourced(item=item.item, usd="not in the instance", w="not in the instance")
    usd, w = (_origin(entry, field) for field in FIELDS.get(item.kind, ("usd", "w")))
    return Sourced(item=item.item, usd=usd, w=w)


def _entries(instance: Instance, kind: ItemKind) -> Iterator[Entry]:
    network = instance.network
    kinds: dict[ItemKind, tuple[Entry, ...]] = {
        "hb": network.hb_domains, "nic": network.nics, "switch": network.switches, "optics": network.optics,
    }  # fmt: skip
    yield from kinds.get(kind, ())
    if kind in ("hb", "gpu"):
        yield instance.cluster.gpu


def _origin(entry: Entry, field: str) -> str:
    if field.endswith("_per_gpu") and field not in type(entry).model_fields:
        field = field.removesuffix("_per_gpu")  # an idle GPU stands among the HB domains
    found = provenance(field, entry.sources)
    if found is None:
        return OWN
    said = found.source.removeprefix("derived: ").removeprefix("recalled: ")
    return f"{SAID[found.tag]}: {said}"
