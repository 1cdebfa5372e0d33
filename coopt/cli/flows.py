"""Commands on what flows in the network of a plan: `coopt traffic`, `route`, and `faults` after a
part is lost.
"""

from __future__ import annotations

import click

from coopt.cli.arguments import (
    TIME_LIMIT,
    Settings,
    answer_parts,
    check_places,
    check_single,
    instance_argument,
    note,
    part_option,
    parts_asked,
    plan_argument,
    write_file,
)

ALGORITHMS = ("spray", "best", "ecmp", "greedy", "colouring", "sheltered", "annealing", "exact")


@click.command()
@instance_argument
@plan_argument
@click.option(
    "--workload", metavar="NAME", help="The workload to show, if there are several.  [all]"
)
@click.option(
    "--collective",
    type=click.Choice(["ring", "tree"]),
    default="ring",
    help=(
        "How gradients are all-reduced between HB domains under ZeRO 0: `tree` in two binary trees;"
        " `ring` as the plan says, in a ring if it says nothing.  [ring]"
    ),
)
@click.option(
    "--heat-map",
    metavar="FILE",
    help="Draw the bytes between GPUs as a heat map (.png, .pdf, .svg).",
)
@click.option(
    "--matrix", metavar="FILE.csv", help="Write the bytes of every pair of GPUs that communicates."
)
@part_option
@click.option("--json", "as_json", is_flag=True, help="Print the traffic as one JSON document.")
def traffic(
    instance: str,
    settings: Settings,
    plan: str,
    collective: str,
    heat_map: str | None,
    matrix: str | None,
    workload: str | None,
    part: str | None,
    as_json: bool,
) -> None:
    """Show which GPUs send how much to which in an iteration.

    By class of traffic and phase: bytes that stay inside an HB domain or on a leaf, and bytes that
    go above; what one GPU sends; and how many pairs of GPUs never communicate.
    """
    from coopt.instance.schema import load
    from coopt.plan.store import decided, read_plan
    from coopt.report.pictures import check_picture, draw_heat_map
    from coopt.report.traffic import traffic_headline, traffic_report
    from coopt.report.words import rendered
    from coopt.solving.plan_traffic import check_runs
    from coopt.traffic.of_plan import demands, parts_with, single_demand
    from coopt.traffic.summary import cells_of, matrix_csv, traffic_figures

    question, decided_plan = decided(load(instance, dict(settings)), read_plan(plan))
    if heat_map is not None:
        check_picture(heat_map, "--heat-map")
    check_places((heat_map, matrix), instance, plan)
    names = parts_with(decided_plan, parts_asked(question, decided_plan, part), workload)
    for option, file in (("--matrix", matrix), ("--heat-map", heat_map)):
        check_single(names, option, file)
    reports = []
    for name in names:
        check_runs(question, decided_plan, "traffic", name)
        family, sent_demands = demands(
            question, decided_plan, workload=workload, trees=collective == "tree", part=name
        )
        reports.append((name, traffic_figures(question, family, sent_demands)))
    (_, figures), *_ = reports
    talking = sum(workload.talking_pairs for workload in figures.workloads[:1])
    write_file(
        matrix,
        lambda: matrix_csv(single_demand(sent_demands, "--matrix")),
        f"bytes sent between {talking:,} pairs of GPUs",
    )
    if heat_map is not None:
        draw_heat_map(
            cells_of(single_demand(sent_demands, "--heat-map")),
            traffic_headline(figures.workloads[0]),
            heat_map,
        )
        note(f"picture written to {heat_map}")
    answer_parts(reports, lambda traffic: rendered(traffic_report(traffic)), as_json=as_json)


@click.command()
@instance_argument
@plan_argument
@click.option(
    "--algorithm",
    type=click.Choice(ALGORITHMS),
    help="Routing algorithm, in place of that of network.routing.",
)
@click.option(
    "--fail-cores",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Failed top-tier switches in each rail or plane.",
)
@click.option(
    "--seed", metavar="N", type=click.IntRange(min=0), default=0, help="Seed of random choices."
)
@click.option(
    "--time-limit",
    "time_limit_s",
    metavar="S",
    type=TIME_LIMIT,
    default=60.0,
    help="Time limit of `exact` in seconds (60).",
)
@click.option("--links", metavar="FILE.csv", help="Write the load of every link to this file.")
@part_option
@click.option(
    "--json", "as_json", is_flag=True, help="Print routes and loads as one JSON document."
)
def route(
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

    As `network.routing` says, flows are sprayed over all paths, pinned to one each, or each sent on
    a random one (ecmp). Shows for every collective how much its busiest link slows it and the least
    slowdown of any routing, then the iteration time with these routes.
    """
    from coopt.instance.schema import load
    from coopt.plan.store import decided, read_plan
    from coopt.report.csv_files import links_csv
    from coopt.report.traffic import routing_report
    from coopt.report.words import rendered
    from coopt.solving.plan_routes import route_plan

    question, decided_plan = decided(load(instance, dict(settings)), read_plan(plan))
    names = parts_asked(question, decided_plan, part)
    check_single(names, "--links", links)
    check_places([links], instance, plan)
    routings = [
        (
            name,
            route_plan(
                question,
                decided_plan,
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
    (_, routing), *_ = routings
    write_file(
        links, lambda: links_csv(routing), f"loads of {len(routing.links):,} bundles of links"
    )
    answer_parts(routings, lambda routing: rendered(routing_report(routing)), as_json=as_json)


@click.command()
@instance_argument
@plan_argument
@part_option
@click.option("--json", "as_json", is_flag=True, help="Print the faults as one JSON document.")
def faults(instance: str, settings: Settings, plan: str, part: str | None, as_json: bool) -> None:
    """Take away every link, switch, GPU and domain in turn.

    Shows for each kind of part how many there are, how long an iteration of every workload takes
    without one, and how training continues; then the plan's spares.
    """
    from coopt.instance.schema import load
    from coopt.plan.store import decided, read_plan
    from coopt.report.faults import faults_report
    from coopt.report.words import rendered
    from coopt.solving.without_parts import plan_faults

    question, decided_plan = decided(load(instance, dict(settings)), read_plan(plan))
    cores = tuple(decided_plan.couplings.shared_cores)
    names = (
        (part,)
        if part in cores
        else parts_asked(question, decided_plan, part) + (cores if part is None else ())
    )
    answer_parts(
        ((name, plan_faults(question, decided_plan, part=name)) for name in names),
        lambda faults: rendered(faults_report(faults)),
        as_json=as_json,
    )
