"""A partition's plan is the cheapest choice of islands there is, and says so in numbers that hold."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import coopt
from coopt.columns.islands.options import ListedIslands
from coopt.instance.schema import Instance
from coopt.solving.answer import solve
from coopt.solving.fleet.least_limits import UNTRIED, over_limits
from coopt.solving.fleet.listing import islands_listed, numbers_of
from coopt.solving.fleet.placed import slots_of
from coopt.solving.fleet.unserved import no_island
from coopt.solving.runs import Run, backend_of
from tests.changes import with_couplings
from tests.conftest import ask, small_model, switch


def two(**changes: Any) -> Instance:
    """Two workloads on up to 32 GPUs."""
    shape = small_model(layers=4, hidden=2048, heads=16, kv_heads=16, ffn=8192)
    common = {"model": shape, "mapping": {"recompute": "none", "zero": 0, "micro_batch": [1, 2]}}
    table: dict[str, Any] = {
        "cluster__gpus": 32,
        "workload": [
            {"name": "large", "global_batch": 24, "max_iteration_time_s": 0.12, **common},
            {"name": "small", "global_batch": 8, "max_iteration_time_s": 0.15, **common},
        ],
        "objective": {"include": ["hb", "nic", "switch", "optics", "gpu"]},
        "sharing": {"mode": "partition"},
    }
    return ask(**{**table, **changes})


def test_replicas_may_be_asked_to_lie_outermost_on_a_single_tier() -> None:
    table: dict[str, Any] = {"network__charge": "loads", "network__max_tiers": 1, "network__hb_domains": "hgx-h100-8"}
    table |= {"workload__0__mapping": {"outermost": ["dp"]}}
    alone, island = ask(**table), ask(**table, sharing={"mode": "partition"}, workload__0__gpus=[64])
    plan = coopt.solve(island)
    assert [run.mapping.outermost for run in plan.runs] == ["dp"]
    assert plan.objective.value == coopt.solve(alone).objective.value
    assert coopt.verify(island, plan).accepted


def five(nic_usd: float, nic_w: float, switch_usd: float, switch_w: float, usd: float, w: float, aim: str) -> Instance:
    """Five workloads at prices and watts whose sums depend on their order."""
    work = {"model": "gpt-22b", "global_batch": 64, "mapping": {"micro_batch": [1, 2]}}
    return ask(
        cluster__gpus=512,
        workload=[
            {"name": f"w{n}", "max_iteration_time_s": bound_s, **work}
            for n, bound_s in enumerate((1.0, 1.3, 1.7, 2.3, 3.1))
        ],
        network__hb_domains=["hgx-h100-8", "h100-hb16"],
        network__fabrics=["rail-only", "clos"],
        network__nics=[{"name": "n", "gbit_s": 400, "usd": nic_usd, "w": nic_w}],
        network__switches=[{"name": "s", "radix": 64, "port_gbit_s": 400, "usd": switch_usd, "w": switch_w}],
        network__optics=[{"name": "o", "gbit_s": 400, "usd": usd, "w": w, "reach_m": 2000}],
        network__oversubscription=2.0,
        objective={"minimize": aim},
        sharing={"mode": "partition"},
    )


@pytest.mark.parametrize("minimize", ["capex", "tco"])
@pytest.mark.parametrize(
    "parts",
    [
        (1253.92, 27.7, 47994.01, 1191.5, 270.31, 15.0),
        (1133.08, 14.6, 34375.62, 1189.4, 186.93, 4.3),
        (1361.41, 20.6, 39800.28, 1887.2, 250.25, 14.0),
    ],
)
def test_a_limit_that_is_just_reached_is_kept(parts: tuple[float, ...], minimize: str) -> None:
    free, listed = five(*parts, minimize), ListedIslands()
    plan = solve(free, listed=listed)
    for name, used in (("capex_usd", plan.cost.capex_usd), ("power_mw", plan.cost.power_w / 1e6)):
        limited = free.model_copy(update={"limits": free.limits.model_copy(update={name: used})})
        again = solve(limited, listed=listed)
        assert (again.status, again.objective.value) == ("optimal", plan.objective.value)


HOT_OR_COOL = [
    {"name": "hot", "gbit_s": 400, "reach_m": 600, "usd": 100, "w": 20},
    {"name": "cool", "gbit_s": 400, "reach_m": 600, "usd": 150, "w": 5},
]


def test_the_optic_of_a_core_is_a_choice_under_a_limit() -> None:
    core = {"switch": "16-port", "gbit_s_per_gpu": 200.0}
    free = two(network__optics=HOT_OR_COOL, sharing={"mode": "partition", "core": core})
    plan, coolest = coopt.solve(free), coopt.solve(free, objective="power")
    assert plan.couplings.cores
    assert plan.couplings.cores[0].core.optic == "hot"
    capped = free.model_copy(update={"limits": free.limits.model_copy(update={"power_mw": coolest.cost.power_w / 1e6})})
    cool = coopt.solve(capped)
    assert cool.status == "optimal"
    assert cool.couplings.cores
    assert cool.couplings.cores[0].core.optic == "cool"
    assert coopt.verify(capped, cool).accepted
    (shared,) = cool.couplings.cores
    hot = with_couplings(
        cool,
        cores=(shared.model_copy(update={"core": cool.couplings.cores[0].core.model_copy(update={"optic": "hot"})}),),
    )
    assert not coopt.verify(capped, hot).accepted


def test_a_core_may_name_its_optic() -> None:
    core = {"switch": "16-port", "gbit_s_per_gpu": 200.0, "optic": "cool"}
    sharing = {"mode": "partition", "core": core, "most_products": {"optics": 1}}
    instance = two(network__optics=HOT_OR_COOL, sharing=sharing)
    plan = coopt.solve(instance)
    assert plan.couplings.cores
    assert plan.couplings.cores[0].core.optic == "cool"
    assert {item.item for item in plan.cost.items if item.kind == "optics"} == {"cool"}
    assert coopt.verify(instance, plan).accepted
    with pytest.raises(ValueError, match=r"sharing\.core\.optic = 'cold': needs a listed optic of 400 Gbit/s that"):
        two(network__optics=HOT_OR_COOL, sharing={**sharing, "core": {**core, "optic": "cold"}})


@pytest.mark.parametrize("solver", ["appsi_highs", "highs"])
def test_a_solver_of_pyomo_answers_as_the_built_in_one(solver: str) -> None:
    expected, plan = coopt.solve(two()), coopt.solve(two(), solver=solver)
    assert (plan.status, plan.parts, plan.cost) == (expected.status, expected.parts, expected.cost)
    assert plan.solver.name == solver
    assert coopt.verify(two(), plan).accepted
    assert coopt.solve(two(limits={"power_mw": 0.001}), solver=solver).status == "infeasible"


def test_each_workload_gets_an_island_of_its_own() -> None:
    instance = two()
    plan = coopt.solve(instance)
    assert [part.name for part in plan.parts] == ["large", "small"]
    assert plan.design is None
    assert sum(item.usd for item in plan.cost.items) == plan.cost.capex_usd == plan.objective.value
    assert [run.gpus for run in plan.runs] == [part.design.gpus for part in plan.parts]
    assert all(run.iteration_time_s <= run.bound_s for run in plan.runs)


def test_workloads_that_differ_in_name_only_get_islands_that_cost_the_same() -> None:
    first = two().workload[0]
    twins = two().model_copy(update={"workload": (first, first.model_copy(update={"name": "twin"}))})
    plan = coopt.solve(twins)
    assert plan.status == "optimal"
    assert coopt.verify(twins, plan).accepted


def test_a_threshold_is_bought_where_that_is_cheaper_and_the_spares_are_named() -> None:
    discount = {"kind": "gpu", "item": "h100-sxm", "from": [20], "off": [0.3]}
    instance = two(sharing={"mode": "partition", "discount": [discount]})
    plan = coopt.solve(instance)
    gpus = [item for item in plan.cost.items if item.item.startswith("h100-sxm")]
    assert [(item.item, item.count) for item in gpus] == [
        ("h100-sxm", 4),
        ("h100-sxm (idle)", 12),
        ("h100-sxm (spare)", 4),
    ]
    assert {item.unit_usd for item in gpus} == {21_000}
    assert gpus[-1].w == 0.0
    assert coopt.verify(instance, plan).accepted


@pytest.mark.parametrize("core", [None, {"switch": "16-port", "gbit_s_per_gpu": 25.0}])
def test_a_limit_on_power_is_kept_to_the_last_watt(core: dict[str, Any] | None) -> None:
    shared = {"mode": "partition"} | ({} if core is None else {"core": core})
    changes: dict[str, Any] = {"sharing": shared, "network__switches": [switch(16, 11000)]}
    least = coopt.solve(
        two(**changes, objective={"minimize": "power", "include": ["hb", "nic", "switch", "optics", "gpu"]})
    )
    power_mw = least.cost.power_w / 1e6
    met = coopt.solve(two(**changes, limits={"power_mw": power_mw}))
    assert met.cost.power_w <= least.cost.power_w
    missed = coopt.solve(two(**changes, limits={"power_mw": power_mw * (1 - 1e-5)}))
    assert missed.status == "infeasible"
    assert missed.explanation[0].startswith("limits.power_mw")


def test_an_island_keeps_to_the_sizes_of_its_workload() -> None:
    free = coopt.solve(two())
    taken = free.runs[1].gpus
    other = 8 if taken != 8 else 4
    small = two().workload[1].model_copy(update={"gpus": (other,)})
    plan = coopt.solve(two().model_copy(update={"workload": (two().workload[0], small)}))
    assert plan.runs[1].gpus == other
    assert plan.objective.value >= free.objective.value


def test_no_time_is_no_plan_and_no_claim() -> None:
    plan = coopt.solve(two(), time_limit_s=1e-9)
    assert (plan.status, plan.stop_reason, plan.parts) == ("unknown", "time limit", ())


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        ({"power_mw": 0.001}, "limits.power_mw"),
        ({"capex_usd": 1000.0}, "limits.capex_usd"),
        ({"racks": 0.5}, "limits.racks"),
    ],
)
def test_an_infeasible_limit_is_named_with_the_least_that_would_do(limits: dict[str, float], name: str) -> None:
    plan = coopt.solve(two(limits=limits))
    assert plan.status == "infeasible"
    (sentence,) = plan.explanation
    assert sentence.startswith(f"{name} = ")
    least = float(sentence.split("needs at least ")[1].split(" (")[0].replace(",", ""))
    assert coopt.solve(two(limits={name.removeprefix("limits."): least * 1.0001})).status == "optimal"
    assert coopt.solve(two(limits={name.removeprefix("limits."): least * 0.999}), reasons=False).status == "infeasible"


def running(instance: Instance) -> Run:
    """A run that has just begun."""
    return Run(instance=instance, backend=backend_of(instance.solver), on_progress=None)


def stopped(instance: Instance) -> Run:
    """A run that has no time left."""
    cancel = threading.Event()
    cancel.set()
    return Run(instance=instance, backend=backend_of(instance.solver, cancel), on_progress=None)


def test_what_there_is_no_time_to_try_is_not_claimed() -> None:
    instance = two(limits={"power_mw": 0.001, "capex_usd": 1000.0})
    ((asked, islands),) = islands_listed(running(instance))
    data = numbers_of(asked, islands)
    assert coopt.solve(instance).explanation[0].startswith("no choice of islands keeps all limits, and none of them")
    assert over_limits(stopped(instance), [data]) == (UNTRIED,)
    (sentence,) = no_island(stopped(two()), slots_of(two())[:1])
    assert sentence.endswith("there was no time to find how much longer it would have to be")


def test_too_few_gpus_are_named() -> None:
    enough = coopt.solve(two(objective={"minimize": "power", "include": ["gpu"]}))
    least = sum(run.gpus for run in enough.runs)
    plan = coopt.solve(two(cluster__gpus=least - 1))
    assert plan.status == "infeasible"
    assert any(f"at least {least} " in sentence for sentence in plan.explanation), plan.explanation


def test_a_workload_nobody_can_serve_is_named_with_a_bound_that_would_do() -> None:
    fast = two().workload[0].model_copy(update={"max_iteration_time_s": 0.001})
    plan = coopt.solve(two().model_copy(update={"workload": (fast,)}))
    assert plan.status == "infeasible"
    (sentence,) = plan.explanation
    assert "workload 'large': no island meets its bound" in sentence
    bound = float(sentence.split("needs a bound of ")[1].split(" s ")[0])
    slow = fast.model_copy(update={"max_iteration_time_s": bound})
    assert coopt.solve(two().model_copy(update={"workload": (slow,)})).parts
