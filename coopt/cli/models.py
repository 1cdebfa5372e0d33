"""`coopt model import`: a model from the file of another tool."""

from __future__ import annotations

import json
from pathlib import Path

import click

from coopt.cli.arguments import a_file, answer, check_places, note, write_file


@click.group()
def model() -> None:
    """Read models from the files of other tools."""


@model.command(name="import")
@click.argument("file", metavar="FILE", shell_complete=a_file)
@click.option("-o", "--output", metavar="TOML", help="Write the catalog entry to this file.")
@click.option(
    "--name",
    metavar="NAME",
    help="Name in the catalog.  [that of FILE; of its folder for config.json]",
)
@click.option(
    "--seq", metavar="N", type=click.IntRange(1, 10_000_000), help="Tokens in a sequence."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def import_(
    file: str, output: str | None, name: str | None, seq: int | None, as_json: bool
) -> None:
    """Import the model that FILE describes: its parameters, and an entry for a catalog.

    FILE is a config.json of Hugging Face, arguments of Megatron-LM (a script, or what a log prints
    of them), YAML of Megatron Bridge or NeMo, or TOML of TorchTitan. Nothing is downloaded. To use
    the entry, list its file in `catalog.files` of an instance, and name the model in a workload.
    """
    from coopt.instance.models.documents import imported
    from coopt.report.catalog import entries_toml
    from coopt.report.models import parameter_figures, parameter_report
    from coopt.report.words import rendered

    check_places([output], file)
    read = imported(Path(file), name, seq)
    entry = entries_toml({"model": read.model})
    for text in read.notes:
        note(text)
    if as_json:
        document = {
            "model": read.model.model_dump(mode="json", exclude_defaults=True),
            "parameters": parameter_figures(read.same or read.model),
            "notes": read.notes,
            "same_as": read.same.name if read.same else None,
        }
        answer(json.dumps(document, indent=2))
    else:
        answer(rendered([parameter_report(read.model, read.same)]))
        if output is None:
            answer(entry)
    write_file(output, lambda: entry, "catalog entry")
