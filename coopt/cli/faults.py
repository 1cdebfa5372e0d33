"""`coopt faults`: what the loss of any one part does to a plan."""

from __future__ import annotations

import click

from coopt.cli.arguments import Settings, instance_argument, plan_argument
from coopt.cli.parts import answer_parts, part_option, parts_asked


@click.command()
@instance_argument
@plan_argument
@part_option
@click.option("--json", "as_json", is_flag=True, help="Print the faults as one JSON document.")
def command(instance: str, settings: Settings, plan: str, part: str | None, as_json: bool) -> None:
    """Take away every link, switch, GPU and domain in turn.

    Says how many such components there are, what becomes of every workload's iteration, what keeps it going, and which
    spares the plan has; network by network, where the plan has several parts.
    """
    from coopt.instance.files import load
    from coopt.plan.store import decided, read_plan
    from coopt.report.robust import faults_report
    from coopt.report.terminal import rendered
    from coopt.solving.without_parts import plan_faults

    question, chosen = decided(load(instance, dict(settings)), read_plan(plan))
    names = parts_asked(question, chosen, part)
    found = ((name, plan_faults(question, chosen, part=name)) for name in names)
    answer_parts(found, lambda faults: rendered(faults_report(faults)), as_json=as_json)
