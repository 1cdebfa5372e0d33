"""The catalog: find an entry by name, or change some keys of one.

How often parts of a cluster fail is an entry too, with the interval that its source allows for; and
GPUs say how far iteration times that are predicted for them are off.

Each file of `coopt/catalog/` holds one kind as an array of tables; names are unique within their
kind. Entries of one's own (`coopt/instance/quotes.py`) come before those of the same name that ship
with coopt.
"""

import math
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from coopt.instance.base import Count, Entry, Fraction, Name, Provenance, Table
from coopt.instance.errors import InstanceError
from coopt.instance.hardware import Gpu, HbDomain, Nic, Optic, Panel, Switch
from coopt.instance.numerics import REORDERED
from coopt.instance.software import Software
from coopt.instance.transformer import ScalingLaw, Transformer

Yearly = Annotated[float, Field(ge=0, le=1000)]


class ModelError(Entry):
    """Errors of predicted times on runs of one kind of hardware and precision, or of one kind of
    model.
    """

    left_out: Annotated[
        Fraction,
        Field(
            description="mean size of the error where the source of a run is left out of the fit"
        ),
    ]
    runs: Annotated[Count, Field(description="published runs")]


class FailureRate(Table):
    """Failures of one part, or flaps, in a year of 8,760 hours."""

    per_year: Annotated[Yearly, Field(description="how often it happens to one part (1/year)")] = (
        0.0
    )
    low: Annotated[
        Yearly | None, Field(description="least that the source allows for (1/year)")
    ] = None
    high: Annotated[
        Yearly | None, Field(description="most that the source allows for (1/year)")
    ] = None

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if not self.at("low") <= self.per_year <= self.at("high"):
            raise ValueError(
                f"low = {self.at('low'):g}, per_year = {self.per_year:g}, high ="
                f" {self.at('high'):g}: needs low <= per_year <= high"
            )
        return self

    def at(self, end: str) -> float:
        """The rate at an end of its interval, "low" or "high"; as published for any other word, or
        without an end.
        """
        value = {"low": self.low, "high": self.high}.get(end)
        return self.per_year if value is None else value


NEVER = FailureRate()


class FailureRates(Entry):
    """How often each kind of part ends a training run, and how often links flap."""

    gpu: Annotated[FailureRate, Field(description="a GPU that trains, without its memory")] = NEVER
    hbm: Annotated[FailureRate, Field(description="the memory of a GPU that trains")] = NEVER
    host: Annotated[
        FailureRate, Field(description="a host: CPUs, power supplies, disks, maintenance")
    ] = NEVER
    nic: Annotated[FailureRate, Field(description="a network adapter of a GPU that trains")] = NEVER
    optic: Annotated[
        FailureRate, Field(description="one end of a link: transceiver and half the cable")
    ] = NEVER
    switch: Annotated[FailureRate, Field(description="a switch")] = NEVER
    domain: Annotated[FailureRate, Field(description="an HB domain: what its GPUs share")] = NEVER
    software: Annotated[FailureRate, Field(description="software, by GPUs that train")] = NEVER
    flap: Annotated[
        FailureRate,
        Field(
            description=(
                "one end of the link of a NIC goes down for `availability.flap_s` and comes back;"
                " ends no run"
            )
        ),
    ] = NEVER
    gpus_per_host: Annotated[Count, Field(description="GPUs of a host")] = 8

    @property
    def of_part(self) -> dict[str, FailureRate]:
        """The rate of every kind of part whose failure may end a run."""
        names = ("gpu", "hbm", "host", "nic", "optic", "switch", "domain", "software")
        return {name: getattr(self, name) for name in names}


KINDS: dict[str, type[Entry]] = {
    "gpu": Gpu,
    "hb_domain": HbDomain,
    "nic": Nic,
    "switch": Switch,
    "optic": Optic,
    "panel": Panel,
    "model": Transformer,
    "software": Software,
    "failure_rates": FailureRates,
    "model_error": ModelError,
    "scaling_law": ScalingLaw,
}
Book = Mapping[str, Mapping[str, Entry]]
"""Entries by kind and name."""


class Changed(BaseModel):
    """An entry with some keys changed: those that stand here, tables in it key by key; all others
    are kept.
    """

    model_config = ConfigDict(extra="allow")

    extends: Annotated[Name, Field(description="the catalog entry that is changed")]


@cache
def _tables(kind: str) -> dict[str, Any]:
    """The file of a kind as it is written."""
    return tomllib.loads(files("coopt").joinpath("catalog", f"{kind}.toml").read_text("utf-8"))


@cache
def entries(kind: str) -> dict[str, Entry]:
    """All catalog entries of a kind by name, in file order; read once."""
    tables = _tables(kind)
    rows = [KINDS[kind].model_validate(row) for row in tables[kind]]
    rows += [_at_one_rate(rows, **row) for row in tables.get("at_one_rate", ())]
    by_name = {entry.name: entry for entry in rows}
    assert len(by_name) == len(rows), f"catalog/{kind}.toml: a name appears twice"
    return by_name


def box_of(name: str) -> Switch | None:
    """The box that a switch of the catalog is at one of its rates alone; None where it is no such
    name.
    """
    return _boxes().get(name)


@cache
def _boxes() -> dict[str, Switch]:
    boxes = (
        (row["name"], entries("switch")[row["box"]]) for row in _tables("switch")["at_one_rate"]
    )
    return {name: box for name, box in boxes if isinstance(box, Switch)}


