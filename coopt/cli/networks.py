"""Commands on hardware and on networks without a workload.

`coopt catalog`, `bom`, `reproduce`, and `collective` for an all-reduce on a fabric.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from coopt.cli.arguments import (
    BYTES,
    FAILED,
    LATENCY,
    RATE,
    REFUSED,
    SEED,
    Settings,
    a_file,
    answer,
    catalog_kind,
    catalog_name,
    check_places,
    note,
    settings_option,
    write_file,
)

if TYPE_CHECKING:
    from coopt.network.schedules.board import Board
    from coopt.network.schedules.schedule_form import Schedule
    from coopt.plan.traffic import Trained

ALGORITHMS = click.Choice(
    ["best", "multitree", "ring", "ring2d", "double-tree", "halving-doubling"]
)
PARTS = ("nic", "optic", "panel", "switch")
ROOTS = click.Choice(["even", "free"])


@click.command()
@click.argument("graph")
@click.option(
    "--algorithm",
    type=ALGORITHMS,
    default="best",
    help="All-reduce algorithm.  [best: the fastest]",
)
@click.option(
    "--bytes",
    "data_bytes",
    metavar="B",
    type=BYTES,
    default=1e9,
    help="Data to reduce (bytes).  [1e9]",
)
@click.option(
    "--gbit-s",
    metavar="X",
    type=RATE,
    help="Rate of every link, each way (Gbit/s).  [400, or the file's]",
)
@click.option(
    "--latency-s",
    metavar="L",
    type=LATENCY,
    default=1e-6,
    help="Start-up time of a step (s).  [1e-6]",
)
@click.option(
    "--roots",
    type=ROOTS,
    default="even",
    help="Shards of the trees: equal (even) or of any size (free, multitree only).  [even]",
)
@click.option(
    "--seed", metavar="N", type=SEED, default=0, help="Seed of randomised constructions.  [0]"
)
@click.option("--schedule", metavar="FILE.json", help="Write the schedule to this file.")
@click.option("--export", metavar="FILE", help="Write the graph to this file (.graphml, .dot).")
@click.option("--nic", metavar="NAME", help="To price GRAPH: NIC at each link of a domain.")
@click.option("--optic", metavar="NAME", help="To price GRAPH: transceiver at each end of a link.")
@click.option(
    "--panel", metavar="NAME", help="To price GRAPH: panel (patch-panel, ocs), two ports a link."
)
@click.option("--switch", metavar="NAME", help="To price GRAPH: its switch.")
@click.option(
    "--train",
    metavar="INSTANCE PLAN.json",
    nargs=2,
    help="Time an iteration of this plan with GRAPH between its domains.",
)
@click.option(
    "--part", metavar="NAME", help="With --train: the part to time, if there are several."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")
def collective(
    graph: str,
    gbit_s: float | None,
    roots: str,
    schedule: str | None,
    export: str | None,
    train: tuple[str, str] | None,
    part: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Schedule an all-reduce on GRAPH.

    GRAPH is a shape (ring:8, torus:4x4, mesh:8x8, full:8, hyperx:4x4, dragonfly:9x4, regular:16:4,
    clos:4x8:2, fattree:4) or a .graphml file. The schedule is simulated on the graph before it is
    shown.
    """
    from coopt.network.direct_graphs import catalog_parts, fabric_bill
    from coopt.network.direct_shapes import fabric
    from coopt.network.graph_files import graph_text
    from coopt.network.schedules.board import board_of
    from coopt.network.schedules.outcome import collective
    from coopt.network.schedules.schedule_form import schedule_json
    from coopt.report.networks import collective_json, collective_report
    from coopt.report.words import rendered

    if roots == "free" and options["algorithm"] not in ("best", "multitree"):
        raise click.UsageError(
            f"--roots free: the algorithm {options['algorithm']} has no trees with free roots,"
            " needs --algorithm multitree or best."
        )
    wires, parts = fabric(graph, gbit_s=gbit_s), {kind: options.pop(kind) for kind in PARTS}
    bill = fabric_bill(wires, **catalog_parts(parts)) if any(parts.values()) else None
    check_places((schedule, export), graph, *(train or ()))
    write_file(export, lambda: graph_text(wires, str(export)), "graph")
    outcome, plan = collective(wires, **options, free_roots=roots == "free")
    trained = (
        None
        if train is None
        else _trained(train, part, board_of(wires), plan, options["latency_s"])
    )
    write_file(schedule, lambda: schedule_json(board_of(wires), plan), "schedule")
    answer(
        collective_json(outcome, bill, trained)
        if as_json
        else rendered(collective_report(outcome, bill, trained))
    )


def _trained(
    train: tuple[str, str], part: str | None, board: Board, schedule: Schedule, latency_s: float
) -> tuple[Trained, ...]:
    """Iterations of the plan in a file with the graph between its domains."""
    from coopt.instance.schema import load
    from coopt.plan.store import decided, read_plan
    from coopt.solving.plan_traffic import train_on

    instance, plan = train
    return train_on(
        *decided(load(instance), read_plan(plan)), board, schedule, latency_s=latency_s, part=part
    )


