"""What is said to be enough is enough and no more than that, and what is said to conflict does."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coopt.explain.answer import explain
from coopt.explain.conflicts import conflict_of, conflicts_of, dropped, drops
from coopt.explain.lists import lists_of
from coopt.instance.catalog import find
from coopt.instance.schema import Instance, load
from coopt.plan.explanation import Change, Explanation, Relaxation
from coopt.solving.answer import solve
from coopt.solving.resolves import Resolver
from tests.conftest import ask, example_count, question, small_model
from tests.explain.changed import bounded, kept_free, limits, memory, moved, network, way_out
from tests.solving.oracle import with_few_mappings

HAIR = 1e-9
ALL = ["gpu", "host", "hb", "nic", "switch", "optics"]


def feasible(instance: Instance) -> bool:
    """Whether a question has a plan, whatever it costs."""
    return Resolver(instance).has_plan(instance)


@st.composite
def hopeless(draw: st.DrawFn) -> Instance:
    """Random instances with a limit or two too tight, by little or by much."""
    instance = draw(with_few_mappings())
    if draw(st.booleans()):
        instance = bounded(instance, 0, instance.workload[0].bound_s / draw(st.sampled_from([1.5, 3.0, 10.0])))
    if draw(st.booleans()):
        gpus = max(instance.cluster.gpus)
        cap = draw(st.sampled_from([{"capex_usd": 500.0 * gpus}, {"power_mw": gpus / 5000}, {"racks": gpus / 16}]))
        instance = limits(instance, **cap)
    if draw(st.integers(0, 3)) == 0:
        instance = memory(instance, draw(st.sampled_from([2.0, 6.0, 12.0])))
    instance = kept_free(instance, *draw(st.sampled_from([(0.0, 0.0), (0.0, 0.0), (0.1, 0.0), (0.0, 0.2)])))
    assume(solve(instance, reasons=False).status == "infeasible")
    return instance


def typed(instance: Instance, change: Change, number: float | None = None) -> Instance:
    """The instance with what a user would type; `number` in place of it."""
    value: Any = tomllib.loads(f"x = {change.to}")["x"] if number is None else number
    if change.limit == "cluster.gpus":
        counts = tuple(value) if isinstance(value, list) else (value,)
        return instance.model_copy(update={"cluster": instance.cluster.model_copy(update={"gpus": counts})})
    if change.limit == "cluster.gpu":
        table = instance.model_dump(by_alias=True)
        table["cluster"] |= {"gpu": value}
        names = {"h100-sxm": "hgx-h100-8", "gb200": "gb200-nvl72"}
        table["network"]["hb_domains"] = names.get(value) or f"hgx-{value}-8"
        return Instance.model_validate(table)
    if not isinstance(value, list):
        if change.limit == "network.max_tiers":
            return network(instance, max_tiers=int(value))
        return moved(instance, change.limit, value)
    table, key = change.limit.rsplit(".", 1)
    if table == "network":
        have = {getattr(entry, "name", entry): entry for entry in getattr(instance.network, key)}
        kind = {"hb_domains": "hb_domain", "nics": "nic", "switches": "switch", "optics": "optic"}.get(key)
        new = (
            [have[entry] if entry in have or kind is None else find(kind, entry) for entry in value] if kind else value
        )
        return network(instance, **{key: tuple(new)})
    w = int(table.split("[")[1].split("]")[0])
    every = list(instance.workload)
    mapping = every[w].mapping.model_copy(update={key: tuple(value)})
    every[w] = every[w].model_copy(update={"mapping": mapping})
    return instance.model_copy(update={"workload": tuple(every)})


@settings(max_examples=example_count(20, usual=2))
@given(hopeless())
def test_every_relaxation_is_enough_and_no_number_could_move_less(instance: Instance) -> None:
    found = explain(instance)
    assert found.status == "infeasible"
    for one in found.relaxations:
        changed = instance
        for change in one.changes:
            changed = typed(changed, change)
        plan = solve(changed)
        assert (plan.status, plan.objective.value, plan.design) == ("optimal", one.value, one.design)
        changed = instance
        for change in one.changes:
            if change.least is None or change.limit == "cluster.gpus":
                break
            shy = change.least - 1 if change.limit == "network.max_tiers" else change.least * (1 - HAIR)
            changed = typed(changed, change, shy)
        else:
            if len(one.changes) == 1 or all(change.limit != "cluster.gpu.hbm_gb" for change in one.changes):
                assert solve(changed).status == "infeasible", one.changes


@settings(max_examples=example_count(20, usual=2))
@given(hopeless())
def test_without_any_one_limit_of_a_conflict_some_design_meets_the_rest(instance: Instance) -> None:
    conflict = conflict_of(instance, feasible)
    alone = dropped(instance, [key for key in drops(instance) if key not in conflict])
    assert not feasible(alone)
    for key in conflict:
        assert feasible(dropped(alone, [key])), (key, conflict)


def left_out_in_turn(instance: Instance) -> tuple[str, ...]:
    """What conflicts, by leaving out one limit after the other and putting back those without which a design serves."""
    conflict = []
    for key, drop in drops(instance).items():
        without = drop(instance)
        if feasible(without):
            conflict.append(key)
        else:
            instance = without
    return tuple(conflict)


@pytest.mark.parametrize(
    "changes",
    [
        {"workload__0__max_iteration_time_s": 0.01, "limits": {"capex_usd": 10.0}},
        {"network__hb_domains": ["hgx-h100-8"], "workload__0__max_iteration_time_s": 0.0715},
        {"workload__0__mapping": {"tp": 64, "pp": 8}},
        {"workload__0__mapping": {"tp": 8, "pp": 2, "recompute": "none"}, "workload__0__max_iteration_time_s": 0.08},
        {"network__max_tiers": 1, "network__fabrics": "clos", "network__hb_domains": "hgx-h100-8"},
    ],
)
def test_a_conflict_is_what_leaving_out_one_limit_after_the_other_keeps(changes: dict[str, Any]) -> None:
    instance = ask(**changes)
    assert conflict_of(instance, feasible) == left_out_in_turn(instance) != ()


CAPS = ("limits.capex_usd", "limits.power_mw", "limits.racks")


@settings(max_examples=example_count(20))
@given(hopeless())
def test_solve_names_the_limits_that_explain_names(instance: Instance) -> None:
    said, conflicts = " ".join(solve(instance).explanation), conflicts_of(instance, feasible)
    named = {key for key in CAPS if key in said}
    assert named <= set().union(*conflicts), (said, conflicts)
    assert {keys[0] for keys in conflicts if len(keys) == 1 and keys[0] in CAPS} <= named, (said, conflicts)
    for w, workload in enumerate(instance.workload):
        if f"workload {workload.name!r}: the fastest design" in said:
            assert f"workload[{w}].max_iteration_time_s" in set().union(*conflicts), (said, conflicts)


def test_time_and_money_are_both_named_where_each_rules_out_every_design() -> None:
    instance = ask(workload__0__max_iteration_time_s=0.01, limits={"capex_usd": 10.0})
    found, said = explain(instance), solve(instance).explanation
    assert found.conflicts == (("workload[0].max_iteration_time_s",), ("limits.capex_usd",))
    joint = next(one for one in found.relaxations if len(one.changes) == 2)
    assert {change.limit for change in joint.changes} == {"workload[0].max_iteration_time_s", "limits.capex_usd"}
    assert "the fastest design takes" in said[0]
    assert said[1].startswith("limits.capex_usd = 10: needs at least ")
    assert said[1].endswith(", whatever the bounds on time")


def single(found: Explanation) -> dict[str, Relaxation]:
    return {one.changes[0].limit: one for one in found.relaxations if len(one.changes) == 1}


def test_a_deadline_alone_has_to_move_to_what_the_fastest_design_takes() -> None:
    found = explain(ask(workload__0__max_iteration_time_s=0.01))
    assert found.conflict == ("workload[0].max_iteration_time_s",)
    (one,) = found.relaxations
    assert any(one.changes[0].to in sentence for sentence in found.sentences)


def test_tokens_to_train_leave_a_deadline_in_seconds() -> None:
    tokens: dict[str, Any] = {"workload__0__train_tokens": 1e12}
    late, open_ = (ask(workload__0__max_iteration_time_s=bound, **tokens) for bound in (0.01, 1.0))
    (one,) = explain(late).relaxations
    (change,) = one.changes
    assert solve(typed(late, change)).status == "optimal"
    assert solve(typed(late, change, change.least * (1 - 1e-3))).status == "infeasible"
    plan = solve(open_)
    (bound,) = [one for one in explain(open_).bounds if one.limit.endswith("max_iteration_time_s")]
    assert (bound.unit, bound.bound) == ("s", 1.0)
    assert bound.used == pytest.approx(plan.workloads[0].iteration_time_s)


def test_more_gpus_are_a_way_out_and_what_is_tried_in_vain_is_said() -> None:
    instance = ask(network__hb_domains="hgx-h100-8", cluster__gpus=16, workload__0__max_iteration_time_s=0.12)
    found = single(explain(instance))["cluster.gpus"]
    (change,) = found.changes
    assert (change.now, change.least, change.step) == ("16", int(change.to), 1)
    plan = solve(typed(instance, change))
    assert (plan.status, plan.objective.value, plan.design) == ("optimal", found.value, found.design)
    assert all(solve(ask_with(instance, count)).status == "infeasible" for count in range(1, int(change.to)))
    hopeless = explain(ask_with(instance, 64).model_copy(update={"workload": bounded(instance, 0, 1e-3).workload}))
    assert "cluster.gpus" not in single(hopeless)
    assert any("any other number of GPUs from 1 to 1,024;" in said for said in hopeless.sentences)


def test_gpus_between_the_numbers_listed_are_a_way_out() -> None:
    """Fewer draw too little to be in time, and more draw more than the limit allows."""
    listed = ask(network__hb_domains="hgx-h100-8", cluster__gpus=[16, 64], objective={"include": ALL})
    time_s, power_mw = (solve(ask_with(listed, 32), objective=kind).objective.value for kind in ("time", "power"))
    found = explain(limits(bounded(listed, 0, 1.05 * time_s), power_mw=1.05e-6 * power_mw))
    (change,) = single(found)["cluster.gpus"].changes
    assert (change.now, change.to, change.step, change.share) == ("[16, 64]", "32", 1, None)
    assert any("32 (now [16, 64], the least)" in said for said in found.sentences)


def test_fewer_gpus_are_a_way_out_where_limits_alone_are_too_tight() -> None:
    """The most that keep them: without a bound on time, the fewest would be told in vain."""
    plain = ask(network__hb_domains="hgx-h100-8", objective={"include": ALL})
    at_48 = solve(ask_with(plain, 48), objective="power").objective.value
    found = explain(limits(plain, power_mw=1.01e-6 * at_48))
    (change,) = single(found)["cluster.gpus"].changes
    assert (change.to, change.least, change.step) == ("48", None, 1)
    assert any("48 (now 64, -25.00%, the most)" in said for said in found.sentences)


def ask_with(instance: Instance, gpus: int) -> Instance:
    return instance.model_copy(update={"cluster": instance.cluster.model_copy(update={"gpus": (gpus,)})})


def test_a_faster_gpu_is_a_way_out_with_the_domains_it_is_sold_in() -> None:
    instance = ask(network__hb_domains="hgx-h100-8")
    fastest_s = solve(instance, objective="time").objective.value
    found = explain(bounded(instance, 0, fastest_s * 0.8))
    (way,) = (one for one in found.relaxations if one.changes[0].limit == "cluster.gpu")
    assert [(one.limit, one.to) for one in way.changes] == [
        ("cluster.gpu", '"b200"'),
        ("network.hb_domains", '["hgx-b200-8"]'),
    ]
    plan = solve(typed(bounded(instance, 0, fastest_s * 0.8), way.changes[0]))
    assert (plan.objective.value, plan.design) == (way.value, way.design)
    assert any(sentence.startswith("The price of GPUs is left out") for sentence in found.sentences)


def test_a_rate_moves_down_days_move_up_and_memory_grows() -> None:
    workload = {"name": "w", "model": small_model(), "global_batch": 64}
    _, rate = way_out(ask(workload=[{**workload, "min_tokens_per_s": 1e9}]), "workload[0].min_tokens_per_s")
    days = {"train_days": 1e-3, "train_tokens": 1e9}
    _, longer = way_out(ask(workload=[{**workload, **days}]), "workload[0].train_days")
    large = ask(workload__0__model="gpt-22b", workload__0__max_iteration_time_s=10.0)
    assert rate.share < 0
    assert float(rate.to) <= rate.least < 1e9
    assert float(longer.to) >= longer.least > 1e-3
    assert way_out(memory(large, 4.0), "cluster.gpu.hbm_gb")[1].share > 0


def test_a_larger_domain_of_the_catalog_is_named() -> None:
    instance = ask(network__hb_domains=["hgx-h100-8"], workload__0__max_iteration_time_s=0.0715)
    assert "network.hb_domains" in conflict_of(instance, feasible)
    assert way_out(instance, "network.hb_domains")[1].to.startswith('["hgx-h100-8", "')


def test_a_domain_is_a_way_out_with_its_servers_and_the_word_that_nobody_sells_it() -> None:
    """What is typed as it is told costs what it is told to cost, servers included."""
    table = question(network__hb_domains="hgx-h100-8", workload__0__max_iteration_time_s=0.0715)
    table |= {"objective": {"include": ALL}}
    way, _ = way_out(load(table), "network.hb_domains")
    plan = solve(load(table, {one.limit: tomllib.loads(f"x = {one.to}")["x"] for one in way.changes}))
    assert (way.value, way.design) == (plan.objective.value, plan.design)
    name = plan.design.hb_domain.name
    assert way.notes == (f"This is a study: nobody sells {name}, whose size and price are assumed.",)


@pytest.mark.parametrize(("gpu", "sold"), [("h100-sxm", "hgx-h100-8"), ("b200", "hgx-b200-8")])
def test_no_domain_of_faster_links_than_the_gpu_has_is_a_way_out(gpu: str, sold: str) -> None:
    instance = ask(cluster__gpu=gpu, network__hb_domains=sold, workload__0__precision="bf16")
    (listed,) = (one for one in lists_of(instance) if one.key == "network.hb_domains")
    rates = {one.name: one.gbyte_s for one in listed.widest}
    assert max(rates.values()) == rates[sold]
    assert ("nvl576" in rates) == (gpu == "b200")
    assert "h100-hb64" in rates
    assert not [one for one in listed.widest if one.gpus and gpu not in one.gpus]
    faster = ask(cluster__gpu=gpu, network__hb_domains=[sold, "nvl576"])
    (wider,) = (one for one in lists_of(faster) if one.key == "network.hb_domains")
    assert {"nvl576", "h100-hb64"} <= {one.name for one in wider.widest or ()}
    slow = ask(cluster__gpu="a100-80g", network__hb_domains="hgx-a100-8")
    assert not [one for one in lists_of(slow) if one.key == "network.hb_domains"]


def test_a_tier_or_the_value_of_a_mapping_list_that_is_missing_is_named() -> None:
    flat = ask(network__max_tiers=1, network__fabrics="clos", network__hb_domains="hgx-h100-8")
    assert "network.max_tiers" in conflict_of(flat, feasible)
    assert way_out(flat, "network.max_tiers")[1].to in ("2", "3")
    narrow = explain(ask(workload__0__mapping={"tp": 64, "pp": 8}))
    assert set(single(narrow)) <= set(narrow.conflict) <= {"workload[0].mapping.tp", "workload[0].mapping.pp"}
    assert narrow.relaxations


def test_another_number_of_gpus_is_named_where_none_spreads_over_the_domains() -> None:
    changes = {"cluster__gpus": 61, "network__hb_domains": "hgx-h100-8", "network__domain_fill": "even"}
    found = explain(ask(**changes, workload__0__max_iteration_time_s=10.0))
    assert found.relaxations[-1].changes[0].limit == "cluster.gpus"
    assert found.relaxations[-1].changes[0].to in ("[56]", "[64]")


def test_an_explanation_survives_json_and_is_the_same_again() -> None:
    instance = ask(workload__0__max_iteration_time_s=0.01)
    for one in (instance, ask()):
        found = explain(one)
        assert Explanation.model_validate_json(found.model_dump_json(by_alias=True)) == found
        assert explain(one) == found


def test_a_time_limit_is_said() -> None:
    found = explain(ask(solver={"time_limit_s": 1e-9}))
    assert found.status == "unknown"
    assert "Stopped early (time limit)" in found.sentences[0]
