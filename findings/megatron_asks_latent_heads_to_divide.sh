#!/usr/bin/env bash
# Megatron-LM refuses latent attention whose heads do not divide the width, until a size that it
# never uses is given.
#
# Versions   megatron-core==0.19.2, on Python 3.12 (PYTHON names one where python3 is older)
# Expected   Latent attention has sizes of its own for queries, keys and values, so that 20 heads on
#            a width of 2,048, as GLM-4.7 Flash has them, are valid: width and heads are unrelated.
# Behaviour  Without --kv-channels, validate_args asserts that heads divide the width, with no text.
#            With --kv-channels of any size, which latent attention ignores, it accepts.
# Output seen
#   heads of 256, as they are: refused: AssertionError('')
#   with --kv-channels 1: accepted
#   with --kv-channels 64: accepted
#   with --kv-channels 102: accepted
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check megatron-core==0.19.2
cat >"$folder/seen.py" <<'PYTHON'
import contextlib, io, os, sys
from megatron.training.arguments import parse_args, validate_args

LATENT = ["--multi-latent-attention", "--qk-head-dim", "192", "--qk-pos-emb-head-dim", "64", "--v-head-dim", "256"]
SHAPE = ["--num-layers", "2", "--hidden-size", "2048", "--num-attention-heads", "20", "--ffn-hidden-size", "10240"]
REST = ["--seq-length", "4096", "--max-position-embeddings", "4096", "--micro-batch-size", "1", "--bf16"]


def said(*words):
    sys.argv = ["pretrain_gpt.py", *SHAPE, *LATENT, *REST, *words]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            validate_args(parse_args())
        except AssertionError as error:
            return f"refused: AssertionError({str(error)!r})"
    return "accepted"


os.environ.update(WORLD_SIZE="1", RANK="0")
print("heads of 256, as they are:", said())
for size in (1, 64, 102):
    print(f"with --kv-channels {size}:", said("--kv-channels", str(size)))
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
heads of 256, as they are: refused: AssertionError('')
with --kv-channels 1: accepted
with --kv-channels 64: accepted
with --kv-channels 102: accepted
SEEN
