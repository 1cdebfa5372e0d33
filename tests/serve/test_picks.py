"""A question that leaves choices open gets its best plan on the page, and any other choice can be written into it."""

import pytest

import coopt
from coopt.serve.questions import OwnCatalog, edited, question_of
from coopt.serve.tasks import TASKS

OPEN = """
schema = 1
margin = "none"
name = "open"

[cluster]
gpu = ["h100-sxm", "gb200"]
gpus = 64

[[workload]]
name = "w"
model = "gpt-22b"
global_batch = [64, 128]
train_tokens = 1e11
train_days = 20.0
[workload.mapping]
cp = 1
micro_batch = 1
recompute = "none"
zero = [0, 1]
[workload.options]
transport = ["rdma", "ipoib"]

[network]
hb_domains = ["hgx-h100-8", "gb200-nvl72"]
fabrics = "rail-only"
nics = "cx7-400g"
switches = "64x400g"
optics = "400g-199"

[objective]
include = ["gpu", "hb", "nic", "switch", "optics"]
"""


def events(task: str, **given: object) -> dict[str, dict]:
    """What a task sends, by name."""
    sent = {}
    TASKS[task](
        OwnCatalog(),
        {"text": OPEN, "plan": None, "limit_s": 60.0} | given,
        lambda name, told: sent.update({name: told}),
    )
    return sent


@pytest.fixture(scope="module")
def answer() -> dict[str, dict]:
    """The plan of the question and its verdict."""
    return events("plan")


@pytest.fixture(scope="module")
def best() -> coopt.Plan:
    """The plan of the library."""
    return coopt.solve(question_of(OPEN, OwnCatalog()))


def test_the_page_answers_with_the_best_choice_and_offers_all(answer, best):
    shown = answer["plan"]
    assert answer["verdict"]["accepted"]
    assert len(shown["picks"]) == 8
    assert [one["name"] for one in shown["picks"] if one["chosen"]] == [best.chosen.text]
    assert shown["headline"]


def test_a_choice_that_is_picked_is_a_question_of_its_own_no_cheaper_than_the_best(answer, best):
    values = {}
    for one in answer["plan"]["picks"]:
        question = question_of(edited(OPEN, one["changes"]), OwnCatalog())
        assert not question.beyond_one_network
        assert len(question.network.hb_domains) == 1
        values[one["name"]] = coopt.solve(question).objective.value
    assert values[best.chosen.text] == best.objective.value == min(value for value in values.values() if value)


def test_reasons_front_and_report_of_the_page_follow_the_best_choice():
    few = OPEN.replace("[64, 128]", "64").replace('transport = ["rdma", "ipoib"]', "")
    shown = events("plan", text=few)["plan"]
    assert len(shown["picks"]) == 2
    asked = {"text": few, "plan": shown["plan"]}
    assert events("explanation", **asked)["explanation"]["status"] == "optimal"
    assert events("front", **asked)["front"]["points"]
    assert "<html" in events("report", **asked)["report"]
