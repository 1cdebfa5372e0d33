"""The catalog: entries by name, and entries with some keys changed.

Failure rates of parts, with the intervals that their source gives, are an entry too; GPUs state the
errors of iteration times predicted for them.

Each file of `coopt/catalog/` holds one kind as an array of tables; names are unique within their
kind. User entries (`coopt/instance/quotes.py`) take precedence over catalog entries of the same
name.
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
    """Errors of predicted times on runs of one hardware and precision, or of one kind of model."""

    left_out: Annotated[
        Fraction,
        Field(
            description="mean size of the error where the source of a run is left out of the fit"
        ),
    ]
    runs: Annotated[Count, Field(description="published runs")]


class FailureRate(Table):
    """Failures (or link flaps) of one part per year of 8,760 hours."""

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
        """Return the rate at the "low" or "high" end of its interval; the published rate for any
        other value or without an interval.
        """
        value = {"low": self.low, "high": self.high}.get(end)
        return self.per_year if value is None else value


NEVER = FailureRate()


class FailureRates(Entry):
    """Rates at which each kind of part ends a training run, and at which links flap."""

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
        """The rate of every kind of part whose failure can end a run."""
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
    """An entry with some keys changed: nested tables are merged key by key, and other keys are
    kept.
    """

    model_config = ConfigDict(extra="allow")

    extends: Annotated[Name, Field(description="the catalog entry that is changed")]


@cache
def _tables(kind: str) -> dict[str, Any]:
    """Return the file of a kind as parsed TOML."""
    return tomllib.loads(files("coopt").joinpath("catalog", f"{kind}.toml").read_text("utf-8"))


@cache
def entries(kind: str) -> dict[str, Entry]:
    """Return all catalog entries of a kind by name, in file order; cached."""
    tables = _tables(kind)
    rows = [KINDS[kind].model_validate(row) for row in tables[kind]]
    rows += [_at_one_rate(rows, **row) for row in tables.get("at_one_rate", ())]
    by_name = {entry.name: entry for entry in rows}
    assert len(by_name) == len(rows), f"catalog/{kind}.toml: a name appears twice"
    return by_name


def box_of(name: str) -> Switch | None:
    """Return the multi-rate switch of which a catalog switch is one mode; None for other names."""
    return _boxes().get(name)


@cache
def _boxes() -> dict[str, Switch]:
    boxes = (
        (row["name"], entries("switch")[row["box"]]) for row in _tables("switch")["at_one_rate"]
    )
    return {name: box for name, box in boxes if isinstance(box, Switch)}


def ports_of_modules(switch: Switch, links: int) -> int:
    """Return the number of ports that the cages of a switch serve with modules of `links` links
    each.

    A single-rate switch taken from a multi-rate one has the cages of the latter.
    """
    box = box_of(switch.name) or switch
    # rounding must not remove a cage
    cages = math.floor(switch.radix * switch.port_gbit_s / box.cage_gbit_s * (1.0 + REORDERED))
    return min(switch.radix, links * cages)


def _at_one_rate(
    catalogued: list[Entry], *, name: str, box: str, port_gbit_s: float, description: str
) -> Switch:
    """Return a catalog switch in one of its modes only, under its own name and at the same
    price.
    """
    in_each_mode = (
        way
        for entry in catalogued
        if isinstance(entry, Switch) and entry.name == box
        for way in entry.in_each_mode
    )
    mode = next(way for way in in_each_mode if way.port_gbit_s == port_gbit_s)
    sources = tuple(source for source in mode.sources if source.fields != ("modes",))
    return mode.model_copy(
        update={"name": name, "description": description, "modes": (), "sources": sources}
    )


def listed(kind: str | None = None) -> dict[str, Any]:
    """Return catalog entries by name: of one kind, or of every kind, by kind.

    Raises
    ------
    InstanceError
        If there is no such kind.

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
    """Return the entry of a kind and name.

    Parameters
    ----------
    own
        User entries, which take precedence over the catalog.

    Raises
    ------
    ValueError
        If there is none; the message names the closest entries.
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
    """Return a validator that accepts a catalog name, or a table that changes an entry, in place of
    a whole table.

    Parameters
    ----------
    listed
        Whether the field may hold a list, which the enclosing table resolves.
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
    """Return the table of the entry named by `extends` with the other keys applied; new sources
    come first.

    Raises
    ------
    ValueError
        If there is no such entry.
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
    """Return the table with values replaced, merging nested tables key by key."""
    return table | {
        key: (
            _merged(table[key], value)
            if isinstance(value, Mapping) and isinstance(table.get(key), dict)
            else value
        )
        for key, value in changes.items()
    }


def _without(source: Provenance, base: Entry, changes: Mapping[str, Any]) -> Provenance | None:
    """Return the source restricted to the figures that did not change; None if all did."""
    fields: list[str] = []
    for field in source.fields:
        field_key, _, inner_key = field.partition(".")
        change, table = changes.get(field_key), getattr(base, field_key, None)
        if field_key not in changes or (
            inner_key and isinstance(change, Mapping) and inner_key.split(".")[0] not in change
        ):
            fields.append(field)
        elif not inner_key and isinstance(change, Mapping) and isinstance(table, BaseModel):
            # a source for a whole table still applies to its unchanged figures
            fields += [
                f"{field_key}.{key}" for key in type(table).model_fields if key not in change
            ]
    return source.model_copy(update={"fields": tuple(fields)}) if fields else None
