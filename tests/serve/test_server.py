"""Searches over the wire: progress, plans and refusals, and sessions side by side that never see each other."""

import json
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

import coopt
from coopt.instance.schema import load
from coopt.report.words import seconds
from tests.serve.conftest import INSTANCES, TINY, served

DEADLINE = (INSTANCES / "infeasible-deadline.toml").read_text("utf-8")
SLOW = (INSTANCES / "nextgen-100b.toml").read_text("utf-8").replace('leaf_fill = "ratio"', 'leaf_fill = "any"')
SESSIONS, REQUESTS = 4, 8


def bounded(bound_s: float, name: str = "tiny-64") -> str:
    """tiny-64 by another name and with another bound."""
    text = TINY.replace('name = "tiny-64"', f'name = "{name}"')
    return re.sub(r"max_iteration_time_s = \S+", f"max_iteration_time_s = {bound_s}", text)


@pytest.fixture(scope="module")
def streamed(client):
    """All events of a search."""
    return client.events("/plan", {"text": TINY})


@pytest.fixture(scope="module")
def solved():
    """The question and the plan of the library."""
    instance = load(INSTANCES / "tiny-64.toml")
    return instance, coopt.solve(instance)


def test_a_plan_streams_back_and_is_the_plan_of_the_library(streamed, solved):
    names = [name for name, _ in streamed]
    assert (names[0], names[-3:]) == ("begun", ["plan", "verdict", "end"])
    assert names.count("progress") >= 2
    document, (instance, expected) = dict(streamed), solved
    plan = coopt.Plan.model_validate(document["plan"]["plan"])
    assert plan.design == expected.design
    assert coopt.verify(instance, plan).accepted
    assert document["verdict"]["accepted"]


def test_the_first_byte_does_not_wait_for_the_search(client):
    with closing(client.connection()) as connection:
        began = time.perf_counter()
        connection.request("POST", "/plan", json.dumps({"text": TINY}).encode(), {"content-type": "application/json"})
        answer = connection.getresponse()
        assert answer.readline() == b"event: begun\n"
        assert time.perf_counter() - began < 1.0  # on a machine that does much else
        answer.read()


def test_what_is_infeasible_says_what_would_give(client):
    plan = dict(client.events("/plan", {"text": DEADLINE}))["plan"]
    assert (plan["status"], plan["figures"]) == ("infeasible", [])
    found = dict(client.events("/explanation", {"text": DEADLINE}))["explanation"]
    assert found["relaxations"]
    change = found["relaxations"][0]["changes"][0]
    place = [int(step) if step.isdigit() else step for step in re.findall(r"\w+", change["limit"])]
    given = {"text": DEADLINE, "changes": [[place, json.loads(change["to"].replace(",", ""))]]}
    loosened = client.document("/question", given)
    assert loosened["complaints"] == []
    assert dict(client.events("/plan", {"text": loosened["text"]}))["plan"]["status"] == "optimal"


def test_reasons_of_one_network_list_its_mappings(client, streamed, solved):
    plan = dict(streamed)["plan"]["plan"]
    found = dict(client.events("/explanation", {"text": TINY, "plan": plan}))["explanation"]
    (ranked,) = (table for table in found["tables"] if "the fastest mappings" in table.get("title", ""))
    (workload,) = coopt.mappings(*solved, most=8).workloads
    assert [row[5] for row in ranked["rows"]] == [seconds(run.iteration_time_s) for run in workload.mappings]
    refused = dict(client.events("/explanation", {"text": TINY, "plan": {"cost": 1}}))["refused"]
    assert "on this page" in refused["complaints"][0]["sentence"]


def test_the_front_has_the_points_of_the_library(client, solved):
    front = dict(client.events("/front", {"text": TINY}))["front"]
    points = coopt.pareto(solved[0], 16).points
    assert [point["pace"] for point in front["points"]] == [point.pace for point in points]


