"""The planning service of docs/embedding, driven over HTTP."""

import http.client
import importlib.util
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import coopt
from coopt.solving.highs import ALONE

ROOT = Path(__file__).parents[2]
Reply = tuple[int, Any]


class Client:
    """Requests to one port."""

    def __init__(self, port: int) -> None:
        self.port = port

    def __call__(self, method: str, path: str, document: Any = None) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = document if isinstance(document, bytes) else None if document is None else json.dumps(document)
        connection.request(method, path, body)
        reply = connection.getresponse()
        content = json.loads(reply.read())
        connection.close()
        return reply.status, content

    def plan(self, name: str) -> Any:
        """Ask until the run is over."""
        while True:
            status, reply = self("GET", f"/plans/{name}")
            assert status == 200
            if reply["state"] == "done":
                return reply["plan"]
            time.sleep(0.01)


@pytest.fixture
def client() -> Iterator[Client]:
    spec = importlib.util.spec_from_file_location("service", ROOT / "docs" / "embedding" / "service.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["service"] = module
    spec.loader.exec_module(module)
    with module.Service() as service:
        thread = threading.Thread(target=service.serve_forever, args=(0.01,))
        thread.start()
        yield Client(service.server_address[1])
        service.shutdown()
        thread.join()
    del sys.modules["service"]


@pytest.fixture
def table() -> dict[str, Any]:
    return coopt.load(ROOT / "instances" / "tiny-64.toml").model_dump(mode="json", by_alias=True)


def test_a_plan_comes_back_that_verifies(client: Client, table: dict[str, Any]) -> None:
    status, started = client("POST", "/plans", table)
    assert status == 202
    plan, instance = coopt.Plan.model_validate(client.plan(started["id"])), coopt.load(table)
    timed = {"timing_s", "solver"}
    assert plan.model_dump(exclude=timed) == coopt.solve(instance).model_dump(exclude=timed)
    assert coopt.verify(instance, plan).accepted


def test_several_requests_run_at_the_same_time(client: Client, table: dict[str, Any]) -> None:
    sizes = (64, 128, 192, 256)
    names = [client("POST", "/plans", table | {"cluster": table["cluster"] | {"gpus": [n]}})[1]["id"] for n in sizes]
    assert [client.plan(name)["design"]["gpus"] for name in names] == list(sizes)


def test_progress_is_told_and_a_run_is_cancelled(client: Client, table: dict[str, Any]) -> None:
    with ALONE:  # another search has its turn
        name = client("POST", "/plans", table)[1]["id"]
        while (told := client("GET", f"/plans/{name}")[1])["progress"] is None or told["progress"]["stage"] != "solve":
            assert told["state"] == "running"
            time.sleep(0.01)
        assert told["progress"]["elapsed_s"] > 0
        assert client("DELETE", f"/plans/{name}") == (202, {"state": "running"})
        plan = client.plan(name)
    assert (plan["status"], plan["stop_reason"], plan["design"]) == ("unknown", "interrupted", None)


def test_complaints_name_every_wrong_key(client: Client, table: dict[str, Any]) -> None:
    status, reply = client("POST", "/plans", table | {"network": {}, "colour": "red"})
    assert status == 400
    assert any("colour" in complaint for complaint in reply["complaints"])
    assert len(reply["complaints"]) > 2


def test_other_requests_are_refused(client: Client) -> None:
    for method, path, body, status in (
        ("POST", "/plans", b"{", 400),
        ("POST", "/plans", b"[1]", 400),
        ("POST", "/plans", b"", 413),
        ("POST", "/elsewhere", b"{}", 404),
        ("GET", "/plans/nobody", None, 404),
        ("DELETE", "/plans/nobody", None, 404),
        ("GET", "/", None, 404),
    ):
        assert client(method, path, body)[0] == status
