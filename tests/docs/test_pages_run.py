"""Every command, file and piece of Python on a page runs, and prints what the page shows."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from coopt.cli.main import main
from tests.conftest import Told
from tests.docs.shown import BLOCK, ROOT, Reader, commands_of, compare
from tests.suite.conftest import Here

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = [page for page in PAGES if re.search(r"^```(console|python)", page.read_text("utf-8"), re.MULTILINE)]
TUTORIAL = ROOT / "docs" / "tutorial.md"


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What readers have around them, to write into; suites answer in this process."""
    monkeypatch.setattr("coopt.suite.driver.LocalPool", Here)
    shutil.copytree(ROOT / "instances", tmp_path / "instances")
    for folder in ("benchmarks", "docs"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize("page", RUN, ids=name)
def test_a_page_runs_as_it_stands(page: Path, once: Callable[..., Told]) -> None:
    Reader(once).follow(page.read_text("utf-8"))


@pytest.mark.usefixtures("checkout")
def test_the_demo_runs(once: Callable[..., Told]) -> None:
    """README.md solves its question and tests/cli/test_cli_verify.py verifies it; here the page is of a small one."""
    commands = commands_of("demo")
    assert [command.split()[1] for command in commands] == ["solve", "verify", "report"]
    for command in commands:
        assert command.split()[2] == "instances/rail-only-gpt-1t.toml"
        small = command.replace("rail-only-gpt-1t", "tiny-64")
        Reader(once).follow(f"```console\n$ {small}\n...\n```\n")
    assert "<html" in Path("out/report.html").read_text("utf-8")


def test_a_command_stands_in_a_block_that_is_run() -> None:
    for page in PAGES:
        rest = BLOCK.sub("", page.read_text("utf-8"))
        assert not re.search(r"^(?: {4}|\$ )\$? ?coopt \w+ [\w./-]", rest, re.MULTILINE), name(page)


def test_the_commands_of_a_planner_are_all_in_the_tutorial() -> None:
    text = TUTORIAL.read_text("utf-8")
    for command in ("new", "solve", "explain", "pareto", "verify", "report"):
        assert command in main.list_commands(None)  # type: ignore[arg-type]
        assert f"$ coopt {command} " in text


def test_what_a_page_quotes_of_a_question_stands_in_its_file() -> None:
    text = (ROOT / "docs" / "questions.md").read_text("utf-8")
    asked = 0
    for section in text.split("\n## ")[1:]:
        (file,) = dict.fromkeys(re.findall(r"instances/[\w/-]+\.toml", section))
        asked += 1
        for language, _, block in BLOCK.findall(section):
            assert language == "console" or block in (ROOT / file).read_text("utf-8"), f"{file}: {block}"
    assert asked == 12


@pytest.mark.parametrize(
    ("shown", "printed"), [("b\n...\na\n", "a\nb\n"), ("a\nc\n", "a\nb\nc\n"), ("a\n...\na\n", "a\n"), ("d\n", "a\n")]
)
def test_other_words_are_noticed(shown: str, printed: str) -> None:
    with pytest.raises(AssertionError):
        compare("coopt", shown, printed)


def test_another_exit_code_is_noticed(monkeypatch: pytest.MonkeyPatch, once: Callable[..., Told]) -> None:
    monkeypatch.chdir(ROOT)
    failing = "coopt solve instances/infeasible-deadline.toml"
    Reader(once).follow(f"```console\n$ {failing}\n$ echo $?\n3\n```\n")
    for block in (f"$ {failing}\n", f"$ {failing}\n$ echo $?\n0\n", "$ rm -rf /\n"):
        with pytest.raises((AssertionError, ValueError)):
            Reader(once).follow(f"```console\n{block}```\n")
