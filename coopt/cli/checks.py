"""Commands that doubt a plan: `coopt verify`, `prove`, `certify`, and `simulate` beside the closed
form.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from coopt.cli.arguments import (
    FAILED,
    GAP,
    TIME_LIMIT,
    Settings,
    answer,
    check_place,
    check_single,
    instance_argument,
    part_option,
    parts_asked,
    plan_argument,
    write_file,
)

if TYPE_CHECKING:
    from coopt.verifier.simulation.traces import TraceRecord


def _list_checks(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    """Print every check and what it says, and nothing else."""
    if not asked:
        return
    from coopt.report.words import facts, rendered
    from coopt.verifier.checks.verdict import CHECKS

    answer(rendered([facts("Checks", CHECKS)]))
    ctx.exit()


@click.command()
@instance_argument
@plan_argument
@click.option(
    "--checks",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_checks,
    help="List every check and what it says.",
)
@click.option(
    "--routes", metavar="FILE.csv", help="Check these routes, too, where flows are pinned to paths."
)
@click.option("--part", metavar="NAME", help="With --routes: one part of several.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as one JSON document.")
@click.pass_context
def verify(
    ctx: click.Context,
    instance: str,
    settings: Settings,
    plan: str,
    routes: str | None,
    part: str | None,
    as_json: bool,
) -> None:
    """Check every claim of PLAN.json without the solver.

    Everything is derived again from INSTANCE and the plan alone. `--routes` takes the table that
    `coopt export --format routes` writes, and follows every flow on the network.

    Exit codes: 0 accepted, 5 rejected.
    """
    from coopt.instance.schema import load
    from coopt.instance.texts import read_text
    from coopt.plan.store import read_plan
    from coopt.report.explanation import verdict_report
    from coopt.report.words import rendered
    from coopt.verifier.audit import verify

    if part is not None and routes is None:
        raise click.UsageError("--part: needs --routes.")
    remedy = "the file that `coopt export --format routes` writes"
    table = None if routes is None else read_text(Path(routes), "a CSV file", remedy)
    verdict = verify(load(instance, dict(settings)), read_plan(plan), routes=table, part=part)
    answer(verdict.model_dump_json(indent=2) if as_json else rendered(verdict_report(verdict)))
    ctx.exit(0 if verdict.accepted else FAILED)


@click.command()
@instance_argument
@plan_argument
@click.option(
    "-o",
    "--output",
    metavar="PROOF.json",
    help="Write the proof to this file; else it is the answer.",
)
@click.option(
    "--time-limit",
    "time_limit_s",
    metavar="S",
    type=TIME_LIMIT,
    default="300",
    help="Stop after S seconds (300).",
)
@click.option(
    "--gap",
    metavar="G",
    type=GAP,
    default="0",
    help="Prove a bound that is this share below the plan's (0).",
)
def prove(
    instance: str,
    settings: Settings,
    plan: str,
    output: str | None,
    time_limit_s: float,
    gap: float,
) -> None:
    """Find a proof of the bound of PLAN.json.

    The workloads of the plan have islands of their own, or its domains direct links. A proof of
    islands is a tree of cases, each with multipliers of its limits and purchases; one of direct
    links has lengths of links and cuts. `coopt certify INSTANCE PLAN.json --proof PROOF.json`
    checks it in whole numbers and without a solver. Where the time does not suffice, the proof is
    one of a lower bound, which it names; so it is with a gap, which takes fewer cases.
    """
    from coopt.instance.schema import load
    from coopt.plan.store import proof_json
    from coopt.solving.proofs.search import prove

    output = None if output == "-" else output
    if output is not None:
        check_place(output, instance, plan)
    text = proof_json(
        prove(load(instance, dict(settings)), plan, time_limit_s=time_limit_s, gap=gap)
    )
    if output is None:
        answer(text)
    write_file(output, lambda: text + "\n", "proof")


@click.command()
@instance_argument
@plan_argument
@click.option(
    "--proof",
    metavar="PROOF.json",
    help="What proves a bound of islands or direct links; `coopt prove` finds it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what is proven as one JSON document.")
@click.pass_context
def certify(
    ctx: click.Context,
    instance: str,
    settings: Settings,
    plan: str,
    proof: str | None,
    as_json: bool,
) -> None:
    """Prove the bound of PLAN.json in exact arithmetic.

    Every design of INSTANCE that would cost less is priced in fractions and shown to miss a bound
    or a limit. One network is gone through, also in phases, after losses, for least regret, and at
    several sites. Of islands of several workloads every case of a proof is checked, with islands
    listed anew.

    Exit codes: 0 all that is claimed is proven, 5 not all of it.
    """
    from coopt.instance.schema import load
    from coopt.report.explanation import certificate_report
    from coopt.report.words import rendered
    from coopt.verifier.certificates import certify

    certificate = certify(load(instance, dict(settings)), plan, proof)
    answer(
        certificate.model_dump_json(indent=2)
        if as_json
        else rendered(certificate_report(certificate))
    )
    ctx.exit(0 if certificate.ok else FAILED)


@click.command()
@instance_argument
@plan_argument
@part_option
@click.option(
    "--trace",
    metavar="FILE",
    help="Write what happens when to this file, a Chrome trace for Perfetto.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print times, bounds and slowdowns as one JSON document.",
)
@click.pass_context
def simulate(
    ctx: click.Context,
    instance: str,
    settings: Settings,
    plan: str,
    part: str | None,
    trace: str | None,
    as_json: bool,
) -> None:
    """Simulate one iteration of PLAN.json.

    Passes and messages of all stages are events, and what crosses HB domains are flows on the
    network of the plan, with max-min fair rates. Says for every workload the time in the plan, the
    simulated time, whether that keeps the bound, and where the two differ. docs/simulate.md tells
    what is assumed.

    Exit codes: 0 every bound is met, 5 one is missed.
    """
    from coopt.instance.schema import load
    from coopt.plan.store import decided, read_plan
    from coopt.report.traffic import simulation_report
    from coopt.report.words import rendered
    from coopt.verifier.simulation.plans import simulate
    from coopt.verifier.simulation.traces import chrome_trace

    question, decided_plan = decided(load(instance, dict(settings)), read_plan(plan))
    names = parts_asked(question, decided_plan, part)
    check_single(names, "--trace", trace)
    if trace is not None:
        check_place(trace, instance, plan)
    records: list[TraceRecord] = []
    simulation = simulate(
        question, decided_plan, part=part, trace=None if trace is None else records
    )
    count = sum(len(record.events) for record in records)
    write_file(trace, lambda: chrome_trace(records), f"{count:,} events")
    if as_json:
        answer(simulation.model_dump_json(by_alias=True, indent=2))
    else:
        sections = [rendered(simulation_report(simulation.of(name))) for name in names]
        titled = [f"Part {name}\n\n{text}" for name, text in zip(names, sections, strict=True)]
        answer("\n".join(titled if len(names) > 1 else sections))
    ctx.exit(0 if simulation.met else FAILED)
