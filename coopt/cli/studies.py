"""Commands on many runs: `coopt suite` of planned cases, `validate` and `calibrate` of measured
ones, `fits` of mappings.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from coopt.cli.arguments import (
    FAILED,
    INFEASIBLE,
    PERCENT,
    STOPPED,
    Settings,
    a_file,
    answer,
    check_folder,
    check_place,
    check_places,
    note,
    settings_option,
    write_file,
)
from coopt.instance.texts import counted

if TYPE_CHECKING:
    from coopt.validation.facts import FitSet
    from coopt.validation.link_tests import LinkFit
    from coopt.validation.published import Measurement


OWN_CATALOG = click.option(
    "--catalog",
    "catalogs",
    metavar="FILE",
    multiple=True,
    shell_complete=a_file,
    help="A catalog file of your own, as in an instance; repeatable.",
)


RECOMPUTE = ("none", "selective", "full", "norm+act", "norm+ffn", "act")


@click.group()
def suite() -> None:
    """Run a grid of cases, and show the results as tables and plots."""


@suite.command()
@click.argument("suite", shell_complete=a_file)
@click.option("-o", "--output", metavar="DIR", help="Keep the results in this folder.  [out/NAME]")
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(min=1),
    help="Number of local processes.  [one for each core]",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Address of a Dask scheduler; its workers solve the cases.",
)
@click.option(
    "--resume", is_flag=True, help="Continue in a folder that holds results of this suite."
)
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

    The answers are kept in DIR: results.parquet with a row for each case, and cases/ with a file
    for each. --resume continues a run that ended early.

    Exit codes: 0 every case has a row, 4 ended before that.
    """
    from coopt.report.suites import summary_report
    from coopt.report.words import progress_shown, rendered
    from coopt.suite.driver import run_suite

    if workers is not None and scheduler is not None:
        raise click.UsageError(
            "--workers and --scheduler: both are given, but they exclude each other, needs only"
            " one."
        )
    if output is not None:
        check_folder(output)
    with progress_shown(note) as on_progress:
        summary = run_suite(
            suite,
            output,
            workers=workers,
            scheduler=scheduler,
            resume=resume,
            on_progress=on_progress,
        )
    answer(json.dumps(asdict(summary), indent=2) if as_json else rendered(summary_report(summary)))
    ctx.exit(STOPPED if summary.stopped else 0)


@suite.command()
@click.argument("folder", metavar="DIR")
@click.option("-o", "--output", metavar="FOLDER", help="Draw the suite's figures into this folder.")
@click.option(
    "--format",
    "ending",
    type=click.Choice(["png", "svg", "pdf"]),
    default="png",
    help="Format of the figures.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the rows as one JSON document.")
def report(folder: str, output: str | None, ending: str, as_json: bool) -> None:
    """Show the tables of the results in DIR; -o draws its figures.

    If the suite defines no tables, one with its axes, costs and times is shown.
    """
    from coopt.report.suites import draw_figures, suite_report
    from coopt.report.words import rendered
    from coopt.suite.folder import read_results

    study, rows = read_results(folder)
    if output is not None:
        check_folder(output)
        for file in draw_figures(study, rows, output, ending):
            note(f"picture written to {file}")
    answer(json.dumps(rows, indent=2) if as_json else rendered(suite_report(study, rows)))


