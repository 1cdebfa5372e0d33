#!/usr/bin/env bash
# Holistic Trace Analysis calls a GPU that waits for tokens of experts 100% busy computing.
#
# Versions   HolisticTraceAnalysis==0.5.0
# Expected   A step of 500 us, of which 300 us send tokens to experts and nothing else runs: 200 us are compute. It is
#            the same whether NCCL, DeepEP or user buffers of Transformer Engine send them.
# Behaviour  A kernel communicates if its name starts with nccl. Kernels of DeepEP (deep_ep::intranode::dispatch) and of
#            user buffers (userbuffers_fp16_...) count as computation: get_temporal_breakdown reports 100% compute, and
#            get_comm_comp_overlap has no number (nan), as if there were no traffic. Changing NCCL's all-to-all for
#            DeepEP looks like a gain of 60 points of compute in the same time.
# Output seen
#   NCCL: 200 us compute, 300 us not, overlap 0.0%
#   DeepEP: 500 us compute, 0 us not, overlap nan%
#   user buffers: 500 us compute, 0 us not, overlap nan%
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check HolisticTraceAnalysis==0.5.0
cat >"$folder/seen.py" <<'PYTHON'
import json
import logging
from pathlib import Path

logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis

PRODUCT = "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNT"
SENDERS = {
    "NCCL": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "DeepEP": "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*, int*)",
    "user buffers": "userbuffers_fp16_sum_inplace_gpu_rr_rs<8>(int, int, int)",
}


def event(category, name, thread, start_us, length_us, **arguments):
    return {
        "ph": "X", "cat": category, "name": name, "pid": int(category != "kernel"), "tid": thread,
        "ts": start_us, "dur": length_us, "args": arguments,
    }


for sender, kernel in SENDERS.items():
    events = [event("user_annotation", "ProfilerStep#1", 1, 0, 1000)]
    for at, (name, stream, start_us, length_us) in enumerate(
        ((PRODUCT, 7, 100, 100), (kernel, 20, 200, 300), (PRODUCT, 7, 500, 100)), start=1
    ):
        events.append(event("cuda_runtime", "cudaLaunchKernel", 1, start_us - 1, 1, correlation=at))
        events.append(event("kernel", name, stream, start_us, length_us, correlation=at, stream=stream, device=0))
    folder = Path(sender)
    folder.mkdir()
    head = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1}}
    (folder / "rank0.json").write_text(json.dumps({**head, "traceEvents": events}))
    analysis = TraceAnalysis(trace_dir=sender)
    step = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    overlap = analysis.get_comm_comp_overlap(visualize=False).iloc[0, 1]
    print(
        f"{sender}: {step['compute_time(us)']:.0f} us compute, "
        f"{step['non_compute_time(us)']:.0f} us not, overlap {overlap:.1f}%"
    )
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py 2>errors.txt >seen.txt || { tail -n 5 errors.txt; exit 1; }
cat seen.txt
diff seen.txt - <<'SEEN'
NCCL: 200 us compute, 300 us not, overlap 0.0%
DeepEP: 500 us compute, 0 us not, overlap nan%
user buffers: 500 us compute, 0 us not, overlap nan%
SEEN
