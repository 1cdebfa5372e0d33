"""`coopt serve` as one types it: it says where the page is, serves it, and ends when asked."""

from __future__ import annotations

import http.client
import importlib.util
import json
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from coopt.cli.main import main
from coopt.serve.running import desk_of, listener_at
from tests.serve.conftest import INSTANCES, TINY


def test_it_prints_the_address_serves_the_question_and_ends_with_an_interrupt():
    words = [sys.executable, "-m", "coopt", "serve", str(INSTANCES / "tiny-64.toml"), "--port", "0", "--workers", "1"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().strip())
        with closing(http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)) as connection:
            connection.request("GET", "/start")
            assert json.loads(connection.getresponse().read())["text"] == TINY
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 0
    assert told == ("coopt: open this address in a browser; Ctrl-C stops the server\ncoopt: the server has stopped\n")


def test_a_port_that_is_taken_is_refused_in_a_sentence():
    listener = listener_at("127.0.0.1", 0)
    try:
        port = listener.getsockname()[1]
        done = CliRunner().invoke(main, ["serve", "--port", str(port)])
    finally:
        listener.close()
    assert done.exit_code == 1
    assert f"port {port} " in done.output


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
