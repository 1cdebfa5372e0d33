"""A plan that was written by hand: its first sentence, its facts, and what its report and its screen show."""

import io

import pytest

import coopt
from coopt.plan.explanation import Explanation, PriceRange
from coopt.plan.schema import Alternative
from coopt.report.comparison import STOPS, differences, runners_tables, saving_text
from coopt.report.explanation import explanation_tables, narrowing, search_rows, stages
from coopt.report.facts import claim_text, plan_facts, schedule, split, uplinks
from coopt.report.plan import headline, plan_report
from coopt.report.screen import plan_screen
from coopt.report.words import of_group, percent, rendered, with_unit
from tests.changes import NOTHING_BUILT, with_part
from tests.conftest import ask


def changed(record, **updates):
    return record.model_copy(update=updates)


def text_of(pieces):
    return " ".join(rendered(pieces, io.StringIO()).split())


def network(instance, plan):
    return {fact.name: fact.shown for fact in of_group(plan_facts(instance, plan), "network")}


def test_an_optimal_plan_leads_with_decision_price_and_proof(instance, plan):
    assert headline(instance, plan) == (
        "Build 128 x gh200-256 joined by a 2-tier rail-only network, for $94.3 M without the GPUs;"
        " proven optimal in coopt's model (error 7.1% by measured runs)."
    )
    within = changed(plan, objective=changed(plan.objective, gap=0.008))
    assert "0.8%" in headline(instance, within).rpartition(";")[2]


def test_the_price_is_the_one_that_was_minimised(instance, plan):
    for kind, figure in {"power": "2.33 MW", "tco": "$102 M", "capex": "$94.3 M"}.items():
        assert figure in headline(instance, changed(plan, objective=changed(plan.objective, kind=kind)))


def test_idle_gpus_that_are_paid_for_are_no_gpus_left_out(instance, plan):
    idle = changed(plan.cost.items[0], name="gb200", idle=True, usd=33_000.0)
    cost = changed(plan.cost, items=(*plan.cost.items, idle))
    assert "GPUs that train;" in headline(instance, with_part(plan, cost=cost))
    phases = [{"year": 2026, "gpus": 20}, {"year": 2028, "gpus": 40}]
    work = {"workload__0__global_batch": 40, "workload__0__max_iteration_time_s": 100.0}
    grown = ask(cluster__gpus=40, phase=phases, network__hb_domains="hgx-h100-8", network__fabrics="rail-only", **work)
    assert "GPUs that train;" in headline(grown, coopt.solve(grown))


def test_a_stopped_search_says_value_gap_and_time(instance, plan):
    claim = changed(plan.objective, bound=92.9e6, gap=0.015)
    stopped = changed(plan, status="feasible", stop_reason="time limit", objective=claim)
    said = headline(instance, stopped)
    assert all(part in said for part in ("(time limit)", "$94.3 M", "gap 1.5%", "60.0 s"))
    assert "optimal" not in said
    assert dict(search_rows(instance, stopped))["Outcome"] == "feasible (time limit)"
    assert dict(search_rows(instance, plan))["Outcome"] == "optimal"


def test_a_search_that_found_nothing_claims_no_more_than_its_bound(instance, plan):
    for bound, end in ((None, "is proven."), (94.3e6, " $94.3 M.")):
        claim = changed(plan.objective, value=None, bound=bound, gap=None)
        empty = changed(plan, **NOTHING_BUILT | {"status": "unknown", "objective": claim})
        assert headline(instance, empty).endswith(end)


def test_without_a_plan_the_reason_stands_in_its_place(instance, plan):
    claim = changed(plan.objective, value=None, bound=None, gap=None)
    empty = changed(plan, **NOTHING_BUILT | {"status": "infeasible", "objective": claim, "explanation": ("Why.",)})
    for report in (plan_report, plan_screen):
        first, reason, *rest = rendered(report(instance, empty), io.StringIO()).splitlines()
        assert "infeasible" in first
        assert reason == "Why."
        assert not any(word in line for line in rest for word in ("Bill", "Objective", "capex"))


def test_the_decision_is_complete(instance, plan):
    assert network(instance, plan) == {
        "HB domains": "128 x gh200-256 of 256 GPUs, 1,024 racks",
        "GPUs": "32,768 x h100-sxm train",
        "Network": "rail-only, 2 tiers, 256 rails, full bandwidth",
        "NIC": "1 x cx7-400g per GPU",
        "Switch": "1,536 x 64x400g",
        "Transceivers": "131,072",
        "Uplinks": "32 up, 32 down at level 1",
        "Power": "2.33 MW",
    }


