"""The planner's page as a person uses it, in a headless Chromium."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.pages.planner import (
    ANSWERED,
    NUMBER,
    SLIDER,
    WAIT_S,
    prefer,
    put,
    put_text,
    question,
    settled,
    text_of,
    until,
    until_asked,
    until_bound,
    until_decision,
)
from tests.pages.test_pages_in_a_browser import CONTRASTS, LEAST_CONTRAST, NAMELESS, RATIO
from tests.serve.conftest import INSTANCES, TINY, served

LARGEST_PAGE_BYTES = 1_500_000
LEAST_OF_EDGES = 3.0
TWO = TINY.replace(
    "[network]",
    """[[workload]]
name = "second"
model = "gpt-22b"
global_batch = 128
max_iteration_time_s = 3.0
mapping.micro_batch = 1

[network]""",
)
EDGES = (
    RATIO
    + """
const fields = [...document.querySelectorAll('input[type=text], select, .field textarea, .editor')];
return [...fields.map((one) => [one, getComputedStyle(one).borderBottomColor]),
  ...[...document.querySelectorAll('.segment')].map((one) => [one, getComputedStyle(one).stroke])]
  .filter(([one]) => one.getClientRects().length)
  .map(([one, colour]) => [one.outerHTML.slice(0, 60), ratio(numbers(colour), ground(one.parentElement))]);
