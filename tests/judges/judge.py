"""What a judge is, and the environment that it gets: pinned packages of a public registry, in a folder of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

READERS = Path(__file__).with_name("readers")
ASKED = "COOPT_JUDGES_PYTHON"
"""Variable that names a Python 3.12 or newer, for judges that need one."""


class NotInstalledError(Exception):
    """A program that is not to be had here; the text says why."""


class NoPythonError(NotInstalledError):
    """No interpreter is new enough: the only reason for which any judge may be skipped."""


class DisagreementError(Exception):
    """A program reads something else than what the plan says; the text says what."""


@dataclass(frozen=True, kw_only=True)
class Judge:
    """A program, the packages that bring it, and what it judges.

    `read` returns the result in words, or raises DisagreementError.
    """

    program: str
    judged: str
    read: Callable[[Bench], str]
    packages: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()  # in place of those that the packages ask for, if any
    registry: Literal["PyPI", "npm", "GitHub"] = "PyPI"
    system: tuple[str, ...] = ()  # packages of Debian that have to be there as well
    built: bool = False  # from source, by the dependencies
    newest_python: bool = False
    may_be_skipped: bool = True

    @property
    def versions(self) -> str:
        """The pins, without names; empty for a rule."""
        return ", ".join(re.split("==|(?<=.)@", package)[-1] for package in self.packages)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where one judge works."""

    judge: Judge
    folder: Path

    def install(self) -> None:
        """Fetch the packages of the judge.

        Raises
        ------
        NotInstalledError
            With the last line of what the installer says.
        """
        self.folder.mkdir()
        if not self.judge.packages:
            return
        if self.judge.system:
            self._run(["apt-get", "update", "-qq"])
            self._run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *self.judge.system])
        if self.judge.registry == "npm":
            self._run(["npm", "install", "--silent", "--no-fund", "--prefix", str(self.folder), *self.judge.packages])
            return
        self._run([self._interpreter, "-m", "venv", "--without-pip", str(self.folder / "venv")])
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--quiet", "--disable-pip-version-check"]
        install = [*pip, "install", "--only-binary", ":all:"]
        if self.judge.registry == "GitHub":
            self._run([*pip, "install", "--prefer-binary", *self._checked_out(), *self.judge.dependencies])
        elif self.judge.dependencies:
            self._run([*install, *self.judge.dependencies])
            by_these = ["--no-build-isolation", "--only-binary", ":none:"] if self.judge.built else []
            self._run([*install, "--no-deps", *by_these, *self.judge.packages])
        else:
            self._run([*install, *self.judge.packages])

    def _checked_out(self) -> list[str]:
        """What the repository at its tag requires, but what the judge has of its own; it is in `source`."""
        name, tag = self.judge.packages[0].split("@")
        url = f"https://github.com/{name}"
        self._run(["git", "clone", "--quiet", "--depth", "1", "--branch", tag, url, str(self.source)])
        own = tuple(re.split(r"[\[=]", one)[0] for one in self.judge.dependencies)
        return [line for line in (self.source / "requirements.txt").read_text().split() if not line.startswith(own)]

    @property
    def source(self) -> Path:
        """The repository of a judge that is checked out."""
        return self.folder / "source"

    @property
    def _interpreter(self) -> str:
        named = os.environ.get(ASKED, sys.executable)
        if not self.judge.newest_python:
            return sys.executable
        done = subprocess.run([named, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"], check=False)
        if done.returncode:
            raise NoPythonError(f"{named} is older than Python 3.12, needs {ASKED} to name one that is not")
        return named

    @property
    def python(self) -> Path:
        """The interpreter that has the packages."""
        return self.folder / "venv" / "bin" / "python"

    def answers(self, reader: str, *words: str, question: Any) -> Any:
        """What a program of `readers/` answers, run by the judge's own interpreter."""
        asked, answer = self.folder / "question.json", self.folder / "answer.json"
        asked.write_text(json.dumps(question), "utf-8")
        answer.unlink(missing_ok=True)
        run([str(self.python), "-I", str(READERS / f"{reader}.py"), *words, str(asked), str(answer)])
        return json.loads(answer.read_text("utf-8"))

    def _run(self, words: list[str]) -> None:
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotInstalledError(f"{words[0]}: {error}") from None
        if done.returncode:
            raise NotInstalledError(_last_line(done))


def run(words: list[str], **others: Any) -> str:
    """What a program prints; what it says where it fails is a disagreement."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, **others)
    if done.returncode:
        raise DisagreementError(_last_line(done))
    return done.stdout


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    """What a program says as it fails."""
    lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
    return lines[-1].replace("|", "/")  # the table has bars of its own


def agree(faults: list[str], count: int, what: str) -> str:
    """The result in words.

    Raises
    ------
    DisagreementError
        With the first faults, where there are any.
    """
    if faults:
        raise DisagreementError(f"{len(faults)} of {count} {what} differ: {'; '.join(faults[:3])}")
    return f"{count} {what} agree"


def js_answers(bench: Bench, reader: str, question: Any) -> Any:
    """What a program of `readers/` for Node answers, with the packages of the judge."""
    asked, answer = bench.folder / "question.json", bench.folder / "answer.json"
    asked.write_text(json.dumps(question), "utf-8")
    run(["node", str(READERS / f"{reader}.mjs"), str(bench.folder), str(asked), str(answer)])
    return json.loads(answer.read_text("utf-8"))
