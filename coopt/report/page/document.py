"""The page as text: contents laid out by the templates beside this file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from coopt.report.page.contents import PageCase, opening, page_contents
from coopt.report.tables import Cell

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

NUMBER_AND_UNIT = re.compile(r"(?<=\d) (?=(?:[BMk]|[MkG]?W|m?s|x|[GMTP]B|GiB|Gbit/s|GB/s|GPUs?|NICs?)\b)")


def page_html(case: PageCase) -> str:
    """The whole file; it loads nothing from anywhere."""
    return environment().get_template("page.html.j2").render(page_contents(case)) + "\n"


def page_report(case: PageCase) -> Iterator[RenderableType]:
    """The same in two sentences."""
    verdict, said = opening(case)
    yield Text(said, style="bold")
    yield Text(verdict, style="green" if case.verdict.accepted else "bold red")


def environment() -> Environment:
    """Templates that escape every text; a name that is missing is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files("coopt").joinpath("report", "page")
    made = Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text("utf-8")),
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {"cell": _cell, "linked": _linked, "tied": tied}
    return made


def tied(text: str) -> str:
    """Keep a number and its unit on one line."""
    return NUMBER_AND_UNIT.sub("\N{NO-BREAK SPACE}", text)


def _cell(content: Cell) -> str | Markup:
    """The text of a cell; a verdict carries its class."""
    from markupsafe import Markup

    if isinstance(content, str):
        return tied(content)
    look = "bad" if "red" in str(content.style) else "good"
    return Markup('<span class="{}">{}</span>').format(look, content.plain)


def _linked(text: str) -> Any:
    """Addresses in a text as links."""
    from jinja2.utils import urlize
    from markupsafe import Markup

    return Markup(urlize(text, rel="noreferrer"))
