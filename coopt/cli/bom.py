"""`coopt bom`: counts and bill of networks alone."""

from __future__ import annotations

import click

from coopt.cli.arguments import Settings, a_file, settings_option
from coopt.cli.terminal import answer, check_place, note


@click.command()
@click.argument("source", metavar="INSTANCE|PLAN.json|DESIGNS.toml", shell_complete=a_file)
@click.argument("plan", metavar="[PLAN.json]", required=False, shell_complete=a_file)
@settings_option
@click.option("--design", metavar="ID", help="One design of a file of designs.  [all]")
@click.option("--beside", metavar="DESIGNS.toml", help="Networks beside that of a plan, for storage and management.")
@click.option("--csv", "table", metavar="FILE", help="Write the lines of the bill as procurement reads them.")
@click.option("--json", "as_json", is_flag=True, help="Print counts and bills as one JSON document.")
def command(
    source: str,
    plan: str | None,
    settings: Settings,
    design: str | None,
    beside: str | None,
    table: str | None,
    as_json: bool,
) -> None:
    """Print what networks consist of and cost.

    Takes a plan, an instance whose lists leave one network, or designs without a workload (docs/designs.md), of which
    the products that are named have a price. An instance and its plan have the lengths of cables, too.
    """
    from coopt.instance.files import load
    from coopt.instance.texts import write_text
    from coopt.plan.store import read_plan
    from coopt.report.csv_files import procurement_csv
    from coopt.report.networks import bill_report
    from coopt.report.terminal import rendered
    from coopt.solving.bills import bom

    if settings and source.lower().endswith(".json"):
        raise click.UsageError("--set: changes values of an instance, needs one in place of a plan.")
    if table is not None:
        check_place(table, source)
    asked = load(source, dict(settings)) if settings else source
    found = bom(asked, None if plan is None else read_plan(plan), design=design, beside=beside)
    if table is not None:
        write_text(table, procurement_csv(found))
        note(f"bill written to {table}")
    answer(found.model_dump_json(by_alias=True, indent=2) if as_json else rendered(bill_report(found)))
