"""Keys of a file that describes a model: each is read once, checked, and what is left is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coopt.instance.base import MAX_COUNT
from coopt.instance.texts import InstanceError, counted, cut

MISSING: Any = object()
LONGEST_VALUE = 60
"""Characters of a value that a complaint shows."""
SHAPES = re.compile(
    r"hidden|layer|head|expert|rank|dim|intermediate|state|group|interval|pattern|freq|stream|latent"
    r"|window|mixer|gram|engram|memory|hc_|attn_res|loop|recurr|depth|block|sparse|compress|index"
    r"|multiplier_size|expand|share"
)
"""Names of keys that may say a shape."""
NO_SHAPES = re.compile(
    r"norm|eps|rope|rotary|token|dropout|initializer|bias|loss|coef|scal|quant|position|router|aux"
    r"|method|scoring|score|max_|min_|softcap|temperature|dtype|_id$|_ids|pad|cache|multiplier|alpha"
    r"|beta|theta|yarn|kernel|d_conv|chunk|attn_implementation|auto_map|architectures|time_step"
    r"|sinkhorn|capacity|swiglu|limit|torch|transformers|select|label|return|output_|mtp|nextn|spec"
    r"|factor|init|mode|dbo|jitter|class|task|prune|summary|head_mask"
)
"""Names among these of keys that say none."""


class Keys:
    """A table of a file, with the place that complaints name."""

    def __init__(self, table: Mapping[str, Any], place: str) -> None:
        self._table, self.place, self.seen = table, place, set[str]()

    def over(self, defaults: Mapping[str, Any]) -> Keys:
        """Return the table on top of defaults for what it leaves out."""
        said = {name: value for name, value in self._table.items() if value is not None}
        return Keys({**defaults, **said}, self.place)

    def has(self, *names: str) -> str | None:
        """Return the first of the keys that is there with a value."""
        return next((name for name in names if self._table.get(name) not in (None, "")), None)

    def value(self, *names: str, default: Any = MISSING) -> Any:
        """Return the value of the first of the keys that is there.

        Raises
        ------
        InstanceError
            If there is none, and no default.
        """
        self.seen.update(names)
        name = self.has(*names)
        if name is not None:
            return self._table[name]
        if default is MISSING:
            raise InstanceError(f"{self.place}: {names[0]} is missing, needs a value")
        return default

    def refuse(self, name: str, need: str) -> InstanceError:
        """Return the complaint about a key: its place, its value, and what is needed."""
        value = self._table.get(name)
        text = str(value).lower() if isinstance(value, bool) else repr(value)
        given = " is missing," if value is None else f" = {cut(text, LONGEST_VALUE)}:"
        return InstanceError(f"{self.place}: {name}{given} needs {need}")

    def number(self, *names: str, default: Any = MISSING, least: int = 0) -> int:
        """Return a whole number; a list of one number for every layer counts as that number."""
        value, name = self.value(*names, default=default), self.has(*names) or names[0]
        if isinstance(value, list) and value and all(part == value[0] for part in value):
            value = value[0]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_COUNT:
            raise self.refuse(name, f"a whole number from 0 to {MAX_COUNT:,}")
        if value < least:
            raise self.refuse(name, f"a number of at least {least}")
        return value

    def flag(self, *names: str, default: bool = False) -> bool:
        """Return a boolean."""
        value, name = self.value(*names, default=default), self.has(*names) or names[0]
        if not isinstance(value, bool):
            raise self.refuse(name, "true or false")
        return value

    def entries(self, name: str, layers: int) -> list[Any] | None:
        """Return a list with an entry for each layer, without those of further predictions; None
        where it is left out.
        """
        value = self.value(name, default=None)
        if value is None:
            return None
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) < layers:
            raise self.refuse(name, f"one entry for each of {counted(layers, 'layer')}")
        return list(value[:layers])

    def numbers(self, *names: str) -> list[int]:
        """Return a list of whole numbers, also from text with commas; empty where left out."""
        value, name = self.value(*names, default=[]), self.has(*names) or names[0]
        if isinstance(value, str):
            value = [int(part) for part in re.split(r"[,\s]+", value) if part.isdigit()]
        if not isinstance(value, list) or not all(type(part) is int for part in value):
            raise self.refuse(name, "a list of whole numbers")
        return value

    def table(self, *names: str) -> Keys | None:
        """Return a nested table; None where it is left out."""
        value, name = self.value(*names, default=None), self.has(*names)
        if value is None or name is None:
            return None
        if not isinstance(value, Mapping):
            raise self.refuse(name, "a table")
        return Keys(value, f"{self.place}: {name}")

    def left(self) -> Iterable[str]:
        """Yield keys not read that may say something about shapes."""
        for name, value in self._table.items():
            known = name in self.seen or isinstance(value, bool | str | float)
            harmless = value in (None, 0, 1, -1, [], {}) or NO_SHAPES.search(name)
            if not known and not harmless and SHAPES.search(name):
                yield name
