#!/usr/bin/env bash
# A Slurm job of two days ran minus nine days for pandas, and half an hour is thirty hours for DuckDB and pydantic.
#
# Versions   pandas==3.1.1, duckdb==2.0.1, pydantic==2.14.4; pytimeparse==1.1.10 beside them
# Expected   Slurm writes times as days-hours:minutes:seconds, and squeue writes less than an hour as minutes:seconds. A
#            reader of durations takes 2-00:00:00 for 48 hours, or refuses it, as it refuses 30:00 if it needs hours.
# Behaviour  pandas drops the 2, takes the dash for a sign that holds for the rest, and counts the days as hours: minus
#            200 hours. It holds in columns and with errors="coerce", and a sum of GPU hours falls with each long job.
#            DuckDB and pydantic refuse days, and read 30:00 as hours:minutes. Nothing is said. pytimeparse reads both.
# Output seen, in hours
#   02:30:00: pandas 2.5, DuckDB 2.5, pydantic 2.5, pytimeparse 2.5
#   30:00: pandas refused, DuckDB 30, pydantic 30, pytimeparse 0.5
#   2-00:00:00: pandas -200, DuckDB refused, pydantic refused, pytimeparse 48
#   1-12:30:00: pandas -112.5, DuckDB refused, pydantic refused, pytimeparse 36.5
#   2 days 00:00:00: pandas 48, DuckDB 48, pydantic 48, pytimeparse 48
#   a column of 2-00:00:00 and 06:00:00, coerced, sums to -194 in pandas
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    pandas==3.1.1 duckdb==2.0.1 pydantic==2.14.4 pytimeparse==1.1.10
cat >"$folder/seen.py" <<'PYTHON'
from datetime import timedelta

import duckdb
import pandas
import pydantic
import pytimeparse

SECONDS = {
    "pandas": lambda text: pandas.Timedelta(text).total_seconds(),
    "DuckDB": lambda text: duckdb.execute("SELECT epoch(CAST(? AS INTERVAL))", [text]).fetchall()[0][0],
    "pydantic": lambda text: pydantic.TypeAdapter(timedelta).validate_python(text).total_seconds(),
    "pytimeparse": pytimeparse.parse,
}


def hours(read, text):
    try:
        return f"{read(text) / 3600:g}"
    except (ValueError, duckdb.Error):
        return "refused"


for text in ("02:30:00", "30:00", "2-00:00:00", "1-12:30:00", "2 days 00:00:00"):
    print(f"{text}:", ", ".join(f"{name} {hours(read, text)}" for name, read in SECONDS.items()))
column = pandas.to_timedelta(pandas.Series(["2-00:00:00", "06:00:00"]), errors="coerce")
print(f"a column of 2-00:00:00 and 06:00:00, coerced, sums to {column.sum().total_seconds() / 3600:g} in pandas")
PYTHON
"$folder/venv/bin/python" "$folder/seen.py" >"$folder/seen.txt"
cat "$folder/seen.txt"
diff "$folder/seen.txt" - <<'SEEN'
02:30:00: pandas 2.5, DuckDB 2.5, pydantic 2.5, pytimeparse 2.5
30:00: pandas refused, DuckDB 30, pydantic 30, pytimeparse 0.5
2-00:00:00: pandas -200, DuckDB refused, pydantic refused, pytimeparse 48
1-12:30:00: pandas -112.5, DuckDB refused, pydantic refused, pytimeparse 36.5
2 days 00:00:00: pandas 48, DuckDB 48, pydantic 48, pytimeparse 48
a column of 2-00:00:00 and 06:00:00, coerced, sums to -194 in pandas
SEEN
