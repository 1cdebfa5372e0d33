"""The installation looked through, completion written, defaults of the user."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import TINY, Coopt


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "config").mkdir()
    return tmp_path


def test_doctor_finds_what_is_needed_and_solves(coopt: Coopt) -> None:
    run = coopt("doctor", "--json")
    found = json.loads(run.stdout)
    assert run.exit_code == 0
    assert found["solver"]["solves"]
    assert found["cores"] >= 1
    needed = {row["package"] for row in found["packages"] if not row["extras"]}
    assert {"highspy", "pyomo", "numpy"} <= needed
    assert coopt("doctor").exit_code == 0


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", "data/bash-completion/completions/coopt"),
        ("zsh", "data/zsh/site-functions/_coopt"),
        ("fish", "config/fish/completions/coopt.fish"),
    ],
)
def test_completion_is_written_where_the_shell_looks(coopt: Coopt, home: Path, shell: str, place: str) -> None:
    assert coopt("completion", "install", "--shell", shell).exit_code == 0
    assert (home / place).read_text("utf-8") == coopt("completion", "show", "--shell", shell).stdout
    assert "_COOPT_COMPLETE" in (home / place).read_text("utf-8")


def test_defaults_come_before_those_of_coopt_and_after_what_is_typed(coopt: Coopt, home: Path) -> None:
    (home / "tiny.toml").write_text(TINY, "utf-8")
    (home / "config" / "coopt.toml").write_text('[solve]\njson = true\nobjective = "power"\n', "utf-8")
    kinds = [
        json.loads(coopt("solve", home / "tiny.toml", *typed).stdout)["objective"]["kind"]
        for typed in ((), ("--objective", "tco"))
    ]
    assert kinds == ["power", "tco"]


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("[solve]\ntime-limt = 3", 1, "no such option"),
        ("solve = 3", 1, "solve = 3: needs a table"),
        ("[suite]\nrun = 3", 1, "[suite.run]"),
        ("[suite.run]\nworker = 3", 1, "suite.run.worker: "),
        ("[sove]", 1, "sove: no such command"),
        ('[solve]\ntime-limit = "x"', 2, "coopt.toml"),
        ("[", 1, "coopt.toml: not TOML"),
    ],
)
def test_a_default_that_is_none_is_refused_with_its_file(coopt, home, text, code, says):
    (home / "tiny.toml").write_text(TINY, "utf-8")
    (home / "config" / "coopt.toml").write_text(text, "utf-8")
    run = coopt("solve", home / "tiny.toml")
    assert run.exit_code == code
    assert says in run.stderr
