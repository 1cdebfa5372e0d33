"""Random questions of the fixed profile are the same in every run, whatever else is tested."""

from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def drawn() -> list[int]:
    """Numbers as a test would draw them."""
    numbers = []

    @settings(max_examples=300, derandomize=True, database=None)
    @given(st.integers(0, 10**9))
    def draw(number: int) -> None:
        numbers.append(number)

    draw()
    return numbers


@pytest.mark.skipif(not settings().derandomize, reason="a campaign")
def test_modules_that_are_loaded_change_no_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn()
    (tmp_path / "module_of_numbers.py").write_text(f"NUMBERS = {[123_456_789 + n for n in range(500)]}", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import_module("module_of_numbers")
    assert drawn() == before
