"""Catalog entries and the prices of a bill with the provenance of each figure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic import BaseModel
from rich.console import RenderableType
from rich.text import Text

from coopt.instance.base import Entry, Tag
from coopt.instance.catalog import KINDS, entries
from coopt.instance.doubts import basis_of, entry_of
from coopt.instance.hardware import Fibre, HbDomain, Panel
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, toml_text
from coopt.instance.transformer import Transformer
from coopt.plan.parts import Item
from coopt.report.words import figures, pieces

TAGS = (
    "Tags: S = read in the named source, 2nd = read in a document that quotes the source, D ="
    " derived, M = recalled, not seen in any source."
)
APART = ("name", "description", "sources")
TAG_WORDS: dict[Tag, str] = {
    "S": "read in the source",
    "2nd": "read in a document that quotes the source",
    "D": "derived",
    "M": "recalled, not seen in any source",
}
FIELDS = {
    HbDomain: ("usd_per_gpu", "w_per_gpu"),
    Panel: ("usd_per_port", "w_per_port"),
}
PLAIN = ("usd", "w")
"""Fields of prices and of power, of what is bought by the piece."""
OWN = "stated without a source"
NONE = "no power is counted for it"
STANDS = "existing, so not bought"
UNKNOWN = "the instance does not list this part"


def list_report(entries_by_kind: Mapping[str, Mapping[str, Entry]]) -> list[RenderableType]:
    """Names and descriptions, a table for each kind."""
    columns = ("name", "description")
    return [
        figures(kind, columns, (), [(e.name, e.description) for e in entry_of.values()])
        for kind, entry_of in entries_by_kind.items()
    ]


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
    raise InstanceError(f"catalog: no entry {name!r}, needs the name of an entry ({hint})")


def show_report(entries_by_kind: Mapping[str, Entry]) -> list[RenderableType]:
    """Every figure of the entries with its meaning, tag and source."""
    columns = ("field", "value", "meaning", "tag")
    shown = (
        (
            Text(f"{entry.name}, {kind}: {entry.description}".rstrip(": "), style="bold"),
            figures("", columns, (), _rows(entry, entry)),
            *_price(entry),
            *_parameters(entry),
        )
        for kind, entry in entries_by_kind.items()
    )
    return pieces(
        *shown,
        TAGS,
        [
            f"[{source.tag}] {', '.join(source.fields)}: {source.source}"
            for entry in entries_by_kind.values()
            for source in entry.sources
        ],
    )


def _price(entry: Entry) -> list[RenderableType]:
    """On what basis a price of the catalog stands; nothing of other entries."""
    basis = basis_of(entry)
    if basis is None:
        return []
    ends = [
        f"{word} ${end:,.0f}" for word, end in (("from", basis.least), ("to", basis.most)) if end
    ]
    known = f"; known {' '.join(ends)} ({basis.source})" if ends else ""
    return [f"Price: {basis.basis}, {basis.date}{known}."]


def _parameters(entry: Entry) -> list[RenderableType]:
    """The parameters of a model by component; nothing of other entries."""
    if not isinstance(entry, Transformer):
        return []
    from coopt.report.models import parameter_report  # needs arrays, which other entries do not

    return [parameter_report(entry)]


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


def _rows(table: BaseModel, entry: Entry, inside: str = "") -> Iterator[tuple[str, str, str, str]]:
    for name, field in type(table).model_fields.items():
        value: Any = getattr(table, name)
        place = f"{inside}{name}"
        if isinstance(value, BaseModel):
            yield from _rows(value, entry, f"{place}.")
        elif inside or name not in APART:
            source = entry.source_of(place)
            yield place, _toml_value(value), field.description or "", source.tag if source else "-"


def _toml_value(value: Any) -> str:
    """A value as one would write it in TOML."""
    if value is None:
        return "not stated"
    if isinstance(value, tuple) and any(isinstance(part, BaseModel) for part in value):
        return toml_text([part.model_dump(mode="json", exclude_none=True) for part in value])
    return f"{value:.10g}" if isinstance(value, float) else json.dumps(value)


class PriceOrigin(NamedTuple):
    """A line of the bill with the origin of its price and of its power, in words."""

    item: str
    usd: str
    w: str


def price_origins(instance: Instance, items: Iterable[Item]) -> tuple[PriceOrigin, ...]:
    """The origin of every line; a line that the instance does not know says so."""
    return tuple(PriceOrigin(item.item, *_price_origin(instance, item)) for item in items)


def _price_origin(instance: Instance, item: Item) -> tuple[str, str]:
    """The origin of the price of a line, and of its power."""
    # need numpy, which entries are shown without
    from coopt.network.growth import factor_paid
    from coopt.network.parts import standing_units

    kind, _ = item.product
    if kind in ("labour", "rack", "wan"):
        return OWN, OWN if item.unit_w else NONE
    entry = entry_of(instance, item.product)
    if entry is None:
        return UNKNOWN, UNKNOWN
    by = factor_paid(instance, item)
    if isinstance(entry, Fibre):
        return _at(by, _origin(entry, "usd" if item.name == entry.name else "usd_per_m")), NONE
    # A line of HB domains adds up their interconnect and their servers.
    hosted = kind == "hb" and "host" in instance.objective.include
    usd, w = (
        f"interconnect, {_origin(entry, field)}; servers, {_origin(entry, f'host_{field}')}"
        if hosted
        else _origin(entry, field)
        for field in next((of for form, of in FIELDS.items() if isinstance(entry, form)), PLAIN)
    )
    if not item.unit_usd and standing_units(instance)[item.product]:
        return STANDS, w
    return _at(by, usd), w


def _at(by: float, usd: str) -> str:
    """The origin of a price with the factor by which a phase pays another than the catalog's."""
    return usd if by == 1.0 else f"{by:g} times this price: {usd}"


def _origin(entry: Entry, field: str) -> str:
    source = entry.source_of(field)
    if source is None:
        return OWN
    text = source.source.removeprefix("derived: ").removeprefix("recalled: ")
    return f"{TAG_WORDS[source.tag]}: {text}"
