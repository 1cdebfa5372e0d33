"""The headless Chromium in which tests open pages."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Debian's script of that name starts this program and waits: its driver ends but the script
PROGRAM = "/usr/lib/chromium/chromium-headless-shell"
BROWSERS = (PROGRAM, "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PACKAGES = "chromium-headless-shell chromium-driver"
STILL = "force-prefers-reduced-motion"  # what turns while an answer is sought is drawn anew all the time
NEEDED = f"they need Chromium and its driver (Debian: `apt-get install {PACKAGES}`)"


def driver() -> str | None:
    """The path of the program that drives the browser."""
    return shutil.which("chromedriver")


def browser() -> str | None:
    """The path of the browser."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def why_not() -> str:
    """Why tests leave the browser out; empty where they open one."""
    if os.environ.get("COOPT_NO_BROWSER"):
        return "COOPT_NO_BROWSER is set"
    return "" if driver() and browser() else NEEDED


@contextmanager
def started() -> Iterator[Any]:
    """The browser, without a window."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = browser()
    for word in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", "hide-scrollbars", STILL):
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver()))
    try:
        yield opened
    finally:
        opened.quit()
