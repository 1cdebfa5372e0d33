"""Explanations agree with solving what they name; regrets are measured from the costs of the question."""

import copy
import json
import math
import re
from functools import cache
from typing import Any

import pytest

import coopt
from coopt.explain.bounds import STEP, limits_on_use
from coopt.explain.joint import ALIKE
from coopt.explain.prices import Price, Turns, prices_of
from coopt.explain.rivals import lists_of_choices, times_of
from coopt.explain.sentences import REGRETS, REGRETS_OF_WAYS_OUT, of_prices, seen_from
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.plan.explanation import Bound, Explanation, PriceRange
from coopt.report.comparison import differences
from coopt.report.explanation import explanation_report, explanation_tables
from coopt.report.words import rendered
from coopt.solving.resolves import Resolver, UnprovenError
from tests import kinds
from tests.conftest import FEW_MAPPINGS, ask, question
from tests.explain.changed import at_price, bounded, network, only, way_out, with_key, without
from tests.solving.direct.test_direct_links import linked
from tests.solving.fleet_oracle import least_costs, least_excess
from tests.solving.sites.test_sites import apart

HAIR = 1e-8
KINDS = ("partition", "phased", "sites", "worst-case", "direct")
HGX: dict[str, Any] = {"network__hb_domains": "hgx-h100-8"}
PLAIN = {"micro_batch": [1], "zero": [0], "recompute": ["none"]}
SHORTER = {"network__fabrics": ["direct", "clos"], "network__panels": ["patch-panel"], "workload__0__mapping": PLAIN}
ISLANDS = kinds.PARTITION | {"workload": [one | {"mapping": PLAIN} for one in kinds.PARTITION["workload"]]}
QUESTIONS = kinds.QUESTIONS | {
    "partition": question(**ISLANDS, network__fabrics=["rail-only", "clos"]),
    "sites": apart(**kinds.ALIKE, **HGX, network__fabrics=["rail-only", "clos"], workload__0__mapping=PLAIN),
    "direct": linked(**kinds.ALIKE, **SHORTER),
    "rails": question(**kinds.PARTITION, **HGX, network__fabrics="rail-only"),
}
"""With shorter lists where each search takes long."""


def changed(kind: str, key: str, value: Any) -> Instance:
    return with_key(QUESTIONS[kind], key, value)


def asked(kind: str) -> Instance:
    return Instance.model_validate(QUESTIONS[kind])


