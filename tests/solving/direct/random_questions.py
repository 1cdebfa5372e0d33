"""Random questions of few domains on direct links, whose TP, context and expert groups may cross them."""

import random
from typing import Any

import numpy as np

import coopt
from coopt.instance.schema import Instance
from coopt.perf.collectives import NO_NETWORK
from coopt.plan.schema import Plan
from tests.conftest import question, small_model, switch
from tests.solving.direct.oracle import fewest_links, pool_of

USD_PER_LINK = 2 * (300 + 40 + 100)
SHAPES = ((2, 2, 2), (2, 4, 1), (3, 2, 1), (3, 2, 2), (4, 2, 1), (4, 1, 3), (4, 1, 2), (6, 1, 2), (3, 1, 3), (4, 2, 1))
"""Domains, their GPUs, and the NICs of each of these."""
EXPERTS = {"experts": 4, "top_k": 2, "ffn": 1024}
LITTLE = {"layers": 4, "hidden": 1024, "heads": 16, "kv_heads": 16, "head_dim": 64, "ffn": 4096, "vocab": 8192}


def random_question(seed: int) -> Instance:
    """A question of one workload, with a bound that some links, or none, keep."""
    chosen = random.Random(seed)
    domains, size, per_gpu = chosen.choice(SHAPES)
    experts = chosen.random() < 0.6
    model = small_model(**LITTLE | {"seq": 1024, "tied_embeddings": chosen.random() < 0.3})
    options: dict[str, Any] = {"dp_mode": chosen.choice(["sync", "sync", "overlap", "stale-1"])}
    if experts:
        model |= EXPERTS | chosen.choice([{}, {"expert_groups": 2, "top_groups": 1}, {"shared_ffn": 1024}])
        options |= {"expert_tp": chosen.random() < 0.3, "dispatch": chosen.choice(["each", "once"])}
    mapping: dict[str, Any] = {"micro_batch": [1], "recompute": ["none"], "sequence_parallel": [True, False]}
    mapping |= {"zero": [chosen.choice([0, 1])], "interleave": chosen.choice([[1], [1, 2]])}
    degrees = [n for n in (1, 2, 3, 4, 6, 8) if domains * size % n == 0]
    for kind in ("tp", "cp", "ep", "dp", "pp"):
        if chosen.random() < 0.7:
            mapping[kind] = sorted(chosen.sample(degrees, min(2, len(degrees))))
    workload = {
        "name": "w", "model": model, "global_batch": 48, "mapping": mapping, "options": options,
        "allow_tp_across": chosen.random() < 0.7, "max_iteration_time_s": 1e6,
    }  # fmt: skip
    hb = {"name": "box", "size": size, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0, "racks": 1}
    asked = {
        "cluster__gpus": domains * size, "network__hb_domains": [hb], "network__fabrics": ["direct", "rail-only"],
        "network__panels": ["patch-panel"],
        "network__nics": [{"name": "slow", "gbit_s": chosen.choice([10, 100]), "usd": 300, "w": 5}],
        "network__optics": [{"name": "end", "gbit_s": 10, "reach_m": 500, "usd": 40, "w": 1}],
        "network__switches": [switch(8, 500_000, 10)], "network__nics_per_gpu": per_gpu, "workload": [workload],
    }  # fmt: skip
    gbit_s = asked["network__nics"][0]["gbit_s"]
    asked["network__optics"][0]["gbit_s"] = asked["network__switches"][0]["port_gbit_s"] = gbit_s
    loose = Instance.model_validate(question(**asked))
    pool = pool_of(loose, size)
    least_s = float(np.min(pool.iteration.time_s(NO_NETWORK), initial=1.0)) if len(pool) else 1.0
    workload["max_iteration_time_s"] = least_s * 10 ** chosen.uniform(0.0, 1.5)
    return Instance.model_validate(question(**asked))


def agreed(instance: Instance) -> tuple[Plan, frozenset[str]]:
    """The plan of a question, and the kinds of traffic that cross domains in it: as many links as enumeration finds,
    which the verifier accepts, with a bound that it proves no more of."""
    plan = coopt.solve(instance)
    expected = fewest_links(instance, instance.network.hb_domains[0].size)
    verdict = coopt.verify(instance, plan)
    assert verdict.accepted, verdict.failures
    assert plan.status in ("optimal", "infeasible"), plan.status
    if expected is None:
        assert not any(part.links for part in plan.parts)
        return plan, frozenset()
    assert plan.cost.capex_usd == expected * USD_PER_LINK
    assert plan.parts[0].links.links_bound <= expected == plan.parts[0].links.links
    return plan, frozenset(phase.name for phase in plan.parts[0].links.phases)