def test_a_complaint_is_the_sentence_of_the_command_line(client, tmp_path):
    text = bounded(0.0)
    file = tmp_path / "question"
    file.write_text(text, "utf-8")
    with pytest.raises(coopt.InstanceError) as refused:
        load(file)
    for path in ("/plan", "/front", "/explanation"):
        complaints = dict(client.events(path, {"text": text}))["refused"]["complaints"]
        assert tuple(one["sentence"] for one in complaints) == refused.value.complaints
    read = client.document("/question", {"text": text})
    assert read["complaints"] == complaints
    assert complaints[0]["path"] == ["workload", 0, "max_iteration_time_s"]


WILD = ("a = " + "[" * 20_000, "a = " + "{a=" * 900 + "1" + "}" * 900, "\0", "\ufeff" + TINY, "a = 1e999\r\n", "")


@pytest.mark.parametrize("text", WILD, ids=range(len(WILD)))
def test_a_wild_text_gets_a_complaint(client, text):
    for changes in ([], [[["limits", "racks"], 3]]):
        read = client.document("/question", {"text": text, "changes": changes})
        assert read["complaints"]
        assert all(one["sentence"].startswith("question: ") for one in read["complaints"])
    assert dict(client.events("/plan", {"text": text}))["refused"]["complaints"]


def test_a_report_is_the_page_of_the_plan(client, streamed):
    plan = dict(streamed)["plan"]["plan"]
    status, _, page = client.ask("/report", {"text": TINY, "plan": plan})
    assert status == 200
    assert "<!DOCTYPE html>" in json.loads(page)
    assert client.ask("/report", {"text": TINY, "plan": {"schema": "coopt-plan/2"}})[0] == 422


def test_a_search_ends_when_nobody_listens_and_the_worker_serves_the_next():
    with served(workers=1) as client:
        for _ in range(3):
            with closing(socket.create_connection(("127.0.0.1", client.port))) as caller:
                body = json.dumps({"text": SLOW}).encode()
                head = ["POST /plan HTTP/1.1", "host: 127.0.0.1", "content-type: application/json"]
                head += [f"content-length: {len(body)}", "", ""]
                caller.sendall("\r\n".join(head).encode() + body)
                assert caller.recv(12) == b"HTTP/1.1 200"
        began = time.perf_counter()
        assert dict(client.events("/plan", {"text": TINY}))["plan"]["status"] == "optimal"
        assert time.perf_counter() - began < 20  # one SLOW alone takes longer


def test_sessions_side_by_side_get_their_own_answers(client):
    bounds = [round(0.68 + 0.02 * (n % SESSIONS), 2) for n in range(REQUESTS)]
    key = "workload.0.max_iteration_time_s"
    expected = {bound: coopt.solve(load(INSTANCES / "tiny-64.toml", {key: bound})) for bound in set(bounds)}
    assert len({plan.parts[0].workloads[0].bound_s for plan in expected.values()}) == SESSIONS

    def session(number: int) -> None:
        name, bound = f"session-{number}", bounds[number]
        document = dict(client.events("/plan", {"text": bounded(bound, name)}))
        plan = coopt.Plan.model_validate(document["plan"]["plan"])
        assert (plan.instance.name, plan.parts) == (name, expected[bound].parts)
        assert document["verdict"]["accepted"]

    with ThreadPoolExecutor(SESSIONS) as pool:
        list(pool.map(session, range(REQUESTS)))


def test_more_than_may_wait_are_turned_away_and_others_stop_at_the_limit_of_the_server(monkeypatch):
    monkeypatch.setattr("coopt.serve.app.MOST_WAITING", 1)
    with served(workers=1, limit_s=0.05) as client, ThreadPoolExecutor(6) as pool:
        answers = [dict(events) for events in pool.map(lambda _: client.events("/plan", {"text": SLOW}), range(6))]
    turned_away = [events["failed"]["sentence"] for events in answers if "failed" in events]
    assert 0 < len(turned_away) < 6
    assert all("searches are waiting" in sentence for sentence in turned_away)
    assert {events["plan"]["stop_reason"] for events in answers if "plan" in events} == {"time limit"}
