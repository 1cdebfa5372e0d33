"""Run HiGHS so that a search can be heard, interrupted and cancelled."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ALONE = threading.Lock()
"""Held by the thread whose turn it is."""

POLL_S = 0.1
"""Most seconds until a thread that waits or searches notices that it is cancelled."""


def turn_came(deadline: float, cancel: threading.Event) -> bool:
    """Wait for `ALONE` and take it; False where `cancel` is set or the deadline
    (`time.perf_counter`) passes before.
    """
    while not cancel.is_set():
        left_s = deadline - time.perf_counter()
        if ALONE.acquire(timeout=min(max(left_s, 0.0), POLL_S)):
            return True
        if left_s <= 0:
            return False
    return False


DEAF_S = 10.0
"""Seconds that a search has to stop; one of HiGHS's may hear neither its time limit nor an
interrupt.
"""

TELL_S = 0.5
"""Least seconds between two reports of how far a search is."""


@dataclass(frozen=True, kw_only=True)
class SearchStanding:
    """How far a search is, in the model's units: `best` is None without a solution, `bound` without
    a proof.
    """

    nodes: int
    best: float | None
    bound: float | None


OnStanding = Callable[[SearchStanding], None]


def rescaled(on_standing: OnStanding | None, scale: float, past_nodes: int) -> OnStanding | None:
    """The listener as one in the model's units; `past_nodes` were searched in the models before
    this one.
    """
    if on_standing is None:
        return None

    def tell(standing: SearchStanding) -> None:
        value, bound = (
            None if figure is None else figure * scale for figure in (standing.best, standing.bound)
        )
        on_standing(SearchStanding(nodes=past_nodes + standing.nodes, best=value, bound=bound))

    return tell


@contextmanager
def interrupts_heard(heard: threading.Event, *, raised: bool = True) -> Iterator[None]:
    """Let Ctrl-C set an event besides what it does otherwise, or in place of that.

    A KeyboardInterrupt is lost where a callback of a library runs, and ends the process where that
    library cannot stand one. Only the main thread may listen to signals, and a shell's background
    job is to ignore this one; there nothing sets the event.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return

    def hear(number: int, frame: FrameType | None) -> None:
        heard.set()
        if raised:
            handler(number, frame)

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


class Ending(NamedTuple):
    """How a search came to its end; `abandoned` where it was told to stop, or should have, and was
    not waited for.

    HiGHS then runs on in its thread, which a process need not wait for, and says no more than what
    it had told: how far it was, and its best solution, column by column.
    """

    interrupted: bool
    abandoned: bool
    standing: SearchStanding | None
    solution: NDArray[np.float64] | None


def watched(
    h: Any, on_standing: OnStanding | None, cancel: threading.Event, deadline: float
) -> Ending:
    """Run in HiGHS's own thread so that Ctrl-C and `cancel` reach us; a search that has not ended
    `DEAF_S` after one of them, or after its deadline (`time.perf_counter`), is left.

    Ctrl-C sets `cancel`, so that searches to come hear it too where this one had just ended.
    """
    with interrupts_heard(cancel, raised=False):
        return _watched(h, on_standing, cancel.is_set, deadline)


def _watched(
    h: Any, on_standing: OnStanding | None, cancelled: Callable[[], bool], deadline: float
) -> Ending:
    h.HandleUserInterrupt = True
    latest, solutions = list[SearchStanding](), list[NDArray[np.float64]]()
    h.cbMipInterrupt.subscribe(lambda event: _put(latest, _standing_of(event.data_out)))
    h.cbMipImprovingSolution.subscribe(
        lambda event: _put(solutions, np.array(event.data_out.mip_solution))
    )
    search = threading.Thread(
        target=_run, args=(h,), daemon=True
    )  # highspy's own allows one search in a process
    search.start()
    interrupted, told_s = False, time.perf_counter()

    def ending(*, abandoned: bool) -> Ending:
        return Ending(
            interrupted,
            abandoned,
            latest[0] if latest else None,
            solutions[0] if solutions else None,
        )

    try:
        while True:
            try:
                search.join(POLL_S)
                done, now_s = not search.is_alive(), time.perf_counter()
                if done or now_s > deadline + DEAF_S:
                    return ending(abandoned=not done)
                if cancelled() and not interrupted:
                    # from here it has DEAF_S to stop, whatever time it had left
                    interrupted, deadline = True, min(deadline, now_s)
                    h.cancelSolve()
                if on_standing and latest and not interrupted and now_s - told_s >= TELL_S:
                    told_s = now_s
                    on_standing(latest[0])
            except KeyboardInterrupt:  # of the callback
                interrupted, deadline = True, min(deadline, time.perf_counter())
                h.cancelSolve()
    except BaseException:  # of the callback: HiGHS must not run on behind it
        h.cancelSolve()
        search.join(DEAF_S)
        raise


def _run(h: Any) -> None:
    """Run HiGHS as highspy does in a thread, which ends its workers, or on Windows may wait for
    them for ever.
    """
    try:
        h.run()
    finally:
        ended = (
            "resetThreadScheduler" if hasattr(h, "resetThreadScheduler") else "resetGlobalScheduler"
        )
        getattr(h, ended)(False)


def _put(place: list[Any], value: Any) -> None:
    """Keep a value in place of one before it."""
    place[:] = [value]


def _standing_of(data: Any) -> SearchStanding:
    value, bound = float(data.mip_primal_bound), float(data.mip_dual_bound)
    return SearchStanding(
        nodes=max(int(data.mip_node_count), 0),
        best=value if math.isfinite(value) else None,
        bound=bound if math.isfinite(bound) else None,
    )
