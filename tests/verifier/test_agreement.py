"""The model on arrays and the scalar one, written apart from one page, say the same of random runs."""

from collections import Counter
from math import inf, isclose
from random import Random

import numpy as np
import pytest

from coopt.columns.grid import Context, DomainSet, context_of
from coopt.columns.pools import Pool
from coopt.network.plan_networks import design_of
from coopt.network.space import families
from coopt.perf.collectives import Reciprocals
from coopt.perf.iterations import Iteration, iteration
from coopt.perf.mapping import mixer_name, utilisation
from coopt.perf.memory import memory_bytes
from coopt.solving.arrays import algorithms_of
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.parts.design_checks import check_design, check_ports
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.spans import Reach, reach_of, slowest_case
from coopt.verifier.parts.workload_checks import algorithm_names
from coopt.verifier.training import iteration as scalar
from coopt.verifier.training import memory as scalar_memory
from coopt.verifier.training.communication import Speeds
from coopt.verifier.training.iteration import breakdown
from coopt.verifier.training.placing import Placement
from coopt.verifier.training.work import Clock
from tests.conftest import example_count
from tests.verifier import agreement
from tests.verifier.agreement import Question, question

HYBRIDS = example_count(30, usual=6)
QUESTIONS = example_count(288, usual=24)
EXACT = 1e-12


def network(asked: Question, seed: int) -> tuple[Context, int, DesignFamily, Reach]:
    """A network of the instance as the solver sees it, and as the verifier does."""
    draw = Random(seed)
    family = draw.choice([family for family in families(asked.instance) if family.active == asked.active])
    uplinks = draw.choice(family.uplink_choices)
    ledger, built = Ledger(), design_of(family, uplinks)
    seen = check_design(ledger, asked.instance, built)
    ports = check_ports(ledger, asked.instance, seen, built.fabric, "capex")
    seen = seen._replace(hb=seen.hb.with_nics_at(inf if seed % 3 else 20))
    return context_of(family), uplinks, seen, reach_of(seen, ports)


