"""Pages open without complaints, fit, read aloud, and print."""

import base64
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.pages.conftest import CUT
from tests.pages.planner import prefer, resize

NAMES = ["plan", "hostile", "rejected", "infeasible"]
PAPER = 680  # pixels between the margins of A4
LEAST_CONTRAST = 4.5

NAMELESS = """
return [...document.querySelectorAll('svg[role=img], img, canvas, [role=group], nav, button')].filter((one) => {
  const by = one.getAttribute('aria-labelledby');
  const own = one.getAttribute('aria-label') ?? one.alt ?? one.textContent;
  const name = by ? document.getElementById(by)?.textContent : own;
  return !name?.trim();
}).map((one) => one.outerHTML.slice(0, 100));
"""
UNNAMED_DRAWINGS = """
return [...document.querySelectorAll('svg')].filter(
  (one) => !one.closest('[aria-hidden=true], [role=img], [role=group][aria-label]')).length;
"""
RATIO = """
const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
  .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const ratio = (one, other) => {
  const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
};
const ground = (node) => {
  for (let here = node; here; here = here.parentElement) {
    const colour = numbers(getComputedStyle(here).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
"""
CONTRASTS = (
    RATIO
    + """
const painted = (text) => {
  const box = text.getBoundingClientRect();
  for (const path of text.ownerSVGElement.querySelectorAll('path[fill]')) {
    const {left, right, top, bottom} = path.getBoundingClientRect();
    const holds = left < box.left && box.right < right && top < box.bottom && box.top < bottom;
    if (holds) return numbers(getComputedStyle(path).fill);
  }
  for (const rect of [...text.ownerSVGElement.querySelectorAll('rect, circle')].reverse()) {
    const around = rect.getBoundingClientRect();
    const inside = around.left <= box.left && box.right <= around.right && around.top <= box.top;
    const {fill, fillOpacity} = getComputedStyle(rect);
    if (inside && box.bottom <= around.bottom && fill !== 'none' && fillOpacity > 0) return numbers(fill);
  }
  return ground(text.ownerSVGElement);
};
const found = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const text = walk.currentNode, parent = text.parentElement;
  if (!text.textContent.trim() || ['SCRIPT', 'STYLE', 'title'].includes(parent.tagName)) continue;
  if (!parent.getClientRects().length || parent.closest('[aria-hidden=true]')) continue;
  const svg = parent instanceof SVGElement, look = getComputedStyle(parent);
  if (svg && look.fill === 'none') continue;
  found.push([text.textContent.trim().slice(0, 40), ratio(numbers(svg ? look.fill : look.color),
    svg ? painted(parent) : ground(parent))]);
}
return found;
"""
)


def test_the_driver_can_end_the_browser_as_it_started_no_script(browser):
    program = Path(f"/proc/{browser.capabilities['goog:processID']}/exe").resolve()
    assert "chrom" in program.name


@pytest.mark.parametrize("name", NAMES)
def test_a_page_opens_without_complaints_and_asks_nothing_of_a_network(opened, name):
    """It fits a wide and a narrow screen, has names for everything and links that lead somewhere."""
    browser = opened(name, 390)
    assert browser.get_log("browser") == []
    asked = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    addresses = [one["params"]["request"]["url"] for one in asked if one["method"] == "Network.requestWillBeSent"]
    assert addresses
    assert [one for one in addresses if not one.startswith(("file:", "data:"))] == []
    assert browser.execute_script(NAMELESS) == []
    assert browser.execute_script(UNNAMED_DRAWINGS) == 0
    script = "return [...document.querySelectorAll('h1, h2, h3, h4')].map((one) => Number(one.tagName[1]))"
    levels = browser.execute_script(script)
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(after <= before + 1 for before, after in pairwise(levels))
    counts = [browser.execute_script(f"return document.querySelectorAll('{place}').length") for place in COUNTED]
    assert counts[0] > 0 < counts[1] - 4
    assert counts[2:] == [0, 0]
    dead = "[...document.querySelectorAll('a[href^=\"#\"]')].filter((a) => !document.querySelector(a.hash)).length"
    assert browser.execute_script(f"return {dead}") == 0
    for width in (390, 1280):
        resize(browser, width)
        widths = "return [innerWidth, document.documentElement.scrollWidth, document.body.scrollWidth]"
        inner, *whole = browser.execute_script(widths)
        assert inner == width >= max(whole)
        if width == 390:
            browser.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true })")
            assert browser.execute_script(CUT) == []


COUNTED = ("table", 'a[href^="#"]', "th:not([scope])", "table:not(:has(caption))")


@pytest.mark.parametrize("name", NAMES)
def test_text_stands_out_from_what_is_behind_it(opened, name):
    browser = opened(name)
    browser.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    for scheme in ("light", "dark"):
        prefer(browser, scheme)
        found = browser.execute_script(CONTRASTS)
        assert len(found) > 50
        assert [(text, ratio) for text, ratio in found if ratio < LEAST_CONTRAST] == []


