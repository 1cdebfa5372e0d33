"""Outlooks of prices for a fleet: what it costs when prices turn out otherwise, and its regret."""

from __future__ import annotations

from collections.abc import Sequence

from coopt.instance.robust import Robust, corners
from coopt.instance.schema import Instance
from coopt.instance.variants import at_efficiency
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree
from coopt.verifier.couplings.fleet import Fleet, FleetIsland
from coopt.verifier.couplings.orders import fleet_total
from coopt.verifier.couplings.outlooks import check_regret_value, price_outlooks


def check_fleet_outlooks(
    ledger: Ledger, instance: Instance, plan: Plan, fleet: Fleet, islands: Sequence[FleetIsland]
) -> None:
    """Check terms, value at list prices and, where regret is minimised, what the fleet costs at every outlook."""
    robust, claim = instance.robust, plan.couplings.outlooks
    why = "A plan has outlooks of prices where its question asks for them, and nowhere else."
    if not ledger.same("robust-terms", claim is not None, robust is not None, why) or robust is None or claim is None:
        return
    said, wanted = (claim.aim, str(claim.efficiency)), (robust.aim, str(robust.efficiency))
    ledger.same("robust-terms", said, wanted, "The plan states other terms of robustness than the instance.")
    value = value_at(at_efficiency(instance, robust.efficiency[0]), fleet, islands)
    why = f"At list prices the fleet is worth {value:,.2f}, the plan says {claim.list_value:,.2f}."
    ledger.close("list-value", claim.list_value, value, why)
    values = outlook_values(instance, robust, fleet, islands) if robust.aim == "regret" else []
    factors = corners(robust.prices) if robust.aim == "regret" else []
    found = [(str(one), value) for one, value in zip(factors, values, strict=True)]
    told = [(str(turn.factors), turn.value) for turn in claim.turns]
    fine = len(told) == len(found) and all(a[0] == b[0] and agree(a[1], b[1]) for a, b in zip(told, found, strict=True))
    claimed, expected = (tuple(f"{value:.12g}" for _, value in rows) for rows in (told, found))
    why = "What the fleet costs in each outlook of prices differs from what the plan says."
    ledger.holds("turns", fine, claimed, expected, why, TOLERANCE)
    if robust.aim == "regret" and fine:
        regret = max([0.0, *(value - turn.best for value, turn in zip(values, claim.turns, strict=True))])
        check_regret_value(ledger, plan, regret, values)


def outlook_values(instance: Instance, robust: Robust, fleet: Fleet, islands: Sequence[FleetIsland]) -> list[float]:
    """The objective of a fleet at every way prices may turn out."""
    return [value_at(outlook, fleet, islands) for outlook in price_outlooks(instance, robust)]


def value_at(instance: Instance, fleet: Fleet, islands: Sequence[FleetIsland]) -> float:
    """The objective of a fleet at the prices of an instance, with the core that the fleet has."""
    sharing = instance.sharing.model_copy(update={"core": fleet.question.sharing.core})
    return fleet_total(Fleet(instance.model_copy(update={"sharing": sharing}), fleet.kind), islands).of(fleet.kind)
