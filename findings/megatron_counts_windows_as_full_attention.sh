#!/usr/bin/env bash
# Megatron-LM counts the FLOPs of windowed attention as if there were no window, and reports them as done.
#
# Versions   megatron-core==0.19.2, torch==2.14.1, einops==0.8.2, omegaconf==2.4.0, pyyaml==6.0.4, on Python 3.12
#            (PYTHON names one where python3 is older)
# Expected   A window of 128 tokens leaves out nearly all products of queries and keys of a sequence of 8,192. The
#            throughput that is logged, FLOPs of num_floating_point_operations by time, counts those that are done. A
#            model counts alike whether it is written as a number of layers or as a pattern of a hybrid.
# Behaviour  --window-size and --window-attn-skip-freq are not read: both counts are 6.558 TFLOPs, of which 1.649 are
#            products of queries and keys. Some 1.6 of these are never done, so that the logged TFLOP/s are a third above
#            those of the arithmetic. Comparing MFU with and without windows compares the counts. The gate of attention
#            (--attention-output-gate, as Qwen3-Next has it) counts with --num-layers, and not in the
#            pattern *-*-*-*- of the same layers.
# Output seen
#   full attention: 6.558 TFLOPs
#   window of 128: 6.558 TFLOPs
#   twice the sequence less twice the tokens: 3.299 TFLOPs of products of queries and keys
#   with a gate: 6.765 TFLOPs
#   with a gate, as a pattern: 6.558 TFLOPs
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  megatron-core==0.19.2 torch==2.14.1 einops==0.8.2 omegaconf==2.4.0 pyyaml==6.0.4
cat >"$folder/seen.py" <<'PYTHON'
import sys

from megatron.training.arguments import parse_args
from megatron.training.training import num_floating_point_operations

SHAPE = (
    "--num-layers 4 --hidden-size 1024 --num-attention-heads 16 --ffn-hidden-size 4096 --swiglu "
    "--micro-batch-size 1 --normalization RMSNorm --position-embedding-type rope --disable-bias-linear "
    "--untie-embeddings-and-output-weights"
)


def tflop(*options, seq=8192, batch=1):
    length = ["--seq-length", str(seq), "--max-position-embeddings", str(seq)]
    sys.argv = ["pretrain", *SHAPE.split(), *length, *options]
    args = parse_args()
    args.padded_vocab_size, args.kv_channels, args.num_query_groups = 32000, 64, 16
    return num_floating_point_operations(args, batch) / 1e12


PATTERN = ("--hybrid-layer-pattern", "*-*-*-*-")
print(f"full attention: {tflop():.3f} TFLOPs")
print(f"window of 128: {tflop('--window-size', '(128,0)'):.3f} TFLOPs")
further = tflop(seq=16384) - tflop(batch=2)
print(f"twice the sequence less twice the tokens: {further:.3f} TFLOPs of products of queries and keys")
print(f"with a gate: {tflop('--attention-output-gate'):.3f} TFLOPs")
print(f"with a gate, as a pattern: {tflop('--attention-output-gate', *PATTERN):.3f} TFLOPs")
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py 2>errors.txt | grep TFLOPs >seen.txt || { tail -n 5 errors.txt; exit 1; }
cat seen.txt
diff seen.txt - <<'SEEN'
full attention: 6.558 TFLOPs
window of 128: 6.558 TFLOPs
twice the sequence less twice the tokens: 3.299 TFLOPs of products of queries and keys
with a gate: 6.765 TFLOPs
with a gate, as a pattern: 6.558 TFLOPs
SEEN
