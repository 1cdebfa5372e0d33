"""Solvers as we drive them: every way to stop, told apart; progress, cancellation, solvers of Pyomo and a witness."""

import gzip
import importlib.util
import json
import math
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.opt import SolverStatus, TerminationCondition

import coopt
from coopt.instance.schema import Instance, Solver
from coopt.instance.texts import InstanceError
from coopt.plan.schema import Plan, Progress
from coopt.solving import highs
from coopt.solving import runs as backends
from coopt.solving.answer import agree
from coopt.solving.highs import ALONE, QuietHighs, SearchStanding, linear_program, options, safe_bound, solve, solved
from coopt.solving.runs import Backend, backend_of
from formulations.network import NETWORK, NetworkData, add_uplinks_demanded, build
from tests.conftest import ask, example_count
from tests.formulations.small import two_families
from tests.solving.direct.test_direct_links import linked
from tests.solving.oracle import instances
from tests.solving.sites.test_sites import apart
from tests.solving.test_partitions import teams
from tests.solving.test_phased_questions import growing

SETTINGS = options(gap=0.0, threads=1)


def knapsack(n: int) -> pyo.ConcreteModel:
    """An equality knapsack that takes a search."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(n), domain=pyo.Binary)
    weights = [(7919 * (i + 3) ** 2) % 9973 + 20000 for i in range(n)]
    m.most = pyo.Constraint(expr=sum(w * m.x[i] for i, w in enumerate(weights)) <= sum(weights) // 2)
    m.also = pyo.Constraint(expr=sum(weights[-1 - i] * m.x[i] for i in range(n)) <= sum(weights) // 2 - 3)
    m.cost = pyo.Objective(expr=-sum((w + i % 3) * m.x[i] for i, w in enumerate(weights)))
    return m


def test_optimal_has_value_bound_and_variables() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(domain=pyo.NonNegativeIntegers)
    m.free = pyo.Var(bounds=(None, 4))
    m.least = pyo.Constraint(expr=2 * m.x >= 3)
    m.same = pyo.Constraint(expr=m.free == m.x - 1)
    m.cost = pyo.Objective(expr=5 * m.x + m.free + 100)
    answer = solve(m, time_limit_s=10, settings=SETTINGS)
    assert (answer.outcome, answer.value, m.x.value, m.free.value) == ("optimal", 111, 2, 1)
    assert answer.bound == pytest.approx(111)


def test_infeasible_and_unbounded_claim_no_bound_and_are_told_apart() -> None:
    for bounds, row, outcome in (((0, 9), (2.2, 2.8), "infeasible"), ((None, None), (None, 5), "unbounded")):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(domain=pyo.Integers, bounds=bounds)
        m.between = pyo.Constraint(expr=pyo.inequality(row[0], m.x, row[1]))
        m.cost = pyo.Objective(expr=m.x)
        answer = solve(m, time_limit_s=10, settings=SETTINGS)
        assert (answer.outcome, answer.bound) == (outcome, -math.inf)
        assert answer.value is None or outcome == "unbounded"


def test_a_time_limit_is_no_proof() -> None:
    answer = solve(knapsack(60), time_limit_s=0.0, settings=SETTINGS)
    assert answer.outcome == "time limit"
    assert answer.value is None or answer.value > answer.bound


def test_a_misspelled_option_is_refused() -> None:
    with pytest.raises(AssertionError, match="mip_gap"):
        solve(knapsack(3), time_limit_s=1, settings={**SETTINGS, "mip_gap": 0.1})


def lost_by_presolve() -> pyo.ConcreteModel:
    """A shared network with three families, the third free of cost, so that the optimum is 0.

    The second and the third have four ports down, 1 to 3 uplinks and 1 to 2, and a slowdown of 4 / uplinks from below
    by its chords.
    """
    data = NetworkData(
        workloads=1, contexts=3, fixed=np.array([1.0, 0.0, 0.0]), uplink=np.array([0.0, 1.0, 0.0]), spine=np.zeros(3),
        min_uplinks=np.array([0, 1, 1]), max_uplinks=np.array([0, 3, 2]), leaves=np.zeros(3, dtype=np.int64),
        radix=np.full(3, 4), context=np.arange(3), column_workload=np.zeros(3, dtype=np.int64),
        column_context=np.arange(3), need=np.array([0, 1, 1]),
    )  # fmt: skip
    m = build(data, tuple(add for add in NETWORK if add is not add_uplinks_demanded))
    m.rho = pyo.Var(m.F, domain=pyo.NonNegativeReals, bounds=lambda _, f: (0.0, 4.0 if f else 1.0))
    m.slowdown = pyo.ConstraintList()
    m.slowdown.add(m.rho[0] >= m.y[0])
    for f, i in ((1, 1), (1, 2), (2, 1)):
        m.slowdown.add(m.rho[f] >= 4 / (i * (i + 1)) * ((2 * i + 1) * m.y[f] - m.u[f]))
    m.time_bound = pyo.Constraint(m.F, rule=lambda m, f: m.rho[f] <= (4.0 if f else 1.0) * m.z[f])
    return m


def test_the_optimum_that_presolve_loses_is_found() -> None:
    assert solve(lost_by_presolve(), time_limit_s=10, settings=SETTINGS).value == 0


def test_a_model_whose_smaller_ones_are_presolved_without_end_is_searched(tmp_path: Path) -> None:
    """A process of its own, as a search that hears nothing can only be killed."""
    search = """