def test_one_domain_needs_no_network(instance, plan):
    fabric = changed(plan.design.fabric, tiers=0, tier=(), planes=0, switch_count=0, transceiver_count=0)
    alone = with_part(plan, design=changed(plan.design, fabric=fabric))
    assert "without a network" in headline(instance, alone)
    assert network(instance, alone)["Network"].startswith("none")
    assert "Switch" not in network(instance, alone)


def test_idle_gpus_and_routing_are_facts(instance, plan):
    domain = changed(plan.design.hb_domain, active=250)
    design = changed(plan.design, gpus=32000, hb_domain=domain, spare_gpus=768, spare_domains=3, racks=None)
    design = changed(design, fabric=changed(design.fabric, routing="ecmp", oversubscription=7 / 3))
    facts = network(instance, with_part(plan, design=design))
    assert facts["GPUs"].endswith("(3 domains standing by)")
    assert facts["In each HB domain"].startswith("250 of 256")
    assert "rack" not in facts["HB domains"]
    assert facts["Network"].endswith("2.33:1 oversubscribed")
    assert "ECMP" in facts["Routing"]
    assert "at 2.33:1" in headline(instance, with_part(plan, design=design))


def test_uplinks_are_told_level_by_level(plan):
    fabric = plan.design.fabric
    only = changed(fabric.tier[1], level=1)
    assert not uplinks(changed(plan.design, fabric=changed(fabric, tier=(only,))))
    assert uplinks(changed(plan.design, fabric=changed(fabric, pod_bundle=4))).endswith("bundles of 4 links")


def test_split_and_schedule_are_in_words(plan):
    (run,) = plan.workloads
    assert split(run) == "TP 8 (8 in the domain x 1 across), PP 64 (8 x 8), DP 64 (4 x 16)"
    contexts = changed(run, mapping=changed(run.mapping, cp=2), placement={"cp": (2, 1)})
    assert split(contexts).endswith("CP 2 (2 x 1)")
    said = schedule(run.mapping, "1f1b")
    assert all(part in said for part in ("micro-batch 1", "2 interleaved", "recompute none", "ZeRO 1"))
    assert schedule(run.mapping, "dualpipe") == f"DualPipe, {said}"
    assert schedule(changed(run.mapping, pp=1), "dualpipe") == said


def test_the_report_holds_bill_times_limits_and_proof(instance, plan):
    text = text_of(plan_report(instance, plan))
    for figures in (
        "64x400g switch 1,536 44,416 68,222,976 747 1,147,392",
        "400g-199 optics 131,072 199 26,083,328 9 1,179,648",
        "total 94,306,304 2,326,528",
        "layers, compute 8.000 s 67.7%",
        "iteration 11.82 s 100.0%",
        "time, pre-training 11.82 s 12.00 s 0.1766 s 1.5% close",
        "$94,306,304 $200,000,000 $105,693,696 52.8% yes",
    ):
        assert figures in text
    assert "pipeline traffic" not in text  # takes no time
    late = changed(plan.workloads[0], iteration_time_s=13.0)
    assert "13.00 s 12.00 s -1.000 s -8.3% NO" in text_of(plan_report(instance, with_part(plan, workloads=(late,))))


def test_measures_carry_their_unit():
    shown = {
        (2.326528, "MW"): "2.327 MW",
        (-5.0, "USD"): "-$5",
        (1024.0, "racks"): "1,024 racks",
        (747.5, "W"): "747.50 W",
    }
    assert {measure: with_unit(*measure) for measure in shown} == shown


def test_a_dearer_plan_does_not_claim_to_save(plan):
    mine = changed(plan.cost, capex_usd=100.0, power_w=100.0)
    for usd, w, says in (
        (100.0, 100.0, "the same cost and power."),
        (50.0, 200.0, "and saves 100 W (50.0%)."),
        (50.0, 50.0, "adds $50.0 (100.0%) and 50.0 W (100.0%)."),
        (0.0, 0.0, "adds $100 and 100 W."),
        (200.0, 125.0, "saves $100 (50.0%) and 25.0 W (20.0%)."),
    ):
        assert saving_text(mine, changed(plan.cost, capex_usd=usd, power_w=w)).endswith(says)


