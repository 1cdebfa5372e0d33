"""Base classes of all tables of an instance: frozen, and without unknown keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from coopt.instance.texts import refuse


class Table(BaseModel):
    """A frozen table that refuses unknown keys and does not convert text to numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)
    __slots__ = ("_hash",)  # not copied, so that a changed copy has its own hash

    def __hash__(self) -> int:
        """Hash of all fields, computed once, since caches are keyed by whole tables."""
        try:
            value: int = object.__getattribute__(self, "_hash")
        except AttributeError:
            value = hash(tuple(self.__dict__[field] for field in type(self).model_fields))
            object.__setattr__(self, "_hash", value)
        return value

    def having(self, **values: Any) -> Self:
        """Return a copy with other values; a dict replaces values of the table that is there."""
        return self.model_copy(
            update={
                key: getattr(self, key).model_copy(update=value)
                if isinstance(value, dict)
                else value
                for key, value in values.items()
            }
        )

    def with_private(self, **values: Any) -> Self:
        """Return a copy with private values, which no file has."""
        copy = self.model_copy()
        for name, value in values.items():
            setattr(copy, name, value)
        return copy


def _tuple_from_one(value: Any) -> Any:
    """Accept a single value in place of a list, and drop duplicate numbers."""
    if not isinstance(value, list | tuple):
        return (value,)
    are_numbers = all(isinstance(entry, int | float) for entry in value)
    return tuple(dict.fromkeys(value)) if are_numbers else tuple(value)


