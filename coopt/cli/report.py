"""`coopt report`: a plan as one HTML file."""

from __future__ import annotations

from dataclasses import replace

import click

from coopt.cli.arguments import Settings, instance_argument, plan_argument
from coopt.cli.terminal import POINTS, answer, check_place, command_line, note
from coopt.cli.verify import REJECTED


@click.command()
@instance_argument
@plan_argument
@click.option("-o", "--output", metavar="REPORT.html", required=True, help="Write the page to this file.")
@click.option("--points", metavar="N", type=POINTS, default=20, show_default=True, help="Most points of the chart.")
@click.option(
    "--no-front", is_flag=True, help="Leave out cost against time: a smaller page, and no more solves for it."
)
@click.option(
    "--no-sensitivity",
    is_flag=True,
    help="Leave out why this plan, which takes more solves.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    instance: str,
    settings: Settings,
    plan: str,
    output: str,
    points: int,
    **without: bool,
) -> None:
    """Write PLAN.json as one HTML page for a meeting.

    Decision, networks, bill, verification and provenance in one file that needs no network. The page of one network
    also has pictures, sources of prices, cost against time, traffic and sensitivity; `coopt pareto` and `coopt explain`
    answer these for all others. Where nothing meets the bounds, it says what has to give. SOURCE_DATE_EPOCH fixes the
    date it carries.

    Exit codes: 0 done, 5 the plan is rejected (the page says so and why).
    """
    from coopt.instance.files import load
    from coopt.instance.kinds import has_front
    from coopt.instance.texts import write_text
    from coopt.plan.store import decided, read_plan
    from coopt.report.fronts.files import check_packages
    from coopt.report.page.contents import Origin, PageCase, moment, page_html, page_report
    from coopt.report.terminal import progress_shown, rendered
    from coopt.solving.fronts.sweep import pareto
    from coopt.solving.reasons.why import explain
    from coopt.solving.runs import overridden
    from coopt.verifier.audit import verify

    check_packages("report")
    check_place(output, instance, plan)
    question, chosen = load(instance, dict(settings)), read_plan(plan)
    origin = Origin(command=command_line(ctx), instance_file=instance, plan_file=plan, written=moment())
    verdict = verify(question, chosen)
    if chosen.cost is not None:
        question, chosen = decided(question, chosen)
    case = PageCase(instance=question, plan=chosen, verdict=verdict, origin=origin)
    if case.answered and chosen.cost is None and question.problem != "shared" and not without["no_sensitivity"]:
        case = replace(case, explanation=explain(question, chosen))
    if case.answered and question.problem == "shared":
        asked = overridden("report", question, {}, chosen.objective.kind)
        traced = has_front(asked) and not without["no_front"]
        with progress_shown(note) as on_progress:
            front = pareto(asked, points, on_progress=on_progress) if traced else None
        explanation = explain(asked, chosen) if not without["no_sensitivity"] else None
        case = replace(case, instance=asked, front=front, explanation=explanation)
    write_text(output, page_html(case))
    note(f"page written to {output}")
    answer(rendered(page_report(case)))
    ctx.exit(0 if case.verdict.accepted else REJECTED)
