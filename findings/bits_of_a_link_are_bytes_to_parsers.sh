#!/usr/bin/env bash
# A link of 400 Gb carries 400 GB for three parsers of sizes, and 50 GB for one.
#
# Versions   humanfriendly==10.0, dask==2026.8.0 (dask.utils.parse_bytes), pydantic==2.14.4 (ByteSize), bitmath==2.1.1
# Expected   All read 80 GB as 80e9 bytes and 80 GiB as 80 x 2^30. A small b is a bit, as in data sheets of NICs, so
#            that 400 Gb are 50e9 bytes, or the text is refused.
# Behaviour  humanfriendly looks at the first letters of a unit that it does not know: 400 Gbit/s are 400e9 bytes, and
#            so is 400 Gbps. dask and pydantic fold capitals: Gb is GB. pydantic knows Gbit, which is the 50e9 that its
#            Gb is not. Transfers over these links take an eighth of their time. bitmath alone keeps b and B apart.
# Output seen, in 1e9 bytes
#   80 GB: humanfriendly 80, dask 80, pydantic 80, bitmath 80
#   80 GiB: humanfriendly 85.9, dask 85.9, pydantic 85.9, bitmath 85.9
#   400 Gb: humanfriendly 400, dask 400, pydantic 400, bitmath 50
#   400 Gbit: humanfriendly 400, dask refused, pydantic 50, bitmath refused
#   400 Gbit/s: humanfriendly 400, dask refused, pydantic 50, bitmath refused
#   400 Gbps: humanfriendly 400, dask refused, pydantic refused, bitmath refused
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    humanfriendly==10.0 dask==2026.8.0 pydantic==2.14.4 bitmath==2.1.1
cat >"$folder/seen.py" <<'PYTHON'
import bitmath
import humanfriendly
import pydantic
from dask.utils import parse_bytes

BYTES = {
    "humanfriendly": humanfriendly.parse_size,
    "dask": parse_bytes,
    "pydantic": pydantic.TypeAdapter(pydantic.ByteSize).validate_python,
    "bitmath": lambda text: float(bitmath.parse_string(text).bytes),
}


def read(parse, text):
    try:
        return f"{parse(text) / 1e9:.3g}"
    except (ValueError, humanfriendly.InvalidSize):
        return "refused"


for text in ("80 GB", "80 GiB", "400 Gb", "400 Gbit", "400 Gbit/s", "400 Gbps"):
    print(f"{text}:", ", ".join(f"{name} {read(parse, text)}" for name, parse in BYTES.items()))
PYTHON
"$folder/venv/bin/python" "$folder/seen.py" >"$folder/seen.txt"
cat "$folder/seen.txt"
diff "$folder/seen.txt" - <<'SEEN'
80 GB: humanfriendly 80, dask 80, pydantic 80, bitmath 80
80 GiB: humanfriendly 85.9, dask 85.9, pydantic 85.9, bitmath 85.9
400 Gb: humanfriendly 400, dask 400, pydantic 400, bitmath 50
400 Gbit: humanfriendly 400, dask refused, pydantic 50, bitmath refused
400 Gbit/s: humanfriendly 400, dask refused, pydantic 50, bitmath refused
400 Gbps: humanfriendly 400, dask refused, pydantic refused, bitmath refused
SEEN
