"""Processes that do the tasks of the page: a few at a time, each ended when nobody waits for it any
more.

A worker that is cancelled is interrupted, and killed where that takes long; another takes its
place. Where the system can fork, workers are forked from a process that has imported everything,
which takes a hundredth of a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from coopt.serve.questions import OwnCatalog

PRELOADED = (
    *(f"coopt.solving.{name}.answer" for name in ("fleet", "sites", "direct")),
    "coopt.explain.answer",
    "coopt.serve.tasks",
    "tomlkit",
)
"""What is imported once, before workers are forked; searches of most kinds import what they need
when they begin.
"""

GRACE_S = 0.5
"""How long a worker that is interrupted may take to end its task."""

FREED_S = 0.2
"""How long a task waits at most for a worker that is being interrupted, rather than take one that
knows less.
"""

GROWN_BYTES = 96 << 20
"""Memory that a worker may keep beyond what it began with, as what it knows of a small question."""

LINGER_S = 20.0
"""How long a worker that has grown beyond that stays: a large question is often asked again."""

DIED = ("died", "")
STARTED = ("started", "{}")
"""What is heard of a task once a worker has it."""

Event = tuple[str, str]
"""A name, and a document in JSON."""


class BusyError(Exception):
    """So many requests wait already that one more is turned away."""


class Worker:
    """A process with a pipe to it; a thread puts what comes back into `heard`."""

    def __init__(self, catalog: OwnCatalog, loop: asyncio.AbstractEventLoop) -> None:
        self.pipe, worker_end = multiprocessing.Pipe()
        self.heard: asyncio.Queue[Event] = asyncio.Queue()
        self.process = _process(worker_end, catalog)
        self.process.start()
        worker_end.close()
        threading.Thread(target=self._listen, args=(loop,), daemon=True).start()
        self._begun_bytes = 0
        self.retires = False
        """Whether another worker takes its place after its task."""

    async def begin(self) -> None:
        """Wait until it is ready, or died."""
        await self.heard.get()
        self._begun_bytes = _resident_bytes(self.process.pid)

    @property
    def has_grown(self) -> bool:
        """Whether it keeps more memory than it may."""
        return _resident_bytes(self.process.pid) > self._begun_bytes + GROWN_BYTES

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            while True:
                try:
                    event: Event = self.pipe.recv()
                except (EOFError, OSError):
                    loop.call_soon_threadsafe(self.heard.put_nowait, DIED)
                    return
                loop.call_soon_threadsafe(self.heard.put_nowait, event)

    async def interrupted(self) -> bool:
        """Interrupt the task; whether the worker can take another."""
        if sys.platform == "win32" or self.process.pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGINT)
        try:
            async with asyncio.timeout(GRACE_S):
                while (event := await self.heard.get())[0] not in ("end", "died"):
                    pass
                return event[0] == "end"
        except TimeoutError:
            return False

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _resident_bytes(process: int | None) -> int:
    """How much memory a process has; 0 where the system does not say, as only Linux does."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text("ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _process(pipe: Connection, catalog: OwnCatalog) -> BaseProcess:
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn").Process(
            target=_work, args=(pipe, catalog), daemon=True
        )
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(list(PRELOADED))
    return forking.Process(target=_work, args=(pipe, catalog), daemon=True)


def _work(pipe: Connection, catalog: OwnCatalog) -> None:
    """Do tasks; what they take is imported by workers alone, so that a server starts soon."""
    from coopt.serve.tasks import serve_tasks

    serve_tasks(pipe, catalog)


class Workers:
    """Workers, and those who wait for one; the worker that was last in use comes first, since it
    knows most.
    """

    def __init__(self, size: int, catalog: OwnCatalog, most_waiting: int) -> None:
        self._size, self._catalog, self._most_waiting = size, catalog, most_waiting
        self._idle: list[Worker] = []
        self._waiting: deque[asyncio.Future[Worker]] = deque()
        self._all: set[Worker] = set()
        self._endings: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def idle(self) -> int:
        """How many wait for a task."""
        return len(self._idle)

    @property
    def processes(self) -> list[int]:
        """The processes by their numbers in the system."""
        return sorted(worker.process.pid for worker in self._all if worker.process.pid is not None)

    async def start(self) -> None:
        """Start the processes."""
        for _ in range(self._size):
            self._lend(await self._new())

    async def close(self) -> None:
        """End all processes."""
        self._closed = True
        for worker in list(self._all):
            self._all.discard(worker)
            await asyncio.to_thread(worker.kill)

    async def events(
        self, task: str, document: Mapping[str, Any], limit_s: float
    ) -> AsyncIterator[Event]:
        """What becomes of a task; it is cancelled where the caller stops listening, and ended after
        a time.

        Raises
        ------
        BusyError
            Where too many wait already.
        """
        loop = asyncio.get_running_loop()
        worker = await self._free_worker()
        finished = False
        try:
            deadline = loop.time() + limit_s
            worker.pipe.send((task, dict(document)))
            yield STARTED
            while True:
                async with asyncio.timeout_at(deadline):
                    name, text = await worker.heard.get()
                if name == "end":
                    finished = True
                    return
                if name == DIED[0]:
                    raise WorkerDiedError
                yield name, text
        finally:
            self._give_back(worker, finished)

    async def _free_worker(self) -> Worker:
        if (
            self._endings
        ):  # the worker of a bound that moves on is being freed, and its tables are worth the wait
            await asyncio.wait(self._endings, timeout=FREED_S, return_when=asyncio.FIRST_COMPLETED)
        if self._idle:
            return self._idle.pop()
        if len(self._waiting) >= self._most_waiting:
            raise BusyError
        turn: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            # a worker came as the caller left: whoever waits next gets it
            if turn.done() and not turn.cancelled():
                self._lend(turn.result())
            raise

    def _give_back(self, worker: Worker, finished: bool) -> None:
        loop = asyncio.get_running_loop()
        if finished and not worker.retires:
            self._lend(worker)
            if worker.has_grown:
                loop.call_later(LINGER_S, self._retire, worker)
            return
        ending = loop.create_task(self._replaced(worker) if finished else self._end(worker))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    def _retire(self, worker: Worker) -> None:
        """Put another in the place of a worker that has grown, now or after its task."""
        if worker in self._idle:
            self._idle.remove(worker)
            worker.retires = True
            self._give_back(worker, finished=True)
        elif worker in self._all:
            worker.retires = True

    async def _end(self, worker: Worker) -> None:
        """Make a worker free whose task nobody waits for, or put another in its place."""
        if await worker.interrupted() and not worker.retires:
            self._lend(worker)
        else:
            await self._replaced(worker)

    async def _replaced(self, worker: Worker) -> None:
        """Put another in the place of a worker, unless all of them end."""
        if self._closed:
            return
        self._all.discard(worker)
        await asyncio.to_thread(worker.kill)
        self._lend(await self._new())

    async def _new(self) -> Worker:
        worker = await asyncio.to_thread(Worker, self._catalog, asyncio.get_running_loop())
        self._all.add(worker)
        await worker.begin()
        return worker

    def _lend(self, worker: Worker) -> None:
        """Give a worker to whoever waits longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(worker)
                return
        self._idle.append(worker)


class WorkerDiedError(Exception):
    """The process ended while it did the task."""
