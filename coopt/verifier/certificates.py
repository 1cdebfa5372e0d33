"""Prove a bound once more, in fractions: every design that would cost less is priced exactly and
fails for a reason.

No solver and no floating-point money. What is assumed is the space of designs (docs/network.md) and
the time and memory of an iteration (docs/model.md), whose sums are taken 1e-9 in favour of every
rival: a design that may be in time counts as one that is. In a chain of designs that differ in the
uplinks of a leaf, price rises and time falls with uplinks, so that the one with the most uplinks
speaks for all cheaper ones: where it is too slow, they are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Self

from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance, instance_of, require_billed
from coopt.instance.texts import InstanceError, both, counted, exact_amount
from coopt.instance.variants import with_tp
from coopt.plan.parts import Record
from coopt.plan.schema import Plan, Proof
from coopt.plan.store import (
    check_same_question,
    claims_of,
    decided,
    placed_as,
    plan_of,
    read_proof,
)
from coopt.verifier.bounds.links import LinksBound
from coopt.verifier.bounds.sites import ENUMERATED, SitesBound
from coopt.verifier.checks.claims import asked_kind, chooses_islands, grows_alone, none_feasible
from coopt.verifier.checks.verdict import LENIENT, ROUNDING, agree
from coopt.verifier.couplings.growth import growths_of, least_growth_below
from coopt.verifier.couplings.losses import loss_condition
from coopt.verifier.couplings.scenarios import certain_question, hopeful_question, scenario_bests
from coopt.verifier.parts.bills import (
    bill,
    decimal,
    exact_worth,
)
from coopt.verifier.parts.enumeration import (
    FoundDesign,
    cheapest_design,
    designs_below,
    no_condition,
)
from coopt.verifier.parts.stages import GrowthStage
from coopt.verifier.proofs.cases import JUST_ABOVE, prove_cases, prove_without_multipliers


class Certificate(Record):
    """What was proven of a bound, in the unit of the objective.

    `bound_proven` is the bound that holds, None where none was proven; `exact` is the same as a
    fraction. `by` says how; where the plan or its proof lacks what that takes, `by` is empty and
    `missing` says what. `reasons` counts what was tried: designs by why they do not refute the
    bound, or cases, choices, mappings, rings and ranges. `ok` where all that is claimed is proven.
    """

    bound_claimed: float | None
    bound_proven: float | None
    exact: str | None
    by: str
    missing: str = ""
    reasons: dict[str, int]
    ok: bool

    def with_word(self, word: str) -> Self:
        """The certificate with a further word on how, or on what is missing."""
        update = {"by": f"{self.by}{word}"} if self.by else {"missing": f"{self.missing}{word}"}
        return self.model_copy(update=update)


def certify(
    instance: Instance | str | Path,
    plan: Plan | str | Path,
    proof: Proof | str | Path | None = None,
) -> Certificate:
    """Prove the bound of a plan, or that nothing is feasible, once more.

    Parameters
    ----------
    instance, plan
        The question and its answer, or the files that hold them.
    proof
        What proves a bound of islands (`coopt prove` finds it), or the file that holds it.

    Raises
    ------
    InstanceError
        When the plan, or the proof, answers another question.

    Examples
    --------
    >>> import coopt
    >>> plan = coopt.solve("instances/tiny-64.toml")
    >>> found = coopt.certify("instances/tiny-64.toml", plan)
    >>> found.ok, found.exact
    (True, '181888')
    """
    instance = instance_of(instance)
    plan = plan_of(plan)
    if instance.open_keys:
        return _of_choices(instance, plan, proof)
    check_same_question(instance, plan)
    kind = asked_kind(instance, plan)
    require_billed(instance, "certify", kind)
    if isinstance(proof, str | Path):
        proof = read_proof(proof)
    if proof is not None and (proof.instance.sha256 != instance.sha256 or proof.objective != kind):
        is_own = proof.instance.sha256 == instance.sha256
        other = (
            f"the objective {proof.objective!r}"
            if is_own
            else f"another instance, {proof.instance.name!r}"
        )
        raise InstanceError(
            f"{instance.place}: the proof is of {other}, needs one of this very instance with the"
            f" objective {kind!r}"
        )
    # A bound on TP groups that may lie anywhere counts only where nothing is feasible with them
    # inside domains.
    certificate = _certified(*placed_as(instance, plan), proof, kind)
    if not plan.tp_across or plan.cost is None:
        return certificate
    inside = with_tp(instance, across=False)
    none_inside = _certified(inside, none_feasible(plan), None, kind)
    return _with_none_inside(certificate, none_inside, kind)


def _with_none_inside(
    certificate: Certificate, inside: Certificate, kind: ObjectiveKind
) -> Certificate:
    """What is proven of a plan whose TP groups may extend over HB domains since nothing inside them
    is feasible.
    """
    outcome, reason = ("proven" if inside.ok else "not proven"), inside.by or inside.missing
    if not inside.ok and inside.bound_proven is not None:
        reason = f"a plan at {exact_amount(kind, inside.bound_proven)} may be feasible"
    word = f"; that nothing is feasible with TP groups inside HB domains is {outcome}: {reason}"
    return certificate.with_word(word).model_copy(update={"ok": certificate.ok and inside.ok})


def _certified(
    instance: Instance, plan: Plan, proof: Proof | None, kind: ObjectiveKind
) -> Certificate:
    """What is proven of a plan whose question says where TP groups may lie."""
    bound = plan.objective.bound
    if plan.objective.kind != kind:
        return _stated(
            plan, missing=f"the plan minimizes {plan.objective.kind}, but {kind} was requested"
        )
    if bound is None and plan.status != "infeasible":
        return _stated(plan, by="nothing, as the plan claims no bound")
    if bound is not None and plan.status == "infeasible":
        return _stated(
            plan, missing="the plan says that nothing is feasible, and still has a bound"
        )
    ceiling = math.inf if bound is None else bound
    if instance.asks("ring"):
        sites_bound = SitesBound(instance, kind, ceiling)
        by = f"{ENUMERATED} was enumerated, each network priced exactly"
        return _certificate(plan, sites_bound.least, sites_bound.tried).model_copy(
            update={"by": by}
        )
    if instance.asks("direct"):
        return _of_links(instance, plan, proof, kind)
    if grows_alone(instance, kind):
        growth = least_growth_below(growths_of(instance, kind), ceiling, LENIENT)
        return _certificate(plan, growth, Counter())
    if chooses_islands(instance):
        return (
            _of_islands(instance, plan, kind) if proof is None else _of_cases(instance, plan, proof)
        )
    if instance.minimizes_regret and bound is not None:
        return _of_regret(instance, plan, kind)
    if instance.availability is not None:
        designs = list(designs_below(instance, kind, ceiling, margin=LENIENT))
        design = min(designs, key=attrgetter("value"), default=None)
        reasons = +Counter({"designs that may be feasible": len(designs)})
    else:
        question = certain_question(instance)
        stands = loss_condition(question, LENIENT) if instance.losses else no_condition
        design, reasons = cheapest_design(question, kind, ceiling, stands, LENIENT)
    return _certificate(plan, _value_of(design), reasons)


def _value_of(design: FoundDesign | None) -> Fraction | None:
    return None if design is None else Fraction(design.value)


def _of_choices(instance: Instance, plan: Plan, proof: Proof | str | Path | None) -> Certificate:
    """What is proven of a plan whose question leaves choices open: for each of them, or for its own
    by a proof.
    """
    if proof is not None:
        certificate = certify(*decided(instance, plan), proof)
        return certificate.with_word(f", with {plan.chosen.text}; other choices were not examined")
    certificates = [certify(question, claim) for question, claim in claims_of(instance, plan)]
    # what is proven of all choices is what is proven of the weakest
    certificate = min(
        certificates,
        key=lambda answer: (
            answer.ok,
            -math.inf if answer.bound_proven is None else answer.bound_proven,
        ),
    )
    reasons = sum((Counter(answer.reasons) for answer in certificates), Counter[str]())
    which = "each" if certificate.by else "one"
    count = len(certificates)
    word = f", for {which} of {counted(count, 'choice')}" if count > 1 else ""
    return certificate.with_word(word).model_copy(update={"reasons": dict(reasons)})


def _of_links(
    instance: Instance, plan: Plan, proof: Proof | None, kind: ObjectiveKind
) -> Certificate:
    """What lengths prove of direct links, beside switches that are gone through."""
    ceiling = math.inf if plan.objective.bound is None else plan.objective.bound
    # Designs with switches compete with direct links, so that the bound is one on both.
    design, reasons = cheapest_design(instance, kind, ceiling, margin=LENIENT)
    rivals = plan.rivals
    lengths = proof.links if proof is not None else () if rivals is None else rivals.lengths
    links = LinksBound(instance, kind, ceiling, lengths)
    least_value = min(
        (value for value in (_value_of(design), links.least) if value is not None), default=None
    )
    certificate = _certificate(plan, least_value, reasons + links.tried)
    by = (
        "weights and cuts of the graph of direct links"
        if lengths
        else "the fewest whole links that each HB domain needs"
    )
    by += "; each design with switches was priced exactly"
    return certificate.model_copy(update={"by": by})


def _of_islands(instance: Instance, plan: Plan, kind: ObjectiveKind) -> Certificate:
    """What is proven of islands without a proof: that some workload has none."""
    if plan.status == "infeasible" and prove_without_multipliers(instance, kind).least == math.inf:
        of_some = instance.sharing.mode == "partition" and len(instance.workload) > 1
        which = "some workload has none that is" if of_some else "none is"
        return _stated(plan, by=f"all networks were enumerated: {which} feasible")
    what = f"no proof is given, and a plan of {_choice_words(instance)} needs one"
    return _stated(
        plan,
        missing=f"{what} (`coopt prove INSTANCE PLAN.json -o PROOF.json` looks for it; then give"
        " `--proof PROOF.json`)",
    )


def _choice_words(instance: Instance) -> str:
    """What a plan is of that a choice model found: islands, or one network to which several tables
    apply.
    """
    if instance.sharing.mode == "partition":
        return "islands"
    reserves = ["[availability]"] if instance.availability is not None else []
    return f"one network with {both([*instance.parted_by, *reserves])}"


def _of_cases(instance: Instance, plan: Plan, proof: Proof) -> Certificate:
    """What the cases of a proof prove of islands."""
    proven = prove_cases(instance, plan, proof)
    claim = plan.objective.bound
    outcome = (
        "has a value below the proven bound" if claim is not None else "meets all bounds and limits"
    )
    nouns = "islands" if instance.sharing.mode == "partition" else "networks"
    # A plan without a bound claims that nothing is feasible: then cases have to rule out every
    # value.
    ok = proven.least >= (math.inf if claim is None else claim * (1 - ROUNDING))
    missing = "" if ok else proven.why
    return Certificate(
        bound_claimed=claim,
        bound_proven=proven.least if math.isfinite(proven.least) else None,
        exact=str(Fraction(repr(proven.least))) if math.isfinite(proven.least) else None,
        by=""
        if missing
        else f"the proof's multipliers show in every case that no choice of {nouns} {outcome}",
        missing=missing,
        reasons={"cases": proven.leaves, f"choices of {nouns} priced one by one": proven.opened},
        ok=ok,
    )


def _of_regret(instance: Instance, plan: Plan, kind: ObjectiveKind) -> Certificate:
    """What follows when every design is priced in every price scenario, the best of each
    among them.
    """
    bound, scenarios = plan.objective.bound, scenario_bests(plan)
    if bound is None or [factors for factors, _ in scenarios] != instance.price_scenarios:
        missing = "the price scenarios of the plan are not those of the instance"
        return _stated(plan, missing=missing)
    hopeful = hopeful_question(instance)
    stands = loss_condition(hopeful, LENIENT)
    for factors, best_value in scenarios:
        value_at = partial(exact_value, hopeful, kind=kind, factors=factors)
        # Regret is measured from the best value at each corner, which so has to be proven first.
        design, _ = cheapest_design(
            hopeful, kind, best_value * JUST_ABOVE, stands, LENIENT, value_at
        )
        if design is None or not agree(float(design.value), best_value, ROUNDING):
            return _stated(
                plan,
                missing="the best design of a price scenario does not have the stated value of"
                f" {exact_amount(kind, best_value)}",
            )
    question = certain_question(instance)

    def regret(row: GrowthStage, up: int) -> Fraction:
        values = (
            exact_value(question, row, up, kind, factors) - decimal(best_value)
            for factors, best_value in scenarios
        )
        return max(Fraction(), *values)

    ceiling = bound - ROUNDING * max([bound, *(best_value for _, best_value in scenarios)])
    stands = loss_condition(question, LENIENT)
    rival, reasons = cheapest_design(question, kind, ceiling, stands, LENIENT, regret)
    return _certificate(plan, _value_of(rival), reasons)


def _stated(plan: Plan, *, by: str = "", missing: str = "") -> Certificate:
    """What is said of a plan without a bound that is proven."""
    return Certificate(
        bound_claimed=plan.objective.bound,
        bound_proven=None,
        exact=None,
        by=by,
        missing=missing,
        reasons={},
        ok=not missing,
    )


def _certificate(plan: Plan, rival: Fraction | None, reasons: Counter[str]) -> Certificate:
    """What follows when the cheapest design below the bound is worth that, None where there is
    none.
    """
    claim = plan.objective.bound
    proven = Fraction(repr(claim)) if rival is None and claim is not None else rival
    return Certificate(
        bound_claimed=claim,
        bound_proven=None if proven is None else float(proven),
        exact=None if proven is None else str(proven),
        by="every design was priced exactly; each one"
        f"{'' if proven is None else ' below the proven bound'} is too slow, short of memory or"
        " over a limit",
        reasons=dict(reasons),
        ok=rival is None,
    )


def exact_value(
    instance: Instance,
    row: GrowthStage,
    up: int,
    kind: ObjectiveKind,
    factors: Mapping[str, float] | None = None,
) -> Fraction:
    """What a design is worth, with prices, their factors, watts and terms as they are written."""
    lines = bill(instance, row.family, row.levels(up), row.optics)
    return exact_worth(instance, lines, kind, factors)
