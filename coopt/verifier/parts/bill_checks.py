"""Check that a bill lists what a design needs, and that its sums hold."""

from __future__ import annotations

from collections.abc import Iterable

from coopt.plan.schema import Cost, Item, Plan
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree
from coopt.verifier.parts.bills import BillTotal, CountedItem

ItemKey = tuple[str, str]
CountedLine = tuple[int, float, float]


def check_bill(ledger: Ledger, lines: Iterable[CountedItem], sums: BillTotal, cost: Cost) -> None:
    """Check that a bill has these lines, that they are counts times units, and that they have these sums."""
    check_products(ledger, cost.items)
    _lines(ledger, lines, cost.items)
    check_sums(ledger, sums, cost)


def check_sums(ledger: Ledger, sums: BillTotal, cost: Cost) -> None:
    """Check purchase, power and total cost."""
    for name, claimed, recomputed, unit in (
        ("capex", cost.capex_usd, sums.capex_usd, "USD"),
        ("power", cost.power_w, sums.power_w, "W"),
        ("tco", cost.tco_usd, sums.tco_usd, "USD"),
    ):
        why = f"The {name} of what is built is {recomputed:,.2f} {unit}, the plan says {claimed:,.2f}."
        ledger.close(name, claimed, recomputed, why)


def is_product(item: Item) -> bool:
    """Whether a line is its count times its units."""
    return agree(item.usd, item.count * item.unit_usd) and agree(item.w, item.count * item.unit_w)


def check_products(ledger: Ledger, items: Iterable[Item]) -> None:
    """Check that every line is its count times its units, and that the count is one or more."""
    faults = tuple(item.item for item in items if item.count < 1 or not is_product(item))
    why = f"The lines of {', '.join(faults)} are not a count of one or more times their units."
    ledger.holds("bill-products", not faults, faults, (), why, TOLERANCE)


def _lines(ledger: Ledger, lines: Iterable[CountedItem], items: Iterable[Item]) -> None:
    """Check that items, counts and units are the expected ones; lines of one item add up."""
    expected: dict[ItemKey, CountedLine] = {}
    for line in lines:
        _add(expected, (line.kind, line.item), (line.amount, line.unit_usd, line.unit_w))
    claimed: dict[ItemKey, CountedLine] = {}
    rows = [((item.kind, item.item), (item.count, item.unit_usd, item.unit_w)) for item in items]
    mismatches = [key[1] for key, row in rows if not _add(claimed, key, row)]
    differing = [key for key in {**expected, **claimed} if not _alike(expected.get(key), claimed.get(key))]
    faults = ", ".join([" ".join(key) for key in differing] + mismatches)
    ledger.holds(
        "bill-lines",
        not differing and not mismatches,
        tuple(_text(key, row) for key, row in claimed.items()),
        tuple(_text(key, row) for key, row in expected.items()),
        f"The bill differs from what the design needs in: {faults}.",
        TOLERANCE,
    )


def _add(rows: dict[ItemKey, CountedLine], key: ItemKey, row: CountedLine) -> bool:
    """Add a row to those of the same thing; False where its units differ from theirs."""
    known_row = rows.get(key)
    rows[key] = row if known_row is None else (known_row[0] + row[0], *known_row[1:])
    return known_row is None or known_row[1:] == row[1:]


def _alike(a: CountedLine | None, b: CountedLine | None) -> bool:
    return a is not None and b is not None and a[0] == b[0] and agree(a[1], b[1]) and agree(a[2], b[2])


def _text(key: ItemKey, row: CountedLine) -> str:
    return f"{key[0]}: {row[0]} x {key[1]} at {row[1]:g} USD, {row[2]:g} W"


def check_objective(ledger: Ledger, plan: Plan, sums: BillTotal) -> None:
    """Check that the value is the recomputed cost."""
    objective = plan.objective
    recomputed = sums.of(objective.kind)
    value = objective.value
    why = f"The {objective.kind} of the design is {recomputed:,.2f}, the objective says {value}."
    ledger.holds("objective", value is not None and agree(value, recomputed), value, recomputed, why, TOLERANCE)
