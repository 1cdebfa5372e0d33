"""Check the one bill of all islands, with volume prices looked up in the brackets of the instance.

Limits hold for all parts together: GPUs, budget, power, racks, and how many products of a kind are
in use.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from coopt.instance.couplings import LIMITED, limit_check
from coopt.instance.hardware import Gpu, Nic, Optic, Switch
from coopt.instance.question import CostKind, ProductKind
from coopt.instance.schema import Instance, question_on
from coopt.instance.texts import counted
from coopt.instance.workload import Workload
from coopt.plan.parts import WorkloadPlan
from coopt.verifier.checks.verdict import TOLERANCE, Ledger
from coopt.verifier.couplings.core import Joint
from coopt.verifier.parts.bills import (
    BillTotal,
    SwitchLevel,
    UnitPrice,
    network_lines,
)
from coopt.verifier.parts.space import DesignFamily, OpticPair
from coopt.verifier.parts.timings import days_of

ProductKey = tuple[ProductKind, str]


@dataclass(frozen=True)
class LimitedSum:
    """A limit on what all units that stand take together, by its key in `limits` and the name of
    its price in a proof.

    Units are counted in what goes `scale` times into the unit of the limit.
    """

    key: str
    name: str
    scale: int
    of_unit: Callable[[ProductKey, UnitPrice], float]

    def of(self, prices: Mapping[ProductKey, UnitPrice], units: Mapping[ProductKey, int]) -> float:
        """What units of products take."""
        return math.fsum(
            count * self.of_unit(product, prices[product]) for product, count in units.items()
        )


CAPS = (LimitedSum("power_mw", "power_w", 1_000_000, lambda _, unit: unit.w),)
"""Every limit on a sum over products."""


def caps_of(instance: Instance) -> list[tuple[LimitedSum, float]]:
    """The limits on sums over products that are set, and how much they allow."""
    given = instance.limits.given
    return [(cap, given[cap.key]) for cap in CAPS if cap.key in given]


class UnitCounts(NamedTuple):
    """What an island takes: units of each product, GPUs that train and that stand idle, ports of a
    core.
    """

    products: Counter[ProductKey]
    active_gpus: int
    idle_gpus: int
    core_ports: int = 0


def counts_of_island(
    family: DesignFamily,
    levels: Sequence[SwitchLevel],
    optics: Sequence[OpticPair],
    joint: Joint | None,
) -> UnitCounts:
    """Count the products of an island, whether they have a price or not."""
    installed = family.bought * family.hb.size
    products: Counter[ProductKey] = Counter({("hb", family.hb.name): installed})
    core_lines, core_ports = ([], 0) if joint is None else (joint.lines(), joint.core_ports)
    for line in (*network_lines(family, levels, optics), *core_lines):
        if line.kind != "wan":
            products[line.kind, line.name] += line.amount
    return UnitCounts(products, family.gpus, installed - family.gpus, core_ports)


def list_prices(instance: Instance) -> dict[ProductKey, UnitPrice]:
    """Every product of an instance; GPUs under the kind gpu."""
    network = instance.network
    standing: list[tuple[CostKind, Sequence[Nic | Switch | Optic]]] = []
    for stands in instance.existing:  # which may consist of products that are not listed
        nics = [stands.nic] if stands.nic is not None else []
        ends = [end for pair in stands.ends for end in pair]
        standing += [("switch", stands.switches), ("optics", ends), ("nic", nics)]
    listed: list[tuple[CostKind, Sequence[Nic | Switch | Optic | Gpu]]] = [
        *(("nic", network.nics), ("switch", network.switches)),
        *(("optics", network.optics), ("gpu", instance.cluster.kinds)),
    ]
    fibres = [
        pair for one in network.fibre for pair in ((one.name, one.usd), (one.metre, one.usd_per_m))
    ]
    return {
        **{(kind, one.name): UnitPrice(0.0, one.w) for kind, of in standing for one in of},
        **{("hb", hb.name): UnitPrice(hb.usd_per_gpu, hb.w_per_gpu) for hb in network.hb_domains},
        **{("fibre", name): UnitPrice(usd, 0.0) for name, usd in fibres},
        **{(kind, one.name): UnitPrice(one.usd, one.w) for kind, of in listed for one in of},
    }


def gpu_of(instance: Instance, units: UnitCounts) -> str:
    """The name of the GPUs of an island, which its HB domains are sold with."""
    domain = next(name for kind, name in units.products if kind == "hb")
    return question_on(instance, domain).cluster.gpu.name


def counted_units(instance: Instance, units: UnitCounts) -> dict[ProductKey, int]:
    """The products that `include` counts, idle GPUs among GPUs."""
    include, gpu = instance.objective.include, gpu_of(instance, units)
    counted = instance.objective.counts
    counts = {product: count for product, count in units.products.items() if counted(product[0])}
    return {
        **counts,
        ("gpu", gpu): (
            units.active_gpus * ("gpu" in include) + units.idle_gpus * ("hb" in include)
        ),
    }


def check_gpus(ledger: Ledger, gpus: int, gpus_there: int) -> None:
    """Check that all parts together train on no more GPUs than there are."""
    ledger.holds(
        "limit-gpus",
        gpus <= gpus_there,
        gpus_there,
        gpus,
        f"The plan trains on {counted(gpus, 'GPU')}, but there are only {gpus_there:,}.",
    )


def check_products_in_use(
    ledger: Ledger, instance: Instance, units: Mapping[ProductKey, int]
) -> None:
    """Check that no more products of a kind are in use than allowed."""
    for kind, limit, products in product_counts(instance, units):
        ledger.holds(
            "most-products",
            len(products) <= limit,
            limit,
            products,
            f"The plan uses {counted(len(products), 'product')} of kind {kind}"
            f" ({', '.join(products)}), but sharing.most_products.{kind} is {limit}.",
        )


def product_counts(
    instance: Instance, units: Mapping[ProductKey, int]
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Kinds with a limit: the limit, and which products of the kind are in use."""
    for kind, limit in instance.sharing.most_products.given.items():
        products_in_use = [
            product for product, count in units.items() if product[0] == kind and count
        ]
        yield kind, limit, tuple(sorted(item for _, item in products_in_use))


