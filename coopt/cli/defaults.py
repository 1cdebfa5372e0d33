"""The user's defaults of options, in `~/.config/coopt.toml`: a table for each command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from coopt.instance.texts import InstanceError, alternatives, read_text, toml_of


def folder_of(variable: str, default: str) -> Path:
    """A folder of the XDG base directories."""
    return Path(os.environ.get(variable) or Path.home() / default)


def config_file() -> Path:
    """Where the user's defaults are."""
    return folder_of("XDG_CONFIG_HOME", ".config") / "coopt.toml"


def defaults_of(group: click.Group, ctx: click.Context) -> dict[str, Any]:
    """The user's defaults of options, by command, as click takes them.

    Raises
    ------
    InstanceError
        When the file cannot be read, or names a command or an option that is not there.
    """
    file = config_file()
    if not file.is_file():
        return {}
    text = read_text(
        file, "a TOML text file", "a file of default options, with one table for each command"
    )
    return _checked(group, ctx, toml_of(text, str(file)), str(file))


def _checked(
    group: click.Group, ctx: click.Context, tables: dict[str, Any], place: str, above: str = ""
) -> dict[str, Any]:
    """Defaults with the names that click gives options; all of them are those of a command. `above`
    is the table that these tables stand in, with a dot after it.
    """
    defaults: dict[str, Any] = {}
    for name, table in tables.items():
        command = group.get_command(ctx, name)
        if command is None:
            raise InstanceError(
                f"{place}: {above}{name}: no such command, needs one of"
                f" {', '.join(group.list_commands(ctx))}"
            )
        if not isinstance(table, dict):
            raise InstanceError(
                f"{place}: {above}{name} = {table!r}: needs a table, [{above}{name}], with one line"
                " for each option"
            )
        if isinstance(command, click.Group):
            defaults[name] = _checked(command, ctx, table, place, f"{above}{name}.")
            continue
        options = {
            option.lstrip("-"): str(parameter.name)
            for parameter in command.params
            if isinstance(parameter, click.Option)
            for option in parameter.opts
            if option.startswith("--")
        }
        for key in table:
            if key not in options:
                raise InstanceError(
                    f"{place}: {above}{name}.{key}: this command has no such option, needs"
                    f" {alternatives(options) if options else 'no keys'}"
                )
        defaults[name] = {options[key]: value for key, value in table.items()}
    return defaults
