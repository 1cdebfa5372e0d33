"""Kill -9 at any moment: nothing that was finished is lost, and nothing is worked on twice."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from coopt.suite.folder import read_results
from tests.suite.conftest import Ran, Written
from tests.suite.processes import CASES, GRID, SOON, alive, journal, rows_without_times, started, until


def test_a_run_that_is_killed_again_and_again_ends_like_one_that_was_not(written, ran, rows_of_grid, tmp_path):
    """First the driver alone, then all of its workers with it."""
    suite, folder = written(GRID), tmp_path / "killed"
    for more, kill in ((1, os.kill), (6, os.killpg)):
        before = len(journal(folder))
        run = started(suite, folder)
        until(lambda: (folder / "suite.json").exists() and len(journal(folder)) >= before + more)  # noqa: B023
        assert run.poll() is None
        kill(run.pid, signal.SIGKILL)
        run.wait()
        until(lambda: not alive(run.pid))  # noqa: B023
        files = {file.stem for file in (folder / "cases").glob("[!.]*.json")}
        assert set(journal(folder)) <= files
    assert 7 <= len(journal(folder)) < CASES
    last = ran(suite, "killed", resume=True)
    assert (last.kept >= 7, last.damaged, last.kept + last.worked) == (True, 0, CASES)
    assert max(Counter(journal(folder)).values()) == 1
    assert rows_without_times(folder) == rows_of_grid
    assert len(rows_of_grid) == CASES


def test_ctrl_c_ends_with_code_4_and_everything_that_is_finished(written: Written, ran: Ran, tmp_path: Path) -> None:
    suite, folder = written(GRID), tmp_path / "stopped"
    command = [sys.executable, "-m", "coopt", "suite", "run", suite, "-o", folder, "--workers", "2", "--json"]
    run = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job of a shell ignores it
    )
    until(lambda: len(journal(folder)) >= 3)
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=SOON)
    assert run.returncode == 4
    assert b"Traceback" not in err
    summary = json.loads(out)
    assert summary["stopped"] == "interrupted"
    assert 3 <= summary["worked"] < CASES
    assert len(read_results(folder)[1]) == summary["worked"]
    until(lambda: not alive(run.pid))
    assert ran(suite, "stopped", resume=True).kept == summary["worked"]