def compare(asked: Question, seed: int) -> Counter[str]:
    """Compare every row; returns how many showed what the questions are meant to show."""
    context, uplinks, family, reach = network(asked, seed)
    rows, places = asked.arrays()
    near = family.hb.to_nics_gbyte_s
    parts = iteration(asked.workload, asked.gpu, family.hb.gbyte_s, rows, places, to_nics_gbyte_s=near)
    site = DomainSet(gpus=asked.gpus, hb="hb", domains=asked.gpus // asked.active)
    pool = Pool(workload=asked.workload, site=site, mappings=rows, placements=places, iteration=parts)
    r = pool.reciprocals(context, uplinks)
    times, cases = pool.time_s(context, uplinks), [case.at_least(parts.to_nics_s_byte) for case in r.cases()]
    slowest = np.argmax([parts.time_s(case) >= times * (1 - EXACT) for case in cases], axis=0)
    seconds_of_cases = [parts.breakdown_s(case) for case in cases]
    used = memory_bytes(asked.workload, rows)
    mfu, hfu, causal = utilisation(asked.workload, asked.gpu, asked.gpus, rows.recompute, times)
    np.testing.assert_allclose(parts.time_s(r), times, rtol=EXACT)
    clock, model, seen = Clock(asked.workload, asked.gpu), asked.workload.model, _rings(parts, r)
    for i, (split, place) in enumerate(asked.rows):
        work, case, seconds = clock.work(split), cases[slowest[i]], seconds_of_cases[slowest[i]]
        time_s, speed = slowest_case(family, reach, work, place)
        causes = breakdown(work, place, speed)._asdict()
        assert isclose(times[i], time_s, rel_tol=EXACT), (split, place)
        seen.update(compare_ways(case, speed, i, place))
        assert causes.pop("wan") == 0.0
        assert causes.keys() == seconds.keys()
        near_s = EXACT * time_s
        assert all(isclose(seconds[name][i], causes[name], rel_tol=EXACT, abs_tol=near_s) for name in causes), split
        assert isclose(used[i], scalar_memory.memory_bytes(asked.workload, split), rel_tol=EXACT), split
        for share, flop in (
            (mfu, scalar.model_flop_per_token(model)),
            (causal, scalar.causal_flop_per_token(model)),
            (hfu, scalar.hardware_flop_per_token(asked.workload, split.recompute)),
        ):
            again = scalar.utilisation(asked.workload, asked.gpu, asked.gpus, flop, time_s)
            assert isclose(share[i], again, rel_tol=EXACT)
        if i % 3 == seed % 3:
            named, possible = algorithms_of(pool, asked.gpu, case, i), algorithm_names(work, place, speed)
            assert named.keys() == possible.keys(), (split, place)
            assert all(name in possible[kind] for kind, name in named.items()), (named, possible)
            assert bool(named) <= (asked.workload.options.collectives != "levels")
            seen.update(f"by {name}" for name in named.values())
        seen.update(name for name, part in causes.items() if part > 0)
        seen["rows"] += 1
    return seen


def compare_ways(r: Reciprocals, speed: Speeds, row: int, place: Placement) -> Counter[str]:
    """What a byte takes by halving and by trees of one row, where loads tell them apart."""
    members = {"tp": place.tp_across, "dp": place.dp_across * place.cp_across, "edp": place.copies_across}
    found = Counter[str]()
    for (kind, flows), s_byte in (r.algorithms or {}).items():
        if members[kind] > 2:
            again = getattr(speed.other_ways(kind), flows)
            assert isclose(s_byte[row], again, rel_tol=EXACT), (kind, flows, place)
            found[f"{flows} of {kind}"] += int(np.isfinite(s_byte[row]) and s_byte[row] > getattr(r, kind)[row])
    return found


def _rings(parts: Iteration, r: Reciprocals) -> Counter[str]:
    """Context rings and exchanges of experts that compute hides, and those it is too short for."""
    found = Counter[str]()
    for name in ("cp", "ep"):
        hidden, left = getattr(parts, name).at(r), getattr(parts, f"{name}_left").at(r)
        found += Counter({f"hidden {name}": int((hidden > np.maximum(left, 0)).sum())})
        found += Counter({f"left {name}": int((left > hidden).sum())})
    return found


def test_both_models_agree_on_random_runs() -> None:
    """On times, memory and utilisation of every row; every name of an algorithm is met among one row in three."""
    seen = Counter[str]()
    for seed in range(QUESTIONS):
        seen += compare(question(seed), seed)
    assert seen["rows"] > 12_000 * QUESTIONS / 144
    slower = {name: count for name, count in seen.items() if " of " in name}
    assert sum(slower.values()) > 500 * QUESTIONS / 144, slower
    named = {name for name in seen if name.startswith("by ")}
    assert len(named) == 9, named
    assert min(count for name, count in seen.items() if name not in slower.keys() | named) > 300 * QUESTIONS / 144, seen


def test_both_models_agree_where_gradients_hide(monkeypatch: pytest.MonkeyPatch) -> None:
    """On algorithms where the luck of hidden gradients changes nothing (29), and on what they hide behind where a part
    of the TP ranks splits experts (63), and where layers take less than the attention core in the precision (130).
    """
    monkeypatch.setattr(agreement, "CHARGES", [{"network__routing": "ecmp"}])
    for seed in (29, 63, 130):
        assert compare(question(seed, most=30), seed)["rows"] == 30


def test_both_models_agree_on_hybrids() -> None:
    """Questions about models with several kinds of mixers, in layers that have both parts and in layers that have
    one.
    """
    seen, apart, kinds = Counter[str](), Counter[bool](), set[str]()
    for seed in range(HYBRIDS):
        asked = question(seed, most=40, hybrid=True)
        kinds |= {mixer_name(mixer) for _, mixer in asked.workload.model.kinds}
        apart[asked.workload.model.with_ffn < asked.workload.model.layers] += len(asked.rows)
        seen += compare(asked, seed)
    assert min(apart.values()) > 200 * HYBRIDS / 30, apart
    assert min(seen[name] for name in ("tp", "cp", "ep", "pp", "dp", "optimizer", "straggler")) > 150 * HYBRIDS / 30, (
        seen
    )
    assert kinds >= {"mamba-2", "gated-deltanet", "kda", "lightning", "sparse latent attention"}
    assert kinds >= {"compressed attention", "compressed sparse attention"}