def check_limits(ledger: Ledger, instance: Instance, sums: BillTotal, racks: int | None) -> None:
    """Check purchase, power and racks of one bill against the limits that are set."""
    check_limit(ledger, instance, "capex_usd", sums.capex_usd)
    check_limit(ledger, instance, "power_mw", sums.power_w / 1e6)
    check_limit(ledger, instance, "racks", racks)


def check_days_in_turn(ledger: Ledger, instance: Instance, runs: Sequence[WorkloadPlan]) -> None:
    """Check the days of workloads that train one after the other against the limit on them."""
    if instance.limits.train_days_total is not None:
        check_limit(ledger, instance, "train_days_total", days_in_turn(instance, runs))


def days_in_turn(instance: Instance, runs: Sequence[WorkloadPlan]) -> float:
    """The days of all workloads one after the other, with interruptions."""
    return math.fsum(
        days_of(workload, run.iteration_time_s) / (run.uptime.promised if run.uptime else 1.0)
        for workload, run in zip(instance.workload, runs, strict=True)
    )


def check_limit(ledger: Ledger, instance: Instance, key: str, value: float | None) -> None:
    """Check that no more is taken than a limit that is set, which needs that one knows how much
    is.
    """
    limit, unit = instance.limits.given.get(key), LIMITED[key][1]
    if limit is not None:
        holds = value is not None and value <= limit * (1 + TOLERANCE)
        value_text = "an unknown number" if value is None else f"{value:,.10g}"
        ledger.holds(
            limit_check(key),
            holds,
            limit,
            value,
            f"In {unit}, limits.{key} is {limit:,.10g}, but the plan needs {value_text}.",
            TOLERANCE,
        )


def question_of_island(instance: Instance, workloads: tuple[Workload, ...], gpus: int) -> Instance:
    """The instance of an island's workloads on a cluster of its own of that many GPUs; limits stay
    those of all. Where GPUs may be idle there is one island, and what it may leave idle is that of
    the instance.
    """
    cluster = instance.cluster
    if cluster.idle_gpus is False:
        cluster = cluster.model_copy(update={"gpus": (gpus,)})
    return instance.model_copy(update={"cluster": cluster, "workload": workloads})
