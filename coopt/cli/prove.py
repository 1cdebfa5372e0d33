"""`coopt prove`: find what proves the bound of a plan of islands, for `coopt certify` to check."""

from __future__ import annotations

import click

from coopt.cli.arguments import Settings, instance_argument, plan_argument
from coopt.cli.terminal import GAP, TIME_LIMIT, answer, check_place, note


@click.command()
@instance_argument
@plan_argument
@click.option("-o", "--output", metavar="PROOF.json", help="Write the proof to this file; else it is the answer.")
@click.option(
    "--time-limit", "time_limit_s", metavar="S", type=TIME_LIMIT, default="300", help="Stop after S seconds (300)."
)
@click.option(
    "--gap", metavar="G", type=GAP, default="0", help="Prove a bound that is this share below the plan's (0)."
)
def command(instance: str, settings: Settings, plan: str, output: str | None, time_limit_s: float, gap: float) -> None:
    """Find a proof of the bound of PLAN.json.

    The workloads of the plan have islands of their own, or its domains direct links. A proof of islands is a tree of
    cases, each with multipliers of its limits and purchases; one of direct links has lengths of links and cuts.
    `coopt certify INSTANCE PLAN.json --proof PROOF.json` checks it in whole numbers and without a
    solver. Where the time does not suffice, the proof is one of a lower bound, which it names; so it is with a gap,
    which takes fewer cases.
    """
    from coopt.instance.files import load
    from coopt.instance.texts import write_text
    from coopt.plan.store import proof_json
    from coopt.solving.proofs.search import prove

    if output is not None:
        check_place(output, instance, plan)
    text = proof_json(prove(load(instance, dict(settings)), plan, time_limit_s=time_limit_s, gap=gap))
    if output is None:
        answer(text)
    else:
        write_text(output, text + "\n")
        note(f"proof written to {output}")
