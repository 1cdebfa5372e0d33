"""`coopt catalog`: the hardware and models that ship with coopt."""

from __future__ import annotations

import click

from coopt.cli.arguments import catalog_kind, catalog_name
from coopt.cli.terminal import answer


@click.group()
def command() -> None:
    """Show the hardware and models to choose from."""


@command.command(name="list")
@click.argument("kind", required=False, shell_complete=catalog_kind)
def list_(kind: str | None) -> None:
    """List the entries of every kind, or of one KIND.

    KIND is gpu, hb_domain, nic, switch, optic, panel, model or another one that the list names.
    """
    from coopt.instance.catalog import KINDS, entries
    from coopt.report.catalog import list_report
    from coopt.report.terminal import rendered

    if kind is not None and kind not in KINDS:
        raise click.BadParameter(f"{kind!r} is not one of {', '.join(KINDS)}.", param_hint="KIND")
    answer(rendered(list_report({name: entries(name) for name in ([kind] if kind else KINDS)})))


@command.command()
@click.argument("name", shell_complete=catalog_name)
@click.option("--toml", "form", flag_value="toml", help="Print the entry as a catalog file of your own holds it.")
@click.option("--json", "form", flag_value="json", help="Print the entry as one JSON document.")
def show(name: str, form: str | None) -> None:
    """Show the figures of the entry NAME.

    Each stands with its unit, confidence tag and source.
    """
    from coopt.report.catalog import entries_json, entries_toml, find_everywhere, show_report
    from coopt.report.terminal import rendered

    found = find_everywhere(name)
    texts = {"toml": entries_toml, "json": entries_json}
    answer(texts[form](found) if form else rendered(show_report(found)))
