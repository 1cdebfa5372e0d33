"""The page of a front in a headless Chromium: it complains of nothing, fits every screen and answers to clicks."""

from __future__ import annotations

from collections.abc import Callable
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


@pytest.fixture
def opened(browser: Any, page: Path) -> Callable[..., Any]:
    """`opened(390)`: the browser with the page, that wide, once the chart is drawn."""

    def look(width: int = 1280) -> Any:
        resize(browser, width)
        prefer(browser, "light")
        for log in ("browser", "performance"):
            browser.get_log(log)
        browser.get(page.as_uri())
        until(browser, "return document.querySelectorAll('.front-details dt').length > 0")
        return browser

    return look


def test_it_complains_of_nothing_loads_nothing_fits_and_has_a_name_for_everything(opened: Callable[..., Any]) -> None:
    browser = opened(390)
    assert browser.get_log("browser") == []
    asked = [line["message"] for line in browser.get_log("performance") if "requestWillBeSent" in line["message"]]
    assert asked
    assert not [message for message in asked if '"url":"http' in message]
    for width in (390, 1280):
        resize(browser, width)
        right = browser.execute_script("return document.querySelector('.front-plot').getBoundingClientRect().right")
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
    used = [(role, name) for role, name in names if role in ("image", "combobox", "link", "button")]
    assert {role for role, _ in used} >= {"image", "combobox"}
    assert browser.execute_script(NAMELESS) == []
    assert [role for role, name in used if not name] == []
    assert "<i>n</i> & <script>" in browser.execute_script("return document.querySelector('.brand').textContent")


def test_a_click_and_the_list_show_the_design_of_a_point(opened: Callable[..., Any]) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.support.select import Select

    browser = opened()
    places = (
        "const p = document.querySelector('.front-plot'); const [x, y] = [p._fullLayout.xaxis, p._fullLayout.yaxis];"
    )
    read = "return document.querySelector('.front-details').textContent"
    first = browser.execute_script(read)
    assert "128 x gh200-256" in first
    left, top = browser.execute_script(
        f"{places} const box = p.getBoundingClientRect(), t = p.data[0], n = t.x.length - 1;"
        "return [box.left + x._offset + x.d2p(t.x[n]), box.top + y._offset + y.d2p(t.y[n])].map(Math.round)"
    )
    mouse = ActionChains(browser)
    mouse.w3c_actions.pointer_action.move_to_location(left, top)
    mouse.w3c_actions.pointer_action.click()
    mouse.perform()
    last = browser.execute_script(read)
    assert "hgx-h100-8" in last
    choice = Select(browser.find_element("css selector", ".front-select"))
    assert len(choice.options) == POINTS
    assert choice.first_selected_option == choice.options[-1]
    choice.select_by_index(0)
    assert browser.execute_script(read) == first
