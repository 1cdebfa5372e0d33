"""`coopt calibrate`: fit the few parameters of the performance model to published measurements, or to one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from coopt.cli.arguments import a_file
from coopt.cli.terminal import answer, check_places, note
from coopt.instance.listings import counted

if TYPE_CHECKING:
    from coopt.validation.facts import FitSet
    from coopt.validation.published import Measurement


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, shell_complete=a_file)
@click.option("--generation", metavar="NAME", help="GPU generation to fit (ampere, hopper, ...); all if left out.")
@click.option("--precision", type=click.Choice(["16-bit", "fp8", "fp4"]), help="Precision to fit.")
@click.option(
    "--rows", metavar="GLOB", multiple=True, help="Fit to rows of this id only, such as 'dgxc-*'; repeatable."
)
@click.option("--parameters", metavar="NAMES", help="What to fit, such as gemm,hbm; at most four.")
@click.option(
    "--posterior", is_flag=True, help="Hold values to the catalog's and print intervals; always so with a log."
)
@click.option(
    "--set",
    "stated",
    metavar="COLUMN=VALUE",
    multiple=True,
    help="A column that logs leave out, such as gpu=H100; repeatable.",
)
@click.option("--range", "nvtx_range", metavar="NAME", help="NVTX range that is an iteration, in a summary of Nsight.")
@click.option("--table", metavar="FILE", help="Write what was read from logs as a CSV table to this file.")
@click.option("-o", "--output", metavar="FILE", help="Write the catalog lines to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the fits as one JSON document.")
def command(
    files: tuple[str, ...],
    generation: str | None,
    precision: str | None,
    rows: tuple[str, ...],
    parameters: str | None,
    posterior: bool,
    stated: tuple[str, ...],
    nvtx_range: str | None,
    table: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Fit hardware parameters to measurements.

    Prints fitted values with their error on rows that were used and on rows that were not, and lines to paste into
    the catalog or into an instance; the catalog itself stays as it is.

    FILE is a CSV as for `coopt validate`, a log of Megatron-LM, Megatron Bridge or NeMo, a trace of PyTorch's profiler
    (.json, .json.gz), or `nsys stats --report nvtx_sum --format csv`. With a log or a trace, values are held to the
    catalog's, and intervals and the mapping to run next are printed.
    """
    from coopt.instance.texts import write_text
    from coopt.validation.own_runs import measurements_of, table_of
    from coopt.validation.settings import check_globs, sets_asked

    sets = sets_asked(generation, precision, parameters, rows)
    measured, own = measurements_of(files, _columns(stated), nvtx_range)
    check_globs(rows, [row.id for row in measured])
    check_places((output, table), *files)
    if table is not None:
        write_text(table, table_of(own))
        note(f"{counted(len(own), 'row')} read from logs written to {table}")
    report, lines, document = (_held if posterior or own else _fitted)(measured, sets)
    if output is not None:
        write_text(output, lines + "\n")
        note(f"catalog lines written to {output}")
    answer(document if as_json else report + lines)


def _columns(stated: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in stated]
    for column, equals, _ in pairs:
        if not equals:
            raise click.UsageError(f"--set {column!r} needs the form COLUMN=VALUE, such as gpu=H100.")
    return {column.strip(): value.strip() for column, _, value in pairs}


def _fitted(measured: list[Measurement], sets: tuple[FitSet, ...]) -> tuple[str, str, str]:
    """Report, lines and document of fits to rows alone."""
    from coopt.report.terminal import rendered
    from coopt.report.validation import calibration_report, catalog_lines
    from coopt.validation.calibration import calibration_of
    from coopt.validation.runs import runs_among

    found = calibration_of(runs_among(measured), sets, told=note)
    return rendered(calibration_report(found)), catalog_lines(found), found.model_dump_json(indent=2)


def _held(measured: list[Measurement], sets: tuple[FitSet, ...]) -> tuple[str, str, str]:
    """Report, lines and document of fits that are held to the catalog's values."""
    from coopt.report.own_runs import posterior_lines, posterior_report
    from coopt.report.terminal import rendered
    from coopt.validation.own_calibration import own_calibration_of

    found = own_calibration_of(measured, sets, told=note)
    return rendered(posterior_report(found)), posterior_lines(found.posteriors), found.model_dump_json(indent=2)
