#!/usr/bin/env bash
# Lightning reckons MFU with the peak of another GPU, of two cards, or of products without tensor cores.
#
# Versions   lightning==2.6.6, torch==2.13.0
# Expected   get_available_flops is the dense bf16 rate of NVIDIA's data sheets for one GPU of the name that the driver
#            gives, as it is for A100 and H100 SXM.
# Behaviour  Names with "l4" are an L4, so an L40S (362 TFLOPS) is held to 121 and its MFU is three times too large. The
#            H100 NVL (835) is held to 1,979, a pair of cards: its MFU is 0.42 of the true one. A40 (150), RTX A6000
#            (155) and RTX 4090 (165) have the rate outside tensor cores. The H200 is in the table at its sparse rate,
#            under "h200 sxm1", which no driver says: no MFU is logged for it, nor for Blackwell. A warning tells where
#            no peak is known, and nothing where it is another GPU's.
# Output seen
#   NVIDIA A100-SXM4-80GB: 312 TFLOPS, data sheet 312
#   NVIDIA H100 80GB HBM3: 989 TFLOPS, data sheet 989
#   NVIDIA H100 NVL: 1979 TFLOPS, data sheet 835
#   NVIDIA H200: none, data sheet 989
#   NVIDIA B200: none, data sheet 2250
#   NVIDIA L4: 121 TFLOPS, data sheet 121
#   NVIDIA L40: 121 TFLOPS, data sheet 181
#   NVIDIA L40S: 121 TFLOPS, data sheet 362
#   NVIDIA A40: 37 TFLOPS, data sheet 150
#   NVIDIA RTX A6000: 39 TFLOPS, data sheet 155
#   NVIDIA GeForce RTX 4090: 83 TFLOPS, data sheet 165
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check lightning==2.6.6 torch==2.13.0
cat >"$folder/seen.py" <<'PYTHON'
from unittest import mock

import torch
from lightning.fabric.utilities.throughput import get_available_flops

DENSE_BF16_TFLOPS = {
    "NVIDIA A100-SXM4-80GB": 312, "NVIDIA H100 80GB HBM3": 989, "NVIDIA H100 NVL": 835, "NVIDIA H200": 989,
    "NVIDIA B200": 2250, "NVIDIA L4": 121, "NVIDIA L40": 181, "NVIDIA L40S": 362, "NVIDIA A40": 150,
    "NVIDIA RTX A6000": 155, "NVIDIA GeForce RTX 4090": 165,
}
for name, tflops in DENSE_BF16_TFLOPS.items():
    with mock.patch.object(torch.cuda, "get_device_name", return_value=name):
        peak = get_available_flops(torch.device("cuda", 0), torch.bfloat16)
    print(f"{name}: {f'{peak / 1e12:.0f} TFLOPS' if peak else 'none'}, data sheet {tflops}")
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/seen.py" >"$folder/seen.txt" 2>/dev/null
cat "$folder/seen.txt"
diff "$folder/seen.txt" - <<'SEEN'
NVIDIA A100-SXM4-80GB: 312 TFLOPS, data sheet 312
NVIDIA H100 80GB HBM3: 989 TFLOPS, data sheet 989
NVIDIA H100 NVL: 1979 TFLOPS, data sheet 835
NVIDIA H200: none, data sheet 989
NVIDIA B200: none, data sheet 2250
NVIDIA L4: 121 TFLOPS, data sheet 121
NVIDIA L40: 121 TFLOPS, data sheet 181
NVIDIA L40S: 121 TFLOPS, data sheet 362
NVIDIA A40: 37 TFLOPS, data sheet 150
NVIDIA RTX A6000: 39 TFLOPS, data sheet 155
NVIDIA GeForce RTX 4090: 83 TFLOPS, data sheet 165
SEEN
