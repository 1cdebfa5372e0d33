"""Commands that show plans elsewhere, and those for people who write a question.

`coopt export` to other programs, `report` as a page, `serve` in a browser; `new` and `schema` of
the formats.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coopt.cli.arguments import (
    FAILED,
    POINTS,
    TIME_LIMIT,
    Settings,
    answer,
    check_place,
    command_line,
    instance_argument,
    note,
    plan_argument,
    write_file,
)
from coopt.instance.texts import InstanceError, alternatives, both, write_new_text, write_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from coopt.plan.schema import Plan


@dataclass(frozen=True, kw_only=True)
class Format:
    """One format: endings of its files, and which options it takes; `writers` has what writes it.

    `any_name` where files may end otherwise, as scripts do; `trusted` where mappings and placements
    have to be those of the instance, before a file is built on them; `binary` where files hold no
    text.
    """

    endings: tuple[str, ...]
    options: tuple[str, ...] = ()
    any_name: bool = False
    trusted: bool = False
    binary: bool = False


FORMATS = {
    "graphml": Format(endings=(".graphml", ".xml"), options=("compressed", "part")),
    "dot": Format(endings=(".dot", ".gv"), options=("compressed", "part")),
    "megatron": Format(endings=(".sh",), any_name=True, options=("workload", "part"), trusted=True),
    "bridge": Format(endings=(".yaml", ".yml"), options=("workload", "part"), trusted=True),
    "nemo": Format(endings=(".yaml", ".yml"), options=("workload", "part"), trusted=True),
    "torchtitan": Format(endings=(".py",), options=("workload", "part"), trusted=True),
    "ranks": Format(endings=(".csv",), options=("workload", "part"), trusted=True),
    "routes": Format(endings=(".csv",), options=("workload", "part")),
    "ns3-topology": Format(endings=(".txt", ".topo"), options=("part",)),
    "ns3-flows": Format(endings=(".txt",), options=("workload", "part")),
    "chakra": Format(endings=(".zip",), options=("workload", "part"), binary=True),
    "lp": Format(endings=(".lp",), options=("program",)),
    "mps": Format(endings=(".mps",), options=("program",)),
    "bom-csv": Format(endings=(".csv",), options=("part",)),
}
CABLING = {
    **dict.fromkeys(("csv", "netbox-devices", "netbox-interfaces", "netbox-cables"), (".csv",)),
    "dot": (".dot", ".gv"),
    "slurm": (".yaml", ".yml"),
}
"""Forms of a list of cables, with the endings of their files."""
SCHEMAS = click.Choice(["instance", "designs", "plan", "front"])


def check_ending(path: str, name: str, endings: tuple[str, ...]) -> None:
    """Refuse a file name that says something else than the format.

    Raises
    ------
    InstanceError
        When the ending is none of the format.
    """
    if not path.lower().endswith(endings):
        raise InstanceError(
            f"{path}: is no file name for format {name}, needs one that ends in"
            f" {alternatives(endings)}"
        )


def _only_part(plan: Plan, workload: str) -> dict[str, str]:
    """The part that trains a workload, where a single one of several does."""
    from coopt.traffic.of_plan import parts_with

    names = parts_with(plan, [part.name for part in plan.parts], workload)
    return {"part": names[0]} if len(names) == 1 else {}


def writers() -> dict[str, Callable[..., str | bytes]]:
    """What writes each format; only a command that writes waits for these imports."""
    from coopt.network.graph_files import network_dot, network_graphml
    from coopt.report import bridge, nemo, torchtitan
    from coopt.report.csv_files import bill_csv, ranks_csv
    from coopt.report.megatron import launch_file, megatron_script
    from coopt.solving.export_files import model_lp, model_mps
    from coopt.solving.route_files import routes_csv
    from coopt.traffic.files import chakra_traces, ns3_flows, ns3_topology

    return {
        "graphml": network_graphml,
        "dot": network_dot,
        "megatron": megatron_script,
        "bridge": partial(launch_file, "bridge", bridge.refusals, bridge.bridge_text),
        "nemo": partial(launch_file, "nemo", nemo.refusals, nemo.nemo_text),
        "torchtitan": partial(
            launch_file, "torchtitan", torchtitan.refusals, torchtitan.torchtitan_text
        ),
        "ranks": ranks_csv,
        "routes": routes_csv,
        "ns3-topology": ns3_topology,
        "ns3-flows": ns3_flows,
        "chakra": chakra_traces,
        "lp": model_lp,
        "mps": model_mps,
        "bom-csv": bill_csv,
    }


@click.command()
@instance_argument
@plan_argument
@click.option(
    "--format", "name", type=click.Choice(list(FORMATS)), required=True, help="Format to write."
)
@click.option("-o", "--output", metavar="FILE", help="Write to this file.  [stdout]")
@click.option(
    "--compressed",
    is_flag=True,
    help="graphml, dot: only one of equal networks, with its number of copies.",
)
@click.option(
    "--workload",
    metavar="NAME",
    help="The workload to write, if there are several and the format holds one.",
)
@click.option(
    "--part",
    metavar="NAME",
    help="The part to write, if there are several; bom-csv writes all by default.",
)
@click.option(
    "--program",
    type=int,
    metavar="K",
    help="lp, mps: number of the program (1, 2, ...), if there are several.",
)
def export(
    instance: str, settings: Settings, plan: str, name: str, output: str | None, **options: Any
) -> None:
    """Write PLAN.json for other programs.

    graphml, dot: every HB domain, GPU, NIC, switch and bundle of links, with rates in Gbit/s.
    bom-csv: the bill of materials, in USD and W. lp, mps: the mixed-integer program; that of one
    network has the value of a proven plan as its optimum. megatron: a script with the arguments of
    Megatron-LM. bridge, nemo, torchtitan: configurations of Megatron Bridge, NeMo AutoModel and
    TorchTitan. ranks: which GPU runs which rank. routes: the path of every flow. ns3-topology,
    ns3-flows: the network and the flows for ns-3, as SimAI reads them. chakra: the messages of
    every rank for ASTRA-sim, in an archive.

    docs/exports.md describes every file.
    """
    from coopt.instance.schema import load
    from coopt.instance.texts import write_bytes
    from coopt.plan.store import check_same_question, decided, read_plan

    form = FORMATS[name]
    used_options = {key: value for key, value in options.items() if value not in (None, False)}
    for key in used_options:
        if key not in form.options:
            raise click.UsageError(f"--{key}: does not apply to --format {name}.")
    if output == "-" and not form.binary:
        output = None
    if output is None and form.binary:
        raise click.UsageError(f"--format {name}: an archive cannot be printed, needs -o FILE.")
    if output is not None:
        if not form.any_name:
            check_ending(output, name, form.endings)
        check_place(output, instance, plan)
    question, answered = decided(load(instance, dict(settings)), read_plan(plan))
    check_same_question(question, answered)
    if "workload" in used_options and "part" not in used_options:
        used_options |= _only_part(answered, used_options["workload"])
    if form.trusted:
        from coopt.solving.plan_traffic import check_runs

        check_runs(question, answered, f"the format {name}", used_options.get("part"))
    content = writers()[name](question, answered, **used_options)
    if output is None:
        answer(str(content))
        return
    write_bytes(output, content if isinstance(content, bytes) else content.encode("utf-8"))
    note(f"{name} written to {output}")


@click.command()
@instance_argument
@plan_argument
@click.option("-o", "--output", metavar="FILE", help="Write to this file.  [stdout]")
@click.option(
    "--format",
    "name",
    type=click.Choice(list(CABLING)),
    default="csv",
    help="Format to write.  [csv]",
)
@click.option("--part", metavar="NAME", help="The part to list, if there are several.  [all]")
def cabling(
    instance: str,
    settings: Settings,
    plan: str,
    output: str | None,
    name: str,
    part: str | None,
) -> None:
    """List every cable of PLAN.json, port by port.

    csv: label, tier, rate, kind and length of the cable, and device, port, module, product and rack
    of both ends. netbox-devices, netbox-interfaces, netbox-cables: the same as files for NetBox, to
    be imported in this order. dot: the cables with their ports. slurm: the tree of switches as
    Slurm's topology.yaml.

    docs/exports.md describes every file.
    """
    from coopt.instance.schema import load
    from coopt.plan.store import check_same_question, decided, read_plan
    from coopt.report.cabling import cabling_text

    if output == "-":
        output = None
    if output is not None:
        check_ending(output, name, CABLING[name])
        check_place(output, instance, plan)
    question, answered = decided(load(instance, dict(settings)), read_plan(plan))
    check_same_question(question, answered)
    text = cabling_text(question, answered, name, part)
    if output is None:
        answer(text)
    write_file(output, lambda: text, name)


@click.command()
@instance_argument
@plan_argument
@click.option(
    "-o", "--output", metavar="REPORT.html", required=True, help="Write the page to this file."
)
@click.option(
    "--points",
    metavar="N",
    type=POINTS,
    default=20,
    show_default=True,
    help="Maximum number of points in the chart.",
)
@click.option(
    "--no-front",
    is_flag=True,
    help="Leave out the front of cost against time.",
)
@click.option(
    "--no-sensitivity",
    is_flag=True,
    help="Leave out what `coopt explain` shows.",
)
@click.pass_context
def report(
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

    One file, readable offline, has the decision, drawings of the networks, the bill with its
    sources, times, verification and provenance. For a single network it also has traffic, cost
    against time and sensitivity; for other plans, see `coopt traffic`, `pareto` and `explain`. If
    no plan meets the bounds, the page shows which changes would allow one. SOURCE_DATE_EPOCH sets
    its date.

    Exit codes: 0 done, 5 the plan is rejected (the page says so and why).
    """
    from coopt.explain.answer import explain
    from coopt.instance.schema import load
    from coopt.plan.store import check_same_sha, decided, read_plan
    from coopt.report.fronts.files import check_packages
    from coopt.report.page.contents import Origin, PageCase, moment, page_html, page_report
    from coopt.report.words import progress_shown, rendered
    from coopt.solving.fronts.sweep import has_front, pareto
    from coopt.solving.runs import overridden
    from coopt.verifier.audit import verify

    check_packages("report")
    check_place(output, instance, plan)
    question, given_plan = load(instance, dict(settings)), read_plan(plan)
    check_same_sha(question, given_plan)
    origin = Origin(
        command=command_line(ctx), instance_file=instance, plan_file=plan, written=moment()
    )
    verdict = verify(question, given_plan)
    if given_plan.cost is not None:
        question, given_plan = decided(question, given_plan)
    case = PageCase(instance=question, plan=given_plan, verdict=verdict, origin=origin)
    if case.stands_alone:
        question = overridden("report", question, {}, given_plan.objective.kind)
        case = replace(case, instance=question)
    if case.stands_alone and has_front(question) and not without["no_front"]:
        with progress_shown(note) as on_progress:
            case = replace(case, front=pareto(question, points, on_progress=on_progress))
    is_explained = case.stands_alone or (case.answered and given_plan.cost is None)
    if is_explained and not without["no_sensitivity"]:
        case = replace(case, explanation=explain(question, given_plan))
    write_file(output, lambda: page_html(case), "page")
    answer(rendered(page_report(case)))
    ctx.exit(0 if case.verdict.accepted else FAILED)


