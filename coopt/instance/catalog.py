"""The catalog: entries by name, entries with some keys changed, and validation errors as sentences:
key, value, and what is required.
"""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from coopt.instance.base import DECIMAL, Count, Entry, Fraction, Name, Provenance, Table
from coopt.instance.hardware import Fibre, Gpu, HbDomain, Nic, Optic, Panel, Switch
from coopt.instance.numerics import REORDERED
from coopt.instance.texts import InstanceError, alternatives, both, counted, cut, shortened
from coopt.instance.transformer import ScalingLaw, Software, Transformer

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
            rates = {"low": self.low, "per_year": self.per_year, "high": self.high}
            given = ", ".join(
                f"{key} = {rate:g}" for key, rate in rates.items() if rate is not None
            )
            raise ValueError(f"{given}: needs low <= per_year <= high")
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
    channel: Annotated[
        FailureRate,
        Field(description="a channel between sites that train one model; ends no run"),
    ] = NEVER
    gpus_per_host: Annotated[Count, Field(description="GPUs of a host")] = 8

    @property
    def of_part(self) -> dict[str, FailureRate]:
        """The rate of every kind of part whose failure can end a run."""
        return {
            name: getattr(self, name)
            for name in ("gpu", "hbm", "host", "nic", "optic", "switch", "domain", "software")
        }


