"""`coopt export`: a plan in the formats of other programs."""

from __future__ import annotations

from typing import Any

import click

from coopt.cli.formats import FORMATS, check_ending
from coopt.cli.output import answer, check_place, note


@click.command()
@click.argument("instance")
@click.argument("plan", metavar="PLAN.json")
@click.option("--format", "name", type=click.Choice(list(FORMATS)), required=True, help="What to write.")
@click.option("-o", "--output", metavar="FILE", help="Write to this file.  [stdout]")
@click.option("--compressed", is_flag=True, help="graphml, dot: one plane, with the number of copies on every part.")
@click.option("--workload", metavar="NAME", help="megatron, ranks, routes: one workload of several.")
def command(instance: str, plan: str, name: str, output: str | None, **options: Any) -> None:
    """Write PLAN.json for other programs.

    graphml, dot: every HB domain, GPU, NIC, switch and bundle of links, with rates in Gbit/s. bom-csv: the bill of
    materials, in USD and W. lp, mps: the mixed-integer program, whose optimum is that of a proven plan. megatron: a
    script with the arguments of Megatron-LM. ranks: which GPU runs which rank. routes: the path of every flow.

    docs/exports.md describes every file.
    """
    from coopt.instance.files import load
    from coopt.instance.texts import write_text
    from coopt.plan.store import read_plan

    chosen = FORMATS[name]
    given = {key: value for key, value in options.items() if value not in (None, False)}
    for key in given:
        if key not in chosen.options:
            raise click.UsageError(f"--{key}: is no option of {name}.")
    if output is not None:
        check_ending(output, name)
        check_place(output, instance, plan)
    question, answered = load(instance), read_plan(plan)
    if chosen.trusted:
        from coopt.solving.trusted import trusted_plan

        trusted_plan(question, answered, f"the format {name}")
    text = chosen.writer(question, answered, **given)
    if output is None:
        answer(text)
        return
    write_text(output, text)
    note(f"{name} written to {output}")
