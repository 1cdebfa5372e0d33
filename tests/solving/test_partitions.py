"""Islands: what they say in numbers that hold, cores between them, what is kept between searches, what is to blame."""

import json
import math
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

import coopt
from coopt.columns.islands.options import ListedIslands
from coopt.instance.schema import Instance
from coopt.plan.couplings import CorePlan
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from coopt.solving.fleet import standing
from coopt.solving.fleet.least_limits import UNTRIED, over_limits
from coopt.solving.fleet.listing import islands_listed, numbers_of
from coopt.solving.fleet.placed import slots_of
from coopt.solving.fleet.unserved import no_island
from coopt.solving.runs import Run, backend_of
from tests.changes import with_couplings
from tests.conftest import FEW_MAPPINGS, accepted, ask, small_model, switch, value
from tests.explain.changed import way_out
from tests.solving.fleet_oracle import enumerated
from tests.solving.fleets import SHAPE, growing_at, two


def teams(**changes: Any) -> Instance:
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
    work = {"model": "gpt-22b", "global_batch": 64, "mapping": FEW_MAPPINGS | {"micro_batch": [1, 2]}}
    return ask(
        cluster__gpus=512,
        workload=[
            {"name": f"w{n}", "max_iteration_time_s": bound_s, **work}
            for n, bound_s in enumerate((1.0, 1.3, 1.7, 2.3, 3.1))
        ],
        network__hb_domains=["hgx-h100-8", "h100-hb16"], network__fabrics=["rail-only", "clos"],
        network__nics=[{"name": "n", "gbit_s": 400, "usd": nic_usd, "w": nic_w}],
        network__switches=[{"name": "s", "radix": 64, "port_gbit_s": 400, "usd": switch_usd, "w": switch_w}],
        network__optics=[{"name": "o", "gbit_s": 400, "usd": usd, "w": w, "reach_m": 2000}],
        network__oversubscription=2.0, objective={"minimize": aim}, sharing={"mode": "partition"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "minimize"),
    [
        ((1253.92, 27.7, 47994.01, 1191.5, 270.31, 15.0), "capex"),
        ((1133.08, 14.6, 34375.62, 1189.4, 186.93, 4.3), "tco"),
        ((1361.41, 20.6, 39800.28, 1887.2, 250.25, 14.0), "tco"),
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
    free = teams(network__optics=HOT_OR_COOL, sharing={"mode": "partition", "core": core})
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
    instance = teams(network__optics=HOT_OR_COOL, sharing=sharing)
    plan = coopt.solve(instance)
    assert plan.couplings.cores
    assert plan.couplings.cores[0].core.optic == "cool"
    assert {item.item for item in plan.cost.items if item.kind == "optics"} == {"cool"}
    assert coopt.verify(instance, plan).accepted
    with pytest.raises(ValueError, match=r"sharing\.core\.optic = 'cold': needs a listed optic"):
        teams(network__optics=HOT_OR_COOL, sharing={**sharing, "core": {**core, "optic": "cold"}})


def test_a_threshold_is_bought_where_that_is_cheaper_and_the_spares_are_named() -> None:
    discount = {"kind": "gpu", "item": "h100-sxm", "from": [20], "off": [0.3]}
    instance = teams(sharing={"mode": "partition", "discount": [discount]})
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


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        ({"power_mw": 0.001}, "limits.power_mw"),
        ({"capex_usd": 1000.0}, "limits.capex_usd"),
        ({"racks": 0.5}, "limits.racks"),
    ],
)
def test_an_infeasible_limit_is_named_with_the_least_that_would_do(limits: dict[str, float], name: str) -> None:
    plan = coopt.solve(teams(limits=limits))
    assert plan.status == "infeasible"
    (sentence,) = plan.explanation
    assert sentence.startswith(f"{name} = ")
    least = float(sentence.split("needs at least ")[1].split(" (")[0].replace(",", ""))
    assert coopt.solve(teams(limits={name.removeprefix("limits."): least * 1.0001})).status == "optimal"
    assert (
        coopt.solve(teams(limits={name.removeprefix("limits."): least * 0.999}), reasons=False).status == "infeasible"
    )


def running(instance: Instance) -> Run:
    """A run that has just begun."""
    return Run(instance=instance, backend=backend_of(instance.solver), on_progress=None)