@click.command()
@click.argument("table", metavar="CSV", shell_complete=a_file)
@click.option(
    "--fail-over",
    metavar="PERCENT",
    type=PERCENT,
    help="Exit 5 if a source's mean error is above this.",
)
@click.option(
    "--curse",
    is_flag=True,
    help="Also print by how much the model's best mappings beat the published ones; takes longer.",
)
@OWN_CATALOG
@click.option(
    "--plot",
    metavar="FILE",
    help="Draw predicted against measured times, and their ratio (.png, .pdf, .svg).",
)
@click.option("--json", "as_json", is_flag=True, help="Print rows and groups as one JSON document.")
@click.pass_context
def validate(
    ctx: click.Context,
    table: str,
    fail_over: float | None,
    curse: bool,
    catalogs: tuple[str, ...],
    plot: str | None,
    as_json: bool,
) -> None:
    """Compare the performance model with measurements.

    CSV has a row for each measured run, with the columns of benchmarks/published.csv
    (docs/measurements.md); rows that lack needed figures are skipped.

    Exit codes: 0 compared, 5 with --fail-over: a source's mean error is above it, or no row could
    be predicted.
    """
    from coopt.instance.quotes import own_catalog
    from coopt.report.pictures import check_picture, draw_scatter
    from coopt.report.validation import validation_report
    from coopt.report.words import rendered
    from coopt.validation.comparison import comparison_of
    from coopt.validation.published import read_measurements

    ctx.with_resource(own_catalog(catalogs))
    limit = None if fail_over is None else fail_over / 100.0
    rows = read_measurements(table)
    if plot is not None:
        check_picture(plot, "--plot")
        check_place(plot, table)
    comparison = comparison_of(rows, curse=curse)
    if plot is not None:
        draw_scatter(comparison, plot)
        note(f"picture written to {plot}")
    answer(
        comparison.model_dump_json(indent=2)
        if as_json
        else rendered(validation_report(comparison, limit))
    )
    ctx.exit(FAILED if limit is not None and comparison.fails(limit) else 0)


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, shell_complete=a_file)
@click.option(
    "--generation",
    metavar="NAME",
    help="GPU generation to fit (ampere, hopper, ...).  [all]",
)
@click.option("--precision", type=click.Choice(["16-bit", "fp8", "fp4"]), help="Precision to fit.")
@click.option(
    "--rows",
    metavar="GLOB",
    multiple=True,
    help="Fit only to rows whose id matches, such as 'dgxc-*'; repeatable.",
)
@click.option(
    "--parameters", metavar="NAMES", help="Parameters to fit, at most four, such as gemm,hbm."
)
@click.option(
    "--posterior",
    is_flag=True,
    help="Start from the catalog's values and their uncertainty, and print intervals; a log or a"
    " trace implies it.",
)
@click.option(
    "--set",
    "stated",
    metavar="COLUMN=VALUE",
    multiple=True,
    help="Set a column that logs leave out, such as gpu=H100; repeatable.",
)
@click.option(
    "--range",
    "nvtx_range",
    metavar="NAME",
    help="Name of the NVTX range of an iteration, for a summary of Nsight Systems.",
)
@click.option("--table", metavar="FILE", help="Write the values read from logs to this CSV file.")
@OWN_CATALOG
@click.option("-o", "--output", metavar="FILE", help="Write the catalog lines to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the fits as one JSON document.")
@click.pass_context
def calibrate(
    ctx: click.Context,
    files: tuple[str, ...],
    generation: str | None,
    precision: str | None,
    rows: tuple[str, ...],
    parameters: str | None,
    posterior: bool,
    stated: tuple[str, ...],
    nvtx_range: str | None,
    table: str | None,
    catalogs: tuple[str, ...],
    output: str | None,
    as_json: bool,
) -> None:
    """Fit hardware parameters to measurements.

    Prints fitted values, their errors on fitted and on other rows, and lines to paste into the
    catalog or an instance; the catalog itself is not changed.

    FILE is a CSV as for `coopt validate`, a log of training software (docs/measurements.md lists
    which), the output of nccl-tests, a trace of PyTorch's profiler (.json, .json.gz), or `nsys
    stats --report nvtx_sum`. With a log, a trace or such a summary, the fit starts from the
    catalog's values and their uncertainty, and also prints intervals and the mapping to run next.
    """
    from coopt.instance.quotes import own_catalog
    from coopt.validation.own_runs import measurements_of, table_of
    from coopt.validation.settings import check_globs, sets_selected

    ctx.with_resource(own_catalog(catalogs))
    sets = sets_selected(generation, precision, parameters, rows)
    table_rows, log_rows, links = measurements_of(files, _columns(stated), nvtx_range)
    measured = table_rows + log_rows
    check_globs(rows, [row.id for row in measured])
    check_places((output, table), *files)
    write_file(table, lambda: table_of(log_rows), f"{counted(len(log_rows), 'row')} from the logs")
    report, lines, document = (
        _fitted_to_prior(measured, sets, links, has_logs=bool(log_rows))
        if posterior or log_rows or links
        else _fitted(measured, sets)
    )
    write_file(output, lambda: lines + "\n", "catalog lines")
    answer(document if as_json else report + lines)


def _columns(stated: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in stated]
    for column, equals, _ in pairs:
        if not equals:
            raise click.UsageError(
                f"--set {column!r} needs the form COLUMN=VALUE, such as gpu=H100."
            )
    return {column.strip(): value.strip() for column, _, value in pairs}


