#!/usr/bin/env bash
# head_dim of a DeepSeek configuration is a third of the size of its heads.
#
# Versions   transformers==5.24.0
# Expected   head_dim is the size of a head of queries and keys, as in Llama, Qwen or GLM: with
#            latent attention qk_nope_head_dim + qk_rope_head_dim, here 128 + 64 = 192.
# Behaviour  The configuration sets head_dim to the rotary part alone, and saves it: a config.json that had
#            no head_dim has one of 64 after it is loaded and saved. What reads the key for FLOPs, for the
#            cache of keys or for the products of attention counts a third. GLM and Kimi with latent
#            attention do the same.
# Output seen
#   deepseek_v3: head_dim 64, heads of 192
#   glm_moe_dsa: head_dim 64, heads of 256
#   kimi_linear: head_dim 64, heads of 192
#   llama: head_dim 128, heads of 128
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check transformers==5.24.0
cat >"$folder/seen.py" <<'PYTHON'
import json

from transformers import AutoConfig

LATENT = {"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "kv_lora_rank": 512}
for kind in ("deepseek_v3", "glm_moe_dsa", "kimi_linear", "llama"):
    own = {} if kind == "llama" else LATENT | ({"qk_nope_head_dim": 192} if kind == "glm_moe_dsa" else {})
    config = AutoConfig.for_model(kind, hidden_size=4096, num_attention_heads=32, **own)
    config.save_pretrained(kind)
    saved = json.load(open(f"{kind}/config.json"))
    size = own["qk_nope_head_dim"] + own["qk_rope_head_dim"] if own else 4096 // 32
    print(f"{kind}: head_dim {saved['head_dim']}, heads of {size}")
PYTHON
cd "$folder"
./venv/bin/python seen.py >seen.txt 2>/dev/null
cat seen.txt
diff seen.txt - <<'SEEN'
deepseek_v3: head_dim 64, heads of 192
glm_moe_dsa: head_dim 64, heads of 256
kimi_linear: head_dim 64, heads of 192
llama: head_dim 128, heads of 128
SEEN
