"""The limits a user sets as numbers: how designs are measured against them, and the instance with another number.

Numbers are rounded short enough to type, on the side where they suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import partial
from typing import Any

from coopt.instance.couplings import LIMITED
from coopt.instance.schema import Instance
from coopt.instance.workload import BOUNDS, LONGEST_S, Workload

UNITS = {
    "max_iteration_time_s": "s",
    "min_tokens_per_s": "tokens/s",
    "train_days": "days",
    **{key: unit for key, (_, unit) in LIMITED.items()},
}

DIGITS, WHOLE = 5, 1e5


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A limit by its key in the instance.

    `cap` is in the unit that designs are measured in; `own` turns an amount of it into the user's number, which falls
    as the amount grows where `falling`; `with_number` is the instance with another number.
    """

    key: str
    unit: str
    cap: float
    own: Callable[[float], float]
    with_number: Callable[[float], Instance]
    falling: bool = False

    def enough(self, amount: float) -> float:
        """A number short enough to type that lets designs through which take `amount`."""
        return typed(self.own(amount), up=not self.falling)


def limits_of(instance: Instance) -> tuple[Limit, ...]:
    """Time bounds of every workload, `LONGEST_S` where it has none, then the caps that are set."""
    return (*(_time_limit(instance, w) for w in range(len(instance.workload))), *_caps(instance))


def with_workload(instance: Instance, w: int, update: dict[str, Any]) -> Instance:
    """The instance with values of one workload replaced."""
    return instance.model_copy(update={"workload": with_entry(instance.workload, w, update)})


def with_entry(tables: tuple[Any, ...], place: int, update: dict[str, Any]) -> tuple[Any, ...]:
    """Tables of which one has values replaced."""
    return (*tables[:place], tables[place].model_copy(update=update), *tables[place + 1 :])


def with_part(instance: Instance, part: str, update: dict[str, Any]) -> Instance:
    """The instance with values of one of its tables replaced."""
    return instance.model_copy(update={part: getattr(instance, part).model_copy(update=update)})


def with_gpu(instance: Instance, hbm_gb: float) -> Instance:
    """The instance with another capacity of GPU memory."""
    gpu = instance.cluster.gpu.model_copy(update={"hbm_gb": hbm_gb})
    return with_part(instance, "cluster", {"gpu": gpu})


def without_bound(instance: Instance, w: int) -> Instance:
    """The instance with all the time in the world for one workload."""
    no_other = {"min_tokens_per_s": None, "train_days": None, "train_tokens": None}
    return with_workload(instance, w, {**no_other, "max_iteration_time_s": LONGEST_S})


def _time_limit(instance: Instance, w: int) -> Limit:
    workload = instance.workload[w]
    key = next((key for key in BOUNDS if getattr(workload, key) is not None), BOUNDS[0])
    return Limit(
        key=f"workload[{w}].{key}",
        unit=UNITS[key],
        cap=workload.bound_s,
        own=partial(own_time, workload),
        with_number=lambda number: with_workload(instance, w, {key: number}),
        falling=key == "min_tokens_per_s",
    )


def own_time(workload: Workload, time_s: float) -> float:
    """A predicted iteration time, with its margin, in the unit of the workload's bound: seconds, tokens/s or days."""
    time_s *= 1.0 + workload.time_margin
    if workload.min_tokens_per_s is not None:
        return workload.tokens_per_iteration / time_s
    if workload.train_days is not None:  # tokens alone are no bound
        return time_s * workload.iterations / 86400.0
    return time_s


def _caps(instance: Instance) -> Iterator[Limit]:
    for key, cap in instance.limits.given.items():
        yield Limit(
            key=f"limits.{key}",
            unit=UNITS[key],
            cap=cap,
            own=float,
            with_number=lambda number, key=key: with_part(instance, "limits", {key: number}),  # type: ignore[misc]
        )


def typed(value: float, *, up: bool = True) -> float:
    """The nearest number of five digits that is not below `value`; not above it where `up` is false.

    Whole numbers, such as most sums of prices, stay as they are.
    """
    if value >= WHOLE and value.is_integer():
        return value
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    return float(Context(prec=DIGITS, rounding=rounding).create_decimal_from_float(value))
