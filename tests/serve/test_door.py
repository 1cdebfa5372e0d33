"""Who may ask the server, and what its answers allow a page to do."""

import json
import socket
import time
from contextlib import closing
from http.client import HTTPResponse

import pytest

from coopt.serve.guard import Door, is_loopback, token_for
from tests.serve.conftest import TINY, served

QUESTION = {"text": TINY}


def test_every_answer_carries_a_strict_policy(client):
    for path in ("/", "/page/app.js", "/page/missing.js", "/start", "/nowhere"):
        _, headers, _ = client.ask(path)
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")


def test_another_name_for_this_machine_is_refused_and_names_of_the_loopback_are_known(client):
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "192.168.0.7", "", "[::1", "[x]"):
        status, _, body = client.ask("/start", host=host)
        assert (status, b"host name" in body) == (403, True)
    for host in ("localhost", "LOCALHOST:1", "[::1]:8017", "127.0.0.1"):
        assert client.ask("/start", host=host)[0] == 200


def test_a_page_of_another_origin_may_not_ask(client):
    """Nor can a form of another page pass for a question."""
    for origin in ("http://evil.example", "null", "http://[::1"):
        assert client.ask("/question", QUESTION, origin=origin)[0] == 403
    assert client.ask("/question", QUESTION, origin=f"http://127.0.0.1:{client.port}")[0] == 200
    assert client.ask("/question", json.dumps(QUESTION).encode(), content_type="text/plain")[0] == 415


@pytest.mark.parametrize("path", ["/page/../tasks.py", "/page/..%2ftasks.py", "/page/%2fetc%2fpasswd", "/page/app.py"])
def test_no_other_file_is_served(client, path):
    assert client.ask(path)[0] == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 400), (b"{", 400), (b"[]", 400), (b'{"text": 1}', 400), (b"[" * 100_000, 400),
     (json.dumps({"text": "#" * 300_001}).encode(), 413), (b" " * 2_000_001, 413),
     (json.dumps({"text": TINY, "changes": {"a": 1}}).encode(), 400),
     (json.dumps({"text": TINY, "changes": [[["a", 1.5], 1]]}).encode(), 400)],
)  # fmt: skip
def test_what_is_no_question_is_refused_in_a_sentence(client, body, status):
    found, _, answer = client.ask("/question", body)
    assert found == status
    assert json.loads(answer)["sentence"].endswith(".")


def test_a_request_that_does_not_arrive_is_not_waited_for(client, monkeypatch):
    monkeypatch.setattr("coopt.serve.app.BODY_S", 0.2)
    with closing(client.connection()) as connection:
        connection.putrequest("POST", "/question")
        connection.putheader("content-type", "application/json")
        connection.putheader("content-length", "1000")
        connection.endheaders(b"{")
        answer = connection.getresponse()
        assert answer.status == 408
        assert json.loads(answer.read())["sentence"].endswith(" 0.2 s.")


HALF = b"GET /start HTTP/1.1\r\nhost: localhost\r\n"


@pytest.mark.parametrize(("whole", "begun"), [(0, b""), (0, b"GET / HT"), (0, HALF), (1, b"GET"), (1, HALF)])
def test_headers_that_do_not_arrive_are_not_waited_for(client, monkeypatch, whole, begun):
    """Neither those of the first request of a connection nor, once they have begun, those of another."""
    monkeypatch.setattr("coopt.serve.running.HEADERS_S", 0.3)
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as connection:
        for _ in range(whole):
            connection.sendall(HALF + b"\r\n")
            answer = HTTPResponse(connection)
            answer.begin()
            assert (answer.status, bool(answer.read())) == (200, True)
        started = time.monotonic()
        connection.sendall(begun)
        time.sleep(0.2)
        if begun:
            connection.sendall(b"x")  # what drips in does not put it off
        assert connection.recv(100).startswith(b"HTTP/1.1 408 ")
        assert connection.recv(100) == b""
        assert time.monotonic() - started < 2


def test_a_slow_body_outlasts_the_headers(client, monkeypatch):
    monkeypatch.setattr("coopt.serve.running.HEADERS_S", 0.2)
    body = json.dumps(QUESTION).encode()
    with closing(client.connection()) as connection:
        connection.putrequest("POST", "/question")
        connection.putheader("content-type", "application/json")
        connection.putheader("content-length", str(len(body)))
        connection.endheaders(body[:5])
        time.sleep(0.5)
        connection.send(body[5:])
        assert connection.getresponse().status == 200


def test_an_address_that_others_reach_has_a_token():
    assert [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "[::1]")] == [True] * 4
    assert [token_for(host) for host in ("127.0.0.1", "localhost")] == [None, None]
    first, second = token_for("0.0.0.0"), token_for("planner.example")
    assert first
    assert second
    assert first != second


def test_without_the_token_nothing_is_told():
    with served(door=Door(host="0.0.0.0", token="secret-token"), workers=1) as client:
        for path in ("/", "/start", "/page/app.js", "/?token=", "/?token=secret-tokem"):
            status, _, body = client.ask(path)
            assert (status, b"token" in body) == (401, True)
        assert client.ask("/question", QUESTION)[0] == 401
        status, headers, _ = client.ask("/?token=secret-token")
        assert (status, headers["location"]) == (303, "/")
        assert "HttpOnly" in headers["set-cookie"]
        cookie = headers["set-cookie"].split(";")[0]
        assert client.ask("/start", cookie=cookie)[0] == 200
        assert client.ask("/question", QUESTION, cookie=cookie)[0] == 200
        assert client.ask("/start", cookie=cookie, host="192.168.0.7:80")[0] == 200
        assert client.ask("/start", cookie=cookie, host="evil.example")[0] == 403
