"""What a library makes of CSV tables: `tables.py LIBRARY QUESTION ANSWER`, of paths, and of rows and sums."""

import json
import sys
from pathlib import Path


def pandas(path):
    import pandas

    table = pandas.read_csv(path)
    numbers = table.select_dtypes("number")
    return len(table), {name: float(numbers[name].sum()) for name in numbers}


def polars(path):
    import polars

    table = polars.read_csv(path, infer_schema_length=None)
    numbers = table.select(polars.selectors.numeric())
    return table.height, {name: float(numbers[name].sum()) for name in numbers.columns}


def duckdb(path):
    import duckdb

    table = duckdb.read_csv(path, header=True, sample_size=-1)
    numbers = [name for name, kind in zip(table.columns, table.types, strict=True) if str(kind) in ("BIGINT", "DOUBLE")]
    wanted = ", ".join(["count(*)", *(f'sum("{name}")' for name in numbers)])
    rows, *sums = duckdb.execute(f"select {wanted} from read_csv('{path}', header=true, sample_size=-1)").fetchone()
    return rows, {name: float(total or 0.0) for name, total in zip(numbers, sums, strict=True)}


library, question, answer = sys.argv[1:]
paths = json.loads(Path(question).read_text("utf-8"))
Path(answer).write_text(json.dumps([globals()[library](path) for path in paths]), "utf-8")