def ports_of_modules(switch: Switch, links: int) -> int:
    """The ports of a switch, as it is run, that its cages have modules for which carry so many
    links each.

    A switch of one rate of a box of the catalog has the cages of the box.
    """
    box = box_of(switch.name) or switch
    # a number of cages that is whole but for rounding does not lose one
    cages = math.floor(switch.radix * switch.port_gbit_s / box.cage_gbit_s * (1.0 + REORDERED))
    return min(switch.radix, links * cages)


def _at_one_rate(
    catalogued: list[Entry], *, name: str, box: str, port_gbit_s: float, description: str
) -> Switch:
    """A switch of the catalog run in one of its modes alone, by a name of its own and at the price
    of the box.
    """
    ways = (
        way
        for entry in catalogued
        if isinstance(entry, Switch) and entry.name == box
        for way in entry.ways
    )
    mode = next(way for way in ways if way.port_gbit_s == port_gbit_s)
    sources = tuple(source for source in mode.sources if source.fields != ("modes",))
    return mode.model_copy(
        update={"name": name, "description": description, "modes": (), "sources": sources}
    )


def listed(kind: str | None = None) -> dict[str, Any]:
    """The catalog: entries by name of one kind, or of every kind by kind.

    Raises
    ------
    InstanceError
        When there is no such kind.

    Examples
    --------
    >>> import coopt
    >>> coopt.catalog("gpu")["h100-sxm"].hbm_gb > 80
    True
    """
    if kind is None:
        return {key: dict(entries(key)) for key in KINDS}
    if kind not in KINDS:
        raise InstanceError(f"catalog: kind = {kind!r}, needs one of {', '.join(map(repr, KINDS))}")
    return dict(entries(kind))


class UnknownNameError(ValueError):
    """A name that the catalog does not have."""


def find(kind: str, name: str, own: Book | None = None) -> Entry:
    """The entry of that kind and name.

    Parameters
    ----------
    own
        Entries that come before those of the catalog.

    Raises
    ------
    ValueError
        When there is none; the message names the closest entries.
    """
    by_name = {**entries(kind), **(own or {}).get(kind, {})}
    if name in by_name:
        return by_name[name]
    matches = get_close_matches(name, by_name, n=3, cutoff=0.5)
    label = kind.replace("_", " ")
    suggestion = f"closest: {', '.join(matches)}" if matches else f"one of: {', '.join(by_name)}"
    raise UnknownNameError(
        f"the catalog has no {label} of this name, needs a catalog name ({suggestion}) or an inline"
        " table"
    )


def named(kind: str, *, listed: bool = False, optional: bool = False) -> BeforeValidator:
    """Let a field take a catalog name, or a table that changes an entry, in place of a whole table
    of that kind.

    Parameters
    ----------
    listed
        Whether a list may stand in the place of the field, which the table around it takes apart.
    optional
        Whether the field may be None.
    """

    def resolve(value: Any, info: ValidationInfo) -> Any:
        book: Book | None = info.context
        if isinstance(value, str):
            return find(kind, value, book)
        return (
            changed(kind, value, book)
            if isinstance(value, Mapping) and "extends" in value
            else value
        )

    form: Any = str | KINDS[kind] | Changed
    if optional:
        form = form | None
    return BeforeValidator(
        resolve, json_schema_input_type=form | tuple[form, ...] if listed else form
    )


def changed(kind: str, table: Mapping[str, Any], book: Book | None = None) -> dict[str, Any]:
    """The table of the entry that `extends` names, with the other keys changed; their own sources
    come first.

    Raises
    ------
    ValueError
        When there is no such entry.
    """
    name = table["extends"]
    if not isinstance(name, str):
        raise ValueError(f"extends = {name!r}: needs a catalog name")
    try:
        base = find(kind, name, book)
    except ValueError as error:
        raise ValueError(f"extends = {name!r}: {error}") from None
    changes = {key: value for key, value in table.items() if key != "extends"}
    base_sources = [
        source for base_source in base.sources if (source := _without(base_source, base, changes))
    ]
    own_sources = changes.get("sources", ())
    new_sources = own_sources if isinstance(own_sources, list | tuple) else [own_sources]
    return _merged(base.model_dump(by_alias=True), changes) | {
        "sources": (*new_sources, *base_sources)
    }


def _merged(table: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The table with values replaced, tables inside key by key."""
    return table | {
        key: (
            _merged(table[key], value)
            if isinstance(value, Mapping) and isinstance(table.get(key), dict)
            else value
        )
        for key, value in changes.items()
    }


def _without(source: Provenance, base: Entry, changes: Mapping[str, Any]) -> Provenance | None:
    """The source of the figures that stay; None where none does."""
    fields: list[str] = []
    for field in source.fields:
        field_key, _, inner_key = field.partition(".")
        change, table = changes.get(field_key), getattr(base, field_key, None)
        if field_key not in changes or (
            inner_key and isinstance(change, Mapping) and inner_key.split(".")[0] not in change
        ):
            fields.append(field)
        elif not inner_key and isinstance(change, Mapping) and isinstance(table, BaseModel):
            # what told a whole table still tells the figures of it that stay
            fields += [
                f"{field_key}.{key}" for key in type(table).model_fields if key not in change
            ]
    return source.model_copy(update={"fields": tuple(fields)}) if fields else None