import json, sys
import highspy

h = highspy.Highs()
for name, value in json.loads(sys.argv[2]).items():
    h.setOptionValue(name, value)
h.readModel(sys.argv[1])
h.run()
print(h.modelStatusToString(h.getModelStatus()), h.getInfo().objective_function_value)
"""
    settings = json.dumps(options(gap=1e-4, threads=1))
    packed, plain = Path(__file__).parents[1] / "data" / "endless_presolve.mps.gz", tmp_path / "endless_presolve.mps"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))  # not every build of HiGHS reads what is packed
    ran = subprocess.run(
        [sys.executable, "-c", search, plain, settings], capture_output=True, text=True, timeout=120, check=True
    )
    assert "Optimal 861." in ran.stdout


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_search_that_is_deaf_to_its_limits_is_left_with_its_best_solution(
    monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    """HiGHS is held up where it asks whether to stop, as soon as it has a solution."""
    found, released, cancel = threading.Event(), threading.Event(), threading.Event()

    def held_up(event: Any) -> None:
        if found.is_set():
            if cancelled:
                cancel.set()
            released.wait()

    class DeafHighs(QuietHighs):
        def run(self) -> Any:
            self.cbMipImprovingSolution.subscribe(lambda event: found.set())
            self.cbMipInterrupt.subscribe(held_up)
            return super().run()

    monkeypatch.setattr(highs, "DEAF_S", 0.2)
    monkeypatch.setattr(highs, "QuietHighs", DeafHighs)
    m = knapsack(40)
    try:
        answer = solve(m, time_limit_s=60.0 if cancelled else 1.0, settings=SETTINGS, cancel=cancel)
        monkeypatch.undo()
        assert solve(knapsack(4), time_limit_s=10, settings=SETTINGS).outcome == "optimal"  # beside the one left
    finally:
        released.set()
    assert (answer.outcome, answer.detail) == ("interrupted" if cancelled else "time limit", "deaf")
    assert answer.solve_s < 30
    assert answer.value == pytest.approx(pyo.value(m.cost))
    assert pyo.value(m.most.body) <= m.most.upper
    assert answer.bound <= answer.value


@pytest.mark.parametrize("threads", [1, 2])
def test_linear_programs_are_solved_after_somebody_else_ran_highs(threads: int) -> None:
    """HiGHS keeps the number of threads of the first search of a thread; each case runs in one that is new."""
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = 1, 1
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = np.ones(1), np.zeros(1), np.full(1, 9.0)
    lp.row_lower_, lp.row_upper_ = np.full(1, 2.0), np.full(1, np.inf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = np.array([0, 1], dtype=np.int32), np.zeros(1, dtype=np.int32)
    lp.a_matrix_.value_ = np.ones(1)
    found: list[float] = []

    def run() -> None:
        foreign = highspy.Highs()
        for name, value in (("output_flag", False), ("threads", threads)):
            foreign.setOptionValue(name, value)
        foreign.passModel(lp)
        foreign.run()
        found.append(solved(lp).getInfo().objective_function_value)

    alone = threading.Thread(target=run)
    alone.start()
    alone.join()
    assert found == [2.0]


@pytest.mark.parametrize("seed", range(40))
def test_no_multipliers_prove_more_than_the_best_whole_solution(seed: int) -> None:
    """Also such as are far from those of the linear program, or have a sign that their row does not allow."""
    chance = random.Random(seed)
    m, most = pyo.ConcreteModel(), [chance.randint(1, 3) for _ in range(4)]
    m.x = pyo.Var(range(4), bounds=lambda m, i: (0, most[i]))
    cost = [chance.choice([1, -1]) * 10 ** chance.uniform(-6, 6) for _ in range(4)]
    table = [[chance.choice([0, 1]) * 10 ** chance.uniform(-3, 3) for _ in range(4)] for _ in range(3)]
    met = [chance.randint(0, count) for count in most]
    side = [sum(a * n for a, n in zip(row, met, strict=True)) for row in table]
    m.rows = pyo.ConstraintList()
    for number, row in enumerate(table):
        body = sum(a * m.x[i] for i, a in enumerate(row)) + 0.0 * m.x[0]
        m.rows.add([body <= side[0], body >= side[1], pyo.inequality(side[2], body, 2 * side[2])][number])
    m.cost = pyo.Objective(expr=sum(c * m.x[i] for i, c in enumerate(cost)) + 7.0)

    def worth(point: tuple[int, ...]) -> Fraction:
        return sum((Fraction(c) * n for c, n in zip(cost, point, strict=True)), Fraction(7))

    def taken(number: int, point: tuple[int, ...]) -> Fraction:
        return sum((Fraction(a) * n for a, n in zip(table[number], point, strict=True)), Fraction())

    one = Fraction(1, 10**15)  # sides are rounded sums
    inside = [
        worth(point)
        for point in product(*(range(count + 1) for count in most))
        if taken(0, point) <= Fraction(side[0]) * (1 + one)
        and taken(1, point) >= Fraction(side[1]) * (1 - one)
        and Fraction(side[2]) * (1 - one) <= taken(2, point) <= 2 * Fraction(side[2])
    ]
    lp, _ = linear_program(m)
    answer = solve(m, time_limit_s=10, settings=SETTINGS)
    assert answer.bound == pytest.approx(answer.value, rel=1e-6, abs=1e-6 * max(map(abs, cost)))
    assert Fraction(answer.bound) <= min(inside)
    for _ in range(50):
        given = np.array([chance.choice([1, -1]) * 10 ** chance.uniform(-6, 9) for _ in range(3)])
        assert Fraction(safe_bound(lp, given)) <= min(inside)


def test_multipliers_of_a_row_prove_what_they_do_by_hand() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(2), bounds=(0, 10))
    m.least = pyo.Constraint(expr=m.x[0] + 2 * m.x[1] >= 6)
    m.cost = pyo.Objective(expr=3 * m.x[0] + 4 * m.x[1])
    lp, _ = linear_program(m)
    assert safe_bound(lp, np.array([2.0])) == pytest.approx(2 * 6 + 0 + 0, abs=1e-11)
    assert safe_bound(lp, np.array([5.0])) == pytest.approx(5 * 6 - 10 * 2 - 10 * 6, abs=1e-11)
    assert safe_bound(lp, np.array([-1.0])) == pytest.approx(0.0, abs=1e-11)
    m.x[1].setub(None)
    assert safe_bound(linear_program(m)[0], np.array([5.0])) == -math.inf


def test_a_search_tells_nodes_incumbent_and_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "TELL_S", 0.0)
    heard: list[SearchStanding] = []
    answer = solve(knapsack(60), time_limit_s=0.6, settings=SETTINGS, on_standing=heard.append)
    assert len(heard) > 3
    assert [now.nodes for now in heard] == sorted(now.nodes for now in heard)
    last = heard[-1]
    assert last.bound <= answer.value <= last.best
    assert 0 < last.nodes <= answer.nodes


def test_reports_keep_their_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "TELL_S", 0.2)
    heard: list[float] = []
    solve(knapsack(60), time_limit_s=0.7, settings=SETTINGS, on_standing=lambda _: heard.append(time.perf_counter()))
    assert 1 <= len(heard) <= 4
    assert all(after - before >= 0.9 * highs.TELL_S for before, after in pairwise(heard))


def test_a_listener_that_interrupts_keeps_the_best_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "TELL_S", 0.0)

    def press(now: SearchStanding) -> None:
        if now.best is not None:
            raise KeyboardInterrupt

    started = time.perf_counter()
    answer = solve(knapsack(60), time_limit_s=60, settings=SETTINGS, on_standing=press)
    assert time.perf_counter() - started < 30
    assert answer.outcome == "interrupted"
    assert answer.bound < answer.value


def test_a_listener_that_fails_stops_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "TELL_S", 0.0)

    def fail(_: SearchStanding) -> None:
        raise ValueError("listener")

    with pytest.raises(ValueError, match="listener"):
        solve(knapsack(60), time_limit_s=60, settings=SETTINGS, on_standing=fail)
    assert solve(knapsack(12), time_limit_s=60, settings=SETTINGS).outcome == "optimal"


def _telling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the solver tell of 7 nodes, 2 to 1, in the model's units, before it answers."""
    plain = Backend.solve

    def told(self: Backend, model: Any, time_limit_s: float, on_standing: Any = None, *, start: bool = False) -> Any:
        answer = plain(self, model, time_limit_s, start=start)
        try:
            on_standing(SearchStanding(nodes=7, best=2.0 * answer.value, bound=answer.value))
        except KeyboardInterrupt:
            from dataclasses import replace

            return replace(answer, outcome="interrupted")
        return answer

    monkeypatch.setattr(Backend, "solve", told)


