"""Pages of plans, opened in a headless Chromium."""

import os
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.pages import chromium
from tests.pages.planner import DRAWN, HANGING, NUMBER, SETTLED, prefer, resize, until
from tests.pages.written import write_reports
from tests.serve.conftest import Client, served

CUT = """
return [...document.querySelectorAll('.scroll:has(> table)')].filter((one) => one.checkVisibility())
  .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.ariaLabel);
"""
"""Tables of which one does not see every column."""

FORGET = "sessionStorage.clear(); localStorage.clear()"


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages by name: of a shipped plan, of hostile names on three tiers, of a rejected plan, without a design."""
    return write_reports(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests of a run."""
    if why := chromium.why_not():
        pytest.skip(why)
    with chromium.started() as one:
        yield one


@pytest.fixture
def opened(browser: Any, pages: dict[str, Path]) -> Callable[..., Any]:
    """`opened("plan", width=390)`: the browser with that page, that wide, on paper or on a light or dark screen."""

    def look(name: str, width: int = 1280, medium: str = "screen", scheme: str = "light") -> Any:
        resize(browser, width)
        prefer(browser, scheme, medium)
        for log in ("browser", "performance"):
            browser.get_log(log)
        browser.get(pages[name].as_uri())
        until(browser, DRAWN)
        return browser

    return look


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """A server with tiny-64, which keeps nothing of those who ask."""
    with served(workers=3) as one:
        yield one


@pytest.fixture
def planner(browser: Any, client: Client) -> Callable[..., Any]:
    """`planner(390, "dark")`: a browser that has not seen the page before, with its whole answer or as much of it."""

    def look(width: int = 1280, scheme: str = "light", sought: str = SETTLED) -> Any:
        _open(browser, f"http://127.0.0.1:{client.port}/", width, scheme, FORGET)
        until(browser, sought)
        return browser

    return look


@pytest.fixture
def pictures() -> Callable[[Any, str], None]:
    """`pictures(browser, "cliff")`: nothing is cut, wide or narrow, light or dark; kept in COOPT_PICTURES where that is
    set."""

    def look(browser: Any, name: str) -> None:
        folder = os.environ.get("COOPT_PICTURES")
        for width, scheme in product((390, 1280), ("light", "dark")):
            resize(browser, width)
            prefer(browser, scheme)
            assert browser.execute_script("return document.documentElement.scrollWidth") == width
            cut = browser.execute_script(CUT)
            assert cut == [], (name, width)
            if folder:
                Path(folder).mkdir(parents=True, exist_ok=True)
                browser.save_screenshot(str(Path(folder) / f"{name}-{width}-{scheme}.png"))

    return look


@pytest.fixture
def form(browser: Any, client: Client) -> Callable[..., Any]:
    """`form(390)`: such a browser with the question alone, whose answer is sought for as long as the page is open."""

    def look(width: int = 1280, fragment: str = "") -> Any:
        hanging = f"((...arguments) => {{ {HANGING} }})('/plan')"
        _open(browser, f"http://127.0.0.1:{client.port}/{fragment}", width, "light", f"{FORGET}; {hanging}")
        until(browser, f"return document.querySelector({NUMBER!r}) !== null")
        return browser

    return look


def _open(browser: Any, address: str, width: int, scheme: str, before: str) -> None:
    """Open a page after a script has run in it."""
    resize(browser, width)
    prefer(browser, scheme)
    browser.get("about:blank")  # from the same page, a fragment alone would load nothing
    for log in ("browser", "performance"):
        browser.get_log(log)
    first = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": before})
    browser.get(address)
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", first)
