"""A plan's report says what the plan says."""

from __future__ import annotations

import io

import pytest

from coopt.plan.evaluation import limit_checks
from coopt.report import words
from coopt.report.comparison import saving_sentence
from coopt.report.explanation import claim_text, narrowing, search_rows, stages
from coopt.report.parts import decision_rows, schedule, split, uplinks
from coopt.report.plan import plan_report
from coopt.report.sentence import headline
from coopt.report.tables import rendered


def text_of(*parts):
    return rendered(parts, io.StringIO())


def flat(text):
    return " ".join(text.split())


def changed(plan, **updates):
    return plan.model_copy(update=updates)


def test_an_infeasible_instance_is_explained(instance, plan):
    objective = changed(plan.objective, value=None, bound=None, gap=None)
    empty = changed(
        plan,
        status="infeasible",
        design=None,
        parts=(),
        cost=None,
        workloads=(),
        objective=objective,
        explanation=("Too slow.",),
    )
    text = text_of(*plan_report(instance, empty))
    assert text.startswith("No design meets the bounds; proven infeasible.\nToo slow.\n")
    assert "Bill of materials" not in text
    assert "Proof" not in text


def test_one_domain_needs_no_network(instance, plan):
    fabric = changed(plan.design.fabric, tiers=0, tier=(), planes=0, switch_count=0, transceiver_count=0)
    design = changed(plan.design, fabric=fabric)
    assert "without a network" in headline(instance, changed(plan, design=design))
    rows = dict(decision_rows(instance, design))
    assert rows["Fabric"] == "none, one HB domain holds every GPU"
    assert "Switch" not in rows
    assert "there is no network to compare" in text_of(*plan_report(instance, changed(plan, design=design)))


def test_the_decision_is_complete(instance, plan):
    assert dict(decision_rows(instance, plan.design)) == {
        "HB domain": "128 x gh200-256, 256 GPUs each, all of them train",
        "GPUs": "32,768 x h100-sxm train",
        "Spares": "none",
        "Fabric": "rail-only, 2 tiers, 256 rails",
        "NIC": "cx7-400g, 1 per GPU",
        "Switch": "1,536 x 64x400g",
        "Transceivers": "131,072",
        "Uplinks": "32 up, 32 down at level 1",
        "Oversubscription": "1:1 (full bandwidth)",
        "Racks": "1,024 for HB domains",
    }


def test_spares_are_said_to_be_paid_for(instance, plan):
    domain = changed(plan.design.hb_domain, active=250)
    rows = dict(decision_rows(instance, changed(plan.design, hb_domain=domain, spare_gpus=768, racks=None)))
    assert rows["Spares"] == "768 GPUs idle, paid for"
    assert rows["HB domain"].endswith("250 of them train")
    assert rows["Racks"] == "not known for this HB domain"


def test_one_tier_has_no_uplinks(plan):
    only = changed(plan.design.fabric.tier[1], level=1)
    assert uplinks(changed(plan.design, fabric=changed(plan.design.fabric, tier=(only,)))) == "none, one tier"


def test_the_split_is_in_words(plan):
    assert split(plan.workloads[0]) == "TP 8 (8 in the domain x 1 across), PP 64 (8 x 8), DP 64 (4 x 16)"


def test_context_parallelism_is_named_where_there_is_some(plan):
    run = changed(plan.workloads[0], mapping=changed(plan.workloads[0].mapping, cp=2), placement={"cp": (2, 1)})
    assert split(run).endswith("CP 2 (2 x 1)")


def test_the_schedule_is_in_words(plan):
    said = "micro-batch 1, 2 interleaved chunks, recompute none, sequence parallelism on, ZeRO 1"
    assert schedule(plan.workloads[0].mapping, "1f1b") == said
    assert schedule(plan.workloads[0].mapping, "dualpipe") == f"DualPipe, {said}"
    assert schedule(changed(plan.workloads[0].mapping, pp=1), "dualpipe") == said


def test_the_breakdown_ends_with_the_iteration_time(instance, plan):
    lines = text_of(*plan_report(instance, plan)).splitlines()
    assert ["iteration", "11.82", "s", "100.0%"] in [line.split() for line in lines]
    assert ["layers,", "compute", "8.000", "s", "67.7%"] in [line.split() for line in lines]
    assert not any("pipeline traffic" in line for line in lines)  # takes no time


