"""What plans keep free, and what counts beside purchases: labour, support and hosts."""

import math
import re
import runpy
import tomllib
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Any

import pytest

import coopt
from coopt.explain.prices import prices_of
from coopt.instance.catalog import entries
from coopt.instance.hardware import Gpu, HbDomain, Nic
from coopt.instance.reserves import NO_MARGIN, largest_error
from coopt.instance.schema import Instance
from coopt.instance.variants import keeping, of_phase, with_scaled_bounds, within
from coopt.network.parts import usd_per_w
from coopt.plan.schema import Plan
from coopt.report.notes import first_sentences, margin_note
from coopt.report.plan import plan_report
from coopt.report.words import amount, rendered
from coopt.solving.answer import solve, value_without_margin
from coopt.verifier.audit import verify
from docs.calibration_record import read_record
from tests.changes import with_part
from tests.conftest import accepted, ask, question, switch, value
from tests.explain.changed import at_price
from tests.kinds import QUESTIONS
from tests.solving.sites.test_sites import apart
from tests.solving.test_partitions import cored as two

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "days.md").read_text("utf-8")


def test_margins_are_shorter_bounds_and_smaller_gpus_and_leave_workloads_of_others_alone() -> None:
    margin, shorter, bare = ask(margin={"time": 0.25}), ask(workload__0__max_iteration_time_s=1.0 / 1.25), ask()
    assert margin.workload[0].bound_s == shorter.workload[0].bound_s
    assert solve(margin).workloads == solve(shorter).workloads
    (half,), (whole,) = solve(ask(margin={"time": 0.0, "memory": 0.5})).workloads, solve(bare).workloads
    assert half.memory_gib <= half.memory_limit_gib == pytest.approx(whole.memory_limit_gib / 2)
    Instance.model_validate(dict(bare.model_dump(by_alias=True)) | {"workload": bare.workload, "margin": {"time": 0.5}})
    assert bare.workload[0].bound_s == 1.0


def test_what_a_margin_costs_is_told_with_the_ports_it_keeps() -> None:
    """Without it a plan may be free of charge, of which nothing is a share; and no margin costs regret."""
    kept, regret = ask(margin={"time": 3.0}), {"aim": "regret", "prices": {"nic": [0.5, 2.0]}}
    plan = solve(kept)
    assert value_without_margin(kept, plan) == value(ask())
    assert value_without_margin(ask(), solve(ask())) is None
    (note,) = margin_note(kept, plan, 0.0)
    assert note.endswith(f"that costs {amount('capex', plan.objective.value)}.")
    ports = {"margin": {"time": 0.0, "ports": 0.2}, "network__switches": [switch(16, 11000)], "cluster__gpus": 256}
    for changes, more in (
        (ports, "20.0% of the ports of each switch (4 of 16 on 16-port)."),
        ({"margin": {"time": 0.1}, "robust": regret}, "10.0% on top of iteration times."),
    ):
        asked = ask(**changes)
        plan = solve(asked)
        assert [*margin_note(asked, plan, None)] == [f"Kept free: {more}"]
        assert value_without_margin(asked, plan) is None or "robust" not in changes


@pytest.mark.parametrize("kind", ["shared", "sites", "phased", "fleet", "regret"])
def test_plans_of_several_networks_verify_with_a_margin(kind: str) -> None:
    instance = Instance.model_validate(QUESTIONS[kind] | {"margin": {"time": 0.1}})
    plan = solve(instance)
    assert plan.status == "optimal"
    assert not verify(instance, plan).failures


