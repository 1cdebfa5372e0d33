"""Run the server of the planner's page on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from coopt.instance.quotes import CatalogFiles, own_entries, places_of
from coopt.instance.schema import load
from coopt.instance.texts import InstanceError, read_text, toml_of
from coopt.serve.app import Desk, application
from coopt.serve.guard import Door, token_for
from coopt.serve.questions import OwnCatalog

FEWEST_WORKERS, MOST_WORKERS = 2, 4
MOST_UNHEARD = 128
"""Connections that wait to be heard."""

HEADERS_S = 10.0
"""How long the headers of a request may take to arrive."""

LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"

LEAVE_S = 1
"""How long open connections may last once the server is to end."""


def desk_of(instance: str | None, host: str, workers: int | None, limit_s: float) -> Desk:
    """What a server begins with.

    Parameters
    ----------
    instance
        The file of the question on the page; the one that `coopt new` writes where there is none.
    host
        Where it listens; an address that others reach gets a token.

    Raises
    ------
    InstanceError
        When the instance, or a catalog file that it names, cannot be used.
    """
    catalog = OwnCatalog()
    if instance is None:
        text = files("coopt.cli").joinpath("starter.toml").read_text("utf-8")
    else:
        load(instance)
        file = Path(instance)
        text = read_text(file, "a TOML text file", "an instance")
        catalog_files = CatalogFiles.model_validate(toml_of(text, file.name).get("catalog", {}))
        book, places = (
            own_entries(catalog_files, file.parent),
            places_of(catalog_files, file.parent),
        )
        catalog = OwnCatalog(files=catalog_files.files, book=book, places=places)
    cores = min(max(os.cpu_count() or 1, FEWEST_WORKERS), MOST_WORKERS)
    door = Door(host=host, token=token_for(host))
    return Desk(text=text, door=door, catalog=catalog, workers=workers or cores, limit_s=limit_s)


def serve(desk: Desk, port: int, announce: Callable[[str], None]) -> None:
    """Serve until an interrupt.

    Parameters
    ----------
    announce
        Hears the address of the page once the server listens.

    Raises
    ------
    InstanceError
        When nothing can listen there.
    """
    listener = listener_at(desk.door.host, port)
    server = AnnouncingServer(config_of(desk), lambda: announce(address(desk.door, listener)))
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        pass  # uvicorn has ended, and raises what it was ended by
    finally:
        listener.close()


def config_of(desk: Desk) -> uvicorn.Config:
    """How the server of a desk runs."""
    return uvicorn.Config(
        application(desk),
        http=PunctualProtocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=LEAVE_S,
    )


class PunctualProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection that ends where the headers of a request do not arrive in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a request whose headers have begun; no longer once it is whole."""
        request = self.cycle
        if self._deadline is None and (request is None or request.response_complete):
            self._await_headers()
        super().data_received(data)
        if self.cycle is not request:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is left to wait for."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_headers(self) -> None:
        self._deadline = self.loop.call_later(HEADERS_S, self._end)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.write(LATE)
            self.transport.close()


class AnnouncingServer(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        if self.started:
            self._announce()


def listener_at(host: str, port: int) -> socket.socket:
    """A socket that listens there.

    Raises
    ------
    InstanceError
        When the port is taken, or the address is none of this machine.
    """
    with contextlib.ExitStack() as stack:
        try:
            addresses = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            family, kind, protocol, _, place = addresses[0]
            listener = stack.enter_context(socket.socket(family, kind, protocol))
            if os.name == "posix":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
            listener.listen(MOST_UNHEARD)
        except OSError as error:
            raise InstanceError(
                f"serve: cannot listen on {host} port {port} ({error.strerror or error}), needs"
                " another --port or --host"
            ) from None
        stack.pop_all()
    return listener


def address(door: Door, listener: socket.socket) -> str:
    """The address of the page, with the token where there is one."""
    port = listener.getsockname()[1]
    host = f"[{door.host}]" if ":" in door.host else door.host
    token = "" if door.token is None else f"?token={door.token}"
    return f"http://{host}:{port}/{token}"
