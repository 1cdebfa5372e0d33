"""Predictions against published measurements, and parameters fitted to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from coopt.report import words
from coopt.report.words import figures, pieces
from coopt.validation.calibration import Calibration, Fit
from coopt.validation.comparison import Comparison, GroupResult, Score
from coopt.validation.curse import Curse

WORST = 10
SMALL = 0.05  # of the predicted time: parts below it are not named
TO_PASTE = "\nTo be copied by hand into coopt/catalog or the tables of an instance:"
DIGITS = 3  # significant ones of a fitted value


def validation_report(comparison: Comparison, limit: float | None = None) -> list[RenderableType]:
    """Errors by source, hardware and architecture, the rows that are furthest off, and what was
    skipped.

    Parameters
    ----------
    limit
        Largest mean error a source may have (a share); None for any.
    """
    overall = comparison.overall
    skipped = Counter(row.why for row in comparison.rows if row.status == "skipped")
    rows = [(reason, words.count(n)) for reason, n in skipped.most_common()]
    groups = (
        ()
        if overall is None
        else (
            _groups("By source", "source", comparison.groups, overall),
            _groups("By hardware", "generation", comparison.hardware),
            _groups("By architecture", "model", comparison.architecture),
            _worst(comparison),
            _refused(comparison),
            None if comparison.curse is None else _claims(comparison.curse),
        )
    )
    return pieces(
        Text(validation_headline(comparison), style="bold"),
        None if limit is None else _verdict(comparison, limit),
        *groups,
        figures("Skipped", ("why",), ("rows",), rows) if skipped else None,
        None if overall is None else _remarks(comparison),
    )


def validation_headline(comparison: Comparison) -> str:
    """How many rows were predicted, and how well."""
    rows = comparison.evaluated + comparison.skipped
    if comparison.overall is None:
        return f"No prediction was possible for {words.counted(rows, 'row')}."
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
    over, most = comparison.sources_over(limit), words.percent(limit)
    names = ", ".join(f"{group.name} ({words.percent(group.mean_abs_error)})" for group in over)
    if not comparison.evaluated or over:
        nothing = f"Nothing was predicted, so no error can be shown to be within {most}."
        text = f"Mean error above {most}: {names}." if comparison.evaluated else nothing
        return Text(text, "bold red")
    return Text(f"No source has a mean error above {most}.", style="green")


def _groups(
    title: str, first_column: str, groups: Sequence[GroupResult], overall: GroupResult | None = None
) -> RenderableType:
    *rows, total = (
        (
            group.name,
            words.count(group.n),
            words.percent(group.mean_abs_error),
            words.percent(group.median_abs_error),
            words.percent(group.max_abs_error),
            signed_percent(group.bias),
            "-" if group.mean_abs_hfu_points is None else f"{group.mean_abs_hfu_points:.2f}",
            words.count(group.fitted_parameters),
        )
        for group in (*groups, *([] if overall is None else [overall]))
    )
    numbers = ("rows", "mean", "median", "largest", "bias", "HFU points", "fitted")
    if overall is None:
        return figures(title, (first_column,), numbers, [*rows, total])
    return figures(title, (first_column,), numbers, rows, total)


def _worst(comparison: Comparison) -> RenderableType:
    done = [
        (row, row.measured_s, row.predicted_s, row.error)
        for row in comparison.rows
        if row.measured_s is not None and row.predicted_s is not None and row.error is not None
    ]
    worst = sorted(done, key=lambda one: -abs(one[-1]))[:WORST]
    rows = [
        (
            row.id,
            ", ".join(
                f"{name} {100 * s / predicted_s:.0f}%"
                for name, s in sorted(row.breakdown_s.items(), key=lambda part: -part[1])
                if s >= SMALL * predicted_s
            ),
            words.seconds(measured_s),
            words.seconds(predicted_s),
            signed_percent(error),
        )
        for row, measured_s, predicted_s, error in worst
    ]
    title = (
        "The row with the largest error"
        if len(done) == 1
        else f"The {len(worst)} rows with the largest errors"
    )
    return figures(
        title,
        ("row", "what takes most of the predicted time"),
        ("measured", "predicted", "error"),
        rows,
    )


def _refused(comparison: Comparison) -> RenderableType | None:
    """Runs whose mapping is said not to fit into memory."""
    # The worst first: the smaller the memory that there is beside what is needed, the further off
    # the model.
    refused = sorted(
        (row for row in comparison.rows if row.status == "evaluated" and row.refused),
        key=lambda row: (row.memory_limit_gib or 0.0) / (row.memory_gib or 1.0),
    )
    rows = [
        (row.id, row.doubt, f"{row.memory_gib:.1f}", f"{row.memory_limit_gib:.1f}")
        for row in refused[:WORST]
    ]
    title, numbers = (
        "Runs that ran, but are predicted not to fit into memory",
        ("needs GiB", "has GiB"),
    )
    return figures(title, ("row", "possible reason"), numbers, rows) if rows else None


def _claims(curse: Curse) -> RenderableType:
    """Speed-ups of mappings that the model chooses over published ones."""
    *rows, total = (
        (
            group.name,
            words.count(group.n),
            *(words.percent(share) for share in (group.median, group.p90, group.over_15)),
        )
        for group in (*curse.groups, curse)
    )
    return figures(
        "Predicted speed-up of coopt's mappings over those that ran",
        ("model",),
        ("questions", "median", "90th percentile", "over 15%"),
        rows,
        total,
    )


def _remarks(comparison: Comparison) -> Iterator[str]:
    """How well mappings are ordered, how many that ran would not fit, and what columns mean."""
    order, memory = comparison.ranking, comparison.memory
    if (
        order.in_order is not None
        and order.regret_mean is not None
        and order.regret_max is not None
    ):
        yield (
            f"Mappings: in {words.counted(order.groups, 'group')} of runs only the mapping differs."
            f" Of the {words.counted(order.pairs, 'pair')} of runs within a group,"
            f" {words.percent(order.in_order)} are predicted in the measured order (rank"
            f" correlation {order.spearman:.2f}). The mapping predicted to be fastest takes"
            f" {words.percent(order.regret_mean)} longer than the fastest measured one on average,"
            f" {words.percent(order.regret_max)} at most."
        )
    exhausted = (
        f"; predicted to fit: {words.count(memory.accepted_that_ran_out)} of"
        f" {words.counted(memory.ran_out, 'row')} that ran out of memory"
        if memory.ran_out
        else ""
    )
    for name, error in (("allocated", memory.allocated_error), ("reserved", memory.reserved_error)):
        if error is not None:
            exhausted += f"; {name} memory is {words.percent(error)} off in the median"
    yield (
        f"Memory, predicted not to fit: {words.count(memory.refused)} of"
        f" {words.counted(memory.stated, 'mapping')} that ran{exhausted}."
    )
    yield (
        "Error: predicted / measured - 1; bias: its median. HFU points: mean difference between"
        " predicted and measured hardware FLOPs utilisation, where the source reports FLOPs."
        " Fitted: number of parameters used that the catalog marks as fitted."
    )
    if assumed := sum(bool(row.assumptions) for row in comparison.rows):
        yield (
            f"{words.counted(assumed, 'row')} {'rests' if assumed == 1 else 'rest'} on assumptions"
            " about what their table does not say; --json lists them."
        )
    yield from (
        f"For comparison, on {peer.rows} rows, most of them from {words.both(peer.groups)},"
        f" {peer.name} was off by {words.percent(peer.mean)} on average,"
        f" {words.percent(peer.largest)} at most, and by {peer.hfu_points:.2f} HFU points; coopt"
        f" was fitted to {peer.fitted} of the {peer.rows}."
        for peer in comparison.peers
    )


def calibration_report(calibration: Calibration) -> list[RenderableType]:
    """Values before and after, and errors side by side; `catalog_lines` follow."""
    fits, whole, kinds = calibration.fits, calibration.fitted, calibration.architecture
    count = sum(len(fit.parameters) for fit in fits)
    fitted = f"{words.counted(count, 'parameter')} fitted to {words.counted(whole.n, 'row')}"
    values = [
        (fit.name, parameter.name, value(parameter.before), value(parameter.after))
        for fit in fits
        for parameter in fit.parameters
    ]
    errors = [
        (
            fit.name,
            *map(words.count, (len(fit.parameters), len(fit.rows))),
            *map(_error, (fit.before, fit.fitted, fit.held_out, fit.leave_one_group_out)),
        )
        for fit in fits
    ]
    total = (
        "all",
        *map(words.count, (count, whole.n)),
        *map(_error, (calibration.before, whole, None, calibration.leave_one_group_out)),
    )
    numbers = ("parameters", "rows", "catalog", "fitted", "held out", "group left out")
    left_out = ", ".join(calibration.left_out)
    return pieces(
        Text(f"{fitted}; the catalog is unchanged.", style="bold"),
        figures("Values", ("of", "parameter"), ("catalog", "fitted"), values),
        figures("Error, mean (median)", ("of",), numbers, errors, total),
        "Held out: rows of the same generation and precision that no fit used. Group left out:"
        " each group is predicted by a fit without it; parameters that then have no rows take the"
        " values of their prior.",
        f"Not fitted (too few rows): {left_out}." if left_out else None,
        [
            f"Error on the {words.counted(kind.fitted.n, 'row')} of {kind.name}: fitted"
            f" {_error(kind.fitted)}, group left out {_error(kind.leave_one_group_out)}."
            for kind in kinds
            if len(kinds) > 1
        ],
        Text(TO_PASTE, style="bold"),
        "[cluster.gpu] and [workload.options.software] need whole entries: `coopt catalog show"
        " NAME` prints their other keys.\n",
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
    rows = f"{words.counted(len(fit.rows), 'published row')} of {', '.join(fit.groups)}"
    source = f"{rows} by `coopt calibrate`, mean error {words.percent(fit.fitted.mean_abs_error)}"
    if errors := fit.held_out or fit.leave_one_group_out:
        unseen = (
            "rows that the fit did not use"
            if fit.held_out
            else "groups left out of such a fit in turn"
        )
        source += f", {words.percent(errors.mean_abs_error)} on {unseen}"
    if not fit.software:
        return hardware_lines(fit.generation, fit.precision, values, source)
    names = ", ".join(f'"{name}"' for name in values)
    return [
        "[[software]]",
        f'name = "{fit.software}"',
        *_figures(values),
        f'sources = [{{ fields = [{names}], tag = "D", source = "fitted to {source}" }}]',
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


def _error(score: Score | None) -> str:
    if score is None:
        return "-"
    return f"{words.percent(score.mean_abs_error)} ({words.percent(score.median_abs_error)})"
