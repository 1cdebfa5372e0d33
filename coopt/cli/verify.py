"""`coopt verify`: derive a plan's claims again, from the instance and the plan alone."""

from __future__ import annotations

from pathlib import Path

import click

from coopt.cli.arguments import Settings, instance_argument, plan_argument
from coopt.cli.terminal import answer

REJECTED = 5


@click.command()
@instance_argument
@plan_argument
@click.option("--routes", metavar="FILE.csv", help="Check these routes, too, where flows are pinned to paths.")
@click.option("--part", metavar="NAME", help="With --routes: one part of several.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    instance: str,
    settings: Settings,
    plan: str,
    routes: str | None,
    part: str | None,
    as_json: bool,
) -> None:
    """Check every claim of PLAN.json without the solver.

    Everything is derived again from INSTANCE and the plan alone. `--routes` takes the table that `coopt export --format
    routes` writes, and follows every flow on the network.

    Exit codes: 0 accepted, 5 rejected.
    """
    from coopt.instance.files import load
    from coopt.instance.texts import read_text
    from coopt.plan.store import read_plan
    from coopt.report.proof import verdict_report
    from coopt.report.terminal import rendered
    from coopt.verifier.audit import verify

    if part is not None and routes is None:
        raise click.UsageError("--part: needs --routes.")
    remedy = "the file that `coopt export --format routes` writes"
    table = None if routes is None else read_text(Path(routes), "a CSV file", remedy)
    verdict = verify(load(instance, dict(settings)), read_plan(plan), routes=table, part=part)
    answer(verdict.model_dump_json(indent=2) if as_json else rendered(verdict_report(verdict)))
    ctx.exit(0 if verdict.accepted else REJECTED)
