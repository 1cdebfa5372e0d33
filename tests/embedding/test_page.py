"""docs/embedding.md and the examples of public functions run as they stand."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

import coopt

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "embedding.md").read_text("utf-8")
FUNCTIONS = [name for name in coopt.__all__ if callable(getattr(coopt, name)) and name.islower()]


def test_the_blocks_of_the_page_run_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) > 4
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, "docs/embedding.md", "exec", dont_inherit=True), names)
    assert "stopped" in names


@pytest.mark.parametrize("name", ["coopt", *FUNCTIONS])
def test_the_examples_of_public_names_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    public = coopt if name == "coopt" else getattr(coopt, name)
    home = coopt if name == "coopt" else importlib.import_module(public.__module__)
    tests = [test for test in doctest.DocTestFinder(recurse=False).find(public, name, module=home) if test.examples]
    assert tests, f"{name} has no example"
    for test in tests:
        assert not any(doctest.SKIP in example.options for example in test.examples)
        assert doctest.DocTestRunner().run(test).failed == 0


def test_public_functions_were_found() -> None:
    assert {"load", "solve", "verify", "evaluate", "route", "faults"} <= set(FUNCTIONS)


@pytest.mark.parametrize("path", re.findall(r"`((?:docs|instances|tests)/[^`\s]*)`", PAGE))
def test_a_file_that_is_named_exists(path: str) -> None:
    assert (ROOT / path).exists()
