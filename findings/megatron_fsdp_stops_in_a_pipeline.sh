#!/usr/bin/env bash
# Megatron-FSDP passes validation with a pipeline, and stops when it wraps the model.
#
# Versions   megatron-core==0.19.2, einops==0.8.2 and torch==2.14.1, on Python 3.12 (PYTHON names one
#            where python3 is older)
# Expected   --use-megatron-fsdp with --pipeline-model-parallel-size 2 trains, or validate_args says that
#            it has no pipeline. The same holds for Megatron Bridge 0.6.2, whose validation passes as well.
# Behaviour  The mesh of shards is cut from all ranks by the sizes of the groups of DP and CP and of TP,
#            without PP, so that einops finds another number of ranks than these make up.
# Output seen
#   pp 1, tp 2: [[0, 1], [2, 3], [4, 5], [6, 7]]
#   pp 2, tp 2: EinopsError: Shape mismatch, 8 != 4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    megatron-core==0.19.2 torch==2.14.1 einops==0.8.2
cat >"$folder/seen.py" <<'PYTHON'
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.distributed.fsdp.mcore_fsdp_adapter import _get_dp_tp_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

for pp in (1, 2):
    dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
    parallel_state.initialize_model_parallel(2, pp, create_gloo_process_groups=False)
    shards = parallel_state.get_data_parallel_group(with_context_parallel=True)
    try:
        said = _get_dp_tp_mesh(shards, parallel_state.get_tensor_model_parallel_group()).tolist()
    except Exception as error:
        said = f"{type(error).__name__}: {str(error).strip().splitlines()[-1].strip()}"
    print(f"pp {pp}, tp 2: {said}")
    parallel_state.destroy_model_parallel()
    dist.destroy_process_group()
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py 2>/dev/null | grep "^pp " >seen.txt  # without what is logged there
cat seen.txt
diff seen.txt - <<'SEEN'
pp 1, tp 2: [[0, 1], [2, 3], [4, 5], [6, 7]]
pp 2, tp 2: EinopsError: Shape mismatch, 8 != 4
SEEN
