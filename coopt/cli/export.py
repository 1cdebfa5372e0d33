"""`coopt export`: a plan in the formats of other programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from coopt.cli.arguments import Settings, instance_argument, plan_argument
from coopt.cli.terminal import answer, check_place, note
from coopt.instance.errors import InstanceError
from coopt.instance.listings import alternatives

if TYPE_CHECKING:
    from coopt.plan.schema import Plan


@dataclass(frozen=True, kw_only=True)
class Format:
    """One format: endings of its files, and which options it takes; `coopt.cli.writers` has what writes it.

    `any_name` where files may end otherwise, as scripts do; `trusted` where mappings and placements have to be those of
    the instance, before a file is built on them; `binary` where files hold no text.
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
    "ranks": Format(endings=(".csv",), options=("workload", "part"), trusted=True),
    "routes": Format(endings=(".csv",), options=("workload", "part")),
    "ns3-topology": Format(endings=(".txt", ".topo"), options=("part",)),
    "ns3-flows": Format(endings=(".txt",), options=("workload", "part")),
    "chakra": Format(endings=(".zip",), options=("workload", "part"), binary=True),
    "lp": Format(endings=(".lp",), options=("program",)),
    "mps": Format(endings=(".mps",), options=("program",)),
    "bom-csv": Format(endings=(".csv",), options=("part",)),
}


def check_ending(path: str, name: str) -> None:
    """Refuse a file name that says something else than the format.

    Raises
    ------
    InstanceError
        When the ending is none of the format.
    """
    endings = FORMATS[name].endings
    if not (FORMATS[name].any_name or path.lower().endswith(endings)):
        raise InstanceError(f"{path}: is not the name of a {name} file, needs one that ends in {alternatives(endings)}")


def _only_part(plan: Plan, workload: str) -> dict[str, str]:
    """The part that trains a workload, where a single one of several does."""
    from coopt.traffic.of_plan import parts_with

    names = parts_with(plan, [part.name for part in plan.parts], workload)
    return {"part": names[0]} if len(names) == 1 else {}


@click.command()
@instance_argument
@plan_argument
@click.option("--format", "name", type=click.Choice(list(FORMATS)), required=True, help="What to write.")
@click.option("-o", "--output", metavar="FILE", help="Write to this file.  [stdout]")
@click.option(
    "--compressed",
    is_flag=True,
    help="graphml, dot: one of equal networks, with its copies on every part.",
)
@click.option("--workload", metavar="NAME", help="megatron, ranks, routes, ns3-flows, chakra: one workload of several.")
@click.option("--part", metavar="NAME", help="One part of several; bom-csv writes all of them without.")
@click.option("--program", type=int, metavar="K", help="lp, mps: one program where the answer is the best of several.")
def command(instance: str, settings: Settings, plan: str, name: str, output: str | None, **options: Any) -> None:
    """Write PLAN.json for other programs.

    graphml, dot: every HB domain, GPU, NIC, switch and bundle of links, with rates in Gbit/s. bom-csv: the bill of
    materials, in USD and W. lp, mps: the mixed-integer program, whose optimum is that of a proven plan. megatron: a
    script with the arguments of Megatron-LM. ranks: which GPU runs which rank. routes: the path of every flow.
    ns3-topology, ns3-flows: the network and the flows for ns-3, as SimAI reads them. chakra: the messages of every rank
    for ASTRA-sim, in an archive.

    docs/exports.md describes every file.
    """
    from coopt.cli.writers import WRITERS
    from coopt.instance.files import load
    from coopt.instance.texts import write_bytes
    from coopt.plan.store import check_same_question, decided, read_plan

    chosen = FORMATS[name]
    given = {key: value for key, value in options.items() if value not in (None, False)}
    for key in given:
        if key not in chosen.options:
            raise click.UsageError(f"--{key}: is no option of {name}.")
    if output is None and chosen.binary:
        raise click.UsageError(f"--format {name}: is no text, needs -o FILE.")
    if output is not None:
        check_ending(output, name)
        check_place(output, instance, plan)
    question, answered = decided(load(instance, dict(settings)), read_plan(plan))
    check_same_question(question, answered)
    if "workload" in given and "part" not in given:
        given |= _only_part(answered, given["workload"])
    if chosen.trusted:
        from coopt.solving.trusted import check_runs

        check_runs(question, answered, f"the format {name}", given.get("part"))
    content = WRITERS[name](question, answered, **given)
    if output is None:
        answer(str(content))
        return
    write_bytes(output, content if isinstance(content, bytes) else content.encode("utf-8"))
    note(f"{name} written to {output}")
