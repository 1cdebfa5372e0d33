"""A page that others reach, asked by one of them: both ends have network namespaces of their own, joined by a cable."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import pytest

from tests.serve.conftest import INSTANCES

SERVER, CLIENT = "10.213.77.1", "10.213.77.2"
ASK = """
import http.client, sys
host, port, *paths = sys.argv[1:]
for path in paths:
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    headers = {"host": host}
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        if answer.status == 303:
            headers["cookie"] = answer.headers["set-cookie"].split(";")[0]
            answer.read()
            connection.request("GET", answer.headers["location"], headers=headers)
            answer = connection.getresponse()
        print(answer.status)
    except OSError as error:
        print(type(error).__name__)
"""


def missing() -> str:
    """Why there are no namespaces here; nothing where there are."""
    tools = [tool for tool in ("ip", "nsenter", "unshare") if shutil.which(tool) is None]
    if tools:
        return f"{', '.join(tools)} not installed"
    allowed = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode == 0
    return "" if allowed else "network namespaces take root"


pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "namespaces")


def within(namespace: subprocess.Popen[bytes], *words: object) -> list[str]:
    return ["nsenter", "-t", str(namespace.pid), "-n", *map(str, words)]


@pytest.fixture(scope="module")
def ends() -> Iterator[tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]]:
    """Processes that keep the namespaces of a server and a client."""
    with ExitStack() as stack:
        pair = []
        for _ in range(2):
            # it says when it is there, and goes when its input closes
            keeper = stack.enter_context(
                subprocess.Popen(
                    ["unshare", "-n", "sh", "-c", "echo there; exec cat"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
            assert keeper.stdout is not None
            assert keeper.stdout.readline() == b"there\n"
            pair.append(keeper)
        server, client = pair
        cable = ["ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", client.pid]
        subprocess.run(within(server, *cable), check=True)
        for keeper, name, address in ((server, "near", SERVER), (client, "far", CLIENT)):
            subprocess.run(within(keeper, "ip", "address", "add", f"{address}/30", "dev", name), check=True)
            for link in (name, "lo"):
                subprocess.run(within(keeper, "ip", "link", "set", link, "up"), check=True)
        yield server, client


def asked(namespace: subprocess.Popen[bytes], port: int, *paths: str) -> list[str]:
    """The status of each answer, or how the connection failed."""
    words = within(namespace, sys.executable, "-c", ASK, SERVER, port, *paths)
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


@contextmanager
def serving(namespace: subprocess.Popen[bytes], *options: str) -> Iterator[SplitResult]:
    """The address that `coopt serve` prints in a namespace."""
    serve = (sys.executable, "-m", "coopt", "serve", INSTANCES / "tiny-64.toml", "--port", 0, "--workers", 1)
    words = within(namespace, *serve, *options)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        try:
            yield urlsplit(process.stdout.readline().strip())
        finally:
            process.send_signal(signal.SIGINT)


@pytest.mark.parametrize("host", [SERVER, "0.0.0.0"])
def test_who_has_no_token_is_told_nothing_and_who_has_it_is_served(ends, host):
    server, client = ends
    with serving(server, "--host", host) as address:
        assert address.port is not None
        assert address.query.startswith("token=")
        closed = ("/", "/start", "/page/app.js", "/?token=", f"/?{address.query[:-1]}")
        assert asked(client, address.port, *closed, f"/?{address.query}") == ["401"] * len(closed) + ["200"]


def test_what_is_served_to_this_machine_alone_is_not_reached_from_another(ends):
    server, client = ends
    with serving(server) as address:
        assert address.port is not None
        assert (address.hostname, address.query) == ("127.0.0.1", "")
        assert asked(client, address.port, "/start") == ["ConnectionRefusedError"]
