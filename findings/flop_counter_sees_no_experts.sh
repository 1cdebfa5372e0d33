#!/usr/bin/env bash
# PyTorch's FLOP counter counts no products of experts, as transformers runs them by default.
#
# Versions   torch==2.13.0, transformers==5.24.0
# Expected   FlopCounterMode counts the forward pass of a Mixtral of 2 layers and 128 tokens as by hand: 2 FLOPs for
#            each parameter that a token passes. It is the same for every way to run the experts.
# Behaviour  The counter knows a list of operators, and counts others as 0 without a word. Grouped products are not
#            among them, and transformers runs experts by these unless it is told otherwise: two thirds are missing
#            here. So is attention on CPU, which the figure by hand leaves out; on the meta device it is counted, and
#            transformers takes other products there. With tensor parallelism over 8 ranks the counter of each
#            rank shows the products of all.
# Output seen
#   by hand 605,028,352 FLOPs, of which experts 402,653,184
#   grouped_mm (the default): 202,375,168 counted
#   batched_mm: 605,028,352 counted
#   eager: 605,028,352 counted
#   tensor parallel over 8: 1,048,576 counted on a rank, of 1,048,576 on all
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.24.0
cat >"$folder/seen.py" <<'PYTHON'
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.flop_counter import FlopCounterMode
from transformers import MixtralConfig, MixtralForCausalLM

TOKENS, LAYERS, WIDTH, INNER, WORDS, HEADS, PICKED = 128, 2, 256, 512, 1024, 4, 2


def counted(model, batch):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(batch)
    return f"{counter.get_total_flops():,}"


model = MixtralForCausalLM(
    MixtralConfig(
        num_hidden_layers=LAYERS, hidden_size=WIDTH, intermediate_size=INNER, vocab_size=WORDS,
        num_attention_heads=HEADS, num_key_value_heads=HEADS, num_local_experts=8, num_experts_per_tok=PICKED,
    )
)
experts = 2 * TOKENS * LAYERS * PICKED * 3 * WIDTH * INNER
rest = 2 * TOKENS * (LAYERS * (4 * WIDTH * WIDTH + 8 * WIDTH) + WORDS * WIDTH)
print(f"by hand {experts + rest:,} FLOPs, of which experts {experts:,}")
tokens = torch.zeros(1, TOKENS, dtype=torch.long)
print(f"{model.config._experts_implementation} (the default): {counted(model, tokens)} counted")
for name in ("batched_mm", "eager"):
    model.set_experts_implementation(name)
    print(f"{name}: {counted(model, tokens)} counted")

dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
layers = torch.nn.Sequential(torch.nn.Linear(64, 256, bias=False), torch.nn.Linear(256, 64, bias=False))
batch = torch.randn(16, 64)
of_all = counted(layers, batch)
parallelize_module(layers, init_device_mesh("cpu", (8,)), {"0": ColwiseParallel(), "1": RowwiseParallel()})
print(f"tensor parallel over 8: {counted(layers, batch)} counted on a rank, of {of_all} on all")
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py >seen.txt 2>/dev/null
cat seen.txt
diff seen.txt - <<'SEEN'
by hand 605,028,352 FLOPs, of which experts 402,653,184
grouped_mm (the default): 202,375,168 counted
batched_mm: 605,028,352 counted
eager: 605,028,352 counted
tensor parallel over 8: 1,048,576 counted on a rank, of 1,048,576 on all
SEEN
