"""An instance with one thing changed, and numbers and values as one types them."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

from coopt.instance.base import Entry
from coopt.instance.couplings import LIMITED
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload

UNITS = {
    "max_iteration_time_s": "s",
    "min_tokens_per_s": "tokens/s",
    "train_days": "days",
    **{key: unit for key, (_, unit) in LIMITED.items()},
}
DIGITS, WHOLE = 5, 1e5
NO_LIMIT = 1e15  # the largest number that an instance may set
AMPLE = 1e6  # seconds of an iteration, or times its bound


def with_part(instance: Instance, part: str, update: dict[str, Any]) -> Instance:
    """The instance with values of one of its tables replaced."""
    return instance.model_copy(update={part: getattr(instance, part).model_copy(update=update)})


def with_entry(tables: tuple[Any, ...], place: int, update: dict[str, Any]) -> tuple[Any, ...]:
    """Tables of which one has values replaced."""
    return (*tables[:place], tables[place].model_copy(update=update), *tables[place + 1 :])


def with_workload(instance: Instance, w: int, update: dict[str, Any]) -> Instance:
    """The instance with values of one workload replaced."""
    return instance.model_copy(update={"workload": with_entry(instance.workload, w, update)})


def own_time(workload: Workload, time_s: float) -> float:
    """A predicted iteration time, with its margin, in the unit of the workload's bound: seconds,
    tokens/s or days.
    """
    time_s *= 1.0 + workload.time_margin
    if workload.min_tokens_per_s is not None:
        return workload.tokens_per_iteration / time_s
    if workload.train_days is not None:  # tokens alone are no bound
        return time_s * workload.iterations / 86400.0
    return time_s


def ample_s(workload: Workload) -> float:
    """An iteration time that rules out no plan; no longer, since searches for direct links fail at
    far longer ones.
    """
    return min(AMPLE * max(workload.bound_s, 1.0), NO_LIMIT)


def typed(value: float, *, up: bool = True) -> float:
    """The nearest number of five digits that is not below `value`; not above it where `up` is
    false.

    Whole numbers, such as most sums of prices, stay as they are.
    """
    if value >= WHOLE and value.is_integer():
        return value
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    return float(Context(prec=DIGITS, rounding=rounding).create_decimal_from_float(value))


def text_of(value: Any) -> str:
    """A value as one types it in TOML."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float | int) else f'"{name_of(value)}"'


def name_of(entry: Any) -> Any:
    """What an entry of a list goes by: its name where it has one."""
    return entry.name if isinstance(entry, Entry) else entry