def each_once(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return the distinct values; all of them where some are tables or lists, which are refused
    later.
    """
    entries = tuple(values)
    try:
        return tuple(dict.fromkeys(entries))
    except TypeError:
        return entries


MIN_DIVISOR = 1e-9  # of anything that divides
MAX_OF_RANGE = 10_000
# of anything one counts: GPUs, layers, tokens of a sequence; keeps products within 64 bits
MAX_COUNT = 10_000_000


def _not_vanishing(value: float) -> float:
    if value < MIN_DIVISOR:
        raise ValueError(f"is too small, needs at least {MIN_DIVISOR:g}")
    return value


class Range(Table):
    """Evenly spaced integers in place of a list: `least`, `least + step`, and so on up to
    `most`.
    """

    least: Annotated[int, Field(ge=1, le=MAX_COUNT, description="the first of them")]
    most: Annotated[
        int,
        Field(ge=1, le=MAX_COUNT, description="none is above it; the last where a step meets it"),
    ]
    step: Annotated[
        int, Field(ge=1, le=MAX_COUNT, description="from one to the next; at most 10,000 numbers")
    ]

    @model_validator(mode="after")
    def _has_some(self) -> Self:
        range_text = f"least = {self.least}, most = {self.most}, step = {self.step}"
        refuse(
            (self.most < self.least, f"{range_text}: needs most >= least"),
            (
                (self.most - self.least) // self.step >= MAX_OF_RANGE,
                f"{range_text}: needs at most {MAX_OF_RANGE:,} numbers",
            ),
        )
        return self


def first_of_list(list_key: str, key: str) -> str:
    """Return the complaint for a key whose stored list begins with another value."""
    return f"{list_key}: its first value differs from {key}, needs all values in {key} = [...]"


def of_range(value: Any) -> Any:
    """Return the numbers of a range that is written as a table; any other value unchanged."""
    if not isinstance(value, Mapping):
        return value
    bounds = Range.model_validate(value)
    return tuple(range(bounds.least, bounds.most + 1, bounds.step))


UNPRINTED = r"\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
"""Characters, as ranges of a pattern, that control a text or its direction: what is read would not
be what is there.
"""


def _whole_number(value: Any) -> Any:
    """Accept `1e3`, which TOML reads as a float, as an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _day(value: Any) -> Any:
    """Accept a day as text, which JSON has in place of TOML's dates."""
    if not isinstance(value, str):
        return value
    try:
        day = date.fromisoformat(value)
    except ValueError:
        day = None
    if day is None or day.isoformat() != value:  # weeks and days without dashes are ISO too
        raise ValueError("is no day of the calendar as YYYY-MM-DD, needs one such as 2027-01-15")
    return day


Whole = Annotated[int, BeforeValidator(_whole_number)]
Positive = Annotated[float, Field(gt=0, le=1e15), AfterValidator(_not_vanishing)]
NonNegative = Annotated[float, Field(ge=0, le=1e15)]
Fraction = Annotated[float, Field(gt=0, le=1), AfterValidator(_not_vanishing)]
Name = Annotated[str, Field(min_length=1, pattern=rf"^[^{UNPRINTED}]+$")]
DECIMAL = r"^\d{1,40}(\.\d{1,40})?$"
Price = Annotated[float, Field(ge=0, le=1e9, description="USD")]
Watts = Annotated[float, Field(ge=0, le=1e9, description="W")]
Count = Annotated[Whole, Field(ge=1, le=MAX_COUNT)]
Day = Annotated[date, BeforeValidator(_day, json_schema_input_type=date)]
one_or_many = BeforeValidator(_tuple_from_one)
one_many_or_range = BeforeValidator(
    lambda value: _tuple_from_one(of_range(value)),
    json_schema_input_type=Annotated[tuple[Count, ...], Field(min_length=1)] | Range,
)
one_or_series = BeforeValidator(
    lambda value: tuple(value) if isinstance(value, list | tuple) else (value,)
)
"""As `one_or_many`, for numbers whose places count, so that none is dropped."""


def series_of(*meanings: str) -> BeforeValidator:
    """Return a validator for lists with one number per given item; its complaint names the
    items.
    """

    def read(value: Any) -> tuple[Any, ...]:
        entries = tuple(value) if isinstance(value, list | tuple) else (value,)
        if len(entries) == len(meanings):
            return entries
        noun = "entry" if len(entries) == 1 else "entries"
        given = f"{len(entries)} {noun}, " if isinstance(value, list | tuple) else ""
        raise ValueError(f"{given}needs a list of {len(meanings)}, [{', '.join(meanings)}]")

    return BeforeValidator(read)


Tag = Literal["S", "2nd", "D", "M"]
PRICE_DOUBT: dict[Tag, float] = {"S": 0.20, "2nd": 0.25, "D": 0.40, "M": 0.40}
"""Share by which a price may be off, by how it is known: so far apart were prices of one product
that several sellers and reports had in 2025 and 2026.
"""


class Provenance(Table):
    """Sources of figures.

    Tags: S read in the named source, 2nd quoted by somebody else, D derived (formula in `source`),
    M recalled without a source.
    """

    fields: Annotated[
        tuple[str, ...], one_or_many, Field(description="keys whose figures these are")
    ]
    tag: Annotated[Tag, Field(description="how they are known")]
    source: Annotated[str, Field(description="where they stand, or how they follow")]


PRICE_AND_POWER = ("usd", "w", "usd_per_gpu", "w_per_gpu")
"""Keys of what a product costs and draws."""


class Entry(Table):
    """A named product or model, with the provenance of its figures."""

    name: Annotated[Name, Field(description="how the answer calls it")]
    description: Annotated[str, Field(description="for those who read it")] = ""
    sources: Annotated[
        tuple[Provenance, ...], one_or_many, Field(description="where its figures come from")
    ] = ()

    @property
    def unpriced(self) -> Self:
        """The product without price and power, as a key of what does not depend on them."""
        return self.model_copy(update=dict.fromkeys(self.prices, 0.0))

    @property
    def prices(self) -> dict[str, float]:
        """Its price and its power, by key."""
        return {
            key: getattr(self, key) for key in PRICE_AND_POWER if key in type(self).model_fields
        }

    def source_of(self, field: str) -> Provenance | None:
        """The source of a field; one named for a table (`efficiency`) covers the fields inside."""
        # from the field itself to the tables around it: the nearest source is the one meant
        tables = [field.rsplit(".", depth)[0] for depth in range(field.count(".") + 1)]
        return next((one for name in tables for one in self.sources if name in one.fields), None)
