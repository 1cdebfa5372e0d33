"""Fitted parameters, what they are worth, and how they stand in the catalog."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from coopt.report import words
from coopt.report.tables import figures
from coopt.validation.calibration import Calibration, Fit
from coopt.validation.comparison import Score

DIGITS = 3  # significant ones of a fitted value


def calibration_report(found: Calibration) -> Iterator[RenderableType]:
    """Values before and after, and errors side by side; `catalog_lines` follow."""
    yield Text(calibration_headline(found), style="bold")
    yield ""
    values = [
        (fit.name, parameter.name, value(parameter.before), value(parameter.after))
        for fit in found.fits
        for parameter in fit.parameters
    ]
    yield figures("Values", ("of", "parameter"), ("catalog", "fitted"), values)
    numbers = ("parameters", "rows", "catalog", "fitted", "held out", "group left out")
    yield figures("Error, mean (median)", ("of",), numbers, [_errors(fit) for fit in found.fits], _all_errors(found))
    yield (
        "Held out: rows of the same generation and precision that no fit used. Group left out: every group predicted "
        "by a fit without it; parameters left without rows take the values they are held to."
    )
    if found.left_out:
        yield f"Not fitted, for want of rows: {', '.join(found.left_out)}."
    yield from _kinds(found)
    yield ""
    yield Text("To be pasted by hand, into coopt/catalog or the tables of an instance:", style="bold")
    yield "[cluster.gpu] and [workload.options.software] take whole entries: `coopt catalog show NAME` has the rest."
    yield ""


def _kinds(found: Calibration) -> Iterator[str]:
    for kind in found.architecture if len(found.architecture) > 1 else ():
        yield (
            f"Of these, {words.counted(kind.fitted.n, 'row')} of {kind.name}: fitted {_error(kind.fitted)}, "
            f"group left out {_error(kind.leave_one_group_out)}."
        )


def calibration_headline(found: Calibration) -> str:
    """How many parameters were fitted to how many rows."""
    parameters, rows = words.counted(_parameters(found), "parameter"), words.counted(found.fitted.n, "row")
    return f"{parameters} fitted to {rows}; the catalog is as it was."


def catalog_lines(found: Calibration) -> str:
    """TOML as in `coopt/catalog/gpu.toml` and `software.toml`."""
    return "\n".join(line for fit in found.fits for line in _lines(fit))


def value(number: float) -> str:
    """A parameter as it stands in the catalog."""
    return f"{number:.{DIGITS}g}"


def _lines(fit: Fit) -> Iterator[str]:
    """A table shaped like those of the catalog, with the fitted figures and their source."""
    table = "" if fit.software else "efficiency" if fit.precision == "16-bit" else f"efficiency.{fit.precision}"
    names = ", ".join(f'"{table}.{parameter.name}"'.replace('".', '"') for parameter in fit.parameters)
    fields = f'"{table}"' if fit.precision in ("fp8", "fp4") else f"[{names}]"
    figures = [f"{parameter.name} = {value(parameter.after)}" for parameter in fit.parameters]
    yield "[[software]]" if fit.software else "[[gpu]]"
    yield f'name = "{fit.software}"' if fit.software else f'generation = "{fit.generation}"'
    yield from figures if fit.software else ()
    yield f'sources = [{{ fields = {fields}, tag = "D", source = "{_source(fit)}" }}]'
    yield from () if fit.software else (f"[gpu.{table}]", *figures)
    yield ""


def _source(fit: Fit) -> str:
    rest = fit.held_out or fit.leave_one_group_out
    rows = f"{words.counted(len(fit.rows), 'published row')} of {', '.join(fit.groups)}"
    text = f"fitted to {rows} by `coopt calibrate`, mean error {words.percent(fit.fitted.mean_abs_error)}"
    if rest is None:
        return text
    unseen = "rows" if fit.held_out else "groups"
    return f"{text}, {words.percent(rest.mean_abs_error)} on {unseen} not used"


def _errors(fit: Fit) -> tuple[str, ...]:
    count = (words.count(len(fit.parameters)), words.count(len(fit.rows)))
    return fit.name, *count, *map(_error, (fit.before, fit.fitted, fit.held_out, fit.leave_one_group_out))


def _all_errors(found: Calibration) -> tuple[str, ...]:
    count = (words.count(_parameters(found)), words.count(found.fitted.n))
    return "all", *count, *map(_error, (found.before, found.fitted, None, found.leave_one_group_out))


def _parameters(found: Calibration) -> int:
    return sum(len(fit.parameters) for fit in found.fits)


def _error(score: Score | None) -> str:
    if score is None:
        return "-"
    return f"{words.percent(score.mean_abs_error)} ({words.percent(score.median_abs_error)})"
