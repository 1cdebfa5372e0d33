"""The examples of public functions run as they stand; tests/docs runs those of docs/embedding.md."""

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


@pytest.mark.parametrize("name", ["coopt", *FUNCTIONS])
def test_the_examples_of_public_names_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    public = coopt if name == "coopt" else coopt.public(name)
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
