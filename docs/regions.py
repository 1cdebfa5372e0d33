"""Regions of a page that generators write: all between `<!-- NAME -->` and `<!-- end -->`; the rest
is by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from coopt.instance.texts import write_text

REGION = re.compile(r"<!-- (?P<name>[A-Z_]+) -->\n.*?\n<!-- end -->", re.DOTALL)


def filled(text: str, values: Mapping[str, str]) -> str:
    """A page with its regions written anew.

    Raises
    ------
    KeyError
        If a region has no value.
    """
    return REGION.sub(
        lambda found: f"<!-- {found['name']} -->\n\n{values[found['name']]}\n\n<!-- end -->", text
    )


def write_or_check(place: Path, text: str, *, check: bool) -> None:
    """Write the page, or exit with 1 where it is not what it would be."""
    if not check:
        write_text(place, text)
    elif place.read_text("utf-8") != text:
        sys.exit(f"docs/{place.name} is out of date, `make docs` writes it")
