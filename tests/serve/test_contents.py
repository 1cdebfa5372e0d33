"""What the page shows of plans of every kind."""

import json

import pytest

import coopt
from coopt.instance.schema import load
from coopt.report.catalog import NONE, OWN, TAG_WORDS, UNKNOWN
from coopt.report.fronts.files import front_contents
from coopt.serve.contents import plan_contents, verdict_contents
from coopt.solving.answer import solve
from coopt.solving.fronts.sweep import pareto
from coopt.verifier.audit import verify
from tests.conftest import question
from tests.kinds import QUESTIONS, solved
from tests.serve.conftest import INSTANCES


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_plan_of_every_kind_is_shown_whole(name):
    instance, plan = solved(name)
    shown = plan_contents(instance, plan)
    assert json.loads(json.dumps(shown, allow_nan=False)) == json.loads(json.dumps(shown))
    assert plan.cost is not None
    assert [figure["name"] for figure in shown["figures"][:3]] == ["Purchase", "Power", "With electricity"]
    assert shown["figures"][0]["number"] == plan.cost.capex_usd
    assert len(shown["bill"]["rows"]) == len(plan.cost.items)
    assert {row[0] for row in shown["origins"]["rows"]} == {item.item for item in plan.cost.items}
    assert UNKNOWN not in json.dumps(shown["origins"])
    assert len(shown["runs"]) == sum(len(part.workloads) for part in plan.parts)
    for run, of in zip(shown["runs"], [run for part in plan.parts for run in part.workloads], strict=True):
        assert sum(one["share"] for one in run["segments"]) == pytest.approx(100 * of.iteration_time_s / of.bound_s)
    assert {row[-1]["text"] for row in shown["margins"]["rows"]} == {"yes"}
    assert sum("time, " in row[0] for row in shown["margins"]["rows"]) == len(shown["runs"])
    assert max(shown["runs"][0]["segments"], key=lambda one: one["share"])["says"] in shown["runs"][0]["says"]
    switched = [part for part in plan.parts if part.design is not None and part.design.fabric.tiers]
    assert [drawn["name"] for drawn in shown["drawings"]] == [part.name for part in switched]
    assert all(drawn["svg"].startswith("<svg") and "style=" not in drawn["svg"] for drawn in shown["drawings"])
    assert shown["sections"]
    texts = [one["text"] for one in shown["sections"] if one["form"] == "text"]
    assert not {*texts} & {*shown["remarks"]}
    assert shown["bill_csv"].startswith("item,")
    assert any(said.startswith("Times: ") and "ff by " in said for said in shown["remarks"])
    grown = instance.phase[-1].year - instance.phase[0].year if instance.phase else 0
    assert shown["figures"][2]["note"] == f"total cost over {4 + grown:g} years"


def test_where_each_price_comes_from_is_told_with_the_quote(tmp_path):
    """A study is called one at once."""
    (tmp_path / "quotes.csv").write_text("kind,name,usd,source\nnic,cx7-400g,1480,quote of May\n", "utf-8")
    given = question(catalog={"files": [str(tmp_path / "quotes.csv")]}, network__hb_domains="h100-hb16")
    instance = coopt.load(given)
    shown = plan_contents(instance, solve(instance))
    origins = {row[0]: row[1:] for row in shown["origins"]["rows"]}
    assert "quote of May" in origins["cx7-400g"][0]
    assert origins["cx7-400g"][1].startswith(f"{TAG_WORDS['M']}: ")
    assert origins["cx7-400g"][1].endswith(" 25 W")
    assert "Rail-only" in origins["400g-199"][0]
    assert "h100-hb16" in shown["explanation"][0]


def test_a_price_of_a_phase_is_that_of_the_catalog_by_the_factor_of_the_phase():
    origins = {row[0]: row[1:] for row in plan_contents(*solved("phased"))["origins"]["rows"]}
    first, later = origins["cx7-400g, 2026"], origins["cx7-400g, 2029.5"]
    assert first[0].startswith(TAG_WORDS["M"])
    assert later == [f"0.5 times this price: {first[0]}", first[1]]
    assert origins["retrofit links, 2029.5"] == [OWN, NONE]


def test_a_network_that_grows_is_one_and_says_what_each_phase_buys():
    shown = plan_contents(*solved("phased"))
    (built,) = [one for one in shown["figures"] if one["name"] == "GPUs that train"]
    assert built["number"] == 64
    assert "2 phases" in built["note"]
    assert shown["parts"]["numbers"][-1] == "buys $"
    bought = sum(float(row[-1].replace(",", "")) for row in shown["parts"]["rows"])
    assert bought == pytest.approx(shown["figures"][0]["number"], abs=1)
    assert [one["number"] for one in plan_contents(*solved("fleet"))["figures"] if one["name"] == "Clusters"] == [2]


def test_a_verdict_that_rejects_marks_what_is_wrong_and_points_of_a_front_fall_in_cost():
    """A plan is set against full bandwidth as in the terminal."""
    instance = load(INSTANCES / "tiny-64.toml")
    plan = solve(instance)
    assert plan.cost is not None
    wrong = plan.model_copy(update={"cost": plan.cost.model_copy(update={"capex_usd": 1.0})})
    rejected, accepted = (verdict_contents(verify(instance, one)) for one in (wrong, plan))
    assert (rejected["accepted"], accepted["accepted"]) == (False, True)
    assert {"text": "NO", "mark": "bad"} in rejected["checks"]["rows"][0]
    points = front_contents(instance, pareto(instance, 16))["points"]
    times, values = ([point[name] for point in points] for name in ("time", "value"))
    assert len(points) >= 2
    assert (times, values) == (sorted(times), sorted(values, reverse=True))
    fixed = load(INSTANCES / "questions" / "fixed-network.toml")
    assert "this plan saves" in json.dumps(plan_contents(fixed, solve(fixed))["sections"])
