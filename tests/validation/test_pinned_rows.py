"""Published runs asked as questions: what `validate` predicts, an instance can pin."""

import math
from typing import Any

import pytest

from coopt import Instance, evaluate
from coopt.perf.mapping import RECOMPUTE
from coopt.validation.batches import batches_of, unchanged_s
from coopt.validation.comparison import needed_gib
from coopt.validation.runs import MeasuredRun, run_of, runs_among

DEGREES = ("tp", "pp", "dp", "cp", "ep", "micro_batch", "interleave", "sequence_parallel", "zero", "offload_percent")


def question(run: MeasuredRun, size: int) -> Instance:
    """The run on HB domains of a size, with one switch between these."""
    workload = run.workload.model_dump(mode="json", exclude={"software"})
    workload |= {"mapping": {name: getattr(run.split, name) for name in DEGREES}, "max_iteration_time_s": 1e9}
    workload["mapping"] |= {"recompute": RECOMPUTE[run.split.recompute], "outermost": "pp"}
    free: dict[str, Any] = {"usd": 0, "w": 0}
    nic, hb = {"name": "n", "gbit_s": run.nic_gbit_s}, {"name": "hb", "size": size, "gbyte_s": run.hb_gbyte_s}
    network = {
        "hb_domains": hb | {"usd_per_gpu": 0, "w_per_gpu": 0, "nic_gbyte_s": run.nic_gbit_s / 8},
        **{"buildable": False, "charge": "ratio", "fabrics": "rail-only", "nics": nic | free},
        "switches": free | {"name": "s", "radix": 4096, "port_gbit_s": run.nic_gbit_s},
        "optics": free | {"name": "o", "gbit_s": run.nic_gbit_s, "reach_m": 500},
    }
    cluster = {"gpu": run.gpu.model_dump(mode="json"), "gpus": run.gpus}
    table = {"schema": 1, "name": "q", "margin": "none", "cluster": cluster, "network": network}
    return Instance.model_validate(table | {"workload": [workload]})


def answered(run: MeasuredRun, size: int) -> tuple[float, bool]:
    """The time, and whether it is that of the placement that `validate` takes."""
    (answer,) = evaluate(question(run, size)).workloads
    assert answer.memory_gib == pytest.approx(needed_gib(run), rel=1e-9)
    return answer.iteration_time_s, tuple(answer.placement[d][0] for d in ("tp", "cp", "dp", "pp")) == run.split.inside


def test_published_runs_can_be_asked_for(published):
    """In domains as full as theirs no placement but a faster one takes the place of the usual."""
    runs = runs_among(published[::19])
    answers = [answered(run, math.prod(run.split.inside)) for run in runs]
    for predicted_s, (time_s, is_usual) in zip(unchanged_s(batches_of(runs)), answers, strict=True):
        assert time_s == pytest.approx(predicted_s, rel=1e-9) if is_usual else time_s < predicted_s
    assert sum(is_usual for _, is_usual in answers) > len(runs) / 2


def test_domains_are_as_many_as_a_mapping_fills(published, row):
    """Of 72 GPUs, 64 train; and stage 3 of a single rank shards nothing."""
    (wide,) = (one for one in published if one.id == "mlperf50-405b-GB200-fp8-1024")
    answered(run_of(wide), 72)
    answered(run_of(row(gpus=16, dp=1, zero=3)), 8)
