"""Batches within a tolerance and idle GPUs: the optimum is that of every number that may be taken."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.columns.pools import Pool
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.network.space import families
from coopt.report.screen import plan_screen
from coopt.report.suggestions import EVEN, other_numbers
from coopt.report.words import rendered
from coopt.solving import divisibility
from coopt.solving.divisibility import Trial, TrialNetwork, _batches, with_better_numbers
from tests.changes import with_part
from tests.conftest import accepted, ask, example_count, small_model
from tests.conftest import question as small_question

ALL = ["gpu", "host", "hb", "nic", "switch", "optics"]
LARGE_PRIMES = [11, 13, 17, 19, 23]


def question(gpus: int, batch: int, *, fastest: bool, **changes: Any) -> Instance:
    """One workload on whole servers: the fastest plan, or the cheapest in days that many take."""
    bound: dict[str, Any] = {"workload__0__train_tokens": 1e11, "workload__0__max_iteration_time_s": None}
    bound |= {} if fastest else {"workload__0__train_days": 1e12 / gpus / 2**30}
    aim = {"minimize": "time" if fastest else "capex", "include": ALL}
    given: dict[str, Any] = {"cluster__gpus": gpus, "workload__0__global_batch": batch, "objective": aim}
    given |= {"network__hb_domains": "hgx-h100-8", "network__fabrics": ["rail-only", "clos"]}
    return ask(**given | bound | changes)


def worth(instance: Instance) -> float:
    """The days of the fastest plan or the price of the cheapest; infinite where there is none."""
    plan = coopt.solve(instance, reasons=False)
    if plan.objective.value is None:
        return math.inf
    seconds = plan.objective.kind == "time"
    return plan.objective.value * (instance.workload[0].iterations if seconds else 1.0)


@settings(max_examples=example_count(4), deadline=None)
@given(prime=st.sampled_from(LARGE_PRIMES), factor=st.sampled_from([1, 2, 4]), fastest=st.booleans(), data=st.data())
def test_a_tolerance_finds_the_best_batch(prime: int, factor: int, fastest: bool, data: st.DataObject) -> None:
    batch, gpus = prime * factor, data.draw(st.sampled_from([16, 24, 40]))
    instance = question(gpus, batch, fastest=fastest, workload__0__batch_tolerance=0.05)
    plan = accepted(instance)
    room = batch // 20
    batches = range(batch - room, batch + room + 1)
    best = min(worth(question(gpus, each, fastest=fastest)) for each in batches)
    chosen = plan.chosen.global_batch.get(instance.workload[0].name, batch)
    assert chosen in batches
    mine = worth(question(gpus, chosen, fastest=fastest))
    assert mine == pytest.approx(best, rel=1e-9)


@settings(max_examples=example_count(4), deadline=None)
@given(servers=st.sampled_from([5, 7, 10, 11, 13]), batch=st.sampled_from([32, 64, 96]), fastest=st.booleans())
def test_idle_gpus_are_the_best_number_that_trains(servers: int, batch: int, fastest: bool) -> None:
    gpus = 8 * servers
    instance = question(gpus, batch, fastest=fastest, cluster__idle_gpus=True)
    plan = accepted(instance)
    h100 = instance.cluster.gpu
    (server,) = instance.network.hb_domains
    values = {}
    for trained in range(gpus - gpus // 4, gpus + 1):
        plain = coopt.solve(question(trained, batch, fastest=fastest, network__domain_fill="even"), reasons=False)
        if plain.design is None or plain.objective.value is None or plain.design.hb_domain.count > servers:
            continue
        # what stands idle is bought with its server and its NICs
        idle = servers - plain.design.hb_domain.count
        nics = 8 * idle * instance.network.nics[0].usd if plain.design.fabric.tiers else 0.0
        price = 8 * idle * (server.usd_per_gpu + h100.usd) + nics
        values[trained] = plain.objective.value + (0.0 if fastest else price)
    assert plan.objective.value == pytest.approx(min(values.values()), rel=1e-9)
    assert plan.design is not None
    assert plan.design.hb_domain.count + plan.design.spare_domains == servers


def test_what_stands_idle_counts_among_the_domains_that_stand_by() -> None:
    terms: dict[str, Any] = {"workload__0__train_days": 100.0, "cluster__idle_gpus": True}
    instance = question(88, 64, fastest=True, availability={"rates": "llama-3"}, **terms)
    plan = accepted(instance)
    assert plan.design is not None
    assert plan.design.gpus == 80
    assert plan.design.spare_domains > 1
    listed = question(88, 64, fastest=True, availability={"rates": "llama-3", "spare_domains": 0}, **terms)
    fewer = accepted(listed)
    assert fewer.design is not None
    assert fewer.design.spare_domains == 1


@pytest.mark.parametrize(
    ("key", "check"), [("gpus", "domain-count"), ("spare_domains", "spare-domains"), ("spare_gpus", "spares")]
)
def test_other_counts_of_idle_gpus_are_refused(key: str, check: str) -> None:
    instance = question(88, 64, fastest=True, cluster__idle_gpus=24)
    plan = accepted(instance)
    assert plan.design is not None
    design = plan.design.model_copy(update={key: getattr(plan.design, key) + 8})
    assert check in {one.name for one in coopt.verify(instance, with_part(plan, design=design)).failures}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"workload__0__batch_tolerance": 0.3}, "batch_tolerance = 0.3: .*at most 0.2"),
        ({"workload__0__global_batch": [32, 64], "workload__0__batch_tolerance": 0.1}, "tolerance = 0.1: .*single"),
        ({"workload__0__global_batch": 50_000, "workload__0__batch_tolerance": 0.1}, "leave 10,001"),
        ({"cluster__gpus": 200_000, "cluster__idle_gpus": True}, "idle_gpus = true: leaves .*at most 1,000"),
        ({"sharing": {"mode": "partition"}, "cluster__idle_gpus": True}, "idle_gpus = true: .*partition"),
    ],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InstanceError, match=complaint):
        coopt.load(small_question(**changes))


def test_better_numbers_stand_below_the_headline_with_their_keys() -> None:
    instance = question(40, 128, fastest=True)
    plan = with_better_numbers(instance, coopt.solve(instance))
    screen = " ".join(rendered(plan_screen(instance, plan)).split())
    assert plan.better_numbers
    assert EVEN in screen
    for better in plan.better_numbers:
        assert f"{better.key} = " in screen.partition("Decision")[0]
        for change in ({"iteration_time_s": better.iteration_time_s * 0.99}, {"now": better.now + 1}, {"saved": 0.5}):
            wrong = plan.model_copy(update={"better_numbers": (better.model_copy(update=change),)})
            assert not coopt.verify(instance, wrong).accepted


def test_a_degree_beyond_the_default_list_is_told_with_what_it_saves() -> None:
    limits = {"tp": 8, "zero": 1, "recompute": "none"}
    changes = {
        **{"cluster__gpus": 256, "network__charge": "loads", "objective": {"minimize": "time"}},
        **{"workload__0__model": small_model(seq=16384, layers=2, kv_heads=8), "workload__0__global_batch": 1},
        **{"workload__0__max_iteration_time_s": None, "network__hb_domains": "hgx-h100-8"},
    }
    instance = ask(**changes, workload__0__mapping=limits)
    plan = with_better_numbers(instance, coopt.solve(instance))
    (better,) = plan.better_numbers
    assert (better.key, better.value, better.now) == ("workload[0].mapping.cp", 32, 16)
    longer = coopt.solve(ask(**changes, workload__0__mapping=limits | {"cp": 32}))
    assert better.iteration_time_s == pytest.approx(longer.objective.value)
    assert "cp = 32" in " ".join(other_numbers(instance, plan))
    assert coopt.verify(instance, plan).accepted
    for wrong in ({"value": 128}, {"now": 8}, {"iteration_time_s": 0.9 * better.iteration_time_s}):
        lie = plan.model_copy(update={"better_numbers": (better.model_copy(update=wrong),)})
        assert not coopt.verify(instance, lie).accepted
    given = ask(**changes, workload__0__mapping=limits | {"cp": [1, 2, 4, 8, 16]})
    assert not with_better_numbers(given, coopt.solve(given)).better_numbers


@settings(max_examples=example_count(8, usual=3), deadline=None)
@given(batch=st.sampled_from([46, 62, 64, 96]), few=st.sampled_from([1, 4]), uplinks=st.sampled_from([1, 2]))
def test_the_fastest_of_a_few_leaves_the_fastest_of_all(batch: int, few: int, uplinks: int) -> None:
    mapping = {"micro_batch": [1, 2], "cp": [1, 2], "recompute": ["none", "full"]}
    instance = question(64, batch, fastest=True, workload__0__mapping=mapping, network__oversubscription=4.0)
    family = next(one for one in families(instance) if one.tiers > 1)
    network = TrialNetwork(instance.cluster, family, family.uplink_choices[uplinks - 1])
    (workload,) = instance.workload
    trials = [Trial.on_all(workload, family, value=64), *_batches(workload, network)]

    def found(number: int) -> tuple[float, int, Any]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(divisibility, "FEW", number)
            best = network.fastest(trials, math.inf, step=4.0)
        assert best is not None
        return best.time_s, best.value, mapping_of(best.pool, best.row)

    def mapping_of(pool: Pool, row: int) -> list[Any]:
        one = pool.take(np.array([row]))
        return [
            None if column is None else column.tolist()
            for part in (one.mappings, one.placements)
            for column in vars(part).values()
        ]

    assert found(few) == found(10**6)
