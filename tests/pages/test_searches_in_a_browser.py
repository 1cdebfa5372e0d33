"""The planner's page while an answer is sought, and once another question is open, in a headless Chromium."""

import pytest

import coopt
from coopt.report.csv_files import bill_csv
from tests.pages.planner import ANSWERED, HANGING, NUMBER, WAIT_S, put, question, settled, text_of, until, until_asked
from tests.pages.test_planner_in_a_browser import SAVED
from tests.serve.conftest import INSTANCES, TINY, served

OTHER = TINY.replace('name = "tiny-64"', 'name = "other-32"').replace("gpus = 64", "gpus = 32")
SHOWN = ".decision, .ways, .reasons, #front *, #evidence *"
SLOW = """
const ask = window.fetch;
window.fetch = async (path, given) => path !== '/plan' ? ask(path, given)
  : new Response((await (await ask(path, given)).text()).replace(/"total_s":[^,]+/, '"total_s":9'));
"""
DYING = """
const ask = window.fetch;
window.ask = ask;
const died = ['event: failed', 'data: {"sentence":"searched died; the last answer stays."}', '',
  'event: end', 'data: {}', '', ''].join('\\n');
window.fetch = (path, given) => path !== '/front' ? ask(path, given) : Promise.resolve(new Response(died));
"""
WAITED = """
window.said = [];
const progress = document.getElementById('progress');
new MutationObserver(() => window.said.push(...[...progress.children].map((one) => one.innerText)))
  .observe(progress, { childList: true });
"""
BUSY = "return document.getElementById('answer').ariaBusy === '{}'"


@pytest.fixture
def opened(planner, tmp_path):
    """`opened(browser, text)`: open a question as a file."""

    def choose(browser, text):
        file = tmp_path / "other.toml"
        file.write_text(text, "utf-8")
        browser.execute_script("document.getElementById('file').hidden = false")
        browser.find_element("id", "file").send_keys(str(file))

    return choose


def count(browser, place):
    return browser.execute_script("return document.querySelectorAll(arguments[0]).length", place)


def test_nothing_of_the_former_question_stands_under_the_name_of_another(planner, opened):
    browser = planner()
    assert count(browser, SHOWN) > 50
    browser.execute_script(HANGING, "/plan")
    opened(browser, OTHER)
    until(browser, "return document.querySelector('h1').innerText === 'other-32'")
    until(browser, BUSY.format("true"))
    assert count(browser, SHOWN) == 0
    assert question(browser) == OTHER


def test_the_front_of_another_question_moves_no_bound_and_one_of_a_bound_that_moved_stays_in_use(planner):
    browser = planner()
    browser.execute_script(HANGING, "/plan")
    inert = "return ['why', 'front', 'decision'].map((id) => document.getElementById(id).inert)"
    put(browser, NUMBER, "0.9")
    until(browser, "return document.querySelector('#front.stale') !== null")
    assert browser.execute_script(inert)[:2] == [True, False]
    put(browser, "#at-cluster-gpus", "128")
    until(browser, "return document.getElementById('front').inert")
    before = question(browser)
    assert "gpus = 128" in before
    assert browser.execute_script(inert) == [True] * 3
    browser.execute_script("document.querySelector('.dot').dispatchEvent(new Event('click'))")
    until(browser, BUSY.format("true"))
    assert question(browser) == before


def test_where_a_search_takes_long_nothing_grey_stays_and_what_is_sought_says_so(planner):
    browser = planner()
    browser.execute_script(SLOW)
    put(browser, "#at-workload-0-global_batch", "32")
    until(browser, "return document.getElementById('ask-front') !== null")
    assert (count(browser, "#front *"), count(browser, "#why *")) == (0, 0)
    browser.execute_script(HANGING, "/explanation")
    browser.find_element("id", "ask-explanation").click()
    until(browser, "return document.getElementById('why').innerText.includes('still being computed')")
    assert count(browser, "#ask-explanation") == 0


def test_why_is_told_to_be_sought_until_it_is_found(planner):
    """Reasons of a plan do not stand where nothing can be built."""
    browser = planner(sought=ANSWERED)
    browser.execute_script(HANGING, "/explanation")
    put(browser, NUMBER, "0.9")
    told = "Looking for what would change the plan."
    until(browser, f"return document.getElementById('progress').innerText === '{told}'")
    until(browser, "return document.querySelector('#front:not(.stale) #chart') !== null")
    until(browser, BUSY.format("true"))
    assert text_of(browser, "#progress") == told
    assert browser.execute_script("return document.querySelector('#progress .busy') !== null")
    put(browser, NUMBER, "0.01")
    until(browser, "return document.getElementById('reasons').innerText.includes('still being computed')")
    assert text_of(browser, "#why") == ""


