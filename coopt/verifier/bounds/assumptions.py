"""Check what a plan says its assumptions and the next best choice of products are worth."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.instance.base import PRICE_DOUBT
from coopt.instance.catalog import KINDS, entries
from coopt.instance.doubts import PRICES, entry_of, price_bases
from coopt.instance.reserves import published_failures
from coopt.instance.schema import Instance, question_on
from coopt.instance.texts import alternatives, exact_amount
from coopt.plan.couplings import Part
from coopt.plan.parts import Item
from coopt.plan.schema import Assumption, NextBest, Plan
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree
from coopt.verifier.parts.outages import pace_of
from coopt.verifier.parts.part_checks import CountedPart
from coopt.verifier.parts.spans import reach_of, slowest_case
from coopt.verifier.parts.uptime import uptime_of
from coopt.verifier.parts.workload_checks import (
    ClaimedRun,
    check_other,
)
from coopt.verifier.training.work import Clock

HARDLY = 1e-3
UNKNOWN, NO_MAPPING = -2.0, -1.0
"""In place of a ratio: no such assumption is known; the mapping stated for it does not do."""


def check_assumptions(
    ledger: Ledger, question: Instance, plan: Plan, parts: list[CountedPart]
) -> None:
    """Check how long training takes where an assumption does not hold."""
    runs = {run.workload.name: (part, run) for part in parts for run in part.runs}
    kinds = [(claim.key, claim.workload, claim.spare_domains) for claim in plan.assumptions]
    if twice := tuple(sorted({kind[0] for kind in kinds if kinds.count(kind) > 1})):
        fault = f"The plan states the same assumption more than once: {', '.join(twice)}."
        ledger.holds("assumption", False, twice, (), fault)
    for claim in plan.assumptions:
        ratio: float | None = UNKNOWN
        if claim.workload in runs:
            part, run = runs[claim.workload]
            ratio = _ratio(question_on(question, part.family.hb.name), claim, part, run)
        ledger.holds(
            "assumption",
            agree(claim.time_ratio, ratio),
            claim.time_ratio,
            ratio,
            f"The plan says that with {claim.key}, workload {claim.workload!r}"
            f" {_slowdown_text(claim.time_ratio)}, but {_slowdown_found(ratio)}.",
        )


def _slowdown_text(ratio: float | None) -> str:
    return "makes hardly any progress" if ratio is None else f"takes {ratio:.9g} times as long"


def _slowdown_found(ratio: float | None) -> str:
    """How a workload fares as recomputed; below 0 where the claim cannot be."""
    if ratio is None or ratio >= 0:
        return f"it {_slowdown_text(ratio)}"
    if ratio == UNKNOWN:
        return "the verifier knows no assumption that is stated like this for it"
    return "no valid mapping is stated for that, or one that is slower than the plan's own"


def _ratio(
    question: Instance, claim: Assumption, part: CountedPart, run: ClaimedRun
) -> float | None:
    """The time with another assumption over that of the plan; None where training hardly ends,
    below 0 where there is no such assumption or no such mapping.
    """
    key, _, value = claim.key.partition(" = ")
    named, family, gpu = value.strip('"'), part.family, question.cluster.gpu
    failures = published_failures()
    if key == "availability.rates":
        if named != failures.rates.name or claim.run is not None or claim.spare_domains < 0:
            return UNKNOWN
        pace = pace_of(failures, run, family, reach_of(family, part.ports), part.levels, gpu)
        spared = family._replace(spares=claim.spare_domains)
        goodput = uptime_of(failures, run.workload, spared, part.levels, pace).goodput
        return 1.0 / goodput if goodput > HARDLY else None
    workload = run.workload
    if (
        claim.spare_domains
        or claim.run is None
        or claim.run.name != workload.name
        or not claim.run.routes.keys() <= run.claim.routes.keys()
    ):
        return NO_MAPPING
    if key == "workload.balance" and named in ("forced", "trained"):
        workload = workload.model_copy(update={"balance": named})
    elif key == "network.routing" and named == "ecmp" and family.attachment is not None:
        discipline = question.network.model_copy(update={"routing": named}).discipline
        attachment = family.attachment._replace(discipline=discipline)
        family = family._replace(attachment=attachment)
    else:
        return UNKNOWN
    reach = reach_of(family, part.ports)
    case = check_other(Ledger(), run, workload, claim.run, family, reach, gpu)
    own = slowest_case(family, reach, Clock(workload, gpu).work(run.split), run.place)
    # the mapping that is the fastest then is no slower than that of the plan
    if case is None or case.seconds > own.seconds * (1.0 + TOLERANCE):
        return NO_MAPPING
    return case.seconds / run.claim.iteration_time_s


def faults_of_next_best(question: Instance, plan: Plan, claim: NextBest) -> Iterator[str]:
    """What is wrong with the price that turns a choice, where both bills are right."""
    assert plan.cost is not None
    kind, terms = plan.objective.kind, question.objective
    labour = (
        1.0 if kind == "capex" else 1.0 + terms.labour_share + terms.support_share * terms.years
    )
    missing_usd = (claim.value - plan.cost.of(kind)) / labour
    products = {item.product for item in (*plan.cost.items, *claim.cost.items)}
    more_usd = {
        of: _usd(plan.cost.items, of) - _usd(claim.cost.items, of) for of in sorted(products)
    }
    shares = {of: left_open(question, of, rises=usd > 0.0) for of, usd in more_usd.items()}
    swing_usd = sum(abs(usd) * shares[of] for of, usd in more_usd.items())
    if not agree(claim.value, claim.cost.of(kind)):
        yield (
            f"its bill adds up to {exact_amount(kind, claim.cost.of(kind))}, but the plan states"
            f" {exact_amount(kind, claim.value)}"
        )
    if claim.close != (swing_usd >= missing_usd):
        yield (
            f"uncertain prices may shift purchases by {exact_amount('capex', swing_usd)}, and"
            f" {exact_amount('capex', missing_usd)} would turn the comparison, so `close` has to"
            f" be {'false' if claim.close else 'true'}"
        )
    if not claim.product and (claim.turns_at, claim.doubt) != (1.0, 0.0):
        yield "no `product` is named, so `turns_at` has to be 1 and `doubt` 0"
    if claim.product:
        turning = [of for of in products if of[1] == claim.product]
        rises = [missing_usd - more_usd[of] * (claim.turns_at - 1.0) for of in turning]
        if not turning:
            yield f"neither it nor the plan buys {claim.product}"
        elif not any(agree(missing_usd, missing_usd - rise) for rise in rises):
            yield (
                f"at {claim.turns_at:.6g} times the price of {claim.product} the two choices still"
                f" differ by {exact_amount('capex', min(map(abs, rises)))}"
            )
        if turning and not any(agree(claim.doubt, shares[of]) for of in turning):
            known = alternatives(f"{shares[of]:.9g}" for of in turning)
            yield (
                f"by its source, the price of {claim.product} is uncertain by a share of {known},"
                f" but the plan states a `doubt` of {claim.doubt:.9g}"
            )


def faults_of_nearest(question: Instance, plan: Plan, claim: NextBest) -> Iterator[str]:
    """What is wrong with another choice for one of several networks, where it can be built."""
    kind = plan.objective.kind
    if not agree(claim.value, claim.cost.of(kind)):
        yield (
            f"its bill adds up to {exact_amount(kind, claim.cost.of(kind))}, but the plan states"
            f" {exact_amount(kind, claim.value)}"
        )
    own, other = _products(plan.parts), _products(claim.parts)
    if all(names <= other.get(network, frozenset()) for network, names in own.items()):
        yield "each of its networks has all the products and the fabric that it has in the plan"
    if claim.model_copy(update={"product": "", "turns_at": 1.0, "doubt": 0.0}) != claim:
        yield "it names a price, which only a choice for one network does"
    if claim.close or claim.workloads:
        yield "its networks stand in `parts`, so `workloads` and `close` have to be empty"


def _products(parts: tuple[Part, ...]) -> dict[str, frozenset[str]]:
    """The names of what each network has, in all phases: HB domain, fabric, NIC, switches."""
    found: dict[str, frozenset[str]] = {}
    for part in parts:
        if part.design is not None:
            fabric, names = part.design.fabric, {part.design.hb_domain.name}
            if fabric.tiers:
                names |= {fabric.kind, fabric.nic.name, *fabric.switch_names}
            found[part.slot] = found.get(part.slot, frozenset()) | names
    return found


def left_open(question: Instance, product: tuple[str, str], *, rises: bool) -> float:
    """By which share what is known of a price lets it rise, or fall."""
    entry = entry_of(question, product)
    if entry is None:
        return 0.0
    tags = [source.tag for field in PRICES if (source := entry.source_of(field))]
    by_tag = max((PRICE_DOUBT[tag] for tag in tags), default=0.0)
    kind = next(kind for kind, form in KINDS.items() if isinstance(entry, form))
    known = price_bases().get((kind, entry.name))
    if known is None or not by_tag:
        return by_tag
    usd, listed_usd = (
        sum(getattr(one, field, None) or 0.0 for field in PRICES)
        for one in (entry, entries(kind)[entry.name])
    )
    end_usd = known.most if rises else known.least
    return by_tag if usd != listed_usd or end_usd is None else abs(end_usd - usd) / usd


def _usd(items: tuple[Item, ...], product: tuple[str, str]) -> float:
    return sum(item.usd for item in items if item.product == product)
