"""What is typed into the form of the planner's page, and what new rows begin with, in a headless Chromium."""

import json
import tomllib
from typing import Any

import pytest

from coopt.instance.schema import Instance
from tests.pages.planner import put, put_text, question, text_of, until
from tests.serve.conftest import TINY

READ = """
const [key, typed, done] = arguments;
const [{ Form, read, typedAs }, start] = await Promise.all([
  import('/page/schema.js'), fetch('/start').then((one) => one.json())]);
const field = new Form(start.schema, start.catalog).at(key.split('.')), value = read(field, typed);
done([value, typedAs(field, value)]);
"""
SCRIPT = f"const given = [...arguments]; (async () => {{ {READ.replace('arguments', 'given')} }})()"
"""The value that is read from what is typed into a field, and what the field then shows."""

TYPED = [
    ("network.oversubscription", "2", 2, "2"), ("network.oversubscription", "[2]", [2], "[2]"),
    ("network.oversubscription", "2,", [2], "[2]"), ("network.oversubscription", "[1, 2]", [1, 2], "1, 2"),
    ("wan.between", "north, south", ["north", "south"], "north, south"),
    ("wan.between", '["north", "south"]', ["north", "south"], "north, south"),
    ("workload.name", "chat, 70B", "chat, 70B", "chat, 70B"),
    ("limits.capex_usd", "25,500,000", 25_500_000, "25,500,000"),
    ("limits.capex_usd", "$25,500,000", 25_500_000, "25,500,000"),
    ("limits.capex_usd", "$25.5 M", 25_500_000, "25,500,000"), ("limits.capex_usd", "375k", 375_000, "375,000"),
    ("limits.capex_usd", "1,500", 1500, "1500"), ("limits.capex_usd", "25 Mio", "25 Mio", "25 Mio"),
    ("limits.power_mw", "0,7", "0,7", "0,7"), ("limits.power_mw", "7 M", "7 M", "7 M"),
    ("wan.between", '["hall 1, east", "south"]', ["hall 1, east", "south"], "hall 1, east, south"),
    ("wan.between", "1, 2", ["1", "2"], "1, 2"), ("cluster.gpus", "1,024", 1024, "1024"),
    ("cluster.gpus", "16,384 GPUs", 16_384, "16,384"), ("cluster.gpus", "1,024, 2,048", [1024, 2048], "1024, 2048"),
    ("cluster.gpus", "1,024, 512", [1024, 512], "1024, 512"),
    ("cluster.gpus", "256, 512,1024", [256, 512, 1024], "256, 512, 1024"),
    ("workload.train_tokens", "10T", 10**13, "10 T"), ("workload.train_tokens", "1.5 B tokens", 1_500_000_000, "1.5 B"),
    ("workload.train_tokens", "5e11", 5 * 10**11, "500 B"), ("workload.train_days", "90 days", 90, "90"),
    ("workload.max_iteration_time_s", "1.5 s", 1.5, "1.5"), ("limits.power_mw", "0.7 MW", 0.7, "0.7"),
    ("phase.year", "2027", 2027, "2027"), ("cluster.gpus", "[1,024]", "[1,024]", "[1,024]"),
    ("cluster.gpus", "[256,512]", [256, 512], "256, 512"),
    ("cluster.gpus", "256 to 512 by 8", {"least": 256, "most": 512, "step": 8}, "256 to 512 by 8"),
]  # fmt: skip
"""Keys, what is typed into their fields, what is read from it, and what the field then shows."""

NAMED = """
const { showReasons } = await import('/page/answer.js');
const place = document.createElement('div');
const way = (limit) => ({ value: '$1', changes: [{ limit, now: '1', to: '2' }] });
const found = { status: 'infeasible', sentences: [], tables: [], relaxations: given[0].map(way), table: given[1] };
showReasons(place, found, () => {});
given[2]([...place.querySelectorAll('.ways li')].map((one) => one.textContent.split(' ')[1]));
"""


