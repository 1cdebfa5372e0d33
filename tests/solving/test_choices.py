"""Generations, batches and knobs that are left open: the best of all choices, each of which is a question itself."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.explain import choices
from coopt.instance.numerics import SEARCHED
from coopt.instance.schema import Chosen, Instance, Solver, at_choice, choices_of
from coopt.instance.texts import InstanceError
from coopt.instance.variants import with_scaled_bounds
from coopt.network.parts import cost_of
from coopt.network.plan_networks import families_of_design
from coopt.plan.schema import Plan
from coopt.plan.store import decided
from coopt.report import words
from coopt.report.fronts.text import built_from, front_headline
from coopt.report.screen import plan_screen
from coopt.report.words import rendered
from coopt.solving import answer
from coopt.solving.resolves import only_plan
from coopt.solving.runs import Run, backend_of
from tests.conftest import accepted, ask, example_count, switch, value
from tests.explain.changed import at_price
from tests.solving.fleets import two
from tests.solving.sites.test_sites import apart

GENERATIONS = ["h100-sxm", "gb200"]
DOMAINS = ["hgx-h100-8", "gb200-nvl72"]
ALL = ["gpu", "host", "hb", "nic", "switch", "optics"]
NO_BOUND: dict[str, Any] = {"workload__0__train_days": None, "objective": {"minimize": "time", "include": ALL}}


def left_open(**changes: Any) -> Instance:
    """Two generations and two batches, whose tokens grow with them."""
    given = {
        "cluster__gpu": GENERATIONS, "cluster__gpus": [64, 128], "network__hb_domains": DOMAINS,
        "network__fabrics": "rail-only", "workload__0__global_batch": [64, 128],
        "workload__0__critical_batch_tokens": 2e5, "workload__0__train_tokens": 1e11, "workload__0__train_days": 20.0,
        "workload__0__max_iteration_time_s": None, "objective": {"include": ALL},
    }  # fmt: skip
    return ask(**given | changes)


def test_each_choice_is_given_what_its_question_was() -> None:
    """Degrees that are defaults may follow long sequences, and suggestions go beyond them."""
    instance = left_open()
    for choice in choices_of(instance):
        for asked, one in zip(instance.workload, at_choice(instance, choice).workload, strict=True):
            assert one.mapping.model_fields_set == asked.mapping.model_fields_set
            assert one.mapping == asked.mapping


def test_lists_are_read_and_written_out_again() -> None:
    instance = left_open(workload__0__global_batch={"least": 64, "most": 192, "step": 64})
    assert [one.name for one in instance.cluster.generations] == GENERATIONS
    assert instance.workload[0].batches == (64, 128, 192)
    assert Instance.model_validate(instance.model_dump(by_alias=True)) == instance
    assert len(list(choices_of(instance))) == 6
    alone = left_open(cluster__gpu=["h100-sxm"], workload__0__global_batch=[64])
    assert (alone.beyond_one_network, alone.cluster.generations, alone.workload[0].batches) == ([], (), ())
    assert ask(cluster__gpus={"least": 16, "most": 70, "step": 16}).cluster.gpus == (16, 32, 48, 64)
    options = {"dp_mode": ["sync", "overlap"], "allowed": {"transport": ["rdma", "ipoib"]}}
    assert len(list(choices_of(ask(workload__0__options=options)))) == 4
    for gpu, domain in zip(GENERATIONS, DOMAINS, strict=True):  # that is sold with it
        question = at_choice(instance, Chosen(gpu=gpu, global_batch={"w": 128}))
        assert question == left_open(cluster__gpu=gpu, network__hb_domains=[domain], workload__0__global_batch=128)


def test_discounts_are_those_of_what_is_sold_with_the_chosen_gpu() -> None:
    items = [(kind, item) for kind, of in {"gpu": GENERATIONS, "hb": DOMAINS}.items() for item in of]
    discounts = [{"kind": kind, "item": item, "from": [8], "off": [0.5]} for kind, item in items]
    sharing = {"mode": "partition", "discount": discounts}
    instance = left_open(cluster__gpus=64, workload__0__global_batch=64, sharing=sharing)
    for choice in choices_of(instance):
        question = at_choice(instance, choice)
        assert [one.item for one in question.sharing.discount] == [choice.gpu, question.network.hb_domains[0].name]
    assert coopt.verify(instance, coopt.solve(instance)).accepted
    discounts[0] |= {"kind": "hb", "item": "none sold"}
    with pytest.raises(ValueError, match=r"with gb200: sharing.discount: hb 'none sold': is none of"):
        left_open(cluster__gpus=64, workload__0__global_batch=64, sharing=sharing)


@pytest.mark.parametrize("tokens", [{"train_tokens": 1e12, "critical_batch_tokens": 4e5}, {}])
def test_the_earliest_end_is_that_of_the_training_and_not_of_an_iteration(tokens: dict[str, float]) -> None:
    given: dict[str, Any] = {f"workload__0__{key}": value for key, value in tokens.items()}
    given |= {"cluster__gpus": 16, "network__hb_domains": "hgx-h100-8", "network__fabrics": "rail-only"}
    instance = ask(workload__0__global_batch=[32, 64], objective={"minimize": "time"}, **given)
    plan, ends = coopt.solve(instance), {}
    for chosen in choices_of(instance):
        question = at_choice(instance, chosen)
        (workload,) = question.workload
        ends[chosen.text] = value(question) * (workload.iterations or 1 / workload.tokens_per_iteration)
    assert plan.status == "optimal"
    assert ends[plan.chosen.text] == min(ends.values())
    assert not coopt.verify(instance, plan).failures
    (other,) = (one for one in choices_of(instance) if one != plan.chosen)
    worse = coopt.solve(at_choice(instance, other))
    lie = worse.model_copy(update={"instance": plan.instance, "chosen": other})
    assert [check.name for check in coopt.verify(instance, lie).failures] == ["bound"]


def test_tokens_beyond_those_of_small_batches_are_no_gain() -> None:
    taken = {}
    for critical in (None, 1e3):
        instance = ask(
            cluster__gpus=16, workload__0__global_batch=[32, 64], workload__0__critical_batch_tokens=critical,
            objective={"minimize": "usd_per_token"},
        )  # fmt: skip
        plan = coopt.solve(instance)
        assert coopt.verify(instance, plan).accepted
        taken[critical] = plan.chosen.global_batch["w"]
    assert taken == {None: 64, 1e3: 32}


slow = settings(max_examples=example_count(8))


@slow
@given(st.floats(1.0, 40.0), st.sampled_from(["capex", "tco", "power", "time", "usd_per_token"]))
def test_the_best_plan_is_the_best_of_all_choices_and_the_verifier_agrees(train_days: float, kind: str) -> None:
    terms = {"include": ["gpu", "host", "hb", "nic", "switch", "optics"], "minimize": kind}
    instance = left_open(cluster__gpus=64, workload__0__train_days=train_days, objective=terms)
    each = {one.text: value(at_choice(instance, one)) for one in choices_of(instance)}
    plan = accepted(instance)
    least = min(each.values())
    if math.isinf(least):
        assert (plan.status, plan.chosen) == ("infeasible", Chosen())
        assert plan.explanation
    else:
        assert (plan.status, plan.objective.value, each[plan.chosen.text]) == ("optimal", least, least)
        assert coopt.verify(*decided(instance, plan)).accepted


def test_more_choices_never_cost_more_and_a_smaller_critical_batch_never_less() -> None:
    costs = [value(left_open(workload__0__global_batch=listed)) for listed in (64, [64, 128, 192])]
    assert costs == sorted(costs, reverse=True)
    tighter = [value(left_open(workload__0__critical_batch_tokens=tokens)) for tokens in (1e9, 2e5, 1e3)]
    assert tighter == sorted(tighter)
    assert tighter[-1] > tighter[0]


TOO_MANY = {"least": 1, "most": 2000, "step": 1}
TWO: dict[str, Any] = {"workload__0__global_batch": [64, 128], "robust": {"aim": "regret", "efficiency": [0.9, 1.1]}}
REFUSED: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (left_open, {"cluster__gpu": ["h100-sxm", "mi300x"]}, "is sold with 'mi300x'"),
    (left_open, {"cluster__gpu": ["h100-sxm", "h100-sxm"]}, "needs different names"),
    (left_open, {"cluster__gpu": ["h100-sxm", "gb2000"]}, "no gpu of this name"),
    (left_open, {"workload__0__global_batch": TOO_MANY}, "needs at most 1,000"),
    (left_open, {"workload__0__global_batch": {"least": 9, "most": 1, "step": 1}}, "needs most >= least"),
    (ask, {"cluster__generations": GENERATIONS, "cluster__gpu": "gb200"}, "generations: its first value differs"),
    (ask, {"workload__0__batches": [96, 64]}, "batches: its first value differs"),
    (ask, {"workload__0__options": {"allowed": {"dp_mode": ["stale-1"]}}}, "allowed.dp_mode: its first value differs"),
    (
        ask,
        {"workload__0__options": {"tp_sync_fraction": [1.0, 0.5]}, "workload__0__mapping": {"sequence_parallel": True}},
        r"with tp_sync_fraction = 0.5 of w: .*sequence_parallel",
    ),
    (
        lambda **changes: Instance.model_validate(apart(**changes)),
        {"workload__0__global_batch": [64, 63]},
        r"with 63 sequences of w: cluster\.shares = 4: does not divide",
    ),
    (ask, TWO, r"robust\.aim = 'regret'.*needs 'worst-case'"),
    (
        ask,
        TWO | {"workload__0__max_iteration_time_s": None},
        r"(?s)workload\[0\]: no bound is given.*robust\.aim = 'regret'",
    ),
    (
        lambda: coopt.pareto(left_open(**NO_BOUND, workload__0__global_batch=[32, 64]), points=3),
        {},
        r"pareto compares bills, needs 'capex', 'power' or 'tco'",
    ),
]


@pytest.mark.parametrize(("build", "changes", "words"), REFUSED)
def test_lists_that_go_with_nothing_are_refused(build: Callable[..., Any], changes: dict[str, Any], words: str) -> None:
    """Each choice has its own best plans to measure regret from, so that none would lose anything at any price."""
    with pytest.raises((InstanceError, ValueError), match=words):
        build(**changes)
    assert ask(**TWO | {"robust": {"aim": "worst-case", "efficiency": [0.9, 1.1]}}).open_keys


def test_what_is_wrong_with_every_choice_is_said_once() -> None:
    with pytest.raises(ValueError, match=r"^[^']*network\.nics: no listed switch") as refused:
        left_open(network__nics=[{"name": "n", "gbit_s": 333, "usd": 1, "w": 1}])
    assert str(refused.value).count("no listed switch has ports") == 1


@pytest.mark.parametrize("mixed", [False, True])
def test_of_equal_gpus_the_order_of_the_list_decides_nothing(mixed: bool) -> None:
    h100 = ask().cluster.gpu.model_dump()
    twins = [h100 | {"name": name} for name in ("b-twin", "a-twin")]
    domain = {"name": "hb", "size": 8, "gbyte_s": 450, "usd_per_gpu": 700, "w_per_gpu": 30}
    domains = [domain | {"name": f"hb-{one['name']}", "gpus": [one["name"]]} for one in twins]
    sharing = {"sharing": {"mode": "partition", "mixed_gpus": True}} if mixed else {}
    taken = {
        coopt.solve(ask(cluster__gpu=gpus, cluster__gpus=64, network__hb_domains=domains, **sharing))
        .parts[0]
        .design.hb_domain.name
        for gpus in (twins, twins[::-1])
    }
    assert taken == {"hb-a-twin"}


def test_another_choice_or_a_bound_above_that_of_another_is_rejected() -> None:
    instance = left_open()
    plan = coopt.solve(instance)
    others = [one for one in choices_of(instance) if one != plan.chosen]
    for chosen in (others[-1], Chosen(gpu="b200")):
        assert not coopt.verify(instance, plan.model_copy(update={"chosen": chosen})).accepted
    solved = [(coopt.solve(at_choice(instance, one)), one) for one in others]
    dear, own = max(solved, key=lambda pair: pair[0].objective.value or 0.0)
    sold = dear.model_copy(update={"instance": plan.instance, "chosen": own})
    assert "bound" in [check.name for check in coopt.verify(instance, sold).failures]


def test_a_front_moves_tokens_per_second_alike_for_every_batch() -> None:
    pace = {"workload__0__max_iteration_time_s": None, "workload__0__min_tokens_per_s": 1e5}
    instance = ask(**pace, network__hb_domains="hgx-h100-8", workload__0__global_batch=[64, 128])
    front = coopt.pareto(instance, points=3)
    alone = [coopt.pareto(at_choice(instance, one), points=3).points[0].pace for one in choices_of(instance)]
    assert min(alone) < alone[0] * 0.99
    assert front.points[0].pace == pytest.approx(min(alone), rel=2 * SEARCHED)
    assert all(point.plan.chosen.text in built_from(instance, point) for point in front.points)


def test_a_front_of_days_kept_with_a_probability_has_plans_that_keep_them() -> None:
    each = {"per_year": 1.0}
    rates = {"name": "often", "gpus_per_host": 8, "optic": each, "switch": {"per_year": 5.0}}
    rates |= dict.fromkeys(("gpu", "host", "nic", "domain", "software"), each)
    asked = {"rates": rates, "restart_s": 3000.0, "repair_hours": 24.0, "spare_domains": [0, 1], "confidence": 0.95}
    days = {
        "workload__0__train_tokens": 1e10, "workload__0__train_days": 3.0, "workload__0__max_iteration_time_s": None,
    }  # fmt: skip
    network = {"network__hb_domains": "hgx-h100-8", "network__fabrics": "rail-only"}
    instance = ask(cluster__gpus=16, **days, **network, workload__0__global_batch=[16, 24], availability=asked)
    front = coopt.pareto(instance, points=3)
    assert len(front.points) > 1
    for point in front.points:
        found = coopt.solve(with_scaled_bounds(instance, point.pace)).objective.value
        assert found == pytest.approx(point.cost.of("capex"), rel=1e-9)


def test_commands_that_need_one_question_say_so() -> None:
    instance = left_open(cluster__gpus=16, workload__0__train_days=80.0, network__switches=switch(16, 11000))
    plan = coopt.solve(instance)
    for ask_of in (
        lambda: coopt.evaluate(instance),
        lambda: only_plan(instance),
        lambda: coopt.bom(instance),
        lambda: coopt.simulate(instance, plan),
    ):
        with pytest.raises(InstanceError, match=r"cluster.gpu and workload\[0\].global_batch"):
            ask_of()
    question, answer = decided(instance, plan)
    assert coopt.certify(question, answer).ok
    told = coopt.explain(instance, plan)
    assert told.bounds == coopt.explain(question, answer).bounds
    assert coopt.evaluate_plan(instance, plan) == coopt.evaluate_plan(question, answer)
    assert coopt.mappings(instance, plan) == coopt.mappings(question, answer)


def test_a_bound_of_an_open_question_is_certified_for_every_choice() -> None:
    instance = left_open()
    plan = coopt.solve(instance)
    assert coopt.certify(instance, plan).ok
    dear = plan.model_copy(
        update={"objective": plan.objective.model_copy(update={"bound": plan.objective.value * 1.01})}
    )
    found = coopt.certify(instance, dear)
    assert (found.ok, found.bound_proven) == (False, plan.objective.value)
    told = [check.name for check in coopt.verify(instance, plan).checks]
    assert told.count("bound") == 1
    refuted = coopt.verify(instance, dear)
    assert not refuted.accepted
    assert any(check.name == "bound" for check in refuted.failures)


def test_islands_with_open_batches_are_proven_for_the_choice_of_the_plan() -> None:
    table = two().model_dump(by_alias=True)
    table["workload"][0]["global_batch"] = [24, 48]
    instance = Instance.model_validate(table)
    plan = coopt.solve(instance)
    found = coopt.certify(instance, plan, coopt.prove(instance, plan))
    assert found.ok
    assert f"with {plan.chosen.text};" in found.by
    unproven = coopt.certify(instance, plan)
    assert (unproven.ok, unproven.by) == (False, "")
    assert unproven.missing.startswith("no proof")
    assert unproven.missing.endswith(" of 2 choices")


def test_other_gpus_and_batches_are_told_with_what_they_cost() -> None:
    instance = left_open(cluster__gpus=64)
    plan, found = coopt.solve(instance), coopt.explain(instance)
    assert (found.status, found.value, found.instance) == ("optimal", plan.objective.value, plan.instance)
    listed = {"cluster.gpu": GENERATIONS, "workload[0].global_batch": ["64", "128"]}
    taken = {"cluster.gpu": plan.chosen.gpu, "workload[0].global_batch": str(plan.chosen.global_batch["w"])}
    for part, names in listed.items():
        told = {one.choice: one for one in found.rivals if one.part == part}
        assert set(told) == set(names) - {taken[part]}
        for name, one in told.items():
            change = {"gpu": name} if part == "cluster.gpu" else {"global_batch": {"w": int(name)}}
            best = coopt.solve(at_choice(instance, plan.chosen.model_copy(update=change)))
            assert one.value == best.objective.value
            assert one.why
    assert found.sentences[0].startswith(f"With {plan.chosen.text}: the plan ")


@pytest.mark.parametrize(
    ("train_days", "usd", "chosen", "gpus", "batches"),
    [(2.0, 69_950, "own", [24, 48], 96), (4.0, 41_000, "h100-sxm", [16, 24], [96, 192])],
)
def test_prices_keep_the_plan_over_all_choices(
    train_days: float, usd: float, chosen: str, gpus: list[int], batches: int | list[int]
) -> None:
    """A range ends where another kind of GPU takes over as well, whose parts have ranges of their own; it may be the
    runner-up."""
    own = {"extends": "h100-sxm", "name": "own", "bf16_tflop_s": 1484, "hbm_gbyte_s": 5000, "usd": usd}
    server = {"extends": "hgx-h100-8", "name": "own-server", "gpus": "own"}
    open_lists = left_open(
        cluster__gpu=["h100-sxm", own], cluster__gpus=gpus, network__hb_domains=["hgx-h100-8", server],
        workload__0__global_batch=batches, workload__0__train_days=train_days,
    )  # fmt: skip
    found, plan = coopt.explain(open_lists), coopt.solve(open_lists)
    assert plan.chosen.gpu == chosen
    assert found.runner_up.value == min(
        [one.value for one in found.rivals if one.value is not None and one.design != found.design]
        + [coopt.solve(decided(open_lists, plan)[0], top=2).alternatives[0].objective.value]
    )
    ends = {one.item: (one.low, one.high) for one in found.prices}
    assert {"h100-sxm", "hgx-h100-8", "own", "own-server"} <= set(ends)
    assert ends[chosen][1] is not None
    assert ends["own" if chosen == "h100-sxm" else "h100-sxm"][0] > 0

    def stays(item: str, price: float) -> bool:
        changed = at_price(open_lists, item, "USD", price)
        question, best = at_choice(changed, plan.chosen), value(changed)
        costs = [cost_of(question, *one).capex_usd for one in families_of_design(question, plan.design)]
        return any(math.isclose(cost, best, rel_tol=1e-10) for cost in costs)

    for item in ("h100-sxm", "own", "cx7-400g"):
        low, high = ends[item]
        assert stays(item, low * (1 + 1e-7))
        assert low == 0 or not stays(item, low * 0.999)
        assert stays(item, 1e6 if high is None else high * (1 - 1e-7))
        assert high is None or not stays(item, high * 1.001)


def test_what_has_to_give_is_told_of_every_choice_and_lets_the_open_question_through() -> None:
    few: dict[str, Any] = {"cluster__gpus": 16, "workload__0__global_batch": 128}
    hopeless = left_open(**few, workload__0__train_days=1e-3)
    found = coopt.explain(hopeless)
    assert found.status == "infeasible"
    alone = {gpu: coopt.explain(at_choice(hopeless, Chosen(gpu=gpu))) for gpu in GENERATIONS}
    for gpu, one in alone.items():
        for said in one.sentences[1:]:
            told = (
                said
                if all(said in each.sentences for each in alone.values())
                else f"With {gpu}: {said[0].lower()}{said[1:]}"
            )
            assert told in found.sentences
    assert found.relaxations
    for way in (
        one for one in found.relaxations if [change.limit for change in one.changes] == ["workload[0].train_days"]
    ):
        plan = coopt.solve(left_open(**few, workload__0__train_days=float(way.changes[0].to)))
        assert plan.objective.value <= way.value * (1 + 1e-9)
    plan = coopt.solve(hopeless)
    assert coopt.explain(hopeless, plan) == found
    with pytest.raises(InstanceError, match="another instance"):
        coopt.explain(left_open(), plan)
    short = coopt.explain(hopeless, time_limit_s=1e-6)
    assert (short.status, short.relaxations) in (("unknown", ()), ("infeasible", ()))


@pytest.mark.parametrize("limit_s", [None, 200.0])
def test_what_has_to_give_is_sought_as_long_as_asked(limit_s: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {"cluster__gpus": 16, "workload__0__global_batch": 128, "workload__0__train_days": 1e-3}
    limits = []

    def explained(question: Instance, plan: None, told: None, ways_out_s: float | None) -> Any:
        limits.append((ways_out_s, question.solver.time_limit_s))
        return found

    found = coopt.explain(at_choice(left_open(**asked), Chosen(gpu=GENERATIONS[0])))
    monkeypatch.setattr(choices, "explained", explained)
    coopt.explain(left_open(**asked), time_limit_s=limit_s)
    for ways_out_s, question_s in limits:
        assert 190.0 < question_s <= 200.0 if limit_s else 50.0 < ways_out_s <= 60.0


def test_a_choice_that_is_not_proven_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def unproven(run: Run) -> Plan:
        plan = found(run)
        claim = plan.objective.model_copy(update={"bound": 0.0})
        return plan.model_copy(update={"objective": claim, "status": "feasible", "stop_reason": "as it is"})

    found = answer.question_plan
    monkeypatch.setattr(answer, "question_plan", unproven)
    run = Run(instance=left_open(cluster__gpus=16), backend=backend_of(Solver()), on_progress=None)
    plan = answer.best_choice(run)
    assert (plan.status, plan.stop_reason) == ("feasible", "as it is")


def test_the_front_of_least_time_is_the_envelope_of_those_of_its_choices() -> None:
    instance = left_open(**NO_BOUND, cluster__gpus=16, workload__0__global_batch=64, margin={"time": 0.25})
    front, points = coopt.pareto(instance, points=100), []
    for chosen in choices_of(instance):
        alone = coopt.pareto(at_choice(instance, chosen), points=100)
        points += [(one.runs[0][1].iteration_time_s, one.cost.capex_usd) for one in alone.points]
    best = [
        (s, usd)
        for s, usd in sorted(points)
        if not any((a <= s and b < usd) or (a < s and b <= usd) for a, b in points)
    ]
    seconds = [point.runs[0][1].iteration_time_s for point in front.points]
    assert seconds == pytest.approx([s for s, _ in best], rel=1e-9)
    assert [point.cost.capex_usd for point in front.points] == pytest.approx([usd for _, usd in best], rel=1e-9)
    assert len(seconds) > 1
    assert [point.pace for point in front.points] == pytest.approx(seconds, rel=1e-9)
    assert front_headline(front, instance).partition(" in place of ")[2].startswith(words.seconds(seconds[0]))


def knobs(**options: Any) -> Instance:
    """A bound that ordinary training meets on a dearer network alone."""
    return ask(workload__0__options=options, network__oversubscription=8.0)


def test_knobs_are_taken_where_they_are_allowed_and_told_with_what_is_known_of_them() -> None:
    instance = knobs(tp_sync_fraction=[1.0, 0.5], dp_mode=["sync", "stale-1"])
    each = {one.text: coopt.solve(at_choice(instance, one)) for one in choices_of(instance)}
    assert len(each) == 4
    plan = coopt.solve(instance)
    assert plan.objective.value == min(one.objective.value or math.inf for one in each.values())
    assert coopt.verify(instance, plan).accepted
    assert plan.objective.value <= (coopt.solve(knobs()).objective.value or math.inf)
    risky = next(
        one for one in choices_of(instance) if one.options["w"] == {"tp_sync_fraction": 0.5, "dp_mode": "sync"}
    )
    question = at_choice(instance, risky)
    assert question.workload[0].options.evidence[0].startswith("tp_sync_fraction: language models")
    told = rendered(plan_screen(question, each[risky.text]))
    assert "Declared risk" in told
    assert "arXiv 2506.19645" in told
    assert "Declared risk" not in rendered(plan_screen(knobs(), coopt.solve(knobs())))
