#!/usr/bin/env bash
# transformers drops the layer that predicts further tokens, and saves a configuration that still has it.
#
# Versions   transformers==5.24.0, torch==2.13.0, safetensors==0.8.0
# Expected   A checkpoint of DeepSeek-V3 or GLM-4.5 has a layer behind its last one, for one token more
#            (num_nextn_predict_layers 1). Loading keeps it, or names its tensors as unexpected, as other tensors that
#            the model has no place for are; what is saved agrees with its configuration.
# Behaviour  Tensors of layer 61 (46, 92 in GLM-4.5) are left out by their name: none is unexpected, no word is said,
#            and training is that of a model without this layer, of 671 in place of 685 billion parameters. The saved
#            folder has no such tensors, and its config.json says 1. What reads that key plans memory, FLOPs and a
#            pipeline for a layer that is not there; a server that drafts with it finds none.
# Output seen (stacked experts count as two tensors when unexpected)
#   deepseek_v3, 61 layers: 61 built, 0 unexpected; tensors behind it 28 in the file, 0 saved; says 1, saves 1
#   glm4_moe, 46 layers: 46 built, 0 unexpected; tensors behind it 25 in the file, 0 saved; says 1, saves 1
#   deepseek_v3, 60 layers: 60 built, 18 unexpected; tensors behind it 28 in the file, 0 saved; says 1, saves 1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    transformers==5.24.0 torch==2.13.0 safetensors==0.8.0
cat >"$folder/seen.py" <<'PYTHON'
import json
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

transformers.logging.disable_progress_bar()
WIDTH = 16
SIZES = {
    "hidden_size": WIDTH, "intermediate_size": 32, "moe_intermediate_size": 8, "vocab_size": 64,
    "num_attention_heads": 2, "num_key_value_heads": 2, "n_routed_experts": 4, "num_experts_per_tok": 2,
    "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "num_nextn_predict_layers": 1,
}
LATENT = {"q_lora_rank": 8, "kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8}


def published(kind, layers, **sizes):
    """A checkpoint as these are published: behind the last layer one more, with a product and norms of its own."""
    config = AutoConfig.for_model(kind, num_hidden_layers=layers, **SIZES, **sizes)
    AutoModelForCausalLM.from_config(config).save_pretrained("published")
    tensors = load_file("published/model.safetensors")
    last, further = f"model.layers.{layers - 1}.", f"model.layers.{layers}."
    more = {name.replace(last, further): one.clone() for name, one in tensors.items() if name.startswith(last)}
    more[further + "eh_proj.weight"] = torch.zeros(WIDTH, 2 * WIDTH)
    more[further + "enorm.weight"] = torch.ones(WIDTH)
    save_file({**tensors, **more}, "published/model.safetensors", metadata={"format": "pt"})
    return further


def behind(folder, further):
    return sum(name.startswith(further) for name in load_file(f"{folder}/model.safetensors"))


def says(folder):
    return json.loads(Path(folder, "config.json").read_text())["num_nextn_predict_layers"]


for kind, layers, sizes in (("deepseek_v3", 61, LATENT), ("glm4_moe", 46, {}), ("deepseek_v3", 60, LATENT)):
    further = published(kind, layers, **sizes)
    model, loading = AutoModelForCausalLM.from_pretrained("published", output_loading_info=True)
    model.save_pretrained("saved")
    print(
        f"{kind}, {layers} layers: {len(model.model.layers)} built, {len(loading['unexpected_keys'])} unexpected;"
        f" tensors behind it {behind('published', further)} in the file, {behind('saved', further)} saved;"
        f" says {says('published')}, saves {says('saved')}"
    )
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py >seen.txt 2>/dev/null
cat seen.txt
diff seen.txt - <<'SEEN'
deepseek_v3, 61 layers: 61 built, 0 unexpected; tensors behind it 28 in the file, 0 saved; says 1, saves 1
glm4_moe, 46 layers: 46 built, 0 unexpected; tensors behind it 25 in the file, 0 saved; says 1, saves 1
deepseek_v3, 60 layers: 60 built, 18 unexpected; tensors behind it 28 in the file, 0 saved; says 1, saves 1
SEEN
