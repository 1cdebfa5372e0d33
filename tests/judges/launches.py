"""Random plans as launch files of Megatron-LM: it validates what is exported, and its log gives the same mapping."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from coopt.instance.catalog import entries, find
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.perf.mapping import RECOMPUTE, model_parameters
from coopt.plan.schema import MappingChoice
from coopt.report import bridge, megatron, nemo, torchtitan
from coopt.report.megatron import launch_script, sharded_fully
from coopt.traffic.ranks import RankGrid
from coopt.validation.own_runs import measurements_of
from tests.judges.judge import Bench, Judge, agree
from tests.traffic.sums import every_split

CAPABILITY = {"a100": 8, "h100": 9, "h200": 9, "b200": 10, "b300": 10, "gb200": 10, "gb300": 10}
SCALED = {"fp8": "fp8-cs", "fp4": "nvfp4"}
"""What logs call a precision by, with how it scales."""
LAUNCHES = 200
SEED = 7
SHOWN = 2  # reasons of refusals
OTHERS = ("--mock-data", "--tokenizer-type", "NullTokenizer", "--train-iters", "20", "--lr", "1e-4")
STEP = (
    " iteration {i:8d}/      20 | consumed samples: {consumed:12d} | elapsed time per iteration (ms): 20000.0 |"
    " global batch size: {batch:5d} |"
)


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A workload, its mapping and what its GPU is."""

    split: RankGrid
    mapping: MappingChoice
    gpu: str

    def called(self, folder: Path) -> dict[str, Any]:
        """What the script calls Megatron-LM with: arguments and environment."""
        for name in ("torchrun", "python", "awk"):
            (folder / name).write_text('#!/bin/sh\ntest "${0##*/}" = awk || { printf "%s\\n" "$@"; env >&2; }\n')
            (folder / name).chmod(0o755)
        (folder / "run.sh").write_text(launch_script("random", self.split, self.mapping), "utf-8")
        path = {"PATH": f"{folder}:{os.environ['PATH']}", "SLURM_PROCID": "0"}
        done = subprocess.run(
            ["bash", "run.sh", *OTHERS], cwd=folder, env=path, capture_output=True, text=True, check=True
        )
        words = done.stdout.splitlines()
        environment = dict(line.split("=", 1) for line in done.stderr.splitlines() if "=" in line)
        return {
            "words": words[next(i for i, word in enumerate(words, 1) if word.startswith("pretrain_")) :],
            "environment": environment | {"WORLD_SIZE": str(self.split.ranks), "RANK": "0"},
            "capability": CAPABILITY[self.gpu],
        }

    def misread(self, log: str, folder: Path) -> str:
        """What the reader of logs makes of it that the plan does not say; empty if nothing."""
        batch = self.split.workload.global_batch
        steps = "\n".join(STEP.format(i=i, batch=batch, consumed=i * batch) for i in range(1, 6))
        (folder / "run.log").write_text(f"{log}\n{steps}\n", "utf-8")
        _, (row,), _ = measurements_of([str(folder / "run.log")], {"gpu": self.gpu})
        mapping, workload = self.mapping, self.split.workload
        names = ("tp", "pp", "cp", "ep", "micro_batch", "recompute", "zero", "offload_percent", "sequence_parallel")
        said = {name: getattr(mapping, name) for name in (*names, "interleave")}
        said |= {
            "gpus": self.split.ranks,
            "global_batch": batch,
            "precision": SCALED.get(workload.precision, workload.precision),
        }
        said |= {"layers": workload.model.layers, "ffn": workload.model.ffn}
        read = {name: getattr(row, name) for name in said}
        read["interleave"] = row.interleave or 1  # tables may leave out that there is one chunk
        return ", ".join(f"{name} = {read[name]} for {value}" for name, value in said.items() if read[name] != value)