@click.command()
@click.argument("instance", required=False)
@click.option(
    "--port",
    metavar="P",
    type=click.IntRange(0, 65535),
    default=8017,
    show_default=True,
    help="Port to listen on; 0 selects a free one.",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; if other machines can reach it, the page's address has a random"
    " token.",
)
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(1, 256),
    help="Number of searches at the same time.  [one a core, 2 to 4]",
)
@click.option(
    "--time-limit",
    "limit_s",
    metavar="S",
    type=TIME_LIMIT,
    default=60.0,
    show_default=True,
    help="Time limit of one search.",
)
@click.option("--open", "opened", is_flag=True, help="Open the page in a browser.")
def serve(
    instance: str | None, port: int, host: str, workers: int | None, limit_s: float, opened: bool
) -> None:
    """Serve the planner's page on this machine.

    The page shows a question and its answer; each edit starts a new search. It begins with
    INSTANCE, or with the instance that `coopt new` writes. The command prints the page's address;
    Ctrl-C ends it. Edits stay in the browser: no file is written, and only INSTANCE and the files
    that it names are read.
    """
    from importlib.util import find_spec

    absent = [
        name for name in ("starlette", "tomlkit", "uvicorn", "jinja2") if find_spec(name) is None
    ]
    if absent:
        are = "are" if len(absent) > 1 else "is"
        raise InstanceError(
            f"serve: {both(absent)} {are} not installed, needs `pip install 'coopt[serve]'`"
        )
    from coopt.serve.running import desk_of, serve

    def announce(address: str) -> None:
        answer(address)
        note("open this address in a browser; Ctrl-C stops the server")
        if opened:
            click.launch(address)

    serve(desk_of(instance, host, workers, limit_s), port, announce)
    note("the server has stopped")


