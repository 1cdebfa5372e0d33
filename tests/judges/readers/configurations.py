"""Configurations as transformers writes them, and the parameters of the models that it builds of them.

Question: names of `model_type`. Answer: for each that transformers knows as a language model, the configuration of its
defaults and one of fewer layers, each with its parameters. Models are built without memory for their numbers.
"""

import json
import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

FEWER = {"num_hidden_layers": 8}


def built(kind: str, changes: dict[str, int]) -> dict[str, object]:
    """A configuration, as its file has it, and the parameters of its model."""
    config = AutoConfig.for_model(kind, **changes)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        table = json.loads((Path(folder) / "config.json").read_text("utf-8"))
    return {"config": table, "parameters": sum(weights.numel() for weights in model.parameters())}


answers = []
for kind in json.loads(Path(sys.argv[1]).read_text("utf-8")):
    for changes in ({}, FEWER) if kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES else ():
        try:
            answers.append(built(kind, changes))
        except Exception as error:  # its own defaults do not build, or another number of layers does not
            answers.append({"kind": kind, "why_not": str(error)})
Path(sys.argv[2]).write_text(json.dumps(answers), "utf-8")
