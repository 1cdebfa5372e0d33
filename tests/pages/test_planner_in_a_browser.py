"""The planner's page as a person uses it, in a headless Chromium."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.pages.planner import (
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
COVERED = """
return [...document.querySelectorAll('.menu-list button')].filter((one) => {
  const { left, right, top, bottom } = one.getBoundingClientRect();
  return left < 0 || right > arguments[0] || document.elementFromPoint((left + right) / 2, (top + bottom) / 2) !== one;
}).map((one) => one.innerText);
"""


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_it_fits_reads_well_and_asks_only_its_own_server(planner, client, width, scheme):
    browser = planner(width, scheme)
    assert browser.get_log("browser") == []
    asked = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    addresses = [one["params"]["request"]["url"] for one in asked if one["method"] == "Network.requestWillBeSent"]
    own = (f"http://127.0.0.1:{client.port}/", "data:")
    assert len(addresses) > 10
    assert [one for one in addresses if not one.startswith(own)] == []
    for part in ("#see-answer", "#see-question", "#tab-text") if width == 390 else ("#tab-form",):
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
    browser.execute_script("document.getElementById('files').open = true")
    assert browser.execute_script(COVERED, width) == []


def test_everything_one_can_use_has_a_name(planner):
    browser = planner()
    for tab in ("#tab-text", "#tab-form"):
        browser.execute_script("document.querySelector(arguments[0]).click()", tab)
        browser.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        assert browser.execute_script(NAMELESS) == []
        nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        names = [
            (node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]
        ]
        roles = {"button", "slider", "textbox", "combobox", "checkbox", "tab", "spinbutton", "region", "image", "link"}
        used = [(role, name) for role, name in names if role in roles]
        assert len(used) > 40
        assert [role for role, name in used if not name] == []
    assert (
        browser.execute_script("return document.querySelectorAll('th:not([scope]), table:not(:has(caption))').length")
        == 0
    )
    assert browser.execute_script(
        "return new Set([...document.querySelectorAll('[id]')].map((one) => one.id)).size"
    ) == (browser.execute_script("return document.querySelectorAll('[id]').length"))


def test_a_dragged_bound_brings_another_plan(planner):
    from selenium.webdriver.common.keys import Keys

    browser = planner()
    before = text_of(browser, ".decision")
    slider = browser.find_element("css selector", SLIDER)
    for key in (Keys.PAGE_DOWN, *[Keys.ARROW_LEFT] * 10, Keys.PAGE_DOWN):
        slider.send_keys(key)
    settled(browser)
    bound = float(browser.execute_script("return document.querySelector(arguments[0]).value", NUMBER))
    assert f"max_iteration_time_s = {bound:g}" in question(browser)
    assert text_of(browser, ".decision") != before


def test_the_line_of_the_front_moves_the_bound(planner):
    from selenium.webdriver.common.keys import Keys

    browser = planner()
    before = float(browser.execute_script("return document.querySelector(arguments[0]).value", NUMBER))
    browser.find_element("css selector", "#front-bound").send_keys(Keys.ARROW_RIGHT * 5)
    settled(browser)
    after = float(browser.execute_script("return document.querySelector(arguments[0]).value", NUMBER))
    assert after == pytest.approx(before * 1.01**5, rel=1e-5)
    browser.execute_script("document.querySelector('.dot').dispatchEvent(new Event('click'))")
    settled(browser)
    fastest = float(browser.execute_script("return document.querySelector(arguments[0]).value", NUMBER))
    assert fastest < before
    assert "Infeasible" not in text_of(browser, ".badge")


def test_what_nothing_meets_says_what_gives_and_trying_it_helps(planner):
    browser = planner()
    put(browser, NUMBER, "0.01")
    until(browser, "return document.querySelector('.ways .try') !== null")
    settled(browser)
    assert "Infeasible." in text_of(browser, ".badge")
    assert browser.execute_script("return document.querySelector('.badge').classList.contains('good')") is False
    browser.execute_script("document.querySelector('.ways .try').click()")
    until(browser, "return document.querySelector('.badge.good') !== null")
    assert "Build" in text_of(browser, ".decision")


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
    for link, said in ((fragment, "Its changes are not saved"), (fragment[:-8], "lost a part of its question")):
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
    browser = planner()
    kept = text_of(browser, ".decision")
    browser.find_element("id", "compare").click()
    put(browser, NUMBER, "0.67")
    settled(browser)
    now = text_of(browser, ".decision")
    assert now != kept
    pair = browser.execute_script("return [...document.querySelectorAll('.pair p')].map((one) => one.innerText)")
    assert pair == [kept, now]
    assert "workload[0].max_iteration_time_s" in text_of(browser, "#comparison")
    browser.find_element("id", "swap").click()
    settled(browser)
    assert text_of(browser, ".decision") == kept
    browser.find_element("id", "end-compare").click()
    assert text_of(browser, "#comparison") == ""


def test_what_is_not_known_of_another_question_says_why_and_nothing_of_the_old_one_stays(planner, tmp_path):
    browser = planner()
    assert browser.execute_script("return document.getElementById('chart') !== null")
    other = tmp_path / "fastest.toml"
    other.write_text(TINY.replace('minimize = "capex"', "") + '\n[objective]\nminimize = "usd_per_token"\n', "utf-8")
    browser.execute_script("document.getElementById('file').hidden = false")
    browser.find_element("id", "file").send_keys(str(other))
    until(browser, "return document.getElementById('front').innerText.includes('compares bills')")
    settled(browser)
    until(browser, "return document.getElementById('why').textContent.includes('plan costs less')")
    assert browser.execute_script("return document.getElementById('chart') === null")


@pytest.mark.parametrize("width", [1280, 390])
def test_least_time_needs_no_bound_and_shows_what_less_money_buys(planner, tmp_path, width):
    browser = planner(width)
    other = tmp_path / "fastest.toml"
    bounds = [
        line for line in TINY.splitlines() if line.startswith(("max_iteration_time_s", "min_tokens", "train_days"))
    ]
    free = TINY.replace(bounds[0], "").replace('minimize = "capex"', "") + '\n[objective]\nminimize = "time"\n'
    other.write_text(free, "utf-8")
    browser.execute_script("document.getElementById('file').hidden = false")
    browser.find_element("id", "file").send_keys(str(other))
    until(browser, "return document.getElementById('front').textContent.includes('No bound')")
    settled(browser)
    assert ", the fastest: " in text_of(browser, ".decision")
    assert "no bound" in text_of(browser, "#answer")
    assert " of " not in text_of(browser, ".run-name")
    assert "at its right" not in text_of(browser, "#answer")
    assert browser.execute_script("return document.querySelectorAll('#chart .dot').length") > 1
    assert browser.execute_script("return document.getElementById('front-bound') === null")
    browser.execute_script("document.querySelector('#chart .dot:last-of-type').dispatchEvent(new Event('click'))")
    assert question(browser) == free
    assert browser.get_log("browser") == []


def test_bills_that_count_different_things_say_so(planner):
    browser = planner()
    browser.find_element("id", "compare").click()
    put(browser, NUMBER, "0.9")
    settled(browser)
    assert "lists GPUs" not in text_of(browser, "#comparison")
    for alone, says in (("gpu", "lists GPUs"), ("host", "counts hosts")):
        put_text(browser, TINY + f'\n[objective]\ninclude = ["{alone}", "hb", "nic", "switch", "optics"]\n')
        said = f"Only the new bill {says}: totals count the same where both list them in objective.include."
        until(browser, f"return document.getElementById('comparison').innerText.includes('{said}')")


def test_times_of_every_workload_stand_side_by_side(planner):
    browser = planner()
    put_text(browser, TWO)
    until(browser, "return document.querySelectorAll('.run').length === 2")
    settled(browser)
    browser.find_element("id", "compare").click()
    put(browser, NUMBER, "0.9")
    settled(browser)
    figures = text_of(browser, "#comparison table")
    assert "Iteration of training" in figures
    assert "Iteration of second" in figures
    shares = text_of(browser, ".run .help")
    assert re.search(r"layers, compute \d+\.\d%", shares)
    assert browser.execute_script("return document.querySelector('.segment title').textContent") in shares


def test_a_table_sorts_by_a_column(planner):
    browser = planner()
    rows = "[...document.querySelectorAll('#evidence [data-name=bill] tbody tr')]"
    browser.execute_script("document.querySelectorAll('#evidence [data-name=bill] .sort')[4].click()")
    usd = [
        float(text.replace(",", ""))
        for text in browser.execute_script(f"return {rows}.map((row) => row.cells[4].innerText)")
    ]
    assert usd == sorted(usd, reverse=True)
    assert len(usd) > 2


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


def test_a_server_that_is_gone_leaves_the_answer_and_says_so(browser):
    with served() as client:
        browser.get(f"http://127.0.0.1:{client.port}/")
        settled(browser)
        before = text_of(browser, ".decision")
    put(browser, NUMBER, "1.7")
    until(browser, "return !document.getElementById('lost').hidden")
    assert "coopt is lost" in text_of(browser, "#lost")
    assert text_of(browser, ".decision") == before


def test_an_edit_while_the_connection_is_lost_arrives_with_the_next_try(planner):
    browser = planner()
    network = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", network | {"offline": True})
    try:
        put(browser, NUMBER, "0.67")
        until(browser, "return !document.getElementById('lost').hidden")
        assert "= 0.67" not in question(browser)
    finally:
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", network | {"offline": False})
    browser.find_element("id", "again").click()
    settled(browser)
    assert "max_iteration_time_s = 0.67" in question(browser)
    assert "h100-hb16" in text_of(browser, ".decision")
    assert browser.execute_script("return document.getElementById('lost').hidden")


def test_a_name_that_is_a_script_is_a_name(browser):
    text = TINY.replace('name = "tiny-64"', 'name = "<img src=x onerror=alert(1)>"')
    with served(text=text) as client:
        browser.get(f"http://127.0.0.1:{client.port}/")
        settled(browser)
        assert text_of(browser, "h1") == "<img src=x onerror=alert(1)>"
        assert browser.execute_script("return document.images.length") == 0


def test_the_page_is_small():
    folder = Path(INSTANCES).parent / "coopt" / "serve" / "page"
    assert sum(file.stat().st_size for file in folder.iterdir()) < LARGEST_PAGE_BYTES
