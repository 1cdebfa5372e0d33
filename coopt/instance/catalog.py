"""The catalog that ships with coopt: find an entry by name.

Each file of `coopt/catalog/` holds one kind as an array of tables; names are unique within their kind.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import BeforeValidator

from coopt.instance.base import Entry
from coopt.instance.hardware import Gpu, HbDomain, Nic, Optic, Panel, Switch
from coopt.instance.software import Software
from coopt.instance.transformer import Transformer

KINDS: dict[str, type[Entry]] = {
    "gpu": Gpu,
    "hb_domain": HbDomain,
    "nic": Nic,
    "switch": Switch,
    "optic": Optic,
    "panel": Panel,
    "model": Transformer,
    "software": Software,
}


@cache
def entries(kind: str) -> dict[str, Entry]:
    """All catalog entries of a kind by name, in file order; read once."""
    text = files("coopt").joinpath("catalog", f"{kind}.toml").read_text("utf-8")
    table = tomllib.loads(text)[kind]
    found = {row["name"]: KINDS[kind].model_validate(row) for row in table}
    assert len(found) == len(table), f"catalog/{kind}.toml: a name appears twice"
    return found


def find(kind: str, name: str) -> Entry:
    """The entry of that kind and name.

    Raises
    ------
    ValueError
        When there is none; the message names the closest entries.
    """
    known = entries(kind)
    if name in known:
        return known[name]
    close = get_close_matches(name, known, n=3, cutoff=0.5)
    label = kind.replace("_", " ")
    near = f"closest: {', '.join(close)}" if close else f"one of: {', '.join(known)}"
    raise ValueError(f"the catalog has no {label} of this name, needs a catalog name ({near}) or an inline table")


def named(kind: str) -> BeforeValidator:
    """Let a field take a catalog name in place of a table of that kind."""
    resolve: Callable[[Any], Any] = lambda value: find(kind, value) if isinstance(value, str) else value  # noqa: E731
    return BeforeValidator(resolve, json_schema_input_type=str | KINDS[kind])
