#!/usr/bin/env bash
# accelerate's estimate of training in bf16 is half of what its own Accelerator holds in bf16.
#
# Versions   accelerate==1.15.0, torch==2.13.0
# Expected   Mixed precision keeps weights, gradients and moments in fp32 and computes in bf16: states of AdamW are 16
#            bytes a parameter with mixed_precision "no" and "bf16" alike, and an estimate that knows them says so.
# Behaviour  `accelerate estimate-memory` shows as "Training using Adam" the most of four figures: weights, gradients,
#            moments, and a step. In fp32 the last is the sum of all, 16. In float16 and bfloat16 it is the moments
#            alone, 8, though weights (4) and gradients are there beside them in the same table. A model that trains in
#            160 GB, and does, is announced with 80 GB, below fp32.
# Output seen, bytes a parameter
#   float32: held 16, estimated 16 (weights 4, gradients 4, moments 8, step 16)
#   bfloat16: held 16, estimated 8 (weights 4, gradients 6, moments 8, step 8)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check accelerate==1.15.0 torch==2.13.0
cat >"$folder/seen.py" <<'PYTHON'
import torch
from accelerate import Accelerator
from accelerate.commands.estimate import estimate_training_usage
from accelerate.state import AcceleratorState


def held(mixed_precision):
    """Bytes a parameter in weights, gradients and moments after a step."""
    AcceleratorState._reset_state(True)
    accelerator = Accelerator(mixed_precision=mixed_precision, cpu=True)
    layers = torch.nn.Sequential(*(torch.nn.Linear(512, 512, bias=False) for _ in range(4)))
    layers, optimizer = accelerator.prepare(layers, torch.optim.AdamW(layers.parameters()))
    accelerator.backward(layers(torch.zeros(4, 512)).sum())
    optimizer.step()
    weights = list(layers.parameters())
    moments = [one for state in optimizer.state.values() for one in state.values() if one.numel() > 1]
    count = sum(one.numel() for one in weights)
    return count, sum(one.nbytes for one in weights + [one.grad for one in weights] + moments) / count


for words, name in (("no", "float32"), ("bf16", "bfloat16")):
    count, seen = held(words)
    parts = {key: value / count for key, value in estimate_training_usage(4 * count, name).items()}
    print(
        f"{name}: held {seen:g}, estimated {max(parts.values()):g} (weights {parts['model']:g}, "
        f"gradients {parts['gradients']:g}, moments {parts['optimizer']:g}, step {parts['step']:g})"
    )
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py >seen.txt 2>/dev/null
cat seen.txt
diff seen.txt - <<'SEEN'
float32: held 16, estimated 16 (weights 4, gradients 4, moments 8, step 16)
bfloat16: held 16, estimated 8 (weights 4, gradients 6, moments 8, step 8)
SEEN