@pytest.mark.parametrize(
    "changes", [{}, {"sharing": {"mode": "partition"}, "workload__0__gpus": [128, 256]}, {"network__max_tiers": 2}]
)
def test_a_margin_on_ports_is_smaller_switches(changes: dict[str, Any]) -> None:
    """Half of 16 ports, and of 32, which a question may ask for in their place."""
    switches = [switch(16, 11000), switch(32, 30000)]
    fewer = [one | {"radix": one["radix"] // 2} for one in switches]
    kept = ask(margin={"time": 0.0, "ports": 0.5}, network__switches=switches, cluster__gpus=256, **changes)
    small = ask(network__switches=fewer, cluster__gpus=256, **changes)
    plan = solve(kept)
    assert plan.status == "optimal"
    assert plan.objective.value == value(small)
    assert verify(kept, plan).accepted
    whole = solve(keeping(kept, NO_MARGIN))
    assert whole.objective.value == value(ask(network__switches=switches, cluster__gpus=256, **changes))


def test_a_plan_that_uses_ports_that_stay_free_is_rejected() -> None:
    kept = ask(margin={"time": 0.0, "ports": 0.2}, cluster__gpus=512)
    whole = solve(keeping(kept, NO_MARGIN))
    claim = whole.model_copy(update={"instance": solve(kept).instance})
    assert verify(keeping(kept, NO_MARGIN), whole).accepted
    assert not verify(kept, claim).accepted


def test_switches_are_written_out_with_all_their_ports() -> None:
    """Whole cages of four are used on large ones."""
    instance = ask(margin={"time": 0.0, "ports": 0.1}, network__switches=["64x400g", switch(16, 11000)])
    assert [one.radix for one in instance.network.switches] == [56, 14]
    assert [one["radix"] for one in instance.model_dump()["network"]["switches"]] == [64, 16]
    again = Instance.model_validate_json(instance.model_dump_json(by_alias=True))
    assert (again, again.sha256) == (instance, instance.sha256)
    with pytest.raises(ValueError, match=r"margin\.ports = 0\.9: leaves switch '16-port' only 1"):
        ask(margin={"time": 0.0, "ports": 0.9}, network__switches=[switch(16, 11000)])


def test_the_error_of_the_model_is_one_standard_error_unless_told():
    (one,) = ask(margin={}).workload
    error = largest_error(ask().cluster.gpu, ask().workload[0], ask().cluster.most_gpus) * math.sqrt(math.pi / 2)
    assert one.time_margin == pytest.approx(math.expm1(error))
    (sure,) = ask(margin={"confidence": 0.95}).workload
    assert sure.time_margin == pytest.approx(math.expm1(error * NormalDist().inv_cdf(0.95)))
    (experts,) = ask(margin={}, workload__0__model__experts=8, workload__0__model__top_k=2).workload
    assert experts.time_margin > one.time_margin


def test_margins_stay_with_questions_that_follow():
    instance = ask(
        margin={"time": 0.1},
        phase=[
            {"year": 0, "gpus": 32, "workloads": [{"name": "w", "max_iteration_time_s": 2.0}]},
            {"year": 1, "gpus": 64},
        ],
    )
    assert of_phase(instance, 0).workload[0].bound_s == pytest.approx(2.0 / 1.1)
    assert with_scaled_bounds(instance, 3.0).workload[0].bound_s == pytest.approx(3.0 / 1.1)
    assert of_phase(with_scaled_bounds(instance, 3.0), 0).workload[0].bound_s == pytest.approx(6.0 / 1.1)
    assert within(instance.workload[0], 0.5).bound_s == 0.5
    again = Instance.model_validate_json(instance.model_dump_json(by_alias=True))
    assert again == instance
    assert again.workload[0].bound_s == instance.workload[0].bound_s


def test_the_table_of_errors_is_that_of_the_calibration():
    made = runpy.run_path(str(DOCS / "model_errors.py"))
    assert made["page"]() == made["PLACE"].read_text("utf-8"), "docs/model_errors.py writes it"
    lines = read_record(DOCS.parent / "benchmarks" / "calibration.csv")
    (whole,) = [float(line["left_out_mean"]) for line in lines if line["set"] == "all"]
    left_out = read_record(made["UNSEEN"])
    assert fmean(made["sizes"](left_out)["all"]) == pytest.approx(whole, abs=1e-4)
    assert len(list(made["read_rows"]())) == len(left_out) + 30


@pytest.mark.parametrize(
    ("bound", "memory", "typed_key"),
    [
        (1.01, 2.0, "margin = { time = 0, memory = 'software' }"),
        (2.0, 1.01, "margin = { confidence = 0.8 }"),
        (1.01, 1.01, "margin = 'none'"),
        (0.5, 2.0, None),
    ],
)
def test_the_default_that_leaves_no_plan_is_named(bound: float, memory: float, typed_key: str | None) -> None:
    """Bound and memory are multiples of what the only mapping takes; the plan is there with the typed key."""
    mapping = {"tp": 8, "pp": 1, "cp": 1, "micro_batch": 1, "recompute": "none", "zero": 0}
    (run,) = accepted(ask(workload__0__mapping=mapping, objective={"minimize": "time"})).workloads
    gpu = {"extends": "h100-sxm", "hbm_gb": memory * run.memory_gib * 2**30 / 1e9}
    table = question(cluster={"gpu": gpu, "gpus": 64}, workload__0__mapping=mapping)
    table["workload"][0]["max_iteration_time_s"] = bound * run.iteration_time_s
    del table["margin"]
    plan = accepted(Instance.model_validate(table))
    assert plan.status == "infeasible"
    (sentence, *_) = plan.explanation
    assert sentence.endswith(f"a plan exists with {typed_key}.") == (typed_key is not None)
    if typed_key is not None:
        table |= tomllib.loads(typed_key.replace("'", '"'))
        assert accepted(Instance.model_validate(table)).status == "optimal"


def test_the_margins_of_every_listed_gpu_are_named() -> None:
    table = question(cluster={"gpu": ["h100-sxm", "h200"], "gpus": 64}, network__hb_domains="h100-hb16")
    del table["margin"]
    one = Instance.model_validate(table | {"cluster": {"gpu": "h200", "gpus": 64}})
    fastest = solve(keeping(one, NO_MARGIN), objective="time").workloads[0].iteration_time_s
    table["workload"][0]["max_iteration_time_s"] = 1.01 * fastest
    (sentence, *_) = solve(Instance.model_validate(table)).explanation
    assert f"{one.workload[0].time_margin:.1%}" in sentence


@pytest.mark.parametrize(
    ("model", "gpus", "software"),
    [("nemotron-3-nano", 16, {"gradient_bytes": 2}), ("nemotron-3-nano", 16, {}), ("qwen3-30b-a3b", 8, {})],
)
def test_what_ran_out_of_memory_is_refused(model: str, gpus: int, software: dict[str, Any]) -> None:
    """Runs without recomputation on H100 that are known to have had too little."""
    mapping = {"tp": 1, "pp": 1, "cp": 1, "ep": 8, "micro_batch": 1, "recompute": "none", "zero": 1}
    options = {"software": {"extends": "megatron-core", "name": "run", **software}}
    table = question(
        cluster__gpus=gpus, network__hb_domains="hgx-h100-8", objective={"minimize": "time"},
        workload={"name": "w", "model": model, "global_batch": 1024, "mapping": mapping, "options": options},
    )  # fmt: skip
    assert solve(Instance.model_validate(table), reasons=False).status == "infeasible"
    del table["margin"]
    assert solve(Instance.model_validate(table), reasons=False).status == "infeasible"


@pytest.mark.parametrize(("bound_s", "is_told"), [(5000, True), (1.0, False)])
def test_bounds_that_look_like_another_unit_are_told(bound_s: float, is_told: bool) -> None:
    instance = ask(workload__0__max_iteration_time_s=bound_s)
    said = " ".join(first_sentences(instance, solve(instance)))
    assert ("workload[0].max_iteration_time_s = 5000 is" in said and "write 5." in said) == is_told


OWNED = {"minimize": "tco", "labour_share": 0.05, "support_share": 0.06}


def with_terms(instance: Instance, **terms: Any) -> Instance:
    objective = instance.objective.model_copy(update=terms)
    return Instance.model_validate(instance.model_copy(update={"objective": objective}).model_dump(by_alias=True))


def test_they_count_in_the_total_cost_alone() -> None:
    instance, bare = ask(objective=OWNED), ask(objective={"minimize": "tco"})
    plan = coopt.solve(instance)
    terms = instance.objective
    electricity = plan.cost.power_w / 1000 * terms.years * 8760 * terms.pue * terms.usd_per_kwh
    assert plan.cost.tco_usd == pytest.approx(plan.cost.capex_usd * 1.29 + electricity, rel=1e-12)
    assert plan.cost.capex_usd == math.fsum(item.usd for item in plan.cost.items)
    words = " ".join(rendered(plan_report(instance, plan)).split())
    assert "5.0% of it" in words
    assert "6.0% of it" in words
    assert "support and electricity" in words
    assert instance.sha256 != bare.sha256


def test_a_plan_stays_optimal_within_its_ranges_of_prices_and_not_beyond() -> None:
    """Each USD of a price is a USD and 29 cents of total cost; at either end another design takes over."""
    instance = ask(objective=OWNED, limits={"capex_usd": 4e6})
    plan, found = coopt.solve(instance), coopt.explain(instance)
    chosen = plan.design
    for price in found.prices:
        for end, inside in ((price.low, 1.001), (price.high, 0.999)):
            if end is None or end == 0 or price.item == "electricity":
                continue
            for factor, same in ((inside, True), (2 - inside, False)):
                other = coopt.solve(at_price(instance, price.item, "USD", end * factor))
                assert (other.design == chosen) is same


GROWING: dict[str, Any] = {
    "phase": [
        {"gpus": 32, "year": 0},
        {"gpus": 64, "year": 2, "price": {"hb": 0.5, "nic": 0.5, "switch": 0.5, "optics": 0.5, "energy": 0.5}},
    ],
    "objective": OWNED | {"years": 3.0},
}


def test_each_phase_has_its_labour_and_support() -> None:
    instance = ask(**GROWING)
    plan = accepted(instance)
    first, last = plan.couplings.growth
    stands = [part.cost.capex_usd for part in plan.parts]  # at the prices of the instance
    assert first.work_usd == pytest.approx(0.05 * first.capex_usd + 2 * 0.06 * stands[0], rel=1e-12)
    assert last.work_usd == pytest.approx(0.05 * last.capex_usd + 3 * 0.06 * 0.5 * stands[1], rel=1e-12)
    spent = [one.capex_usd + one.work_usd + one.energy_usd for one in plan.couplings.growth]
    assert plan.objective.value == pytest.approx(math.fsum(spent), rel=1e-12)
    lie = plan.model_dump(mode="json", by_alias=True)
    lie["couplings"]["growth"][1]["work_usd"] = 0.0
    assert "phase-work" in {one.name for one in coopt.verify(instance, Plan.model_validate(lie)).failures}
    text = " ".join(rendered(plan_report(instance, plan)).split())
    assert "labour and support" in text


@pytest.mark.parametrize("doubt", [{}, {"robust": {"prices": {"optics": [0.5, 2.0]}}}], ids=["", "at worst prices"])
def test_a_price_weighs_with_the_support_of_all_phases_where_questions_are_solved_again(doubt: dict[str, Any]) -> None:
    """Within its range the plan stays, and its cost follows the price by the slope that the range was found with."""
    instance = ask(**GROWING | doubt | {"network__hb_domains": "hgx-h100-8"})
    plan, found = coopt.solve(instance), coopt.explain(instance)
    (price,) = [one for one in found.prices if one.item == "400g-199"]
    assert price.high is None or price.high > price.now * 1.01
    dearer = price.now * 1.01
    again = coopt.solve(at_price(instance, "400g-199", "USD", dearer))
    slope = (again.objective.value - plan.objective.value) / (dearer - price.now)
    product = next(one for one in prices_of(instance) if one.product == ("optics", "400g-199"))
    assert product.slope(instance, plan, price.now) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize(
    "beside", [{}, {"robust": {}}, {"site": [{"name": "here", "power_mw": 1.0}]}], ids=["islands", "doubt", "site"]
)
def test_islands_take_the_nic_of_less_purchase_where_that_brings_labour(beside: dict[str, Any]) -> None:
    """The cooler one saves electricity for 1.25 of what it costs beyond the other, and 1.5 with labour."""
    bare = ask(objective={"minimize": "tco"})
    saved = (500 - 20) * usd_per_w(bare.objective)
    hot, cool = ({"name": name, "gbit_s": 400, "w": w} for name, w in (("hot", 500), ("cool", 20)))
    nics = [hot | {"usd": 1000}, cool | {"usd": 1000 + saved / 1.25}]
    shape = {"network__nics": nics, "network__fabrics": "rail-only", "sharing": {"mode": "partition"}, **beside}
    include = {"minimize": "tco", "include": ["gpu", "hb", "nic", "switch", "optics"]}
    taken = []
    for labour in (0.0, 0.5):
        plan = accepted(ask(**shape, workload__0__gpus=64, objective=include | {"labour_share": labour}))
        (part,) = plan.parts
        taken.append(part.design.fabric.nic.name)
    assert taken == ["cool", "hot"]


ISLANDS = {"gbit_s_per_gpu": 100.0}


@pytest.mark.parametrize(
    "question",
    [
        ask,
        lambda: two(core=ISLANDS),
        lambda: two(core=ISLANDS, site=[{"name": "here", "power_mw": 1.0}]),
        lambda: Instance.model_validate(apart()),
        lambda: ask(robust={"prices": {"nic": [0.5, 2.0]}}),
    ],
    ids=["one network", "partition", "fleet", "sites", "robust"],
)
def test_a_plan_that_leaves_them_out_is_rejected(question: Callable[[], Instance]) -> None:
    asked = with_terms(question(), minimize="tco", labour_share=0.05)
    plan = coopt.solve(asked)
    cost = plan.cost.model_copy(update={"tco_usd": plan.cost.tco_usd - 0.05 * plan.cost.capex_usd})
    lie = with_part(plan, cost=cost) if len(plan.parts) == 1 else plan.model_copy(update={"cost": cost})
    assert coopt.verify(asked, plan).accepted
    assert "tco" in {check.name for check in coopt.verify(asked, lie).failures}


TINY = Path(__file__).parents[2] / "instances" / "tiny-64.toml"
WHOLE = ("gpu", "host", "hb", "nic", "switch", "optics")


def asked(*include: str, **limits: float) -> coopt.Instance:
    table: dict[str, Any] = coopt.load(TINY).model_dump(by_alias=True)
    return coopt.Instance.model_validate({**table, "objective": {"include": include}, "limits": limits})


def test_hosts_stand_on_the_line_of_their_domain_and_count_in_caps() -> None:
    instance = asked(*WHOLE)
    plan, without = coopt.solve(instance), coopt.solve(asked(*(kind for kind in WHOLE if kind != "host")))
    (domain,) = (item for item in plan.cost.items if item.kind == "hb")
    assert (domain.unit_usd, domain.unit_w) == (7000, 552.5)
    assert plan.cost.capex_usd - without.cost.capex_usd == pytest.approx(64 * 7000)
    assert plan.cost.power_w - without.cost.power_w == pytest.approx(64 * 552.5)
    assert coopt.verify(instance, plan).accepted
    assert not coopt.verify(instance, without).accepted
    assert coopt.Instance.model_validate(instance.model_dump(by_alias=True)) == instance
    for share, status in ((1.01, "optimal"), (0.99, "infeasible")):
        assert coopt.solve(asked(*WHOLE, power_mw=share * plan.cost.power_w / 1e6), reasons=False).status == status


@pytest.mark.parametrize(
    ("include", "figures", "why"),
    [
        (("host", "nic"), {}, "'hb' beside 'host'"),
        (WHOLE, {"host_w_per_gpu": None}, "'hgx-h100-8' does not state the power of its hosts"),
    ],
)
def test_hosts_that_cannot_count_are_refused(include: tuple[str, ...], figures: dict[str, Any], why: str) -> None:
    table = asked("hb").model_dump(by_alias=True) | {"objective": {"include": include}}
    table["network"]["hb_domains"] = [{**domain, **figures} for domain in table["network"]["hb_domains"]]
    with pytest.raises(ValueError, match=re.escape(why)):
        coopt.Instance.model_validate(table)


@pytest.mark.parametrize(
    ("gpu", "domain", "nic", "kw"),
    [
        ("a100-80g", "hgx-a100-8", "cx6-200g", 6.5),
        ("h100-sxm", "hgx-h100-8", "cx7-400g", 10.2),
        ("b200", "hgx-b200-8", "cx7-400g", 14.3),
        ("b300", "hgx-b300-8", "cx8-800g", 14.0),
        ("gb200", "gb200-nvl72", "cx7-400g", 132.0),
        ("gb300", "gb300-nvl72", "cx8-800g", 142.0),
    ],
)
def test_a_server_or_rack_of_the_catalog_draws_what_it_is_said_to_draw(
    gpu: str, domain: str, nic: str, kw: float
) -> None:
    one, whole, card = entries("gpu")[gpu], entries("hb_domain")[domain], entries("nic")[nic]
    assert isinstance(one, Gpu)
    assert isinstance(whole, HbDomain)
    assert isinstance(card, Nic)
    watts = whole.size * (one.w + whole.w_per_gpu + (whole.host_w_per_gpu or 0.0) + card.w)
    assert watts / 1000 == pytest.approx(kw, rel=0.001)
