"""Whether Megatron-LM takes launch arguments: a JSON file of launches, and one of complaints and logs to write.

Runs with megatron-core installed and without a GPU, so that what Megatron-LM asks the GPU and Transformer Engine is
answered here: compute capability as the launch says, Transformer Engine as in containers of that release.
"""

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from megatron.core import utils
from megatron.core.models.common.embeddings import rope_utils
from megatron.training.arguments import core_transformer_config_from_args, parse_args, validate_args
from packaging.version import Version

TRANSFORMER_ENGINE = Version("2.10.0")


def judged(launch: dict) -> dict:
    """What Megatron-LM says against a launch, empty if nothing, and the arguments as it logs them."""
    sys.argv = ["pretrain_gpt.py", *launch["words"]]
    os.environ.clear()
    os.environ.update(launch["environment"])
    torch.cuda.get_device_capability = lambda *_: (launch["capability"], 0)
    torch.cuda.get_device_properties = lambda *_: SimpleNamespace(major=launch["capability"])
    log, complaint = io.StringIO(), ""
    with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        try:
            args = parse_args()
            validate_args(args)
            core_transformer_config_from_args(args)
        except (Exception, SystemExit) as error:
            complaint = f"{type(error).__name__}: {error}"
    return {"complaint": complaint, "log": log.getvalue()}


question, answer = map(Path, sys.argv[1:])
utils._te_version = TRANSFORMER_ENGINE
rope_utils.fused_apply_rotary_pos_emb = len  # it is there, and nothing calls it
answer.write_text(json.dumps([judged(launch) for launch in json.loads(question.read_text("utf-8"))]), "utf-8")