@click.command()
@click.argument("which", type=SCHEMAS, metavar=f"[{'|'.join(SCHEMAS.choices)}]", default="instance")
def schema(which: str) -> None:
    """Print the JSON Schema of a format.

    The format is an instance (the default), a file of designs, a plan or a front.
    """
    from coopt.plan.json_schema import schema_json

    answer(schema_json(which))


@click.command()
@click.argument("file")
def new(file: str) -> None:
    """Write a commented instance to start from.

    `coopt solve` accepts FILE as it is. Its first line names instance.schema.json, written beside
    it, from which editors complete keys and catalog names. An existing FILE is not overwritten.
    """
    from coopt.plan.json_schema import is_schema, schema_json

    check_place(file)
    text = files("coopt.cli").joinpath("starter.toml").read_text("utf-8")
    schema = Path(file).with_name("instance.schema.json")
    if schema.exists() and not is_schema(schema, "instance"):
        write_new_text(file, text)
        note(
            f"{schema} was not overwritten: it is no JSON Schema of coopt (`coopt schema`"
            " prints one)"
        )
    else:
        if not Path(file).exists():  # what a file names is there before it
            write_text(schema, schema_json("instance") + "\n")
        write_new_text(file, f"#:schema ./{schema.name}\n{text}")
    note(f"instance written to {file}; next: {shlex.join(['coopt', 'solve', file])}")
