"""`make test` on machines that lack something: a browser, the right to install one, the module venv."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest
from tests.pages import chromium
from tests.pages.chromium import NEEDED, PACKAGES

ROOT = Path(__file__).parents[1]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What make reads of a clone, already set up, with a folder of programs that note how they are called."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "programs").mkdir()
    for name in ("apt-get", "sudo", "pytest"):
        program(tmp_path, name, f'echo {name} "$@" >> "{tmp_path}/log"')
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / "programs/pytest").rename(tmp_path / ".venv/bin/pytest")
    (tmp_path / ".venv/.installed").touch()
    return tmp_path


def program(clone: Path, name: str, script: str) -> None:
    """Put a program into the clone's folder of programs, the only ones that make finds."""
    path = clone / "programs" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def make_test(clone: Path, user: int = 0, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run `make test` as that user."""
    program(clone, "id", f"echo {user}")
    command = [shutil.which("make") or "make", "test", *(f"{key}={value}" for key, value in changes.items())]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("COOPT_", "MAKE", "PYTHON"))}
    environment = kept | {"PATH": str(clone / "programs")}
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)


def called(clone: Path) -> list[str]:
    """How the programs were called."""
    return (clone / "log").read_text().splitlines()


def test_root_gets_the_browser_that_the_tests_ask_for(clone: Path) -> None:
    assert make_test(clone).returncode == 0
    update, install, tests = called(clone)
    assert update.startswith("apt-get update")
    assert install.startswith("apt-get install -y")
    assert install.endswith(f" {PACKAGES}")
    assert tests == "pytest"


def test_tests_run_where_the_browser_cannot_be_installed(clone: Path) -> None:
    program(clone, "apt-get", "exit 100")
    assert make_test(clone).returncode == 0
    assert called(clone) == ["pytest"]


@pytest.mark.parametrize("why", ["not root", "no apt-get", "browser there", "not wanted"])
def test_nothing_is_installed_otherwise(clone: Path, why: str) -> None:
    if why == "no apt-get":
        (clone / "programs/apt-get").unlink()
    if why == "browser there":
        program(clone, "chromedriver", ":")
    changes = {"COOPT_NO_BROWSER": "1"} if why == "not wanted" else {}
    assert make_test(clone, 1000 if why == "not root" else 0, **changes).returncode == 0
    assert called(clone) == ["pytest"]


@pytest.mark.parametrize("python", ["exit 1", None], ids=["without venv", "without Python"])
def test_one_line_says_that_venv_is_missing(clone: Path, python: str | None) -> None:
    shutil.rmtree(clone / ".venv")
    if python:
        program(clone, "python3", f"echo a traceback >&2; {python}")
    done = make_test(clone)
    assert done.returncode == 2
    said, of_make = done.stderr.splitlines()
    assert "python3-venv" in said
    assert of_make.startswith("make: ***")
    assert not (clone / ".venv").exists()


def test_checks_that_are_ended_leave_nothing_running(clone: Path) -> None:
    """What runs beside the tests are shells that wait for what they started."""
    (clone / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", clone / ".ci")
    program(clone, "slow", f'echo $$ >> "{clone}/log"; exec sleep 60')
    program(clone, "make", f'case "$1" in test) exec "{clone}/programs/slow";; esac')
    (clone / ".venv/bin/python").symlink_to(clone / "programs/slow")
    environment = os.environ | {"PATH": f"{clone}/programs:{os.environ['PATH']}", "PYTHON": "false"}
    run = subprocess.Popen(["bash", ".ci/run"], cwd=clone, env=environment, stdout=subprocess.DEVNULL)
    wait_until(lambda: (clone / "log").exists() and len(called(clone)) == 2)
    run.terminate()
    run.wait(timeout=10)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in called(clone)))


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for what takes other processes a moment."""
    for _ in range(200):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("nothing changed within 10 s")


@pytest.fixture
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without one, where tests are not told to go without."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("COOPT_NO_BROWSER", raising=False)
    monkeypatch.setattr(chromium, "BROWSERS", ())


@pytest.mark.usefixtures("no_browser")
def test_the_last_line_says_how_many_tests_were_left_out() -> None:
    lines: list[str] = []
    skipped = [SimpleNamespace(longrepr=("file", 1, f"Skipped: {why}")) for why in (NEEDED, NEEDED, "another reason")]
    terminal = SimpleNamespace(stats={"skipped": skipped}, write_line=lines.append)
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda name: terminal))
    conftest.pytest_unconfigure(config)
    assert [(line[:8], line.endswith(NEEDED)) for line in lines] == [("2 tests ", True)]


@pytest.mark.usefixtures("no_browser")
def test_a_browser_that_is_missing_is_an_error_where_one_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """But not where none is wanted."""
    monkeypatch.setenv("COOPT_BROWSER", "1")
    with pytest.raises(pytest.UsageError, match=PACKAGES):
        conftest.pytest_configure()
    monkeypatch.setenv("COOPT_NO_BROWSER", "1")
    conftest.pytest_configure()
    assert chromium.why_not() == "COOPT_NO_BROWSER is set"
