"""Write docs/model.md from docs/model.in.md: constants from the code, tables from the catalog and `coopt validate`.

`--check` writes nothing and exits 1 when the page is not what it would be.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from coopt.instance.catalog import entries
from coopt.instance.hardware import Gpu
from coopt.instance.texts import write_text
from coopt.perf import attention, collectives, feed_forward, kernels, replicas, timing, traffic
from coopt.validation.comparison import Comparison, GroupResult, compared
from coopt.validation.published import read_rows

HERE = Path(__file__).parent
ROWS = HERE.parent / "benchmarks" / "published.csv"
WORST = 10
MODULES = (attention, feed_forward, kernels, replicas, timing, traffic)
BANDS = (0.02, 0.05, 0.10, 0.20, 0.50, np.inf)


def main() -> None:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when the page is out of date")
    place, text = HERE / "model.md", page()
    if not parser.parse_args().check:
        write_text(place, text)
    elif place.read_text("utf-8") != text:
        sys.exit("docs/model.md is out of date, `make docs` writes it")


def page() -> str:
    """The whole page."""
    source = (HERE / "model.in.md").read_text("utf-8")
    values = constants() | tables(compared(read_rows(ROWS)))
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
    return named | shares | {"TILES": tiles}


def tables(found: Comparison) -> dict[str, str]:
    """Tables of parameters and errors."""
    assert found.overall is not None
    return {
        "EFFICIENCIES": table(("GPU", "precision", "eg", "k0", "em", "δ us", "ea", "env", "eib", "es"), efficiencies()),
        "PUBLISHED": table(
            ("rows", "n", "mean", "median", "largest", "HFU points, mean", "fitted parameters"),
            (errors(group) for group in (*found.groups, *found.hardware, found.overall)),
        ),
        "DISTRIBUTION": table(("error at most", "rows", "share"), distribution(found)),
        "WORST_ROWS": table(("row", "measured s", "predicted s", "error", "most of the predicted time"), worst(found)),
        "EVALUATED": str(found.evaluated),
        "ALL_ROWS": str(found.evaluated + found.skipped),
        "MEDIAN": f"{100 * found.overall.median_abs_error:.1f}%",
        "FITTED": str(found.overall.fitted_parameters),
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
                f"{own.attention:g}",
                f"{own.hb:g}",
                f"{own.rail:g}",
                f"{own.send:g}",
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
