"""`coopt traffic`: who sends how much to whom in an iteration of a plan."""

from __future__ import annotations

import click

from coopt.cli.arguments import Settings, instance_argument, plan_argument
from coopt.cli.parts import answer_parts, check_single, part_option, parts_asked
from coopt.cli.terminal import check_places, note


@click.command()
@instance_argument
@plan_argument
@click.option("--workload", metavar="NAME", help="One workload of several.  [all]")
@click.option(
    "--collective",
    type=click.Choice(["ring", "tree"]),
    default="ring",
    help="How replicas add gradients across domains under ZeRO 0.  [as the plan names it, else ring]",
)
@click.option("--heat-map", metavar="FILE", help="Draw who talks to whom (.png, .pdf, .svg).")
@click.option("--matrix", metavar="FILE.csv", help="Write the bytes of every pair of GPUs that talks.")
@part_option
@click.option("--json", "as_json", is_flag=True, help="Print the traffic as one JSON document.")
def command(
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
    """Say who sends how much to whom in an iteration of PLAN.json.

    By class of traffic and phase: what stays inside an HB domain, on a leaf, or goes above; what one GPU sends; and
    how many pairs of GPUs never talk. Goes part by part, where the plan has several.
    """
    from coopt.instance.files import load
    from coopt.instance.texts import write_text
    from coopt.plan.store import decided, read_plan
    from coopt.report.pictures import check_picture, draw_heat_map
    from coopt.report.terminal import rendered
    from coopt.report.traffic import traffic_headline, traffic_report
    from coopt.solving.trusted import check_runs
    from coopt.traffic.of_plan import demands, parts_with, single_demand
    from coopt.traffic.summary import cells_of, matrix_csv, traffic_figures

    question, chosen = decided(load(instance, dict(settings)), read_plan(plan))
    if heat_map is not None:
        check_picture(heat_map, "--heat-map")
    check_places((heat_map, matrix), instance, plan)
    names = parts_with(chosen, parts_asked(question, chosen, part), workload)
    for option, given in (("--matrix", matrix), ("--heat-map", heat_map)):
        check_single(names, option, given)
    found = []
    for name in names:
        check_runs(question, chosen, "traffic", name)
        family, sent = demands(question, chosen, workload=workload, trees=collective == "tree", part=name)
        found.append((name, traffic_figures(question, family, sent)))
    (_, first), *_ = found
    if matrix is not None:
        write_text(matrix, matrix_csv(single_demand(sent, "--matrix")))
        note(f"bytes of {first.workloads[0].talking_pairs:,} pairs written to {matrix}")
    if heat_map is not None:
        draw_heat_map(cells_of(single_demand(sent, "--heat-map")), traffic_headline(first.workloads[0]), heat_map)
        note(f"picture written to {heat_map}")
    answer_parts(found, lambda traffic: rendered(traffic_report(traffic)), as_json=as_json)