@click.command()
@click.argument("source", metavar="INSTANCE|PLAN.json|DESIGNS.toml", shell_complete=a_file)
@click.argument("plan", metavar="[PLAN.json]", required=False, shell_complete=a_file)
@settings_option
@click.option("--design", metavar="ID", help="The design to show, of a file of designs.  [all]")
@click.option(
    "--beside",
    metavar="DESIGNS.toml",
    help="Add these networks for storage and management to the bill.",
)
@click.option(
    "--against", metavar="DESIGNS.toml", help="Compare the plan's network with these designs."
)
@click.option(
    "--csv", "table", metavar="FILE", help="Write the lines of the bill as a CSV for procurement."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print counts and bills as one JSON document."
)
def bom(
    source: str,
    plan: str | None,
    settings: Settings,
    design: str | None,
    beside: str | None,
    against: str | None,
    table: str | None,
    as_json: bool,
) -> None:
    """Print the parts of networks and their cost.

    Reads a plan, an instance whose lists allow only one network, or designs without a workload
    (docs/designs.md); parts whose product a design does not name have no price. With an instance
    and its plan, cable lengths are shown, too.
    """
    from coopt.instance.schema import load
    from coopt.plan.store import read_plan
    from coopt.report.csv_files import procurement_csv
    from coopt.report.networks import bill_report
    from coopt.report.words import rendered
    from coopt.solving.bills import bom

    if settings and source.lower().endswith(".json"):
        raise click.UsageError(
            "--set: a plan is given, but only values of an instance can be set, needs an instance."
        )
    check_places([table], source, *filter(None, (plan, beside, against)))
    bill = bom(
        load(source, dict(settings)) if settings else source,
        None if plan is None else read_plan(plan),
        design=design,
        beside=beside,
        against=against,
    )
    write_file(table, lambda: procurement_csv(bill), "bill")
    answer(
        bill.model_dump_json(by_alias=True, indent=2) if as_json else rendered(bill_report(bill))
    )


@click.command()
@click.argument("designs", metavar="DESIGNS.toml", shell_complete=a_file)
@click.option(
    "--cheapest",
    is_flag=True,
    help="Find the cheapest network of the same end points and bandwidth.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the rows as one JSON document.")
@click.pass_context
def reproduce(ctx: click.Context, designs: str, cheapest: bool, as_json: bool) -> None:
    """Count published networks again.

    DESIGNS.toml holds networks and the numbers of switches, links and modules that their sources
    state (docs/designs.md); coopt counts them, and each row shows where the two differ.

    Exit codes: 0 all counts agree, 1 a design cannot be wired, 5 a count differs.
    """
    from coopt.report.networks import reproduction_report
    from coopt.report.words import rendered
    from coopt.solving.reproduction import reproduce

    reproduction = reproduce(designs, cheapest=cheapest)
    answer(
        reproduction.model_dump_json(by_alias=True, indent=2)
        if as_json
        else rendered(reproduction_report(reproduction))
    )
    for refusal in reproduction.refused:
        note(refusal)
    ctx.exit(
        REFUSED if reproduction.refused else FAILED if reproduction.exact < reproduction.of else 0
    )


@click.group()
def catalog() -> None:
    """Show the hardware and models to choose from."""


@catalog.command(name="list")
@click.argument("kind", required=False, shell_complete=catalog_kind)
def list_(kind: str | None) -> None:
    """List the entries of every kind, or of one KIND.

    KIND is gpu, hb_domain, nic, switch, optic, panel, model or another kind of the list.
    """
    from coopt.instance.catalog import KINDS, entries
    from coopt.report.catalog import list_report
    from coopt.report.words import rendered

    if kind is not None and kind not in KINDS:
        raise click.BadParameter(f"{kind!r} is not one of {', '.join(KINDS)}.", param_hint="KIND")
    answer(rendered(list_report({name: entries(name) for name in ([kind] if kind else KINDS)})))


@catalog.command()
@click.argument("name", shell_complete=catalog_name)
@click.option(
    "--toml",
    "form",
    flag_value="toml",
    help="Print the entry in the form of a catalog file.",
)
@click.option("--json", "form", flag_value="json", help="Print the entry as one JSON document.")
def show(name: str, form: str | None) -> None:
    """Show the figures of the entry NAME.

    Each has its meaning; those stated have a source and a tag for how they are known (-: a
    default).
    """
    from coopt.report.catalog import entries_json, entries_toml, find_everywhere, show_report
    from coopt.report.words import rendered

    matches = find_everywhere(name)
    texts = {"toml": entries_toml, "json": entries_json}
    answer(texts[form](matches) if form else rendered(show_report(matches)))
