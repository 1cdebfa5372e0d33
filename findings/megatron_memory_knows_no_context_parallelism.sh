#!/usr/bin/env bash
# Megatron-LM's theoretical memory is no smaller with CP 8 than with CP 1, and three times as large with recomputation.
#
# Versions   megatron-core==0.19.2, torch==2.14.1, einops==0.8.2, omegaconf==2.4.0, pyyaml==6.0.4, on Python 3.12
#            (PYTHON names one where python3 is older)
# Expected   The figure that a training logs beside what it measures follows its arguments. With CP 8 a GPU has an
#            eighth of each sequence, and the distributed optimizer shards over CP as over DP. Full recomputation keeps
#            the inputs of layers alone. Without it a block twice as wide keeps more, and so do eight experts a token.
# Behaviour  The context parallel size, the experts a token and their width are not read for activations; states of the
#            optimizer are divided by DP alone. Without both sequence parallelism and selective recomputation, so
#            with full recomputation too, the formula is that of a model which keeps everything in a feed-forward block
#            of four times its width, whatever its own. Nothing is said.
# Output seen, Llama of 8 billion parameters
#   full, by hand: activations 773 MB
#   full: activations 14341 MB, states 7181 MB
#   full, CP 8: activations 14341 MB, states 17235 MB
#   none: activations 14341 MB, states 7181 MB
#   none, a block twice as wide: activations 14341 MB, states 12221 MB
#   selective: activations 4617 MB, states 7181 MB
#   selective, CP 8: activations 4617 MB, states 17235 MB
#   selective, 1 of 64 experts a token: activations 4617 MB
#   selective, 8 of 64 experts a token: activations 4617 MB
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  megatron-core==0.19.2 torch==2.14.1 einops==0.8.2 omegaconf==2.4.0 pyyaml==6.0.4
cat >"$folder/seen.py" <<'PYTHON'
import contextlib
import sys

from megatron.training.arguments import parse_args
from megatron.training.theoretical_memory_usage import report_theoretical_memory

SHAPE = (
    "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 --swiglu "
    "--seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 1 --normalization RMSNorm "
    "--position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights "
    "--use-distributed-optimizer --bf16 --tensor-model-parallel-size 8 --sequence-parallel"
)
SELECTIVE = "--recompute-granularity selective"
FULL = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
EXPERTS = "--num-experts 64 --moe-ffn-hidden-size 2048 --expert-model-parallel-size 8"


def memory(words, options, ffn=14336):
    """Of one of 64 GPUs, with TP 8."""
    sys.argv = ["pretrain", *SHAPE.split(), *options.split(), "--ffn-hidden-size", f"{ffn}"]
    with contextlib.redirect_stdout(sys.stderr):
        args = parse_args()
        args.world_size, args.data_parallel_size = 64, 64 // 8 // args.context_parallel_size
        # as validate_args and the tokenizer set them; the former asks for a GPU
        args.virtual_pipeline_model_parallel_size, args.expert_tensor_parallel_size = None, 1
        args.padded_vocab_size, args.kv_channels = 128256, 128
        states, kept, _ = report_theoretical_memory(args, num_microbatches=1)
    rest = "" if "--num-experts" in options else f", states {states:.0f} MB"
    print(f"{words}: activations {kept:.0f} MB{rest}")


print(f"full, by hand: activations {(32 * 4096 * 2 + 4096 * 4 + 128256 * 4) * 8192 / 8 / 2**20:.0f} MB")
memory("full", FULL)
memory("full, CP 8", f"{FULL} --context-parallel-size 8")
memory("none", "")
memory("none, a block twice as wide", "", ffn=28672)
memory("selective", SELECTIVE)
memory("selective, CP 8", f"{SELECTIVE} --context-parallel-size 8")
memory("selective, 1 of 64 experts a token", f"{SELECTIVE} {EXPERTS} --moe-router-topk 1")
memory("selective, 8 of 64 experts a token", f"{SELECTIVE} {EXPERTS} --moe-router-topk 8")
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py 2>errors.txt >seen.txt || { tail -n 5 errors.txt; exit 1; }
cat seen.txt
diff seen.txt - <<'SEEN'
full, by hand: activations 773 MB
full: activations 14341 MB, states 7181 MB
full, CP 8: activations 14341 MB, states 17235 MB
none: activations 14341 MB, states 7181 MB
none, a block twice as wide: activations 14341 MB, states 12221 MB
selective: activations 4617 MB, states 7181 MB
selective, CP 8: activations 4617 MB, states 17235 MB
selective, 1 of 64 experts a token: activations 4617 MB
selective, 8 of 64 experts a token: activations 4617 MB
SEEN
