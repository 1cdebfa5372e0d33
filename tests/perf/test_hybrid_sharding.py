"""Hybrid sharding (HSDP): several copies of what ZeRO shards, each inside an HB domain."""

import numpy as np
import pytest

from coopt.instance.schema import Instance, choices_of
from coopt.instance.transformer import MappingLimits
from coopt.perf.collectives import Reciprocals, gather, links_of
from coopt.perf.mapping import held_parameters
from coopt.perf.memory import state_bytes
from coopt.perf.traffic import replicas_of
from coopt.report.bridge import bridge_text
from coopt.report.torchtitan import torchtitan_text
from coopt.traffic.ranks import RankGrid, groups, split_of
from coopt.verifier.training.mappings import mapping_fault
from tests.conftest import accepted, ask, small_model
from tests.perf.training import gpu, mapped, placed, training

SPLIT = {"tp": 1, "pp": 1, "cp": 1, "dp": 32, "zero": 3, "micro_batch": 1, "recompute": "none"}
EXPERTS = {"experts": 8, "top_k": 2, "ffn": 2048}


def sharded(copies: int, *, experts: bool = False, **changes: object) -> Instance:
    """32 GPUs in four domains that train as FSDP2 does."""
    return ask(
        cluster__gpus=32,
        workload__0__model=small_model(**(EXPERTS if experts else {})),
        workload__0__options={"dp_replicate": copies, "software": "fsdp"},
        workload__0__max_iteration_time_s=60.0,
        **{"workload__0__mapping": SPLIT | {"ep": 2 if experts else 1}, **changes},
    )


def test_copies_are_gathered_inside_a_domain_and_added_up_between_them():
    """Two reduce-scatters of two micro-batches, each with an all-reduce, and four all-gathers; a copy takes four ranks
    of eight.
    """
    mappings, r = mapped(dp=16, zero=3, micro_batch=2), Reciprocals.everywhere(8e-9 / 400)
    place, links = placed(mappings, dp=8), links_of(training(), gpu(), 450.0)
    found = replicas_of(training(batch=64, dp_replicate=4), links, mappings, place)
    size, one = held_parameters(training(), mappings), np.ones(1, dtype=np.int64)
    expected = gather(links, 4 * size, 4 * one, one, "dp") * 2 + gather(links, 2 * size, 4 * one, one, "dp") * 4
    expected += gather(links, size, 2 * one, 2 * one, "dp", summed=True) * 4
    assert found.data_parallel().at(r) == pytest.approx(expected.at(r), rel=1e-12)
    states = [state_bytes(training(dp_replicate=copies), mappings)[0] for copies in (1, 4)]
    assert states[1] == pytest.approx(4 * states[0])


@pytest.mark.parametrize("experts", [False, True])
def test_plans_with_copies_are_accepted_and_exported(experts):
    """Shards lie in one domain, and each has a peer in every copy."""
    instance = sharded(4, experts=experts)
    plan = accepted(instance)
    run, split = plan.workloads[0], split_of(instance.workload[0], plan.workloads[0])
    assert isinstance(split, RankGrid)
    shards, same = groups(split, "dp shards"), groups(split, "dp")
    assert (shards.shape, same.shape[1:]) == ((4, 1, 8), (4, 1))
    assert all(len(set((shard // 8).tolist())) == 1 for shard in shards[:, 0])
    text = torchtitan_text("hsdp", split, run.mapping)
    assert "'data_parallel_replicate_degree': 4" in text
    assert "'data_parallel_shard_degree': 8" in text
    assert "num_distributed_optimizer_instances: 4" in bridge_text("hsdp", split, run.mapping)
    wider = instance.workload[0].model_copy(update={"mapping": MappingLimits()})
    odd = run.mapping.model_copy(update={"tp": 16, "dp": 2, "ep": 1, "sequence_parallel": True})
    assert "no multiple" in mapping_fault(wider, 32, odd)


def test_copies_that_cannot_be_are_refused():
    """Those larger than a domain have no plan."""
    asked = sharded(2, network__hb_domains="hgx-h100-8")
    assert "options.dp_replicate = 2: needs" in accepted(asked).explanation[0]
    asked = ask(workload__0__model=small_model(**EXPERTS), workload__0__options={"expert_tp": 3})
    assert "without options.expert_tp = 3" in accepted(asked).explanation[0]
    for copies, changes, complaint in (
        (4, {"network__fabrics": ["rail-only", "direct"]}, "dp_replicate = 4: direct links"),
        (5, {}, r"dp_replicate = 5: divides none of mapping.dp = \[32\]"),
        (3, {"workload__0__mapping": {"zero": [1, 2]}}, r"global_batch = \[64\], needs a divisor"),
        (3, {"workload__0__mapping": {"zero": [1, 2]}, "workload__0__global_batch": [64, 32]}, r"= \[64, 32\], needs"),
        (60, {"workload__0__mapping": {}, "workload__0__batch_tolerance": 0.05}, "= 61 to 67, needs a divisor"),
        (4, {"workload__0__mapping": {"zero": 0}}, "dp_replicate = 4: ZeRO 0 shards nothing"),
    ):
        with pytest.raises(ValueError, match=complaint):
            sharded(copies, **changes)


@pytest.mark.parametrize(
    ("copies", "asked", "batches"),
    [(5, {"batch_tolerance": 0.05}, [[65]]), (6, {"global_batch": [48, 64, 60]}, [[48], [60]]), (2, {}, [[]])],
)
def test_batches_that_copies_divide_are_left_to_choose_from(copies, asked, batches):
    changes = {f"workload__0__{key}": value for key, value in {"mapping": {}, **asked}.items()}
    assert [[*choice.global_batch.values()] for choice in choices_of(sharded(copies, **changes))] == batches
