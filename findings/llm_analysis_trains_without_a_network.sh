#!/usr/bin/env bash
# llm-analysis trains Llama 65B in the same time over a network of 2 MB/s, and over any split of the model.
#
# Versions   llm-analysis==0.2.2
# Expected   The time of an iteration is longer with a pipeline of 64 stages and 64 micro-batches (half of it idle), with
#            TP over 64 GPUs, or with links of a hundred-thousandth of the rate: the configuration of a GPU has rates
#            and latencies of links, and the degrees of TP, PP and DP are inputs.
# Behaviour  The time of an iteration and the days of training are FLOPs by peak, divided by the GPUs. Links count in
#            the latency of a forward pass that is logged, not in them; pipelines have no idle time. All mappings tie, so
#            that a search over them by its time finds the first. Only memory tells them apart.
# Output seen
#   TP 8, PP 1, DP 16: 2.653 s, 117.2 days
#   TP 1, PP 8, DP 16: 2.653 s, 117.2 days
#   TP 1, PP 64, DP 2: 2.653 s, 117.2 days
#   TP 64, PP 1, DP 2: 2.653 s, 117.2 days
#   TP 8, PP 8, DP 2: 2.653 s, 117.2 days
#   TP 8, PP 8, DP 2, links of 2 MB/s: 2.653 s, 117.2 days
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check llm-analysis==0.2.2
cat >"$folder/seen.py" <<'PYTHON'
import logging
from dataclasses import replace

logging.disable(logging.CRITICAL)
from llm_analysis.analysis import LLMAnalysis
from llm_analysis.config import (
    ParallelismConfig,
    get_dtype_config_by_name,
    get_gpu_config_by_name,
    get_model_config_by_name,
)

MODEL = get_model_config_by_name("decapoda-research_llama-65b-hf")
GPU = get_gpu_config_by_name("a100-sxm-80gb")
SLOW = replace(GPU, intra_node_bandwidth_in_GB_per_sec=0.002, inter_node_bandwidth_in_GB_per_sec=0.002)


def told(tp, pp, dp, gpu=GPU):
    degrees = ParallelismConfig(tp_size=tp, pp_size=pp, dp_size=dp)
    analysis = LLMAnalysis(MODEL, gpu, get_dtype_config_by_name("w16a16e16"), degrees)
    run = analysis.training(batch_size_per_gpu=1, global_batch_size=128, seq_len=2048, total_num_tokens=1e12)
    days = run["total_training_latency"] / 86400
    slow = ", links of 2 MB/s" if gpu is SLOW else ""
    return f"TP {tp}, PP {pp}, DP {dp}{slow}: {run['latency_per_iter']:.3f} s, {days:.1f} days"


for degrees in ((8, 1, 16), (1, 8, 16), (1, 64, 2), (64, 1, 2), (8, 8, 2)):
    print(told(*degrees))
print(told(8, 8, 2, SLOW))
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py 2>errors.txt >seen.txt || { tail -n 5 errors.txt; exit 1; }
cat seen.txt
diff seen.txt - <<'SEEN'
TP 8, PP 1, DP 16: 2.653 s, 117.2 days
TP 1, PP 8, DP 16: 2.653 s, 117.2 days
TP 1, PP 64, DP 2: 2.653 s, 117.2 days
TP 64, PP 1, DP 2: 2.653 s, 117.2 days
TP 8, PP 8, DP 2: 2.653 s, 117.2 days
TP 8, PP 8, DP 2, links of 2 MB/s: 2.653 s, 117.2 days
SEEN
