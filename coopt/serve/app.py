"""The server of the planner's page: its files, what it starts with, and tasks whose events stream
back.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from coopt._version import __version__
from coopt.instance.catalog import KINDS, entries
from coopt.plan.json_schema import instance_schema
from coopt.serve.guard import Door, Guard
from coopt.serve.questions import LAST_ANSWER, OwnCatalog
from coopt.serve.workers import STARTED, BusyError, Event, WorkerDiedError, Workers

LARGEST_BYTES = 2_000_000
LONGEST_TEXT = 300_000
"""Characters of a question."""

BODY_S, READ_S, SLACK_S = 10.0, 10.0, 60.0
"""How long a request may take to arrive, to be read, and beyond its search: a verdict, a page."""

MOST_WAITING = 64
READERS = 2
DEEPEST = 16
"""Steps of a path to a value."""

TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


@dataclass(frozen=True, kw_only=True)
class Desk:
    """What a server begins with: the question on the page, where it listens, how much it may do.

    `limit_s` is the most time of one search (s).
    """

    text: str
    door: Door
    catalog: OwnCatalog = field(default_factory=OwnCatalog)
    workers: int = 2
    limit_s: float = 60.0


ENDED_EARLY: dict[type[Exception], str] = {
    TimeoutError: f"The server's time for this request ran out; {LAST_ANSWER}.",
    WorkerDiedError: f"The process that worked on the request died; {LAST_ANSWER}.",
    BusyError: f"Too many searches are waiting; {LAST_ANSWER}. Try again in a moment.",
}
"""What a page hears of a search that ends without an answer."""


class RefusedError(Exception):
    """A request that is no question: the status of HTTP and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def application(desk: Desk) -> Starlette:
    """The server as an ASGI application; its processes live as long as it does."""
    endpoints = Endpoints(desk)
    return Starlette(
        routes=[
            Route("/", endpoints.show),
            Route("/page/{name}", endpoints.show),
            Route("/start", endpoints.start),
            Route("/question", endpoints.question, methods=["POST"]),
            Route("/report", endpoints.report, methods=["POST"]),
            *(
                Route(f"/{task}", endpoints.searching(task), methods=["POST"])
                for task in ("plan", "front", "explanation")
            ),
        ],
        middleware=[Middleware(Guard, door=desk.door)],
        lifespan=endpoints.alive,
        exception_handlers={RefusedError: _refusal, BusyError: _busy, ClientDisconnect: _gone},
    )


class Endpoints:
    """What is answered at each place, and the processes that work on it."""

    def __init__(self, desk: Desk) -> None:
        self._limit_s = desk.limit_s
        self._searches = Workers(desk.workers, desk.catalog, MOST_WAITING)
        self._readers = Workers(READERS, desk.catalog, MOST_WAITING)
        self._files = {
            file.name: file.read_bytes()
            for room, folder in (("serve", "page"), ("report", "browser"))
            for file in files("coopt").joinpath(room, folder).iterdir()
        }
        self._begin = json.dumps(_start(desk), separators=(",", ":")).encode()

    @asynccontextmanager
    async def alive(self, app: Starlette) -> AsyncIterator[None]:
        """Processes, as long as the server runs."""
        await asyncio.gather(self._searches.start(), self._readers.start())
        try:
            yield
        finally:
            await asyncio.gather(self._searches.close(), self._readers.close())

    async def show(self, request: Request) -> Response:
        """A file of the page."""
        name = request.path_params.get("name", "index.html")
        if name not in self._files:
            return Response("This server has no such page.", 404)
        return Response(self._files[name], media_type=TYPES[name.rpartition(".")[2]])

    async def start(self, request: Request) -> Response:
        """What the page begins with."""
        return Response(self._begin, media_type="application/json")

    async def question(self, request: Request) -> Response:
        """A question with changes made to it, read and checked."""
        document = await _document_of(request)
        changes = document.get("changes", [])
        if not isinstance(changes, list) or not all(map(_is_change, changes)):
            raise RefusedError(
                400, "Each change must be a pair of a place in the question and a value."
            )
        return await _only(
            self._readers, "question", {"text": document["text"], "changes": changes}, READ_S
        )

    async def report(self, request: Request) -> Response:
        """The report of a plan as a page."""
        return await _only(
            self._searches, "report", await self._search_document(request), self._limit_s + SLACK_S
        )

    def searching(self, task: str) -> Callable[[Request], Awaitable[Response]]:
        """What answers a search with its events."""

        async def search(request: Request) -> Response:
            document = await self._search_document(request)
            events = _events_of(self._searches, task, document, self._limit_s + SLACK_S)
            lines = (f"event: {name}\ndata: {text}\n\n" async for name, text in events)
            # whoever makes the events is closed as soon as nobody listens
            return StreamingResponse(
                lines, media_type="text/event-stream", headers={"x-accel-buffering": "no"}
            )

        return search

    async def _search_document(self, request: Request) -> dict[str, Any]:
        document = await _document_of(request)
        return {"text": document["text"], "plan": document.get("plan"), "limit_s": self._limit_s}


