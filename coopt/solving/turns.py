"""Threads take turns with HiGHS: highspy guards interruptible solves with locks of the whole process."""

from __future__ import annotations

import threading
import time

ALONE = threading.Lock()
"""Held by the thread whose turn it is."""

POLL_S = 0.1
"""Most seconds until a thread that waits or searches notices that it is cancelled."""


def turn_came(deadline: float, cancel: threading.Event) -> bool:
    """Wait for `ALONE` and take it; False where `cancel` is set or the deadline (`time.perf_counter`) passes before."""
    while not cancel.is_set():
        left = deadline - time.perf_counter()
        if ALONE.acquire(timeout=min(max(left, 0.0), POLL_S)):
            return True
        if left <= 0:
            return False
    return False