def test_progress_has_nodes_best_bound_and_gap_in_the_units_of_the_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    _telling(monkeypatch)
    heard: list[Progress] = []
    plan = coopt.solve(ask(), on_progress=heard.append)
    step = next(step for step in heard if step.nodes is not None)
    assert (step.stage, step.message, step.nodes) == ("solve", "7 nodes", 7)
    assert (step.best, step.bound) == pytest.approx((2 * plan.objective.value, plan.objective.value))
    assert step.gap == pytest.approx(0.5)


def test_a_plan_in_hand_survives_an_interrupt_by_the_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    _telling(monkeypatch)

    def press(step: Progress) -> None:
        if step.nodes is not None:
            raise KeyboardInterrupt

    plan = coopt.solve(ask(), on_progress=press)
    assert plan.stop_reason == "interrupted"
    assert plan.design is not None


@pytest.mark.parametrize("solver", ["built-in", "appsi_highs"])
@pytest.mark.parametrize("stage", ["columns", "build", "solve"])
def test_a_run_cancelled_at_any_stage_ends_as_interrupted(stage: str, solver: str) -> None:
    cancel = threading.Event()

    def press(step: Progress) -> None:
        if step.stage == stage:
            cancel.set()

    plan = coopt.solve(ask(), cancel=cancel, on_progress=press, solver=solver)
    assert (plan.status, plan.stop_reason) == ("unknown", "interrupted")


