"""`coopt calibrate`: fit the few parameters of the performance model to published measurements."""

from __future__ import annotations

import click

from coopt.cli.arguments import a_file
from coopt.cli.terminal import answer, check_place, note


@click.command()
@click.argument("table", metavar="CSV", shell_complete=a_file)
@click.option("--generation", metavar="NAME", help="GPU generation to fit (ampere, hopper, ...); all if left out.")
@click.option("--precision", type=click.Choice(["16-bit", "fp8", "fp4"]), help="Precision to fit.")
@click.option(
    "--rows", metavar="GLOB", multiple=True, help="Fit to rows of this id only, such as 'dgxc-*'; repeatable."
)
@click.option("--parameters", metavar="NAMES", help="What to fit, such as gemm,hbm; at most four.")
@click.option("-o", "--output", metavar="FILE", help="Write the lines to be pasted to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the fits as one JSON document.")
def command(
    table: str,
    generation: str | None,
    precision: str | None,
    rows: tuple[str, ...],
    parameters: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Fit hardware parameters to measurements.

    Prints fitted values with their error on rows that were used and on rows that were not, and lines to paste into
    the catalog or into an instance; the catalog itself stays as it is. CSV as for `coopt validate`.
    """
    from coopt.instance.texts import write_text
    from coopt.report.terminal import rendered
    from coopt.report.validation import calibration_report, catalog_lines
    from coopt.validation.calibration import calibration_of
    from coopt.validation.published import read_measurements
    from coopt.validation.runs import runs_among
    from coopt.validation.settings import check_globs, sets_asked

    sets = sets_asked(generation, precision, parameters, rows)
    measured = read_measurements(table)
    check_globs(rows, [row.id for row in measured])
    if output is not None:
        check_place(output, table)
    found = calibration_of(runs_among(measured), sets, told=note)
    if output is not None:
        write_text(output, catalog_lines(found) + "\n")
        note(f"lines to be pasted written to {output}")
    answer(found.model_dump_json(indent=2) if as_json else rendered(calibration_report(found)) + catalog_lines(found))
