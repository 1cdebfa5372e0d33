"""`coopt new`: a commented instance to start from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from coopt.cli.output import note
from coopt.instance.errors import InstanceError


@click.command()
@click.argument("file")
def command(file: str) -> None:
    """Write a commented instance to start from.

    It loads and solves as it is. An existing FILE stays untouched.
    """
    text = files("coopt.cli").joinpath("starter.toml").read_text("utf-8")
    try:
        with Path(file).open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise InstanceError(f"{file}: already exists, needs the name of a new file") from None
    except OSError as error:
        raise InstanceError(f"{file}: cannot be written ({error.strerror}), needs a folder one may write to") from None
    note(f"instance written to {file}; next: coopt solve {file}")
