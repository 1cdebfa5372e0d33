import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from coopt.instance.schema import Instance
from coopt.plan.schema import Assumption, BetterNumber, Cliff, NextBest, Overrides, Plan
from coopt.plan.store import with_replaced
from coopt.report.explanation import verdict_headline
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from coopt.verifier.checks.names import CHECKS, NAMES
from coopt.verifier.checks.verdict import Verdict
from coopt.verifier.parts.enumeration import cheapest_design
from tests.conftest import example_count
from tests.network.test_hall_cables import mixed
from tests.network.test_tier_switches import small_below_large
from tests.solving.direct.test_direct_links import linked
from tests.solving.test_days import days, turns
from tests.solving.test_runners_up import HARD, left_open
from tests.verifier.cases import ask, switch
from tests.verifier.fleets import FLEETS
from tests.verifier.kinds import KINDS, solved, written
from tests.verifier.mutants import nodes, replaced
from tests.verifier.test_mutations import CASES
from tests.verifier.test_partition_mutations import CASES as PARTITIONS
from tests.verifier.test_phased_claims import growing
from tests.verifier.test_routes import solved as routed
from tests.verifier.test_runners_up import with_few_designs


def failing(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.failures]


def judged(instance: Instance, asked: Instance) -> Verdict:
    """The verdict on the best plan of another instance, relabelled as an optimal answer to this one."""
    plan = solve(asked)
    label = plan.instance.model_copy(update={"sha256": instance.sha256})
    return verify(instance, plan.model_copy(update={"instance": label, "next_best": None, "cliffs": ()}))


def test_check_names_are_stable_words_with_a_meaning() -> None:
    names = [name for name, _ in CHECKS]
    assert len(set(names)) == len(names)
    assert all(name.replace("-", "").isalpha() and name.islower() and meaning for name, meaning in CHECKS)


def test_every_check_is_made_for_some_plan() -> None:
    limits = {"limits__power_mw": 1.0, "limits__capex_usd": 1e9, "limits__racks": 100}
    limits |= {"network__end_to_end_oversubscription": 9.0, "network__max_networks": 99}
    few: dict[str, Any] = {"cluster__gpus": 16, "workload__0__global_batch": 16}
    others = [CASES["infeasible"](), ask(**few, **limits, margin={"ties": "nearest"}, network__switch_cages="kept")]
    others += [PARTITIONS["core"](), growing(), FLEETS["worst-case"]()]
    across = left_open(ask(**HARD, sharing={"mode": "partition"}), [None])
    others += [days(20.0, availability={"rates": "llama-3", "confidence": 0.9}), across]
    others += [Instance.model_validate(turns(1e6)), mixed()]
    others += [ask(**few, objective={"minimize": "time"}), small_below_large()]
    others += [Instance.model_validate(linked(limits={"capex_usd": 1}))]
    made = {check.name for kind in ("sites", "direct") for check in verify(*solved(kind)).checks}
    for instance, top in [(with_few_designs(), 1000), *((other, 1) for other in others)]:
        made |= {check.name for check in verify(instance, solve(instance, top=top, reasons=False)).checks}
    asked, plan = solved("shared")
    bill = {"cost": plan.cost, "workloads": plan.workloads, "design": plan.parts[0].design, "value": 1.0}
    near = bill | {"pace": 0.9}
    batch = {"key": "workload.0.batch_tolerance", "workload": "w", "value": 2, "now": 1}
    better = BetterNumber(**batch, iteration_time_s=1.0, saved=0.1)
    said = {"cliffs": (Cliff(buys="time", **near),), "better_numbers": (better,), "next_best": NextBest(**bill)}
    said |= {"assumptions": (Assumption(key="network.routing", workload="w", time_ratio=2.0),)}
    made |= {check.name for check in verify(asked, plan.model_copy(update=said)).checks}
    table = plan.model_dump(mode="json", by_alias=True)
    table["parts"][0]["design"]["fabric"]["nic"]["ports_in_plane"] = 2
    made |= {check.name for check in verify(asked, Plan.model_validate(table)).checks}
    pinned, plan, table = routed("clos of two tiers")
    made |= {check.name for check in verify(pinned, plan, routes=table).checks}
    made |= {check.name for check in verify(pinned, with_replaced(plan, {"name": pinned.name})).checks}
    assert made == NAMES


@pytest.mark.parametrize(
    ("said", "changes", "why"),
    [
        (("cliffs",), {}, "several designs"),
        (("cliffs", "workloads"), {}, "only part: workloads"),
        (("cliffs",), {"workloads": ()}, "no workload"),
        (("assumptions",), {}, "more than once: network.routing"),
        (("next_best",), {"turns_at": 9.0}, "`turns_at` has to"),
        (("next_best",), {"doubt": 0.9}, "`doubt` 0"),
    ],
)
def test_what_stands_beside_a_plan_is_there_once_and_whole(said, changes, why) -> None:
    asked, plan = solved("shared")
    bill = {"cost": plan.cost, "workloads": plan.workloads, "design": plan.design, "value": plan.objective.value}
    claims = {
        "cliffs": lambda: (Cliff(**bill | {"buys": "time", "pace": 0.9} | changes),) * 2,
        "assumptions": lambda: (Assumption(key="network.routing", workload="w", time_ratio=2.0),) * 2,
        "next_best": lambda: NextBest(**bill | changes),
        "workloads": tuple,
    }
    failures = verify(asked, plan.model_copy(update={key: claims[key]() for key in said})).failures
    assert why in " ".join(check.why for check in failures)


