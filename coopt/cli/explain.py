"""`coopt explain`: why a plan is as it is, or what has to give for one to exist."""

from __future__ import annotations

import click

from coopt.cli.arguments import Settings, a_file, instance_argument, with_settings
from coopt.cli.terminal import TIME_LIMIT, answer, note

EXIT_CODES = {"optimal": 0, "feasible": 0, "infeasible": 0, "unknown": 4}


@click.command()
@instance_argument
@click.argument("plan", metavar="[PLAN.json]", required=False, shell_complete=a_file)
@click.option("--time-limit", "time_limit_s", metavar="S", type=TIME_LIMIT, help="Stop solving after S seconds.")
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    instance: str,
    settings: Settings,
    plan: str | None,
    time_limit_s: float | None,
    as_json: bool,
) -> None:
    """Tell what binds a plan, or what has to give.

    For a plan (that of PLAN.json, or the cheapest): the slack of each bound and what a tighter or looser one costs, the
    best plan with every other HB domain, fabric, NIC and switch and why it loses, the range of each price within which
    the plan stays optimal, and the runner-up. Where nothing meets the bounds: the limits that conflict, and the least
    that lets a plan in, one limit at a time and jointly, each confirmed by solving again. Questions of more than one
    network are solved again for each of these, within the time limit for all together (300 s where neither --time-limit
    nor the instance gives one, 60 s for what has to give); what is left is named.

    Exit codes: 0 explained, 4 stopped before proof.
    """
    from coopt.instance.files import load
    from coopt.plan.store import read_plan
    from coopt.report.explanation import explanation_report
    from coopt.report.terminal import progress_shown, rendered
    from coopt.solving.reasons.gpus import settings_to_compare
    from coopt.solving.reasons.why import explain

    question, given = load(instance, dict(settings)), None if plan is None else read_plan(plan)
    with progress_shown(note) as on_progress:
        found = explain(question, given, time_limit_s=time_limit_s, on_progress=on_progress)
    left_out = settings_to_compare(question) if found.status in ("optimal", "feasible") else ()
    answer(found.model_dump_json(by_alias=True, indent=2) if as_json else rendered(explanation_report(found)))
    for name, values in left_out:
        note(f"to compare {name}: {with_settings(['coopt', 'explain', instance], (*settings, *values.items()))}")
    ctx.exit(EXIT_CODES[found.status])
