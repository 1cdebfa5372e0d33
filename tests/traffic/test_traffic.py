"""Flows of a mapping against the closed forms of the performance model, and against the rules of rails."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coopt.columns.grid import DomainSet, mappings
from coopt.columns.pools import Pool, place
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.perf.collectives import AffineSeconds
from coopt.perf.mapping import micro_batches, stage_layers
from coopt.perf.traffic import StageTraffic, replicas_of
from coopt.plan.parts import WorkloadPlan
from coopt.solving.evaluate import evaluate_instance
from coopt.traffic.flows import TrafficDemand, demand
from coopt.traffic.ranks import groups, split_of, stages
from coopt.traffic.summary import sparse_matrix
from coopt.traffic.volumes import UNIT
from tests.columns.test_pools import flat
from tests.conftest import ask, example_count, small_model
from tests.traffic.sums import bytes_by_kind, silent_share

MOE = {"experts": 8, "top_k": 2, "ffn": 2048}
APART = {"mamba_layers": 3, "attention_layers": 1, "ffn_layers": 4, "mamba_heads": 64, "mamba_head_dim": 64}
APART |= {"mamba_groups": 8, "mamba_state": 128}
"""Layers of attention, of Mamba-2 or of a feed-forward part: of one block each, where others have two."""


def chosen(split: dict[str, object], gpus: int = 64, **model: object) -> tuple[Instance, Workload, WorkloadPlan]:
    """One mapping on 16-GPU domains, placed as is fastest."""
    instance = ask(
        cluster__gpus=gpus,
        network__hb_domains="h100-hb16",
        network__fabrics="rail-only",
        network__switches="64x400g",
        network__oversubscription=1.0,
        workload__0__allow_tp_across=False,
        workload__0__model=small_model(**model),
        workload__0__mapping={"zero": 0, "recompute": "none", "micro_batch": 1, **split},
    )
    return instance, instance.workload[0], evaluate_instance(instance).workloads[0]


def whole(split: dict[str, object], **model: object) -> tuple[Workload, WorkloadPlan, TrafficDemand]:
    _, workload, plan = chosen(split, **model)
    return workload, plan, demand(workload, plan)


@pytest.mark.parametrize(
    ("split", "model"),
    [
        ({"tp": 8, "pp": 1, "interleave": 1, "sequence_parallel": True}, {}),
        ({"tp": 4, "pp": 4, "interleave": 2, "sequence_parallel": False}, {}),
        ({"tp": 2, "pp": 2, "cp": 2, "interleave": 1, "sequence_parallel": True}, {}),
        ({"tp": 2, "pp": 2, "ep": 8, "interleave": 1, "sequence_parallel": True}, MOE),
        ({"tp": 1, "pp": 1, "ep": 4, "interleave": 1, "sequence_parallel": False, "zero": 3}, MOE),
        ({"tp": 4, "pp": 2, "interleave": 1, "sequence_parallel": True}, APART),
        ({"tp": 2, "pp": 2, "ep": 8, "interleave": 1, "sequence_parallel": True}, APART | MOE | {"expert_latent": 512}),
    ],
)
def test_flows_carry_the_bytes_that_the_model_charges(split: dict[str, object], model: dict[str, object]) -> None:
    """Over all ranks: layers of every stage, and what the last stage and the replicas add."""
    workload, plan, found = whole(split, **model)
    one = split_of(workload, plan)
    traffic = StageTraffic(workload=workload, links=UNIT, mappings=one.mapping, placements=one.placement)
    replicas = replicas_of(workload, UNIT, one.mapping, one.placement)
    m = int(micro_batches(one.mapping, workload.global_batch)[0])
    layered = workload.model.layers * (one.ranks // int(one.mapping.pp[0])) * m
    last = one.ranks // int(one.mapping.pp[0]) * m
    sums = bytes_by_kind(found)

    def moved(part: AffineSeconds) -> float:
        return float(sum(np.asarray(each).sum() for each in part.parts))

    n_ag = (8 + 2 * bool(one.mapping.sequence_parallel[0])) * (0.5 if workload.model.mamba_layers else 1.0)
    expected_tp = moved(traffic.tp_gather) * (n_ag * layered + 2 * last)
    assert sums.get("tp", 0.0) == pytest.approx(expected_tp)
    assert sums.get("cp", 0.0) == pytest.approx(moved(traffic.ring) * layered)
    assert sums.get("ep", 0.0) == pytest.approx(moved(traffic.exchange + traffic.expert_gather) * layered)
    assert sums.get("dp", 0.0) == pytest.approx(moved(replicas.data_parallel()) * one.ranks)


@pytest.mark.parametrize("zero", [0, 1])
def test_gpus_with_the_same_stages_send_what_the_model_charges(zero: int) -> None:
    """Stages as far from either end of a pipeline in two directions; one GPU has both ends of a tied embedding."""
    mapping = {"tp": 2, "pp": 4, "interleave": 1, "sequence_parallel": True, "zero": zero, "recompute": "none"}
    instance = ask(
        cluster__gpus=64,
        network__hb_domains="h100-hb16",
        network__fabrics="rail-only",
        network__switches="64x400g",
        network__oversubscription=1.0,
        workload__0__global_batch=128,
        workload__0__model=small_model(),
        workload__0__mapping=mapping | {"micro_batch": 1},
        workload__0__options={"schedule": "dualpipe"},
    )
    workload, plan = instance.workload[0], evaluate_instance(instance).workloads[0]
    found, one = demand(workload, plan), split_of(workload, plan)
    charged = replicas_of(workload, UNIT, one.mapping, one.placement).data_parallel()
    sums, order = bytes_by_kind(found), stages(one)
    assert "embedding" not in sums
    assert sums["dp"] == pytest.approx(one.ranks * float(sum(np.asarray(each).sum() for each in charged.parts)))
    ends = {(a, b) for s in found.streams if s.collective == "pair" for a, b in zip(s.src, s.dst, strict=True)}
    assert ends == {(a, b) for i in range(4) for a, b in zip(order[i], order[3 - i], strict=True)}
    phases = {s.phase for s in found.streams if s.collective == "pair"}
    assert phases == ({"gradients", "parameters"} if zero else {"gradients"})


@st.composite
def placed(draw: st.DrawFn) -> tuple[Workload, WorkloadPlan]:
    """A random mapping of a small model on 64 GPUs, on a random placement."""
    moe = draw(st.booleans())
    instance = ask(
        workload__0__model=small_model(**(MOE if moe else {})),
        workload__0__mapping={"cp": [1, 2], "zero": [0, 1]},
        workload__0__options={"expert_tp": draw(st.sampled_from([False, True, 2] if moe else [False]))},
        network__hb_domains="h100-hb16",
    )
    workload, gpu = instance.workload[0], instance.cluster.gpu
    grid, _ = mappings(workload, 64)
    site = DomainSet(gpus=64, hb="h100-hb16", domains=4)
    row = draw(st.integers(0, len(grid) - 1))
    pool = place(workload, gpu, instance.network.hb_domains[0], site, grid.take(np.array([row])))
    assume(len(pool))
    return workload, _plan(workload, pool, draw(st.integers(0, len(pool) - 1)))


def _plan(workload: Workload, pool: Pool, row: int) -> WorkloadPlan:
    from coopt.solving.arrays import workload_plan

    network = flat(pool.site, 5e10)
    return workload_plan(pool, ask().cluster.gpu, network, 1, row)


@settings(max_examples=example_count(500, 50))
@given(placed())
def test_groups_and_legs_keep_to_a_domain_or_to_a_rail(found: tuple[Workload, WorkloadPlan]) -> None:
    """Groups partition the ranks; what ranks send is what ranks receive as pairs."""
    split, asked = split_of(*found), demand(*found)
    for name in ("tp", "cp", "dp", "ep", "copies"):
        table = groups(split, name)
        assert sorted(table.ravel().tolist()) == list(range(split.ranks)), name
        assert (table // split.active == table[:, :, :1] // split.active).all()  # one row, one domain
        assert (table % split.active == table[:, :1, :] % split.active).all()  # one column, one rail
    for stream in asked.streams:
        same_domain = stream.src // asked.active == stream.dst // asked.active
        same_rail = stream.src % asked.active == stream.dst % asked.active
        assert (same_domain | same_rail).all()
        assert (stream.src != stream.dst).all()
        assert (stream.size_bytes >= 0).all()
    src, dst, sizes = sparse_matrix(asked)
    assert sizes.sum() == pytest.approx(sum(bytes_by_kind(asked).values()))
    assert len({*zip(src.tolist(), dst.tolist(), strict=True)}) == len(src)
    assert silent_share(asked) == pytest.approx(1 - len(src) / (64 * 63))


def test_hops_between_domains_stay_on_their_rail() -> None:
    """Eight stages, two in each of four domains: the second domain runs backwards."""
    workload, plan, _ = whole({"tp": 8, "pp": 8, "interleave": 1, "sequence_parallel": True})
    split = split_of(workload, plan)
    assert plan.placement["pp"] == (2, 4)
    order = stages(split)
    for here, there in pairwise(order):
        same_domain, same_rail = here // 16 == there // 16, here % 16 == there % 16
        assert (same_domain ^ same_rail).all()


def test_stages_send_their_layers() -> None:
    """Nine layers on two stages: the last has one fewer, and TP traffic follows."""
    workload, plan, found = whole({"tp": 8, "pp": 2, "interleave": 1, "sequence_parallel": False}, layers=9)
    split = split_of(workload, plan)
    layers, fewer = (int(n[0]) for n in stage_layers(workload.model, split.mapping))
    assert (layers, fewer) == (5, 1)
    order = stages(split)
    tensor = [s for s in found.streams if s.kind == "tp" and s.phase == "forward"]
    sent = np.zeros(split.ranks)
    for stream in tensor:
        np.add.at(sent, stream.src, stream.size_bytes)
    assert sent[order[0]].sum() / sent[order[1]].sum() == pytest.approx(5 * 4 / (4 * 4 + 1))


def test_nearly_all_pairs_of_a_large_cluster_never_talk() -> None:
    """arXiv 2307.12169: over 99% of GPU pairs exchange nothing."""
    _, workload, plan = chosen({"tp": 8, "pp": 8, "interleave": 1, "sequence_parallel": True}, gpus=2048)
    assert silent_share(demand(workload, plan)) > 0.99
