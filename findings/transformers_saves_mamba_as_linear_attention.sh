#!/usr/bin/env bash
# A hybrid model that transformers 5 saves again says linear attention where it has Mamba-2.
#
# Versions   transformers==5.24.0, and 4.57.6 beside it; no torch
# Expected   A configuration that is loaded and saved names its layers as before, so that programs which
#            read config.json (planners, converters, older releases) still find their Mamba-2 layers.
# Behaviour  Release 5 writes "linear_attention" for "mamba" and "full_attention" for "attention" in
#            layer_types, and in layers_block_type of Nemotron-H. Gated delta nets, lightning attention and
#            KDA have the same name there: only model_type tells which mixer it is, and parameters and
#            FLOPs of these differ. Release 4 keeps the names, and refuses the new ones.
# Output seen
#   4.57.6 mamba mamba mamba attention
#   5.24.0 linear_attention linear_attention linear_attention full_attention
#   4.57.6 reads the file of 5.24.0: ValueError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/resaved.py" <<'PYTHON'
import json
import sys

import transformers

source, target = sys.argv[1:]
try:
    config = transformers.AutoConfig.from_pretrained(source)
except ValueError:
    print(transformers.__version__, "reads the file of 5.24.0: ValueError")
else:
    config.save_pretrained(target)
    print(transformers.__version__, *json.load(open(f"{target}/config.json"))["layer_types"])
PYTHON
mkdir "$folder/given"
cat >"$folder/given/config.json" <<'JSON'
{"model_type": "granitemoehybrid", "num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8,
 "mamba_n_heads": 16, "mamba_d_head": 64, "layer_types": ["mamba", "mamba", "mamba", "attention"]}
JSON
for version in 4.57.6 5.24.0; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/python" -m pip install --quiet --disable-pip-version-check "transformers==$version"
done
cd "$folder"
{
    ./4.57.6/bin/python resaved.py given old 2>/dev/null
    ./5.24.0/bin/python resaved.py given new 2>/dev/null
    ./4.57.6/bin/python resaved.py new again 2>/dev/null
} >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
4.57.6 mamba mamba mamba attention
5.24.0 linear_attention linear_attention linear_attention full_attention
4.57.6 reads the file of 5.24.0: ValueError
SEEN
