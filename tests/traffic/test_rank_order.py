"""Ranks as Megatron-LM numbers them, on the GPUs where the plan places them."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from coopt.instance.workload import Workload
from coopt.perf.mapping import expert_ranks
from coopt.traffic.ranks import RankGrid, RankTable, groups, megatron_expert_groups, rank_table, same_groups, stages
from tests.conftest import small_model
from tests.traffic.sums import every_split

MOE = {"experts": 8, "top_k": 2, "ffn": 2048}
KINDS: dict[str, dict[str, Any]] = {
    "dense": {},
    "experts": {"model": small_model(**MOE)},
    "experts by TP": {"model": small_model(**MOE), "options": {"expert_tp": True}},
    "experts by a part of TP": {"model": small_model(**MOE), "options": {"expert_tp": 2}},
}


@cache
def cases(kind: str) -> tuple[tuple[RankGrid, RankTable], ...]:
    """One split for each choice of degrees and placement on 32 GPUs in domains of 8, and its ranks."""
    table: dict[str, Any] = {"name": "w", "model": small_model(), "global_batch": 32, "max_iteration_time_s": 1.0}
    limits = {"cp": [1, 2, 4], "micro_batch": 1, "interleave": 1, "recompute": "none", "zero": 0}
    workload = Workload.model_validate(table | {"mapping": {**limits, "sequence_parallel": False}} | KINDS[kind])
    return tuple((split, rank_table(split)) for split, _ in every_split(workload, 32, 8))


def degree(split: RankGrid, name: str) -> int:
    return int(getattr(split.mapping, name)[0])


def gpu_groups(table: RankTable, *alike: Any) -> set[frozenset[int]]:
    """GPUs of ranks that agree in all of the given arrays."""
    found = defaultdict(set)
    for gpu, *key in zip(table.gpu.tolist(), *(values.tolist() for values in alike), strict=True):
        found[tuple(key)].add(gpu)
    return {frozenset(members) for members in found.values()}


def as_sets(table: Any) -> set[frozenset[int]]:
    return {frozenset(row) for row in table.reshape(len(table), -1).tolist()}


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_run_tp_fastest_then_cp_dp_pp_each_on_a_gpu_of_its_own(kind: str) -> None:
    """A TP group takes as many GPUs of a domain as the placement says."""
    for split, table in cases(kind):
        t, c, d, p = (degree(split, name) for name in ("tp", "cp", "dp", "pp"))
        slow = product(range(p), range(d)) if table.pp_last else ((s, r) for r, s in product(range(d), range(p)))
        expected = [(s, r, x, y) for (s, r), x, y in product(slow, range(c), range(t))]
        assert list(zip(table.pp, table.dp, table.cp, table.tp, strict=True)) == expected
        assert sorted(table.gpu.tolist()) == list(range(split.ranks))
        domain = np.arange(split.ranks) // split.active
        for members in gpu_groups(table, table.cp, table.dp, table.pp):
            _, counts = np.unique(domain[sorted(members)], return_counts=True)
            assert set(counts.tolist()) == {split.extent("th")}


@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_those_of_the_traffic(kind: str) -> None:
    for split, table in cases(kind):
        assert gpu_groups(table, table.cp, table.dp, table.pp) == as_sets(groups(split, "tp"))
        assert gpu_groups(table, table.tp, table.dp, table.pp) == as_sets(groups(split, "cp"))
        assert gpu_groups(table, table.tp, table.pp) == as_sets(groups(split, "dp"))
        order = stages(split)
        for stage in range(len(order)):
            assert set(table.gpu[table.pp == stage].tolist()) == set(order[stage].tolist())
        assert gpu_groups(table, table.tp, table.cp, table.dp) == as_sets(order.T)


@pytest.mark.parametrize("kind", [*KINDS][1:])
def test_expert_groups_are_those_of_the_traffic(kind: str) -> None:
    for split, table in cases(kind):
        assert gpu_groups(table, table.expert_group) == as_sets(groups(split, "ep"))
        assert set(table.ep.tolist()) == set(range(degree(split, "ep")))


def expert_groups_by_generator(split: RankGrid, table: RankTable) -> Iterator[frozenset[int]]:
    """Groups as two nested orders give them: experts' TP fastest, then EP, their DP, PP (or PP before DP)."""
    over = split.workload.options.expert_tp
    t = degree(split, "tp") if over is True else max(over, 1)
    x, p = degree(split, "ep"), degree(split, "pp")
    copies = split.ranks // (t * x * p)
    shape = (p, copies, x, t) if table.pp_last else (copies, p, x, t)
    gpus = table.gpu.reshape(shape)
    for row in np.moveaxis(gpus, 2, -1).reshape(-1, x).tolist():
        yield frozenset(row)


@pytest.mark.parametrize("kind", [*KINDS][1:])
def test_expert_groups_of_megatron_follow_its_order_of_dimensions(kind: str) -> None:
    alike = 0
    for split, table in cases(kind):
        expected = set(expert_groups_by_generator(split, table))
        assert gpu_groups(table, megatron_expert_groups(split, table)) == expected
        same = same_groups(table.expert_group, megatron_expert_groups(split, table))
        assert same == (expected == as_sets(groups(split, "ep")))
        alike += same
    assert 0 < alike < len(cases(kind))


def test_expert_groups_within_a_domain_are_those_of_megatron_where_ranks_are_in_place() -> None:
    seen = 0
    for split, table in cases("experts"):
        inside, across, *_ = expert_ranks(split.mapping, split.placement, expert_tp=False)
        if table.in_place and across[0] == 1:
            assert same_groups(table.expert_group, megatron_expert_groups(split, table))
            seen += int(inside[0]) > 1
    assert seen


def test_the_other_order_is_taken_where_only_it_is_in_place() -> None:
    found = [(split, table) for split, table in cases("dense") if not table.pp_last]
    assert found
    for split, table in found:
        assert table.in_place
        assert split.extent("ph") > 1 or split.names[0] == "dl"