def test_what_is_typed_is_read_as_a_person_means_it(form):
    browser = form()
    for key, typed, value, shown in TYPED:
        assert browser.execute_async_script(SCRIPT, key, typed) == [value, shown], (key, typed)


PHASE = '[[phase]]\nyear = 2027\ngpus = 64\nworkloads = ["gpt-22b"]\n'


@pytest.mark.parametrize(
    ("name", "more", "then"),
    [("gpt-22b", "", "llama3-8b"), ("training", "", "training"), ("gpt-22b", PHASE, "gpt-22b")],
)
def test_a_workload_that_is_called_after_its_model_is_called_after_the_next_one_too(form, name, more, then):
    """But not where its name is no model or is used elsewhere."""
    browser = form()
    _ask(browser, TINY.replace('name = "training"', f'name = "{name}"') + "\n" + more)
    put(browser, "#at-workload-0-model", '"llama3-8b"')
    until(browser, "return sessionStorage.getItem('coopt-question').includes('model = \"llama3-8b\"')")
    assert _asked(browser)["workload"][0]["name"] == then


def test_new_rows_begin_with_what_is_known(form):
    """A year later than the phase before, the workload that trains in a phase, the sites that a channel joins."""
    browser = form()
    sites = '[[site]]\nname = "north"\npower_mw = 1\n[[site]]\nname = "south"\npower_mw = 1\n'
    _ask(browser, f"{TINY}\n{sites}[[phase]]\nyear = 2027\ngpus = 64\n")
    for title in ("Add phase", "Add workloads", "Add wan"):
        _add(browser, title)
    asked = _asked(browser)
    assert asked["phase"] == [
        {"year": 2027, "gpus": 64, "workloads": [{"name": "training"}]},
        {"year": 2028, "gpus": 64},
    ]
    assert asked["wan"] == [{"between": ["north", "south"]}]
    assert question(browser).index("\n\n[[wan]]") > 0


def test_a_way_out_names_the_row_that_it_changes_where_there_are_several(form):
    sites = {"site": [{"name": "north"}, {"name": "south"}], "workload": [{"name": "training"}]}
    limits = ["site[1].power_mw", "workload[0].train_days", "limits.capex_usd"]
    script = f"const given = [...arguments]; (async () => {{ {NAMED} }})()"
    named = form().execute_async_script(script, limits, sites)
    assert named == ["site['south'].power_mw", "workload[0].train_days", "limits.capex_usd"]


def test_a_list_of_names_says_how_ones_own_price_is_written(form):
    """And what it says is a question that can be asked; help in the form points at no file."""
    browser = form()
    assert "docs/" not in text_of(browser, "#form")
    script = "return document.getElementById(arguments[0] + '-0').closest('fieldset').querySelector('code').textContent"
    for field, hint in (
        ("cluster-gpu", '{ extends = "h100-sxm", usd = 1_000 }'),
        ("network-hb_domains", '{ extends = "hgx-h100-8", usd_per_gpu = 1_000 }'),
    ):
        assert browser.execute_script(script, f"at-{field}") == hint
        name = hint.split('"')[1]
        assert Instance.model_validate(tomllib.loads(TINY.replace(f'"{name}"', hint)))


def _ask(browser: Any, text: str) -> None:
    put_text(browser, text)
    phases = "document.querySelectorAll('[id^=at-phase-][id$=-year]')"
    until(browser, f"return {phases}.length === {text.count('[[phase]]')}")
    until(browser, f"return document.getElementById('at-workload-0-name').value === '{_name(text)}'")


def _name(text: str) -> str:
    return str(tomllib.loads(text)["workload"][0]["name"])


def _asked(browser: Any) -> dict[str, Any]:
    return tomllib.loads(question(browser))


def _add(browser: Any, title: str) -> None:
    """Click the first button of that title and wait for its row."""
    before = question(browser)
    browser.execute_script(
        "[...document.querySelectorAll('.add')].find((one) => one.textContent === arguments[0]).click()", title
    )
    until(browser, f"return sessionStorage.getItem('coopt-question') !== {json.dumps(before)}")
