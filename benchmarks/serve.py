"""How fast the planner's page answers: a bound that moves to the new plan, the first byte, and
sessions side by side.

`python benchmarks/serve.py` prints a table; `--once` makes one move and few requests. Times are
those of the wire, from the edit that is sent to the event that holds the plan, on this machine with
whatever else it does.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

INSTANCES = Path(__file__).parents[1] / "instances"
NAMES = ("rail-only-gpt-1t", "llama3-405b-16k", "fleet-131k-w8")
MOVES, SESSIONS, REQUESTS = 20, 20, 500
BOUND = ["workload", 0, "max_iteration_time_s"]
SWEEP = 0.3
"""How far a bound moves up in all, as a share of itself."""


@contextmanager
def server(name: str) -> Iterator[int]:
    """The port of a server that has the instance on its page."""
    words = [sys.executable, "-m", "coopt", "serve", str(INSTANCES / f"{name}.toml"), "--port", "0"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        yield int(urlsplit(process.stdout.readline().strip()).port or 0)
        process.terminate()


def ask(port: int, path: str, given: object, until: str) -> tuple[str, float, float]:
    """The answer up to the event that is waited for, and how long its first byte and all of it took
    (s).
    """
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=300)) as connection:
        began = time.perf_counter()
        connection.request("POST", path, json.dumps(given), {"content-type": "application/json"})
        answer = connection.getresponse()
        text = answer.readline().decode()
        first_s = time.perf_counter() - began
        if not until:
            return text + answer.read().decode(), first_s, time.perf_counter() - began
        for line in answer:
            text += line.decode()
            if line == b"\n" and f"event: {until}\n" in text:
                return text, first_s, time.perf_counter() - began
    raise RuntimeError(f"{path} ended without {until}: {text[-300:]}")


def moved(port: int, text: str, value: float) -> tuple[float, float]:
    """A bound moves: seconds to the first byte of the search, and to its plan."""
    began = time.perf_counter()
    edited = json.loads(ask(port, "/question", {"text": text, "changes": [[BOUND, value]]}, "")[0])
    assert not edited["complaints"], edited["complaints"]
    _, first_s, _ = ask(port, "/plan", {"text": edited["text"]}, "plan")
    return first_s, time.perf_counter() - began


def drag(name: str, moves: int) -> str:
    """A line of the table: half and 95% of moves are at most this long."""
    text = (INSTANCES / f"{name}.toml").read_text("utf-8")
    with server(name) as port:
        edited = json.loads(ask(port, "/question", {"text": text}, "")[0])
        start = edited["table"]["workload"][0][str(BOUND[-1])]
        moved(port, text, start)  # what a planner sees before anything moves
        values = [round(start * (1 + SWEEP * n / moves), 4) for n in range(1, moves + 1)]
        firsts, plans = zip(*(moved(port, text, value) for value in values), strict=True)
    first_ms = share(firsts, 0.95) * 1e3
    return f"{name:<22}{first_ms:>14.0f}{share(plans, 0.5):>12.2f}{share(plans, 0.95):>12.2f}"


def share(values: tuple[float, ...], part: float) -> float:
    """The value that this part of all does not exceed."""
    return sorted(values)[min(int(part * len(values)), len(values) - 1)]


def sessions(requests: int) -> str:
    """Sessions side by side, each with a question of its own name; how many answers were wrong or
    another's.
    """
    text = (INSTANCES / "tiny-64.toml").read_text("utf-8")
    with server("tiny-64") as port, ThreadPoolExecutor(SESSIONS) as pool:

        def session(number: int) -> tuple[bool, bool]:
            asked = text.replace('name = "tiny-64"', f'name = "session-{number}"')
            try:
                answer, _, _ = ask(port, "/plan", {"text": asked}, "plan")
            except (OSError, RuntimeError, http.client.HTTPException):
                return False, True
            return True, f'"session-{number}"' in answer and answer.count(
                '"session-'
            ) == answer.count(f'"session-{number}"')

        began = time.perf_counter()
        found = list(pool.map(session, range(requests)))
        took_s = time.perf_counter() - began
    errors, leaks = (sum(not one[place] for one in found) for place in (0, 1))
    return (
        f"{SESSIONS} sessions, {requests} requests: {errors} errors, {leaks} leaks, {took_s:.1f} s"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true")
    once = parser.parse_args().once
    print(f"{'instance':<22}{'first byte, ms':>14}{'p50, s':>12}{'p95, s':>12}")
    for name in NAMES[:1] if once else NAMES:
        print(drag(name, 1 if once else MOVES), flush=True)
    print(sessions(SESSIONS if once else REQUESTS))


if __name__ == "__main__":
    main()
