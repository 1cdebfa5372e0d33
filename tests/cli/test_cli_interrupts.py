"""An interrupt at any moment ends a command with the right code, a word, and no traceback."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

INTERRUPTING = """
import os, signal, time
os.kill(os.getpid(), signal.SIGINT)
time.sleep(0.05)
WHOLE = True
"""

IMPORTING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from coopt.cli import entry
entry.hear_interrupts()
sys.path.insert(0, {folder!r})
try:
    import interrupting
    import time
    time.sleep(5)
    print("lost")
except KeyboardInterrupt:
    print(sys.modules["interrupting"].WHOLE)
"""


def heard_by_all() -> None:
    """Undo what a shell does to jobs in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_interrupt_during_an_import_waits_until_the_module_is_whole(tmp_path: Path) -> None:
    (tmp_path / "interrupting.py").write_text(INTERRUPTING)
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING.format(folder=str(tmp_path))], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize(("number", "late_s"), [(signal.SIGINT, 0.3), (signal.SIGTERM, 0.0)])
def test_a_search_that_is_asked_to_end_says_so(number: signal.Signals, late_s: float) -> None:
    """Direct links take several searches one after the other, and each has to hear it."""
    words = [sys.executable, "-m", "coopt", "solve", "instances/direct-32.toml", "--gap", "0"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heard_by_all
    ) as running:
        assert running.stderr is not None
        told = running.stderr.readline()
        time.sleep(late_s)
        running.send_signal(number)
        answer, rest = running.communicate(timeout=60)
    assert running.returncode == 4, told + rest
    assert "Traceback" not in rest
    assert "interrupted" in answer + rest
