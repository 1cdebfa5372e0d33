"""Pools of workers that run cases: local processes, or a Dask cluster, through
`concurrent.futures`.
"""

from __future__ import annotations

import logging
import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing import util
from multiprocessing.connection import Connection
from typing import Any, Protocol

from coopt._interpreter import collect_rarely
from coopt._version import __version__
from coopt.instance.texts import InstanceError
from coopt.suite.form import Case

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Read as numpy is imported, which nothing here does: a worker imports this file first, and sets
them.
"""


class PoolLostError(Exception):
    """No worker is left for the remaining cases."""


class WorkerPool(Protocol):
    """Workers that run cases."""

    @property
    def slots(self) -> int:
        """Number of cases to submit at once to keep all workers busy."""

    def submit(self, case: Case) -> Future[str]:
        """Submit a case; the result is its outcome as JSON, or BrokenExecutor if a worker died."""

    def renew(self) -> None:
        """Replace the workers of a broken pool."""

    def close(self) -> None:
        """Close an idle pool."""

    def abandon(self) -> None:
        """Terminate the workers at once, even if busy."""


def available_cores() -> int:
    """Number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Start processes that ignore Ctrl-C from the beginning, as they inherit the signal mask."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


class LocalPool:
    """Local processes, spawned rather than forked: a solver with threads does not survive a
    fork.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        worker_end, self._lifeline = context.Pipe(duplex=False)
        self._executor = ProcessPoolExecutor(
            self.workers, context, initializer=begin_worker, initargs=(worker_end,)
        )
        with _ignoring_interrupts():
            self._first = self._executor.submit(os.getpid)

    @property
    def slots(self) -> int:
        """Two cases per worker, so that none is idle."""
        return 2 * self.workers

    def submit(self, case: Case) -> Future[str]:
        """Submit a case, which may start a process."""
        with _ignoring_interrupts():
            return _handed(self._executor, case)

    def renew(self) -> None:
        """Start new workers and check that one of them responds."""
        self.abandon()
        self._start()
        try:
            self._first.result()
        except BrokenExecutor:
            raise PoolLostError from None

    def close(self) -> None:
        """Stop the idle workers."""
        self._executor.shutdown()
        self._lifeline.close()

    def abandon(self) -> None:
        """Stop the workers by closing their lifeline."""
        self._lifeline.close()
        self._executor.shutdown(cancel_futures=True)


def begin_worker(lifeline: Connection) -> None:
    """Initialise a worker: one thread, infrequent garbage collection, and an end with the parent
    process.

    It ignores SIGTERM, which a broken pool sends to all its workers: each ends by its lifeline
    instead.

    Parameters
    ----------
    lifeline
        One end of a pipe; the worker ends as soon as the other end is closed.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    collect_rarely()
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    for module in ("coopt.suite.work", "coopt.solving.highs"):
        import_module(module)


def _end_with(lifeline: Connection) -> None:
    try:
        lifeline.recv_bytes()
    except (EOFError, OSError):
        util._run_finalizers()  # type: ignore[attr-defined]  # gives back semaphores, such as one that Pyomo makes
        os._exit(0)


class DaskPool:
    """A running Dask cluster. It reassigns a case if a worker dies, and fails the case after
    several deaths.
    """

    START_S = 10.0  # until a scheduler has to answer
    COUNT_S = 2.0  # between two counts of the workers

    def __init__(self, address: str) -> None:
        try:
            distributed: Any = import_module("distributed")
        except ImportError:
            raise InstanceError(
                "--scheduler: Dask is not installed, needs `pip install 'coopt[dask]'`"
            ) from None
        try:
            self._client = distributed.Client(address, timeout=self.START_S, set_as_default=False)
        except (OSError, ValueError, TypeError):
            raise InstanceError(
                f"--scheduler {address}: no scheduler answers, needs an address such as"
                " tcp://host:8786"
            ) from None
        logging.getLogger("distributed.client").setLevel(
            logging.CRITICAL
        )  # we report a lost scheduler ourselves
        self._threads, self._counted = 0, -math.inf
        self._executor: Executor = self._client.get_executor(pure=False)

    @property
    def slots(self) -> int:
        """Two cases per thread of the current workers; the last known number if the scheduler does
        not respond.
        """
        moment = time.monotonic()
        if moment - self._counted > self.COUNT_S:
            with suppress(OSError, RuntimeError):
                self._threads = sum(map(int, self._client.nthreads().values()))
            self._counted = moment
        return 2 * max(1, self._threads)

    def submit(self, case: Case) -> Future[str]:
        """Submit a case."""
        if self._client.status in ("closing", "closed"):
            raise PoolLostError
        return _handed(self._executor, case)

    def renew(self) -> None:
        """Do nothing, since a cluster replaces its own workers."""
        raise AssertionError("a Dask pool does not break")

    def close(self) -> None:
        """Disconnect from the cluster, which drops pending cases."""
        self._client.close()

    def abandon(self) -> None:
        """Disconnect from the cluster, like `close`."""
        self.close()


def _handed(executor: Executor, case: Case) -> Future[str]:
    """Submit a case to an executor as text, so that a worker needs only coopt."""
    from coopt.suite.work import outcome_json

    return executor.submit(outcome_json, __version__, case.case_id, case.action, case.question)
