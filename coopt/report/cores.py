"""The core that islands share, as a planner reads it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from coopt.instance.schema import Instance
from coopt.plan.cores import Core
from coopt.report import words
from coopt.report.tables import figures


def core_tables(instance: Instance, core: Core) -> Iterator[RenderableType]:
    """What the core is, and which links lead into it."""
    rows = [
        (one.workload, words.count(one.per_leaf) if one.per_leaf else "-", words.count(one.links))
        for one in core.islands
    ]
    total = ("together", "", words.count(core.ports))
    yield figures("Links into the core", ("island",), ("from each leaf", "links"), rows, total=total)
    there = core.switches * next(one.radix for one in instance.network.switches if one.name == core.switch.name)
    rate = instance.sharing.core.gbit_s_per_gpu if instance.sharing.core is not None else 0.0
    yield (
        f"The core is {words.count(core.switches)} x {core.switch.name} with {words.count(core.ports)} of "
        f"{words.count(there)} ports in use, {core.optic} at both ends of a link: {rate:g} Gbit/s between islands for "
        "each GPU that trains."
    )
    if any(not one.per_leaf for one in core.islands):
        yield "An island of one HB domain has NICs for these links only, and no leaf."
