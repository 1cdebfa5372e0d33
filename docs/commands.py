"""Write docs/reference/cli.md, every command with its options, from the help texts of `coopt`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from coopt.cli.main import main as coopt
from coopt.instance.texts import write_text

PLACE = Path(__file__).parent / "reference" / "cli.md"
HEAD = """\
# Commands

What `coopt COMMAND --help` says. The answer goes to stdout, the story to stderr; where a command
has `--json`, it prints the answer as one JSON document and nothing else. Options without words are
those of an earlier command.
"""
LONG = 8  # words of an option that stand once


def main() -> None:
    """Write the page."""
    write_text(PLACE, page())


def page() -> str:
    """The whole page: a section for each command."""
    root = click.Context(coopt, info_name="coopt")
    homes: dict[tuple[str, str], str] = {}
    sections = [section(context, homes) for context in below(root)]
    return "\n".join([HEAD, prose(coopt.help or ""), "", *sections])


def below(context: click.Context) -> Iterator[click.Context]:
    """Every command of a group, those of groups inside it as well."""
    group = context.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from below(inner)
        else:
            yield inner


def section(context: click.Context, homes: dict[tuple[str, str], str]) -> str:
    """One command: its form, help and options; `homes` records where an option is explained."""
    command = context.command
    form = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    options = [one for one in command.params if isinstance(one, click.Option)]
    lines = []
    for name, meaning in (
        record for option in options if (record := option.get_help_record(context))
    ):
        home = homes.setdefault((name, meaning), context.command_path)
        is_said = home != context.command_path and len(meaning.split()) > LONG
        lines.append(f"- `{name}`{'' if is_said or name == '--json' else f': {meaning}'}")
    parts = [f"## {context.command_path}", f"`{form}`", prose(command.help or "")]
    return "\n\n".join([*parts, *(["\n".join(lines)] if lines else [])]) + "\n"


def prose(text: str) -> str:
    """A help text as Markdown: paragraphs on one line, pages as code."""
    paragraphs = [" ".join(part.split()) for part in text.replace("\b", "").split("\n\n")]
    return "\n\n".join(re.sub(r"(?<!`)docs/\w+\.md", r"`\g<0>`", part) for part in paragraphs)


if __name__ == "__main__":
    main()
