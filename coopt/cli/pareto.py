"""`coopt pareto`: the least cost for every iteration time."""

from __future__ import annotations

from typing import Any

import click

from coopt.cli.arguments import Settings, instance_argument
from coopt.cli.terminal import PACE, POINTS, TIME_LIMIT, answer, check_folder, note

STOPPED, INFEASIBLE = 4, 3


@click.command()
@instance_argument
@click.option("--points", metavar="N", type=POINTS, default=20, show_default=True, help="Most points to show.")
@click.option("--slowest", metavar="X", type=PACE, help="Slowest iteration, as a multiple of the bounds.  [no limit]")
@click.option(
    "--over",
    metavar="WORKLOAD|days|budget",
    multiple=True,
    help="Move the bound of this workload only, others stay; repeatable. Or show the least cost for even dates (days), "
    "the fastest design for even budgets (budget).  [all of them]",
)
@click.option("--objective", type=click.Choice(["capex", "power", "tco"]), help="What to minimise.")
@click.option("--time-limit", "time_limit_s", metavar="S", type=TIME_LIMIT, help="Stop after S seconds.")
@click.option("-o", "--output", metavar="DIR", help="Write front.json, .csv, .png, .svg and .html into this folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the front as one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    instance: str,
    settings: Settings,
    output: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the least cost for every iteration time.

    From the fastest design of INSTANCE to the cheapest, each point proven, knees marked. Every bound is scaled by the
    same factor; the limits of INSTANCE hold for all points; with [availability] days count interruptions. Ctrl-C keeps
    the points proven so far. Questions of more than one network are solved at one pace after the other, until there are
    enough points.

    Exit codes: 0 all points proven, 3 proven that there is none, 4 stopped before.
    """
    from coopt.instance.files import load
    from coopt.report.fronts.files import check_packages, front_json, write_front
    from coopt.report.fronts.text import front_report
    from coopt.report.terminal import progress_shown, rendered
    from coopt.solving.fronts.sweep import pareto

    question = load(instance, dict(settings))
    if output is not None:
        check_packages("-o")
        check_folder(output)
    with progress_shown(note) as on_progress:
        front = pareto(question, on_progress=on_progress, **options)
    try:
        if output is not None:
            write_front(front, question, output)
            note(f"front written to {output}")
    finally:
        answer(front_json(front) if as_json else rendered(front_report(front, question)))
    ctx.exit(INFEASIBLE if front.stop_reason == "infeasible" else 0 if front.complete else STOPPED)
