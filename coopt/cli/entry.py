"""Where the command begins: interrupts are heard from here on, before anything else is imported.

An interrupt that arrives while a module is imported waits until it is there, so that no module is
left in halves. A request to end (SIGTERM) is an interrupt as well.
"""

from __future__ import annotations

import gc
import signal
import sys
from types import FrameType

AGAIN_S = 0.01
"""After how long an interrupt that had to wait is tried again."""
STOPPED = 4


def run() -> None:
    """Run `coopt`; an interrupt at any moment ends it with a word and the code of what was
    stopped.
    """
    try:
        hear_interrupts()
        from coopt._interpreter import collect_rarely
        from coopt.cli.main import main

        collect_rarely()
        main(prog_name="coopt")
    except KeyboardInterrupt:
        sys.stderr.write("coopt: interrupted\n")
        sys.exit(STOPPED)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # nothing is left but to end
        # memory goes back as a whole: looking for cycles in it once more takes a fifth of a second
        gc.freeze()


def hear_interrupts() -> None:
    """Listen to interrupts; where a shell has them ignored, as for a job in the background, they
    stay so.
    """
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _asked_to_end)
    signal.signal(signal.SIGALRM, _asked_to_end)


def _interrupted(number: int, frame: FrameType | None) -> None:
    if _importing(frame):
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    else:
        raise KeyboardInterrupt


def _asked_to_end(number: int, frame: FrameType | None) -> None:
    """Do as for an interrupt, by whoever listens to these now."""
    listener = signal.getsignal(signal.SIGINT)
    (listener if callable(listener) else _interrupted)(number, frame)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
