"""Limits on all parts of a plan together: GPUs, budget, power, racks, and how many products of a kind are in use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coopt.instance.schema import CostKind, Instance
from coopt.instance.workload import Workload
from coopt.verifier.checks.verdict import TOLERANCE, Ledger
from coopt.verifier.parts.bills import BillTotal


def check_gpus(ledger: Ledger, instance: Instance, gpus: int) -> None:
    """Check that all parts together train on no more GPUs than there are."""
    why = f"The islands train on {gpus} GPUs, there are {instance.cluster.gpus[0]}."
    ledger.holds("limit-gpus", gpus <= instance.cluster.gpus[0], instance.cluster.gpus[0], gpus, why)


def check_products_in_use(ledger: Ledger, instance: Instance, units: Mapping[tuple[CostKind, str], int]) -> None:
    """Check that no more products of a kind are in use than allowed."""
    for kind, most, used in product_counts(instance, units):
        why = f"The islands use {len(used)} products of kind {kind}, at most {most} are allowed: {', '.join(used)}."
        ledger.holds("most-products", len(used) <= most, most, used, why)


def product_counts(
    instance: Instance, units: Mapping[tuple[CostKind, str], int]
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Kinds with a limit: the limit, and which products of the kind are in use."""
    for kind, most in instance.sharing.most_products.model_dump().items():
        if most is not None:
            yield kind, most, tuple(sorted(item for (of, item), n in units.items() if of == kind and n))


def check_limits(ledger: Ledger, instance: Instance, sums: BillTotal, racks: int | None) -> None:
    """Check purchase, power and racks against the limits that are set."""
    limits = instance.limits
    for name, value, limit, unit in (
        ("limit-capex", sums.capex_usd, limits.capex_usd, "USD"),
        ("limit-power", sums.power_w / 1e6, limits.power_mw, "MW"),
        ("limit-racks", racks, limits.racks, "racks"),
    ):
        if limit is not None:
            holds = value is not None and value <= limit * (1 + TOLERANCE)
            why = f"The limit is {limit:,.10g} {unit}, what is built takes {value}."
            ledger.holds(name, holds, limit, value, why, TOLERANCE)


def question_of_island(instance: Instance, workloads: tuple[Workload, ...], gpus: int) -> Instance:
    """The instance of an island's workloads on a cluster of its own of that many GPUs; limits stay those of all."""
    cluster = instance.cluster.model_copy(update={"gpus": (gpus,)})
    return instance.model_copy(update={"cluster": cluster, "workload": workloads})
