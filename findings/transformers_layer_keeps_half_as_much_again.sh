#!/usr/bin/env bash
# A Llama layer of transformers keeps 42% more for its backward pass than formulas of activations say.
#
# Versions   torch==2.13.0, transformers==5.24.0; on the CPU, where attention keeps what flash attention keeps on GPUs
# Expected   In bf16 a layer keeps inputs of products, queries, keys, values, output of attention and both halves of the
#            gated feed-forward block: 16 bytes a token for each channel of the width, and 6 for each of the
#            feed-forward block, as Megatron-LM's fused kernels do. Autocast casts; it keeps the same.
# Behaviour  Norms are written as single operations: each keeps its input in fp32 and its scaled input beside the
#            output, and the gate keeps what goes into SiLU, what comes out, and their product. A norm is 8 bytes
#            and not 4, the block 8 and not 6. Under autocast, as Trainer runs with bf16=True, the bf16 copies of all
#            weights are kept as well, another 2 bytes for each parameter until the backward pass. Both are missing in
#            plans by the formula; torch.compile or fused layers (Liger) remove the first.
# Output seen
#   formula: 32.50 bytes a token and channel
#   bf16 weights: 46.32 bytes a token and channel
#   of these in fp32: 8.07
#   fp32 weights under autocast: kept copies of weights, bytes for each parameter: 2.00
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.24.0
cat >"$folder/seen.py" <<'PYTHON'
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

WIDTH, BLOCK, TOKENS = 1024, 2816, 2048
config = LlamaConfig(
    hidden_size=WIDTH, intermediate_size=BLOCK, num_attention_heads=16, num_key_value_heads=16,
    num_hidden_layers=1, max_position_embeddings=TOKENS,
)
config._attn_implementation = "sdpa"


def kept(weights, numbers):
    """Tensors that one layer keeps for its backward pass, each storage once, without its own weights."""
    layer = LlamaDecoderLayer(config, 0).to(weights)
    own = {parameter.untyped_storage().data_ptr() for parameter in layer.parameters()}
    states = torch.randn(1, TOKENS, WIDTH, dtype=numbers, requires_grad=True)
    turns = LlamaRotaryEmbedding(config)(states, torch.arange(TOKENS)[None])
    storages = {}

    def keep(tensor):
        if tensor.untyped_storage().data_ptr() not in own:
            storages[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        with torch.autocast("cpu", torch.bfloat16, enabled=weights != numbers):
            layer(states, position_embeddings=turns, attention_mask=None)
    return layer, list(storages.values())


def share(tensors):
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors) / TOKENS / WIDTH


print(f"formula: {16 + 6 * BLOCK / WIDTH:.2f} bytes a token and channel")
_, tensors = kept(torch.bfloat16, torch.bfloat16)
print(f"bf16 weights: {share(tensors):.2f} bytes a token and channel")
print(f"of these in fp32: {share(one for one in tensors if one.dtype == torch.float32):.2f}")
layer, tensors = kept(torch.float32, torch.bfloat16)
matrices = [parameter for parameter in layer.parameters() if parameter.dim() == 2]
shapes = {tuple(matrix.shape) for matrix in matrices} | {tuple(matrix.shape[::-1]) for matrix in matrices}
copies = [one for one in tensors if tuple(one.shape) in shapes and one.dtype == torch.bfloat16]
numbers = sum(matrix.numel() for matrix in matrices)
kept_bytes = sum(one.untyped_storage().nbytes() for one in copies)
print(f"fp32 weights under autocast: kept copies of weights, bytes for each parameter: {kept_bytes / numbers:.2f}")
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py 2>errors.txt >seen.txt || { tail -n 5 errors.txt; exit 1; }
cat seen.txt
diff seen.txt - <<'SEEN'
formula: 32.50 bytes a token and channel
bf16 weights: 46.32 bytes a token and channel
of these in fp32: 8.07
fp32 weights under autocast: kept copies of weights, bytes for each parameter: 2.00
SEEN
