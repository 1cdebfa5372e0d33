"""Check a plan against its instance, from nothing but the two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from coopt.instance.choices import Chosen, at_choice, choices_of, seconds_weight
from coopt.instance.files import instance_of
from coopt.instance.schema import Instance, Problem
from coopt.plan.schema import Plan
from coopt.plan.store import read_plan
from coopt.verifier.bounds.designs import check_bound, check_robust_bound
from coopt.verifier.bounds.fleets import check_fleet_bound
from coopt.verifier.bounds.growth import check_phased_bound
from coopt.verifier.bounds.links import check_link_bounds
from coopt.verifier.bounds.partition import check_partition_bound
from coopt.verifier.bounds.timed import check_timed
from coopt.verifier.checks.claims import check_asked, check_gap, check_numbers, check_question, check_status
from coopt.verifier.checks.form import check_form
from coopt.verifier.checks.verdict import Ledger, Verdict
from coopt.verifier.clusters import check_on_links, check_robust, check_shared
from coopt.verifier.couplings.growth import Growths, check_growth, check_phases
from coopt.verifier.couplings.myopic import check_myopic
from coopt.verifier.couplings.purchases import check_purchases
from coopt.verifier.fleets import check_fleet
from coopt.verifier.islands import check_partition
from coopt.verifier.routes import check_routes
from coopt.verifier.sites import check_sites, check_sites_bound

PlanCheck = Callable[[Ledger, Instance, Plan], None]


def check_phased(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Re-derive what a plan says of its phases, of their cost, and of planning phase by phase."""
    kind = plan.objective.kind
    why = "Phases are planned for capex or tco."
    holds = ledger.holds("phased-objective", kind != "power", kind, ("capex", "tco"), why)
    if not holds or plan.cost is None:
        return
    growths = Growths(instance, kind)
    grown = check_growth(ledger, growths, plan)
    if grown is not None:
        check_phases(ledger, growths, plan, grown)
        check_purchases(ledger, instance, plan, grown)
    check_myopic(ledger, growths, plan)


class PlanChecks(NamedTuple):
    """How plans of a kind of problem are checked: what they hold, if anything, and what they say is proven."""

    contents: PlanCheck
    bound: PlanCheck


KINDS: dict[Problem, PlanChecks] = {
    "shared": PlanChecks(check_shared, check_bound),
    "partition": PlanChecks(check_partition, check_partition_bound),
    "phased": PlanChecks(check_phased, check_phased_bound),
    "sites": PlanChecks(check_sites, check_sites_bound),
    "robust": PlanChecks(check_robust, check_robust_bound),
    "direct": PlanChecks(check_on_links, check_link_bounds),
    "fleet": PlanChecks(check_fleet, check_fleet_bound),
}


def verify(
    instance: Instance | str | Path, plan: Plan | str | Path, *, routes: str | None = None, part: str | None = None
) -> Verdict:
    """Re-derive all a plan claims.

    First comes what every plan has, then what a plan of this kind holds, then its bound. Every check appears in the
    verdict by its name in `coopt.verifier.names`. Where a claim is so wrong that others cannot be looked into (an
    unknown switch, a mapping that does not divide), those are left out: the verdict is a rejection anyway.

    Parameters
    ----------
    instance
        The question, or the file that holds it.
    plan
        The answer, or the file that holds it.
    routes
        The table of `coopt export --format routes`, where flows are pinned to paths: checked where all else holds.
    part
        Whose routes they are, where the plan has several networks.

    Examples
    --------
    >>> import coopt
    >>> instance = coopt.load("instances/tiny-64.toml")
    >>> plan = coopt.solve(instance)
    >>> wrong = plan.model_copy(update={"cost": plan.cost.model_copy(update={"capex_usd": 1.0})})
    >>> coopt.verify(instance, plan).accepted, coopt.verify(instance, wrong).accepted
    (True, False)
    """
    instance = instance_of(instance)
    plan = plan if isinstance(plan, Plan) else read_plan(plan)
    ledger = Ledger()
    if check_numbers(ledger, plan) and check_question(ledger, instance, plan):
        questions = list(check_chosen(ledger, instance, plan))
        if questions:
            _check(ledger, questions, plan)
        if questions and routes is not None and all(check.ok for check in ledger.checks):
            check_routes(ledger, questions[0], plan, routes, part)
    return ledger.verdict(plan.objective.gap)


def _check(ledger: Ledger, questions: Sequence[Instance], plan: Plan) -> None:
    """Check a plan as the answer to the first question, and its bound as one on all of them."""
    question = questions[0]
    check_asked(ledger, question, plan)
    check_status(ledger, question, plan)
    check_gap(ledger, plan)
    check_form(ledger, question, plan)
    if check_timed(ledger, question, plan):
        KINDS[question.problem].contents(ledger, question, plan)
        before = len(ledger.checks)
        for one in questions:
            KINDS[one.problem].bound(ledger, one, _as_claim_on(one, question, plan))
        ledger.say_once(before)


def _as_claim_on(other: Instance, question: Instance, plan: Plan) -> Plan:
    """The plan with its bound as one on another choice, whose iterations may be fewer and longer."""
    kind, bound = plan.objective.kind, plan.objective.bound
    if bound is None or other is question:
        return plan
    moved = bound * (seconds_weight(question, kind) / seconds_weight(other, kind))
    return plan.model_copy(update={"objective": plan.objective.model_copy(update={"bound": moved})})


def check_chosen(ledger: Ledger, instance: Instance, plan: Plan) -> Iterator[Instance]:
    """The question that the plan chose of those that its instance leaves open, then all others; none if it may not."""
    choices = list(choices_of(instance)) if instance.problem == "choice" else [Chosen()]
    said = plan.chosen
    if said == Chosen() and plan.cost is None:
        said = choices[0]
    why = f"The instance leaves no choice of {said.text or 'nothing'} open."
    if ledger.holds("chosen", said in choices, said.text, tuple(one.text for one in choices), why):
        for chosen in [said, *(one for one in choices if one != said)]:
            yield at_choice(instance, chosen) if instance.problem == "choice" else instance
