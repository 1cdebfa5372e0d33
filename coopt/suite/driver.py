"""A whole run: what is known already, the cases worked through on a pool, and the table of all."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from coopt.plan.claims import OnProgress, Progress
from coopt.solving.watching import interrupts_heard
from coopt.suite.folder import Outcome, RunFolder, row_of, run_folder
from coopt.suite.form import Case, cases_of, read_study
from coopt.suite.pools import DaskPool, LocalPool, PoolLostError, WorkerPool, available_cores
from coopt.suite.table import check_parquet, write_rows
from coopt.suite.work import verified

DIED = "the worker died twice at work on this case: killed, or out of memory"

OnOutcome = Callable[[Outcome], None]
WRITE_S = 60.0  # between two versions of the table while a run goes on


def work_through(cases: Iterable[Case], pool: WorkerPool, on_outcome: OnOutcome) -> None:
    """Have every case answered; `on_outcome` hears each outcome in the caller's thread as soon as
    it is there.

    When a pool breaks, one of the cases in it is to blame. Each of them is handed over again,
    alone: the one that breaks the pool a second time is recorded as failed, and the others go on.

    Raises
    ------
    PoolLostError
        When nobody is left who could work on the rest.
    """
    waiting: deque[Case] = deque(cases)
    while waiting:
        for suspect in _hand_over(waiting, pool, on_outcome):
            if _hand_over(deque([suspect]), pool, on_outcome):
                on_outcome(_failed(suspect, DIED))


def _hand_over(waiting: deque[Case], pool: WorkerPool, on_outcome: OnOutcome) -> list[Case]:
    """Hand over all that waits, a few at a time; ends early when the pool breaks, with the cases
    that were in it.
    """
    at_work: dict[Future[str], Case] = {}
    suspects: list[Case] = []
    while at_work or (waiting and not suspects):
        # no more than workers need, so that few cases are suspects where a pool breaks
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
    """What came of a case; None where the pool broke."""
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
    """What a run did.

    `cases` are rows when all is done; `asked` are different questions among them, `kept` of which
    had an answer before and `worked` were worked on now. `damaged` files could not be trusted.
    `stopped` says why the run ended early.
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
        """The summary as a table for one JSON document."""
        return asdict(self)


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
        """What is known of a case; None where there is nothing, or a plan that does not verify."""
        outcome = self.folder.outcome_of(case.case_id)
        return outcome if outcome is not None and verified(case, outcome) else None

    def run(self, pool_of: Callable[[], WorkerPool]) -> Summary:
        """Work on what has no answer and write the table; Ctrl-C ends it with everything that is
        finished.
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
            stop_reason = "the workers cannot be reached any more"
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
        """Cases done, failures, and the time left at the pace of this run."""
        answered, all_of_them, worked_now = len(self.outcomes), len(self.asked), len(self.worked)
        elapsed_s = time.perf_counter() - self.started
        parts = [f"{answered:,} of {all_of_them:,}"]
        parts += [f"{self.failed:,} failed"] if self.failed else []
        parts += (
            [f"about {_duration(elapsed_s / worked_now * (all_of_them - answered))} left"]
            if worked_now
            else []
        )
        self.on_progress(
            Progress(
                stage="cases",
                message=", ".join(parts),
                elapsed_s=elapsed_s,
                done=(answered, all_of_them),
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


def run_suite(
    path: str | Path,
    output: str | Path | None = None,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    on_progress: OnProgress = lambda step: None,
) -> Summary:
    """Answer every case of a suite file and keep the results in a folder.

    Parameters
    ----------
    output
        The folder; None for `out/NAME`.
    workers
        Processes of this machine, each with one solver thread; None for one for each core this
        process may use.
    scheduler
        Address of a Dask scheduler whose workers do the work instead.
    resume
        Whether the folder may hold results of this suite; what is answered there is not asked
        again.

    Raises
    ------
    InstanceError
        When the suite, the folder or the scheduler cannot be used; nothing was run then.
    """
    check_parquet()
    study = read_study(path)
    cases = cases_of(study.suite, Path(path).parent)
    pool_of: Callable[[], WorkerPool] = partial(LocalPool, workers or available_cores())
    if scheduler is not None:
        pool_of = partial(DaskPool, scheduler)
    with run_folder(output or Path("out") / study.suite.name, study, resume=resume) as folder:
        return Driver(study.suite.name, cases, folder, on_progress).run(pool_of)
