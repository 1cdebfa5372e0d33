"""`coopt schema`: the formats as JSON Schema."""

from __future__ import annotations

import click

from coopt.cli.terminal import answer


@click.command()
@click.argument("which", type=click.Choice(["instance", "designs", "plan", "front"]), default="instance")
def command(which: str) -> None:
    """Print the JSON Schema of a format.

    Formats: an instance, a file of designs, a plan, a front. Without an argument: of an instance.
    """
    from coopt.plan.json_schema import schema_json

    answer(schema_json(which))
