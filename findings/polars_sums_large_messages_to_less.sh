#!/usr/bin/env bash
# Polars sums three messages of 2 GB to 1.7 GB, and two of them to less than nothing.
#
# Versions   polars==2.1.0; pandas==3.1.1, duckdb==2.0.1 and pyarrow==26.0.1 beside it
# Expected   Sizes of messages below 2^31 bytes fit a column of 32 bits, and their sum is of 64, as in pandas, DuckDB
#            and Arrow, and as polars itself sums columns of 8 and 16 bits. Or a sum that does not fit is refused.
# Behaviour  A sum of Int32 is Int32 and wraps around, over a column as over groups; twice a column does so too. No
#            error or warning comes. Traffic per link, memory and tokens of a trace that was stored in 32 bits are wrong
#            by multiples of 4.29e9, and right in tests on small ones. A cast to Int64 before the sum is right.
# Output seen, GB
#   a (3 messages): polars 1.71, cast 6.00, pandas 6.00, DuckDB 6.00, Arrow 6.00
#   b (2 messages): polars -0.29, cast 4.00, pandas 4.00, DuckDB 4.00, Arrow 4.00
#   in 16 bits, of MB: polars 60000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    polars==2.1.0 pandas==3.1.1 duckdb==2.0.1 pyarrow==26.0.1
cat >"$folder/seen.py" <<'PYTHON'
import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet

MESSAGE = 2_000_000_000  # bytes
SUM = ("bytes", "sum")
LINKS = ["a"] * 3 + ["b"] * 2
table = pyarrow.table({"link": LINKS, "bytes": pyarrow.array([MESSAGE] * len(LINKS), pyarrow.int32())})
pyarrow.parquet.write_table(table, "trace.parquet")

size, frame = polars.col("bytes"), polars.read_parquet("trace.parquet")
sums = {
    "polars": dict(frame.group_by("link").agg(size.sum()).iter_rows()),
    "cast": dict(frame.group_by("link").agg(size.cast(polars.Int64).sum()).iter_rows()),
    "pandas": pandas.read_parquet("trace.parquet").groupby("link")["bytes"].sum().to_dict(),
    "DuckDB": dict(duckdb.execute("SELECT link, sum(bytes) FROM 'trace.parquet' GROUP BY link").fetchall()),
    "Arrow": {row["link"]: row["bytes_sum"] for row in table.group_by("link").aggregate([SUM]).to_pylist()},
}
for link in ("a", "b"):
    row = ", ".join(f"{name} {of[link] / 1e9:.2f}" for name, of in sums.items())
    print(f"{link} ({LINKS.count(link)} messages): {row}")
print("in 16 bits, of MB: polars", polars.Series([20_000] * 3, dtype=polars.Int16).sum())
PYTHON
cd "$folder"
./venv/bin/python seen.py >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
a (3 messages): polars 1.71, cast 6.00, pandas 6.00, DuckDB 6.00, Arrow 6.00
b (2 messages): polars -0.29, cast 4.00, pandas 4.00, DuckDB 4.00, Arrow 4.00
in 16 bits, of MB: polars 60000
SEEN
