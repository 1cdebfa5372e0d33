"""`coopt suite`: many cases of one study, and what came of them."""

from __future__ import annotations

import json

import click

from coopt.cli.arguments import a_file
from coopt.cli.terminal import answer, check_folder, note

STOPPED = 4


@click.group()
def command() -> None:
    """Run a grid of cases, and show the results as tables and plots."""


@command.command()
@click.argument("suite", shell_complete=a_file)
@click.option("-o", "--output", metavar="DIR", help="Keep the results in this folder.  [out/NAME]")
@click.option("--workers", metavar="N", type=click.IntRange(min=1), help="Local processes.  [one for each core]")
@click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler whose workers do the work.")
@click.option("--resume", is_flag=True, help="Go on in a folder that holds results of this suite.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as one JSON document.")
@click.pass_context
def run(
    ctx: click.Context,
    /,
    suite: str,
    output: str | None,
    workers: int | None,
    scheduler: str | None,
    resume: bool,
    as_json: bool,
) -> None:
    """Run every case of SUITE, a TOML file (docs/suites.md).

    The answers stay in DIR: results.parquet with a row for each case, and cases/ with a file for each. A run that was
    ended, in whatever way, goes on with --resume: what is answered is not asked again.

    Exit codes: 0 every case has a row, 4 ended before.
    """
    from coopt.report.suite_tables import summary_report
    from coopt.report.terminal import progress_shown, rendered
    from coopt.suite.driver import run_suite

    if workers is not None and scheduler is not None:
        raise click.UsageError("--workers and --scheduler: needs one or neither.")
    if output is not None:
        check_folder(output)
    with progress_shown(note) as on_progress:
        summary = run_suite(suite, output, workers=workers, scheduler=scheduler, resume=resume, on_progress=on_progress)
    answer(json.dumps(summary.document(), indent=2) if as_json else rendered(summary_report(summary)))
    ctx.exit(STOPPED if summary.stopped else 0)


@command.command()
@click.argument("folder", metavar="DIR")
@click.option("-o", "--output", metavar="FOLDER", help="Draw the suite's figures into this folder.")
@click.option("--format", "ending", type=click.Choice(["png", "svg", "pdf"]), default="png", help="Of the pictures.")
@click.option("--json", "as_json", is_flag=True, help="Print the rows as one JSON document.")
def report(folder: str, output: str | None, ending: str, as_json: bool) -> None:
    """Show the tables of the results in DIR, and draw its figures.

    A suite without tables of its own is shown with its axes, costs and times.
    """
    from coopt.report.suite_figures import draw_figures
    from coopt.report.suite_tables import suite_report
    from coopt.report.terminal import rendered
    from coopt.suite.folder import read_results

    study, rows = read_results(folder)
    if output is not None:
        check_folder(output)
        for file in draw_figures(study, rows, output, ending):
            note(f"picture written to {file}")
    answer(json.dumps(rows, indent=2) if as_json else rendered(suite_report(study, rows)))
