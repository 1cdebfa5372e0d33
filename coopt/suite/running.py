"""Work through cases on a pool: each once, whatever happens to a worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait

from coopt.suite.cases import Case
from coopt.suite.outcome import Outcome
from coopt.suite.pools import Pool, PoolLostError

DIED = "the worker died twice at work on this case: killed, or out of memory"

OnOutcome = Callable[[Outcome], None]


def work_through(cases: Iterable[Case], pool: Pool, on_outcome: OnOutcome) -> None:
    """Have every case answered; `on_outcome` hears each outcome in the caller's thread as soon as it is there.

    When a pool breaks, one of the cases in it is to blame. Each of them is handed over again, alone: the one that
    breaks the pool a second time is recorded as failed, and the others go on.

    Raises
    ------
    PoolLostError
        When nobody is left who could work on the rest.
    """
    waiting: deque[Case] = deque(cases)
    while waiting:
        for suspect in _together(waiting, pool, on_outcome):
            if _together(deque([suspect]), pool, on_outcome):
                on_outcome(_failed(suspect, DIED))


def _together(waiting: deque[Case], pool: Pool, on_outcome: OnOutcome) -> list[Case]:
    """Hand over all that waits, a few at a time; ends early when the pool breaks, with the cases that were in it."""
    at_work: dict[Future[str], Case] = {}
    lost: list[Case] = []
    while at_work or (waiting and not lost):
        while waiting and not lost and len(at_work) < pool.slots:
            case = waiting.popleft()
            try:
                at_work[pool.submit(case)] = case
            except BrokenExecutor:
                lost.append(case)
        done, _ = wait(at_work, return_when=FIRST_COMPLETED)
        for future in done:
            case = at_work.pop(future)
            outcome = _outcome(case, future)
            if outcome is None:
                lost.append(case)
            else:
                on_outcome(outcome)
    if lost:
        pool.renew()
    return lost


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


def _failed(case: Case, why: str) -> Outcome:
    return Outcome(case_id=case.case_id, action=case.action, status="failed", why=(why,))