def _start(desk: Desk) -> dict[str, Any]:
    """What a page begins with: the question, the form of questions, and the names that it may
    use.
    """
    book = desk.catalog.book
    catalog = {
        form.__name__: [
            {"name": entry.name, "description": entry.description}
            for entry in {**entries(kind), **book.get(kind, {})}.values()
        ]
        for kind, form in KINDS.items()
    }
    schema = instance_schema()
    if not desk.catalog.files:
        schema["properties"].pop("catalog")
    return {
        "version": __version__,
        "text": desk.text,
        "schema": schema,
        "catalog": catalog,
        "limit_s": desk.limit_s,
        "starter": files("coopt.cli").joinpath("starter.toml").read_text("utf-8"),
    }


async def _document_of(request: Request) -> dict[str, Any]:
    """The document of a request, which holds a text.

    Raises
    ------
    RefusedError
        When it is too long, too slow or no such document.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > LARGEST_BYTES:
                    raise RefusedError(413, f"The request is larger than {LARGEST_BYTES:,} bytes.")
    except TimeoutError:
        raise RefusedError(408, f"The request did not arrive within {BODY_S:g} s.") from None
    try:
        document = json.loads(bytes(body))
    except (ValueError, RecursionError):
        raise RefusedError(400, "The request is not a single JSON document.") from None
    if not isinstance(document, dict) or not isinstance(document.get("text"), str):
        raise RefusedError(400, "The request does not contain the text of a question.")
    if len(document["text"]) > LONGEST_TEXT:
        raise RefusedError(413, f"The question is longer than {LONGEST_TEXT:,} characters.")
    return document


def _is_change(change: object) -> bool:
    """Whether it is a pair of a path of keys and places, and a value."""
    if not isinstance(change, list) or len(change) != 2 or not isinstance(change[0], list):
        return False
    if len(change[0]) > DEEPEST:
        return False
    return all(isinstance(step, str) or (isinstance(step, int) and step >= 0) for step in change[0])


async def _only(workers: Workers, task: str, document: dict[str, Any], limit_s: float) -> Response:
    """The only event of a task, as it is."""
    try:
        async for name, text in workers.events(task, document, limit_s):
            if name == STARTED[0]:
                continue
            return Response(text, 200 if name == task else 422, media_type="application/json")
    except TimeoutError:
        raise RefusedError(
            422, f"The request took more than {limit_s:g} s and was stopped."
        ) from None
    except WorkerDiedError:
        pass
    raise RefusedError(
        500, "The process that worked on the request died; another has replaced it. Try again."
    )


async def _events_of(
    workers: Workers, task: str, document: dict[str, Any], limit_s: float
) -> AsyncIterator[Event]:
    """The events of a task, the first of them at once; what ends it early is an event like
    others.
    """
    yield "begun", json.dumps({"waits": workers.idle == 0})
    try:
        async for event in workers.events(task, document, limit_s):
            yield event
    except (TimeoutError, WorkerDiedError, BusyError) as error:
        yield "failed", json.dumps({"sentence": ENDED_EARLY[type(error)]})
    yield "end", "{}"


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return JSONResponse({"sentence": str(error)}, error.status)


async def _busy(request: Request, error: Exception) -> Response:
    return JSONResponse({"sentence": "Too many requests are waiting; try again in a moment."}, 503)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=400)
