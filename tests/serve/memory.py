"""Memory of the workers over many searches, run by hand: `python -m tests.serve.memory COUNT`.

A large question is asked in the middle; the memory that workers have at the end is that before it, to a tenth.
"""

import asyncio
import random
import sys

from coopt.serve.questions import OwnCatalog
from coopt.serve.workers import LINGER_S, Workers, _resident_bytes
from tests.serve.conftest import INSTANCES, TINY

LARGE = (INSTANCES / "fleet-131k-w16.toml").read_text("utf-8")
BOUND = "max_iteration_time_s = 1.0"


def total_mb(workers: Workers) -> float:
    return sum(map(_resident_bytes, workers.processes)) / 1e6


async def asked(workers: Workers, text: str) -> None:
    names = [name async for name, _ in workers.events("plan", {"text": text, "limit_s": 20.0}, 100.0)]
    assert "plan" in names, names


async def measured(count: int) -> tuple[float, float, float]:
    """Memory (MB) before a large question, after it, and at the end."""
    assert BOUND in TINY
    rng, workers = random.Random(0), Workers(2, OwnCatalog(), 8)
    await workers.start()
    try:
        stages = []
        for half in range(2):
            for number in range(count // 4):
                bounds = [rng.uniform(0.75, 2.0) for _ in range(2)]
                texts = [TINY.replace(BOUND, f"max_iteration_time_s = {bound:.4f}") for bound in bounds]
                await asyncio.gather(*(asked(workers, text) for text in texts))
                if number % (count // 20) == 0:
                    sys.stdout.write(f"{(half * count // 2) + 2 * number}: {total_mb(workers):.0f} MB\n")
                    sys.stdout.flush()
            stages.append(total_mb(workers))
            if not half:
                await asyncio.gather(asked(workers, LARGE), asked(workers, LARGE))
                stages.append(total_mb(workers))
                await asyncio.sleep(LINGER_S)
        before, large, after = stages
        return before, large, after
    finally:
        await workers.close()


if __name__ == "__main__":
    before, large, after = asyncio.run(measured(int(sys.argv[1])))
    sys.stdout.write(f"{before:.0f} MB, after a large question {large:.0f} MB, at the end {after:.0f} MB\n")
    sys.exit(int(after > 1.1 * before))
