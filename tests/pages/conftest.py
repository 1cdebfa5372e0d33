"""Pages of plans, opened in a headless Chromium."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from coopt.cli.main import main
from tests.pages import chromium
from tests.pages.planner import HANGING, NUMBER, prefer, resize, settled, until
from tests.serve.conftest import Client, served

STILL = "force-prefers-reduced-motion"  # what turns while an answer is sought is drawn anew all the time
FORGET = "sessionStorage.clear(); localStorage.clear()"
ALERT = "<script>alert(1)</script>"
SMALL_CLOS = f"""\
schema = 1
margin = "none"
name = "{ALERT} & co"
description = "Two <b>workloads</b>"

[cluster]
gpu = "h100-sxm"
gpus = 64

[[workload]]
name = "<img src=x onerror=alert(1)>"
model = "gpt-22b"
global_batch = 64
max_iteration_time_s = 1.0
mapping.micro_batch = 1

[[workload]]
name = "second & last"
model = "gpt-22b"
global_batch = 128
max_iteration_time_s = 3.0
mapping.micro_batch = 1

[network]
hb_domains = {{name = 'own "box"', size = 8, gbyte_s = 450, usd_per_gpu = 10, w_per_gpu = 1}}
fabrics = "clos"
nics = "cx7-400g"
switches = {{name = "8-port <i>", radix = 8, port_gbit_s = 400, usd = 2000, w = 100}}
optics = "400g-199"
oversubscription = 3
"""

INSTANCES = Path(__file__).parents[2] / "instances"


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages by name: of a shipped plan, of hostile names on three tiers, of a rejected plan, without a design."""
    folder = tmp_path_factory.mktemp("pages")
    hostile = folder / "hostile.toml"
    hostile.write_text(SMALL_CLOS, "utf-8")
    tiny, deadline = INSTANCES / "tiny-64.toml", INSTANCES / "infeasible-deadline.toml"
    plans = {
        name: _run(folder / f"{name}.json", "solve", file, *more)
        for name, file, more in (
            ("plan", tiny, ()), ("hostile", hostile, ("--top", "3")), ("infeasible", deadline, ()),
        )
    }  # fmt: skip
    changed = json.loads(plans["plan"].read_text("utf-8"))
    changed["cost"]["items"][0] |= {"item": ALERT}
    plans["rejected"] = folder / "rejected.json"
    plans["rejected"].write_text(json.dumps(changed), "utf-8")
    questions = {"plan": tiny, "hostile": hostile, "infeasible": deadline, "rejected": tiny}
    return {name: _run(folder / f"{name}.html", "report", questions[name], plan) for name, plan in plans.items()}


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests of a run."""
    if why := chromium.why_not():
        pytest.skip(why)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium.browser()
    for word in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", "hide-scrollbars", STILL):
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=chromium.driver()))
    yield opened
    opened.quit()


@pytest.fixture
def opened(browser: Any, pages: dict[str, Path]) -> Callable[..., Any]:
    """`opened("plan", width=390)`: the browser with that page, that wide, on paper or on a light or dark screen."""

    def look(name: str, width: int = 1280, medium: str = "screen", scheme: str = "light") -> Any:
        resize(browser, width)
        prefer(browser, scheme, medium)
        for log in ("browser", "performance"):
            browser.get_log(log)
        browser.get(pages[name].as_uri())
        drawn = "return !document.querySelector('.front-plot') || document.querySelector('.front-details dt') !== null"
        until(browser, drawn)
        return browser

    return look


def _run(output: Path, *words: object) -> Path:
    CliRunner().invoke(main, [*map(str, words), "-o", str(output)], catch_exceptions=False)
    assert output.exists(), words
    return output


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """A server with tiny-64, which keeps nothing of those who ask."""
    with served(workers=3) as one:
        yield one


@pytest.fixture
def planner(browser: Any, client: Client) -> Callable[..., Any]:
    """`planner(390, "dark")`: a browser that has not seen the page before, with its whole answer."""

    def look(width: int = 1280, scheme: str = "light", fragment: str = "") -> Any:
        _open(browser, f"http://127.0.0.1:{client.port}/{fragment}", width, scheme, FORGET)
        return settled(browser)

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