def test_a_page_is_dark_where_the_system_is_and_light_on_paper_with_its_checks(opened):
    browser = opened("plan")
    ground = "return getComputedStyle(document.body).backgroundColor"
    checks = "return document.querySelector('#verification tbody tr').checkVisibility()"
    white, dark = "rgb(255, 255, 255)", "rgb(20, 24, 30)"
    for seen, expected in (
        (("light",), [white, False]),  # checks are folded on the screen
        (("dark",), [dark, False]),
        (("dark", "print"), [white, True]),
    ):
        prefer(browser, *seen)
        assert [browser.execute_script(script) for script in (ground, checks)] == expected


def _click(browser, element):
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
    element.click()


def test_sections_fold_and_open_for_their_link(opened):
    browser = opened("plan")
    fold = browser.find_element("css selector", "#bill .fold")
    shown = "return document.querySelector('#bill table').offsetHeight > 0"
    assert browser.execute_script(shown)
    _click(browser, fold)
    assert not browser.execute_script(shown)
    assert fold.get_attribute("aria-expanded") == "false"
    _click(browser, browser.find_element("css selector", ".contents a[href='#bill']"))
    assert browser.execute_script(shown)


def test_tables_sort_by_their_columns_and_are_copied(opened):
    browser = opened("plan")
    column = "return [...document.querySelectorAll('#bill tbody tr')].map((row) => row.cells[4]?.textContent)"
    usd = [float(text.replace(",", "")) for text in browser.execute_script(column) if text and text[0].isdigit()]
    heads = browser.find_elements("css selector", "#bill thead .sort")
    by_price = next(head for head in heads if head.text.startswith("$"))
    for order in (sorted(usd, reverse=True), sorted(usd)):
        _click(browser, by_price)
        seen = [text for text in browser.execute_script(column) if text and text[0].isdigit()]
        assert [float(text.replace(",", "")) for text in seen] == order
    assert browser.execute_script("return arguments[0].closest('th').ariaSort", by_price) == "ascending"
    copy = browser.find_element("css selector", "#bill .copy")
    _click(browser, copy)
    assert copy.text == "Copied"


def test_what_cannot_be_built_has_no_green_badge(opened):
    badge = opened("infeasible").find_element("css selector", ".verdict")
    assert badge.get_attribute("class") == "verdict warn-box"
    assert badge.text.startswith("Infeasible: ")
    assert "good-box" in opened("plan").find_element("css selector", ".verdict").get_attribute("class")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_prints_whole(opened, name):
    browser = opened(name, PAPER, "print")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= PAPER
    cut = """return [...document.querySelectorAll('.scroll')].filter((one) =>
      one.scrollWidth > one.clientWidth + 1).map((one) => one.ariaLabel)"""
    assert browser.execute_script(cut) == []
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})
    sheets = len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed["data"])))
    assert 1 < sheets < 25


def test_the_chart_answers_to_pointing_and_fits_paper(opened):
    from selenium.webdriver.common.action_chains import ActionChains

    browser = opened("plan")
    shown = "return document.querySelector('.point').textContent"
    assert "8\u00a0x hgx-h100-8" in browser.execute_script(shown)
    dot = browser.find_element("css selector", ".dot")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", dot)
    ActionChains(browser).move_to_element(dot).perform()
    assert "4\u00a0x h100-hb16" in browser.execute_script(shown)
    width = "return document.querySelector('.chart svg').getBoundingClientRect().width"
    assert browser.execute_script(width) > PAPER
    resize(browser, PAPER)
    prefer(browser, "light", "print")
    assert browser.execute_script(width) <= PAPER


def test_pale_text_would_be_noticed(opened):
    browser = opened("plan")
    browser.execute_script("document.querySelector('h1').style.color = '#8a8a8a'")
    assert [text for text, ratio in browser.execute_script(CONTRASTS) if ratio < LEAST_CONTRAST] == ["tiny-64"]
    browser.execute_script("document.querySelector('.drawing text.part').style.fill = '#8a8a8a'")
    assert len([text for text, ratio in browser.execute_script(CONTRASTS) if ratio < LEAST_CONTRAST]) == 2


def test_a_name_that_is_a_script_is_a_name(opened):
    browser = opened("hostile")
    assert browser.execute_script("return document.querySelector('h1').textContent") == "<script>alert(1)</script> & co"
    assert browser.execute_script("return document.querySelectorAll('main img:not([src^=\"data:\"]), b').length") == 0
    assert browser.execute_script("return document.scripts.length") == opened("plan").execute_script(
        "return document.scripts.length"
    )


def test_a_rejected_plan_says_so_before_anything_else(opened):
    browser = opened("rejected")
    shown = browser.execute_script("return document.body.innerText")
    assert shown.index("Do not build") < shown.index("not confirmed")
    found = """return [document.querySelector('main h2').textContent, document.querySelector('details').open,
      document.querySelectorAll('.drawing, .glances').length]"""
    assert browser.execute_script(found) == ["Verification", True, 0]
