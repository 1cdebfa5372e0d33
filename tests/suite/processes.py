"""Runs in processes of their own, and waiting for what they do."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coopt.suite.folder import read_results

BOUNDS = [0.6, 0.7, 0.8, 0.9]
GRID = f"""\
[grid.vary]
"workload.max_iteration_time_s" = {BOUNDS}
"network.oversubscription" = [1.0, 2.0]
"cluster.gpus" = [32, 64]
"""
CASES = 16
SOON = 120.0


def started(suite: Path, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "coopt", "suite", "run", suite, "-o", folder, "--workers", "2", "--resume"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def journal(folder: Path) -> list[str]:
    """Cases that were worked on, in order."""
    file = folder / "journal.jsonl"
    return [json.loads(line)["case_id"] for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not happened() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert happened()


def alive(group: int) -> bool:
    """Whether a process of a session is left."""
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == group and fields[0] != "Z":
            return True
    return False


def rows_without_times(folder: Path) -> list[dict[str, Any]]:
    """The results of a run, but for what differs from run to run."""
    return [{key: row[key] for key in row if key not in ("cpu_s", "wall_s")} for row in read_results(folder)[1]]