def test_every_bound_has_its_distance(instance, plan):
    checks = {check.name: check for check in limit_checks(instance, plan.design, plan.cost, plan.workloads)}
    without = ("power without the GPUs", "purchase without the GPUs")
    assert set(checks) == {"time, pre-training", "memory, pre-training", *without, "racks"}
    assert all(check.ok for check in checks.values())
    assert checks["power without the GPUs"].value == pytest.approx(2.326528)
    text = flat(text_of(*plan_report(instance, plan)))
    assert "time, pre-training 11.82 s 12.00 s 0.1766 s 1.5% yes" in text
    assert "purchase without the GPUs $94,306,304 $200,000,000 $105,693,696 52.8% yes" in text


def test_a_missed_bound_is_said_in_capitals(instance, plan):
    late = changed(plan.workloads[0], iteration_time_s=13.0)
    text = text_of(*plan_report(instance, changed(plan, workloads=(late,))))
    assert "13.00 s 12.00 s -1.000 s -8.3% NO" in flat(text)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(2.326528, "MW", "2.327 MW"), (-5.0, "USD", "-$5"), (1024.0, "racks", "1,024 racks"), (747.5, "W", "747.50 W")],
)
def test_measures_carry_their_unit(value, unit, text):
    assert words.with_unit(value, unit) == text


def test_the_saving_is_in_dollars_watts_and_percent(plan, baseline):
    assert saving_sentence(plan.cost, baseline.cost) == (
        "Against the cheapest any-to-any network of full bandwidth, "
        "this plan saves $58.5 M (38.3%) and 1.46 MW (38.5%)."
    )


@pytest.mark.parametrize(
    ("usd", "w", "says"),
    [
        (100.0, 100.0, "costs and draws the same"),
        (50.0, 200.0, "adds $50 (100.0%) and saves 100 W (50.0%)"),
        (50.0, 50.0, "adds $50 (100.0%) and 50.0 W (100.0%)"),
        (0.0, 0.0, "adds $100 and 100 W"),
    ],
)
def test_a_dearer_plan_does_not_claim_to_save(plan, usd, w, says):
    mine = changed(plan.cost, capex_usd=100.0, power_w=100.0)
    sentence = saving_sentence(mine, changed(plan.cost, capex_usd=usd, power_w=w))
    assert sentence.replace("$50.0", "$50").endswith(f"this plan {says}.")


def test_without_a_baseline_no_saving_is_stated(instance, plan):
    text = text_of(*plan_report(instance, plan, None))
    assert "so no saving is stated" in flat(text)
    assert "saves" not in text


def test_the_search_narrows_down(plan):
    assert narrowing(plan.solver) == (
        "289,000 enumerated, 12,000 do not fit into memory, 276,909 no better than another, "
        "5 dropped by weather, 91 kept"
    )


def test_the_proof_has_value_bound_and_gap(plan):
    assert claim_text(plan.objective) == "capex: value $94,306,304, lower bound $94,306,304, gap 0.0%"
    watts = changed(plan.objective, kind="power", value=1000.0, bound=None, gap=None)
    assert claim_text(watts) == "power: value 1,000 W"


def test_only_dollars_and_watts_are_rounded_to_whole_ones(plan):
    of = {"value": 6.6243, "bound": None, "gap": None}
    assert claim_text(changed(plan.objective, kind="tco", **of), whole=True) == "tco: value $7"
    assert claim_text(changed(plan.objective, kind="time", **of), whole=True) == "time: value 6.624 s an iteration"


def test_stages_that_take_no_time_are_left_out(plan):
    assert stages(plan.timing_s) == "60.02 s (model 0.01 s, columns 0.40 s, handover 0.50 s, solve 59.00 s)"


def test_the_outcome_names_why_a_search_stopped(instance, plan):
    assert dict(search_rows(instance, plan))["Outcome"] == "optimal"
    stopped = changed(plan, status="feasible", stop_reason="time limit")
    assert dict(search_rows(instance, stopped))["Outcome"] == "feasible (time limit)"


def test_bill_and_totals_are_those_of_the_plan(instance, plan):
    text = flat(text_of(*plan_report(instance, plan)))
    assert "64x400g switch 1,536 44,416 68,222,976 747 1,147,392" in text
    assert "400g-199 optics 131,072 199 26,083,328 9 1,179,648" in text
    assert "total 94,306,304 2,326,528" in text