@dataclass(frozen=True, kw_only=True)
class Tool:
    """What people ask of a framework: random questions are drawn from these."""

    software: tuple[str, ...]
    sharding: tuple[dict[str, list[int]], ...] = ({"zero": [0, 1]}, {"zero": [2, 3], "pp": [1]})
    precisions: tuple[str, ...] = ("bf16", "fp16", "fp8", "fp4")
    attention: tuple[str, ...] = ("flash", "flash", "unfused")
    offload_percent: tuple[int, ...] = (0, 0, 40)
    expert_tp: float = 0.3
    dispatch: tuple[str, ...] = ("once", "each")
    with_experts: dict[str, list[int]] = field(default_factory=dict)  # degrees of models that have them; any if none
    takes: Callable[[Transformer], bool] = lambda _: True
    further_predictions: bool = True

    def models(self) -> list[dict[str, Any]]:
        """Shapes of the catalog's models that the tool takes."""
        found = (find("model", name) for name in entries("model"))
        shapes = [model.model_dump(exclude_none=True) for model in found if self.takes(model)]
        return shapes if self.further_predictions else [shape | {"extra_predictions": 0} for shape in shapes]


def built_by_torchtitan(model: Transformer) -> bool:
    """Whether builders of TorchTitan have the kinds of layers of a model."""
    fields = type(model).model_fields
    return model.gated and all(getattr(model, key) == fields[key].default for key in torchtitan.UNSAID)


MEGATRON = Tool(software=("megatron-core", "megatron-core", "megatron-2022", "megatron-2021"))
BRIDGE = Tool(software=("megatron-core", "megatron-bridge"))
TORCHTITAN = Tool(
    software=("fsdp",),
    sharding=({"zero": [2, 3]},),
    precisions=("bf16", "fp8"),
    attention=("flash",),
    offload_percent=(0,),
    expert_tp=0.0,
    with_experts={"ep": [2, 4, 8, 16, 32]},
    takes=built_by_torchtitan,
    further_predictions=False,
)

NEMO = replace(TORCHTITAN, precisions=("bf16",), dispatch=("once",), with_experts={"ep": [2, 4, 8, 16, 32], "tp": [1]})


def launches(seed: int, tool: Tool = MEGATRON) -> Iterator[Launch]:
    """Random ones without end: models and precisions of the catalog that a tool has, on a few GPUs of each kind."""
    random, models = Random(seed), tool.models()
    while True:
        gpus = random.choice((16, 32, 64, 128))
        model = random.choice(models)
        options: dict[str, Any] = {
            "dp_mode": random.choice(("sync", "overlap")),
            "attention": random.choice(tool.attention),
            "transport": random.choice(("rdma", "ipoib")),
            "software": random.choice(tool.software),
            "expert_tp": random.random() < tool.expert_tp,
            "dispatch": random.choice(tool.dispatch),
        }
        limits: dict[str, Any] = {
            "cp": [1, 2, 4],
            **(random.choice(tool.sharding) if len(tool.sharding) > 1 else tool.sharding[0]),
            "micro_batch": [1, 2],
            "offload_percent": [random.choice(tool.offload_percent)],
        }
        if model.get("experts"):
            limits |= tool.with_experts
        if options["software"] in ("megatron-core", "megatron-bridge"):
            kinds = RECOMPUTE if model.get("experts") or model.get("kv_rank") else RECOMPUTE[:-1]
            limits["recompute"] = random.choice((kinds, ("norm+act",), ("norm+ffn",)))
        gpu = random.choice(list(CAPABILITY))
        runs = {8: ("bf16", "fp16"), 9: ("bf16", "fp8", "fp8"), 10: ("bf16", "fp8", "fp4")}[CAPABILITY[gpu]]
        workload = Workload.model_validate(
            {
                "name": "w",
                "model": model,
                "global_batch": random.choice((1, 2, 4)) * gpus,
                "precision": random.choice([precision for precision in runs if precision in tool.precisions]),
                "options": options,
                "mapping": limits,
                "max_iteration_time_s": 1.0,
            }
        )
        places = random.choice((8, 16))
        found = list(every_split(workload, gpus, places, every=random.randrange(97, 997)))
        if found:
            split, chosen = random.choice(found)
            yield Launch(split=split, mapping=chosen.mapping, gpu=gpu)


