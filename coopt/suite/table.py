"""The table of results: its columns, and the Parquet file that stores it.

`docs/suites.md` explains each column. The axes of a grid are additional columns in front.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from coopt.instance.texts import InstanceError, write_bytes
from coopt.plan.parts import MappingChoice

if TYPE_CHECKING:
    import pyarrow as pa

ColumnType = Literal["text", "whole", "real"]
Row = dict[str, Any]

OF_A_MAPPING: dict[str, ColumnType] = {
    key: "whole" if field.annotation is int else "text"
    for key, field in MappingChoice.model_fields.items()
    if field.annotation is not bool
}
COLUMNS: dict[str, ColumnType] = {
    "suite": "text",
    "grid": "text",
    "case_id": "text",
    "instance": "text",
    "action": "text",
    "status": "text",
    "stop_reason": "text",
    "why": "text",
    "objective": "text",
    "value": "real",
    "bound": "real",
    "gap": "real",
    "capex_usd": "real",
    "power_w": "real",
    "tco_usd": "real",
    "gpus": "whole",
    "spare_gpus": "whole",
    "hb_name": "text",
    "hb_size": "whole",
    "hb_count": "whole",
    "fabric": "text",
    "tiers": "whole",
    "planes": "whole",
    "oversubscription": "real",
    "nic": "text",
    "nics_per_gpu": "whole",
    "switch": "text",
    "switches": "whole",
    "transceivers": "whole",
    "uplinks": "whole",
    "racks": "whole",
    "network_usd": "real",
    "network_w": "real",
    "any_to_any_usd": "real",
    "any_to_any_w": "real",
    "saving": "real",
    "power_saving": "real",
    "workload": "text",
    "iteration_time_s": "real",
    "bound_s": "real",
    **OF_A_MAPPING,
    "memory_gib": "real",
    "mfu": "real",
    "hfu": "real",
    "mfu_causal": "real",
    "tokens_per_s": "real",
    "families": "whole",
    "mappings": "whole",
    "nodes": "whole",
    "cpu_s": "real",
    "wall_s": "real",
    "coopt": "text",
}
LATER = ("workloads", "overrides")
"""What follows: a list of all workloads with their figures, and the changes of the case as JSON."""
OF_A_WORKLOAD = tuple(COLUMNS)[list(COLUMNS).index("workload") : list(COLUMNS).index("families")]


def check_parquet() -> None:
    """Refuse a run at its start if results cannot be written."""
    if find_spec("pyarrow") is None:
        raise InstanceError("suite: pyarrow is not installed, needs `pip install 'coopt[suite]'`")


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows atomically, with the columns of axes first."""
    import pyarrow as pa
    from pyarrow import parquet

    axes = dict.fromkeys(
        name for row in rows for name in row if name not in COLUMNS and name not in LATER
    )
    fields = [pa.field(name, _type(kind)) for name, kind in COLUMNS.items()]
    columns = {name: [row[name] for row in rows] for name in COLUMNS}
    axis_columns = {name: _alike([row.get(name) for row in rows]) for name in axes}
    schema = pa.schema(
        [
            # axes stand behind suite, grid, case and instance
            *fields[:4],
            *(pa.field(name, _type(kind)) for name, (kind, _) in axis_columns.items()),
            *fields[4:],
            pa.field(
                "workloads",
                pa.list_(pa.struct([pa.field(n, _type(COLUMNS[n])) for n in OF_A_WORKLOAD])),
            ),
            pa.field("overrides", pa.string()),
        ]
    )
    columns |= {name: values for name, (_, values) in axis_columns.items()}
    columns |= {name: [row[name] for row in rows] for name in LATER}
    table = pa.Table.from_pydict({name: columns[name] for name in schema.names}, schema=schema)
    content = BytesIO()
    parquet.write_table(table, content, compression="zstd")
    write_bytes(path, content.getvalue())


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a file written by `write_rows`."""
    from pyarrow import ArrowException, parquet

    try:
        rows: list[Row] = parquet.read_table(path).to_pylist()
    except FileNotFoundError:
        raise InstanceError(
            f"{path}: no such file, needs results (`coopt suite run ... --resume` writes them)"
        ) from None
    except (ArrowException, OSError) as error:
        raise InstanceError(
            f"{path}: cannot be read ({error}), needs the results of a suite"
        ) from None
    return rows


def _alike(values: list[Any]) -> tuple[ColumnType | None, list[Any]]:
    """Convert the values of an axis to one type: integers, numbers, booleans (None), else text."""
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, bool) for value in present):
        return None, values
    numbers = [
        value for value in present if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if len(numbers) == len(present):
        # a column of whole numbers has 64 bits
        if all(isinstance(value, int) and abs(value) < 2**63 for value in present):
            return "whole", values
        return "real", [None if value is None else float(value) for value in values]
    return "text", [
        value if value is None or isinstance(value, str) else json.dumps(value) for value in values
    ]


def _type(kind: ColumnType | None) -> pa.DataType:
    import pyarrow as pa

    return {"text": pa.string(), "whole": pa.int64(), "real": pa.float64(), None: pa.bool_()}[kind]
