"""What all benchmarks do with their rows."""

from __future__ import annotations

import csv
import subprocess
from io import StringIO
from pathlib import Path


def commit() -> str:
    """What was measured."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


def csv_text(rows: list[dict[str, object]]) -> str:
    """The rows as CSV; the first one names the columns."""
    text = StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
