"""The page of a front in a headless Chromium: it complains of nothing, fits every screen and answers to pointing."""

from pathlib import Path
from typing import Any

import pytest

import coopt
from coopt.report.fronts.files import write_front
from tests.pages.planner import prefer, resize, until
from tests.pages.test_pages_in_a_browser import CONTRASTS, LEAST_CONTRAST, NAMELESS
from tests.report.test_fronts import rail_only_study

MOST_POINTS, POINTS = 9, 6


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of the points that there are."""
    folder = tmp_path_factory.mktemp("front")
    instance = rail_only_study().model_copy(update={"name": "<i>n</i> & <script>"})
    front = coopt.pareto(instance, MOST_POINTS)
    assert len(front.points) == POINTS
    write_front(front, instance, folder)
    return folder / "front.html"


def test_it_complains_of_nothing_loads_nothing_fits_and_has_a_name_for_everything(browser: Any, page: Path) -> None:
    resize(browser, 390)
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(page.as_uri())
    until(browser, "return document.querySelectorAll('.dot').length > 0")
    assert browser.get_log("browser") == []
    asked = [line["message"] for line in browser.get_log("performance") if "requestWillBeSent" in line["message"]]
    assert asked
    assert not [message for message in asked if '"url":"http' in message]
    for width in (390, 1280):
        resize(browser, width)
        right = browser.execute_script("return document.querySelector('.chart svg').getBoundingClientRect().right")
        assert right <= width
        assert browser.execute_script("return document.documentElement.scrollWidth") == width
    for scheme, ground in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 24, 30)")):
        prefer(browser, scheme)
        assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == ground
        found = browser.execute_script(CONTRASTS)
        assert len(found) > POINTS
        assert [(text, ratio) for text, ratio in found if ratio < LEAST_CONTRAST] == []
    assert browser.execute_script("return document.querySelector('h1').textContent").count("3.299 s") == 1
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    names = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
    used = [(role, name) for role, name in names if role in ("link", "button")]
    assert [role for role, _ in used].count("button") == POINTS
    assert browser.execute_script(NAMELESS) == []
    assert [role for role, name in used if not name] == []
    assert "<i>n</i> & <script>" in browser.execute_script("return document.querySelector('.brand').textContent")
    said = "return document.querySelector('.point').textContent"
    assert "128\u00a0x gh200-256" in browser.execute_script(said)
    browser.execute_script("[...document.querySelectorAll('.dot')].at(-1).focus()")
    assert "hgx-h100-8" in browser.execute_script(said)