Refused = Callable[[RankGrid, MappingChoice], Iterator[str]]


def drawn(tool: Tool, refused: Refused) -> tuple[list[Launch], str]:
    """Random plans that coopt exports for a tool, and what it refuses, in words."""
    plans = list(islice(launches(SEED, tool), LAUNCHES))
    reasons = [next(refused(launch.split, launch.mapping), "") for launch in plans]
    kept = [launch for launch, reason in zip(plans, reasons, strict=True) if not reason]
    kinds = [re.sub(r" of [\w.-]+$", "", reason.split(":")[0]) for reason in reasons if reason]
    counts = Counter(re.sub(r"= \d+", "= N", kind) for kind in kinds)
    shown = [f"{n} {reason}" for reason, n in counts.most_common(SHOWN)]
    rest = counts.total() - sum(n for _, n in counts.most_common(SHOWN))
    return kept, "; ".join([*shown, *([f"{rest} for other reasons"] if rest else [])]) or "none"


def _validated(bench: Bench) -> str:
    """Random plans: what is exported passes Megatron-LM's own validation, and its log gives the same mapping."""
    taken, refused = drawn(MEGATRON, megatron.refusals)
    answers = bench.answers("megatron", question=[launch.called(bench.folder) for launch in taken])
    faults = []
    for launch, said in zip(taken, answers, strict=True):
        fault = said["complaint"] or launch.misread(said["log"], bench.folder)
        faults += [f"{launch.split.workload.model.name}: {fault}"] if fault else []
    agreed = agree(faults, len(taken), "launch files")
    return f"{agreed} of {LAUNCHES} plans; refused: {refused}"


def differs(launch: Launch, said: dict[str, Any]) -> str:
    """What a tool would train otherwise than the plan says; empty if nothing."""
    mapping, workload, model = launch.mapping, launch.split.workload, launch.split.workload.model
    names = ("tp", "pp", "cp", "dp", "micro_batch", "interleave", *(("ep",) if model.experts else ()))
    expected = {name: getattr(mapping, name) for name in names}
    expected |= {"global_batch": workload.global_batch, "seq": model.seq}
    if mapping.tp > 1:
        expected["sequence_parallel"] = mapping.sequence_parallel
    size = model_parameters(model)[0]
    expected["parameters"] = said["parameters"] if abs(said["parameters"] / size - 1) < 1e-3 else size
    if "quantized" in said:  # of models that are built
        expected["recompute"] = "FullAC" if mapping.recompute == "full" else "NoneType"
        expected["zero"] = [mapping.dp > 1, "always" if mapping.zero == 3 else "never"]
        linear, grouped = "Float8Linear", "Float8GroupedExperts"
        expected["quantized"] = [*([grouped] if model.experts else []), linear] if workload.precision == "fp8" else []
    else:
        kind = {"norm+act": "selective", "norm+ffn": "selective", "none": None}
        kind["act"] = "selective" if model.experts or model.kv_rank else None
        expected["recompute"] = kind.get(mapping.recompute, mapping.recompute)
        sharding = {2: "optim_grads", 3: "optim_grads_params"}
        expected["zero"] = [mapping.zero > 0, sharded_fully(mapping) and sharding[mapping.zero]]
        narrow = {"fp8": ["hybrid", None], "fp4": [None, "e2m1"]}.get(workload.precision, [None, None])
        expected["precision"] = [workload.precision != "fp16", workload.precision == "fp16", *narrow]
        expected["gradients"] = workload.options.software.gradient_bytes == 4
        expected["offloaded"] = mapping.offload_percent / 100
        expected["layers"], expected["hidden"] = model.layers, model.hidden
        expected["heads"], expected["experts"] = model.heads, model.experts
        once = workload.options.dispatch == "once" and mapping.ep > 1
        expected["dispatcher"] = ("flex" if once else "alltoall") if model.experts else said["dispatcher"]
    return ", ".join(f"{name} = {said[name]} for {value}" for name, value in expected.items() if said[name] != value)


