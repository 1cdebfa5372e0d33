"""`coopt traffic`: who sends how much to whom in an iteration of a plan."""

from __future__ import annotations

from typing import Any

import click

from coopt.cli.terminal import answer, check_places, note


@click.command()
@click.argument("instance")
@click.argument("plan", metavar="PLAN.json")
@click.option("--workload", metavar="NAME", help="One workload of several.  [all]")
@click.option(
    "--collective",
    type=click.Choice(["ring", "tree"]),
    default="ring",
    help="How replicas add gradients across domains under ZeRO 0.  [ring]",
)
@click.option("--heat-map", metavar="FILE", help="Draw who talks to whom (.png, .pdf, .svg).")
@click.option("--matrix", metavar="FILE.csv", help="Write the bytes of every pair of GPUs that talks.")
@click.option("--json", "as_json", is_flag=True, help="Print the traffic as one JSON document.")
def command(
    instance: str, plan: str, collective: str, heat_map: str | None, matrix: str | None, as_json: bool, **asked: Any
) -> None:
    """Say who sends how much to whom in an iteration of PLAN.json.

    By class of traffic and phase: what stays inside an HB domain, on a leaf, or goes above; what one GPU sends; and
    how many pairs of GPUs never talk.
    """
    from coopt.instance.files import load
    from coopt.instance.texts import write_text
    from coopt.plan.store import read_plan
    from coopt.report.pictures import check_picture, draw_heat_map
    from coopt.report.terminal import rendered
    from coopt.report.traffic import traffic_headline, traffic_report
    from coopt.solving.trusted import trusted_plan
    from coopt.traffic.of_plan import demands, single_demand
    from coopt.traffic.summary import cells_of, matrix_csv, traffic_figures

    question, chosen = load(instance), read_plan(plan)
    if heat_map is not None:
        check_picture(heat_map, "--heat-map")
    check_places((heat_map, matrix), instance, plan)
    trusted_plan(question, chosen, "traffic")
    family, sent = demands(question, chosen, **asked, trees=collective == "tree")
    found = traffic_figures(question, family, sent)
    if matrix is not None:
        write_text(matrix, matrix_csv(single_demand(sent, "--matrix")))
        note(f"bytes of {found.workloads[0].talking_pairs:,} pairs written to {matrix}")
    if heat_map is not None:
        draw_heat_map(cells_of(single_demand(sent, "--heat-map")), traffic_headline(found.workloads[0]), heat_map)
        note(f"picture written to {heat_map}")
    answer(found.model_dump_json(by_alias=True, indent=2) if as_json else rendered(traffic_report(found)))
