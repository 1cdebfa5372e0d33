"""Configurations of models: parameters as those of the models that transformers builds."""

from __future__ import annotations

from coopt.instance.models.huggingface import FAMILIES, model_of
from coopt.instance.texts import InstanceError
from coopt.instance.transformer import Transformer
from coopt.perf.mapping import model_parameters
from tests.judges.judge import Bench, Judge, agree

CLOSE = 0.002  # norms and biases are not counted, and up to this share


def _parameters(bench: Bench) -> str:
    faults, count, refused = [], 0, []
    for said in bench.answers("configurations", question=sorted(FAMILIES)):
        if "config" not in said or "vision_config" in said["config"]:
            continue  # language models alone are built here
        kind = said["config"]["model_type"]
        try:
            values, _ = model_of(said["config"], kind)
            model = Transformer.model_validate({"name": kind} | values)
        except InstanceError:
            refused.append(kind)
            continue
        count += 1
        ratio = model_parameters(model)[0] / said["parameters"]
        if abs(ratio - 1) > CLOSE:
            faults.append(f"{kind}: {ratio - 1:+.2%}")
    names = ", ".join(dict.fromkeys(refused)) or "none"
    return f"{agree(faults, count, 'configurations')}; refused: {names}"


JUDGES = (
    Judge(
        program="transformers",
        judged="`coopt model import`: parameters of the models that it builds",
        packages=("transformers==5.24.0", "torch==2.13.0"),
        read=_parameters,
    ),
)
