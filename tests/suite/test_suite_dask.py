"""The same code on a Dask cluster: a real scheduler and two workers, one of which is killed at work."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from coopt.instance.texts import InstanceError
from coopt.plan.schema import Progress
from coopt.suite.driver import run_suite
from tests.suite.conftest import Ran, Written
from tests.suite.processes import CASES, GRID, journal, rows_without_times, until

Process = subprocess.Popen[bytes]


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Process, list[Process]]]:
    """Address, scheduler and workers, which stand in a folder without anything of a suite."""
    away = tmp_path_factory.mktemp("away")
    file = tmp_path_factory.mktemp("cluster") / "scheduler.json"

    def started(kind: str, *words: str) -> Process:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--scheduler-file", str(file), *words]
        return subprocess.Popen(command, cwd=away, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    scheduler = started("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    until(file.exists)
    workers = [
        started("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "30") for _ in "ab"
    ]
    address = next(line.split('"')[3] for line in file.read_text("utf-8").splitlines() if '"address"' in line)
    yield address, scheduler, workers
    for process in (*workers, scheduler):
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()


def test_a_cluster_answers_like_this_machine_survives_a_worker_and_ends_with_its_scheduler(
    cluster: tuple[str, Process, list[Process]],
    written: Written,
    ran: Ran,
    rows_of_grid: list[dict[str, Any]],
    tmp_path: Path,
) -> None:
    """First a worker dies at work, then the scheduler at the next run, which ends with what is finished."""
    address, scheduler, workers = cluster
    suite, told = written(GRID), []

    def lose_worker(step: Progress) -> None:
        told.append(step)
        if len(told) == 6:
            os.kill(workers[0].pid, signal.SIGKILL)

    done = run_suite(suite, tmp_path / "far", scheduler=address, on_progress=lose_worker)
    assert workers[0].wait() == -signal.SIGKILL
    assert (done.worked, done.stopped) == (CASES, None)
    assert len(journal(tmp_path / "far")) == len(set(journal(tmp_path / "far"))) == CASES
    assert rows_without_times(tmp_path / "far") == rows_of_grid

    def lose_scheduler(step: Progress) -> None:
        if step.message.startswith("4 of"):
            scheduler.kill()

    done = run_suite(suite, tmp_path / "out", scheduler=address, on_progress=lose_scheduler)
    assert "workers" in (done.stopped or "")
    assert 4 <= done.worked < CASES
    again = ran(suite, "out", resume=True)
    assert (again.kept, again.kept + again.worked) == (done.worked, CASES)


def test_an_address_without_a_scheduler_is_refused(written: Written, tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match="no scheduler answers"):
        run_suite(written(), tmp_path / "out", scheduler="nowhere")
