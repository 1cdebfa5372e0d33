#!/usr/bin/env bash
# DeepSpeed estimates a model of 70 billion parameters on the meta device as one of 1 billion.
#
# Versions   deepspeed==0.19.8, torch==2.13.0
# Expected   The estimators of ZeRO 2 and 3 count the parameters of the model that they get, tied ones once. A model too
#            large for this machine is built on the meta device, where torch, transformers and accelerate count its
#            parameters as anywhere.
# Behaviour  They tell parameters apart by address, and the address of all on the meta device is 0: the last one is the
#            count, here the head. A GPU of eight is said to need 6 GB with ZeRO 3, and needs 152. Nothing is said; the
#            largest layer, which is counted otherwise, is right. Counts given as arguments (..._all_cold) are taken.
# Output seen
#   63M on cpu, ZeRO 3: 63M parameters, 0.14GB a GPU
#   63M on cpu, ZeRO 2: 63M parameters, 0.25GB a GPU
#   63M on meta, ZeRO 3: 2M parameters, 0.01GB a GPU
#   63M on meta, ZeRO 2: 2M parameters, 0.01GB a GPU
#   70552M on meta, ZeRO 3: 1050M parameters, 6.12GB a GPU
#   70552M on meta, ZeRO 2: 1050M parameters, 4.16GB a GPU
#   counts as arguments, ZeRO 3: 70552M parameters, 151.75GB a GPU
#   counts as arguments, ZeRO 2: 70552M parameters, 279.25GB a GPU
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check deepspeed==0.19.8 torch==2.13.0
cat >"$folder/seen.py" <<'PYTHON'
import contextlib
import io

import torch
from deepspeed.runtime.zero import stage3, stage_1_and_2
from torch import nn


def llama(device, width, inner, layers, vocabulary):
    """The matrices of a Llama with groups of eight queries, and nothing else."""
    shapes = [(width, width), (width, width // 8), (width, width // 8), (width, width)]
    shapes += [(width, inner), (width, inner), (inner, width)]
    with torch.device(device):
        rest = [nn.Linear(*shape, bias=False) for _ in range(layers) for shape in shapes]
        return nn.Sequential(nn.Embedding(vocabulary, width), *rest, nn.Linear(width, vocabulary, bias=False))


def estimated(words, estimate, *counts):
    """What DeepSpeed prints of 8 GPUs without offloading: its last line."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        estimate(*counts, num_gpus_per_node=8)
    lines = printed.getvalue().splitlines()
    counted = lines[2].removeprefix("SW: Model with ").split(" total")[0]
    print(f"{words}: {counted} parameters, {lines[-1].split('|')[1].strip()} a GPU")


SMALL, LARGE = (512, 2048, 16, 4096), (8192, 28672, 80, 128256)
for device, shape in (("cpu", SMALL), ("meta", SMALL), ("meta", LARGE)):
    model = llama(device, *shape)
    sizes = [one.numel() for one in model.parameters()]
    words = f"{sum(sizes) // 10**6}M on {device}"
    estimated(f"{words}, ZeRO 3", stage3.estimate_zero3_model_states_mem_needs_all_live, model)
    estimated(f"{words}, ZeRO 2", stage_1_and_2.estimate_zero2_model_states_mem_needs_all_live, model)
given = stage3.estimate_zero3_model_states_mem_needs_all_cold
estimated("counts as arguments, ZeRO 3", given, sum(sizes), max(sizes))
given = stage_1_and_2.estimate_zero2_model_states_mem_needs_all_cold
estimated("counts as arguments, ZeRO 2", given, sum(sizes))
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py 2>errors.txt | grep "a GPU" >seen.txt || { tail -n 5 errors.txt; exit 1; }
cat seen.txt
diff seen.txt - <<'SEEN'
63M on cpu, ZeRO 3: 63M parameters, 0.14GB a GPU
63M on cpu, ZeRO 2: 63M parameters, 0.25GB a GPU
63M on meta, ZeRO 3: 2M parameters, 0.01GB a GPU
63M on meta, ZeRO 2: 2M parameters, 0.01GB a GPU
70552M on meta, ZeRO 3: 1050M parameters, 6.12GB a GPU
70552M on meta, ZeRO 2: 1050M parameters, 4.16GB a GPU
counts as arguments, ZeRO 3: 70552M parameters, 151.75GB a GPU
counts as arguments, ZeRO 2: 70552M parameters, 279.25GB a GPU
SEEN
