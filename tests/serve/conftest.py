"""A server of the planner's page on a free port, asked as a browser asks it."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

INSTANCES = Path(__file__).parents[2] / "instances"
TINY = (INSTANCES / "tiny-64.toml").read_text("utf-8")
Event = tuple[str, Any]


@dataclass(frozen=True, kw_only=True)
class Client:
    """Who asks a server."""

    port: int
    host: str = "127.0.0.1"

    def connection(self) -> http.client.HTTPConnection:
        """A connection of its own."""
        return http.client.HTTPConnection(self.host, self.port, timeout=60.0)

    def ask(self, path: str, given: object = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body; a POST where something is given."""
        with closing(self.connection()) as connection:
            method = "GET" if given is None else "POST"
            body = given if isinstance(given, bytes) else None if given is None else json.dumps(given).encode()
            kind = {"content-type": "application/json"} if body is not None else {}
            named = kind | {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def document(self, path: str, given: object, **headers: str) -> Any:
        """The document that answers another."""
        status, _, body = self.ask(path, given, **headers)
        assert status == 200, body
        return json.loads(body)

    def events(self, path: str, given: object) -> list[Event]:
        """All events of a search."""
        status, _, body = self.ask(path, given)
        assert status == 200, body
        pairs = [event.split("\n") for event in body.decode().split("\n\n") if event]
        return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in pairs]


@contextmanager
def served(**desk: Any) -> Iterator[Client]:
    """A server that runs in a thread."""
    import uvicorn

    from coopt.serve.app import Desk
    from coopt.serve.guard import Door
    from coopt.serve.running import config_of, listener_at

    given = {"text": TINY, "door": Door(host="127.0.0.1", token=None)} | desk
    listener = listener_at("127.0.0.1", 0)
    server = uvicorn.Server(config_of(Desk(**given)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield Client(port=listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """A server with tiny-64 on its page."""
    with served() as one:
        yield one
