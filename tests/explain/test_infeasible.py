"""What is said to be enough is enough and no more than that, and what is said to conflict does."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coopt
from coopt.explain.answer import explain
from coopt.explain.conflicts import conflict_of, conflicts_of, drops, without
from coopt.explain.labels import changes_of
from coopt.explain.lists import lists_of
from coopt.instance.catalog import find
from coopt.instance.numerics import SEARCHED
from coopt.instance.schema import Instance, load, text_of
from coopt.instance.texts import with_names
from coopt.plan.explanation import Change, Explanation, Relaxation
from coopt.solving.answer import solve
from coopt.solving.resolves import Resolver
from tests.conftest import FEW_MAPPINGS, ask, example_count, question, small_model
from tests.explain.changed import bounded, kept_free, limits, memory, way_out, with_key
from tests.kinds import FEW, QUESTIONS
from tests.solving.fleets import growing_at
from tests.solving.oracle import with_few_mappings
from tests.solving.sites.test_sites import apart

HAIR = 1e-9
ALL = ["gpu", "host", "hb", "nic", "switch", "optics"]


def feasible(instance: Instance) -> bool:
    """Whether a question has a plan, whatever it costs."""
    return Resolver(instance).has_plan(instance)


@st.composite
def hopeless(draw: st.DrawFn) -> Instance:
    """Random instances with a limit or two too tight, by little or by much."""
    instance = draw(with_few_mappings(32))
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
    table = instance.model_dump(by_alias=True)
    if change.limit == "cluster.gpu":
        table["network"]["hb_domains"] = {"h100-sxm": "hgx-h100-8", "gb200": "gb200-nvl72"}.get(value, f"hgx-{value}-8")
    if change.limit.startswith("network.") and isinstance(value, list):
        listed = {entry["name"]: entry for entry in table["network"][change.limit[8:]] if isinstance(entry, dict)}
        value = [listed.get(entry, entry) for entry in value]
    return with_key(table, change.limit, value)


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
    alone = without(instance, [key for key in drops(instance) if key not in conflict], drops(instance))
    assert not feasible(alone)
    for key in conflict:
        assert feasible(without(alone, [key], drops(alone))), (key, conflict)


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


@settings(max_examples=example_count(20, usual=2))
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
    instance = ask(workload__0__max_iteration_time_s=0.01, limits={"capex_usd": 10.0}, **FEW)
    found, said = explain(instance), solve(instance).explanation
    assert found.conflicts == (("workload[0].max_iteration_time_s",), ("limits.capex_usd",))
    joint = next(one for one in found.relaxations if len(one.changes) == 2)
    assert {change.limit for change in joint.changes} == {"workload[0].max_iteration_time_s", "limits.capex_usd"}
    assert "fastest design takes" in said[0]
    assert said[1].startswith("limits.capex_usd = 10: needs at least ")
    assert said[1].endswith("bounds on time")


def single(found: Explanation) -> dict[str, Relaxation]:
    return {one.changes[0].limit: one for one in found.relaxations if len(one.changes) == 1}


def test_a_deadline_alone_has_to_move_to_what_the_fastest_design_takes() -> None:
    found = explain(ask(workload__0__max_iteration_time_s=0.01))
    assert found.conflict == ("workload[0].max_iteration_time_s",)
    (one,) = found.relaxations
    assert any(one.changes[0].to in sentence for sentence in found.sentences)


def test_tokens_to_train_leave_a_deadline_in_seconds() -> None:
    tokens: dict[str, Any] = {"workload__0__train_tokens": 1e12}
    late, open_ = (ask(**FEW, workload__0__max_iteration_time_s=bound, **tokens) for bound in (0.01, 1.0))
    (one,) = explain(late).relaxations
    (change,) = one.changes
    assert solve(typed(late, change)).status == "optimal"
    assert solve(typed(late, change, change.least * (1 - 1e-3)), reasons=False).status == "infeasible"
    plan = solve(open_)
    (bound,) = [one for one in explain(open_).bounds if one.limit.endswith("max_iteration_time_s")]
    assert (bound.unit, bound.bound) == ("s", 1.0)
    assert bound.used == pytest.approx(plan.workloads[0].iteration_time_s)


def test_more_gpus_are_a_way_out_and_what_is_tried_in_vain_is_said() -> None:
    changes = {"network__hb_domains": "hgx-h100-8", "network__fabrics": "clos"}
    instance = ask(**changes, cluster__gpus=16, workload__0__max_iteration_time_s=0.12)
    found = single(explain(instance))["cluster.gpus"]
    (change,) = found.changes
    assert (change.now, change.least, change.step) == ("16", int(change.to), 1)
    plan = solve(typed(instance, change))
    assert (plan.status, plan.objective.value, plan.design) == ("optimal", found.value, found.design)
    assert all(
        solve(ask_with(instance, count), reasons=False).status == "infeasible" for count in range(1, int(change.to))
    )
    hopeless = explain(bounded(instance, 0, 1e-3))
    assert "cluster.gpus" not in single(hopeless)
    assert any("1 to 256;" in said for said in hopeless.sentences)


def test_gpus_between_the_numbers_listed_are_a_way_out() -> None:
    """Fewer draw too little to be in time, and more draw more than the limit allows."""
    listed = ask(network__hb_domains="hgx-h100-8", cluster__gpus=[16, 64], objective={"include": ALL})
    time_s, power_mw = (solve(ask_with(listed, 32), objective=kind).objective.value for kind in ("time", "power"))
    found = explain(limits(bounded(listed, 0, 1.05 * time_s), power_mw=1.05e-6 * power_mw))
    (change,) = single(found)["cluster.gpus"].changes
    assert (change.now, change.to, change.step, change.share) == ("[16, 64]", "32", 1, None)
    assert any("32 (now [16, 64], the smallest possible)" in said for said in found.sentences)


def test_fewer_gpus_are_a_way_out_where_limits_alone_are_too_tight() -> None:
    """The most that keep them: without a bound on time, the fewest would be told in vain."""
    plain = ask(network__hb_domains="hgx-h100-8", objective={"include": ALL})
    at_48 = solve(ask_with(plain, 48), objective="power").objective.value
    found = explain(limits(plain, power_mw=1.01e-6 * at_48))
    (change,) = single(found)["cluster.gpus"].changes
    assert (change.to, change.least, change.step) == ("48", None, 1)
    assert any("48 (now 64, -25.00%, the largest possible)" in said for said in found.sentences)


def ask_with(instance: Instance, gpus: int) -> Instance:
    return instance.model_copy(update={"cluster": instance.cluster.model_copy(update={"gpus": (gpus,)})})


@pytest.mark.parametrize("cables", ["tier", "hall"])
def test_a_faster_gpu_is_a_way_out_with_the_domains_it_is_sold_in(cables: str) -> None:
    instance = ask(network__hb_domains="hgx-h100-8", network__cables=cables)
    fastest_s = solve(instance, objective="time").objective.value
    found = explain(bounded(instance, 0, fastest_s * 0.8))
    (way,) = (one for one in found.relaxations if one.changes[0].limit == "cluster.gpu")
    assert [(one.limit, one.to) for one in way.changes] == [
        ("cluster.gpu", '"b200"'),
        ("network.hb_domains", '["hgx-b200-8"]'),
    ]
    plan = solve(typed(bounded(instance, 0, fastest_s * 0.8), way.changes[0]))
    assert (plan.objective.value, plan.design) == (way.value, way.design)
    assert any('"gpu" to objective.include' in sentence for sentence in found.sentences)


def test_a_rate_moves_down_days_move_up_and_memory_grows() -> None:
    workload = {"name": "w", "model": small_model(), "global_batch": 64, "mapping": FEW_MAPPINGS}
    rails = {"network__fabrics": "rail-only", "network__hb_domains": "hgx-h100-8"}
    _, rate = way_out(ask(**rails, workload=[{**workload, "min_tokens_per_s": 1e9}]), "workload[0].min_tokens_per_s")
    days = {"train_days": 1e-3, "train_tokens": 1e9}
    _, longer = way_out(ask(**rails, workload=[{**workload, **days}]), "workload[0].train_days")
    large = ask(**rails, workload__0__model="gpt-22b", workload__0__max_iteration_time_s=10.0)
    assert rate.share < 0
    assert float(rate.to) <= rate.least < 1e9
    assert float(longer.to) >= longer.least > 1e-3
    assert way_out(memory(large, 4.0), "cluster.gpu.hbm_gb")[1].share > 0


def test_ways_out_are_tried_where_it_takes_too_long_to_say_what_conflicts(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(instance: Instance, is_feasible: Callable[[Instance], bool]) -> None:
        while True:
            is_feasible(instance)

    monkeypatch.setattr("coopt.explain.decided.conflicts_of", endless)
    found = explain(ask(workload__0__max_iteration_time_s=0.01), time_limit_s=4.0)
    assert "which limits conflict" in found.untried
    assert found.relaxations[0].changes[0].limit == "workload[0].max_iteration_time_s"


def test_a_day_is_told_as_a_day_that_may_be_typed() -> None:
    days = {"max_iteration_time_s": None, "train_tokens": 1e13, "by": date(2027, 1, 5)}
    changed = {f"workload__0__{key}": value for key, value in days.items()} | {"cluster__start": date(2027, 1, 4)}
    way, later = way_out(ask(**changed), "workload[0].by")
    assert later.now == "2027-01-05"
    by = date.fromisoformat(later.to)
    assert f"by = {by} (now 2027-01-05, {(by - date(2027, 1, 5)).days} days later)" in changes_of(way)
    found = [solve(ask(**changed | {"workload__0__by": day}), reasons=False).status for day in (by - timedelta(1), by)]
    assert found == ["infeasible", "optimal"]
    kept = explain(ask(**changed | {"workload__0__by": by + timedelta(9)})).bounds[0]
    assert (kept.limit, kept.until) == ("workload[0].by", f"{by}")


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
    assert way.notes == (f"This hardware is hypothetical: nobody sells {name}, whose size is assumed.",)


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
    for one in (ask(**FEW, workload__0__max_iteration_time_s=0.01), ask(**FEW)):
        found = explain(one)
        assert Explanation.model_validate_json(found.model_dump_json(by_alias=True)) == found
        assert explain(one) == found


def test_optics_that_do_not_reach_are_named() -> None:
    reach_m = (50.0, 700.0, 700.0)
    instance = ask(cluster__gpus=128, network__link_reach_m=reach_m, network__fabrics="clos")
    (said,) = solve(instance).explanation
    longest = max(optic.reach_m for optic in instance.network.optics)
    assert "700 m from leaf" in said
    assert f"reaches {longest:g} m" in said
    found = explain(instance)
    assert {"network.link_reach_m", "network.optics"} <= set(found.conflict)
    (closer,) = single(found)["network.link_reach_m"].changes
    assert closer.to == text_of((50.0, longest, longest))


TWIN = {"name": "twin", "gbit_s": 800, "breakout": [2], "reach_m": 500, "fibre": "x", "usd": 900, "w": 15}


SHORT = {"name": "short", "gbit_s": 400, "reach_m": 50, "fibre": "x", "usd": 500, "w": 8}


WIDE = {"name": "wide", "radix": 32, "port_gbit_s": 400, "cages": 16, "usd": 9000, "w": 300}


TWO = [
    {"name": name, "model": small_model(), "global_batch": 128, "max_iteration_time_s": 30, "mapping": FEW_MAPPINGS}
    for name in "ab"
]


OPTICS_SHORT: dict[str, dict[str, Any]] = {
    "one network": {"network__link_ends": "same"},
    "partition": {"sharing": {"mode": "partition"}},
    "phases": {"phase": [{"year": 2027, "gpus": 128}, {"year": 2028, "gpus": 128}]},
    "fleet": {"sharing": {"mode": "partition"}, "phase": [{"year": 2027, "gpus": 256}, {"year": 2028, "gpus": 256}]},
    "fleet of one network": {
        "phase": [{"year": 2027, "gpus": 128}, {"year": 2028, "gpus": 128}],
        "robust": {"survive": "nic", "slower": 1000.0},
    },
}


def lacking(kind: str, **changes: Any) -> Instance:
    """A question that needs two tiers, with modules above leaves that hold two links each."""
    own = OPTICS_SHORT[kind]
    sizes = {"gpus": [128]} if "sharing" in own else {}
    return ask(
        **{
            "cluster__gpus": 256 if sizes else 128, "workload": [workload | sizes for workload in TWO],
            "network__fabrics": "clos", "network__hb_domains": "hgx-h100-8", "network__nics": "cx7-400g",
            "network__switches": [WIDE], "network__optics": [SHORT, TWIN], "network__oversubscription": 4.0,
            **own,
            **changes,
        }
    )  # fmt: skip


@pytest.mark.parametrize("kind", OPTICS_SHORT)
def test_links_that_no_optic_joins_are_the_reason_in_every_kind_of_question(kind: str) -> None:
    plan = solve(lacking(kind))
    assert plan.status == "infeasible"
    said = " ".join(plan.explanation)
    assert (
        "no optic of network.optics joins the links of 100 m from leaf to the next tier (network.link_reach_m)" in said
    )
    assert "twin reaches as far, but serves several links at once, while both ends of a link need" in said
    assert "needs an optic of 400 Gbit/s that reaches 100 m (such as 400g-dr4)" in said
    assert "longer bound" not in said
    enough = lacking(kind, network__optics=[SHORT, TWIN, "400g-dr4"])
    assert solve(enough).status == "optimal"
    assert ("network.link_ends = 'own'" in said) == (kind == "one network")
    assert solve(lacking(kind, network__link_ends="own"), reasons=False).status == (
        "optimal" if kind == "one network" else "infeasible"
    )


@pytest.mark.parametrize("kind", ["partition", "fleet"])
def test_a_bound_that_no_optic_would_meet_is_not_put_down_to_optics(kind: str) -> None:
    late = [workload | {"gpus": [128], "max_iteration_time_s": 1e-3} for workload in TWO]
    said = " ".join(solve(lacking(kind, workload=late)).explanation)
    assert said
    assert "optic" not in said


def of_200g(capex_usd: float | None = None, **parts: Any) -> Instance:
    """A question that NICs of 200 Gbit/s answer; the cheapest switch for them is one with which they do not mate."""
    listed = {"nics": "cx6-200g", "switches": ["40x200g"], "optics": ["200g-aoc"]} | parts
    return ask(
        cluster__gpus=256, workload__0__global_batch=256, workload__0__max_iteration_time_s=30,
        network__hb_domains="hgx-h100-8", network__fabrics=["rail-only"], limits={"capex_usd": capex_usd},
        **{f"network__{key}": value for key, value in listed.items()},
    )  # fmt: skip


def test_no_switch_is_a_way_out_with_which_nothing_listed_mates() -> None:
    unmated = solve(of_200g(switches=["51t"]))
    nic, optic, box = find("nic", "cx6-200g"), find("optic", "200g-aoc"), find("switch", "51t")
    assert nic.lane_gbit_s == (optic.lane_gbit_s,) != (box.lane_gbit_s,)
    cap = (unmated.objective.value or 0.0) * 1.01
    assert solve(of_200g(cap, switches=["40x200g", "51t"])).status == "optimal"
    found = explain(of_200g(cap))
    assert {change.limit for one in found.relaxations for change in one.changes} == {"limits.capex_usd", "cluster.gpus"}
    listed = explain(of_200g(cap / 1.1, switches=["51t"]))  # links that the user's own lists join so
    assert unmated.design in [one.design for one in listed.relaxations if one.changes[0].limit == "limits.capex_usd"]


def test_parts_that_are_enough_together_mate() -> None:
    asked = {"nics": "cx7-400g", "switches": ["qm9700"], "optics": ["400g-sr4", "400g-dr4"]}
    best, cheapest = solve(of_200g()), solve(of_200g(switches=["51t"]))
    found = explain(of_200g(600_000, **asked))
    (parts,) = (one for one in found.relaxations if len(one.changes) == 3)
    assert parts.design == best.design
    assert parts.value == best.objective.value > cheapest.objective.value


def test_powers_of_sites_grow_by_one_share_after_those_of_each_alone() -> None:
    table: Any = copy.deepcopy(QUESTIONS["sites"])
    for site in table["site"]:
        site["power_mw"] *= 0.1
    instance = Instance.model_validate(table)
    assert coopt.solve(instance, reasons=False).status == "infeasible"
    *alone, first = coopt.explain(instance).relaxations
    assert {len(one.changes) for one in alone} == {1}
    assert [change.limit for change in first.changes] == [f"site[{i}].power_mw" for i in range(len(table["site"]))]
    shares = [change.share for change in first.changes if change.share is not None]
    assert shares == pytest.approx([shares[0]] * len(table["site"]), rel=1e-4)
    for factor, status in ((1.0, "optimal"), (1 - 2 * SEARCHED, "infeasible")):
        for site, change in zip(table["site"], first.changes, strict=True):
            site["power_mw"] = float(change.to) * factor
        assert coopt.solve(Instance.model_validate(table), reasons=False).status == status


def test_islands_at_sites_that_feed_too_few_need_power_and_no_shares() -> None:
    include = ["hb", "nic", "switch", "optics", "gpu"]
    sites = [{"name": name, "power_mw": 0.001} for name in ("oslo", "berlin")]
    table = question(sharing={"mode": "partition"}, objective={"include": include}, site=sites, **FEW)
    found = coopt.explain(Instance.model_validate(table))
    assert found.status == "infeasible"
    first = found.relaxations[0]
    for change in first.changes:
        table["site"][int(change.limit[5])]["power_mw"] = float(change.to)
    plan = coopt.solve(Instance.model_validate(table))
    assert (plan.status, plan.objective.value) == ("optimal", first.value)


def test_each_site_that_alone_is_to_blame_is_told_however_much_it_takes() -> None:
    """Other limits need less than four times what they are; one site needs 190 times its power."""
    powers = {"east_mw": 1e-4, "west_mw": 0.008}
    found = coopt.explain(growing_at(**powers))
    ways = {one.changes[0].limit: one for one in found.relaxations if len(one.changes) == 1}
    assert {"site[0].power_mw", "site[1].power_mw"} <= set(ways)
    for site, key in (("east_mw", "site[0].power_mw"), ("west_mw", "site[1].power_mw")):
        (change,) = ways[key].changes
        plan = coopt.solve(growing_at(**powers | {site: float(change.to)}))
        assert (plan.status, plan.objective.value) == ("optimal", ways[key].value)
        less = float(change.to) * (1 - 2 * SEARCHED)
        assert coopt.solve(growing_at(**powers | {site: less}), reasons=False).status == "infeasible"


def test_more_shares_and_fewer_gpus_are_ways_out_of_sites_that_feed_too_few() -> None:
    """The sentence why there is no plan names both, so that both are tried, and not what cannot help."""
    table = apart(cluster={"gpu": "h100-sxm", "gpus": 64, "shares": 1})
    messages: list[str] = []
    found = coopt.explain(Instance.model_validate(table), on_progress=lambda told: messages.append(told.message))
    ways = {one.changes[0].limit: one for one in found.relaxations if len(one.changes) == 1}
    for key, to in (("cluster.shares", "4"), ("cluster.gpus", "48")):
        (change,) = ways[key].changes
        assert change.to == to
        plan = coopt.solve(load(table, {key: int(to)}))
        assert (plan.status, plan.objective.value) == ("optimal", ways[key].value)
    assert coopt.solve(load(table, {"cluster.shares": 2}), reasons=False).status == "infeasible"
    assert coopt.solve(load(table, {"cluster.gpus": 56}), reasons=False).status == "infeasible"
    assert {with_names(key, found.rows) for key in ways} <= {*messages}
    assert "cluster.gpu.hbm_gb" not in messages  # in no conflict, so that it cannot be enough
