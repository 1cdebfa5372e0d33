"""`coopt faults`: what the loss of any one part does to a plan."""

from __future__ import annotations

import click

from coopt.cli.terminal import answer


@click.command()
@click.argument("instance")
@click.argument("plan", metavar="PLAN.json")
@click.option("--json", "as_json", is_flag=True, help="Print the faults as one JSON document.")
def command(instance: str, plan: str, as_json: bool) -> None:
    """Take away each part of PLAN.json in turn.

    Says how many such parts there are, what becomes of every workload's iteration, what keeps it going, and which
    spares the plan has.
    """
    from coopt.instance.files import load
    from coopt.plan.store import read_plan
    from coopt.report.robust import faults_report
    from coopt.report.terminal import rendered
    from coopt.solving.without_parts import plan_faults

    found = plan_faults(load(instance), read_plan(plan))
    answer(found.model_dump_json(by_alias=True, indent=2) if as_json else rendered(faults_report(found)))
