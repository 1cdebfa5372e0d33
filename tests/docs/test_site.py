"""`make site` builds every page without a warning; pages show all of their formulas and load nothing from elsewhere."""

import logging
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import coopt
from tests.docs.shown import ROOT

CONFIG = ROOT / "docs" / "site" / "mkdocs.yml"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src"}


class Loads(HTMLParser):
    """What a page loads, and how many formulas it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.formulas = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.formulas += tag == "math"
        self.addresses += [value or "" for key, value in attrs if LOADING.get(tag) == key]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a warning, such as a link that leads nowhere, stops the build."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    found: list[str] = []
    heard = logging.Handler(logging.WARNING)
    heard.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("mkdocs").addHandler(heard)
    config = load_config(str(CONFIG), site_dir=str(folder), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    try:
        build(config)
    finally:
        config.plugins.on_shutdown()
        logging.getLogger("mkdocs").removeHandler(heard)
    assert not found
    return folder


def built(site: Path, page: Path) -> Loads:
    return Loads((site / page.relative_to(ROOT / "docs").with_suffix(".html")).read_text("utf-8"))


def test_a_page_shows_every_formula_and_loads_nothing_from_elsewhere(site: Path) -> None:
    formulas = {}
    for page in PAGES:
        text, found = page.read_text("utf-8"), built(site, page)
        assert found.formulas == len(re.findall(r"^```math$|\$`[^`]+`\$", text, re.MULTILINE)), page
        assert found.addresses
        assert not [address for address in found.addresses if re.match(r"(?:https?:)?//", address)], page
        formulas[page.stem] = found.formulas
    assert formulas["mathematics"] > 100
    text = (site / "reference" / "instance.html").read_text("utf-8")
    assert '<a href="../network.html"><code>docs/network.md</code></a>' in text


def test_every_page_can_be_reached() -> None:
    listed = re.findall(r": ([\w/-]+\.md)$", CONFIG.read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(ROOT / "docs")) for page in PAGES)


def test_every_public_name_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    named = set(re.findall(r"^::: coopt\.(\w+)$", page, re.MULTILINE))
    public = set(coopt.__all__) - {"__version__"}
    homes = {name for name in public if f"::: {coopt.public(name).__module__}.{name}\n" in page}
    assert named | homes == public


def test_every_file_that_a_page_names_exists() -> None:
    folders = "benchmarks|coopt|docs|formulations|instances|tests"
    for page in (ROOT / "README.md", *PAGES):
        named = re.findall(rf"`((?:{folders})/[\w./-]+)`", page.read_text("utf-8"))
        assert [path for path in named if not (ROOT / path).exists()] == [], page