def _fitted(measured: list[Measurement], sets: tuple[FitSet, ...]) -> tuple[str, str, str]:
    """Report, lines and document of fits to rows alone."""
    from coopt.report.validation import calibration_report, catalog_lines
    from coopt.report.words import rendered
    from coopt.validation.calibration import calibration_of
    from coopt.validation.runs import runs_among

    calibration = calibration_of(runs_among(measured), sets, report=note)
    return (
        rendered(calibration_report(calibration)),
        catalog_lines(calibration),
        calibration.model_dump_json(indent=2),
    )


def _fitted_to_prior(
    measured: list[Measurement], sets: tuple[FitSet, ...], links: list[LinkFit], *, has_logs: bool
) -> tuple[str, str, str]:
    """Report, lines and document of fits that are held to the catalog's values."""
    from coopt.report.own_runs import link_lines, posterior_lines, posterior_report
    from coopt.report.words import rendered
    from coopt.validation.own_calibration import own_calibration_of

    calibration = own_calibration_of(measured, sets, note, links, has_logs=has_logs)
    return (
        rendered(posterior_report(calibration)),
        posterior_lines(calibration.posteriors) + link_lines(calibration.links),
        calibration.model_dump_json(indent=2),
    )


def _mapping_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for every value of a mapping."""
    whole = click.IntRange(min=1)
    options: tuple[tuple[str, Any, str], ...] = (
        ("--tp", whole, "Tensor parallel degree."),
        ("--pp", whole, "Pipeline parallel degree; --tp and --pp select one mapping."),
        ("--cp", whole, "Context parallel degree."),
        ("--ep", whole, "Expert parallel degree."),
        ("--micro-batch", whole, "Sequences in a micro-batch; 1 if left out."),
        (
            "--interleave",
            whole,
            "Model chunks per GPU; if left out 1, or what the layout gives.",
        ),
        ("--recompute", click.Choice(RECOMPUTE), "Which activations are recomputed."),
        ("--zero", click.IntRange(0, 3), "ZeRO stage."),
        (
            "--sequence-parallel/--no-sequence-parallel",
            None,
            "Sequence parallelism: norms are split over TP ranks.",
        ),
        (
            "--offload-percent",
            click.IntRange(0, 100),
            "Share of activations offloaded to host memory (percent).",
        ),
    )
    for name, kind, text in reversed(options):
        command = click.option(name, type=kind, default=None, help=text)(command)
    return command


@click.command()
@click.argument("question", metavar="MODEL|INSTANCE", shell_complete=a_file)
@settings_option
@click.option(
    "--gpu", metavar="NAME", help="Name of the GPU, in the catalog or a common one such as H100."
)
@click.option("--gpus", metavar="N", type=click.IntRange(min=1), help="Number of GPUs that train.")
@click.option(
    "--batch",
    metavar="N",
    type=click.IntRange(min=1),
    help="Global batch.  [of a MODEL: 2 sequences a GPU]",
)
@click.option("--seq", metavar="N", type=click.IntRange(min=1), help="Tokens in a sequence.")
@click.option("--precision", metavar="NAME", help="bf16, fp16, fp8 or fp4.  [of a MODEL: bf16]")
@click.option("--software", metavar="NAME", help="Training framework of a MODEL.  [megatron-core]")
@_mapping_options
@click.option("--top", metavar="N", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def fits(
    question: str,
    settings: Settings,
    gpu: str | None,
    gpus: int | None,
    batch: int | None,
    seq: int | None,
    precision: str | None,
    software: str | None,
    top: int,
    as_json: bool,
    **limits: Any,
) -> None:
    """Show which mappings fit into memory, and what fills it.

    Give a MODEL of the catalog with --gpu and --gpus, or an INSTANCE (.toml). With --tp and --pp
    the memory of one mapping is shown by component, otherwise the mappings that fit. Needs no
    prices, network or times.

    Exit codes: 0 at least one mapping fits, 3 none fits.
    """
    from coopt.report.fits import fits_report
    from coopt.report.words import rendered
    from coopt.validation.fits import fits_of

    answers = fits_of(
        question,
        {
            "gpu": gpu,
            "gpus": gpus,
            "batch": batch,
            "seq": seq,
            "precision": precision,
            "software": software,
        },
        limits,
        dict(settings),
        top,
    )
    document = json.dumps({"workloads": [one.model_dump() for one in answers]}, indent=2)
    answer(document if as_json else rendered(fits_report(answers)))
    click.get_current_context().exit(0 if any(one.fitting for one in answers) else INFEASIBLE)
