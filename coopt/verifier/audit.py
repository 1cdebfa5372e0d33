"""Check a plan against its instance, from nothing but the two, or derive what one that was given
amounts to.

The latter follows from its decisions, without a claim of proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from coopt.instance.couplings import LIMITED, limit_check
from coopt.instance.question import BILLED
from coopt.instance.schema import (
    Chosen,
    Instance,
    at_choice,
    choices_of,
    instance_of,
    seconds_weight,
)
from coopt.instance.texts import InstanceError
from coopt.instance.variants import leaves_tp_open, with_tp
from coopt.instance.workload import LONGEST_S
from coopt.plan.contents import running
from coopt.plan.parts import DirectLinks
from coopt.plan.schema import InstanceId, Plan
from coopt.plan.store import LimitCheck, PlanEvaluation, PlanFigure, decided, plan_of
from coopt.verifier.bounds.designs import check_bound, check_rivals
from coopt.verifier.bounds.fleets import check_fleet_bound
from coopt.verifier.bounds.links import check_link_bounds
from coopt.verifier.bounds.sites import check_sites_bound
from coopt.verifier.bounds.timed import check_timed
from coopt.verifier.checks.claims import (
    check_asked,
    check_form,
    check_gap,
    check_numbers,
    check_question,
    check_status,
    chooses_islands,
    grows_alone,
    none_feasible,
)
from coopt.verifier.checks.verdict import Check, Ledger, UnsoundError, Verdict
from coopt.verifier.couplings.growth import check_phased_bound
from coopt.verifier.couplings.prices import check_limits
from coopt.verifier.couplings.ring import check_sites
from coopt.verifier.couplings.scenarios import value_and_objective
from coopt.verifier.fleets import check_fleet, check_next_best
from coopt.verifier.parts.direct_links import check_direct
from coopt.verifier.parts.evidence import check_margin
from coopt.verifier.parts.part_checks import check_objective
from coopt.verifier.routes import check_routes

OF_WORKLOADS = {
    "iteration-time": ("iteration time", "s"),
    "memory": ("memory", "GiB"),
    "mfu": ("MFU", ""),
}
OF_ALL = {
    "capex": ("purchase", "USD"),
    "power": ("power", "W"),
    "tco": ("total cost of ownership", "USD"),
}
LIMITS = {
    "deadline": ("time", "s"),
    "memory-fits": ("memory", "GiB"),
    **{limit_check(key): limited for key, limited in LIMITED.items()},
    "limit-gpus": ("GPUs", "GPUs"),
    "most-products": ("products of a kind", "products"),
    "survives": ("bounds missed after a loss", ""),
}
DERIVED = frozenset(
    {
        *OF_WORKLOADS,
        *OF_ALL,
        *LIMITS,
        "hfu",
        "mfu-causal",
        "tokens",
        "breakdown",
        "bound-time",
        "memory-capacity",
        "objective",
    }
    | {
        "part-power",
        "core-power",
        "bill-lines",
        "bill-products",
        "cheapest-orders",
        "list-value",
        "turns",
    }
    | {
        "site-power",
        "site-power-limit",
        "exchange",
        "links-bound",
        "link-pace",
        "losses",
        "place-left",
        "restarted",
    }
    | {
        "rivals",
        "rivals-bound",
        "rival-bound",
        "rival-none",
        "rival-value",
        "phase-energy",
        "phase-power",
        "phase-work",
        "gap-target",
        "collectives",
    }
    | {"myopic", "myopic-step", "myopic-end", "myopic-value", "robust-terms", "uptime"}
)
"""Checks of what follows from the decisions of a plan; all others are of the decisions themselves.
"""
AT_OTHER_PRICES = frozenset({"bought-lines", "phased-bill", "phase-capex", "phase-years"})


def evaluate_plan(instance: Instance | str | Path, plan: Plan | str | Path) -> PlanEvaluation:
    """What the decisions of a plan amount to on an instance, which need not be the one it was made
    for.

    Networks, mappings, placements and whatever ties them stay as the plan has them; cost, times,
    memory and limits are those of the instance. Bounds and limits are reported, not enforced.

    Raises
    ------
    InstanceError
        When the plan builds nothing or decides what this instance does not allow; and for plans of
        phases, whose purchases follow prices, when the instance has other prices.

    Examples
    --------
    >>> import coopt
    >>> instance = coopt.load("instances/phased-128.toml")
    >>> coopt.evaluate_plan(instance, coopt.solve(instance)).value
    343840.0
    """
    instance, plan = instance_of(instance), plan_of(plan)
    if plan.cost is None:
        raise InstanceError(
            f"{instance.place}: the plan has status {plan.status!r} and builds nothing, needs a"
            " plan with a network"
        )
    # The plan may be one of another instance: what it chose is set here, and what it claims to
    # answer is replaced.
    is_own = plan.instance.sha256 == instance.sha256
    instance, plan = decided(instance, plan, same=False)
    ledger = Ledger()
    # What it says of other plans is left out: that holds for its own instance.
    nothing_beside = {"assumptions": (), "better_numbers": (), "cliffs": (), "next_best": None}
    nothing_beside["ties"] = ()
    identity = InstanceId(name=instance.name, sha256=instance.sha256)
    claim = plan.model_copy(update={"instance": identity, **nothing_beside})
    check_contents(ledger, instance, claim)
    _refuse_other_decisions(instance, ledger)
    labels = [run.label for run in running(plan)]
    # the verifier looks at the last phase of an island before the phases that grow into it
    order = {part.name: number for number, part in enumerate(plan.parts)}
    checks = sorted(ledger.of_plan, key=lambda check: order.get(check.part, len(order)))
    if not labels or sum(check.name == "iteration-time" for check in checks) != len(labels):
        raise InstanceError(
            f"{instance.place}: the parts and workloads of the plan are not those of this instance,"
            " needs a plan that `coopt verify` accepts on an instance with the same workloads,"
            " sites and phases"
        )
    figures = (*_of_workloads(checks, labels), *_of_all(checks))
    kind = instance.objective.minimize
    objective = next((check.recomputed for check in checks if check.name == "objective"), None)
    figure_name = OF_ALL[BILLED[kind]][0]
    cost = next(figure.value for figure in figures if figure.name == figure_name)
    known = objective if isinstance(objective, float) else None
    value, minimized = value_and_objective(instance, known, cost, is_own=is_own)
    return PlanEvaluation(
        instance=InstanceId(name=instance.name, sha256=instance.sha256),
        kind=kind,
        value=value,
        objective=minimized,
        figures=figures,
        limits=tuple(_limits(checks, labels)),
    )


def _refuse_other_decisions(instance: Instance, ledger: Ledger) -> None:
    wrong = [check for check in ledger.checks if not check.ok and check.name not in DERIVED]
    if any(check.name in AT_OTHER_PRICES for check in wrong):
        raise InstanceError(
            f"{instance.place}: what each phase buys follows from prices and years, and what the"
            " plan buys does not follow from those of the instance, needs the prices and years for"
            " which the plan was made"
        )
    if wrong:
        raise InstanceError(
            f"{instance.place}: the plan is not one that this instance allows ({check.name}:"
            f" {check.why})"
            for check in wrong
        )


def _of_workloads(checks: list[Check], labels: list[str]) -> list[PlanFigure]:
    figures = []
    for name, (words, unit) in OF_WORKLOADS.items():
        named_checks = [check for check in checks if check.name == name]
        assert len(named_checks) == len(labels), name
        for label, check in zip(labels, named_checks, strict=True):
            assert isinstance(check.recomputed, float)
            figures.append(PlanFigure(name=words, of=label, value=check.recomputed, unit=unit))
    return figures


def _of_all(checks: list[Check]) -> list[PlanFigure]:
    """Sums of everything together: those of parts stand before them."""
    figures = []
    for name, (words, unit) in OF_ALL.items():
        # the ledger has those of parts before that of everything
        *_, total = [check.recomputed for check in checks if check.name == name]
        assert isinstance(total, float | int)
        figures.append(PlanFigure(name=words, of="", value=float(total), unit=unit))
    return figures + [
        PlanFigure(name="facility power", of=check.subject, value=check.recomputed, unit="W")
        for check in checks
        if check.name == "site-power" and isinstance(check.recomputed, float)
    ]


def _limits(checks: list[Check], labels: list[str]) -> Iterator[LimitCheck]:
    """Bounds of every workload, then what holds for all."""
    labels_left = {name: iter(labels) for name in ("deadline", "memory-fits")}
    fed_w = {check.subject: check.recomputed for check in checks if check.name == "site-power"}
    for check in checks:
        limit, value, ok = check.claimed, check.recomputed, check.ok
        words, unit = LIMITS.get(check.name, ("", ""))
        name = ": ".join(filter(None, (check.subject, words)))
        if check.name in labels_left:
            name = f"{words}, {next(labels_left[check.name])}"
        if check.name == "site-power-limit":
            limit, value, name = value, fed_w[check.subject], f"facility power, {check.subject}"
            unit, ok = "W", isinstance(limit, float) and isinstance(value, float) and value <= limit
        elif check.name == "survives":
            limit, value, unit = 0.0, float(not ok), "losses"
        elif check.name not in LIMITS:
            continue
        value = len(value) if isinstance(value, tuple) else value
        if check.name == "deadline" and isinstance(limit, float) and limit >= LONGEST_S:
            continue  # no bound is none that a plan could keep
        if isinstance(limit, float | int) and isinstance(value, float | int):
            yield LimitCheck(name=name, value=float(value), limit=float(limit), unit=unit, ok=ok)


def check_contents(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check what a plan builds: sites that train together, direct links, or islands."""
    if plan.rivals is not None:
        check_rivals(ledger, instance, plan, plan.rivals)
    if plan.cost is None or not plan.parts:
        return
    with suppress(UnsoundError):
        if instance.asks("ring"):
            check_sites(ledger, instance, plan)
        elif plan.parts[0].links is not None:
            check_links(ledger, instance, plan, plan.parts[0].links)
        else:
            check_fleet(ledger, instance, plan)
    ledger.turn_to()


