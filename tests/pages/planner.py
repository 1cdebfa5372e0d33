"""The planner's page in a browser: wait for its answer, read it and type into it."""

import json
from typing import Any

WAIT_S, LOOK_AGAIN_S = 60, 0.05
SETTLED = """
const answer = document.getElementById('answer');
return answer.ariaBusy === 'false' && document.querySelector('.decision') && !answer.classList.contains('stale')
  && !document.querySelector('#front.stale, #why.stale, #reasons.stale');
"""
DRAWN = "return !document.querySelector('.front-chart') || document.querySelector('.point dt') !== null"
ANSWERED = "return document.querySelector('.decision') !== null"
"""The plan is there; its front and its reasons, which take most of the time, are still sought."""
HANGING = """
const [place] = arguments, ask = window.fetch;
window.ask = ask;
window.fetch = (path, given) => path !== place ? ask(path, given) : new Promise((_, end) =>
  given.signal.addEventListener('abort', () => end(new DOMException('', 'AbortError'))));
"""
NUMBER, SLIDER = "#bound-workload-0-max_iteration_time_s-number", "#bound-workload-0-max_iteration_time_s-slider"


def settled(browser: Any) -> Any:
    """The browser, once nothing is sought any more."""
    until(browser, SETTLED)
    return browser


def until_decision(browser: Any, words: str) -> None:
    """Wait until the plan says so."""
    until(browser, f"return document.querySelector('.decision')?.innerText.includes({json.dumps(words)})")


def until(browser: Any, script: str) -> None:
    """Wait until a script says yes."""
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(browser, WAIT_S, LOOK_AGAIN_S).until(lambda here: here.execute_script(script))


def prefer(browser: Any, scheme: str, medium: str = "screen") -> None:
    """Let the system prefer light or dark colours."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": medium, "features": features})


def resize(browser: Any, width: int) -> None:
    """Make the window that wide."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def text_of(browser: Any, place: str) -> str:
    """What one reads there."""
    return str(browser.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", place))


def put(browser: Any, place: str, value: str) -> None:
    """Type a value and leave the field."""
    browser.execute_script(
        "const one = document.querySelector(arguments[0]); one.value = arguments[1];"
        "one.dispatchEvent(new Event('change', {bubbles: true}))",
        place,
        value,
    )


def put_text(browser: Any, text: str) -> None:
    """Put another text into the editor."""
    browser.execute_script(
        "const area = document.getElementById('toml'); area.value = arguments[0];"
        "area.dispatchEvent(new Event('input', {bubbles: true}))",
        text,
    )


def until_asked(browser: Any, words: str) -> None:
    """Wait until the question says so."""
    until(browser, f"return sessionStorage.getItem('coopt-question').includes({json.dumps(words)})")


def until_bound(browser: Any, value: str) -> None:
    """Wait until the slider of time stands there."""
    until(browser, f"return document.querySelector('{NUMBER}')?.value === '{value}'")


def question(browser: Any) -> str:
    """The text of the question."""
    return str(browser.execute_script("return sessionStorage.getItem('coopt-question')"))
