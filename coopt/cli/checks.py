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
    check_places,
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
    from coopt.verifier.checks.names import CHECKS

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
    help="List every check with its meaning.",
)
@click.option(
    "--routes",
    metavar="FILE.csv",
    help="Also check the routes in this file (needs network.routing = 'pinned').",
)
@click.option(
    "--part",
    metavar="NAME",
    help="With --routes: the part of the plan that they are in, if there are several.",
)
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

    Everything is derived again from INSTANCE and the plan alone. `--routes` reads the table that
    `coopt export --format routes` writes, and checks the path of every flow.

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
    help="Write the proof to this file.  [stdout]",
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
    help="Prove only a bound that is lower than the plan's by this share (0).",
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

    A bound may need one with islands (workloads with networks of their own), direct links between
    HB domains, [[phase]] or [robust]; where none is needed, `coopt certify INSTANCE PLAN.json` is
    enough. With `--proof PROOF.json` it checks the proof in exact arithmetic, without a solver, and
    says which bound is proven: if time ran out, or with --gap, it may be weaker than that of the
    plan.
    """
    from coopt.instance.schema import load
    from coopt.plan.store import proof_json
    from coopt.solving.proofs.search import prove

    output = None if output == "-" else output
    check_places([output], instance, plan)
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
    help="Proof of the bound, as `coopt prove` writes it.",
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

    It holds if every design of INSTANCE that is better than the bound, priced in exact fractions,
    misses a time bound or a limit. Without --proof all designs are enumerated, which works for a
    single network, also with phases, losses, regret or several sites. Plans that need a proof (see
    `coopt prove`) are checked with it.

    Exit codes: 0 the claimed bound is proven, 5 it is not, or only in part.
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
    help="Write a timeline to this file, a Chrome trace for Perfetto.",
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

    Forward and backward passes and messages of all stages are events; traffic between HB domains
    flows over the plan's network at max-min fair rates. Shows for every workload the time in the
    plan, the simulated time, whether this meets the bound, and where the two differ.
    Assumptions: docs/simulate.md.

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
    check_places([trace], instance, plan)
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
