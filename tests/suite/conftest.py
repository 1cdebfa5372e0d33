"""Small suites, and a pool that answers in this process."""

import shutil
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from coopt._version import __version__
from coopt.suite.driver import Driver, Summary
from coopt.suite.folder import run_folder
from coopt.suite.form import Case, cases_of, read_study
from coopt.suite.work import outcome_json
from tests.suite.processes import GRID, rows_without_times

INSTANCES = Path(__file__).parents[2] / "instances"
HEAD = f"""\
schema = 1
name = "small"
[[grid]]
name = "pace"
instances = "{INSTANCES / "tiny-64.toml"}"
"""
VARY = """\
[grid.vary]
"workload.max_iteration_time_s" = [0.5, 0.68, 1.0]
"cluster.gpus" = [32, 64]
"""

Written = Callable[..., Path]
Ran = Callable[..., Summary]


class Here:
    """Answers each case as soon as it is handed over; `seen` are those it was given."""

    slots = 3

    def __init__(self, workers: int = 1) -> None:
        self.seen: list[str] = []
        self.ended = ""

    def submit(self, case: Case) -> Future[str]:
        self.seen.append(case.case_id)
        future: Future[str] = Future()
        future.set_result(outcome_json(__version__, case.case_id, case.action, case.question))
        return future

    def renew(self) -> None:
        raise AssertionError("nothing breaks here")

    def close(self) -> None:
        self.ended = "closed"

    def abandon(self) -> None:
        self.ended = "abandoned"


@pytest.fixture
def here() -> Here:
    return Here()


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Write a suite file: `written("[grid.vary]...")` after the usual head."""

    def write(rest: str = VARY, head: str = HEAD, name: str = "suite.toml") -> Path:
        file = tmp_path / name
        file.write_text(head + rest, "utf-8")
        return file

    return write


@pytest.fixture
def ran(tmp_path: Path, here: Here) -> Ran:
    """Run a suite file in this process."""

    def run(file: Path, folder: str = "out", *, resume: bool = False) -> Summary:
        return ran_here(file, tmp_path / folder, here, resume=resume)

    return run


def ran_here(file: Path, folder: Path, here: Here, *, resume: bool = False) -> Summary:
    """What becomes of a suite file in this process."""
    study = read_study(file)
    cases = cases_of(study.suite, file.parent)
    with run_folder(folder, study, resume=resume) as place:
        return Driver(study.suite.name, cases, place, lambda step: None).run(lambda: here)


@pytest.fixture(scope="session")
def rows_of_grid(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows of a run of GRID that nothing disturbs."""
    folder = tmp_path_factory.mktemp("grid")
    file = folder / "suite.toml"
    file.write_text(HEAD + GRID, "utf-8")
    ran_here(file, folder / "whole", Here())
    return rows_without_times(folder / "whole")


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of the usual suite."""
    folder = tmp_path_factory.mktemp("usual")
    file = folder / "suite.toml"
    file.write_text(HEAD + VARY, "utf-8")
    ran_here(file, folder / "out", Here())
    return folder / "out"


@pytest.fixture
def finished(whole_run: Path, tmp_path: Path) -> Path:
    """A copy of it to change something in."""
    return Path(shutil.copytree(whole_run, tmp_path / "out"))