def stopped(instance: Instance) -> Run:
    """A run that has no time left."""
    cancel = threading.Event()
    cancel.set()
    return Run(instance=instance, backend=backend_of(instance.solver, cancel), on_progress=None)


def test_what_there_is_no_time_to_try_is_not_claimed() -> None:
    instance = teams(limits={"power_mw": 0.001, "capex_usd": 1000.0})
    ((asked, islands),) = islands_listed(running(instance))
    data = numbers_of(asked, islands)
    assert coopt.solve(instance).explanation[0].startswith("no choice of networks")
    assert over_limits(stopped(instance), [data]) == (UNTRIED,)
    for question, told in ((teams(), False), (teams(robust={"survive": ["nic", "leaf"]}), True)):
        (sentence,) = no_island(stopped(question), slots_of(question)[:1])
        assert "before a sufficient bound" in sentence
        assert ("every loss" in sentence) == told


def test_too_few_gpus_are_named() -> None:
    enough = coopt.solve(teams(objective={"minimize": "power", "include": ["gpu"]}))
    least = sum(run.gpus for run in enough.runs)
    plan = coopt.solve(teams(cluster__gpus=least - 1))
    assert plan.status == "infeasible"
    assert any(f"at least {least} " in sentence for sentence in plan.explanation), plan.explanation


@pytest.mark.parametrize(("margin", "key"), [("none", "max_iteration_time_s"), ({"time": 0.2}, "train_days")])
def test_a_workload_nobody_can_serve_is_named_with_a_bound_that_would_do(margin: Any, key: str) -> None:
    def answered(bound: float) -> Plan:
        table = teams().model_dump(mode="json", by_alias=True) | {"margin": margin}
        tokens = {"train_tokens": 1e9} if key == "train_days" else {}
        table["workload"] = [table["workload"][0] | {"max_iteration_time_s": None, key: bound} | tokens]
        return coopt.solve(Instance.model_validate(table))

    (sentence,) = answered(1e-3).explanation
    assert "workload 'large': " in sentence
    bound, unit = sentence.split("bound of ")[1].split()[:2]
    assert unit == ("days" if key == "train_days" else "s")
    assert answered(float(bound)).parts
    assert not answered(0.99 * float(bound)).parts


RUN = {"model": SHAPE, "global_batch": 72, "max_iteration_time_s": 9.0, "mapping": {"zero": 0, "micro_batch": [1]}}
LIST = ("hb", "nic", "switch", "optics", "gpu")


def cored(sizes: tuple[int, int] = (32, 32), core: dict[str, Any] | None = None, **changes: Any) -> Instance:
    """Two workloads on islands of a given size, in HB domains of 36 or in smaller ones; a core of 8-port switches."""
    table: dict[str, Any] = {
        "cluster__gpus": 80,
        "workload": [{"name": name, "gpus": [n], **RUN} for name, n in zip(("a", "b"), sizes, strict=True)],
        "network__hb_domains": [
            {"name": "hb36", "size": 36, "gbyte_s": 450, "usd_per_gpu": 1000, "w_per_gpu": 30, "racks": 1}
        ],
        "network__switches": [switch(8, 5000), switch(16, 11000)],
        "objective": {"include": list(LIST)},
        "sharing": {"mode": "partition"} | ({"core": {"switch": "8-port", **core}} if core else {}),
    }
    return ask(**{**table, **changes})


def solved(instance: Instance) -> tuple[Plan, CorePlan, float]:
    """The plan, proven and accepted, its core and its value."""
    plan = accepted(instance)
    assert plan.status == "optimal"
    assert plan.couplings.cores
    assert plan.objective.value is not None
    return plan, plan.couplings.cores[0].core, plan.objective.value


def test_two_switches_are_exactly_full_and_one_more_link_makes_three() -> None:
    _, full, _ = solved(cored((32, 32), {"gbit_s_per_gpu": 100.0}))
    assert (full.switches, full.ports) == (2, 16)
    _, over, _ = solved(cored((32, 36), {"gbit_s_per_gpu": 100.0}))
    assert (over.switches, over.ports) == (3, 17)


