"""docs/mathematics.md is what its generator writes from the docstrings, and leaves no equation out."""

import inspect
import re
import runpy
from pathlib import Path
from typing import Any

from formulations import choice, links, network, ring, routing

DOCS = Path(__file__).parents[1] / "docs"
TEXT = (DOCS / "mathematics.md").read_text("utf-8")
MAKER: dict[str, Any] = runpy.run_path(str(DOCS / "mathematics.py"))
EQUATIONS = [
    (name, function)
    for module in (network, routing, choice, ring, links)
    for name, function in vars(module).items()
    if name.startswith("add_") and callable(function)
]


def test_the_page_is_up_to_date() -> None:
    assert MAKER["page"]() == TEXT, "`make docs` writes it"


def test_every_equation_stands_on_the_page_under_a_label_of_its_own() -> None:
    labels = [MAKER["label"](function) for _, function in EQUATIONS]
    assert len(set(labels)) == len(labels)
    for label, (name, function) in zip(labels, EQUATIONS, strict=True):
        assert len(re.findall(rf"^\*\*{label}\*\* `{name}` \[[^;\]]+; [^\]]+\]\. ", TEXT, re.MULTILINE)) == 1
        written = re.findall(r"\.\. math:: (.+?)(?:\n\n|\Z)", inspect.getdoc(function) or "", re.DOTALL)
        assert all("```math\n" + " ".join(one.split()) + "\n```" in TEXT for one in written)
        assert written or name == "add_cut_list"


def test_every_symbol_has_its_line() -> None:
    texts = [inspect.getdoc(module) or "" for module in (network, routing, choice, ring, links)]
    symbols = re.findall(r"^- :math:`([^`]+)`", "\n".join(texts), re.MULTILINE)
    assert len(symbols) > 25
    assert all(f"- $`{symbol}`$ `" in TEXT for symbol in symbols)
    assert len(re.findall(r"^- \$`.+`\$ `.+`.*: .+$", TEXT, re.MULTILINE)) == len(symbols)


def test_no_placeholder_and_no_role_is_left() -> None:
    assert not re.search(r"<!-- [A-Z_]+ -->\s+<!--", TEXT)
    assert ":math:" not in TEXT
    assert ".. math" not in TEXT


def test_every_reference_is_cited_and_every_citation_listed() -> None:
    body, listed = TEXT.split("## References")
    names = re.findall(r"^- \[(\w+)\] ", listed, re.MULTILINE)
    cited = {name for group in re.findall(r"\[([A-Z]+(?:, [A-Z]+)*)\]", body) for name in group.split(", ")}
    assert cited == set(names)
