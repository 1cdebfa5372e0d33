"""Every sentence that the program may say, in one list to be read in one go: `python
docs/sentences.py [FILE]`.

A sentence is a text in the code of at least `WORDS` words, or a paragraph of a command's help; no
docstring and no description of a key (those are in the reference pages). Values stand in braces, as
the code names them. Below a sentence stands an example, where documentation or a test shows one.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from coopt.cli.main import main as coopt
from docs.commands import below

ROOT = Path(__file__).parents[1]
WORDS = 3
ELSEWHERE = ("help", "description", "doc", "metavar", "short_help", "epilog")
"""Keywords whose texts are read elsewhere: help by its commands, descriptions on other pages."""

BETWEEN_TAGS = re.compile(r">([^<>]+)<(?!/?(?:script|style))")
SCRIPT = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
VALUE = re.compile(r"\$?\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
MARKUP = re.compile(
    r"<[^<>]*>|^MX |^- \w+: |\[type=|^\(?[.#\[{:^%?\\]|[=;]$|://|\\[dwsbS]|\w\|\w+\||^\w+/[\w+-]+(;|$)|'none';|sans-serif"
    r"|^outside (lower|right)|->\w+$|> table|^\w+\(\w+, |\.test\("
)
NAMES = re.compile(r"\b[a-z]+[_\d]\w*")
"""Of a list of names, which is no sentence, most words have a digit or an underscore."""


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A text with values in braces, and where it stands."""

    file: str
    line: int
    text: str

    @property
    def shown(self) -> re.Pattern[str]:
        """What it reads like with values."""
        pieces = map(re.escape, VALUE.split(self.text.strip()))
        whole = r"(?:\S|\S.{0,80}?)".join(pieces).replace(r"\ ", r"\s+")
        return re.compile(rf"{whole}\w*" if self.text.endswith("}") else whole)


def sentences() -> Iterator[Sentence]:
    """The sentences of Python, and of the scripts and the templates of pages, file by file."""
    for file in sorted((ROOT / "coopt").rglob("*.py")):
        name = str(file.relative_to(ROOT))
        found = dict.fromkeys(_of_python(ast.parse(file.read_text("utf-8"))))
        yield from (
            Sentence(file=name, line=line, text=text) for line, text in found if _reads(text)
        )
    for file in sorted((ROOT / "coopt").rglob("*.js")):
        for line, written in enumerate(file.read_text("utf-8").splitlines(), start=1):
            for texts in SCRIPT.findall(written):
                text = "".join(texts)
                if _reads(text):
                    yield Sentence(file=str(file.relative_to(ROOT)), line=line, text=text)
    for file in sorted({*(ROOT / "coopt").rglob("*.html"), *(ROOT / "coopt").rglob("*.j2")}):
        written = file.read_text("utf-8")
        for found in BETWEEN_TAGS.finditer(written):
            if _reads(found[1]):
                line = written.count("\n", 0, found.start()) + 1
                yield Sentence(file=str(file.relative_to(ROOT)), line=line, text=found[1])
    yield from _of_commands()


def _of_commands() -> Iterator[Sentence]:
    """The help of every command, paragraph by paragraph, and of every option once."""
    contexts = [click.Context(coopt, info_name="coopt")]
    contexts += below(contexts[0])
    commands = dict.fromkeys(
        command
        for context in contexts
        for command in (context.parent.command if context.parent else coopt, context.command)
    )
    said = set[str]()
    for command in commands:
        code = inspect.unwrap(command.callback or _of_commands).__code__
        file = str(Path(code.co_filename).relative_to(ROOT))
        options = (one.help for one in command.params if isinstance(one, click.Option))
        for text in [*(command.help or "").replace("\b", "").split("\n\n"), *options]:
            if text and _reads(text) and text not in said:
                said.add(text)
                yield Sentence(file=file, line=code.co_firstlineno, text=" ".join(text.split()))


def _of_python(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Texts below a node, without docstrings and without the texts of other pages."""
    if isinstance(node, ast.JoinedStr):
        yield node.lineno, "".join(map(_piece, node.values))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    if isinstance(node, ast.Assert) or (isinstance(node, ast.keyword) and node.arg in ELSEWHERE):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "AssertionError":
        return
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)):
            yield from _of_python(child)


def _piece(value: ast.expr) -> str:
    if isinstance(value, ast.Constant):
        return str(value.value)
    assert isinstance(value, ast.FormattedValue)
    return f"{{{ast.unparse(value.value)}}}"


def _reads(text: str) -> bool:
    """Whether a text has words enough, and is no markup, pattern or table of widths."""
    words = re.findall(r"(?<![\w.<{-])[A-Za-z][a-z'-]*(?![\w<(=])", VALUE.sub(" ", text))
    listed = len(NAMES.findall(VALUE.sub(" ", text))) > len(words)
    return len(words) >= WORDS and not listed and not MARKUP.search(VALUE.sub("X", text).strip())


def examples() -> str:
    """What documentation and tests show, in one line."""
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.py")]
    return " ".join(" ".join(file.read_text("utf-8").split()) for file in sorted(files))


def example(sentence: Sentence, shown: str) -> str | None:
    """The first that is shown of a sentence, found by its longest piece."""
    longest = max(VALUE.split(sentence.text.strip()), key=len)
    at = shown.find(" ".join(longest.split()))
    found = None if at < 0 else sentence.shown.search(shown, max(0, at - 300), at + 1000)
    return found.group() if found else None


def page() -> str:
    """All sentences by file, with examples."""
    lines, shown, file = ["# Every sentence"], examples(), ""
    for one in sentences():
        if one.file != file:
            file = one.file
            lines += ["", f"## {file}", ""]
        lines.append(f"- {' '.join(one.text.split())}")
        if VALUE.search(one.text) and (seen := example(one, shown)):
            lines.append(f"  - {seen}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page to the file that is named, or show it."""
    parser = argparse.ArgumentParser(
        description="List every sentence that the program may say, with examples."
    )
    parser.add_argument(
        "file", nargs="?", type=Path, help="Markdown file to write; standard output if left out"
    )
    file = parser.parse_args().file
    if file is None:
        sys.stdout.write(page())
    else:
        file.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
