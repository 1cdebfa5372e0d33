#!/usr/bin/env bash
# The total_flos of the transformers Trainer count every expert, and leave out a head with tied embeddings.
#
# Versions   transformers==5.24.0, torch==2.13.0, accelerate==1.15.0
# Expected   One step on 128 tokens: total_flos is 6 FLOPs for each parameter that a token passes, as MFU needs it. Tied
#            embeddings change memory and not products.
# Behaviour  The Trainer takes 6 FLOPs for each parameter of the model but those of its embeddings. A token passes 2 of
#            the 8 experts and all 8 are counted: 3 times the FLOPs of this model. A tied head is one tensor with the
#            embeddings and is left out, a sixth of the FLOPs here. Scores of attention are in neither figure.
# Output seen
#   dense by hand 1,207,959,552
#   dense 1,208,942,592 (1.00 times)
#   dense, tied 1,007,616,000 (0.83 times)
#   experts by hand 1,815,085,056
#   experts 5,439,946,752 (3.00 times)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  transformers==5.24.0 torch==2.13.0 accelerate==1.15.0
cat >"$folder/seen.py" <<'PYTHON'
from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM, Trainer, TrainingArguments

TOKENS, LAYERS, WIDTH, INNER, WORDS, HEADS, EXPERTS, PICKED = 128, 2, 256, 512, 1024, 4, 8, 2
SHAPE = {
    "num_hidden_layers": LAYERS, "hidden_size": WIDTH, "intermediate_size": INNER, "vocab_size": WORDS,
    "num_attention_heads": HEADS, "num_key_value_heads": HEADS,
}


def counted(model):
    asked = TrainingArguments(
        "runs", max_steps=1, per_device_train_batch_size=1, report_to=[], use_cpu=True, logging_strategy="no"
    )
    trainer = Trainer(model, asked, train_dataset=[{"input_ids": [1] * TOKENS, "labels": [1] * TOKENS}])
    trainer.train()
    return trainer.state.total_flos


def told(name, flops, by_hand):
    print(f"{name} {flops:,.0f} ({flops / by_hand:.2f} times)")


attention, feed_forward, head = 4 * WIDTH * WIDTH, 3 * WIDTH * INNER, WORDS * WIDTH
dense = 6 * TOKENS * (LAYERS * (attention + feed_forward) + head)
experts = 6 * TOKENS * (LAYERS * (attention + PICKED * feed_forward + EXPERTS * WIDTH) + head)
print(f"dense by hand {dense:,}")
told("dense", counted(LlamaForCausalLM(LlamaConfig(**SHAPE, tie_word_embeddings=False))), dense)
told("dense, tied", counted(LlamaForCausalLM(LlamaConfig(**SHAPE, tie_word_embeddings=True))), dense)
print(f"experts by hand {experts:,}")
mixtral = MixtralConfig(**SHAPE, num_local_experts=EXPERTS, num_experts_per_tok=PICKED)
told("experts", counted(MixtralForCausalLM(mixtral)), experts)
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py 2>/dev/null | grep -v train_runtime >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
dense by hand 1,207,959,552
dense 1,208,942,592 (1.00 times)
dense, tied 1,007,616,000 (0.83 times)
experts by hand 1,815,085,056
experts 5,439,946,752 (3.00 times)
SEEN