def test_an_island_of_one_domain_joins_by_nics_and_pays_for_links_at_both_ends() -> None:
    core = {"gbit_s_per_gpu": 100.0}
    free = coopt.solve(cored())
    plan, found, value = solved(cored(core=core))
    assert [(one.workload, one.links, one.per_leaf) for one in found.islands] == [("a", 8, 0), ("b", 8, 0)]
    counts = {(item.kind, item.item): item.count for item in plan.cost.items}
    assert counts["nic", "cx7-400g"] == 16
    assert counts["switch", "8-port"] == 2
    assert counts["optics", "400g-199"] == 32
    (nic,), (optic,) = cored().network.nics, cored().network.optics
    assert math.isclose(value - free.objective.value, 16 * nic.usd + 2 * 5000 + 32 * optic.usd)
    assert sum(part.power_w for part in plan.parts) + found.power_w == plan.cost.power_w


def small_domains(core: dict[str, Any] | None, **changes: Any) -> Instance:
    """Islands of four domains of 8, so that they need leaves."""
    domain = {"name": "hb8", "size": 8, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 30, "racks": 1}
    return cored(core=core, network__hb_domains=[domain], network__fabrics=["rail-only"], **changes)


def test_ports_for_the_core_leave_fewer_for_nics_and_take_further_leaves() -> None:
    """Eight planes of four domains: four planes fill a leaf of 16 ports, three leave room for links."""
    only = {"network__switches": [switch(16, 11000)]}
    free = coopt.solve(small_domains(None, **only))
    plan, core, _ = solved(small_domains({"switch": "16-port", "gbit_s_per_gpu": 50.0}, **only))
    before, after = ([one.design.fabric.tier[0].switches for one in each.parts] for each in (free, plan))
    assert (before, after) == ([2, 2], [3, 3])
    assert [(one.links, one.per_leaf) for one in core.islands] == [(6, 2), (6, 2)]


def test_limits_count_core_switches_and_name_the_least_that_holds_them() -> None:
    core = {"gbit_s_per_gpu": 100.0}
    plan, _, value = solved(cored(core=core))
    mw = plan.cost.power_w / 1e6
    assert coopt.solve(cored(core=core, limits={"power_mw": mw})).status == "optimal"
    for limit, used, less, rounding in (("power_mw", mw, 80e-6, 1e-5), ("capex_usd", value, 1.0, 1e-3 * value)):
        poor = coopt.solve(cored(core=core, limits={limit: used - less}))
        assert poor.status == "infeasible"
        (sentence,) = poor.explanation
        assert sentence.startswith(f"limits.{limit} = ")
        assert used <= float(sentence.split("needs at least ")[1].split(" (")[0].replace(",", "")) < used + rounding


def test_the_switch_of_the_core_is_one_of_the_products_that_count() -> None:
    discount = {"kind": "switch", "item": "8-port", "from": [3], "off": [0.5]}
    few = {"mode": "partition", "most_products": {"switch": 1}, "discount": [discount]}
    asked = small_domains({"gbit_s_per_gpu": 50.0})
    table = asked.model_dump(mode="json", by_alias=True, exclude_none=True)
    table["sharing"] = {**few, "core": table["sharing"]["core"]}
    instance = Instance.model_validate_json(json.dumps(table))
    plan, _, value = solved(instance)
    assert {one.design.fabric.switch.name for one in plan.parts} == {"8-port"}
    (line,) = [item for item in plan.cost.items if item.kind == "switch"]
    assert (line.item, line.unit_usd) == ("8-port", 2500)
    assert value == enumerated(instance)


def test_a_core_no_leaf_has_ports_for_is_said_to_be_the_reason() -> None:
    wide = cored(
        core={"gbit_s_per_gpu": 400.0},
        network__hb_domains=[{"name": "hb8", "size": 8, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 30}],
        network__max_tiers=1, network__fabrics=["clos"], network__switches=[switch(8, 5000)],
    )  # fmt: skip
    plan = coopt.solve(wide)
    assert plan.status == "infeasible"
    assert "ports left for" in plan.explanation[0]


