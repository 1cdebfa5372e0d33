#!/usr/bin/env bash
# FSDP2 over 64 ranks gathers a stack of 8 experts eight times, and its shards lie on 8 ranks.
#
# Versions   torch==2.13.0
# Expected   ZeRO-3 splits every parameter over all ranks: each holds a 64th, and a gather carries it once.
# Behaviour  fully_shard splits the first dimension alone, into whole rows, and pads the shards to one size. Of weights
#            stacked as [experts, rows, columns] eight ranks hold an expert each and 56 hold nothing, while
#            buffers, gathers and reductions carry 64 experts. A matrix of 65 rows is carried as 128. A count of
#            parameters divided by ranks shows none of it. Split on a longer dimension nothing is padded.
# Output seen, in shares of a 64th and in times the parameter
#   8 experts: rank 0 holds 8, rank 8 holds 0, rank 40 holds 0; gathered 8, reduced 8
#   8 experts, Shard(1): rank 0 holds 1, rank 8 holds 1, rank 40 holds 1; gathered 1, reduced 1
#   65 rows: rank 0 holds 1.97, rank 8 holds 1.97, rank 40 holds 0; gathered 1.97, reduced 1.97
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0
cat >"$folder/seen.py" <<'PYTHON'
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

RANKS = 64


class Products(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(shape))

    def forward(self, batch):
        return batch @ self.weight


class Collectives(TorchDispatchMode):
    """Elements that whole collectives carry, of the tensor that is not a shard."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name()
        if name in ("c10d::_allgather_base_", "c10d::_reduce_scatter_base_"):
            self.carried[name] = max(args[0].numel(), args[1].numel())
        return func(*args, **kwargs or {})


for words, shape, place in (
    ("8 experts", (8, 64, 128), None),
    ("8 experts, Shard(1)", (8, 64, 128), lambda parameter: Shard(1)),
    ("65 rows", (65, 128), None),
):
    held, seen = [], Collectives()
    seen.carried = {}
    for rank in (0, 8, 40):
        dist.init_process_group("fake", rank=rank, world_size=RANKS, store=FakeStore())
        model = Products(shape)
        whole = model.weight.numel()
        fully_shard(model, mesh=init_device_mesh("cpu", (RANKS,)), shard_placement_fn=place)
        held.append(f"rank {rank} holds {model.weight.to_local().numel() * RANKS / whole:.3g}")
        with seen:
            model(torch.zeros(*shape[:-2], 4, shape[-2])).sum().backward()
        dist.destroy_process_group()
    gathered, reduced = (seen.carried[f"c10d::{name}"] / whole for name in ("_allgather_base_", "_reduce_scatter_base_"))
    print(f"{words}: {', '.join(held)}; gathered {gathered:.3g}, reduced {reduced:.3g}")
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py >seen.txt 2>/dev/null
cat seen.txt
diff seen.txt - <<'SEEN'
8 experts: rank 0 holds 8, rank 8 holds 0, rank 40 holds 0; gathered 8, reduced 8
8 experts, Shard(1): rank 0 holds 1, rank 8 holds 1, rank 40 holds 1; gathered 1, reduced 1
65 rows: rank 0 holds 1.97, rank 8 holds 1.97, rank 40 holds 0; gathered 1.97, reduced 1.97
SEEN
