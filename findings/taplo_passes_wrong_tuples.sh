#!/usr/bin/env bash
# Taplo passes tuples of the wrong types under a JSON Schema of draft 2020-12.
#
# Versions   taplo==0.9.3, check-jsonschema==0.39.0
# Expected   Both refuse pair = ["x", 1] where the schema says an integer, then a string.
# Behaviour  Taplo passes it, without a word on the draft. It holds the rest of the same schema, $defs and
#            additionalProperties among it, but knows tuples only as older drafts write them (items with
#            a list), where pydantic writes prefixItems.
# Output seen
#   n = 0: check-jsonschema refuses, Taplo refuses
#   m = 1: check-jsonschema refuses, Taplo refuses
#   pair = ["x", 1]: check-jsonschema refuses, Taplo passes
#   old = ["x", 1]: check-jsonschema refuses, Taplo refuses
#   pair = [1, "x"]: check-jsonschema passes, Taplo passes
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check taplo==0.9.3 check-jsonschema==0.39.0
cat >"$folder/seen.py" <<'PYTHON'
import json
import subprocess
import tomllib
from pathlib import Path

TUPLE = [{"type": "integer"}, {"type": "string"}]
DRAFTS = {"old": "http://json-schema.org/draft-07/schema#"}
properties = {
    "n": {"$ref": "#/$defs/count"},
    "pair": {"type": "array", "prefixItems": TUPLE},
    "old": {"type": "array", "items": TUPLE},
}


def says(*words):
    return "refuses" if subprocess.run(words, capture_output=True).returncode else "passes"


for text in ("n = 0", "m = 1", 'pair = ["x", 1]', 'old = ["x", 1]', 'pair = [1, "x"]'):
    key = text.partition(" ")[0]
    draft = DRAFTS.get(key, "https://json-schema.org/draft/2020-12/schema")
    kept = {name: one for name, one in properties.items() if (name == "old") == (key == "old")}
    schema = {
        "$schema": draft,
        "type": "object",
        "additionalProperties": False,
        "properties": kept,
        "$defs": {"count": {"type": "integer", "minimum": 1}},
    }
    Path("schema.json").write_text(json.dumps(schema))
    Path("one.toml").write_text(text + "\n")
    Path("one.json").write_text(json.dumps(tomllib.loads(text)))
    other = says("venv/bin/check-jsonschema", "--schemafile", "schema.json", "one.json")
    taplo = says("venv/bin/taplo", "lint", "--no-auto-config", "--schema", Path("schema.json").resolve().as_uri(), "one.toml")
    print(f"{text}: check-jsonschema {other}, Taplo {taplo}")
PYTHON
cd "$folder"
./venv/bin/python seen.py >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
n = 0: check-jsonschema refuses, Taplo refuses
m = 1: check-jsonschema refuses, Taplo refuses
pair = ["x", 1]: check-jsonschema refuses, Taplo passes
old = ["x", 1]: check-jsonschema refuses, Taplo refuses
pair = [1, "x"]: check-jsonschema passes, Taplo passes
SEEN
