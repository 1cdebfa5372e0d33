"""Plans that claim more than they prove are refused, and plans that claim what is true are not."""

from pathlib import Path

import pytest

from coopt.instance.schema import Instance, load
from coopt.instance.texts import exact
from coopt.plan.schema import InstanceId, ObjectiveClaim, Plan
from coopt.report.explanation import verdict_headline
from coopt.report.page.contents import PageCase, opening
from coopt.serve.contents import verdict_contents
from coopt.solving.answer import solve
from coopt.solving.fastest import fastest_design
from coopt.verifier.audit import verify
from coopt.verifier.checks.verdict import SOLVERS_WORD, Ledger, UndecidedRival, Verdict
from tests.changes import with_part
from tests.conftest import ask
from tests.verifier.test_claims import ORIGIN

CASES = Path(__file__).parents[1] / "data" / "verdicts"


def in_exactly(bound_s: float) -> Instance:
    """A question whose TP groups stay inside domains, with a bound that some design may take to the last digit."""
    return ask(workload__0__max_iteration_time_s=bound_s, workload__0__allow_tp_across=False)


def check_doubted(asked: Instance, claim: Plan, rival: float, said: str) -> None:
    """Check that a claim is accepted, its rival named, and nothing said to be best.

    A rival that meets its bound exactly may do so by rounding alone, so that it refutes nothing.
    """
    verdict = verify(asked, claim)
    assert verdict.accepted
    assert said in verdict_headline(verdict)
    assert verdict_headline(verdict).endswith(f"rests on {SOLVERS_WORD}.")
    (source,) = (str(check.recomputed) for check in verdict.checks if check.name == "bound-source")
    assert source.startswith(f"undecided: a design at ${exact(rival)} with ")
    assert verdict.undecided.value == rival
    page = PageCase(instance=asked, plan=claim, verdict=verdict, origin=ORIGIN)
    assert opening(page)[1].startswith("Claimed, but not confirmed ")
    assert not verdict_contents(verdict)["best"]


def test_a_rival_that_meets_its_bound_exactly_leaves_a_gap() -> None:
    """The plan is that of a bound a little shorter."""
    cheap = solve(in_exactly(0.5))
    bound_s, rival = cheap.workloads[0].iteration_time_s, cheap.objective.value
    asked, dearer = in_exactly(bound_s), solve(in_exactly(bound_s * (1 - 1e-7)))
    assert dearer.objective.value > rival
    run = dearer.workloads[0].model_copy(update={"bound_s": bound_s})
    claim = with_part(dearer, workloads=(run,)).model_copy(
        update={"instance": InstanceId(name=asked.name, sha256=asked.sha256)}
    )
    check_doubted(asked, claim, rival, "the proven gap is ")


def test_a_rival_that_meets_its_bound_exactly_is_named_where_nothing_is_said_to_be_feasible() -> None:
    fastest = fastest_design(in_exactly(0.5))
    assert not isinstance(fastest, tuple)
    bound_s = fastest.workloads[0].iteration_time_s
    asked, none = in_exactly(bound_s), solve(in_exactly(bound_s * (1 - 1e-7)))
    assert none.status == "infeasible"
    claim = none.model_copy(update={"instance": InstanceId(name=asked.name, sha256=asked.sha256)})
    best = solve(asked).objective.value
    check_doubted(asked, claim, best, "not ruled out")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("robust_exact_refused", 48600.0),
        ("regret_exact_refused", 0.0),
        ("phased_133_5", 5.558336538645947e-06),
        ("core_min", 6e-05),
        ("robust_189_6", 0.0),
    ],
)
def test_honest_plans_are_accepted(name: str, value: float) -> None:
    instance = load(CASES / f"{name}.toml")
    plan = solve(instance)
    assert plan.status == "optimal"
    assert plan.objective.value == pytest.approx(value, rel=1e-12, abs=0)
    verdict = verify(instance, plan)
    assert not verdict.failures
    assert bool(verdict.undecided) == bool(verdict.on_trust)


def test_a_rival_of_another_choice_is_told_in_the_unit_of_the_plan() -> None:
    """A bound on another choice is another number where its iterations are fewer and longer."""
    ledger, claim = Ledger(), ObjectiveClaim(kind="capex", value=400.0, bound=300.0, gap=0.25)
    ledger.note_rival(500.0, 600.0)
    ledger.note_rival(290.0, 300.0)
    verdict = ledger.verdict(claim)
    assert verdict.undecided == UndecidedRival(kind="capex", value=250.0, gap=0.375)
    assert Verdict.model_validate_json(verdict.model_dump_json()) == verdict
    assert ledger.verdict(claim.model_copy(update={"bound": 0.0})).undecided is None


def test_a_runner_up_that_is_undecided_leaves_the_plan_its_gap() -> None:
    ledger = Ledger()
    ledger.note_rival(300.0, 300.0)
    assert ledger.verdict(ObjectiveClaim(kind="capex", value=300.0, bound=300.0, gap=0.0)).undecided is None
