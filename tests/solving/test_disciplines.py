"""No instance that ships misses a bound under the discipline that it names: by routes, and as simulated."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

import coopt
from coopt.columns.times import bound_shares, unbounded
from coopt.network.space import families
from coopt.plan.store import read_plan
from coopt.verifier.training.iteration import model_flop_per_token
from tests.conftest import SHIPPED

ROOT = Path(__file__).parents[2]
RECORD = list(csv.DictReader((ROOT / "benchmarks" / "disciplines.csv").read_text("utf-8").splitlines()))
QUICK = (
    *("tiny-64", "phased-128", "rail-only-gpt-1t", "megatron-530b", "llama3-405b-16k"),
    *("fleet-core-growth", "direct-64", "fleet-131k-w8"),
)
"""Instances that are solved, routed and simulated within seconds; the benchmark records others."""


@pytest.mark.parametrize("name", QUICK)
def test_routes_and_simulation_keep_every_bound(name: str, shipped_plan: Callable[[Path], Path]) -> None:
    file = ROOT / "instances" / f"{name}.toml"
    instance, plan = coopt.load(file), read_plan(shipped_plan(file))
    assert plan.parts
    for part in plan.parts:
        if part.design is None:
            continue
        found = coopt.route(instance, plan, part=part.name, with_links=False)
        assert [one.within_bound for one in found.workloads] == [True] * len(part.workloads)
    assert coopt.simulate(instance, plan).met


@pytest.mark.parametrize("row", RECORD, ids=lambda row: row["instance"])
def test_no_bound_is_missed_on_file(row: dict[str, str]) -> None:
    assert row["instance"] in {file.stem for file in SHIPPED}
    assert all(float(row[name]) <= 1 for name in ("routed", "simulated") if row[name])
    assert bool(row["simulated"]) == bool(row["spray"])


def test_every_instance_is_held_to_its_bounds() -> None:
    assert [row["instance"] for row in RECORD] == sorted(file.stem for file in SHIPPED)
    assert {*QUICK} < {row["instance"] for row in RECORD}


@pytest.mark.parametrize("gpus", [16_384, 24_576])
def test_a_network_like_that_of_llama_3_keeps_the_published_time(gpus: int) -> None:
    """Leaves without oversubscription and seven links down for one up above; 400 TFLOP/s a GPU (arXiv 2407.21783)."""
    keys = {
        "cluster.gpus": gpus,
        "workload.0.global_batch": gpus // 8,
        "workload.0.mapping": {"tp": 8, "pp": 16, "interleave": [1, 2, 4, 8], "zero": [1, 2]},
        "workload.0.options": {"dp_mode": "overlap"},
        "network.hb_domains": "hgx-h100-8",
        "network.fabrics": "clos",
        "network.switches": "qm9700",
        "network.oversubscription": 7.0,
    }
    asked = coopt.load(ROOT / "instances" / "llama3-405b-16k.toml", keys)
    (workload,) = asked.workload
    bound_s = model_flop_per_token(workload.model) * workload.tokens_per_iteration / (gpus * 400e12)
    asked = coopt.load(ROOT / "instances" / "llama3-405b-16k.toml", keys | {"workload.0.max_iteration_time_s": bound_s})
    wide = [one for one in families(asked) if one.pods is not None and one.active == one.hb.size]
    like = next(one for one in wide if one.pods.l == 7 * one.pods.w and one.down in one.uplink_choices)
    (pace,) = bound_shares(asked, (like,), unbounded(asked, (like,), lambda site: None))
    assert pace[like.uplink_choices.index(like.down)] <= 1
