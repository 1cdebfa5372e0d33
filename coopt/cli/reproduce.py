"""`coopt reproduce`: published networks counted again."""

from __future__ import annotations

import click

from coopt.cli.arguments import a_file
from coopt.cli.terminal import answer, note

REFUSED, OFF = 1, 5


@click.command()
@click.argument("designs", metavar="DESIGNS.toml", shell_complete=a_file)
@click.option("--cheapest", is_flag=True, help="Find the cheapest network of the same end points and bandwidth.")
@click.option("--json", "as_json", is_flag=True, help="Print the rows as one JSON document.")
@click.pass_context
def command(ctx: click.Context, designs: str, cheapest: bool, as_json: bool) -> None:
    """Count published networks again.

    DESIGNS.toml holds networks without a workload and the switches and links that their sources count
    (docs/designs.md); each row says which tier differs.

    Exit codes: 0 all come out exactly, 1 a design cannot be wired, 5 one is off.
    """
    from coopt.report.networks import reproduction_report
    from coopt.report.terminal import rendered
    from coopt.solving.reproduction import reproduce

    found = reproduce(designs, cheapest=cheapest)
    answer(found.model_dump_json(by_alias=True, indent=2) if as_json else rendered(reproduction_report(found)))
    for why in found.refused:
        note(why)
    ctx.exit(REFUSED if found.refused else OFF if found.exact < found.of else 0)
