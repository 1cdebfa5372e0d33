"""`coopt catalog`: the hardware and models that ship with coopt."""

from __future__ import annotations

import click

from coopt.cli.terminal import answer


@click.group()
def command() -> None:
    """Show the hardware and models to choose from."""


@command.command(name="list")
@click.argument("kind", required=False)
def list_(kind: str | None) -> None:
    """List the entries of every kind, or of one KIND (gpu, hb_domain, nic, switch, optic, panel, model)."""
    from coopt.instance.catalog import KINDS, entries
    from coopt.report.catalog import list_report
    from coopt.report.terminal import rendered

    if kind is not None and kind not in KINDS:
        raise click.BadParameter(f"{kind!r} is not one of {', '.join(KINDS)}.", param_hint="KIND")
    answer(rendered(list_report({name: entries(name) for name in ([kind] if kind else KINDS)})))


@command.command()
@click.argument("name")
def show(name: str) -> None:
    """Show the figures of the entry NAME with their units, confidence tags and sources."""
    from coopt.report.catalog import find_everywhere, show_report
    from coopt.report.terminal import rendered

    answer(rendered(show_report(find_everywhere(name))))
