"""What islands share: GPUs, budget, power, racks, and how many products of a kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coopt.instance.schema import Instance
from coopt.verifier.cost_checks import check_limits
from coopt.verifier.ledger import Ledger
from coopt.verifier.partition.prices import Units, joined
from coopt.verifier.parts import Total


def check_couplings(
    ledger: Ledger, instance: Instance, islands: Sequence[Units], racks: Sequence[int | None], sums: Total
) -> None:
    """Check every limit on all islands together."""
    whole = joined(instance, islands)
    why = f"The islands train on {whole.active} GPUs, there are {instance.cluster.gpus[0]}."
    ledger.holds("limit-gpus", whole.active <= instance.cluster.gpus[0], instance.cluster.gpus[0], whole.active, why)
    filled = None if None in racks else sum(count or 0 for count in racks)
    check_limits(ledger, instance, sums, filled)
    for kind, most, used in product_counts(instance, whole):
        why = f"The islands use {len(used)} products of kind {kind}, at most {most} are allowed: {', '.join(used)}."
        ledger.holds("most-products", len(used) <= most, most, used, why)


def product_counts(instance: Instance, units: Units) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Kinds with a limit: the limit, and which products of the kind are in use."""
    for kind, most in instance.sharing.most_products.model_dump().items():
        if most is not None:
            yield kind, most, tuple(sorted(item for (of, item), n in units.products.items() if of == kind and n))