KINDS = {
    "shared": ask, "partition": teams, "phased": growing, "sites": lambda: Instance.model_validate(apart()),
    "direct": lambda: Instance.model_validate(linked()),
    "robust": lambda: ask(robust={"survive": ["nic"], "slower": 2.0}),
    "regret": lambda: ask(robust={"prices": {"nic": [0.5, 2.0]}, "aim": "regret"}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_of_any_kind_is_cancelled_where_it_stands(kind: str) -> None:
    cancel = threading.Event()

    def press(step: Progress) -> None:
        if step.stage == "build":
            cancel.set()

    plan = coopt.solve(KINDS[kind](), cancel=cancel, on_progress=press)
    assert (plan.status, plan.stop_reason) == ("unknown", "interrupted")


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_of_any_kind_without_time_or_interrupted_at_once_claims_nothing(kind: str) -> None:
    def press(_: object) -> None:
        raise KeyboardInterrupt

    late = coopt.solve(KINDS[kind](), time_limit_s=1e-9)
    assert (late.status, late.stop_reason, late.parts, late.objective.bound) == ("unknown", "time limit", (), None)
    pressed = coopt.solve(KINDS[kind](), on_progress=press)
    assert (pressed.status, pressed.stop_reason) == ("unknown", "interrupted")


def test_a_search_cancelled_by_another_thread_keeps_its_best_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "TELL_S", 0.0)
    cancel, found = threading.Event(), threading.Event()
    other = threading.Thread(target=lambda: (found.wait(), cancel.set()))
    other.start()
    answer = solve(
        knapsack(60),
        time_limit_s=60, settings=SETTINGS,
        on_standing=lambda now: found.set() if now.best is not None else None, cancel=cancel,
    )  # fmt: skip
    other.join()
    assert answer.outcome == "interrupted"
    assert answer.bound < answer.value


def test_waiting_for_another_search_counts_against_the_time_limit_and_can_be_cancelled() -> None:
    cancel = threading.Event()
    with ALONE:
        late = solve(knapsack(12), time_limit_s=0.2, settings=SETTINGS)
        plan = coopt.solve(ask(), time_limit_s=0.5)
        threading.Timer(0.1, cancel.set).start()
        cancelled = solve(knapsack(12), time_limit_s=60, settings=SETTINGS, cancel=cancel)
    assert (late.outcome, late.value, late.detail) == ("time limit", None, "not started")
    assert (plan.status, plan.stop_reason, plan.objective.bound) == ("unknown", "time limit", None)
    assert (cancelled.outcome, cancelled.detail) == ("interrupted", "not started")
    assert solve(knapsack(12), time_limit_s=60, settings=SETTINGS).outcome == "optimal"
    begun = coopt.solve(ask(), cancel=cancel)
    assert (begun.status, begun.stop_reason, begun.design, begun.objective.bound) == (
        "unknown",
        "interrupted",
        None,
        None,
    )
    plain, heard = coopt.solve(ask()), coopt.solve(ask(), cancel=threading.Event())
    assert heard.model_dump(exclude={"timing_s"}) == plain.model_dump(exclude={"timing_s"})


def test_runners_up_found_before_a_cancellation_are_kept() -> None:
    cancel = threading.Event()

    def press(step: Progress) -> None:
        if step.message.startswith("runner-up 2"):
            cancel.set()

    plan = coopt.solve(ask(), top=4, cancel=cancel, on_progress=press)
    assert (plan.status, plan.alternatives_stop, len(plan.alternatives)) == ("optimal", "interrupted", 1)


interfaces = pytest.mark.parametrize("name", ["appsi_highs", "highs"])


@interfaces
@pytest.mark.parametrize("question", [ask, partial(teams, network__fabrics="rail-only")], ids=["ask", "teams"])
def test_a_solver_of_pyomo_answers_as_the_built_in_one(question: Callable[..., Instance], name: str) -> None:
    expected, plan = coopt.solve(question()), coopt.solve(question(), solver=name)
    assert (plan.status, plan.parts, plan.cost) == (expected.status, expected.parts, expected.cost)
    assert (plan.solver.name, plan.solver.version) == (name, highs.version())
    assert coopt.verify(question(), plan).accepted
    assert coopt.solve(question(limits={"power_mw": 0.001}), solver=name, reasons=False).status == "infeasible"
    assert coopt.solve(question(solver={"name": name})).solver.name == name


@settings(max_examples=example_count(25))
@given(instances(), st.sampled_from(["appsi_highs", "highs"]))
def test_solvers_agree_on_random_instances(instance: Instance, name: str) -> None:
    expected, plan = coopt.solve(instance), coopt.solve(instance, solver=name)
    assert (plan.status, plan.design, plan.objective) == (expected.status, expected.design, expected.objective)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("foo", "Pyomo knows no solver of that name"),
        ("_glpk_shell", "Pyomo knows no solver of that name"),
        ("baron", "it is not installed or has no licence here"),
    ],
)
def test_other_solvers_are_refused_with_those_there_are(name: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_available", lambda one: one in backends.HIGHS)
    with pytest.raises(InstanceError) as refused:
        coopt.solve(ask(), solver=name)
    need = "needs 'built-in', 'appsi_highs' or 'highs'"
    assert str(refused.value) == f"solver.name = {name!r}: {why}, {need}"


def test_a_solver_for_other_problems_is_refused_with_its_words() -> None:
    with pytest.raises(InstanceError, match=r"solver.name = 'gdpopt': the solver failed with 'No algorithm"):
        coopt.solve(ask(), solver="gdpopt")


@interfaces
def test_a_time_limit_of_a_foreign_solver_keeps_the_best(name: str) -> None:
    backend = backend_of(Solver(name=name))
    answer = backend.solve(knapsack(60), 0.5)
    assert answer.outcome == "time limit"
    assert answer.bound < answer.value
    assert backend.solve(knapsack(60), 0.0).outcome == "time limit"


@interfaces
def test_infeasible_and_unbounded_are_told_apart(name: str) -> None:
    from formulations.network import NETWORK, build

    impossible = build(two_families(need=two_families().need + 20), NETWORK)
    answer = backend_of(Solver(name=name)).solve(impossible, 10.0)
    assert (answer.outcome, answer.value, answer.bound) == ("infeasible", None, -math.inf)


@interfaces
def test_gap_threads_and_seed_reach_the_solver(name: str) -> None:
    settings_of = backends.settings_of(Solver(name=name, gap=0.25, threads=2, seed=7))
    assert (settings_of["mip_rel_gap"], settings_of["threads"], settings_of["random_seed"]) == (0.25, 2, 7)
    assert backends.settings_of(Solver(name="glpk", gap=0.25, seed=7)) == {"mipgap": 0.25, "seed": 7}
    assert backends.settings_of(Solver(name="mosek_direct", gap=0.25)) == {}


class _Careless:
    """A solver that calls optimal what it has not proven."""

    def solve(self, model: Any, **_: Any) -> Any:
        highs.solve(model, time_limit_s=60, settings=highs.options(gap=0.0, threads=1))
        model.solutions = SimpleNamespace(load_from=lambda _: None)
        return SimpleNamespace(
            solver=SimpleNamespace(termination_condition=TerminationCondition.optimal, status=SolverStatus.ok),
            problem=SimpleNamespace(lower_bound=None),
            solution=[1],
        )


def test_an_optimum_without_a_bound_is_not_called_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "found_here", lambda _: (_Careless(), "1"))
    instance = ask()
    plan = coopt.solve(instance, solver="careless")
    assert (plan.status, plan.stop_reason, plan.objective.bound) == (
        "feasible",
        "the solver stopped at its own gap tolerance",
        None,
    )
    assert plan.objective.value == coopt.solve(instance).objective.value
    assert coopt.verify(instance, plan).accepted


