"""`coopt new`: a commented instance to start from."""

from __future__ import annotations

from importlib.resources import files

import click

from coopt.cli.terminal import note
from coopt.instance.texts import write_new_text


@click.command()
@click.argument("file")
def command(file: str) -> None:
    """Write a commented instance to start from.

    It loads and solves as it is. An existing FILE stays untouched.
    """
    text = files("coopt.cli").joinpath("starter.toml").read_text("utf-8")
    write_new_text(file, text)
    note(f"instance written to {file}; next: coopt solve {file}")