def test_a_front_whose_search_died_is_sought_once_more_with_the_next_try(planner):
    browser = planner(sought=ANSWERED)
    browser.execute_script(DYING)
    put(browser, "#at-workload-0-global_batch", "32")
    until(browser, "return !document.getElementById('lost').hidden")
    until(browser, BUSY.format("false"))
    assert "searched died" in text_of(browser, "#lost")
    assert (count(browser, "#front *"), count(browser, "#ask-front")) == (0, 1)
    browser.execute_script("window.fetch = window.ask")
    browser.find_element("id", "again").click()
    until(browser, "return document.querySelector('#front:not(.stale) #chart') !== null")
    settled(browser)
    assert browser.execute_script("return document.getElementById('lost').hidden")


def test_a_search_is_stopped_and_begun_again(planner):
    from selenium.webdriver.common.keys import Keys

    browser = planner(sought=ANSWERED)
    browser.execute_script(HANGING, "/plan")
    put(browser, NUMBER, "0.67")
    until(browser, BUSY.format("true") + " && sessionStorage.getItem('coopt-question').includes('0.67')")
    for stop in (
        lambda: browser.find_element("id", "stop").click(),
        lambda: browser.find_element("tag name", "body").send_keys(Keys.ESCAPE),
    ):
        until(browser, "return getComputedStyle(document.getElementById('stop')).visibility === 'visible'")
        stop()
        until(browser, BUSY.format("false"))
        assert "was stopped" in text_of(browser, "#progress")
        browser.find_element("id", "ask-plan").click()
        until(browser, BUSY.format("true"))
    browser.execute_script("window.fetch = window.ask")
    browser.find_element("id", "stop").click()
    until(browser, BUSY.format("false"))
    browser.find_element("id", "ask-plan").click()
    until(browser, "return document.querySelector('.decision').innerText.includes('h100-hb16')")
    settled(browser)
    assert text_of(browser, "#progress") == ""


def test_a_tab_that_waits_for_another_says_so(browser):
    """With one worker, the front waits for what explains the plan."""
    with served(workers=1) as client:
        browser.get(f"http://127.0.0.1:{client.port}/")
        settled(browser)
        browser.execute_script(WAITED)
        put(browser, NUMBER, "0.9")
        until(browser, "return window.said.some((one) => one.includes('another search'))")
        settled(browser)
        assert text_of(browser, "#progress") == ""


def test_question_plan_and_bill_are_saved_and_named_after_the_question_that_they_answer(planner):
    browser = planner(sought=ANSWERED)
    browser.execute_script(SAVED)
    save = "for (const one of ['question', 'plan', 'bill']) document.getElementById(`save-${one}`).click()"
    browser.execute_script(save)
    until(browser, "return window.saved.length === 3")
    names = ["tiny-64.toml", "tiny-64.plan.json", "tiny-64.csv"]
    assert browser.execute_script("return window.savedAs") == names
    text, plan, bill = browser.execute_script("return window.saved")
    assert text == TINY
    found = coopt.Plan.model_validate_json(plan)
    assert coopt.verify(INSTANCES / "tiny-64.toml", found).accepted
    assert bill == bill_csv(coopt.load(INSTANCES / "tiny-64.toml"), found)
    put(browser, "#at-workload-0-global_batch", "many")
    until(browser, "return document.querySelector('#complaints li') !== null")
    put(browser, "#at-name", "renamed")
    until(browser, "return document.querySelector('h1').innerText === 'renamed'")
    browser.execute_script(save)
    until(browser, "return window.savedAs.length === 6")
    assert browser.execute_script("return window.savedAs.slice(3)") == ["renamed.toml", *names[1:]]


@pytest.mark.parametrize("left", [True, False])
def test_a_question_with_changes_is_left_only_on_purpose(form, left):
    browser = form()
    put(browser, NUMBER, "0.9")
    until_asked(browser, "= 0.9")
    browser.execute_script("setTimeout(() => document.getElementById('new').click())")
    from selenium.webdriver.support import expected_conditions
    from selenium.webdriver.support.wait import WebDriverWait

    asked = WebDriverWait(browser, WAIT_S).until(expected_conditions.alert_is_present())
    asked.accept() if left else asked.dismiss()
    until(browser, f"return document.querySelector('h1').innerText === '{'my-cluster' if left else 'tiny-64'}'")


def test_keys_and_a_click_elsewhere_walk_through_the_menu_and_close_it(form):
    from selenium.webdriver.common.keys import Keys

    browser = form()
    menu = browser.find_element("css selector", "#files summary")
    is_open, focus = "return document.getElementById('files').open", "return document.activeElement.id"
    menu.send_keys(Keys.ARROW_DOWN)
    assert browser.execute_script(focus) == "open"
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    assert browser.execute_script(focus) == "new"
    browser.switch_to.active_element.send_keys(Keys.ARROW_UP, Keys.ARROW_UP)
    assert browser.execute_script(focus) == "save-report"
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert browser.execute_script(is_open) is False
    assert browser.execute_script("return document.activeElement.tagName") == "SUMMARY"
    menu.click()
    assert browser.execute_script(is_open) is True
    browser.find_element("id", "title").click()
    assert browser.execute_script(is_open) is False
