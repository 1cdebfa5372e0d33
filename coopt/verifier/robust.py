"""Check a robust plan: what it survives, what it costs when prices turn out otherwise, and that none does better."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from coopt.instance.hardware import Optic
from coopt.instance.robust import Lost, Robust, after_a_loss, at_efficiency, at_prices, corners
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.plan.robust import Survived
from coopt.plan.schema import Plan
from coopt.verifier.claim_checks import check_bound
from coopt.verifier.enumeration import Stands, all_below
from coopt.verifier.layouts import Ports, levels
from coopt.verifier.ledger import TOLERANCE, Ledger, near
from coopt.verifier.lost_domain import Restart, check_restart
from coopt.verifier.optics import names_of, optics_named
from coopt.verifier.parts import bill, total_of
from coopt.verifier.space import Family
from coopt.verifier.spans import reach_of
from coopt.verifier.trainer import Trainer


class Design(NamedTuple):
    """What is built, with the optic of each level."""

    family: Family
    ports: Ports
    optics: tuple[Optic, ...]


def asked(instance: Instance, robust: Robust) -> Instance:
    """The question without intervals: at the least efficiency, and at the worst prices where these are minimised."""
    if robust.aim == "regret":
        return _at_list_prices(instance, robust, robust.efficiency[0])
    listed = at_efficiency(instance, robust.efficiency[0])
    return at_prices(listed, {kind: high for kind, (_, high) in robust.prices.intervals.items()})


def _at_list_prices(instance: Instance, robust: Robust, efficiency: float) -> Instance:
    """The question at list prices; it keeps in mind that prices may turn out otherwise, which makes optics a choice."""
    return at_efficiency(instance, efficiency).model_copy(update={"robust": robust})


def nics_lost(family: Family, ports: Ports, part: Lost) -> int:
    """The most NICs of one domain on a part (docs/faults.md)."""
    assert family.gear is not None
    kind, rails = family.gear.kind, family.rails
    if part == "nic":
        return 1
    if part == "domain":
        return rails
    if part == "plane":
        return rails // family.planes
    if kind == "rail-only":
        return min(family.planes, family.gear.switch.radix // family.ends) if ports.tiers == 1 else 1
    if ports.tiers == 1:
        return rails
    if kind == "rail-optimized":
        return ports.down // family.domains if family.domains <= ports.down else 1
    return min(rails, ports.down)


def slowdown(family: Family, ports: Ports, part: Lost) -> float:
    """How much longer traffic of a domain takes; infinite where it has no NIC left."""
    assert family.gear is not None
    lost, per_gpu = nics_lost(family, ports, part), family.gear.per_gpu
    left = family.rails - lost
    hop = family.nic_byte_s / (family.hb.gbyte_s * 1e9)
    shared = max(1.0, family.active * per_gpu / left) + hop if left > 0 else math.inf
    own = per_gpu / (per_gpu - 1) if lost == 1 and per_gpu > 1 else math.inf
    return min(shared, own)


def survivor(question: Instance, robust: Robust) -> Stands:
    """Whether a design meets the longer bounds of a question without intervals after every loss."""
    factors = robust.slower.of_part
    parts = [part for part in robust.survive if part != "domain"]
    trainers = {factor: Trainer(after_a_loss(question, factor)) for factor in {factors[part] for part in parts}}
    restart = Restart(after_a_loss(question, factors["domain"]))

    def stands(family: Family, ports: Ports) -> bool:
        whole = all(_trains_without(trainers[factors[part]], family, ports, part) for part in parts)
        return whole and ("domain" not in robust.survive or restart.stands(family, ports))

    return stands


def _trains_without(trainer: Trainer, family: Family, ports: Ports, part: Lost) -> bool:
    """Whether a design whose NICs are as slow as the loss makes them trains in time; one domain has nothing to lose."""
    if family.gear is None:
        return True
    slower = slowdown(family, ports, part)
    if math.isinf(slower):
        return False
    nic = family.gear.nic.model_copy(update={"gbit_s": family.gear.nic.gbit_s / slower})
    return trainer.trains(family._replace(gear=family.gear._replace(nic=nic)), reach_of(family, ports))


def check_standing(ledger: Ledger, instance: Instance, plan: Plan, family: Family, ports: Ports) -> None:
    """Check what a plan says it stands, its design having been found sound."""
    robust, claim = instance.robust, plan.robust
    assert robust is not None
    assert claim is not None
    said, wanted = (claim.aim, str(claim.efficiency)), (robust.aim, str(robust.efficiency))
    ledger.same("robust-terms", said, wanted, "The plan states other terms of robustness than the instance.")
    check_losses(ledger, asked(instance, robust), robust, claim.survived, family, ports)
    assert plan.design is not None
    names = names_of(plan.design.fabric)
    optics = optics_named(asked(instance, robust), plan.objective.kind, family, names)
    if optics is None:
        return
    built = Design(family, ports, optics)
    listed = at_efficiency(instance, robust.efficiency[0])
    value = value_at(listed, plan.objective.kind, built)
    why = f"At list prices the design is worth {value:,.2f}, the plan says {claim.list_value:,.2f}."
    ledger.close("list-value", claim.list_value, value, why)
    if robust.aim == "regret":
        _check_turns(ledger, instance, robust, plan, built)


def check_losses(
    ledger: Ledger, question: Instance, robust: Robust, claims: tuple[Survived, ...], family: Family, ports: Ports
) -> None:
    """Check what each loss takes, and that the design stands it; how workloads run without a domain is in the plan."""
    factors = robust.slower.of_part
    parts = robust.survive if family.gear else ()
    given = tuple(f"{one.part}: {one.nics_lost} NICs, bounds times {one.slower:.12g}" for one in claims)
    found = tuple(f"{part}: {nics_lost(family, ports, part)} NICs, bounds times {factors[part]:.12g}" for part in parts)
    fine = given == found and all(_slowed_alike(one, family, ports) for one in claims)
    ledger.holds("losses", fine, given, found, "The losses of the design are other ones.", TOLERANCE)
    here = robust.model_copy(update={"survive": tuple(part for part in robust.survive if part != "domain")})
    stands = survivor(question, here)(family, ports) and (family.gear is not None or here == robust)
    why = "After a loss the design does not meet its longer bounds."
    ledger.holds("survives", stands, True, stands, why)
    for one in claims:
        if one.part == "domain":
            check_restart(ledger, after_a_loss(question, factors["domain"]), family, ports, one.workloads)


def _slowed_alike(claim: Survived, family: Family, ports: Ports) -> bool:
    """Whether a claim says how much longer traffic takes, and of a lost domain only how the rest trains."""
    if claim.part == "domain":
        return claim.slowdown is None
    slow = slowdown(family, ports, claim.part)
    return claim.slowdown is not None and near(claim.slowdown, slow) and not claim.workloads


def value_at(instance: Instance, kind: ObjectiveKind, built: Design) -> float:
    """The objective of a design at the prices of an instance."""
    network, (family, ports, chosen) = instance.network, built
    hb = next(hb for hb in network.hb_domains if hb.name == family.hb.name)
    gear = family.gear
    if gear is not None:
        nic = next(nic for nic in network.nics if nic.name == gear.nic.name)
        gear = gear._replace(nic=nic, switch=next(one for one in network.switches if one.name == gear.switch.name))
    optics = [next(one for one in network.optics if one.name == optic.name) for optic in chosen]
    lines = bill(instance, family._replace(hb=hb, gear=gear), levels(family, ports), optics)
    return total_of(lines, instance.objective).of(kind)


def _outlooks(instance: Instance, robust: Robust) -> list[Instance]:
    """The instance in every way prices may turn out, at the best efficiency."""
    eager = at_efficiency(instance, robust.efficiency[1])
    return [at_prices(eager, factors) for factors in corners(robust.prices)]


def _check_turns(ledger: Ledger, instance: Instance, robust: Robust, plan: Plan, built: Design) -> None:
    """Check regret: the plan and the best one, however prices turn out, and the largest difference."""
    assert plan.robust is not None
    kind, outlooks = plan.objective.kind, _outlooks(instance, robust)
    best = _best(instance, robust, kind, outlooks)
    values = [value_at(one, kind, built) for one in outlooks]
    found = [(str(f), v, b) for f, v, b in zip(corners(robust.prices), values, best, strict=True)]
    said = [(str(one.factors), one.value, one.best) for one in plan.robust.turns]
    fine = len(said) == len(found) and all(
        a[0] == b[0] and near(a[1], b[1]) and near(a[2], b[2]) for a, b in zip(said, found, strict=True)
    )
    texts = [tuple(f"{v:.12g} against {b:.12g}" for _, v, b in rows) for rows in (said, found)]
    why = "What the plan and the best plan cost, however prices turn out, is something else."
    ledger.holds("turns", fine, texts[0], texts[1], why, TOLERANCE)
    regret, value = max([0.0, *(v - b for _, v, b in found)]), plan.objective.value
    scale = max(values)
    fine = value is not None and abs(value - regret) <= TOLERANCE * scale
    ledger.holds("objective", fine, value, regret, f"The largest regret is {regret:,.2f}, not {value}.", TOLERANCE)


def _check_least_regret(ledger: Ledger, instance: Instance, robust: Robust, plan: Plan) -> None:
    """Go through all designs: none has a regret below the bound."""
    kind, bound = plan.objective.kind, plan.objective.bound
    if bound is None:
        return
    best = _best(instance, robust, kind, _outlooks(instance, robust))
    least = min(_regrets(instance, robust, kind, best), default=math.inf)
    why = f"A design has a regret of {least:,.2f}, less than the bound of {bound:,.2f}."
    ledger.holds("bound", least >= bound - TOLERANCE * max([*best, bound]), bound, least, why, TOLERANCE)


def _best(instance: Instance, robust: Robust, kind: ObjectiveKind, outlooks: list[Instance]) -> list[float]:
    """The least objective in every way prices may turn out; limits hold at list prices."""
    eager, least = _at_list_prices(instance, robust, robust.efficiency[1]), [math.inf] * len(outlooks)
    for found in all_below(eager, kind, math.inf, survivor(eager, robust)):
        values = (value_at(one, kind, Design(*found[1:])) for one in outlooks)
        least = [min(pair) for pair in zip(least, values, strict=True)]
    return least


def _regrets(instance: Instance, robust: Robust, kind: ObjectiveKind, best: list[float]) -> Iterator[float]:
    """The largest regret of every design that stands what it has to."""
    question, outlooks = asked(instance, robust), _outlooks(instance, robust)
    for found in all_below(question, kind, math.inf, survivor(question, robust)):
        values = (value_at(one, kind, Design(*found[1:])) for one in outlooks)
        yield max([0.0, *(v - b for v, b in zip(values, best, strict=True))])


def check_robust_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Go through all designs that stand what they have to: none costs less, none exists where the plan says so."""
    robust = instance.robust
    assert robust is not None
    question = asked(instance, robust)
    if robust.aim == "worst-case" or plan.status == "infeasible":
        check_bound(ledger, question, plan, survivor(question, robust))
    else:
        _check_least_regret(ledger, instance, robust, plan)
