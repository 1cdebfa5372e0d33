"""`coopt solve`: the cheapest design that meets every bound."""

from __future__ import annotations

from typing import Any

import click

from coopt.cli.arguments import Settings, instance_argument, with_settings
from coopt.cli.terminal import GAP, SEED, THREADS, TIME_LIMIT, TOP, answer, check_place, note

EXIT_CODES = {"optimal": 0, "infeasible": 3, "feasible": 4, "unknown": 4}


@click.command()
@instance_argument
@click.option("-o", "--output", metavar="PLAN.json", help="Write the plan to this file.")
@click.option("--formulation", type=click.Choice(["uplinks"]), help="Mathematical formulation to use.")
@click.option(
    "--objective",
    type=click.Choice(["capex", "power", "tco", "time", "usd_per_token", "carbon"]),
    help="What to minimise.",
)
@click.option("--time-limit", "time_limit_s", metavar="S", type=TIME_LIMIT, help="Stop the search after S seconds.")
@click.option("--gap", metavar="G", type=GAP, help="Relative gap at which a plan counts as optimal (0.01 is 1%).")
@click.option("--threads", metavar="N", type=THREADS, help="Threads of the solver.")
@click.option("--top", metavar="K", type=TOP, help="Find the K best designs: the plan, and K - 1 runners-up.")
@click.option("--seed", metavar="N", type=SEED, help="Seed of the solver's random choices.")
@click.option("--solver", metavar="NAME", help="Solver that Pyomo knows, in place of the built-in HiGHS.")
@click.option("--witness", type=click.Choice(["scip"]), help="Second solver that searches again: does it agree?")
@click.option("--full", is_flag=True, help="Print everything: bill, times by component, every bound, the search.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    instance: str,
    settings: Settings,
    output: str | None,
    full: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the best design for INSTANCE and prove it.

    INSTANCE is a TOML file (`coopt new` writes one to start from). The answer fits on one screen; --full prints all of
    it. Options replace what INSTANCE says under [solver] and [objective], --set any value of it; the plan names what it
    replaced. Ctrl-C ends the search with the best plan so far.

    Exit codes: 0 proven optimal within the gap, 3 proven infeasible, 4 stopped before proof, or refuted by the witness.
    """
    from coopt.instance.files import load
    from coopt.instance.texts import write_text
    from coopt.network.plan_networks import baseline_of
    from coopt.plan.store import decided, plan_json, with_replaced
    from coopt.report.plan import plan_report
    from coopt.report.screen import plan_screen
    from coopt.report.terminal import progress_shown, rendered
    from coopt.solving.answer import solve, value_without_margin

    values = dict(settings)
    question = load(instance, values)
    if output is not None:
        check_place(output, instance)
    with progress_shown(note) as on_progress:
        plan = with_replaced(solve(question, on_progress=on_progress, **options), values)
    asked, found = (question, plan) if plan.cost is None else decided(question, plan)
    try:
        if output is not None:
            write_text(output, plan_json(plan) + "\n")
            note(f"{'plan' if plan.parts else 'answer, which holds no plan,'} written to {output}")
    finally:
        shown = plan_report if full else plan_screen
        text = (
            plan_json(plan)
            if as_json
            else rendered(shown(asked, found, baseline_of(asked, found), value_without_margin(question, plan)))
        )
        if plan.chosen.text and not as_json:
            answer(f"Chosen: {plan.chosen.text}.")
        answer(text)
    if plan.cost is not None and not full and not as_json:
        note("--full prints the bill in full, where the time goes and every bound")
    if plan.status == "infeasible":
        note(f"to see what has to give: {with_settings(['coopt', 'explain', instance], settings)}")
    second = plan.solver.witness
    if second is not None:
        said = f"{second.status}, value {second.value}, bound {second.bound}"
        note(f"witness {second.name} {second.version} {'agrees' if second.agrees else 'does not agree'}: {said}")
    ctx.exit(EXIT_CODES[plan.status if second is None or second.agrees else "feasible"])
