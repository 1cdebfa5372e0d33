"""Worker processes: interrupted, killed, dead, and always as many as before."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable
from importlib.util import find_spec

import pytest

from coopt.serve.questions import OwnCatalog
from coopt.serve.workers import PRELOADED, WorkerDiedError, Workers, _resident_bytes
from tests.serve.conftest import INSTANCES, TINY

TEXT = (INSTANCES / "nextgen-100b.toml").read_text("utf-8").replace('leaf_fill = "ratio"', 'leaf_fill = "any"')
SLOW = {"text": TEXT, "limit_s": 60.0}
QUICK = {"text": TINY, "limit_s": 60.0}


def with_workers(action: Callable[[Workers], Awaitable[None]], size: int = 1) -> None:
    """Run an action with that many workers."""

    async def run() -> None:
        workers = Workers(size, OwnCatalog(), 8)
        await workers.start()
        try:
            await action(workers)
        finally:
            await workers.close()

    asyncio.run(run())


def test_what_is_imported_before_workers_are_forked_is_there():
    assert [name for name in PRELOADED if find_spec(name) is None] == []


async def names_of(workers: Workers, given: dict[str, object]) -> list[str]:
    """The events of a search."""
    return [name async for name, _ in workers.events("plan", given, 100.0)]


async def begun(workers: Workers) -> asyncio.Task[list[str]]:
    """A long search that a worker is busy with."""
    task = asyncio.create_task(names_of(workers, SLOW))
    while workers.idle == len(workers.processes):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)
    return task


def test_a_cancelled_worker_is_the_one_that_serves_the_next():
    async def action(workers: Workers) -> None:
        (before,) = workers.processes
        task = await begun(workers)
        task.cancel()
        assert (await names_of(workers, QUICK))[-2:] == ["plan", "verdict"]
        assert workers.processes == [before]

    with_workers(action)


def test_memory_of_a_large_question_returns(monkeypatch):
    """A worker that has grown by a large question makes room for another; one that has not stays."""
    monkeypatch.setattr("coopt.serve.workers.LINGER_S", 0.5)

    async def action(workers: Workers) -> None:
        for _ in range(3):
            await names_of(workers, QUICK)
        (before,) = workers.processes
        small = _resident_bytes(before)
        monkeypatch.setattr("coopt.serve.workers.GROWN_BYTES", 0)
        await names_of(workers, QUICK)
        assert workers.processes == [before]  # it stays a while, as who asks often asks again
        async with asyncio.timeout(60):
            while before in workers.processes or not workers.idle:
                await asyncio.sleep(0.05)
        monkeypatch.undo()
        for _ in range(3):
            await names_of(workers, QUICK)
        (after,) = workers.processes
        assert _resident_bytes(after) < 1.1 * small

    with_workers(action)


def test_a_worker_that_is_being_freed_comes_before_one_that_knows_less(monkeypatch):
    monkeypatch.setattr("coopt.serve.workers.FREED_S", 20.0)

    async def action(workers: Workers) -> None:
        task = await begun(workers)
        (other,) = workers._idle
        assert other.process.pid is not None
        os.kill(other.process.pid, signal.SIGSTOP)  # whoever takes it waits in vain
        task.cancel()
        await asyncio.sleep(0)
        async with asyncio.timeout(30):
            assert (await names_of(workers, QUICK))[-2:] == ["plan", "verdict"]

    with_workers(action, 2)


def test_a_worker_that_does_not_hear_is_replaced(monkeypatch):
    monkeypatch.setattr("coopt.serve.workers.GRACE_S", 0.0)

    async def action(workers: Workers) -> None:
        (before,) = workers.processes
        task = await begun(workers)
        task.cancel()
        assert (await names_of(workers, QUICK))[-2:] == ["plan", "verdict"]
        (after,) = workers.processes
        assert after != before

    with_workers(action)


def test_a_worker_that_dies_is_told_and_replaced():
    async def action(workers: Workers) -> None:
        (before,) = workers.processes
        task = await begun(workers)
        os.kill(before, signal.SIGKILL)
        with pytest.raises(WorkerDiedError):
            await task
        assert (await names_of(workers, QUICK))[-2:] == ["plan", "verdict"]
        assert workers.processes != [before]

    with_workers(action)


def test_a_task_that_takes_too_long_is_ended():
    async def action(workers: Workers) -> None:
        began = time.perf_counter()
        with pytest.raises(TimeoutError):
            async for _ in workers.events("plan", SLOW, 0.3):
                pass
        assert time.perf_counter() - began < 5
        assert (await names_of(workers, QUICK))[-2:] == ["plan", "verdict"]

    with_workers(action)


def test_who_stops_waiting_leaves_the_turn_to_others():
    async def action(workers: Workers) -> None:
        first = await begun(workers)
        waiting = [asyncio.create_task(names_of(workers, QUICK)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        first.cancel()
        assert [(await task)[-1] for task in waiting[1:]] == ["verdict", "verdict"]

    with_workers(action)


def test_a_mistake_of_ours_is_told_and_the_worker_goes_on():
    async def action(workers: Workers) -> None:
        (before,) = workers.processes
        events = [event async for event in workers.events("plan", {"text": TINY}, 60.0)]
        assert [name for name, _ in events] == ["started", "failed"]
        assert "KeyError" in json.loads(events[-1][1])["sentence"]
        assert (await names_of(workers, QUICK))[-1] == "verdict"
        assert workers.processes == [before]

    with_workers(action)
