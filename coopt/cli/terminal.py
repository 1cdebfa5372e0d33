"""The terminal: the answer to stdout, the story to stderr, places to write to, values that are
typed and refused.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO

import click
from click.core import ParameterSource

from coopt.instance.errors import InstanceError
from coopt.instance.texts import check_digits, toml_text, write_text

TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of a text, so that a terminal shows something else than what
is there.
"""


def answer(text: str) -> None:
    """Write the answer to stdout; a reader that has gone away (`| head`) is no error and keeps the
    exit code.
    """
    try:
        _write(sys.stdout, text)
    except BrokenPipeError:
        _hush(sys.stdout)
    except OSError as error:
        _hush(sys.stdout)
        raise InstanceError(
            f"standard output: cannot be written ({error.strerror}), needs another place"
        ) from None


def note(text: str) -> None:
    """Tell something on stderr, one line with the name of the program before it."""
    try:
        _write(sys.stderr, f"coopt: {text}")
    except OSError:
        _hush(sys.stderr)


def write_file(file: str | None, content: Callable[[], str], what: str) -> None:
    """Write a file where one is named, and tell what it holds; `content` is made only then."""
    if file is not None:
        write_text(file, content())
        note(f"{what} written to {file}")


def command_line(ctx: click.Context) -> str:
    """The sub-command that runs, as one would type it, with the options that were given."""
    typed = ["coopt", str(ctx.info_name)]
    for parameter in ctx.command.params:
        name = str(parameter.name)
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            if parameter.type is SETTING:
                typed += [
                    word
                    for setting in ctx.params[name]
                    for word in ("--set", setting_text(*setting))
                ]
                continue
            flag = isinstance(parameter, click.Option) and parameter.is_flag
            typed += [parameter.opts[0]] if isinstance(parameter, click.Option) else []
            typed += [] if flag else [str(ctx.params[name])]
    return shlex.join(typed)


def check_place(output: str, *others: str) -> None:
    """Refuse a place where nothing can be written, before hours of search.

    Parameters
    ----------
    others
        Files that are read, or written by another option.

    Raises
    ------
    InstanceError
        When `output` is a folder or a device, one of the others, or lies in a folder that cannot be
        written to.
    """
    file = Path(output)
    try:
        if file.is_dir():
            raise InstanceError(
                f"{output}: is a folder, needs the name of a file (such as {file / 'plan.json'})"
            )
        if file.exists() and not file.is_file():
            raise InstanceError(
                f"{output}: is no regular file, needs the name of a file (without one the answer"
                " goes to stdout)"
            )
        for occupied in map(Path, others):
            if file == occupied or (
                file.exists() and occupied.exists() and file.samefile(occupied)
            ):
                raise InstanceError(
                    f"{output}: is {occupied}, which is needed for something else, needs another"
                    " name"
                )
        with tempfile.TemporaryFile(dir=Path(os.path.realpath(file)).parent):
            pass
    except OSError as error:
        raise InstanceError(
            f"{output}: cannot be written ({error.strerror}), needs a folder one may write to"
        ) from None


def check_places(outputs: Iterable[str | None], *inputs: str) -> None:
    """Refuse places to write to, those that are given, as `check_place` does; each has to be
    another one.
    """
    places = [place for place in outputs if place is not None]
    for number, place in enumerate(places):
        check_place(place, *inputs, *places[:number])


def check_folder(output: str) -> None:
    """Refuse a folder that nothing can be written to; one that is not there yet is made later.

    Raises
    ------
    InstanceError
        When `output` or a folder above it is a file, or cannot be written to, or `output` is no
        name at all.
    """
    if not output:
        raise InstanceError(
            "the folder to write to: its name is empty, needs the name of a folder (`.` for this"
            " one)"
        )
    folder = Path(os.path.realpath(output))
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise InstanceError(f"{output}: {folder.name} is no folder, needs the name of a folder")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InstanceError(
            f"{output}: cannot be written ({error.strerror}), needs a folder one may write to"
        ) from None


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return
    encoding = stream.encoding or "utf-8"
    text = TURNING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    stream.write((text.rstrip("\n") + "\n").encode(encoding, "replace").decode(encoding))
    stream.flush()


def _hush(stream: TextIO) -> None:
    """Let what is left in the buffer, and all that follows, go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class FiniteNumber(click.FloatRange):
    """A number in a range; infinity and NaN are in no range."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Refuse what is not finite, then what is out of range."""
        number = float(click.FLOAT.convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return float(super().convert(number, param, ctx))


class Setting(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """`key=value`; the value is read as TOML, and as plain text where it is not TOML."""

    name = "key=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        """Split at the first `=`."""
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not equals or not key.strip():
            self.fail(
                f"{value!r} needs the form key=value, such as network.max_tiers=2.", param, ctx
            )
        check_digits(text, f"--set {key.strip()}")
        return key.strip(), toml_value(text)


def setting_text(key: str, value: Any) -> str:
    """`key=value` as one types it: text without quotes where it is read as text all the same."""
    is_plain = isinstance(value, str) and toml_value(value) == value
    return f"{key}={value if is_plain else toml_text(value)}"


def toml_value(text: str) -> Any:
    """`2`, `[8, 16]`, `true` as TOML reads them; anything else is the text itself."""
    try:
        table = tomllib.loads(f"x = {text}")
    except (ValueError, RecursionError):
        return text.strip()
    return table["x"] if len(table) == 1 else text.strip()


TIME_LIMIT = FiniteNumber(min=0, min_open=True)
PERCENT = FiniteNumber(min=0)
GAP = FiniteNumber(min=0, max=1, max_open=True)
BYTES = FiniteNumber(min=1, max=1e18)
RATE = FiniteNumber(min=1e-9, max=1e15)
SEED = click.IntRange(min=0)
LATENCY = FiniteNumber(min=0, max=1e6)
PACE = FiniteNumber(min=0, min_open=True)
POINTS = click.IntRange(min=3, max=10_000)
TOP = click.IntRange(min=1, max=1000)
THREADS = click.IntRange(min=1)
SETTING = Setting()
