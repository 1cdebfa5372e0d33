"""Write the constants and tables of docs/model.md: from the code, from the catalog and from `coopt
validate`.

`--check` writes nothing and exits 1 when the page is not what it would be. `--calibrate` first fits
everything again, which takes minutes, and rewrites the errors on sources left out:
benchmarks/calibration.csv, and left_out.csv by rows.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from coopt.instance.texts import write_text
from coopt.instance.transformer import Software
from coopt.perf import collectives, kernels, layer, mixers, traffic, work
from coopt.validation.calibration import UnseenError, calibration_of
from coopt.validation.comparison import Comparison, comparison_of
from coopt.validation.facts import published_facts
from coopt.validation.published import Measurement, read_measurements
from docs import kernel_errors
from docs.calibration_record import (
    COLUMNS,
    fitted_runs,
    later_errors,
    later_runs,
    read_record,
    record_lines,
    spreads,
    unseen_lines,
)
from docs.regions import filled, write_or_check

HERE = Path(__file__).parent
PLACE = HERE / "model.md"
ROWS = HERE.parent / "benchmarks" / "published.csv"
CALIBRATION = HERE.parent / "benchmarks" / "calibration.csv"
UNSEEN = HERE.parent / "benchmarks" / "left_out.csv"
WORST = 5
MODULES = (kernels, layer, mixers, traffic, work)
FIGURES = (  # passages of the page with figures of the code, each of which stands there once
    "heads of {REFERENCE_HEAD}, long",
    "time, {OVERLAP_COST}: it takes",
    "x_t) = {TILES}; `peak`",
    "at most {GRAPH_PAUSE_S} s (judgement).",
    "blocks of {BLOCK} queries",
    "= SM · {BLOCK}/2 · (n_max",
    "· 2·2·{REFERENCE_HEAD}/(2·{REFERENCE_HEAD} + {SOFTMAX_FORWARD}) / (ea",
    "= min({MAX_SPLIT}, floor(SM / tiles))",
    "+  {PARTIAL_BYTES}·S·batch·m·n",
    "cast    = {QUANTISE_BYTES}·batch",
    "ê_v + {SOFTMAX_FORWARD}·φ forward;",
    (
        "2·ê_v + {WIDE_BACKWARD}·(3·max(ê - {WIDE_HEAD}, 0) + 2·max(ê_v - {WIDE_HEAD}, 0)) +"
        " {SOFTMAX_BACKWARD}·φ backward"
    ),
    "k_s = {START_FORWARD} keys forward and {START_BACKWARD} backward",
    "multiples of {HEAD_STEP}; the softmax",
    "costs {SOFTMAX_FORWARD} and {SOFTMAX_BACKWARD} columns,",
    "wider than {WIDE_HEAD} run out",
    "with ea = {FLASH2_SHARE} at heads",
    "up to {FLASH2_LARGEST} off at",
    "uses eg = {KERNEL_GEMM} (8-bit {KERNEL_GEMM_FP8}), the",
    "and em = {KERNEL_HBM} for reading",
    "host, {KERNEL_HOST_US} us a product.",
    "gates reach {KERNEL_STREAM} of the bandwidth;",
    "= (s + {BLOCK})/2 if",
    "min(that, W + {BLOCK})",
    "min(s, W + {BLOCK})",
    "with k0 = {SCORES_K0}; backward",
    "Besides, {SCORES_FORWARD}·w bytes forward and {SCORES_BACKWARD}·w backward",
    "multiple of {FUSED_HEADS}, the softmax",
    "moves {APART_FORWARD}·w bytes",
    "forward and {APART_BACKWARD}·w backward.",
    "μ, and {KERNELS_FORWARD}δ forward, {KERNELS_BACKWARD}δ backward:",
    "μ·(ω_f·n·h/z + {QUERY_FORWARD}·n·n_q/t)",
    "μ·(ω_b·n·h/z + {QUERY_BACKWARD}·n·n_q/t)",
    "forward μ·({GATED_FORWARD} gated | {PLAIN_FORWARD} plain)·n·w_f/t,",
    "backward μ·({GATED_BACKWARD} | {PLAIN_BACKWARD})·n·w_f/t.",
    "forward {PERMUTE_FORWARD}·n_E·h + μ·({GATED_FORWARD}|{PLAIN_FORWARD})·n_E·f/t_x, backward",
    "backward {PERMUTE_BACKWARD}·n_E·h + μ·({GATED_BACKWARD}|{PLAIN_BACKWARD})·n_E·f/t_x;",
    "- {EXPERT_KERNELS_FORWARD}δ forward, {EXPERT_KERNELS_BACKWARD}δ backward",
    "a_m·e_m, Q = {CHUNK} tokens",
    "with k0 = {SCORES_K0} (arXiv",
    "them, move {STATE_FORWARD} bytes each forward and {STATE_BACKWARD} backward",
    "convolution moves {CONVOLVED_FORWARD} and {CONVOLVED_BACKWARD} bytes for",
    "norm move {MIXED_FORWARD} and {MIXED_BACKWARD} for each",
    "moves {TURNED} bytes an",
    (
        "gives, {TURNED} bytes forward. {SCAN_KERNELS_FORWARD}δ forward and"
        " {SCAN_KERNELS_BACKWARD}δ backward."
    ),
    "· η · ({HOST_KERNELS} + {HOST_EXPERT_KERNELS}·E_x) · ({OVERLAP_STARTS} with `ep_overlap`,",
    "norms, μ·{NORMS_AGAIN}·n·h/z bytes and {NORMS}δ.",
    "false`) move {ACCUMULATE_BYTES} bytes",
    'es are {IPOIB_SHARE}, with `"tcp"` {TCP_SHARE} [NET],',
    "optimizer moves {OPTIMIZER_BYTES} bytes per",
    "context and modules, {RESERVE_GIB} GiB",
    "o_s is {STATE_BYTES} (master",
    "stated, {REFUSED} of {STATED} would",
    "For {LEAST} rows that",
    "benchmarks/published.csv`: {EVALUATED} of {ALL_ROWS} rows say",
    "error is {MEDIAN} and the mean {MEAN}, with {FITTED} fitted",
    "it, the {ALL_LEFT_OUT_ROWS} rows concerned",
    "off by {ALL_LEFT_OUT_MEAN} on average and {ALL_LEFT_OUT_MEDIAN} in the median: expect",
    "Of {LATER} later runs on NVIDIA",
    "error is {LATER_MEDIAN} in the median and {LATER_MEAN} on average",
    "of {LATER_AMD} on AMD GPUs {LATER_AMD_MEAN} with Hopper",
    "Of {REPEATED} configurations",
    "run takes {REPEAT_LARGEST} times as",
    "most, {REPEAT_MEDIAN} times",
)


def main() -> None:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing, exit 1 when the page is out of date"
    )
    parser.add_argument("--calibrate", action="store_true", help="fit everything again before")
    wishes = parser.parse_args()
    if wishes.calibrate:
        found = calibration_of(fitted_runs(read_measurements(ROWS)), published_facts().fit)
        write_text(CALIBRATION, lines_text(COLUMNS, record_lines(found)))
        write_text(UNSEEN, lines_text(tuple(UnseenError.model_fields), unseen_lines(found)))
    write_or_check(PLACE, page(), check=wishes.check)


def page() -> str:
    """The whole page."""
    rows = read_measurements(ROWS)
    values = (
        constants()
        | measured_kernels()
        | tables(comparison_of(rows))
        | held_out()
        | later()
        | spread(rows)
    )
    text = PLACE.read_text("utf-8")
    for passage in FIGURES:
        pattern = re.sub(r"\\\{[A-Z_0-9]+\\\}", ".+?", re.escape(passage))
        assert len(re.findall(pattern, text)) == 1, f"docs/model.md: needs {passage!r} once"
        text = re.sub(pattern, lambda _, passage=passage: passage.format_map(values), text)
    return filled(text, values)


def constants() -> dict[str, str]:
    """Numbers in equations, by the names they have in the code."""
    named = {
        name: f"{value:g}"
        for module in MODULES
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int | float)
    }
    tiles = ", ".join(f"({rows},{columns},{share:g})" for rows, columns, share in kernels.TILES)
    shares = {
        f"{name.upper()}_SHARE": f"{share:.2f}"
        for name, share in collectives.TRANSPORT_SHARE.items()
    }
    defaults = {
        "RESERVE_GIB": f"{Software(name='any').reserve_gib:g}",
        "STATE_BYTES": str(Software(name="any").state_bytes),
    }
    return named | shares | defaults | {"TILES": tiles}


def measured_kernels() -> dict[str, str]:
    """Errors of the laws of kernels."""
    kernels = kernel_errors.read_kernels()
    found = kernel_errors.fits(kernels)
    lines = kernel_errors.table_lines(kernels, found)
    return kernel_errors.constants(kernels, found) | {
        "KERNEL_ERRORS": table(("kernels", "n", "mean", "largest"), lines)
    }


def tables(found: Comparison) -> dict[str, str]:
    """Tables of parameters and errors."""
    assert found.overall is not None
    return {
        "REFUSED": str(found.memory.refused),
        "STATED": str(found.memory.stated),
        "REFUSED_ROWS": table(("row", "needs GiB", "has GiB", "why it is doubted"), refused(found)),
        "LEAST": str(sum("the least that fits" in " ".join(row.assumptions) for row in found.rows)),
        "WORST_ROWS": table(
            ("row", "measured s", "predicted s", "error", "most of the predicted time"),
            worst(found),
        ),
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
    shares = [name for name in COLUMNS if name.endswith(("mean", "median"))]
    shares.remove("held_out_mean")
    head = (
        "set",
        "parameters",
        "rows",
        "fitted, mean",
        "median",
        "source left out, mean",
        "median",
    )
    cells = [
        (*(line[name] for name in COLUMNS[:3]), *(percent(line[name]) for name in shares))
        for line in lines
    ]
    means = {
        f"{short}_{column.upper()}": (
            line[column] if column == "left_out_rows" else percent(line[column])
        )
        for short, name in (("ALL", "all"), ("DENSE", "dense"), ("EXPERTS", "mixture of experts"))
        for line in lines
        if line["set"] == name
        for column in COLUMNS[3:]
    }
    return {"CALIBRATION": table(head, cells)} | means


def later() -> dict[str, str]:
    """Errors on runs that came after the fits, by what was known without them."""
    runs, fitted = later_runs()
    errors = later_errors(runs, fitted)
    own, others = (
        [abs(errors[run.id]) for run in runs if (run.generation in fitted) == is_fitted]
        for is_fitted in (False, True)
    )
    return {
        "LATER": str(len(own)),
        "LATER_MEDIAN": f"{100 * np.median(own):.1f}%",
        "LATER_MEAN": f"{100 * np.mean(own):.1f}%",
        "LATER_AMD": str(len(others)),
        "LATER_AMD_MEAN": f"{100 * np.mean(others):.1f}%",
    }


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
    }


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


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
        most = ", ".join(
            f"{name} {100 * seconds / row.predicted_s:.0f}%" for name, seconds in parts
        )
        yield (
            row.id,
            f"{row.measured_s:.2f}",
            f"{row.predicted_s:.2f}",
            f"{100 * row.error:+.1f}%",
            most,
        )


if __name__ == "__main__":
    main()
