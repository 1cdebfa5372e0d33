#!/usr/bin/env bash
# JAX counts the FLOPs of one layer of 32, and of one micro-batch of 16.
#
# Versions   jax==0.10.2, jaxlib==0.10.2, on the CPU
# Expected   cost_analysis of a compiled function gives its FLOPs, 2 for each multiply-add of a product, as it does for
#            layers in a Python loop. lax.scan over the same layers, which compiles faster and is how large models
#            are written (MaxText scans its layers), changes neither the work nor the result.
# Behaviour  XLA counts the body of a loop once, however many turns it has: FLOPs are a 32nd of what is done,
#            and gradients over 16 micro-batches in a scan a 16th. MFU from this figure is too low by the depth of the
#            model. Nothing is said. With unroll=True it is the whole count.
# Output seen, in times the products by hand
#   layers in a loop: 1.00 forward, 1.01 with gradients
#   layers in a scan: 0.03 forward, 0.03 with gradients
#   layers in a scan, unrolled: 1.00 forward, 1.00 with gradients
#   16 micro-batches in a scan, layers in a loop: 0.07 with gradients
#   the same result: True
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check jax==0.10.2 jaxlib==0.10.2
cat >"$folder/seen.py" <<'PYTHON'
import jax
import jax.numpy as jnp
from jax import lax

LAYERS, TOKENS, WIDTH, BATCHES = 32, 512, 256, 16
weights = jax.random.normal(jax.random.key(0), (LAYERS, WIDTH, WIDTH)) / WIDTH**0.5
tokens = jax.random.normal(jax.random.key(1), (TOKENS, WIDTH))
by_hand = 2 * LAYERS * TOKENS * WIDTH**2


def loop(weights, tokens):
    for weight in weights:
        tokens = jax.nn.relu(tokens @ weight)
    return tokens.sum()


def scan(weights, tokens, unroll=1):
    layer = lambda tokens, weight: (jax.nn.relu(tokens @ weight), None)
    return lax.scan(layer, tokens, weights, unroll=unroll)[0].sum()


def unrolled(weights, tokens):
    return scan(weights, tokens, unroll=True)


def micro_batches(weights, tokens):
    """Gradients with respect to weights and inputs, summed over micro-batches as in gradient accumulation."""
    parts = tokens.reshape(BATCHES, -1, WIDTH)
    add = lambda total, part: (total + gradients(loop)(weights, part)[0], None)
    return lax.scan(add, jnp.zeros_like(weights), parts)[0]


def gradients(function):
    return jax.grad(function, argnums=(0, 1))


def counted(function, by_hand):
    return f"{jax.jit(function).lower(weights, tokens).compile().cost_analysis()['flops'] / by_hand:.2f}"


for words, function in (("a loop", loop), ("a scan", scan), ("a scan, unrolled", unrolled)):
    both = counted(function, by_hand), counted(gradients(function), 3 * by_hand)
    print(f"layers in {words}: {both[0]} forward, {both[1]} with gradients")
print(f"16 micro-batches in a scan, layers in a loop: {counted(micro_batches, 3 * by_hand)} with gradients")
print("the same result:", bool(jnp.allclose(loop(weights, tokens), scan(weights, tokens), rtol=1e-4)))
PYTHON
cd "$folder"
JAX_PLATFORMS=cpu ./venv/bin/python seen.py >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
layers in a loop: 1.00 forward, 1.01 with gradients
layers in a scan: 0.03 forward, 0.03 with gradients
layers in a scan, unrolled: 1.00 forward, 1.00 with gradients
16 micro-batches in a scan, layers in a loop: 0.07 with gradients
the same result: True
SEEN
