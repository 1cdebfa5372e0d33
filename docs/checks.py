"""Write the list of checks in docs/verifier.md from the verifier's own; `--check` compares."""

from __future__ import annotations

import sys
from pathlib import Path

from coopt.verifier.checks.verdict import CHECKS
from docs.regions import filled, write_or_check

PLACE = Path(__file__).parent / "verifier.md"


def page() -> str:
    """The whole page."""
    lines = "\n".join(f"- `{name}`: {meaning}" for name, meaning in CHECKS)
    return filled(PLACE.read_text("utf-8"), {"CHECKS": lines})


if __name__ == "__main__":
    write_or_check(PLACE, page(), check="--check" in sys.argv)
