"""Who may ask: this machine alone unless a token says otherwise, and only pages of this server
under its own name.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "coopt_token"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src"
    " 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the host."""
    place = _address_of(host.strip("[]"))
    return host == "localhost" or (place is not None and place.is_loopback)


def token_for(host: str) -> str | None:
    """A random token for a host that others reach; none for this machine alone."""
    return None if is_loopback(host) else secrets.token_urlsafe(24)


@dataclass(frozen=True, kw_only=True)
class Door:
    """Where the server listens, and the token that opens it."""

    host: str
    token: str | None

    def knows(self, name: str) -> bool:
        """Whether a request may call the server by this name.

        A name that anybody may have pointed to this machine (DNS rebinding) is none.
        """
        name = name.lower().rstrip(".")
        hostname = socket.gethostname().lower()
        short_name = hostname.split(".")[0]
        known: tuple[str, ...] = (*LOOPBACK, self.host.lower())
        if self.token is not None:
            known = (*known, hostname, short_name, f"{short_name}.local")
        is_address = self.token is not None and _address_of(name) is not None
        return name in known or is_address


def _address_of(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _parts_of(address: str) -> SplitResult:
    """An address taken apart; one without a host where it is none, such as `[::1`."""
    try:
        return urlsplit(address)
    except ValueError:
        return SplitResult("", "", "", "", "")


class Guard:
    """The door before the application: every answer carries the policy, and what may not come in
    gets a sentence.
    """

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        await (self._refusal(scope) or self._app)(scope, receive, sealed)

    def _refusal(self, scope: Scope) -> Response | None:
        connection = HTTPConnection(scope)
        headers = connection.headers
        host = headers.get("host", "")
        name = _parts_of(f"//{host}").hostname or ""
        origin, method = headers.get("origin"), scope["method"]
        has_token = self._door.token is not None
        is_form = headers.get("content-type", "").split(";")[0] != "application/json"
        refusals = {
            (
                "The address has another host name than this server; open the address that coopt"
                f" printed{', with an IP address of the server in it' * has_token}."
            ): (
                not self._door.knows(name),
                403,
            ),
            "Requests from pages of another origin are refused.": (
                origin is not None and _parts_of(origin).netloc != host,
                403,
            ),
            "Only GET, HEAD and POST are supported.": (
                method not in ("GET", "HEAD", "POST"),
                405,
            ),
            # a page of elsewhere can send a form without asking first, but no JSON
            "Send the question as application/json.": (method == "POST" and is_form, 415),
        }
        for sentence, (is_refused, status) in refusals.items():
            if is_refused:
                return PlainTextResponse(sentence, status)
        return self._without_token(scope, connection)

    def _without_token(self, scope: Scope, connection: HTTPConnection) -> Response | None:
        """A refusal without the token; with it in the address, the way to the page with the token
        in a cookie.
        """
        token = self._door.token
        if token is None:
            return None
        if scope["path"] == "/" and _holds(connection.query_params.getlist("token"), token):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(COOKIE, token, httponly=True, samesite="strict")
            return answer
        if _holds([connection.cookies.get(COOKIE, "")], token):
            return None
        return PlainTextResponse(
            "The server's token is missing or wrong; open the address that coopt printed.", 401
        )


def _holds(candidates: Iterable[str], token: str) -> bool:
    # the time of the comparison must not tell how much of a token is right
    return any(
        secrets.compare_digest(candidate.encode(), token.encode()) for candidate in candidates
    )
