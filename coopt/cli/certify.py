"""`coopt certify`: prove the bound of a plan once more, in whole numbers and without a solver."""

from __future__ import annotations

import click

from coopt.cli.arguments import Settings, instance_argument, plan_argument
from coopt.cli.terminal import answer

UNPROVEN = 5


@click.command()
@instance_argument
@plan_argument
@click.option(
    "--proof", metavar="PROOF.json", help="What proves a bound of islands or direct links; `coopt prove` finds it."
)
@click.option("--json", "as_json", is_flag=True, help="Print what is proven as one JSON document.")
@click.pass_context
def command(ctx: click.Context, instance: str, settings: Settings, plan: str, proof: str | None, as_json: bool) -> None:
    """Prove the bound of PLAN.json in exact arithmetic.

    Every design of INSTANCE that would cost less is priced in fractions and shown to miss a bound or a limit. One
    network is gone through, also in phases, after losses, for least regret, and at several sites. Of islands of several
    workloads every case of a proof is checked, with islands listed anew.

    Exit codes: 0 all that is claimed is proven, 5 not all of it.
    """
    from coopt.instance.files import load
    from coopt.report.proof import certificate_report
    from coopt.report.terminal import rendered
    from coopt.verifier.certificates import certify

    found = certify(load(instance, dict(settings)), plan, proof)
    answer(found.model_dump_json(indent=2) if as_json else rendered(certificate_report(found)))
    ctx.exit(0 if found.ok else UNPROVEN)
