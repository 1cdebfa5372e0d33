#!/usr/bin/env bash
# torchinfo counts the multiply-adds of a sequence of 128 tokens as those of one token.
#
# Versions   torchinfo==1.8.0, torch==2.13.0, transformers==5.24.0
# Expected   total_mult_adds of a Llama of 2 layers is a multiply-add for each parameter of its products and each token,
#            as it is of a Linear that gets 128 rows. Tied embeddings are one tensor and counted once; experts count
#            as often as tokens pass them.
# Behaviour  A Linear counts its parameters times the first dimension of its output. That is the batch, and a sequence
#            of any length is one token; without a dimension for the batch the same Linear is counted whole. Embeddings
#            and norms count as products; of experts, stacked tensors in transformers 5, the router alone does.
#            A tied head is counted twice in total_params. Nothing is said.
# Output seen, multiply-adds
#   Linear of 65,536 parameters: 8,388,608 for 128 rows, 65,536 for a sequence of 128
#   Llama by hand: 201,326,592 for a sequence of 128, 1,610,612,736 for 8 of them
#   Llama: 1,836,288 for a sequence of 128, 14,690,304 for 8 of them; 1,836,288 parameters of 1,836,288
#   Llama, tied: 1,836,288 for a sequence of 128, 14,690,304 for 8 of them; 1,836,288 parameters of 1,574,144
#   Mixtral by hand: 302,514,176 for a sequence of 128, 2,420,113,408 for 8 of them
#   Mixtral: 1,574,144 for a sequence of 128, 12,593,152 for 8 of them; 7,345,408 parameters of 7,345,408
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    torchinfo==1.8.0 torch==2.13.0 transformers==5.24.0
cat >"$folder/seen.py" <<'PYTHON'
import torch
import torchinfo
import transformers

SHAPE = {
    "num_hidden_layers": 2, "hidden_size": 256, "intermediate_size": 512, "vocab_size": 1024,
    "num_attention_heads": 4, "num_key_value_heads": 4,
}
LENGTH = 128


def built(name, **own):
    config = getattr(transformers, f"{name}Config")(**SHAPE, **own)
    return getattr(transformers, f"{name}ForCausalLM")(config).eval()


def for_both(counted):
    return f"{counted(1):,.0f} for a sequence of {LENGTH}, {counted(8):,.0f} for 8 of them"


def by_hand(model, picked=1.0):
    """A multiply-add for each weight of a matrix that a token passes, with attention left out."""
    weights = {
        name: weight.numel() * (picked if ".experts." in name else 1)
        for name, weight in model.named_parameters()
        if weight.dim() > 1 and "embed_tokens" not in name
    }
    return for_both(lambda batch: batch * LENGTH * sum(weights.values()))


def seen(model):
    def summary(batch):
        tokens = torch.zeros(batch, LENGTH, dtype=torch.long)
        return torchinfo.summary(model, input_data=tokens, device="cpu", verbose=0)

    true = sum(weight.numel() for weight in model.parameters())
    words = for_both(lambda batch: summary(batch).total_mult_adds)
    return f"{words}; {summary(1).total_params:,} parameters of {true:,}"


linear = torch.nn.Linear(256, 256, bias=False)
rows, sequence = (
    torchinfo.summary(linear, input_size=size, verbose=0).total_mult_adds for size in ((LENGTH, 256), (1, LENGTH, 256))
)
print(f"Linear of 65,536 parameters: {rows:,} for {LENGTH} rows, {sequence:,} for a sequence of {LENGTH}")
print("Llama by hand:", by_hand(built("Llama", tie_word_embeddings=False)))
print("Llama:", seen(built("Llama", tie_word_embeddings=False)))
print("Llama, tied:", seen(built("Llama", tie_word_embeddings=True)))
experts = {"num_local_experts": 8, "num_experts_per_tok": 2, "tie_word_embeddings": False}
print("Mixtral by hand:", by_hand(built("Mixtral", **experts), picked=2 / 8))
print("Mixtral:", seen(built("Mixtral", **experts)))
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py >seen.txt 2>errors.txt || { tail -n 5 errors.txt; exit 1; }
cat seen.txt
diff seen.txt - <<'SEEN'
Linear of 65,536 parameters: 8,388,608 for 128 rows, 65,536 for a sequence of 128
Llama by hand: 201,326,592 for a sequence of 128, 1,610,612,736 for 8 of them
Llama: 1,836,288 for a sequence of 128, 14,690,304 for 8 of them; 1,836,288 parameters of 1,836,288
Llama, tied: 1,836,288 for a sequence of 128, 14,690,304 for 8 of them; 1,836,288 parameters of 1,574,144
Mixtral by hand: 302,514,176 for a sequence of 128, 2,420,113,408 for 8 of them
Mixtral: 1,574,144 for a sequence of 128, 12,593,152 for 8 of them; 7,345,408 parameters of 7,345,408
SEEN