def test_sites_that_an_earlier_search_looked_at_are_kept_for_other_prices_and_not_for_other_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    domain = {"name": "hb4", "size": 4, "gbyte_s": 450, "usd_per_gpu": 100, "w_per_gpu": 30, "racks": 1}
    common = {"model": SHAPE, "global_batch": 24, "gpus": [8, 16], "mapping": {"recompute": "none", "zero": 0}}
    slow = {"name": "slow", "max_iteration_time_s": 0.4, **common}
    changes: list[dict[str, Any]] = [
        {},
        {"network__hb_domains": [domain | {"usd_per_gpu": 900}]},
        {"network__hb_domains": [domain | {"gbyte_s": 2}]},
        {"workload": [slow]},
        {"workload": [slow | {"max_iteration_time_s": 0.25}]},
        {"margin": {"time": 0.5}},
        {},
    ]
    listed, calls, looked_into, values = ListedIslands(), [], [], []
    serve = standing._IslandSearch._serve
    monkeypatch.setattr(standing._IslandSearch, "_serve", lambda *given: calls.append(given) or serve(*given))
    for change in changes:
        asked, before = two(robust={}, **change), len(calls)
        again = solve(asked, listed=listed).objective.value
        looked_into.append(len(calls) > before)
        assert again == value(asked)
        values.append(again)
    assert looked_into == [True, False, True, True, True, True, False]
    assert len(set(values)) > 3


def test_a_site_of_little_power_takes_the_dearer_part_that_draws_less() -> None:
    """Without power in the objective too."""
    nics = [
        {"name": name, "gbit_s": 400, "usd": usd, "w": w} for name, usd, w in (("hot", 1000, 500), ("cool", 2000, 20))
    ]
    shape = {"network__nics": nics, "network__fabrics": "rail-only", "sharing": {"mode": "partition"}}
    shape["objective"] = {"minimize": "capex", "include": ["gpu", "hb", "nic", "switch", "optics"]}

    def at(power_mw: float) -> tuple[str, float]:
        instance = ask(**shape, workload__0__gpus=64, site=[{"name": "here", "power_mw": power_mw, "pue": 1.0}])
        plan = coopt.solve(instance)
        assert coopt.verify(instance, plan).accepted
        (part,) = plan.parts
        return part.design.fabric.nic.name, part.cost.power_w

    name, power_w = at(1.0)
    assert name == "hot"
    assert at(power_w * 0.999e-6)[0] == "cool"


def test_a_limit_is_to_blame_alone_where_regret_is_minimised_and_in_every_phase() -> None:
    """The least power of a site with which the other one may stay as it is, in the phase that takes most."""
    doubt = {"prices": {"gpu": [0.5, 1.5]}, "aim": "regret"}
    (said, *_) = coopt.solve(two(robust=doubt, limits={"power_mw": 0.001})).explanation
    assert said.startswith("limits.power_mw = 0.001")
    plan = coopt.solve(growing_at(1e-4, 1e-4))
    named = [
        re.fullmatch(r"power_mw of site (\w+) = 0\.0001: needs at least ([\d.]+) .*", text) for text in plan.explanation
    ]
    least = {match[1]: float(match[2]) for match in named if match is not None}
    assert [*least] == ["east", "west"]
    assert len(least) == len(plan.explanation)
    for site, mw in least.items():
        for power_mw, status in ((mw, "optimal"), (mw * (1 - 1e-4), "infeasible")):
            powers = {"east_mw": 1e-4, "west_mw": 1e-4} | {f"{site}_mw": power_mw}
            assert coopt.solve(growing_at(**powers), reasons=False).status == status, (site, power_mw)


def test_where_no_limit_of_a_fleet_is_to_blame_alone_those_that_the_cheapest_choice_exceeds_are_named() -> None:
    plan = coopt.solve(two(robust={"survive": ["domain"], "slower": 8.0}, limits={"power_mw": 0.001, "racks": 1.0}))
    assert re.search(r"takes limits\.power_mw [\d.]+, limits\.racks \d+; needs", plan.explanation[0])
    plan = coopt.solve(growing_at(1e-4, 1.0, limits={"racks": 1.0, "power_mw": 1e-4}))
    assert re.search(
        r"takes limits\.power_mw [\d.]+, limits\.racks \d+, .* site east [\d.]+; needs", plan.explanation[0]
    )


def in_turn(**changes: Any) -> Instance:
    """One network that both workloads have in turn, in two phases."""
    table = two().model_dump(mode="json")["workload"]
    workloads = [{key: value for key, value in one.items() if key not in ("gpus", "mapping")} for one in table]
    phases = [{"year": 0, "gpus": 16}, {"year": 2, "gpus": 16}]
    return two(cluster__gpus=16, workload=workloads, phase=phases, sharing={"mode": "time"}, **changes)