def check_links(ledger: Ledger, instance: Instance, plan: Plan, links: DirectLinks) -> None:
    """Check a cluster on direct links, its limits and its value."""
    sums = check_direct(ledger, instance, plan, links)
    check_limits(ledger, instance, sums, links.racks)
    check_objective(ledger, plan, sums)


def check_claim(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check the bound of a plan, or that nothing is feasible."""
    if instance.asks("ring"):
        check_sites_bound(ledger, instance, plan)
    elif instance.asks("direct"):
        check_link_bounds(ledger, instance, plan)
    elif grows_alone(instance, plan.objective.kind):
        check_phased_bound(ledger, instance, plan)
    elif chooses_islands(instance) or (instance.minimizes_regret and plan.status != "infeasible"):
        check_fleet_bound(ledger, instance, plan)
    else:
        check_bound(ledger, instance, plan)


def verify(
    instance: Instance | str | Path,
    plan: Plan | str | Path,
    *,
    routes: str | None = None,
    part: str | None = None,
) -> Verdict:
    """Re-derive all a plan claims.

    First comes what every plan has, then what a plan of this kind holds, then its bound. Every
    check appears in the verdict by its name in `coopt.verifier.checks.names`. Where a claim is so
    wrong that others cannot be looked into (an unknown switch, a mapping that does not divide),
    those are left out: the verdict is a rejection anyway.

    Parameters
    ----------
    instance
        The question, or the file that holds it.
    plan
        The answer, or the file that holds it.
    routes
        The table of `coopt export --format routes`, where flows are pinned to paths: checked where
        all else holds.
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
    plan = plan_of(plan)
    ledger = Ledger()
    if check_numbers(ledger, plan) and check_question(ledger, instance, plan):
        check_margin(ledger, instance)
        check_tp_is_open(ledger, instance, plan)
        placed = with_tp(instance, across=plan.tp_across)
        questions = list(check_chosen(ledger, placed, plan))
        if questions:
            _check(ledger, questions, plan)
            check_none_inside(ledger, instance, plan)
            if plan.next_best is not None and plan.cost is not None:
                chosen, others = plan.next_best.chosen, iter(questions)
                if chosen != Chosen():  # else it is another plan of the same choice
                    elsewhere = plan.model_copy(update={"chosen": chosen})
                    others = check_chosen(ledger, placed, elsewhere)
                for other in islice(others, 1):
                    check_next_best(ledger, instance, other, plan)
        if questions and routes is not None and all(check.ok for check in ledger.checks):
            check_routes(ledger, questions[0], plan, routes, part)
    return ledger.verdict(plan.objective)


def _check(ledger: Ledger, questions: Sequence[Instance], plan: Plan) -> None:
    """Check a plan as the answer to the first question, and its bound as one on all of them."""
    question = questions[0]
    check_asked(ledger, question, plan)
    check_status(ledger, question, plan)
    check_gap(ledger, plan)
    check_form(ledger, question, plan)
    if check_timed(ledger, question, plan):
        check_contents(ledger, question, plan)
        # Bounds on several choices repeat the same checks, which are told once.
        count_before = len(ledger.checks)
        for choice in questions:
            check_claim(ledger, choice, _as_claim_on(choice, question, plan))
        ledger.checks[count_before:] = dict.fromkeys(ledger.checks[count_before:])


def check_tp_is_open(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that TP groups may extend where the instance leaves that open alone, and do where
    nothing is feasible.
    """
    is_open, across = leaves_tp_open(instance), plan.tp_across
    inside, over = "inside HB domains", "over several"
    must_be_over = is_open and plan.status == "infeasible"
    ledger.holds(
        "tp-open",
        across if must_be_over else is_open or not across,
        over if across else inside,
        over if must_be_over else "either" if is_open else inside,
        "The plan claims that nothing is feasible, but TP groups that span HB domains were not"
        " tried."
        if must_be_over
        else "The plan decides that TP groups may span HB domains, but no workload of the instance"
        " leaves that choice open.",
    )


def check_none_inside(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that nothing is feasible with TP groups inside HB domains, where a plan says so, as far
    as bounds are.

    It takes long, and is left out where something else is wrong.
    """
    if not plan.tp_across or plan.cost is None or not all(check.ok for check in ledger.checks):
        return
    inside, claim = with_tp(instance, across=False), none_feasible(plan)
    claim_ledger = Ledger()
    for choice in choices_of(inside):
        check_claim(claim_ledger, _of_choice(inside, choice), claim)
    for check in claim_ledger.checks:
        name = "tp-inside-source" if check.name == "bound-source" else "tp-inside"
        ledger.holds(
            name,
            check.ok,
            check.claimed,
            check.recomputed,
            f"With TP groups inside HB domains: {check.why}",
        )


def _as_claim_on(choice: Instance, question: Instance, plan: Plan) -> Plan:
    """The plan with its bound as one on another choice, whose iterations may be fewer and
    longer.
    """
    kind, bound = plan.objective.kind, plan.objective.bound
    if bound is None or choice is question:
        return plan
    # choices are compared over the training: a bound on an iteration is one on as many as each of
    # them takes
    moved = bound * (seconds_weight(question, kind) / seconds_weight(choice, kind))
    return plan.model_copy(update={"objective": plan.objective.model_copy(update={"bound": moved})})


def check_chosen(ledger: Ledger, instance: Instance, plan: Plan) -> Iterator[Instance]:
    """The question that the plan chose of those that its instance leaves open, then all others;
    none if it may not.
    """
    choices = list(choices_of(instance))
    claim = plan.chosen
    if claim == Chosen() and plan.cost is None:
        claim = choices[0]
    if ledger.holds(
        "chosen",
        claim in choices,
        claim.text,
        tuple(candidate.text for candidate in choices),
        f"The plan chooses {claim.text!r}, which is not one of the instance's choices."
        if claim.text
        else "The instance leaves a choice open, and the plan does not say what it chooses.",
    ):
        for choice in [claim, *(candidate for candidate in choices if candidate != claim)]:
            yield _of_choice(instance, choice)


def _of_choice(instance: Instance, choice: Chosen) -> Instance:
    """The question of one choice; the question itself where it leaves nothing open."""
    return instance if choice == Chosen() else at_choice(instance, choice)
