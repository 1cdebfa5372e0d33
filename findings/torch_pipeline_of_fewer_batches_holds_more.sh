#!/usr/bin/env bash
# Interleaved 1F1B of PyTorch holds more activations of 15 micro-batches than of 16.
#
# Versions   torch==2.13.0
# Expected   8 ranks of a pipeline with interleaved chunks: a rank holds the activations of at most so many chunks as
#            Megatron-LM's schedule does, whatever the number of micro-batches: 23 with 2 chunks a rank, 39 with 4. Fewer
#            micro-batches never need more memory.
# Behaviour  The schedule works through rounds of n // (n // ranks) micro-batches, not of as many as there are ranks. Up
#            to 15 micro-batches over 8 ranks are one round, all of whose forwards begin before the first backward: at
#            15 the first rank holds all of them, and at 16 a third less. 17 are refused.
# Output seen
#   2 chunks a rank, micro-batches 8, 12, 15, 16, 24: 16, 24, 30, 23, 23 chunks held
#   4 chunks a rank, micro-batches 8, 12, 15, 16, 24: 32, 48, 60, 39, 39 chunks held
#   17 micro-batches: refused
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0
cat >"$folder/seen.py" <<'PYTHON'
import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS, BATCHES = 8, (8, 12, 15, 16, 24)
CHANGE = {"FORWARD": 1, "FULL_BACKWARD": -1}


def schedule(chunks, batches):
    stages = [
        PipelineStage(torch.nn.Linear(1, 1), RANKS * chunk, RANKS * chunks, torch.device("cpu"))
        for chunk in range(chunks)
    ]
    return ScheduleInterleaved1F1B(stages, batches, loss_fn=torch.nn.functional.mse_loss)


def most_held(actions):
    held = most = 0
    for action in filter(None, actions):
        held += CHANGE[action.computation_type.name]
        most = max(most, held)
    return most


dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
for chunks in (2, 4):
    held = [str(most_held(schedule(chunks, batches).pipeline_order[0])) for batches in BATCHES]
    print(f"{chunks} chunks a rank, micro-batches {', '.join(map(str, BATCHES))}: {', '.join(held)} chunks held")
try:
    schedule(2, 17)
except ValueError:
    print("17 micro-batches: refused")
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/seen.py" >"$folder/seen.txt" 2>/dev/null
cat "$folder/seen.txt"
diff "$folder/seen.txt" - <<'SEEN'
2 chunks a rank, micro-batches 8, 12, 15, 16, 24: 16, 24, 30, 23, 23 chunks held
4 chunks a rank, micro-batches 8, 12, 15, 16, 24: 32, 48, 60, 39, 39 chunks held
17 micro-batches: refused
SEEN
