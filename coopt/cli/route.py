"""`coopt route`: paths for the traffic of a plan, and what they cost."""

from __future__ import annotations

import click

from coopt.cli.arguments import Settings, instance_argument, plan_argument
from coopt.cli.parts import answer_parts, check_single, part_option, parts_asked
from coopt.cli.terminal import TIME_LIMIT, check_place, note

ALGORITHMS = ("spray", "best", "ecmp", "greedy", "colouring", "sheltered", "annealing", "exact")


@click.command()
@instance_argument
@plan_argument
@click.option(
    "--algorithm", type=click.Choice(ALGORITHMS), help="How paths are chosen, if not as network.routing says."
)
@click.option(
    "--fail-cores",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Top switches of each rail or plane that are out.",
)
@click.option("--seed", metavar="N", type=click.IntRange(min=0), default=0, help="Seed of what is random.")
@click.option(
    "--time-limit", "time_limit_s", metavar="S", type=TIME_LIMIT, default=60.0, help="Seconds for `exact` (60)."
)
@click.option("--links", metavar="FILE.csv", help="Write the load of every link to this file.")
@part_option
@click.option("--json", "as_json", is_flag=True, help="Print routes and loads as one JSON document.")
def command(
    instance: str,
    settings: Settings,
    plan: str,
    algorithm: str | None,
    fail_cores: int,
    seed: int,
    time_limit_s: float,
    links: str | None,
    part: str | None,
    as_json: bool,
) -> None:
    """Route the traffic of PLAN.json above the leaves.

    Flows are sprayed over all paths, pinned to one each, or drawn at random, as `network.routing` says. Says how far
    the busiest link stretches each collective, what no routing can undercut, and the iteration time with these routes.
    Goes part by part, where the plan has several.
    """
    from coopt.instance.files import load
    from coopt.instance.texts import write_text
    from coopt.plan.store import decided, read_plan
    from coopt.report.csv_files import links_csv
    from coopt.report.terminal import rendered
    from coopt.report.traffic import routing_report
    from coopt.solving.plan_routes import route_plan

    question, chosen = decided(load(instance, dict(settings)), read_plan(plan))
    names = parts_asked(question, chosen, part)
    check_single(names, "--links", links)
    if links is not None:
        check_place(links, instance, plan)
    found = [
        (
            name,
            route_plan(
                question,
                chosen,
                part=name,
                algorithm=algorithm,
                seed=seed,
                failed_cores=fail_cores,
                time_limit_s=time_limit_s,
                with_links=as_json or links is not None,
            ),
        )
        for name in names
    ]
    if links is not None:
        (_, routing), *_ = found
        write_text(links, links_csv(routing))
        note(f"loads of {len(routing.links):,} bundles written to {links}")
    answer_parts(found, lambda routing: rendered(routing_report(routing)), as_json=as_json)
