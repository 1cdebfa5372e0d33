"""A run of a suite: finds finished cases, runs the others on a pool, and writes the table of
results.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from coopt.instance.texts import that_hold
from coopt.plan.schema import OnProgress, Progress
from coopt.solving.highs import interrupts_heard
from coopt.suite.folder import Outcome, RunFolder, row_of, run_folder
from coopt.suite.form import Case, cases_of, read_study
from coopt.suite.pools import DaskPool, LocalPool, PoolLostError, WorkerPool, available_cores
from coopt.suite.table import check_parquet, write_rows
from coopt.suite.work import verified

DIED = "the worker died when this case ran alone (killed or out of memory)"

OnOutcome = Callable[[Outcome], None]
WRITE_S = 60.0  # between two versions of the table while a run goes on


def work_through(cases: Iterable[Case], pool: WorkerPool, on_outcome: OnOutcome) -> None:
    """Run every case; `on_outcome` is called with each outcome in the caller's thread.

    If a pool breaks, one of its cases is the cause. Each of them is submitted again, alone: the one
    that breaks the pool again is recorded as failed, and the others continue.

    Raises
    ------
    PoolLostError
        If no worker is left for the remaining cases.
    """
    waiting: deque[Case] = deque(cases)
    while waiting:
        for suspect in _hand_over(waiting, pool, on_outcome):
            if _hand_over(deque([suspect]), pool, on_outcome):
                on_outcome(_failed(suspect, DIED))


def _hand_over(waiting: deque[Case], pool: WorkerPool, on_outcome: OnOutcome) -> list[Case]:
    """Submit all waiting cases, a few at a time; if the pool breaks, return the cases that were in
    it.
    """
    at_work: dict[Future[str], Case] = {}
    suspects: list[Case] = []
    while at_work or (waiting and not suspects):
        # few at a time, so that few cases are suspect if a pool breaks
        while waiting and not suspects and len(at_work) < pool.slots:
            case = waiting.popleft()
            try:
                at_work[pool.submit(case)] = case
            except BrokenExecutor:
                suspects.append(case)
        finished, _ = wait(at_work, return_when=FIRST_COMPLETED)
        for future in finished:
            case = at_work.pop(future)
            outcome = _outcome(case, future)
            if outcome is None:
                suspects.append(case)
            else:
                on_outcome(outcome)
    if suspects:
        pool.renew()
    return suspects


def _outcome(case: Case, future: Future[str]) -> Outcome | None:
    """Return the outcome of a case, or None if the pool broke."""
    if future.cancelled():
        raise PoolLostError
    error = future.exception()
    if isinstance(error, BrokenExecutor):
        return None
    if error is not None:
        return _failed(case, f"{type(error).__name__}: {error}")
    return Outcome.model_validate_json(future.result())


def _failed(case: Case, reason: str) -> Outcome:
    return Outcome(case_id=case.case_id, action=case.action, status="failed", why=(reason,))


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Statistics of a run.

    `cases` become rows when all are done; `asked` are the distinct questions among them, of which
    `kept` were answered before and `worked` were run now. `damaged` files were invalid. `stopped`
    states why the run ended early.
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


class Driver:
    """One run of a suite in its folder."""

    def __init__(
        self, suite: str, cases: tuple[Case, ...], folder: RunFolder, on_progress: OnProgress
    ) -> None:
        self.suite, self.cases, self.folder, self.on_progress = suite, cases, folder, on_progress
        self.asked = {case.case_id: case for case in cases if not case.refusal}
        known_outcomes = {case_id: self._known(case) for case_id, case in self.asked.items()}
        self.damaged = sum(
            outcome is None and folder.has(case_id) for case_id, outcome in known_outcomes.items()
        )
        self.outcomes = {
            i: outcome
            for i, outcome in known_outcomes.items()
            if outcome is not None and outcome.answered
        }
        self.kept = len(self.outcomes)
        self.worked: list[Outcome] = []
        self.failed = 0
        self._interrupted = threading.Event()
        self.started = self.written = time.perf_counter()

    def _known(self, case: Case) -> Outcome | None:
        """Return the stored outcome of a case; None if missing, or if its plan does not verify."""
        outcome = self.folder.outcome_of(case.case_id)
        return outcome if outcome is not None and verified(case, outcome) else None

    def run(self, pool_of: Callable[[], WorkerPool]) -> Summary:
        """Run all cases without an answer and write the table; after Ctrl-C it holds the finished
        ones.
        """
        stop_reason = None
        open_cases = [case for case_id, case in self.asked.items() if case_id not in self.outcomes]
        try:
            with interrupts_heard(self._interrupted):
                if open_cases:
                    self._tell()
                    _work(open_cases, pool_of, self._heard)
        except KeyboardInterrupt:
            stop_reason = "interrupted"
        except PoolLostError:
            stop_reason = "the workers can no longer be reached"
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
            stopped=stop_reason,
        )

    def _heard(self, outcome: Outcome) -> None:
        self.folder.keep(outcome)
        self.outcomes[outcome.case_id] = outcome
        self.worked.append(outcome)
        self.failed += not outcome.answered
        self._tell()
        if time.perf_counter() - self.written > WRITE_S:
            self._write()
        if self._interrupted.is_set():
            raise KeyboardInterrupt

    def _tell(self) -> None:
        """Report finished and failed cases, and the estimated time left."""
        answered, all_of_them = len(self.outcomes), len(self.asked)
        elapsed_s = time.perf_counter() - self.started
        left_s = elapsed_s / max(1, len(self.worked)) * (all_of_them - answered)
        message = ", ".join(
            that_hold(
                {
                    f"{answered:,} of {all_of_them:,}": True,
                    f"{self.failed:,} failed": self.failed > 0,
                    f"about {_duration(left_s)} left": bool(self.worked),
                }
            )
        )
        self.on_progress(
            Progress(
                stage="cases", message=message, elapsed_s=elapsed_s, done=(answered, all_of_them)
            )
        )

    def _answered(self) -> Iterator[tuple[Case, Outcome]]:
        for case in self.cases:
            if case.refusal:
                yield (
                    case,
                    Outcome(
                        case_id=case.case_id, action=case.action, status="refused", why=case.refusal
                    ),
                )
            elif case.case_id in self.outcomes:
                yield case, self.outcomes[case.case_id]

    def _write(self) -> None:
        write_rows(
            self.folder.results,
            [row_of(self.suite, case, outcome) for case, outcome in self._answered()],
        )
        self.written = time.perf_counter()


def _work(cases: list[Case], pool_of: Callable[[], WorkerPool], on_outcome: OnOutcome) -> None:
    """Run cases on a pool of their own, which is closed even after an early end."""
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


def run_suite(
    path: str | Path,
    output: str | Path | None = None,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    on_progress: OnProgress = lambda step: None,
) -> Summary:
    """Run every case of a suite file and store the results in a folder.

    Parameters
    ----------
    output
        The folder; None for `out/NAME`.
    workers
        Number of local processes, each with one solver thread; None for one per available core.
    scheduler
        Address of a Dask scheduler whose workers are used instead.
    resume
        Whether the folder may hold results of this suite; answered cases are not run again.

    Raises
    ------
    InstanceError
        If the suite, the folder or the scheduler cannot be used; no case was run then.
    """
    check_parquet()
    study = read_study(path)
    cases = cases_of(study.suite, Path(path).parent)
    pool_of: Callable[[], WorkerPool] = partial(LocalPool, workers or available_cores())
    if scheduler is not None:
        pool_of = partial(DaskPool, scheduler)
    with run_folder(output or Path("out") / study.suite.name, study, resume=resume) as folder:
        return Driver(study.suite.name, cases, folder, on_progress).run(pool_of)
