"""Commands for those who write a question: `coopt new`, `catalog` of hardware and models, `schema` of the formats."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from coopt.cli.arguments import catalog_kind, catalog_name
from coopt.cli.terminal import answer, note
from coopt.instance.texts import write_new_text

FORMATS = click.Choice(["instance", "designs", "plan", "front"])


@click.group()
def catalog() -> None:
    """Show the hardware and models to choose from."""


@catalog.command(name="list")
@click.argument("kind", required=False, shell_complete=catalog_kind)
def list_(kind: str | None) -> None:
    """List the entries of every kind, or of one KIND.

    KIND is gpu, hb_domain, nic, switch, optic, panel, model or another one that the list names.
    """
    from coopt.instance.catalog import KINDS, entries
    from coopt.report.catalog import list_report
    from coopt.report.tables import rendered

    if kind is not None and kind not in KINDS:
        raise click.BadParameter(f"{kind!r} is not one of {', '.join(KINDS)}.", param_hint="KIND")
    answer(rendered(list_report({name: entries(name) for name in ([kind] if kind else KINDS)})))


@catalog.command()
@click.argument("name", shell_complete=catalog_name)
@click.option("--toml", "form", flag_value="toml", help="Print the entry as a catalog file of your own holds it.")
@click.option("--json", "form", flag_value="json", help="Print the entry as one JSON document.")
def show(name: str, form: str | None) -> None:
    """Show the figures of the entry NAME.

    Each stands with its unit, confidence tag and source.
    """
    from coopt.report.catalog import entries_json, entries_toml, find_everywhere, show_report
    from coopt.report.tables import rendered

    matches = find_everywhere(name)
    texts = {"toml": entries_toml, "json": entries_json}
    answer(texts[form](matches) if form else rendered(show_report(matches)))


@click.command()
@click.argument("which", type=FORMATS, metavar=f"[{'|'.join(FORMATS.choices)}]", default="instance")
def schema(which: str) -> None:
    """Print the JSON Schema of a format.

    Formats: an instance, a file of designs, a plan, a front. Without an argument: of an instance.
    """
    from coopt.plan.json_schema import schema_json

    answer(schema_json(which))


@click.command()
@click.argument("file")
def new(file: str) -> None:
    """Write a commented instance to start from.

    It loads and solves as it is. Its first line tells editors where the JSON Schema of an instance is, so that they
    complete keys and catalog names. An existing FILE stays untouched.
    """
    schema = Path(str(files("coopt.instance").joinpath("instance.schema.json"))).resolve().as_uri()
    text = files("coopt.cli").joinpath("starter.toml").read_text("utf-8")
    write_new_text(file, f"#:schema {schema}\n{text}")
    note(f"instance written to {file}; next: coopt solve {file}")