def _configured(bench: Bench, tool: Tool, reader: Any, text: Callable[..., str], ending: str) -> str:
    """Random plans: a tool reads what is exported, validates it, and would train what the plan says."""
    taken, refused = drawn(tool, reader.refusals)
    question = []
    for number, launch in enumerate(taken):
        file = bench.folder / f"plan_{number}.{ending}"
        file.write_text(text("random", launch.split, launch.mapping), "utf-8")
        gpu = {"gpu": f"NVIDIA {launch.gpu.upper()}", "capability": CAPABILITY[launch.gpu]}
        question.append({"file": str(file), "ranks": launch.split.ranks, **gpu})
    answers = bench.answers(reader.__name__.rsplit(".", 1)[-1], question=question)
    faults = []
    for launch, said in zip(taken, answers, strict=True):
        fault = said["complaint"] or differs(launch, said)
        faults += [f"{launch.split.workload.model.name}: {fault}"] if fault else []
    agreed = agree(faults, len(taken), "configurations")
    return f"{agreed} of {LAUNCHES} plans; refused: {refused}"


def _of_bridge(bench: Bench) -> str:
    return _configured(bench, BRIDGE, bridge, bridge.bridge_text, "yaml")


def _of_nemo(bench: Bench) -> str:
    return _configured(bench, NEMO, nemo, nemo.nemo_text, "yaml")


def _of_torchtitan(bench: Bench) -> str:
    return _configured(bench, TORCHTITAN, torchtitan, torchtitan.torchtitan_text, "py")


JUDGES = (
    Judge(
        program="megatron-core",
        judged="launch files: parse, validate, configure; the log read back",
        packages=("megatron-core==0.19.2",),
        newest_python=True,
        read=_validated,
        may_be_skipped=False,
    ),
    Judge(
        program="megatron-bridge",
        judged="configurations: read strictly, updated and validated as at a start",
        packages=("megatron-bridge==0.6.2", "hydra-core==1.3.8"),
        dependencies=(
            *("megatron-core==0.19.2", "transformers==5.12.1", "datasets==4.7.0", "omegaconf==2.4.0", "einops==0.8.2"),
            *("peft==0.21.2", "accelerate==1.15.0", "diffusers==0.42.1", "tensorboard==2.21.0", "sentencepiece==0.2.3"),
            *("tiktoken==0.14.0", "qwen-vl-utils==0.0.14", "multi-storage-client==1.3.1", "flask-restful==0.3.10"),
            *("pyyaml==6.0.4", "rich==15.0.0", "six==1.17.0"),
        ),
        newest_python=True,
        read=_of_bridge,
    ),
    Judge(
        program="nemo-automodel",
        judged="configurations: typed, degrees and batches as at a start, models built without memory",
        packages=("nemo-automodel==0.7.0",),
        dependencies=(
            *("torch==2.14.1", "torchdata==0.11.0", "torchao==0.18.0", "transformers==5.18.0", "datasets==4.7.0"),
            *("einops==0.8.2", "pyyaml==6.0.4", "pillow==13.0.0", "psutil==7.2.2", "numpy"),
        ),
        newest_python=True,
        read=_of_nemo,
    ),
    Judge(
        program="torchtitan",
        judged="configurations: parsed, checked as at a start, models built without memory",
        packages=("torchtitan==0.3.0",),
        dependencies=(
            *("torch==2.14.1", "torchdata==0.11.0", "torch-checkpointing==0.1.1", "torchao==0.18.0", "datasets==4.7.0"),
            *("tyro==1.0.17", "spmd-types==0.2.3", "tensorboard==2.21.0", "einops==0.8.2", "pillow==13.0.0"),
            *("transformers==5.12.1", "numpy"),
        ),
        newest_python=True,
        read=_of_torchtitan,
    ),
)
