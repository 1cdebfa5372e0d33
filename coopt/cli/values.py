"""Values on the command line, and the sentences that refuse them."""

from __future__ import annotations

import math
import tomllib
from typing import Any

import click


class Finite(click.FloatRange):
    """A number in a range; infinity and NaN are in no range."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse what is not finite, then what is out of range."""
        number = float(click.FLOAT.convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return float(super().convert(number, param, ctx))


class Setting(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """`key=value`; the value is read as TOML, and as plain text where it is not TOML."""

    name = "key=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        """Split at the first `=`."""
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not equals or not key.strip():
            self.fail(f"{value!r} needs the form key=value, such as network.max_tiers=2.", param, ctx)
        return key.strip(), toml_value(text)


def toml_value(text: str) -> Any:
    """`2`, `[8, 16]`, `true` as TOML reads them; anything else is the text itself."""
    try:
        table = tomllib.loads(f"x = {text}")
    except (ValueError, RecursionError):
        return text.strip()
    return table["x"] if len(table) == 1 else text.strip()


TIME_LIMIT = Finite(min=0, min_open=True)
PERCENT = Finite(min=0)
GAP = Finite(min=0, max=1, max_open=True)
BYTES = Finite(min=1, max=1e18)
RATE = Finite(min=1e-9, max=1e15)
SEED = click.IntRange(min=0)
LATENCY = Finite(min=0, max=1e6)
PACE = Finite(min=0, min_open=True)
POINTS = click.IntRange(min=3, max=10_000)
TOP = click.IntRange(min=1, max=1000)
THREADS = click.IntRange(min=1)
SETTING = Setting()
