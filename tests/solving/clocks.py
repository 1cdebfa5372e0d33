"""Time limits of random questions, run by hand: `python -m tests.solving.clocks COUNT SEED`.

A shipped question with a limit too tight, or none, is solved, explained or asked for its front within a short time
limit. Seconds of the processor after the limit are counted, which a busy machine does not change; more than
`ALLOWED_S` fail.
"""

import random
import sys
import threading
import time
from pathlib import Path

import coopt
from coopt.instance.texts import InstanceError

ROOT = Path(__file__).parents[2] / "instances"
QUESTIONS = sorted([*ROOT.glob("*.toml"), *(ROOT / "questions").glob("*.toml")])
CHANGES: list[dict[str, object]] = [
    {},
    {},
    {"limits.capex_usd": 1e6},
    {"limits.power_mw": 0.5},
    {"limits.racks": 4},
    {"workload.0.max_iteration_time_s": 0.01},
    {"network.max_tiers": 1},
]
LIMITS_S = [0.5, 1.0, 2.0, 4.0]
ALLOWED_S = 2.0


def late_s(command: str, path: Path, change: dict[str, object], limit_s: float) -> float:
    """Seconds of the processor that a command takes after its time limit."""
    instance, at_limit_s = coopt.load(path, change), list[float]()
    timer = threading.Timer(limit_s, lambda: at_limit_s.append(time.process_time()))
    timer.start()
    getattr(coopt, command)(instance, time_limit_s=limit_s)
    timer.cancel()
    return time.process_time() - at_limit_s[0] if at_limit_s else 0.0


def main(count: int, seed: int) -> int:
    """How many were late."""
    rng, late, refused = random.Random(seed), 0, 0
    for command in ("solve", "explain", "pareto"):  # what is imported on the way is not counted
        getattr(coopt, command)(coopt.load(ROOT / "tiny-64.toml"), time_limit_s=1.0)
    for _ in range(count):
        asked = rng.choice(["solve", "explain", "pareto"]), rng.choice(QUESTIONS), rng.choice(CHANGES)
        limit_s = rng.choice(LIMITS_S)
        try:
            over_s = late_s(*asked, limit_s)
        except InstanceError:
            refused += 1
            continue
        if over_s > ALLOWED_S:
            late += 1
            sys.stdout.write(f"{asked[0]} {asked[1].name} {asked[2]} within {limit_s} s: {over_s:.1f} s late\n")
    sys.stdout.write(f"{count} questions of seed {seed}: {late} late, {refused} refused\n")
    return late


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:3])), 1))
