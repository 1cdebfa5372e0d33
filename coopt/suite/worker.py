"""The start and the end of a local worker process. Light to import: what it sets has to be set before numpy is."""

from __future__ import annotations

import os
import signal
import threading
from importlib import import_module
from multiprocessing import util
from multiprocessing.connection import Connection

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def begin_worker(lifeline: Connection) -> None:
    """Prepare a worker: one thread, and gone when its starter is.

    It is deaf to SIGTERM, which a broken pool sends to all its workers: each ends in order, by its lifeline.

    Parameters
    ----------
    lifeline
        One end of a pipe; when the other end closes, by will or by death, the worker ends at once.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
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
