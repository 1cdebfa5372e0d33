"""What changes from one plan to another: what `coopt diff` answers. Data only."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coopt.plan.record import Record
from coopt.plan.schema import InstanceId

Value = bool | int | float | str | None


class ValueChange(Record):
    """A value of a plan by its key; None where a plan lacks it."""

    key: str
    before: Value
    after: Value


class LineChange(Record):
    """A line of the bill: how many before and after, and by how much USD and W grow."""

    item: str
    kind: str
    before: int
    after: int
    usd: float
    w: float


class Difference(Record):
    """Everything that differs; `bill` holds only lines that do. Bounds and search effort are no part of a plan here."""

    schema_: Annotated[Literal["coopt-difference/1"], Field(alias="schema")] = "coopt-difference/1"
    before: InstanceId
    after: InstanceId
    changes: tuple[ValueChange, ...]
    bill: tuple[LineChange, ...]
