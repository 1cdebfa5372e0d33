"""The folder of a run: one writer at a time, every answer in a file of its own, trusted only when whole.

DIR/suite.json        the suite and the published figures it names
DIR/cases/ID.json     the outcome of a case, with its plan
DIR/journal.jsonl     a line for every case that was worked on
DIR/results.parquet   one row a case
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from coopt.instance.errors import InstanceError
from coopt.instance.texts import read_text, write_text
from coopt.suite.form import Study
from coopt.suite.rows import Outcome
from coopt.suite.table import Row, check_parquet, read_rows

LOCK, SUITE, RESULTS, JOURNAL = ".lock", "suite.json", "results.parquet", "journal.jsonl"


@contextmanager
def run_folder(place: str | Path, study: Study, *, resume: bool) -> Iterator[RunFolder]:
    """The folder of a run, for this process alone.

    Raises
    ------
    InstanceError
        When another run is at work there, when it holds something and `resume` is not asked for, or when what it holds
        is another suite.
    """
    folder = RunFolder(Path(place))
    folder.check(study, resume=resume)
    try:
        folder.cases.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder.root / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InstanceError(f"{place}: cannot be written ({error.strerror}), needs a folder one may write to") from None
    try:
        _lock(lock, place)
        folder.sweep()
        write_text(folder.root / SUITE, study.model_dump_json(by_alias=True, indent=2) + "\n")
        yield folder
    finally:
        os.close(lock)


def _lock(handle: int, place: str | Path) -> None:
    """Hold the folder until this process ends, however it ends."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InstanceError(f"{place}: another run is at work here, needs its end or another folder") from None


def read_kept_study(place: str | Path) -> Study:
    """The suite that a folder holds the results of."""
    file = Path(place) / SUITE
    text = read_text(file, "the suite of a run", "a folder that `coopt suite run` wrote")
    try:
        return Study.model_validate_json(text)
    except ValidationError:
        raise InstanceError(f"{file}: not what `coopt suite run` writes, needs another folder") from None


def read_results(place: str | Path) -> tuple[Study, list[Row]]:
    """The suite of a folder and the rows of its results, complete or so far."""
    check_parquet()
    return read_kept_study(place), read_rows(Path(place) / RESULTS)


class RunFolder:
    """Paths and files of a run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cases = root / "cases"
        self.results = root / RESULTS

    def check(self, study: Study, *, resume: bool) -> None:
        """Refuse a folder with anything else in it."""
        if self.root.exists() and not self.root.is_dir():
            raise InstanceError(f"{self.root}: is a file, needs the name of a folder")
        if not self.root.is_dir() or not self._holds_something():
            return
        if not resume:
            raise InstanceError(f"{self.root}: is not empty, needs --resume to go on there, or another folder")
        name = read_kept_study(self.root).suite.name
        if name != study.suite.name:
            raise InstanceError(f"{self.root}: holds suite {name!r}, needs the folder of {study.suite.name!r}")

    def _holds_something(self) -> bool:
        """Whether there is more than a run leaves that was ended before its first answer."""
        there = {path.name for path in self.root.iterdir() if not path.name.startswith(".")}
        if there - {SUITE, self.cases.name} or (self.cases.is_dir() and any(self.cases.glob("[!.]*"))):
            return True
        if SUITE in there:
            read_kept_study(self.root)
        return False

    def sweep(self) -> None:
        """Remove what a run that was killed while it wrote left half done."""
        for place in (self.root, self.cases):
            for left in place.glob(".*.tmp"):
                left.unlink()

    def kept(self, case_id: str) -> Outcome | None:
        """What is known of a case; None where there is nothing, or nothing that can be trusted."""
        try:
            found = Outcome.model_validate_json((self.cases / f"{case_id}.json").read_bytes())
        except (OSError, ValidationError):
            return None
        return found if found.case_id == case_id else None

    def has(self, case_id: str) -> bool:
        """Whether there is a file of that case, to be trusted or not."""
        return (self.cases / f"{case_id}.json").exists()

    def keep(self, outcome: Outcome) -> None:
        """Write what came of a case, then say so in the journal."""
        write_text(self.cases / f"{outcome.case_id}.json", outcome.model_dump_json(by_alias=True, indent=1) + "\n")
        line = {"case_id": outcome.case_id, "status": outcome.status, "cpu_s": outcome.cpu_s}
        try:
            with open(self.root / JOURNAL, "a", encoding="utf-8") as journal:
                journal.write(json.dumps(line) + "\n")
        except OSError as error:
            where = self.root / JOURNAL
            raise InstanceError(f"{where}: cannot be written ({error.strerror}), needs a place for a file") from None