def test_a_saving_is_stated_against_a_baseline_alone(instance, plan, baseline):
    figures = "saved 58,523,648 (38.3%) 1,455,104 (38.5%)"
    assert figures in text_of(plan_report(instance, plan, baseline))
    assert "saves" not in text_of(plan_report(instance, plan, None))


def test_the_search_is_told_in_figures(plan):
    assert narrowing(plan.solver) == (
        "289,000 enumerated, 12,000 do not fit into memory, 276,909 are no better than another, "
        "5 dropped by weather, 91 kept"
    )
    assert stages(plan.timing_s) == "60.02 s (model 0.01 s, columns 0.40 s, handover 0.50 s, solve 59.00 s)"
    assert claim_text(plan.objective) == "capex: value $94,306,304, lower bound $94,306,304, gap 0.0%"
    assert claim_text(changed(plan.objective, kind="power", value=1000.0, bound=None, gap=None)).endswith("1,000 W")
    of = {"value": 6.6243, "bound": None, "gap": None}
    assert claim_text(changed(plan.objective, kind="tco", **of), whole=True).endswith(" $7")
    assert "6.624 s" in claim_text(changed(plan.objective, kind="time", **of), whole=True)


@pytest.fixture
def dearer(plan):
    """The plan with half as many GPUs in each domain, for 1% more."""
    domain = changed(plan.design.hb_domain, name="other-hb", active=200)
    cost = changed(plan.cost, capex_usd=1.01 * plan.cost.capex_usd)
    design = changed(plan.design, hb_domain=domain)
    one = Alternative(objective=plan.objective, design=design, cost=cost, workloads=plan.workloads)
    return changed(plan, alternatives=(one,), alternatives_stop="no other design")


def test_a_runner_up_shows_what_differs_and_what_it_costs_more(instance, plan, dearer):
    (row,) = next(iter(runners_tables(dearer))).rows
    assert (row[0], row[3]) == ("2", "1.0%")
    assert "with 200 active" in row[1]
    assert row[-1] == percent(min(run.slack for run in dearer.workloads))
    for report in (plan_report, plan_screen):
        assert ("Runners-up" in text_of(report(instance, dearer))) > ("Runners-up" in text_of(report(instance, plan)))


def test_every_reason_to_stop_is_told(plan):
    for stop, words in STOPS.items():
        (said,) = runners_tables(changed(plan, alternatives_stop=stop))
        assert str(said).endswith(words)


def test_differences_are_named_by_what_stands_in_place(plan, dearer):
    (other,) = dearer.alternatives
    fabric = changed(dearer.design.fabric, tiers=0, tier=())
    assert differences(dearer.design, changed(dearer.design, fabric=fabric)) == "no network"
    assert differences(dearer.design, dearer.design).startswith("other optics")
    assert "other-hb" in differences(dearer.design, other.design)


def test_what_takes_over_outside_a_price_says_what_it_replaces(plan):
    fabric = plan.design.fabric
    (optic,) = dict.fromkeys(name for tier in fabric.tier for name in tier.optics)
    leaf, *above_leaf = fabric.tier
    new = {"optic": "new-optic", "optic_below": None}
    changes = {
        "switches box": {"switch": changed(fabric.switch, name="box")},
        f"new-optic in place of {optic}": {"tier": tuple(changed(tier, **new) for tier in fabric.tier)},
        "new-optic as well": {"tier": (changed(leaf, **new | {"optic_below": optic}), *above_leaf)},
        "other counts": {},
    }
    for said, change in changes.items():
        design = changed(plan.design, fabric=changed(fabric, **change))
        price = PriceRange(item="box", unit="USD", now=5.0, low=4.0, high=6.0, below=design, above=None)
        told = Explanation(instance=plan.instance, status="optimal", kind="capex", design=plan.design, prices=(price,))
        assert str(explanation_tables(told)["prices"].rows[0][1]).startswith(f"below: {said}")


def test_only_where_the_highest_price_that_was_tried_ends_a_range_a_limit_does(plan):
    kept = {"item": "box", "unit": "USD", "now": 5.0, "low": 4.0, "high": 6.0, "below": None, "above": None}
    prices = tuple(PriceRange(**kept, tried=(0.0, most)) for most in (9.0, 6.0))
    told = Explanation(instance=plan.instance, status="optimal", kind="capex", design=plan.design, prices=prices)
    assert [row[1].split("; ") for row in explanation_tables(told)["prices"].rows] == [
        ["below: another plan", "above: another plan"],
        ["below: another plan", "above: the plan exceeds a limit"],
    ]
