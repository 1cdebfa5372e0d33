"""Predictions against published measurements, and parameters fitted to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from coopt.report import words
from coopt.report.words import Cell, figures
from coopt.validation.calibration import Calibration, Fit
from coopt.validation.comparison import Comparison, GroupResult, RowResult, Score

WORST = 10
SMALL = 0.05  # of the predicted time: parts below it are not named
DIGITS = 3  # significant ones of a fitted value


def validation_report(
    comparison: Comparison, limit: float | None = None
) -> Iterator[RenderableType]:
    """Errors by source, hardware and architecture, the rows that are furthest off, and what was
    skipped.

    Parameters
    ----------
    limit
        Largest mean error a source may have (a share); None for any.
    """
    yield Text(validation_headline(comparison), style="bold")
    if limit is not None:
        yield _verdict(comparison, limit)
    if comparison.overall is not None:
        yield _groups("By source", "source", comparison.groups, comparison.overall)
        yield _groups("By hardware", "generation", comparison.hardware)
        yield _groups("By architecture", "model", comparison.architecture)
        yield _worst(comparison)
        yield from _refused(comparison)
    skipped = Counter(row.why for row in comparison.rows if row.status == "skipped")
    if skipped:
        rows = [(reason, words.count(n)) for reason, n in skipped.most_common()]
        yield figures("Skipped", ("why",), ("rows",), rows)
    if comparison.overall is not None:
        yield from _order(comparison)
        yield from _remarks(comparison)


def validation_headline(comparison: Comparison) -> str:
    """How many rows were predicted, and how well."""
    rows = comparison.evaluated + comparison.skipped
    if comparison.overall is None:
        return f"None of {words.counted(rows, 'row')} could be predicted."
    overall = comparison.overall
    return (
        f"{words.count(comparison.evaluated)} of {words.counted(rows, 'row')} predicted, "
        f"{words.percent(overall.median_abs_error)} off in the median and "
        f"{words.percent(overall.mean_abs_error)} on average, "
        f"with {words.counted(overall.fitted_parameters, 'fitted parameter')}."
    )


def signed_percent(share: float) -> str:
    """`+3.1%`, `-12.0%`."""
    return f"{100 * share:+.1f}%"


def _verdict(comparison: Comparison, limit: float) -> Text:
    over = comparison.sources_over(limit)
    if not comparison.evaluated:
        return Text(
            f"Nothing was predicted, so nothing is shown to be within {words.percent(limit)}.",
            "bold red",
        )
    if not over:
        return Text(f"No source is more than {words.percent(limit)} off on average.", style="green")
    names = ", ".join(f"{group.name} ({words.percent(group.mean_abs_error)})" for group in over)
    return Text(f"More than {words.percent(limit)} off on average: {names}.", style="bold red")


def _groups(
    title: str, first_column: str, groups: Sequence[GroupResult], overall: GroupResult | None = None
) -> RenderableType:
    numbers = ("rows", "mean", "median", "largest", "bias", "HFU points", "fitted")
    return figures(
        title,
        (first_column,),
        numbers,
        map(_group_row, groups),
        _group_row(overall) if overall else None,
    )


def _group_row(group: GroupResult) -> tuple[str, ...]:
    points = group.mean_abs_hfu_points
    return (
        group.name,
        words.count(group.n),
        words.percent(group.mean_abs_error),
        words.percent(group.median_abs_error),
        words.percent(group.max_abs_error),
        signed_percent(group.bias),
        "-" if points is None else f"{points:.2f}",
        words.count(group.fitted_parameters),
    )


def _worst(comparison: Comparison) -> RenderableType:
    done = [row for row in comparison.rows if row.error is not None]
    worst = sorted(done, key=lambda row: -abs(row.error or 0.0))[:WORST]
    return figures(
        "The row furthest off" if len(done) == 1 else f"The {len(worst)} rows furthest off",
        ("row", "where predicted time goes"),
        ("measured", "predicted", "error"),
        map(_worst_row, worst),
    )


def _worst_row(row: RowResult) -> tuple[Cell, ...]:
    assert row.measured_s is not None
    assert row.predicted_s is not None
    assert row.error is not None
    parts = sorted(row.breakdown_s.items(), key=lambda part: -part[1])
    shares = [
        f"{name} {100 * s / row.predicted_s:.0f}%"
        for name, s in parts
        if s >= SMALL * row.predicted_s
    ]
    return (
        row.id,
        ", ".join(shares),
        words.seconds(row.measured_s),
        words.seconds(row.predicted_s),
        signed_percent(row.error),
    )


def _refused(comparison: Comparison) -> Iterator[RenderableType]:
    """Runs whose mapping is said not to fit into memory."""
    refused = [row for row in comparison.rows if row.status == "evaluated" and row.refused]
    # The worst first: the smaller the memory that there is beside what is needed, the further off
    # the model.
    refused.sort(key=lambda row: (row.memory_limit_gib or 0.0) / (row.memory_gib or 1.0))
    if refused:
        rows = [
            (row.id, row.doubt, f"{row.memory_gib:.1f}", f"{row.memory_limit_gib:.1f}")
            for row in refused[:WORST]
        ]
        yield figures(
            "Ran, but would not fit into memory", ("row", "doubted"), ("needs GiB", "has GiB"), rows
        )


def _order(comparison: Comparison) -> Iterator[str]:
    """How well mappings are ordered, and how many that ran would not fit."""
    order, memory = comparison.ranking, comparison.memory
    if (
        order.in_order is not None
        and order.regret_mean is not None
        and order.regret_max is not None
    ):
        yield (
            f"Mappings: {words.counted(order.groups, 'group')} of rows that differ in nothing else,"
            f" {words.percent(order.in_order)} of {words.counted(order.pairs, 'pair')} in order,"
            f" rank correlation {order.spearman:.2f}; the mapping preferred takes"
            f" {words.percent(order.regret_mean)} longer than the best measured on average,"
            f" {words.percent(order.regret_max)} at most."
        )
    yield (
        f"Memory: {words.count(memory.refused)} of {words.counted(memory.stated, 'stated mapping')}"
        " that ran refused."
    )


def _remarks(comparison: Comparison) -> Iterator[str]:
    assumed = sum(bool(row.assumptions) for row in comparison.rows)
    yield (
        "Error: predicted / measured - 1; bias: its median. HFU points: predicted less measured"
        " hardware FLOPs utilisation, where the source reports FLOPs. Fitted: parameters the"
        " catalog calls fitted."
    )
    if assumed:
        yield (
            f"{words.counted(assumed, 'row')} {'rests' if assumed == 1 else 'rest'} on assumptions"
            " about what was not published; --json lists them."
        )
    for peer in comparison.peers:
        yield (
            f"For comparison: {peer.name} was {words.percent(peer.mean)} off on average,"
            f" {words.percent(peer.largest)} at most and {peer.hfu_points:.2f} HFU points on"
            f" {peer.rows} rows, most but not all of them among those of"
            f" {words.both(peer.groups)}; coopt was fitted to {peer.fitted} of them."
        )


def calibration_report(calibration: Calibration) -> Iterator[RenderableType]:
    """Values before and after, and errors side by side; `catalog_lines` follow."""
    fits, whole, kinds = calibration.fits, calibration.fitted, calibration.architecture
    count = sum(len(fit.parameters) for fit in fits)
    fitted = f"{words.counted(count, 'parameter')} fitted to {words.counted(whole.n, 'row')}"
    yield Text(f"{fitted}; the catalog is as it was.", style="bold")
    values = [
        (fit.name, parameter.name, value(parameter.before), value(parameter.after))
        for fit in fits
        for parameter in fit.parameters
    ]
    yield figures("Values", ("of", "parameter"), ("catalog", "fitted"), values)
    yield figures(
        "Error, mean (median)",
        ("of",),
        ("parameters", "rows", "catalog", "fitted", "held out", "group left out"),
        [
            (
                fit.name,
                *map(words.count, (len(fit.parameters), len(fit.rows))),
                *map(_error, (fit.before, fit.fitted, fit.held_out, fit.leave_one_group_out)),
            )
            for fit in fits
        ],
        (
            "all",
            *map(words.count, (count, whole.n)),
            *map(_error, (calibration.before, whole, None, calibration.leave_one_group_out)),
        ),
    )
    yield (
        "Held out: rows of the same generation and precision that no fit used. Group left out:"
        " every group predicted by a fit without it; parameters left without rows take the values"
        " they are held to."
    )
    if calibration.left_out:
        yield f"Not fitted, for want of rows: {', '.join(calibration.left_out)}."
    for kind in kinds if len(kinds) > 1 else ():
        yield (
            f"Of these, {words.counted(kind.fitted.n, 'row')} of {kind.name}: fitted"
            f" {_error(kind.fitted)}, group left out {_error(kind.leave_one_group_out)}."
        )
    yield Text(
        "\nTo be pasted by hand, into coopt/catalog or the tables of an instance:", style="bold"
    )
    yield (
        "[cluster.gpu] and [workload.options.software] take whole entries: `coopt catalog show"
        " NAME` has the rest.\n"
    )


def catalog_lines(calibration: Calibration) -> str:
    """TOML as in `coopt/catalog/gpu.toml` and `software.toml`."""
    return "\n".join(line for fit in calibration.fits for line in _lines(fit))


def value(number: float) -> str:
    """A parameter as it stands in the catalog."""
    return f"{number:.{DIGITS}g}"


def _lines(fit: Fit) -> list[str]:
    """A table shaped like those of the catalog, with the fitted figures and their source."""
    values = {parameter.name: parameter.after for parameter in fit.parameters}
    if not fit.software:
        return hardware_lines(fit.generation, fit.precision, values, _source(fit))
    names = ", ".join(f'"{name}"' for name in values)
    return [
        "[[software]]",
        f'name = "{fit.software}"',
        *_figures(values),
        f'sources = [{{ fields = [{names}], tag = "D", source = "fitted to {_source(fit)}" }}]',
        "",
    ]


def hardware_lines(
    generation: str, precision: str, values: Mapping[str, float], source: str
) -> list[str]:
    """The tables of a generation with fitted figures; `source` says what they were fitted to, and
    how.
    """
    narrow = precision in ("fp8", "fp4")
    table = f"efficiency.{precision}" if narrow else "efficiency"
    quoted = ", ".join(f'"{table}.{name}"' for name in values)
    fields = f'"{table}"' if narrow else f"[{quoted}]"
    return [
        "[[gpu]]",
        f'generation = "{generation}"',
        f'sources = [{{ fields = {fields}, tag = "D", source = "fitted to {source}" }}]',
        f"[gpu.{table}]",
        *_figures(values),
        "",
    ]


def _figures(values: Mapping[str, float]) -> list[str]:
    return [f"{name} = {value(number)}" for name, number in values.items()]


def _source(fit: Fit) -> str:
    errors = fit.held_out or fit.leave_one_group_out
    rows = f"{words.counted(len(fit.rows), 'published row')} of {', '.join(fit.groups)}"
    text = f"{rows} by `coopt calibrate`, mean error {words.percent(fit.fitted.mean_abs_error)}"
    if errors is None:
        return text
    unseen = "rows" if fit.held_out else "groups"
    return f"{text}, {words.percent(errors.mean_abs_error)} on {unseen} not used"


def _error(score: Score | None) -> str:
    if score is None:
        return "-"
    return f"{words.percent(score.mean_abs_error)} ({words.percent(score.median_abs_error)})"