def _worth(plan: Plan, value: float, bound: float) -> Plan:
    return plan.model_copy(
        update={"objective": plan.objective.model_copy(update={"value": value, "bound": bound, "gap": 0.0})}
    )


def test_answers_that_refute_each_other_do_not_agree() -> None:
    plan = coopt.solve(ask())
    assert agree(_worth(plan, 100.0, 99.0), _worth(plan, 101.0, 98.0))
    assert agree(_worth(plan, 100.0, 100.0), _worth(plan, 100.0, 100.00001))
    assert not agree(_worth(plan, 100.0, 99.0), _worth(plan, 98.0, 90.0))
    assert not agree(_worth(plan, 100.0, 99.0), _worth(plan, 102.0, 101.0))
    assert not agree(plan, plan.model_copy(update={"status": "infeasible"}))


def test_a_witness_that_is_unknown_or_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InstanceError, match="needs 'scip'"):
        coopt.solve(ask(), witness="oracle")
    monkeypatch.setattr("coopt.solving.runs._available", lambda name: False)
    with pytest.raises(InstanceError, match=r"pip install 'coopt\[witness"):
        coopt.solve(ask(), witness="scip")


@pytest.mark.skipif(importlib.util.find_spec("pyscipopt") is None, reason="pyscipopt is missing")
def test_the_witness_agrees() -> None:
    plan = coopt.solve(ask(), witness="scip")
    found = plan.solver.witness
    assert found.agrees
    assert found.value == plan.objective.value
    assert Plan.model_validate_json(plan.model_dump_json(by_alias=True)) == plan