def test_another_objective_than_that_of_the_instance_has_to_be_said() -> None:
    instance = ask()
    for kind in ("power", "tco"):
        plan = solve(instance, objective=kind)
        assert plan.overrides == Overrides(objective=kind)
        plan = plan.model_copy(update={"overrides": Overrides()})
        assert failing(verify(instance, plan)) == ["objective-kind"]
        verdict = verify(instance, plan.model_copy(update={"overrides": Overrides(objective=kind)}))
        assert verdict.accepted
        asked = f"the plan was solved for {kind} in place of capex"
        assert verdict_headline(verdict).endswith(f"0.0%; {asked}.")


def test_a_design_that_is_not_the_cheapest_is_no_optimum() -> None:
    verdict = judged(ask(), ask(network__fabrics="clos"))
    assert failing(verdict) == ["bound"]
    assert "rail-only" in verdict.failures[0].why
    cheapest, _ = cheapest_design(ask(), "capex", math.inf)
    assert str(verdict.failures[0].recomputed) == str(float(cheapest.value))


def test_a_design_outside_the_instance_is_refused() -> None:
    assert failing(judged(ask(network__fabrics="clos"), ask())) == ["fabric"]
    assert "tiers" in failing(judged(ask(network__max_tiers=1), ask(network__fabrics="clos")))
    wide, narrow = (ask(network__fabrics="clos", network__oversubscription=ratio) for ratio in (3, 1))
    assert failing(judged(narrow, wide)) in (["uplinks"], ["leaf-ports"])


def test_a_plan_that_breaks_a_limit_is_refused_and_one_that_meets_it_exactly_is_not() -> None:
    value = solved("shared")[1].cost
    assert judged(ask(limits__capex_usd=value.capex_usd), ask()).accepted
    for key, limit, name in (
        ("limits__capex_usd", value.capex_usd * 0.99, "limit-capex"),
        ("limits__power_mw", value.power_w * 0.99e-6, "limit-power"),
        ("limits__racks", 3.0, "limit-racks"),
    ):
        assert name in failing(judged(ask(**{key: limit}), ask()))


def test_the_gap_aimed_at_is_that_of_the_instance_or_said_to_be_another() -> None:
    value = solved("shared")[1].objective.value
    for options, overrides, gap, accepted in (
        ({"gap": 0.2}, {}, 0.0, False),
        ({"gap": 0.2}, {"gap": 0.2}, 0.0, True),
        ({"gap": 0.2}, {}, 0.2, True),
        ({}, {}, 0.2, True),
        ({}, {}, 0.0, False),
        ({"gap": 0}, {}, 0.2, False),
        ({"gap": 0}, {"gap": 0}, 0.2, False),
    ):
        instance = ask(solver__gap=gap)
        plan = solve(instance)
        loose = plan.model_copy(
            update={
                "objective": plan.objective.model_copy(update={"bound": 0.9 * value, "gap": 1 - 0.9}),
                "solver": plan.solver.model_copy(update={"options": options}),
                "overrides": Overrides.model_validate(overrides),
            }
        )
        verdict = verify(instance, loose)
        assert verdict.accepted == accepted
        assert accepted or {"gap-target", "status"} & {*failing(verdict)}
        if accepted and overrides:
            told = "the gap is 10.0%; the plan was solved for a gap of 20.0000% in place of 0.0000%"
            assert verdict_headline(verdict).endswith(f" hold; {told}.")


def test_optics_that_do_not_count_may_be_any_that_reach() -> None:
    instance = ask(
        objective__include=["switch"],
        network__fabrics="clos",
        network__hb_domains="hgx-h100-8",
        network__switches=[switch(16)],
    )
    plan = solve(instance).model_dump(mode="json", by_alias=True)
    assert plan["design"]["fabric"]["tiers"] == 2
    for optic, accepted in (("long400", True), ("mid400", True), ("short400", False), ("any200", False)):
        path = ("design", "fabric", "tier", 1, "optic")
        changed = replaced(replaced(plan, path, optic), ("parts", 0, *path), optic)
        assert verify(instance, Plan.model_validate(changed)).accepted == accepted


WILD = st.one_of(
    st.integers(),
    st.integers(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0, 1, -1, 10**9, 10**30, -(10**400), 5e-324, 1e308, None, "", "clos", True, []]),
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=example_count(25))
@given(data=st.data())
def test_wild_values_never_cause_an_error(kind: str, data: st.DataObject) -> None:
    instance, plan = solved(kind)[0], written(kind)
    for path, _ in data.draw(st.lists(st.sampled_from(list(nodes(plan))), min_size=1, max_size=4)):
        try:
            plan = replaced(plan, path, data.draw(WILD))
        except (TypeError, IndexError, KeyError):
            continue
    try:
        changed = Plan.model_validate(plan)
    except ValidationError:
        return
    verdict = verify(instance, changed)
    assert verdict.accepted == (not verdict.failures)
    assert Verdict.model_validate_json(verdict.model_dump_json()) == verdict
