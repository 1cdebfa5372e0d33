"""A small planning service: HTTP requests start, watch and cancel runs of coopt.

    POST /plans       an instance as JSON; answers 202 with {"id": ...}, or 400 with {"complaints":
    [...]} GET /plans/ID     {"state": "running", "progress": {...}}, or {"state": "done", "plan":
    {...}} DELETE /plans/ID  ends the run; its plan is then the best found so far

Run it with `python docs/embedding/service.py 8080`.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import coopt

LARGEST_BYTES = 1_000_000
TIME_LIMIT_S = 60.0


@dataclass
class Job:
    """One run: what it last told, and how to end it."""

    cancel: threading.Event = field(default_factory=threading.Event)
    progress: coopt.Progress | None = None
    plan: Future[coopt.Plan] = field(default_factory=Future)

    def hear(self, step: coopt.Progress) -> None:
        """Keep the latest step; called in the thread of the run."""
        self.progress = step


class Planner:
    """Runs by their names; a few at a time, the others wait."""

    def __init__(self, threads: int = 2) -> None:
        self._pool = ThreadPoolExecutor(threads)
        self._jobs: dict[str, Job] = {}

    def start(self, table: dict[str, Any]) -> str:
        """Begin a run; coopt.InstanceError where the instance cannot be used."""
        instance, job, name = coopt.load(table), Job(), uuid.uuid4().hex
        job.plan = self._pool.submit(
            coopt.solve,
            instance,
            time_limit_s=TIME_LIMIT_S,
            on_progress=job.hear,
            cancel=job.cancel,
        )
        self._jobs[name] = job
        return name

    def job(self, name: str) -> Job | None:
        """The run of that name."""
        return self._jobs.get(name)

    def close(self) -> None:
        """End all runs and wait for them."""
        for job in list(self._jobs.values()):
            job.cancel.set()
        self._pool.shutdown()


class Service(ThreadingHTTPServer):
    """The planner behind a port; 0 takes one that is free."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Requests)
        self.planner = Planner()

    def server_close(self) -> None:
        """Close the port and end all runs."""
        super().server_close()
        self.planner.close()


class Requests(BaseHTTPRequestHandler):
    """What each request does."""

    server: Service

    def do_POST(self) -> None:
        """Begin a run."""
        length = int(self.headers.get("Content-Length") or 0)
        if self.path != "/plans" or not 0 < length <= LARGEST_BYTES:
            return self._answer(404 if self.path != "/plans" else 413)
        try:
            table = json.loads(self.rfile.read(length))
            if not isinstance(table, dict):
                raise coopt.InstanceError("instance: needs an object of tables")
            name = self.server.planner.start(table)
        except coopt.InstanceError as error:
            return self._answer(400, {"complaints": error.complaints})
        except ValueError as error:
            return self._answer(400, {"complaints": [f"not JSON: {error}"]})
        return self._answer(202, {"id": name})

    def do_GET(self) -> None:
        """Tell how far a run is, or its plan."""
        job = self._job()
        if job is None:
            return self._answer(404)
        if not job.plan.done():
            step = job.progress
            return self._answer(
                200, {"state": "running", "progress": None if step is None else asdict(step)}
            )
        return self._answer(
            200, {"state": "done", "plan": job.plan.result().model_dump(mode="json", by_alias=True)}
        )

    def do_DELETE(self) -> None:
        """End a run."""
        job = self._job()
        if job is None:
            return self._answer(404)
        job.cancel.set()
        return self._answer(202, {"state": "done" if job.plan.done() else "running"})

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _job(self) -> Job | None:
        folder, _, name = self.path.rpartition("/")
        return self.server.planner.job(name) if folder == "/plans" else None

    def _answer(self, status: int, document: dict[str, Any] | None = None) -> None:
        body = json.dumps(document or {}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    with Service(int(sys.argv[1])) as service, contextlib.suppress(KeyboardInterrupt):
        service.serve_forever()
