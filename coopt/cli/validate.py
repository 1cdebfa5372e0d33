"""`coopt validate`: the performance model against published measurements."""

from __future__ import annotations

import click

from coopt.cli.arguments import a_file
from coopt.cli.terminal import PERCENT, answer, check_place, note

TOO_FAR_OFF = 5


@click.command()
@click.argument("table", metavar="CSV", shell_complete=a_file)
@click.option("--fail-over", metavar="PERCENT", type=PERCENT, help="Exit 5 if a source's mean error is larger.")
@click.option("--plot", metavar="FILE", help="Draw predicted against measured, and their ratio (.png, .pdf, .svg).")
@click.option("--json", "as_json", is_flag=True, help="Print rows and groups as one JSON document.")
@click.pass_context
def command(ctx: click.Context, table: str, fail_over: float | None, plot: str | None, as_json: bool) -> None:
    """Compare the performance model with measurements.

    CSV holds one measured run a row, in the columns of benchmarks/published.csv (docs/measurements.md describes
    them); rows that say too little are skipped.

    Exit codes: 0 ran, 5 with --fail-over: a source's mean error is larger, or nothing could be predicted.
    """
    from coopt.report.pictures import check_picture, draw_scatter
    from coopt.report.terminal import rendered
    from coopt.report.validation import validation_report
    from coopt.validation.comparison import comparison_of
    from coopt.validation.published import read_measurements

    limit = None if fail_over is None else fail_over / 100.0
    rows = read_measurements(table)
    if plot is not None:
        check_picture(plot, "--plot")
        check_place(plot, table)
    found = comparison_of(rows)
    if plot is not None:
        draw_scatter(found, plot)
        note(f"picture written to {plot}")
    answer(found.model_dump_json(indent=2) if as_json else rendered(validation_report(found, limit)))
    ctx.exit(TOO_FAR_OFF if limit is not None and found.fails(limit) else 0)
