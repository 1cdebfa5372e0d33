"""Random plans as launch files of Megatron-LM: it validates what is exported, and its log gives the same mapping."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from coopt.instance.catalog import entries, find
from coopt.instance.workload import Workload
from coopt.perf.mapping import RECOMPUTE
from coopt.plan.schema import MappingChoice
from coopt.report.megatron import launch_script, refusals
from coopt.traffic.ranks import RankGrid
from coopt.validation.own_runs import measurements_of
from tests.judges.judge import Bench, Judge, agree
from tests.traffic.sums import every_split

CAPABILITY = {"a100": 8, "h100": 9, "h200": 9, "b200": 10, "b300": 10, "gb200": 10, "gb300": 10}
LAUNCHES = 200
SEED = 7
OTHERS = ("--mock-data", "--tokenizer-type", "NullTokenizer", "--train-iters", "20", "--lr", "1e-4")
STEP = (
    " iteration {i:8d}/      20 | consumed samples: 1 | elapsed time per iteration (ms): 20000.0 |"
    " global batch size: {batch:5d} |"
)


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A workload, its mapping and what its GPU is."""

    split: RankGrid
    mapping: MappingChoice
    gpu: str

    @property
    def refusal(self) -> str:
        """Why coopt exports no launch file; empty where it does."""
        return "; ".join(refusals(self.split.workload, self.mapping))

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
        steps = "\n".join(STEP.format(i=i, batch=batch) for i in range(1, 6))
        (folder / "run.log").write_text(f"{log}\n{steps}\n", "utf-8")
        _, (row,), _ = measurements_of([str(folder / "run.log")], {"gpu": self.gpu})
        mapping, workload = self.mapping, self.split.workload
        names = ("tp", "pp", "cp", "ep", "micro_batch", "recompute", "zero", "offload_percent", "sequence_parallel")
        said = {name: getattr(mapping, name) for name in names}
        said["interleave"] = mapping.interleave if mapping.interleave > 1 else None  # as tables leave it out
        said |= {"gpus": self.split.ranks, "global_batch": batch, "precision": workload.precision}
        said |= {"layers": workload.model.layers, "ffn": workload.model.ffn}
        return ", ".join(
            f"{name} = {getattr(row, name)} for {value}" for name, value in said.items() if getattr(row, name) != value
        )


def launches(seed: int) -> Iterator[Launch]:
    """Random ones without end: models, precisions and software of the catalog, on a few GPUs of each kind."""
    random = Random(seed)
    while True:
        gpus = random.choice((16, 32, 64, 128))
        model = find("model", random.choice(list(entries("model")))).model_dump(exclude_none=True)
        options: dict[str, Any] = {
            "dp_mode": random.choice(("sync", "overlap")),
            "attention": random.choice(("flash", "flash", "unfused")),
            "transport": random.choice(("rdma", "ipoib")),
            "software": random.choice(("megatron-core", "megatron-core", "megatron-2022", "megatron-2021")),
            "expert_tp": random.random() < 0.3,
        }
        limits: dict[str, Any] = {
            "cp": [1, 2, 4],
            "zero": [0, 1, 2, 3],
            "micro_batch": [1, 2],
            "offload_percent": random.choice(([0], [0], [40])),
        }
        if options["software"] == "megatron-core":
            limits["recompute"] = random.choice((RECOMPUTE, ("norm+act",), ("norm+ffn",)))
        gpu = random.choice(list(CAPABILITY))
        precisions = {8: ("bf16", "fp16"), 9: ("bf16", "fp8", "fp8"), 10: ("bf16", "fp8", "fp4")}[CAPABILITY[gpu]]
        workload = Workload.model_validate(
            {
                "name": "w",
                "model": model,
                "global_batch": random.choice((1, 2, 4)) * gpus,
                "precision": random.choice(precisions),
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


def _validated(bench: Bench) -> str:
    """Random plans: what is exported passes Megatron-LM's own validation, and its log gives the same mapping."""
    drawn = list(islice(launches(SEED), LAUNCHES))
    taken = [launch for launch in drawn if not launch.refusal]
    answers = bench.answers("megatron", question=[launch.called(bench.folder) for launch in taken])
    faults = []
    for launch, said in zip(taken, answers, strict=True):
        fault = said["complaint"] or launch.misread(said["log"], bench.folder)
        faults += [f"{launch.split.workload.model.name}: {fault}"] if fault else []
    agreed = agree(faults, len(taken), "launch files")
    reasons = Counter(re.sub(r"= \d+", "= N", launch.refusal) for launch in drawn if launch.refusal)
    refused = "; ".join(f"{n} {reason}" for reason, n in reasons.items()) or "none"
    return f"{agreed} of {LAUNCHES} plans; refused: {refused}"


JUDGES = (
    Judge(
        program="megatron-core",
        judged="launch files: parse, validate, configure; the log read back",
        packages=("megatron-core==0.19.2",),
        newest_python=True,
        read=_validated,
        may_be_skipped=False,
    ),
)
