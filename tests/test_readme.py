"""What the README shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from coopt.cli.main import main

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text("utf-8")
RUNS = re.findall(r"```console\n\$ coopt (.*?)\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), RUNS)
def test_a_run_prints_what_is_shown(command: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(main, command.split())
    assert done.exit_code == 0
    place = 0
    for part in re.split(r"^\.\.\.$\n?", shown, flags=re.MULTILINE):
        found = done.stdout.find(part.strip("\n"), place)
        assert found >= 0, part
        place = found + len(part)


def test_there_are_runs() -> None:
    assert any(shown.strip() for _, shown in RUNS)


def test_the_python_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert names["again"].workloads == names["plan"].workloads  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", re.findall(r"`((?:docs|instances|benchmarks)/[^`]*)`", TEXT))
def test_a_file_that_is_named_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_every_command_is_listed() -> None:
    for name in main.list_commands(None):  # type: ignore[arg-type]
        assert f"`coopt {name}" in TEXT