KINDS: dict[str, type[Entry]] = {
    "gpu": Gpu,
    "hb_domain": HbDomain,
    "nic": Nic,
    "switch": Switch,
    "optic": Optic,
    "fibre": Fibre,
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
def tables_of(kind: str) -> dict[str, Any]:
    """Return the file of a kind as parsed TOML."""
    return tomllib.loads(files("coopt").joinpath("catalog", f"{kind}.toml").read_text("utf-8"))


@cache
def entries(kind: str) -> dict[str, Entry]:
    """Return all catalog entries of a kind by name, in file order; cached."""
    rows = [KINDS[kind].model_validate(row) for row in tables_of(kind)[kind]]
    if kind == "switch":
        rows += [
            way for box in rows if isinstance(box, Switch) for way in at_one_rate(box).values()
        ]
    by_name = {entry.name: entry for entry in rows}
    assert len(by_name) == len(rows), f"catalog/{kind}.toml: a name appears twice"
    return by_name


def box_of(name: str) -> Switch | None:
    """Return the multi-rate switch of which a catalog switch is one mode; None for other names."""
    box = entries("switch").get(_boxes().get(name, ""))
    return box if isinstance(box, Switch) else None


@cache
def _boxes() -> dict[str, str]:
    """The box of each name of a box that is run at one rate alone."""
    return {row["name"]: row["box"] for row in tables_of("switch")["at_one_rate"]}


def ports_of_modules(switch: Switch, links: int) -> int:
    """Return the number of ports that the cages of a switch serve with modules of `links` links
    each.

    A single-rate switch taken from a multi-rate one has the cages of the latter.
    """
    box = box_of(switch.name) or switch
    # rounding must not remove a cage
    cages = math.floor(switch.radix * switch.port_gbit_s / box.cage_gbit_s * (1.0 + REORDERED))
    return min(switch.radix, links * cages)


def at_one_rate(box: Switch) -> dict[str, Switch]:
    """Return a switch in one of its modes alone, at the same price, under each name that the
    catalog has for that; none for most.
    """
    ways: dict[str, Switch] = {}
    for row in tables_of("switch")["at_one_rate"]:
        for mode in box.in_each_mode if row["box"] == box.name else ():
            if mode.port_gbit_s == row["port_gbit_s"]:
                sources = tuple(source for source in mode.sources if source.fields != ("modes",))
                named = {"name": row["name"], "description": row["description"]}
                changes = {**named, "modes": (), "sources": sources}
                ways[row["name"]] = mode.model_copy(update=changes)
    return ways


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


OWN: ContextVar[Book] = ContextVar("own catalog", default=MappingProxyType({}))
"""Entries of catalog files that a command was given, where no instance names any."""


def known(kind: str) -> dict[str, Entry]:
    """Return the entries of a kind by name; those of catalog files of a command come first."""
    return {**entries(kind), **OWN.get().get(kind, {})}


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
    by_name = {**known(kind), **(own or {}).get(kind, {})}
    if name in by_name:
        return by_name[name]
    matches = get_close_matches(name, by_name, n=3, cutoff=0.5)
    label = kind.replace("_", " ")
    suggestion = f"closest: {', '.join(matches)}" if matches else f"one of: {', '.join(by_name)}"
    raise UnknownNameError(
        f"the catalog has no {label} of this name, needs a catalog name ({suggestion})"
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
            try:
                return find(kind, value, book)
            except UnknownNameError as error:
                raise UnknownNameError(f"{error} or an inline table") from None
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
        raise ValueError(f"extends = {name!r}: needs the name of a catalog entry")
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


NEEDS: dict[str, str] = {
    "finite_number": "a finite number",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "at most {le}",
    "literal_error": "one of {expected}",
    "too_short": "a list of at least {min_length} entry",
    "too_long": "at most {max_length} entries",
    "string_too_short": "a text with at least one character",
    "string_too_long": "a text of at most {max_length} characters",
    "date_type": "a day such as 2027-01-15",
    "union_tag_invalid": "one of {expected_tags}",
    "string_pattern_mismatch": "a text without control characters",
    "string_type": "a text in quotes",
    "int_type": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "dict_type": "a table",
    "tuple_type": "a list",
    "list_type": "a list",
}
MOST_FAULTS = 100
"""Faults that are told; for each unknown key all others are looked through for close ones."""
WORDS = re.compile("(one of )?'")
GROUPED = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
QUOTED = re.compile(r"\w+(\.\w+)+")
ALIKE = 0.8
"""How close a key has to be to count before one of that very name in another table."""
TYPES = frozenset(("bool", "int", "float", "str"))
"""What a location says of the alternative type of a value, and no key is called."""
WITHOUT_COMMAS = " without commas (or a list with a space after each comma)"
CALLED_HERE = dict.fromkeys(("fat-tree", "fattree", "leaf-spine", "spine-leaf"), "'clos'")
"""Terms of the field for a word of ours, which alone is named where it is allowed."""
LISTED_AS = {"generations": "gpu", "batches": "global_batch"}
"""Keys that keep a list, by those that it is written as; the first of the list is there twice."""
LIKE = ', or extends = "NAME" in the same table to start from a catalog entry'
CATALOGED = frozenset(model.__name__ for model in KINDS.values())


@contextmanager
def refusing(place: str, root: type[BaseModel]) -> Iterator[None]:
    """Tell what a table has wrong by where it stands."""
    try:
        yield
    except ValidationError as error:
        raise InstanceError(f"{place}: {text}" for text in sentences(error, root)) from None


def sentences(error: ValidationError, root: type[BaseModel]) -> list[str]:
    """Return one sentence per error, without repetition, then the number of those left out."""
    faults = [item for item in error.errors(include_url=False) if not _is_told_twice(item["loc"])]
    items = _nearest_branches(faults[:MOST_FAULTS])
    over = len(faults) - MOST_FAULTS
    more = [f"and {counted(over, 'more error')}"] if over > 0 else []
    needs: dict[str, list[str]] = {}
    rules: set[str] = set()  # their requirements all apply; they are not alternative types
    for item in items:
        for sentence in _sentences(item, root):
            head, _, need = sentence.partition(": needs ")
            needs.setdefault(head, []).append(need)
            if item["type"] == "value_error":
                rules.add(head)
    told = [
        (
            f"{head}: needs {both(dict.fromkeys(need)) if head in rules else _one_of(need)}"
            if any(need)
            else head
        )
        for head, need in needs.items()
    ]
    return [*map(shortened, told), *more]


def _is_told_twice(loc: tuple[int | str, ...]) -> bool:
    """Whether a location is the first element of a list that another key holds too."""
    return any(key in LISTED_AS and after == 0 for key, after in pairwise(loc))


def _one_of(needs: Iterable[str]) -> str:
    """Combine the requirements of alternative types into one, words first."""
    distinct = [*dict.fromkeys(needs)]
    words = dict.fromkeys(
        word for need in distinct if WORDS.match(need) for word in re.findall("'[^']*'", need)
    )
    bounds = "a number of " * bool(words)  # that 'at least 1' is no further word
    clauses = [bounds * need.startswith("at ") + need for need in distinct if not WORDS.match(need)]
    word_list = f"{'one of ' * (len(words) > 1)}{alternatives(words)}"
    return alternatives(([word_list] if words else []) + clauses)


def _nearest_branches(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """For a value with alternative types, keep only the errors of the type that it has.

    An unknown word may have been meant as a number too. A list is not reported as too short if its
    entries are refused. Of a term of the field only the word for it here is left.
    """
    renamed = {key_path(item["loc"]) for item in items if _is_called_here(item)}
    paths = [key_path(item["loc"]) for item in items]
    places = [
        (path, item["type"])
        for path, item in zip(paths, items, strict=True)
        if not item["type"].endswith("_type")
    ]

    def superseded(item: Mapping[str, Any]) -> bool:
        place, kind = key_path(item["loc"]), item["type"]
        entries = any(path.startswith(f"{place}[") for path in paths)
        within = any(path == place and fault != "literal_error" for path, fault in places)
        elsewhere = place in renamed and not _is_called_here(item)
        is_short, is_typed = kind == "too_short", kind.endswith("_type")
        return elsewhere or (entries and is_short) or (is_typed and (entries or within))

    return [item for item in items if not superseded(item)]


def _is_called_here(item: Mapping[str, Any]) -> bool:
    """Whether the value of an error is a term of the field for a word that is allowed there."""
    is_word = item["type"] == "literal_error" and isinstance(item["input"], str)
    return is_word and CALLED_HERE.get(item["input"], "\0") in item["ctx"]["expected"]


def _sentences(item: Mapping[str, Any], root: type[BaseModel]) -> Iterator[str]:
    place = key_path(item["loc"])
    kind, value = item["type"], item.get("input")
    if kind.startswith("union_tag"):
        place = f"{place}.{item['ctx']['discriminator'][1:-1]}"
        value = item["ctx"].get("tag")
    if kind == "extra_forbidden":
        key = str(item["loc"][-1])
        if not (key.isidentifier() or QUOTED.fullmatch(key)):
            place = f"{place}.{key!r}".removeprefix(".")
        yield f"{place}: unknown key, needs {_known_keys(item['loc'], value, root)}"
    elif kind in ("missing", "union_tag_not_found"):
        cataloged = _table_with(item["loc"], root).__name__ in CATALOGED
        yield f"{place}: is missing, needs a value{LIKE if cataloged else ''}"
    elif kind == "value_error":
        for line in str(item["ctx"]["error"]).splitlines():
            if isinstance(value, str | int | float):
                yield f"{place} = {value!r}: {line}"
            else:
                yield f"{place}: {line}" if item["loc"] else line
    elif kind == "too_long":
        length = item["ctx"]["actual_length"]
        yield f"{place}: {'more' if length is None else length} entries, {_need(item)}"
    else:
        value_text = _excerpt(value) if not isinstance(value, Mapping) else "a table"
        yield (
            f"{place} = {value_text}: {_need(item)}"
            if place
            else f"holds {value_text}, {_need(item)}"
        )


def _need(item: Mapping[str, Any]) -> str:
    """Return the requirement that a value violates, in words."""
    kind, context = item["type"], item.get("ctx", {})
    if kind == "literal_error":
        if _is_called_here(item):
            return f"needs {CALLED_HERE[item['input']]}"
        if " or " not in context["expected"]:
            return f"needs {context['expected']}"
    if kind == "model_type" and context["class_name"] in CATALOGED:
        return "needs a catalog name or a table"
    if context.get("pattern") == DECIMAL:
        return (
            'needs a number from 0 in quotes, such as "12.5", with up to 40 digits on either side'
            " of its point"
        )
    need = NEEDS.get(kind)
    is_grouped = kind in ("int_type", "float_type") and GROUPED.fullmatch(str(item["input"]))
    if need is None:
        return str(item["msg"])
    written = {key: f"{x:.10g}" if isinstance(x, float) else x for key, x in context.items()}
    return f"needs {need.format(**written)}{WITHOUT_COMMAS if is_grouped else ''}"


def key_path(loc: tuple[int | str, ...]) -> str:
    """Convert a location of pydantic to `workload[0].mapping.tp`, without notes on unions."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif QUOTED.fullmatch(part) or (part.isidentifier() and part not in TYPES):
            key = LISTED_AS.get(part, part) if part.isidentifier() else repr(part)
            path += f".{key}" if path else key
    return path


def _excerpt(value: Any) -> str:
    if isinstance(value, datetime.date | datetime.time):
        return str(value)
    text = repr(list(value) if isinstance(value, tuple) else value)
    return cut({"True": "true", "False": "false"}.get(text, text), longest=60)


def _known_keys(loc: tuple[int | str, ...], value: Any, root: type[BaseModel]) -> str:
    """Return the keys that the table of an unknown key has: close ones if any, or other tables with
    that key.
    """
    table = _table_with(loc, root)
    known = {field.alias or name: field for name, field in table.model_fields.items()}
    keys = list(known)
    matches = get_close_matches(str(loc[-1]), keys, n=3)
    closest = f"a known key (closest: {', '.join(matches)})" if matches else ""
    if get_close_matches(str(loc[-1]), matches, cutoff=ALIKE):
        return closest
    of_kinds = {key: re.split(", | and ", known[key].description or "") for key in keys}
    # a description of kinds, as that of a price factor, says nothing but their names
    if within := [
        key
        for key, kinds in of_kinds.items()
        if get_close_matches(str(loc[-1]).lower(), kinds, cutoff=ALIKE)
        and all(map(str.isidentifier, kinds))
    ]:
        above = key_path(loc[:-1])
        return f"{alternatives(f'{above}.{key}' for key in within)} in its place"
    # what is said of a product has no place in other tables of a question
    homes = [
        f"{place}.{loc[-1]}"
        for place, other in _tables_in(root if table.__name__ not in CATALOGED else table)
        if _takes(other, str(loc[-1]), value)
    ]
    own = re.sub(r"\[\d+\]", "", key_path(loc[:-1]))
    if homes := [home for home in homes if home.startswith(f"{own}.")] or homes:
        return f"{alternatives(homes)} in its place"
    return closest or f"one of {', '.join(keys)}"


def _takes(table: type[BaseModel], key: str, value: Any) -> bool:
    """Whether a table has a key, with a list type if the value is a list."""
    if key not in table.model_fields or not isinstance(value, list | tuple):
        return key in table.model_fields
    try:
        table.model_validate({key: value})
    except ValidationError as error:
        return not any(
            item["loc"] == (key,) and item["type"].endswith("_type") for item in error.errors()
        )
    return True


def _tables_in(root: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the tables of a file, including nested ones, by dotted key."""
    for name in root.model_fields:
        if (table := _table_at(root, name)) is not None and table.__name__ not in CATALOGED:
            yield name, table
            yield from ((f"{name}.{key}", inner_table) for key, inner_table in _tables_in(table))


def _table_with(loc: tuple[int | str, ...], root: type[BaseModel]) -> type[BaseModel]:
    """Return the table that contains the last key of a location."""
    table = root
    for part in loc[:-1]:
        part_table = _table_at(table, part) if isinstance(part, str) else table
        table = part_table or table
    return table


def _table_at(table: type[BaseModel], key: str) -> type[BaseModel] | None:
    field = table.model_fields.get(key)
    if field is None:
        return None
    # such as a range for a list
    input_types = (getattr(metadata, "json_schema_input_type", None) for metadata in field.metadata)
    return next(filter(None, map(model_in, (field.annotation, *input_types))), None)


def model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the table type within an annotation, inside lists or unions; None if there is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        if (model := model_in(argument)) is not None:
            return model
    return None