@cache
def explained(kind: str) -> Explanation:
    return coopt.explain(asked(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_explained_by_what_solving_changed_questions_says(kind: str) -> None:
    found = explained(kind)
    _check_what_is_shown(kind, found)
    _check_bounds(kind, found)
    _check_the_closest(found)
    _check_rivals(kind, found)
    _check_prices(kind, found)


def _check_what_is_shown(kind: str, found: Explanation) -> None:
    plan = coopt.solve(asked(kind))
    assert (found.status, found.value, found.untried) == ("optimal", plan.objective.value, ())
    keys = {one.limit for one in found.bounds}
    assert {"workload[0].max_iteration_time_s", "limits.power_mw", "cluster.gpu.hbm_gb"} <= keys
    shown = rendered(explanation_report(found))
    assert "each bound costs" in shown
    assert "does not bind" in shown
    named = [key for key in keys if re.match(r"(site|phase)\[", key)]
    assert bool(named) == (kind in ("sites", "phased"))
    assert all(key not in shown for key in named if kind == "sites")
    assert all(f"site['{one.name}']" in shown for one in asked(kind).site)


def test_a_core_stays_at_a_rate_near_none() -> None:
    alone = QUESTIONS["rails"] | {"workload": [one | {"gpus": [16]} for one in QUESTIONS["rails"]["workload"]]}
    found = coopt.explain(with_key(alone, "sharing.core", {"switch": "16-port", "gbit_s_per_gpu": 200.0}))
    (bound,) = [one for one in found.bounds if "sharing.core" in one.limit]
    (said,) = [text for text in found.sentences if text.startswith(bound.limit)]
    assert bound.binds
    assert bound.used is None
    assert bound.step == STEP
    assert "core rate of nearly 0 Gbit/s" in said


def _check_bounds(kind: str, found: Explanation) -> None:
    """A bound is worth what solving without it says."""
    for one in found.bounds:
        if one.limit not in ("cluster.gpu.hbm_gb", "cluster.gpus") and not one.limit.startswith("robust"):
            _check_bound(kind, found.value, one)


def _check_bound(kind: str, value: float, one: Bound) -> None:
    whole = one.unit in ("channels", "products")
    loose = coopt.solve(changed(kind, one.limit, _number(one.bound * (2 if "site" in one.limit else 50), whole)))
    if not one.binds:
        assert loose.objective.value == pytest.approx(value, rel=1e-9), one.limit
    else:
        assert loose.objective.value >= one.without.value * (1 - 1e-9)
    assert one.used <= one.bound * (1 + 1e-9)
    if one.tighter is not None:
        assert one.tighter.bound < one.used
        if one.step:  # a hair less lies within the tolerance of rows
            assert one.tighter.bound == pytest.approx(one.used * (1 - STEP))
            return
        tight = coopt.solve(changed(kind, one.limit, _number(one.used - 1 if whole else one.used * (1 - HAIR), whole)))
        assert tight.objective.value == pytest.approx(one.tighter.value, rel=1e-9)


def _number(value: float, whole: bool) -> float:
    return round(value) if whole else value


def _check_the_closest(found: Explanation) -> None:
    """Of several networks only plans that were compared are said to be close."""
    said = [text for text in found.sentences if text.startswith("The closest")]
    assert len(said) == (found.runner_up is not None)
    assert not any("runner-up" in text for text in found.sentences)
    if found.runner_up is not None:
        values = [one.value for one in found.rivals if one.value is not None and one.extra]
        assert found.runner_up.value <= min(values, default=math.inf)


def _check_rivals(kind: str, found: Explanation) -> None:
    """Rivals are what shorter lists cost."""
    tables = explanation_tables(found)
    shown = [row[1] for row in tables["rivals"].rows] if "rivals" in tables else []
    assert shown == [f"without {one.choice}" if one.excluded else one.choice for one in found.rivals]
    for one in found.rivals:
        shorter = (without if one.excluded else only)(asked(kind), one.part, one.choice)
        if kind == "direct" and "direct" not in shorter.network.fabrics:
            shorter = network(shorter, panels=())
        assert coopt.solve(shorter, reasons=False).objective.value == one.value
        assert one.extra is None or one.extra == one.value - found.value
        assert one.why
    _check_what_costs_nothing_is_left_out(kind, found)
    _check_each_is_told_once(found)


def _check_what_costs_nothing_is_left_out(kind: str, found: Explanation) -> None:
    """Only without what the plan does not have it costs no more, as solving without it says."""
    instance, told = asked(kind), {(one.part, one.choice) for one in found.rivals if one.excluded}
    untold = [one for listed in lists_of_choices(instance) for one in listed if (one.part, one.name) not in told]
    assert untold or not found.rivals
    for choice in untold:
        assert coopt.solve(choice.excluded(instance)).objective.value == pytest.approx(found.value, rel=1e-8)


def _check_each_is_told_once(found: Explanation) -> None:
    """What a list costs without a choice is left out of the sentences where another choice alone costs the same."""
    for one in found.rivals:
        if one.excluded and one.extra is not None:
            others = (other for other in found.rivals if other.part == one.part and not other.excluded)
            alone = any(other.extra == one.extra for other in others)
            assert alone != any(f"{one.part} without {one.choice}:" in said for said in found.sentences)
        if one.excluded and one.extra is None:
            alone = any(other.why == one.why for other in found.rivals if other.part == one.part and not other.excluded)
            assert alone != any(said.startswith(one.premise) for said in found.sentences)


def test_a_domain_alone_has_no_rival_that_differs_in_its_network_only() -> None:
    found = coopt.explain(ask(**HGX, cluster__gpus=8, network__fabrics=["rail-only", "clos"], limits={"racks": 2}))
    assert found.design is not None
    assert found.design.fabric.tiers == 0
    assert found.runner_up is None
    assert {one.part for one in found.rivals} <= {"network.fabrics"}
    other = found.design.fabric.model_copy(update={"kind": "clos"})
    assert "network" not in seen_from(found.design, found.design.model_copy(update={"fabric": other}))


def test_a_limit_binds_alone_only_where_no_other_has_to_give_as_well() -> None:
    """Slow NICs are enough for 24 GPUs, which in turn take more racks or more power than there are: more GPUs in the
    first phase let the second one have more, of which power says nothing."""
    mapping = FEW_MAPPINGS | {"tp": 8, "pp": 1, "micro_batch": 8, "zero": 0}
    domains = [("cool", 700, 3), ("hot", 1200, 1)]
    rates = [(400, 10_000), (64, 1000)]
    table = question(
        cluster__gpus=16, workload__0__mapping=mapping, workload__0__global_batch=96, workload__0__gpus=[16, 24],
        workload__0__max_iteration_time_s=0.48, network__fabrics="rail-only",
        network__hb_domains=[
            {"name": name, "size": 8, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": w, "racks": racks}
            for name, w, racks in domains
        ],
        network__nics=[{"name": f"nic-{rate}", "gbit_s": rate, "usd": usd, "w": 20} for rate, usd in rates],
        network__switches=[
            {"name": f"box-{rate}", "radix": 32, "port_gbit_s": rate, "usd": 1000, "w": 100} for rate, _ in rates
        ],
        network__optics=[
            {"name": f"optic-{rate}", "gbit_s": rate, "usd": 10, "w": 5, "reach_m": 500} for rate, _ in rates
        ],
        sharing={"mode": "partition"},
        phase=[
            {"year": 2026, "gpus": 16, "workloads": {"name": "w", "max_iteration_time_s": 2.0}},
            {"year": 2028, "gpus": 16, "price": {"nic": 0.5}},
        ],
        limits={"power_mw": 0.022, "racks": 7},
    )  # fmt: skip
    found = coopt.explain(Instance.model_validate(table))
    binds = {bound.limit: bound.binds for bound in found.bounds}
    for key, ample in {"limits.power_mw": 1.0, "limits.racks": 1000}.items():
        assert coopt.solve(with_key(table, key, ample)).objective.value == found.value
        assert not binds[key]
    both = table | {"limits": {"power_mw": 1.0}, "cluster": table["cluster"] | {"gpus": 24}}
    more = both | {"phase": [table["phase"][0], table["phase"][1] | {"gpus": 24}]}
    assert coopt.solve(Instance.model_validate(more)).objective.value < found.value


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_that_has_to_give_is_enough_and_hardly_more(kind: str) -> None:
    table: Any = copy.deepcopy(QUESTIONS[kind])
    table["workload"][0]["max_iteration_time_s"] *= 0.01
    instance, limit = Instance.model_validate(table), "workload[0].max_iteration_time_s"
    if kind == "sites":  # which takes long to explain
        one, change = way_out(instance, limit)
    else:
        found = coopt.explain(instance)
        assert found.status == "infeasible"
        (one,) = [one for one in found.relaxations if one.changes[0].limit == limit]
        (change,) = one.changes
        named = "workload['first']" if len(instance.workload) > 1 else "workload[0]"
        assert any(f"enough to set {named}" in sentence for sentence in found.sentences)
    enough = coopt.solve(bounded(instance, 0, float(change.to)))
    assert (enough.status, enough.objective.value) == ("optimal", one.value)
    less = bounded(instance, 0, change.least * (1 - HAIR))
    assert coopt.solve(less, reasons=False).status == "infeasible"


def test_two_limits_are_moved_together_where_neither_is_enough() -> None:
    table: Any = copy.deepcopy(QUESTIONS["worst-case"])
    table["workload"][0]["max_iteration_time_s"] = 0.01
    table["limits"] = {"power_mw": 1e-4}
    instance = Instance.model_validate(table)
    found = coopt.explain(instance)
    pairs = [tuple(change.limit for change in one.changes) for one in found.relaxations]
    assert ("workload[0].max_iteration_time_s", "limits.power_mw") in pairs
    for one in found.relaxations:
        assert len(one.changes) > 1
    assert found.relaxations[0].notes == (ALIKE,)
    assert any(sentence.endswith(ALIKE) for sentence in found.sentences)
    first = found.relaxations[pairs.index(("workload[0].max_iteration_time_s", "limits.power_mw"))]
    both = {change.limit: float(change.to) for change in first.changes}
    table["workload"][0]["max_iteration_time_s"] = both["workload[0].max_iteration_time_s"]
    table["limits"] = {"power_mw": both["limits.power_mw"]}
    assert coopt.solve(Instance.model_validate(table)).objective.value == first.value


def test_a_list_of_sizes_that_alone_is_to_blame_is_named() -> None:
    instance = changed("rails", "workload[0].gpus", [63])
    assert coopt.solve(instance, reasons=False).status == "infeasible"
    found = coopt.explain(instance)
    (one,) = [one for one in found.relaxations if one.changes[0].limit == "workload[0].gpus"]
    (change,) = one.changes
    assert (change.now, change.to[:5]) == ("[63]", "[63, ")
    wider = changed("rails", "workload[0].gpus", json.loads(change.to))
    assert coopt.solve(wider).objective.value == one.value
    assert any("workload['first'].gpus = [63, " in sentence for sentence in found.sentences)


def test_the_plan_of_another_question_is_refused() -> None:
    with pytest.raises(InstanceError, match="another instance"):
        coopt.explain(asked("sites"), coopt.solve(asked("phased")))


def test_a_plan_without_the_phases_of_its_question_is_refused() -> None:
    plan = coopt.solve(asked("phased"))
    ties = plan.couplings.model_copy(update={"growth": ()})
    with pytest.raises(InstanceError, match=r"couplings\.growth"):
        coopt.explain(asked("phased"), plan.model_copy(update={"couplings": ties}))


def test_what_time_does_not_suffice_for_is_named() -> None:
    found = coopt.explain(asked("partition"), time_limit_s=1e-9)
    assert (found.status, found.bounds) == ("unknown", ())
    (sentence,) = found.sentences
    assert "(time limit)" in sentence


def test_questions_left_are_named_by_their_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = Resolver._solved

    def few(self: Resolver, *question: Any) -> Any:
        if self.solves >= 3:
            raise UnprovenError("time limit")
        return solved(self, *question)

    monkeypatch.setattr(Resolver, "_solved", few)
    found = coopt.explain(asked("phased"))
    assert found.status == "optimal"
    assert "the price of 8-port" in found.untried
    assert "the price of 8-port" in found.sentences[-1]


def test_the_nearest_price_is_the_nearest_of_those_that_were_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was not answered, or is left out for its volume prices, may be nearer."""
    range_of, slow = Turns._range, list[str]()

    def few(self: Turns, price: Price, *more: Any) -> Any:
        if price.item in slow:
            raise UnprovenError("time limit")
        return range_of(self, price, *more)

    monkeypatch.setattr(Turns, "_range", few)
    whole = explained("phased")
    (said,) = (text for text in whole.sentences if text.startswith("The plan is most sensitive "))
    slow = [one.item for one in whole.prices if f"the price of {one.item}:" in said]
    assert slow
    assert any("of those examined" in text for text in coopt.explain(asked("phased")).sentences)
    slow, usd = [], {"kind": "nic", "item": "cx7-400g", "from": [20], "usd": [700], "applies": "incremental"}
    volume = changed("rails", "sharing.discount", [usd])
    assert any("of those examined" in text for text in coopt.explain(volume).sentences)


def test_a_price_of_nothing_that_may_not_rise_is_named_as_the_nearest() -> None:
    free = {"item": "a", "unit": "USD", "now": 0.0, "low": 0.0, "high": 0.0, "below": None, "above": None}
    dear = free | {"item": "b", "now": 5.0, "high": 6.0}
    said = of_prices(None, [PriceRange(**dear), PriceRange(**free)])
    assert "price of a rises" in said


def test_what_is_only_as_good_at_a_price_of_nothing_does_not_take_over() -> None:
    study = coopt.explain(ask(objective={"minimize": "power"}, network__fabrics="rail-only"))
    assert all(price.low == 0.0 or price.low > 1e-6 for price in study.prices)
    assert all(price.below is None for price in study.prices if not price.low)


def test_a_range_that_a_limit_ends_was_tried_up_to_its_end() -> None:
    free = coopt.solve(ask(**HGX))
    capped = coopt.explain(ask(**HGX, limits={"capex_usd": free.cost.capex_usd * 1.001}))
    ended = [one for one in capped.prices if one.high is not None and one.above is None]
    assert ended
    assert all(one.tried == (0.0, one.high) for one in ended)


class OnlyTogether(Turns):
    """Unpaid prices of which several at nothing let in a plan that none does alone."""

    def __init__(self) -> None:
        pass

    def _without_taker(self, prices: Any) -> Any:
        return [*prices]

    def _undercut(self, prices: Any) -> Any:
        return len(prices) > 1


def test_unpaid_prices_that_only_together_let_in_a_plan_are_looked_at_by_halves() -> None:
    assert OnlyTogether()._unmoved([1, 2, 3]) == {1, 2, 3}


def _check_prices(kind: str, found: Explanation) -> None:
    """A price beyond its range brings another plan."""
    switches = {one.item: one for one in found.prices if one.item in ("8-port", "16-port")}
    assert switches or kind in ("direct", "sites")
    for item, one in switches.items():
        for end, inside, outside in ((one.low, 1 + 1e-3, 1 - 1e-2), (one.high, 1 - 1e-3, 1 + 1e-2)):
            if end:
                spent = [_spent(kind, item, end * factor) for factor in (inside, outside)]
                assert spent[0] != spent[1], (item, end)


def _spent(kind: str, item: str, usd: float) -> float:
    """Units of a switch in the cheapest plan at a price."""
    plan = coopt.solve(at_price(asked(kind), item, "USD", usd))
    return sum(line.count for line in plan.cost.items if line.item.startswith(item)) if plan.cost else 0.0


def regretting(kind: str, **limits: float) -> Instance:
    """The question of a kind at the least regret, with other limits."""
    table: Any = copy.deepcopy(QUESTIONS[kind])
    table.setdefault("robust", {}).update(aim="regret", prices={"switch": [0.2, 9.0], "nic": [0.5, 2.0]})
    table["limits"] = table["limits"] | limits
    return Instance.model_validate(table)


@pytest.fixture(scope="module")
def one_network() -> tuple[Instance, Explanation]:
    instance = regretting("regret")
    return instance, coopt.explain(instance)


def test_rivals_and_bounds_are_those_of_enumeration(one_network: tuple[Instance, Explanation]) -> None:
    instance, found = one_network
    costs, limits = least_costs(instance), {limit.key: limit for limit in limits_on_use(instance)}
    assert found.value == pytest.approx(least_excess(instance, costs), abs=1e-3)
    choices = {(one.part, one.name): one for entries in lists_of_choices(instance) for one in entries}
    for rival in found.rivals:
        choice = choices[rival.part, rival.choice]
        shorter = choice.excluded(instance) if rival.excluded else choice.as_only(instance)
        assert rival.value == pytest.approx(least_excess(shorter, costs), abs=1e-3), rival.choice
    for bound in found.bounds:
        for moved in (bound.tighter, bound.looser, bound.without):
            if moved is not None:
                question = limits[bound.limit].within(instance, moved.bound)
                assert moved.value == pytest.approx(least_excess(question, costs), abs=1e-3), bound.limit


def test_what_allows_less_is_never_cheaper_and_what_allows_more_never_dearer() -> None:
    found = coopt.explain(regretting("rails"))
    assert {bound.limit for bound in found.bounds if bound.binds} >= {"workload[0].max_iteration_time_s"}
    for bound in found.bounds:
        assert bound.tighter is None or bound.tighter.extra >= 0, bound.limit
        assert bound.looser is None or bound.looser.extra <= 0, bound.limit
    assert found.rivals
    assert all(rival.extra is None or rival.extra >= 0 for rival in found.rivals)


def test_regrets_are_called_regrets(one_network: tuple[Instance, Explanation]) -> None:
    _, found = one_network
    assert found.prices == ()
    assert (
        found.sentences[0] == f"{REGRETS} The largest regret of the plan is ${found.value:,.0f}, and no plan has less."
    )
    assert not any("%)" in sentence and "$" in sentence for sentence in found.sentences)


def test_regrets_of_ways_out_are_not_compared() -> None:
    found = coopt.explain(regretting("regret", power_mw=1e-4))
    assert found.status == "infeasible"
    assert found.relaxations
    assert REGRETS_OF_WAYS_OUT in found.sentences


def test_a_rival_takes_days_where_the_bound_is_one_of_days() -> None:
    days = {"max_iteration_time_s": None, "train_days": 30.0, "train_tokens": 1e12}
    dated = ask(workload=[ask().workload[0].model_dump(mode="json") | days])
    plan = coopt.solve(dated)
    ((part,), (run,)) = plan.parts, plan.runs
    slow = run.model_copy(update={"iteration_time_s": 2.0 * run.iteration_time_s})
    slower = plan.model_copy(update={"parts": (part.model_copy(update={"workloads": (slow,)}),)})
    (workload,) = dated.workload
    own, other = (workload.duration(one.iteration_time_s) for one in (run, slow))
    assert times_of((dated, plan), (dated, slower)) == f"training takes {other} in place of {own}"
    near = run.model_copy(update={"iteration_time_s": (1.0 + 1e-7) * run.iteration_time_s})
    alike = plan.model_copy(update={"parts": (part.model_copy(update={"workloads": (near,)}),)})
    assert times_of((dated, plan), (dated, alike)).endswith("in the plan")
    said = times_of((ask(), plan), (ask(), slower))
    assert said.startswith("an iteration takes")
    assert own not in said


def test_another_design_is_seen_by_whom_its_nics_serve() -> None:
    _, plan = kinds.solved("shared")
    assert plan.design is not None
    fabric = plan.design.fabric
    for key, seen in (("shared_by", "for 2 GPUs"), ("planes", "on 2 planes")):
        nic = fabric.nic.model_copy(update={key: 2})
        rival = plan.design.model_copy(update={"fabric": fabric.model_copy(update={"nic": nic})})
        assert seen in seen_from(plan.design, rival)
    spared = plan.design.model_copy(update={"spare_domains": 1})
    assert all("+ 1 spare" in said(plan.design, spared) for said in (seen_from, differences))


def test_an_optic_that_also_ends_channels_has_one_price() -> None:
    border = {
        "network.switches": "64x400g",
        "network.optics": ["400g-dr4", "400g-zr"],
        "sharing.core": {"switch": "64x400g", "optic": "400g-dr4", "gbit_s_per_gpu": 1},
        "wan.0.km": 80,
        "wan.0.optics": ["400g-zr", "400g-zr-plus"],
    }
    asked = coopt.load("instances/questions/two-sites.toml", border)
    (price,) = (one for one in prices_of(asked) if one.item == "400g-zr")
    dearer = price.with_price(asked, 5000.0)
    assert [optic.usd for optic in dearer.network.optics] == [635.0, 5000.0]
    assert [optic.usd for optic in dearer.wan[0].optics] == [5000.0, 6000.0]
    (of_channels,) = (one for one in prices_of(asked) if one.item == "400g-zr-plus")
    (link,) = of_channels.with_price(asked, 7000.0).wan
    assert (of_channels.now, [optic.usd for optic in link.optics][1:]) == (6000.0, [7000.0])
