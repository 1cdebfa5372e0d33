"""`coopt simulate`: one iteration of a plan, flow by flow, beside the closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from coopt.cli.arguments import Settings, instance_argument, plan_argument
from coopt.cli.parts import check_single, part_option, parts_asked
from coopt.cli.terminal import answer, check_place, note

if TYPE_CHECKING:
    from coopt.verifier.simulation.trace import TraceRecord

MISSED = 5


@click.command()
@instance_argument
@plan_argument
@part_option
@click.option("--trace", metavar="FILE", help="Write what happens when to this file, a Chrome trace for Perfetto.")
@click.option("--json", "as_json", is_flag=True, help="Print times, bounds and slowdowns as one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    instance: str,
    settings: Settings,
    plan: str,
    part: str | None,
    trace: str | None,
    as_json: bool,
) -> None:
    """Simulate one iteration of PLAN.json.

    Passes and messages of all stages are events, and what crosses HB domains are flows on the network of the plan, with
    max-min fair rates. Says for every workload the time in the plan, the simulated time, whether that keeps the bound,
    and where the two differ. docs/simulate.md tells what is assumed.

    Exit codes: 0 every bound is met, 5 one is missed.
    """
    from coopt.instance.files import load
    from coopt.instance.texts import write_text
    from coopt.plan.store import decided, read_plan
    from coopt.report.simulation import simulation_report
    from coopt.report.terminal import rendered
    from coopt.verifier.simulation.plans import simulate
    from coopt.verifier.simulation.trace import chrome_trace

    question, chosen = decided(load(instance, dict(settings)), read_plan(plan))
    names = parts_asked(question, chosen, part)
    check_single(names, "--trace", trace)
    if trace is not None:
        check_place(trace, instance, plan)
    records: list[TraceRecord] = []
    found = simulate(question, chosen, part=part, trace=None if trace is None else records)
    if trace is not None:
        write_text(trace, chrome_trace(records))
        note(f"{sum(len(record.events) for record in records):,} events written to {trace}")
    if as_json:
        answer(found.model_dump_json(by_alias=True, indent=2))
    else:
        sections = [rendered(simulation_report(found.of(name))) for name in names]
        shown = [f"Part {name}\n\n{text}" for name, text in zip(names, sections, strict=True)]
        answer("\n".join(shown if len(names) > 1 else sections))
    ctx.exit(0 if found.met else MISSED)
