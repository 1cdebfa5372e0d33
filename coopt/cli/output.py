"""Where words go: the answer to stdout, the story to stderr, a plan to its file."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import click
from click.core import ParameterSource

from coopt.instance.errors import InstanceError


def answer(text: str) -> None:
    """Write the answer to stdout; a reader that has gone away (`| head`) is no error and keeps the exit code."""
    try:
        _write(sys.stdout, text)
    except BrokenPipeError:
        _hush(sys.stdout)
    except OSError as error:
        _hush(sys.stdout)
        raise InstanceError(f"standard output: cannot be written ({error.strerror}), needs another place") from None


def note(text: str) -> None:
    """Tell something on stderr, one line with the name of the program before it."""
    try:
        _write(sys.stderr, f"coopt: {text}")
    except OSError:
        _hush(sys.stderr)


def command_line(ctx: click.Context) -> str:
    """The sub-command that runs, as one would type it, with the options that were given."""
    typed = ["coopt", str(ctx.info_name)]
    for parameter in ctx.command.params:
        name = str(parameter.name)
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
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
        When `output` is a folder or a device, one of the others, or lies in a folder that cannot be written to.
    """
    file = Path(output)
    try:
        if file.is_dir():
            raise InstanceError(f"{output}: is a folder, needs the name of a file (such as {file / 'plan.json'})")
        if file.exists() and not file.is_file():
            raise InstanceError(
                f"{output}: is no regular file, needs the name of a file (without one the answer goes to stdout)"
            )
        for other in map(Path, others):
            if file == other or (file.exists() and other.exists() and file.samefile(other)):
                raise InstanceError(f"{output}: is {other}, which is needed for something else, needs another name")
        with tempfile.TemporaryFile(dir=Path(os.path.realpath(file)).parent):
            pass
    except OSError as error:
        raise InstanceError(
            f"{output}: cannot be written ({error.strerror}), needs a folder one may write to"
        ) from None


def check_places(written: Iterable[str | None], *read: str) -> None:
    """Refuse places to write to, those that are given, as `check_place` does; each has to be another one."""
    places = [place for place in written if place is not None]
    for number, place in enumerate(places):
        check_place(place, *read, *places[:number])


def check_folder(output: str) -> None:
    """Refuse a folder that nothing can be written to; one that is not there yet is made later.

    Raises
    ------
    InstanceError
        When `output` or a folder above it is a file, or cannot be written to, or `output` is no name at all.
    """
    if not output:
        raise InstanceError("the folder to write to: its name is empty, needs the name of a folder (`.` for this one)")
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
    stream.write((text.rstrip("\n") + "\n").encode(encoding, "replace").decode(encoding))
    stream.flush()


def _hush(stream: TextIO) -> None:
    """Let what is left in the buffer, and all that follows, go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
