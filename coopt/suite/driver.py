"""A whole run: what is known already, what is worked on, and the table of all."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from coopt.plan.progress import OnProgress, Progress
from coopt.suite.cases import Case
from coopt.suite.folder import Folder
from coopt.suite.outcome import Outcome
from coopt.suite.parquet import write_rows
from coopt.suite.pools import Pool, PoolLostError
from coopt.suite.rows import row_of
from coopt.suite.running import OnOutcome, work_through

WRITE_S = 60.0  # between two versions of the table while a run goes on


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a run did.

    `cases` are rows when all is done; `asked` are different questions among them, `kept` of which had an answer before
    and `worked` were worked on now. `damaged` files could not be trusted. `stopped` says why the run ended early.
    """

    suite: str
    folder: str
    cases: int
    asked: int
    kept: int
    worked: int
    damaged: int
    statuses: dict[str, int]
    wall_s: float
    cpu_s: float
    stopped: str | None

    def document(self) -> dict[str, Any]:
        """As one JSON document."""
        return asdict(self)


class Driver:
    """One run of a suite in its folder."""

    def __init__(self, suite: str, cases: tuple[Case, ...], folder: Folder, on_progress: OnProgress) -> None:
        self.suite, self.cases, self.folder, self.on_progress = suite, cases, folder, on_progress
        self.asked = {case.case_id: case for case in cases if not case.refusal}
        found = {case_id: folder.kept(case_id) for case_id in self.asked}
        self.damaged = sum(outcome is None and folder.has(case_id) for case_id, outcome in found.items())
        self.outcomes = {i: outcome for i, outcome in found.items() if outcome is not None and outcome.answered}
        self.kept = len(self.outcomes)
        self.worked: list[Outcome] = []
        self.failed = 0
        self.started = self.written = time.perf_counter()

    def run(self, pool_of: Callable[[], Pool]) -> Summary:
        """Work on what has no answer and write the table; Ctrl-C ends it with everything that is finished."""
        stopped = None
        missing = [case for case_id, case in self.asked.items() if case_id not in self.outcomes]
        try:
            if missing:
                self._tell()
                _work(missing, pool_of, self._heard)
        except KeyboardInterrupt:
            stopped = "interrupted"
        except PoolLostError:
            stopped = "the workers cannot be reached any more"
        self._write()
        return Summary(
            suite=self.suite,
            folder=str(self.folder.root),
            cases=len(self.cases),
            asked=len(self.asked),
            kept=self.kept,
            worked=len(self.worked),
            damaged=self.damaged,
            statuses=dict(Counter(outcome.status for _, outcome in self._answered())),
            wall_s=time.perf_counter() - self.started,
            cpu_s=sum(outcome.cpu_s for outcome in self.worked),
            stopped=stopped,
        )

    def _heard(self, outcome: Outcome) -> None:
        self.folder.keep(outcome)
        self.outcomes[outcome.case_id] = outcome
        self.worked.append(outcome)
        self.failed += not outcome.answered
        self._tell()
        if time.perf_counter() - self.written > WRITE_S:
            self._write()

    def _tell(self) -> None:
        """Cases done, failures, and the time left at the pace of this run."""
        done, all_of_them, now = len(self.outcomes), len(self.asked), len(self.worked)
        elapsed_s = time.perf_counter() - self.started
        parts = [f"{done:,} of {all_of_them:,}"]
        parts += [f"{self.failed:,} failed"] if self.failed else []
        parts += [f"about {_duration(elapsed_s / now * (all_of_them - done))} left"] if now else []
        self.on_progress(Progress(stage="cases", message=", ".join(parts), elapsed_s=elapsed_s))

    def _answered(self) -> Iterator[tuple[Case, Outcome]]:
        for case in self.cases:
            if case.refusal:
                yield case, Outcome(case_id=case.case_id, action=case.action, status="refused", why=case.refusal)
            elif case.case_id in self.outcomes:
                yield case, self.outcomes[case.case_id]

    def _write(self) -> None:
        write_rows(self.folder.results, [row_of(self.suite, case, outcome) for case, outcome in self._answered()])
        self.written = time.perf_counter()


def _work(cases: list[Case], pool_of: Callable[[], Pool], on_outcome: OnOutcome) -> None:
    """Work through cases on a pool of their own, which does not outlive an end before its time."""
    pool = pool_of()
    try:
        work_through(cases, pool, on_outcome)
    except BaseException:
        pool.abandon()
        raise
    pool.close()


def _duration(s: float) -> str:
    if s < 90:
        return f"{s:.0f} s"
    return f"{s / 60:.0f} min" if s < 5400 else f"{s / 3600:.1f} h"
