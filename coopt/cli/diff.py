"""`coopt diff`: what changes from one plan to another."""

from __future__ import annotations

import click

from coopt.cli.arguments import a_file
from coopt.cli.terminal import answer


@click.command()
@click.argument("before", metavar="PLAN.json", shell_complete=a_file)
@click.argument("after", metavar="PLAN.json", shell_complete=a_file)
@click.option("--json", "as_json", is_flag=True, help="Print the difference as one JSON document.")
def command(before: str, after: str, as_json: bool) -> None:
    """Tell what changes between two plans.

    Design, lines of the bill, mappings, times and cost, from the first PLAN.json to the second. The plans may answer
    different instances.
    """
    from coopt.plan.difference import difference_of
    from coopt.plan.store import read_plan
    from coopt.report.comparison import difference_report
    from coopt.report.terminal import rendered

    found = difference_of(read_plan(before), read_plan(after))
    answer(found.model_dump_json(by_alias=True, indent=2) if as_json else rendered(difference_report(found)))
