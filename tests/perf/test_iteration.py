"""The iteration time: what must add up, and what must never fall."""

import numpy as np
import pytest

from coopt.columns.flows import NicLayout
from coopt.columns.grid import Context, DomainSet, mappings
from coopt.columns.pools import Pool, place
from coopt.instance.network import Discipline
from coopt.instance.schema import Instance
from tests.conftest import ask
from tests.perf.training import mapped, run, training


def small_pool(instance: Instance, hb: int = 0, active: int = 8) -> tuple[Pool, Context]:
    domain = instance.network.hb_domains[hb]
    gpus = instance.cluster.gpus[0]
    site = DomainSet(gpus=gpus, hb=domain.name, domains=gpus // active)
    whole, _ = mappings(instance.workload[0], gpus)
    layout = NicLayout(domains=site.domains, span=min(2, site.domains))
    context = Context(site=site, byte_s=50e9, layout=layout, discipline=Discipline("loads", "spray", 0.98))
    return place(instance.workload[0], instance.cluster.gpu, domain, site, whole), context


def test_breakdown_adds_up_to_the_iteration_time() -> None:
    pool, context = small_pool(ask())
    for uplinks in (1, 3, 8):
        r = pool.reciprocals(context, uplinks)
        parts = pool.iteration.breakdown_s(r)
        np.testing.assert_allclose(sum(parts.values()), pool.time_s(context, uplinks), rtol=1e-12)
        assert all((seconds >= -1e-12).all() for seconds in parts.values())


def test_gpus_that_share_nothing_send_nothing() -> None:
    instance = ask(workload__0__mapping={"tp": 1, "pp": 1}, cluster__gpus=1, workload__0__global_batch=4)
    pool, context = small_pool(instance, active=1)
    parts = pool.iteration.breakdown_s(pool.reciprocals(context, 1))
    for name in ("tp", "pp", "dp", "bubble", "embedding"):
        assert (parts[name] == 0).all(), name


def test_shards_in_rounds_move_once_for_the_micro_batches_that_a_chunk_works_through_in_turn() -> None:
    """Of 16 micro-batches 2 are one turn of a chunk on two stages."""
    workload = training(software={"name": "s", "shards_in_rounds": True})
    plain, turns = (
        float(run(one, mapped(tp=2, dp=4, pp=2, interleave=2, zero=3), tp=2).dp.dp[0]) for one in (training(), workload)
    )
    assert turns == pytest.approx(plain / 2)


@pytest.mark.parametrize("p", [1, 2])
def test_zero_2_and_3_move_shards_in_every_micro_batch_under_a_pipeline_too(p: int) -> None:
    """64 sequences on 4 replicas: gradients are scattered 16 times, parameters gathered 32 times by ZeRO 3."""
    once, scattered, gathered = (
        float(run(training(), mapped(tp=2, dp=4, pp=p, zero=zero), tp=2).dp.dp[0]) for zero in (1, 2, 3)
    )
    # A gradient has 4 bytes, a parameter 2: 4 + 2 of a parameter under ZeRO 1, 16·4 + 2 and 16·4 + 32·2 beyond.
    assert scattered / once == pytest.approx(66 / 6)
    assert gathered / once == pytest.approx(128 / 6)
