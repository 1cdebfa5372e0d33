"""Catalog entries and the prices of a bill with the provenance of each figure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel
from rich.console import RenderableType
from rich.text import Text

from coopt.instance.base import Entry, InstanceError, Provenance, Tag, toml_text
from coopt.instance.catalog import KINDS, entries
from coopt.instance.schema import Instance
from coopt.plan.parts import Item, ItemKind
from coopt.report.words import figures

TAGS = (
    "Tags: S read in the named source, 2nd quoted by somebody else, D derived, M recalled and not"
    " seen in a source."
)
APART = ("name", "description", "sources")
TAG_WORDS: dict[Tag, str] = {
    "S": "read in the source",
    "2nd": "quoted by somebody else",
    "D": "derived",
    "M": "recalled, seen in no source",
}
FIELDS = {
    "hb": ("usd_per_gpu", "w_per_gpu"),
    "panel": ("usd_per_port", "w_per_port"),
}  # others have `usd` and `w`
OWN = "stated in the instance without a source"
NONE = "draws no power"
UNKNOWN = "not in the instance"


def list_report(entries_by_kind: Mapping[str, Mapping[str, Entry]]) -> Iterator[RenderableType]:
    """Names and descriptions, a table for each kind."""
    for kind, entry_of in entries_by_kind.items():
        yield figures(
            kind, ("name", "description"), (), [(e.name, e.description) for e in entry_of.values()]
        )


def find_everywhere(name: str) -> dict[str, Entry]:
    """The entries of that name by kind.

    Raises
    ------
    InstanceError
        When no kind has one; the message names the closest entries.
    """
    matches = {kind: entry_of[name] for kind in KINDS if name in (entry_of := entries(kind))}
    if matches:
        return matches
    names = [names for kind in KINDS for names in entries(kind)]
    close = get_close_matches(name, names, n=3, cutoff=0.4)
    hint = f"closest: {', '.join(close)}" if close else "`coopt catalog list` shows them all"
    raise InstanceError(f"catalog: no entry {name!r}, needs the name of one ({hint})")


def show_report(entries_by_kind: Mapping[str, Entry]) -> Iterator[RenderableType]:
    """Every figure of the entries with its meaning, tag and source."""
    for kind, entry in entries_by_kind.items():
        yield Text(f"{entry.name}, {kind}: {entry.description}".rstrip(": "), style="bold")
        yield figures(
            "", ("field", "value", "meaning", "tag"), (), list(_rows(entry, entry.sources))
        )
    yield TAGS
    for entry in entries_by_kind.values():
        for source in entry.sources:
            yield f"[{source.tag}] {', '.join(source.fields)}: {source.source}"


def entries_json(entries_by_kind: Mapping[str, Entry]) -> str:
    """The entries by kind as one JSON document."""
    return json.dumps(
        {kind: entry.model_dump(mode="json") for kind, entry in entries_by_kind.items()}, indent=2
    )


def entries_toml(entries_by_kind: Mapping[str, Entry]) -> str:
    """The entries as a catalog file holds them, without keys that are as if left out."""
    blocks = []
    for kind, entry in entries_by_kind.items():
        fields = entry.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
        lines = [f"{key} = {_toml(value)}" for key, value in fields.items()]
        blocks.append("\n".join([f"[[{kind}]]", *lines, ""]))
    return "\n".join(blocks)


def _toml(value: Any) -> str:
    """A value in TOML; tables inline, lists of tables one a line."""
    if isinstance(value, list) and any(isinstance(part, dict) for part in value):
        return "\n".join(["[", *(f"    {toml_text(part)}," for part in value), "]"])
    return toml_text(value)


def provenance(field: str, sources: Sequence[Provenance]) -> Provenance | None:
    """The source of a field; one named for a table (`efficiency`) covers the fields inside."""
    # From the field itself to the tables around it: the nearest source is the one meant.
    tables = [field.rsplit(".", depth)[0] for depth in range(field.count(".") + 1)]
    for name in tables:
        for source in sources:
            if name in source.fields:
                return source
    return None


def _rows(
    table: BaseModel, sources: Sequence[Provenance], inside: str = ""
) -> Iterator[tuple[str, str, str, str]]:
    for name, field in type(table).model_fields.items():
        value: Any = getattr(table, name)
        place = f"{inside}{name}"
        if isinstance(value, BaseModel):
            yield from _rows(value, sources, f"{place}.")
        elif inside or name not in APART:
            source = provenance(place, sources)
            yield place, _toml_value(value), field.description or "", source.tag if source else "-"


def _toml_value(value: Any) -> str:
    """A value as one would write it in TOML."""
    if value is None:
        return "not stated"
    if isinstance(value, tuple) and any(isinstance(part, BaseModel) for part in value):
        return toml_text([part.model_dump(mode="json", exclude_none=True) for part in value])
    return f"{value:.10g}" if isinstance(value, float) else json.dumps(value)


@dataclass(frozen=True, kw_only=True)
class PriceOrigin:
    """A line of the bill with the origin of its price and of its power, in words."""

    item: str
    usd: str
    w: str


def price_origins(instance: Instance, items: Iterable[Item]) -> tuple[PriceOrigin, ...]:
    """The origin of every line; a line that the instance does not know says so."""
    return tuple(_price_origin(instance, item) for item in items)


def _price_origin(instance: Instance, item: Item) -> PriceOrigin:
    from coopt.network.growth import factor_paid  # needs numpy, which entries are shown without

    kind, name = item.product
    if kind in ("labour", "rack", "wan"):
        return PriceOrigin(item=item.item, usd=OWN, w=OWN if item.unit_w else NONE)
    catalog_kind, entry = _entry(instance, kind, name)
    if entry is None:
        return PriceOrigin(item=item.item, usd=UNKNOWN, w=UNKNOWN)
    hosted = kind == "hb" and "host" in instance.objective.include
    fields = FIELDS.get(catalog_kind, ("usd", "w"))
    # A line of HB domains adds up their interconnect and their servers.
    usd, w = (
        f"interconnect, {_origin(entry, field)}; servers, {_origin(entry, f'host_{field}')}"
        if hosted
        else _origin(entry, field)
        for field in fields
    )
    # A phase may pay another price than the catalog's: the factor belongs to its origin.
    by = factor_paid(instance, item)
    return PriceOrigin(item=item.item, usd=usd if by == 1.0 else f"{by:g} of the price {usd}", w=w)


def _entry(instance: Instance, kind: ItemKind, name: str) -> tuple[str, Entry | None]:
    """The product that a line of the bill has bought, and the kind that lists it: panels are billed
    as switches.
    """
    network = instance.network
    lists: dict[ItemKind, list[tuple[str, tuple[Entry, ...]]]] = {
        "hb": [("hb", network.hb_domains)],
        "nic": [("nic", network.nics)],
        "optics": [("optics", network.optics)],
        "switch": [("switch", network.switches), ("panel", network.panels)],
        "gpu": [("gpu", (instance.cluster.gpu,))],
    }
    matches = (
        (catalog_kind, candidate)
        for catalog_kind, entries_of in lists.get(kind, ())
        for candidate in entries_of
        if candidate.name == name
    )
    return next(matches, (kind, None))


def _origin(entry: Entry, field: str) -> str:
    source = provenance(field, entry.sources)
    if source is None:
        return OWN
    text = source.source.removeprefix("derived: ").removeprefix("recalled: ")
    return f"{TAG_WORDS[source.tag]}: {text}"
