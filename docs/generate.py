"""Write docs/model.md from docs/model.in.md: constants from the code, tables from the catalog and `coopt validate`.

`--check` writes nothing and exits 1 when the page is not what it would be. `--calibrate` first fits everything again,
which takes minutes, and rewrites the errors on sources left out: benchmarks/calibration.csv, and left_out.csv by rows.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from coopt.instance.catalog import entries
from coopt.instance.hardware import Gpu
from coopt.instance.software import Software
from coopt.instance.texts import write_text
from coopt.perf import collectives, iterations, kernels, layer, traffic
from coopt.validation.calibration import UnseenError, calibration_of
from coopt.validation.comparison import Comparison, GroupResult, comparison_of
from coopt.validation.facts import published_facts
from coopt.validation.published import Measurement, read_measurements
from docs import kernel_errors
from docs.calibration_record import COLUMNS, fitted_runs, read_record, record_lines, spreads, unseen_lines

HERE = Path(__file__).parent
ROWS = HERE.parent / "benchmarks" / "published.csv"
CALIBRATION = HERE.parent / "benchmarks" / "calibration.csv"
UNSEEN = HERE.parent / "benchmarks" / "left_out.csv"
WORST = 10
MODULES = (iterations, kernels, layer, traffic)
BANDS = (0.02, 0.05, 0.10, 0.20, 0.50, np.inf)


def main() -> None:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when the page is out of date")
    parser.add_argument("--calibrate", action="store_true", help="fit everything again before")
    wishes = parser.parse_args()
    if wishes.calibrate:
        found = calibration_of(fitted_runs(read_measurements(ROWS)), published_facts().fit)
        write_text(CALIBRATION, lines_text(COLUMNS, record_lines(found)))
        write_text(UNSEEN, lines_text(tuple(UnseenError.model_fields), unseen_lines(found)))
    place, text = HERE / "model.md", page()
    if not wishes.check:
        write_text(place, text)
    elif place.read_text("utf-8") != text:
        sys.exit("docs/model.md is out of date, `make docs` writes it")


def page() -> str:
    """The whole page."""
    source = (HERE / "model.in.md").read_text("utf-8")
    rows = read_measurements(ROWS)
    values = constants() | measured_kernels() | tables(comparison_of(rows)) | held_out() | spread(rows)
    return re.sub(r"\{([A-Z][A-Z_0-9]*)\}", lambda name: values[name[1]], source)


def constants() -> dict[str, str]:
    """Numbers in equations, by the names they have in the code."""
    named = {
        name: f"{value:g}"
        for module in MODULES
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int | float)
    }
    tiles = ", ".join(f"({rows},{columns},{share:g})" for rows, columns, share in kernels.TILES)
    shares = {f"{name.upper()}_SHARE": f"{share:.2f}" for name, share in collectives.TRANSPORT_SHARE.items()}
    defaults = {
        "RESERVE_GIB": f"{Software(name='any').reserve_gib:g}",
        "STATE_BYTES": str(Software(name="any").state_bytes),
    }
    return named | shares | defaults | {"TILES": tiles}


def measured_kernels() -> dict[str, str]:
    """Errors of the laws of kernels."""
    kernels = kernel_errors.read_kernels()
    lines = kernel_errors.table_lines(kernels, kernel_errors.fits(kernels))
    return kernel_errors.constants(kernels) | {"KERNEL_ERRORS": table(("kernels", "n", "mean", "largest"), lines)}


def tables(found: Comparison) -> dict[str, str]:
    """Tables of parameters and errors."""
    assert found.overall is not None
    return {
        "EFFICIENCIES": table(
            ("GPU", "precision", "eg", "k0", "em", "δ us", "ea", "env", "eib", "es", "λ_s us", "λ us", "α us"),
            efficiencies(),
        ),
        "PUBLISHED": table(
            ("rows", "n", "mean", "median", "largest", "HFU points, mean", "fitted parameters"),
            (errors(group) for group in (*found.groups, *found.hardware, *found.architecture, found.overall)),
        ),
        "DISTRIBUTION": table(("error at most", "rows", "share"), distribution(found)),
        "REFUSED": str(found.memory.refused),
        "STATED": str(found.memory.stated),
        "REFUSED_ROWS": table(("row", "needs GiB", "has GiB", "why it is doubted"), refused(found)),
        "LEAST": str(sum("the least that fits" in " ".join(row.assumptions) for row in found.rows)),
        "WORST_ROWS": table(("row", "measured s", "predicted s", "error", "most of the predicted time"), worst(found)),
        "EVALUATED": str(found.evaluated),
        "ALL_ROWS": str(found.evaluated + found.skipped),
        "MEDIAN": f"{100 * found.overall.median_abs_error:.1f}%",
        "MEAN": f"{100 * found.overall.mean_abs_error:.1f}%",
        "FITTED": str(found.overall.fitted_parameters),
    }


def lines_text(columns: Sequence[str], lines: Iterable[dict[str, str]]) -> str:
    """A table as a file of comma-separated values."""
    told = io.StringIO(newline="")
    writer = csv.DictWriter(told, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return told.getvalue()


def held_out() -> dict[str, str]:
    """Errors on sources that a fit did not see, from the table of the last calibration."""
    lines = read_record(CALIBRATION)
    shown = [[line[name] for name in COLUMNS] for line in lines]
    measures = ("fitted, mean", "median", "not used, mean", "rows", "source left out, mean", "median")
    head = ("set", "parameters", "rows", *measures)
    cells = [(*line[:3], *map(percent, line[3:6]), line[6], *map(percent, line[7:])) for line in shown]
    means = {
        f"{short}_{column.upper()}": line[column] if column == "left_out_rows" else percent(line[column])
        for short, name in (("ALL", "all"), ("DENSE", "dense"), ("EXPERTS", "mixture of experts"))
        for line in lines
        if line["set"] == name
        for column in COLUMNS[3:]
    }
    return {"CALIBRATION": table(head, cells)} | means


def percent(share: str) -> str:
    """A share of the table as a percentage."""
    return f"{100 * float(share):.1f}%" if share else "-"


def spread(rows: list[Measurement]) -> dict[str, str]:
    """How far measurements of one configuration lie apart."""
    ratios = [ratio for ratio, _ in spreads(rows)]
    return {
        "REPEATED": str(len(ratios)),
        "REPEAT_LARGEST": f"{max(ratios):.2f}",
        "REPEAT_MEDIAN": f"{np.median(ratios):.2f}",
        "REPEAT_THIRD": str(sum(ratio > 4 / 3 for ratio in ratios)),
    }


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def efficiencies() -> Iterable[tuple[str, ...]]:
    """What the GPUs of the catalog reach, one line for each precision they have figures of."""
    for gpu in entries("gpu").values():
        assert isinstance(gpu, Gpu)
        own = gpu.efficiency
        for precision in ("bf16", "fp8", "fp4"):
            if precision != "bf16" and getattr(own, precision) is None:
                continue
            reached = gpu.reached(precision)
            yield (
                gpu.name,
                "16-bit" if precision == "bf16" else precision,
                f"{reached.gemm:g}",
                f"{own.gemm_k0:g}",
                f"{reached.hbm:g}",
                f"{1e6 * reached.kernel_s:g}",
                *(f"{share:g}" for share in (own.attention, own.hb, own.rail, own.send)),
                *(f"{1e6 * seconds:g}" for seconds in (own.send_s, own.latency_s, own.step_s)),
            )


def errors(group: GroupResult) -> tuple[str, ...]:
    """A line of the table of errors."""
    points = group.mean_abs_hfu_points
    sizes = (group.mean_abs_error, group.median_abs_error, group.max_abs_error)
    shown = tuple(f"{100 * size:.1f}%" for size in sizes)
    return (group.name, str(group.n), *shown, "-" if points is None else f"{points:.2f}", str(group.fitted_parameters))


def distribution(found: Comparison) -> Iterable[tuple[str, ...]]:
    """How many rows lie within which error."""
    sizes = np.array([abs(row.error) for row in found.rows if row.error is not None])
    for band in BANDS:
        within = int((sizes <= band).sum())
        yield ("any" if np.isinf(band) else f"{100 * band:.0f}%", str(within), f"{100 * within / len(sizes):.0f}%")


def refused(found: Comparison) -> Iterable[tuple[str, ...]]:
    """Rows that ran and are said not to fit, each with why it is doubted."""
    for row in found.rows:
        if row.status == "evaluated" and row.refused:
            yield row.id, f"{row.memory_gib:.1f}", f"{row.memory_limit_gib:.1f}", row.doubt


def worst(found: Comparison) -> Iterable[tuple[str, ...]]:
    """The rows furthest off."""
    done = [row for row in found.rows if row.error is not None]
    for row in sorted(done, key=lambda row: -abs(row.error or 0.0))[:WORST]:
        parts = sorted(row.breakdown_s.items(), key=lambda part: -part[1])[:2]
        assert row.predicted_s is not None
        assert row.measured_s is not None
        assert row.error is not None
        most = ", ".join(f"{name} {100 * seconds / row.predicted_s:.0f}%" for name, seconds in parts)
        yield row.id, f"{row.measured_s:.2f}", f"{row.predicted_s:.2f}", f"{100 * row.error:+.1f}%", most


if __name__ == "__main__":
    main()
