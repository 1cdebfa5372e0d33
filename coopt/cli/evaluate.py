"""`coopt evaluate`: the value of one given design and mapping."""

from __future__ import annotations

import click

from coopt.cli.arguments import Settings, a_file, instance_argument
from coopt.cli.parts import part_option
from coopt.cli.terminal import TOP, answer


@click.command()
@instance_argument
@click.option(
    "--plan",
    "plan",
    metavar="PLAN.json",
    shell_complete=a_file,
    help="Work out the decisions of this plan, of whatever kind of question.",
)
@click.option("--mappings", "most", metavar="N", type=TOP, help="Rank mappings on this network: the N fastest.")
@part_option
@click.option("--json", "as_json", is_flag=True, help="Print the evaluation as one JSON document.")
def command(
    instance: str,
    settings: Settings,
    plan: str | None,
    most: int | None,
    part: str | None,
    as_json: bool,
) -> None:
    """Work out one given design, without a search.

    Prints cost, time and memory of the one design and mapping that INSTANCE allows; --set pins what it leaves open.
    With --plan the decisions are those of PLAN.json, and --set says what else would change. With --mappings the network
    alone is given, and the mappings that INSTANCE leaves open are ranked on it.
    """
    from coopt.instance.files import load
    from coopt.plan.store import decided, read_plan
    from coopt.report.plan import evaluation_report, given_plan_report, ranking_report
    from coopt.report.terminal import rendered
    from coopt.solving.evaluate import evaluate_instance
    from coopt.solving.mapping_ranks import mappings
    from coopt.solving.sensitivity.fixed import only_plan
    from coopt.verifier.evaluation import evaluate_plan

    question = load(instance, dict(settings))
    if most is not None:
        ranking = mappings(question, None if plan is None else read_plan(plan), most=most, part=part)
        answer(ranking.model_dump_json(by_alias=True, indent=2) if as_json else rendered(ranking_report(ranking)))
        return
    if part is not None:
        raise click.UsageError("--part: needs --mappings.")
    if plan is not None or question.problem != "shared":
        given = only_plan(question) if plan is None else read_plan(plan)
        question, given = decided(question, given, same=False)
        found = evaluate_plan(question, given)
        report = given_plan_report(question, given, found)
        answer(found.model_dump_json(by_alias=True, indent=2) if as_json else rendered(report))
        return
    evaluation = evaluate_instance(question)
    answer(
        evaluation.model_dump_json(by_alias=True, indent=2)
        if as_json
        else rendered(evaluation_report(question, evaluation))
    )
