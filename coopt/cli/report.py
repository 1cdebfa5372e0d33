"""`coopt report`: a plan as one HTML file."""

from __future__ import annotations

from dataclasses import replace

import click

from coopt.cli.output import answer, check_place, command_line, note
from coopt.cli.verify import REJECTED


@click.command()
@click.argument("instance")
@click.argument("plan", metavar="PLAN.json")
@click.option("-o", "--output", metavar="REPORT.html", required=True, help="Write the page to this file.")
@click.option("--no-sensitivity", is_flag=True, help="Leave out what the answer hangs on, which takes more solves.")
@click.pass_context
def command(ctx: click.Context, instance: str, plan: str, output: str, no_sensitivity: bool) -> None:
    """Write PLAN.json as one HTML page for a meeting.

    Decision, network, bill with sources, time, traffic, sensitivity, verification and provenance in one file that
    needs no network. SOURCE_DATE_EPOCH fixes the date it carries.

    Exit codes: 0 done, 5 the plan is rejected (the page says so and why).
    """
    from coopt.instance.files import load
    from coopt.instance.texts import write_text
    from coopt.plan.store import read_plan
    from coopt.report.page.case import Case, Origin, moment
    from coopt.report.page.document import check_page, page_html, page_report
    from coopt.report.render import rendered
    from coopt.solving.reasons.why import explain
    from coopt.verifier.audit import verify

    check_page()
    check_place(output, instance, plan)
    question, chosen = load(instance), read_plan(plan)
    origin = Origin(command=command_line(ctx), instance_file=instance, plan_file=plan, written=moment())
    case = Case(instance=question, plan=chosen, verdict=verify(question, chosen), origin=origin)
    if case.answered and not no_sensitivity:
        case = replace(case, explanation=explain(question, chosen))
    write_text(output, page_html(case))
    note(f"page written to {output}")
    answer(rendered(page_report(case)))
    ctx.exit(0 if case.verdict.accepted else REJECTED)
