"""`coopt serve` as one types it: it says where the page is, serves it, and ends when asked."""

import importlib.util
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from coopt.cli.main import main
from coopt.serve.guard import Door
from coopt.serve.running import address, desk_of, listener_at
from tests.serve.conftest import INSTANCES, TINY, Client

ELSEWHERE = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"
"""An address that a server of 127.0.0.1 alone does not hear."""


def test_it_prints_the_address_serves_whoever_has_its_token_and_ends_with_an_interrupt():
    words = [sys.executable, "-m", "coopt", "serve", str(INSTANCES / "tiny-64.toml"), "--port", "0", "--workers", "1"]
    words += ["--host", "0.0.0.0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            place = urlsplit(process.stdout.readline().strip())
            assert place.port is not None
            assert place.query.startswith("token=")
            client = Client(host=ELSEWHERE, port=place.port)
            for path in ("/", "/start", "/page/app.js", "/?token=", f"/?{place.query[:-1]}"):
                assert client.ask(path)[0] == 401
            cookie = client.ask(f"/?{place.query}")[1]["set-cookie"].split(";")[0]
            assert client.document("/start", None, cookie=cookie)["text"] == TINY
        finally:
            process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 0
    assert told == ("coopt: open this address in a browser; Ctrl-C stops the server\ncoopt: the server has stopped\n")


def test_a_server_of_this_machine_alone_is_not_heard_elsewhere_and_needs_a_port_that_is_free():
    with closing(listener_at("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert address(Door(host="127.0.0.1", token=None), listener) == f"http://127.0.0.1:{port}/"
        if sys.platform == "linux":
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((ELSEWHERE, port))
        done = CliRunner().invoke(main, ["serve", "--port", str(port)])
    assert (done.exit_code, f"127.0.0.1 port {port} " in done.output) == (1, True)


def test_a_host_that_is_not_of_this_machine_is_refused():
    done = CliRunner().invoke(main, ["serve", "--host", "192.0.2.1", "--port", "0"])
    assert (done.exit_code, "needs another --port or --host" in done.output) == (1, True)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else found(name))
    done = CliRunner().invoke(main, ["serve"])
    assert (done.exit_code, "`pip install 'coopt[serve]'`" in done.output) == (1, True)


def test_an_instance_that_cannot_be_used_is_refused_before_anything_is_served(tmp_path: Path):
    file = tmp_path / "ours.toml"
    file.write_text(TINY.replace("global_batch = ", "global_batch = 0 # "), "utf-8")
    done = CliRunner().invoke(main, ["serve", str(file), "--port", "0"])
    assert (done.exit_code, "ours.toml: workload[0].global_batch = 0" in done.output) == (1, True)


def test_catalog_files_of_the_instance_are_read_at_the_start(tmp_path: Path):
    (tmp_path / "quotes.csv").write_text("kind,name,usd\nnic,cx7-400g,1\n", "utf-8")
    file = tmp_path / "ours.toml"
    file.write_text(f'{TINY}\n[catalog]\nfiles = "quotes.csv"\n', "utf-8")
    desk = desk_of(str(file), "127.0.0.1", None, 60.0)
    assert desk.catalog.files == ("quotes.csv",)
    assert desk.catalog.book["nic"]["cx7-400g"].usd == 1  # type: ignore[attr-defined]
    assert desk.door.token is None
    assert desk_of(None, "0.0.0.0", None, 60.0).door.token
