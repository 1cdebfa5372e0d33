"""`coopt new`: a commented instance to start from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from coopt.cli.terminal import note
from coopt.instance.texts import write_new_text


@click.command()
@click.argument("file")
def command(file: str) -> None:
    """Write a commented instance to start from.

    It loads and solves as it is. Its first line tells editors where the JSON Schema of an instance is, so that they
    complete keys and catalog names. An existing FILE stays untouched.
    """
    schema = Path(str(files("coopt.instance").joinpath("instance.schema.json"))).resolve().as_uri()
    text = files("coopt.cli").joinpath("starter.toml").read_text("utf-8")
    write_new_text(file, f"#:schema {schema}\n{text}")
    note(f"instance written to {file}; next: coopt solve {file}")