"""
)
SAVED = """
window.saved = [];
URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text)); return 'blob:none'; };
HTMLAnchorElement.prototype.click = function () { window.savedAs = [...(window.savedAs ?? []), this.download]; };
"""
COVERED = """
return [...document.querySelectorAll('#files button')].filter((one) => {
  const { left, right, top, bottom } = one.getBoundingClientRect();
  return left < 0 || right > arguments[0] || document.elementFromPoint((left + right) / 2, (top + bottom) / 2) !== one;
}).map((one) => one.innerText);
"""


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_it_fits_reads_well_and_asks_only_its_own_server(planner, client, width, scheme):
    """Everything one can use has a name; a table sorts by a column."""
    browser = planner(width, scheme)
    assert browser.get_log("browser") == []
    asked = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    addresses = [one["params"]["request"]["url"] for one in asked if one["method"] == "Network.requestWillBeSent"]
    assert len(addresses) > 10
    assert [one for one in addresses if not one.startswith((f"http://127.0.0.1:{client.port}/", "data:"))] == []
    for part in ("#see-answer", "#see-question", "#tab-text") if width == 390 else ("#tab-text", "#tab-form"):
        browser.execute_script("document.querySelector(arguments[0]).click()", part)
        browser.execute_script("document.querySelectorAll('main details').forEach((one) => { one.open = true })")
        assert browser.execute_script("return document.documentElement.scrollWidth") == width
        for one in ("light", "dark"):
            prefer(browser, one)
            found = browser.execute_script(CONTRASTS)
            assert len(found) > 20
            assert [(text, ratio) for text, ratio in found if ratio < LEAST_CONTRAST] == []
            edges = browser.execute_script(EDGES)
            assert [(place, ratio) for place, ratio in edges if ratio < LEAST_OF_EDGES] == []
        if width == 1280:
            assert_named(browser)
    browser.execute_script("document.getElementById('files').open = true")
    assert browser.execute_script(COVERED, width) == []
    rows = "[...document.querySelectorAll('#evidence [data-name=bill] tbody tr')]"
    browser.execute_script("document.querySelectorAll('#evidence [data-name=bill] .sort')[4].click()")
    cells = browser.execute_script(f"return {rows}.map((row) => row.cells[4].textContent)")
    usd = [float(text.replace(",", "")) for text in cells]
    assert usd == sorted(usd, reverse=True)
    assert len(usd) > 2


def assert_named(browser: Any) -> None:
    """All that one can use has a name, tables have captions, and ids stand once."""
    assert browser.execute_script(NAMELESS) == []
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    names = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
    roles = {"button", "slider", "textbox", "combobox", "checkbox", "tab", "spinbutton", "region", "image", "link"}
    used = [(role, name) for role, name in names if role in roles]
    assert len(used) > 40
    assert [role for role, name in used if not name] == []
    bare = "return document.querySelectorAll('th:not([scope]), table:not(:has(caption))').length"
    assert browser.execute_script(bare) == 0
    ids = browser.execute_script("return [...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(set(ids)) == len(ids)


def test_a_planner_goes_from_question_to_report(planner, pictures):
    """Drag a bound and the line of the front, meet a cliff and leave it, undo, compare, share, write the report."""
    from selenium.webdriver.common.keys import Keys

    def click(name: str) -> None:
        browser.execute_script("document.getElementById(arguments[0]).click()", name)

    def bound() -> float:
        return float(browser.execute_script("return document.querySelector(arguments[0]).value", NUMBER))

    browser = planner(1280)
    before, first = bound(), text_of(browser, ".decision")
    pictures(browser, "question")
    browser.find_element("css selector", "#front-bound").send_keys(Keys.ARROW_RIGHT * 5)
    until_asked(browser, f"max_iteration_time_s = {before * 1.01**5:.5g}")
    browser.find_element("css selector", SLIDER).send_keys(Keys.PAGE_DOWN * 2)
    until_decision(browser, "h100-hb16")
    assert f"max_iteration_time_s = {bound():g}" in question(browser)
    dragged = question(browser)

    put(browser, NUMBER, "0.01")
    until(browser, "return document.querySelector('.ways .try') !== null")
    assert "Infeasible." in text_of(browser, ".badge")
    assert browser.execute_script("return document.querySelector('.badge').classList.contains('good')") is False
    pictures(browser, "cliff")
    browser.execute_script("document.querySelector('.ways .try').click()")
    until(browser, "return document.querySelector('.badge.good') !== null")
    assert "Build" in text_of(browser, ".decision")
    click("undo")
    until_asked(browser, "= 0.01")
    click("undo")
    until(browser, f"return sessionStorage.getItem('coopt-question') === {json.dumps(dragged)}")
    until(browser, "return document.querySelector('.badge.good') !== null")

    oldest = "[...document.querySelectorAll('#answers button')].at(-1)"
    listed = browser.execute_script(f"return {oldest}.textContent")
    assert [listed.count("$"), listed.endswith(" 64 GPUs")] == [1, True]
    browser.execute_script(f"{oldest}.click()")
    until(browser, "return document.querySelectorAll('.pair p').length === 2")
    assert text_of(browser, ".pair p") == first
    assert "workload[0].max_iteration_time_s" in text_of(browser, "#comparison")
    pictures(browser, "compared")
    click("share")
    until(browser, "return document.getElementById('link-text').value.includes('#q=')")
    click("link-close")
    browser.execute_script(SAVED)
    click("save-report")
    until(browser, "return window.saved.length === 1")
    assert "<h1>tiny-64</h1>" in browser.execute_script("return window.saved[0]")
    assert browser.get_log("browser") == []


def test_a_reload_keeps_the_question_and_another_tab_has_its_own(form):
    browser = form()
    put(browser, NUMBER, "1.3")
    until_asked(browser, "= 1.3")
    browser.refresh()
    until_bound(browser, "1.3")
    first, address = browser.current_window_handle, browser.current_url
    browser.switch_to.new_window("tab")
    try:
        browser.get(address)
        until_bound(browser, "1")
        put(browser, NUMBER, "1.5")
        until_asked(browser, "= 1.5")
    finally:
        browser.close()
        browser.switch_to.window(first)
    assert browser.execute_script("return document.querySelector(arguments[0]).value", NUMBER) == "1.3"


def test_a_link_holds_the_question_and_one_that_was_cut_says_so(form):
    from selenium.webdriver.support import expected_conditions
    from selenium.webdriver.support.wait import WebDriverWait

    browser = form()
    put(browser, NUMBER, "1.21")
    until_asked(browser, "= 1.21")
    text = question(browser)
    browser.find_element("id", "share").click()
    until(browser, "return document.getElementById('link-text').value.includes('#q=')")
    fragment = browser.execute_script("return new URL(document.getElementById('link-text').value).hash")
    assert len(fragment) < len(text)
    assert question(form(fragment=fragment)) == text
    assert browser.execute_script("return location.hash") == ""
    put(browser, NUMBER, "1.5")
    until_asked(browser, "= 1.5")
    follow = "setTimeout(() => { location.hash = arguments[0] })"
    for link, said in ((fragment, "It is not saved as it stands"), (fragment[:-8], "link cannot be read")):
        browser.execute_script(follow, link)
        asked = WebDriverWait(browser, WAIT_S).until(expected_conditions.alert_is_present())
        assert said in asked.text
        asked.accept()
        until(browser, f"return sessionStorage.getItem('coopt-question') === {json.dumps(text)}")


def test_a_server_that_was_started_with_another_question_shows_that(form):
    browser = form()
    put(browser, NUMBER, "1.3")
    until_asked(browser, "= 1.3")
    browser.execute_script("sessionStorage.setItem('coopt-served', 'another')")
    browser.refresh()
    until_bound(browser, "1")
    assert question(browser) == TINY


def test_two_questions_stand_side_by_side(planner):
    """With the times of every workload; bills that count different things say so."""
    browser = planner(sought=ANSWERED)
    put_text(browser, TWO)
    until(browser, "return document.querySelectorAll('.run').length === 2")
    shares = text_of(browser, ".run .help")
    assert re.search(r"layers, compute \d+\.\d%", shares)
    assert browser.execute_script("return document.querySelector('.segment title').textContent") in shares
    kept = text_of(browser, ".decision")
    browser.execute_script("document.getElementById('compare').click()")
    put(browser, NUMBER, "0.67")
    until_decision(browser, "h100-hb16")
    now = text_of(browser, ".decision")
    assert now != kept
    pair = browser.execute_script("return [...document.querySelectorAll('.pair p')].map((one) => one.innerText)")
    assert pair == [kept, now]
    compared, figures = text_of(browser, "#comparison"), text_of(browser, "#comparison table")
    assert ["workload[0].max_iteration_time_s" in compared, "includes GPUs" in compared] == [True, False]
    assert all(f"Iteration of {name}" in figures for name in ("training", "second"))
    for alone, says in (("gpu", "includes GPUs that train"), ("host", "includes servers")):
        put_text(browser, TINY + f'\n[objective]\ninclude = ["{alone}", "hb", "nic", "switch", "optics"]\n')
        told = f"Only the new bill {says}. "
        until(browser, f"return document.getElementById('comparison').innerText.includes('{told}')")
    browser.execute_script("document.getElementById('swap').click()")
    until_decision(browser, kept)
    browser.execute_script("document.getElementById('end-compare').click()")
    assert text_of(browser, "#comparison") == ""


def test_what_is_not_known_of_another_question_says_why_and_least_time_needs_no_bound(planner, tmp_path):
    """Nothing of the old question stays; where nothing bounds the time, the front shows what less money buys."""
    browser, other = planner(390), tmp_path / "fastest.toml"
    assert browser.execute_script("return document.getElementById('chart') !== null")
    browser.execute_script("document.getElementById('file').hidden = false")
    plain = TINY.replace('minimize = "capex"', "")
    (bound,) = (line for line in plain.splitlines() if line.startswith("max_iteration_time_s"))
    free = plain.replace(bound, "") + '\n[objective]\nminimize = "time"\n'
    for text, place, says in (
        (plain + '\n[objective]\nminimize = "usd_per_token"\n', "front", "compares bills"),
        (free, "front", "No bound"),
    ):
        other.write_text(text, "utf-8")
        browser.find_element("id", "file").send_keys(str(other))
        until(browser, f"return document.getElementById('{place}').textContent.includes('{says}')")
        settled(browser)
        if text != free:
            until(browser, "return document.getElementById('why').textContent.includes('plan costs less')")
            assert browser.execute_script("return document.getElementById('chart') === null")
    assert ", the fastest: " in text_of(browser, ".decision")
    answer = text_of(browser, "#answer")
    assert ["no bound" in answer, "vertical line" in answer, " of " in text_of(browser, ".run-name")] == [
        True,
        False,
        False,
    ]
    assert browser.execute_script("return document.querySelectorAll('#chart .dot').length") > 1
    assert browser.execute_script("return document.getElementById('front-bound') === null")
    browser.execute_script("document.querySelector('#chart .dot:last-of-type').dispatchEvent(new Event('click'))")
    assert question(browser) == free
    assert browser.get_log("browser") == []


def test_the_switch_of_colours_stays(form):
    browser = form()
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = browser.execute_script(ground)
    button = browser.find_element("id", "theme")
    button.click()
    assert browser.execute_script(ground) == light
    button.click()
    dark = browser.execute_script(ground)
    assert dark != light
    browser.refresh()
    until_bound(browser, "1")
    assert browser.execute_script(ground) == dark


def test_a_name_that_is_a_script_is_a_name_and_a_server_that_is_gone_leaves_the_answer(browser):
    with served(text=TINY.replace('name = "tiny-64"', 'name = "<img src=x onerror=alert(1)>"')) as client:
        browser.get(f"http://127.0.0.1:{client.port}/")
        until(browser, ANSWERED)
        assert text_of(browser, "h1") == "<img src=x onerror=alert(1)>"
        assert browser.execute_script("return document.images.length") == 0
        before = text_of(browser, ".decision")
    put(browser, NUMBER, "1.7")
    until(browser, "return !document.getElementById('lost').hidden")
    assert "coopt is lost" in text_of(browser, "#lost")
    assert text_of(browser, ".decision") == before


def test_an_edit_while_the_connection_is_lost_arrives_with_the_next_try(planner):
    browser = planner(sought=ANSWERED)
    network = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", network | {"offline": True})
    try:
        put(browser, NUMBER, "0.67")
        until(browser, "return !document.getElementById('lost').hidden")
        assert "= 0.67" not in question(browser)
    finally:
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", network | {"offline": False})
    browser.execute_script("document.getElementById('again').click()")
    until_decision(browser, "h100-hb16")
    assert "max_iteration_time_s = 0.67" in question(browser)
    assert browser.execute_script("return document.getElementById('lost').hidden")


def test_the_page_is_small():
    folder = Path(INSTANCES).parent / "coopt" / "serve" / "page"
    assert sum(file.stat().st_size for file in folder.iterdir()) < LARGEST_PAGE_BYTES