@pytest.mark.parametrize(
    ("question", "whose"), [(two, ["workload 'large'", "workload 'small'"]), (in_turn, ["no network"])]
)
def test_the_loss_that_no_island_survives_is_named(question: Callable[..., Instance], whose: list[str]) -> None:
    """A lost Clos leaf cuts whole domains off, however long bounds are; a lost NIC does not."""
    robust = {"survive": ["nic", "leaf"], "slower": 100.0}
    said = coopt.solve(question(robust=robust, network__fabrics="clos")).explanation
    assert len(said) == len(whose)
    for sentence, who in zip(said, whose, strict=True):
        assert sentence.startswith("robust.survive = leaf: no ")
        assert who in sentence
        assert "100 times as long: needs leaves with fewer NICs " in sentence
        assert sentence.endswith("1000 is enough)")
    assert coopt.solve(question(robust=robust | {"survive": ["nic"]}, network__fabrics="clos")).status == "optimal"


def test_a_larger_factor_is_advised_where_it_helps() -> None:
    """A bound that the fastest NICs just meet, which a lost one does not."""

    def asked(slower: float, *, reasons: bool = False) -> Plan:
        instance = two(robust={"survive": ["nic"], "slower": slower})
        large, small = instance.workload
        hasty = large.model_copy(update={"max_iteration_time_s": 0.03072})
        return coopt.solve(instance.model_copy(update={"workload": (hasty, small)}), reasons=reasons)

    (said,) = asked(1.0, reasons=True).explanation
    assert said.startswith("robust.survive = nic: ")
    assert "'large'" in said
    least = float(said.split("nic of at least ")[1].split(",")[0])
    assert asked(least).status == "optimal"
    assert asked(least * (1 - 1e-4)).status == "infeasible"


def test_losses_of_which_islands_survive_each_but_not_all_are_named_together() -> None:
    """A single domain has no leaf to lose, and several have one that cuts whole domains off."""
    sizes = [
        {"name": f"hb{n}", "size": n, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0, "racks": 1} for n in (4, 16)
    ]

    def asked(*lost: str) -> Plan:
        robust = {"survive": lost, "slower": {part: 8.0 for part in lost if part == "domain"}}
        return coopt.solve(two(network__hb_domains=sizes, network__fabrics="clos", robust=robust))

    assert all(asked(lost).status == "optimal" for lost in ("leaf", "domain"))
    large, small = asked("leaf", "domain").explanation
    assert re.match("robust.survive = leaf, domain: .* workload 'large' .* needs a larger robust.slower", large)
    assert small == large.replace("'large'", "'small'")


def test_a_bound_that_is_too_short_without_any_loss_is_not_blamed_on_losses() -> None:
    instance = two(robust={"survive": ["leaf"], "slower": 2.0}, network__fabrics="clos")
    large, small = instance.workload
    hasty = small.model_copy(update={"max_iteration_time_s": 1e-4})
    said = coopt.solve(instance.model_copy(update={"workload": (large, hasty)})).explanation
    assert said[0].startswith("robust.survive = leaf: ")
    assert "'large'" in said[0]
    assert said[1].startswith("workload 'small': ")


@pytest.mark.parametrize(
    ("slower", "note"),
    [(100.0, ()), ({"nic": 100.0, "leaf": 2.0}, ("Remove robust.slower.leaf as well.",)), ({"nic": 100.0}, ())],
)
def test_a_loss_that_need_not_be_survived_is_a_way_out(slower: Any, note: tuple[str, ...]) -> None:
    def asked(lost: list[str], slower: Any) -> Instance:
        return two(robust={"survive": lost, "slower": slower}, network__fabrics="clos")

    way, change = way_out(asked(["nic", "leaf"], slower), "robust.survive")
    assert (change.now, change.to) == ('["nic", "leaf"]', '["nic"]')
    assert way.notes == note
    left = {"nic": slower["nic"]} if isinstance(slower, dict) else slower
    assert coopt.solve(asked(["nic"], left)).objective.value == way.value


def test_a_phase_that_has_too_few_gpus_is_called_by_its_year() -> None:
    phases = [{"year": 2026, "gpus": 8}, {"year": 2028, "gpus": 32}]
    plan = coopt.solve(two(phase=phases))
    assert plan.explanation[0].startswith("phase['2026'].gpus = 8: ")
