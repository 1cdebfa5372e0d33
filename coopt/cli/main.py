"""The `coopt` command; a sub-command is imported when it is asked for."""

from __future__ import annotations

import errno
from collections.abc import Collection
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click
from click.core import ParameterSource

from coopt._version import __version__
from coopt.cli.arguments import REFUSED, STOPPED, note
from coopt.cli.defaults import config_file, defaults_of
from coopt.instance.texts import InstanceError, alternatives

COMMANDS = {  # with the file beside this one that each stands in
    "solve": "answers",
    "pareto": "answers",
    "explain": "answers",
    "best-model": "answers",
    "diff": "answers",
    "verify": "checks",
    "prove": "checks",
    "certify": "checks",
    "evaluate": "answers",
    "fits": "studies",
    "simulate": "checks",
    "traffic": "flows",
    "route": "flows",
    "faults": "flows",
    "collective": "networks",
    "export": "files",
    "cabling": "files",
    "report": "files",
    "serve": "files",
    "bom": "networks",
    "reproduce": "networks",
    "validate": "studies",
    "calibrate": "studies",
    "suite": "studies",
    "catalog": "networks",
    "model": "models",
    "schema": "files",
    "new": "files",
    "doctor": "setup",
    "completion": "setup",
}


class LazyGroup(click.Group):
    """A group whose commands stand in the files beside this one; it turns refused input into
    sentences.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of a planner's work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the file of one command."""
        if cmd_name not in COMMANDS:
            return None
        file = import_module(f"coopt.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(file, cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the closest commands for one that is not there."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise click.UsageError(_unknown("command", args[0], COMMANDS), ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command with the user's defaults; a refused input becomes messages and an exit
        code.
        """
        try:
            if ctx.default_map is None:
                ctx.default_map = defaults_of(self, ctx)
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            options = error.ctx.command.params if error.ctx is not None else []
            names = [name for option in options for name in option.opts if name.startswith("--")]
            raise click.UsageError(
                _unknown("option", error.option_name, names), error.ctx
            ) from None
        except click.BadParameter as error:
            option = error.param
            if (
                error.ctx is not None
                and option is not None
                and error.ctx.get_parameter_source(str(option.name)) is ParameterSource.DEFAULT_MAP
            ):
                raise click.BadParameter(
                    f"{error.message.rstrip('.')}, in {config_file()}", error.ctx, option
                ) from None
            raise
        except InstanceError as error:
            for complaint in error.complaints:
                note(complaint)
            ctx.exit(REFUSED)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            note("the answer could not be written: no space left on the device")
            ctx.exit(REFUSED)
        except KeyboardInterrupt:
            note("interrupted")
            ctx.exit(STOPPED)


def _unknown(kind: str, typed: str, names: Collection[str]) -> str:
    """That there is no such name, and those that begin as typed, or else look like it."""
    close = [name for name in names if name.startswith(typed)] or get_close_matches(
        typed, names, n=2
    )
    meant = f" Did you mean {alternatives(map(repr, close))}?" if close else ""
    return f"No such {kind} {typed!r}.{meant}"


@click.group(
    cls=LazyGroup,
    name="coopt",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="coopt", message="%(prog)s %(version)s")
def main() -> None:
    """Plan GPU training clusters: choose HB domains, network and parallelism together, with a
    proof.

    Exit codes: 0 done, 1 refused input, 2 misuse, 3 proven infeasible, 4 stopped before proof, 5
    rejected (verify, report: the plan is wrong; certify: its bound is not proven; simulate: a time
    bound is missed; validate: an error exceeds the limit; reproduce: a count differs; doctor:
    something is missing).
    """


if __name__ == "__main__":
    main(prog_name="coopt")
