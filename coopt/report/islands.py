"""The islands of a partition, the core they share, and what else couples them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from coopt.instance.schema import Instance
from coopt.instance.sharing import Discount
from coopt.plan.cores import Core
from coopt.plan.margins import island_checks
from coopt.plan.schema import Cost, Design, Plan
from coopt.report import words
from coopt.report.parts import BILL, bill_tables, degrees, knob_sentences, tiers_of
from coopt.report.remarks import accuracy, counting_sentence, margins_table
from coopt.report.tables import figures


def core_tables(instance: Instance, core: Core) -> Iterator[RenderableType]:
    """What the core is, and which links lead into it."""
    rows = [
        (links.workload, words.count(links.per_leaf) if links.per_leaf else "-", words.count(links.links))
        for links in core.islands
    ]
    total = ("together", "", words.count(core.ports))
    yield figures("Links into the core", ("island",), ("from each leaf", "links"), rows, total=total)
    radix = next(switch.radix for switch in instance.network.switches if switch.name == core.switch.name)
    ports = words.count(core.switches * radix)
    rate = instance.sharing.core.gbit_s_per_gpu if instance.sharing.core is not None else 0.0
    yield (
        f"The core is {words.times(core.switches, core.switch.name)} with {words.count(core.ports)} of "
        f"{ports} ports in use, {core.optic} at both ends of a link: {rate:g} Gbit/s between islands for "
        "each GPU that trains."
    )
    if any(not links.per_leaf for links in core.islands):
        yield "An island of one HB domain has NICs for these links only, and no leaf."


def islands_report(instance: Instance, plan: Plan, cost: Cost) -> Iterator[RenderableType]:
    """Islands, their networks and core, products and brackets, the bill, how each workload runs, and the limits."""
    yield _islands(plan)
    yield ""
    yield _networks(plan)
    yield ""
    if plan.core is not None:
        yield from core_tables(instance, plan.core)
        yield ""
    yield from _products(instance, plan, cost)
    yield ""
    yield from bill_tables(instance, cost, f"{BILL}, all islands together")
    yield ""
    yield _workloads(plan)
    yield from knob_sentences(plan.runs)
    yield ""
    yield margins_table(island_checks(instance, plan.islands, cost))
    yield ""
    yield counting_sentence(instance)
    shared = "" if plan.core is None else "; only the core is shared"
    yield f"Workloads run at the same time, each on HB domains, NICs and switches of its own{shared}."
    yield from accuracy(instance, plan.runs)


def _islands(plan: Plan) -> RenderableType:
    rows = []
    for island, run in zip(plan.islands, plan.runs, strict=True):
        domain = island.design.hb_domain
        idle = f", {domain.active} active" if domain.active < domain.size else ""
        rows.append(
            (
                island.workload,
                f"{words.times(domain.count, domain.name)}{idle}",
                words.count(island.design.gpus),
                "-" if island.design.racks is None else words.count(island.design.racks),
                words.exact(round(island.power_w)),
                words.percent(1 - run.iteration_time_s / run.bound_s),
            )
        )
    watts = [island.power_w for island in plan.islands]
    if plan.core is not None:
        shared = words.times(plan.core.switches, plan.core.switch.name)
        rows.append(("core", shared, "-", "-", words.exact(round(plan.core.power_w)), "-"))
        watts.append(plan.core.power_w)
    racks = [island.design.racks for island in plan.islands]
    total = (
        "together",
        "",
        words.count(sum(island.design.gpus for island in plan.islands)),
        "-" if None in racks else words.count(sum(count or 0 for count in racks)),
        words.exact(round(sum(watts))),
        "",
    )
    return figures("Islands", ("workload", "HB domains"), ("GPUs", "racks", "W", "slack"), rows, total=total)


def _networks(plan: Plan) -> RenderableType:
    rows = [(island.workload, *_network(island.design, plan.core)) for island in plan.islands]
    return figures("Networks", ("workload", "fabric", "NIC", "switches", "leaf"), ("ratio",), rows)


def _network(design: Design, core: Core | None) -> tuple[str, str, str, str, str]:
    fabric = design.fabric
    if not fabric.tiers:
        return "none, one HB domain", "-" if core is None else fabric.nic.name, "-", "-", "-"
    return (
        f"{tiers_of(fabric)}",
        f"{fabric.nic.per_gpu} x {fabric.nic.name}",
        words.times(fabric.switch_count, fabric.switch.name),
        f"{leaf.uplinks_per_switch} up, {leaf.down_ports} down"
        if (leaf := fabric.tier[0]).uplinks_per_switch
        else "none",
        words.ratio(fabric.oversubscription),
    )


def _workloads(plan: Plan) -> RenderableType:
    rows = [
        (
            run.name,
            degrees(run.mapping),
            words.seconds(run.iteration_time_s),
            words.seconds(run.bound_s),
            f"{run.memory_gib:.1f} of {run.memory_limit_gib:.1f}",
            words.percent(run.mfu),
        )
        for run in plan.runs
    ]
    return figures("Workloads", ("workload", "split"), ("iteration", "bound", "GiB", "MFU"), rows)


def _products(instance: Instance, plan: Plan, cost: Cost) -> Iterator[RenderableType]:
    """How many products of each limited kind are in use, and which price each discounted one reached."""
    for kind, most in instance.sharing.most_products.model_dump().items():
        if most is not None:
            names = sorted(
                {name for island in plan.islands for name in _products_of(island.design, kind)}
                | _core_products(plan, kind)
            )
            listed = ", ".join(names) or "none"
            yield f"Products of kind {kind}: {len(names)} of at most {most} in use ({listed})."
    rows = [row for discount in instance.sharing.discount for row in _bracket(discount, cost)]
    if rows:
        yield ""
        yield figures("Discounts", ("item", "applies", "reached"), ("used", "spare", "unit $"), rows)


def _core_products(plan: Plan, kind: str) -> set[str]:
    """Products of a kind that lead into the core or are it."""
    if plan.core is None:
        return set()
    lone = {island.design.fabric.nic.name for island in plan.islands if not island.design.fabric.tiers}
    return {"nic": lone, "switch": {plan.core.switch.name}, "optics": {plan.core.optic}}.get(kind, set())


def _products_of(design: Design, kind: str) -> list[str]:
    fabric = design.fabric
    if kind == "hb":
        return [design.hb_domain.name]
    if not fabric.tiers:
        return []
    return {"nic": [fabric.nic.name], "switch": [fabric.switch.name], "optics": [t.optic for t in fabric.tier]}[kind]


def _bracket(discount: Discount, cost: Cost) -> Iterator[tuple[str, ...]]:
    """The bracket a product is bought in, where it is bought at all; spare units are those beyond what is used."""
    lines = [item for item in cost.items if item.product == (discount.kind, discount.item)]
    if not lines:
        return
    in_use = sum(item.count for item in lines if not item.spare)
    spare = sum(item.count for item in lines) - in_use
    begins = [0, *(begin for begin in discount.begins if begin <= in_use + spare)]
    reached = f"from {words.count(begins[-1])}" if begins[-1] else "list price"
    yield (
        discount.item,
        discount.applies,
        f"{reached} ({len(begins) - 1} of {len(discount.begins)})",
        words.count(in_use),
        words.count(spare),
        words.exact(lines[-1].unit_usd),
    )
