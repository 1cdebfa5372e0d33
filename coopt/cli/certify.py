"""`coopt certify`: prove the bound of a plan once more, in fractions and without a solver."""

from __future__ import annotations

import click

from coopt.cli.arguments import instance_argument, plan_argument
from coopt.cli.terminal import answer

UNPROVEN = 5


@click.command()
@instance_argument
@plan_argument
@click.option("--json", "as_json", is_flag=True, help="Print what is proven as one JSON document.")
@click.pass_context
def command(ctx: click.Context, instance: str, plan: str, as_json: bool) -> None:
    """Prove the bound of PLAN.json in exact arithmetic.

    Every design of INSTANCE that would cost less is priced in fractions and shown to miss a bound or a limit. One
    network is gone through, also in phases and after losses.

    Exit codes: 0 all that is claimed is proven, 5 not all of it.
    """
    from coopt.report.proof import certificate_report
    from coopt.report.terminal import rendered
    from coopt.verifier.certificates import certify

    found = certify(instance, plan)
    answer(found.model_dump_json(indent=2) if as_json else rendered(certificate_report(found)))
    ctx.exit(0 if found.ok else UNPROVEN)
