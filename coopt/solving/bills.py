"""The bill of networks alone: of a plan, of an instance that leaves one design, or of designs
without a workload.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from coopt.instance.designs import read_designs
from coopt.instance.network import not_counted
from coopt.instance.schema import Instance, instance_of, load, require_one_network
from coopt.instance.texts import InstanceError, file_of, read_toml
from coopt.network.design_bills import (
    BESIDE,
    cables_of,
    compared,
    design_bill,
    designs_bill,
    lines_by_product,
)
from coopt.plan.networks import NetworksBill
from coopt.plan.schema import Plan
from coopt.plan.store import check_same_question, decided, plan_of, read_plan
from coopt.solving.given_design import cheapest_design, open_design
from coopt.solving.plan_bills import network_bill, plan_bill

SOURCES = "an instance, a plan (.json) or a file of designs (docs/designs.md describes it)"


def bom(
    source: str | Path | Instance | Plan,
    plan: Plan | str | Path | None = None,
    *,
    design: str | None = None,
    beside: str | Path | None = None,
    against: str | Path | None = None,
) -> NetworksBill:
    """Counts and bill of networks, without training on them.

    Parameters
    ----------
    source
        A plan, an instance whose lists leave one network, or a file of either or of designs
        (docs/designs.md).
    plan
        A plan of the instance, or its file, whose networks are billed: with the lengths of their
        cables, where a hall is known.
    design
        The id of one design of several.
    beside
        A file of designs that are built beside the network of a plan or an instance, as those for
        storage and management; they may count what they join by its HB domains.
    against
        A file of designs that could stand in place of the network of a plan: each is compared with
        it.

    Returns
    -------
    NetworksBill
        Tier by tier what is built, and line by line what it costs (USD) and draws (W).

    Raises
    ------
    InstanceError
        When the file is of no such kind, a choice is open (with the keys to pin), a design cannot
        be wired, there is no design of that id, or nothing to compare designs with.

    Examples
    --------
    >>> import coopt
    >>> bill = coopt.bom("instances/designs/published.toml", design="dgx-h100-4su")
    >>> [tier.switches for tier in bill.networks[0].tier]
    [32, 16]
    """
    if plan is not None:
        if isinstance(source, Plan):
            raise InstanceError("bom: two plans are given, needs an instance and its plan")
        if design is not None:
            raise InstanceError(
                f"--design {design}: chooses one design of a file of designs, needs such a file"
                " and no plan"
            )
        question, decided_plan = decided(instance_of(source), plan_of(plan))
        check_same_question(question, decided_plan)
        return _plan_bill(decided_plan, question, beside, against)
    if isinstance(source, Plan):
        subject: Instance | Plan = source
    elif isinstance(source, Instance):
        subject = source
    elif (file := file_of("source", source, SOURCES)).suffix.lower() == ".json":
        subject = read_plan(file)
    elif _holds_designs(file):
        if against is not None:
            raise _without_plan(against)
        if beside is not None:
            raise InstanceError(
                f"--beside {beside}: adds designs to the bill of a plan or an instance, but"
                f" {file.name} has designs only, needs a plan or an instance in its place"
            )
        return _designs_bill(file, design)
    else:
        subject = load(file)
    if against is not None and not isinstance(subject, Plan):
        raise _without_plan(against)
    if design is not None:
        raise InstanceError(
            f"--design {design}: chooses one design of a file of designs, needs such a file"
        )
    if isinstance(subject, Plan):
        return _plan_bill(subject, None, beside, against)
    bill, domains = _instance_bill(subject)
    return _with_designs(bill, domains, beside, factors={})


def _without_plan(against: str | Path) -> InstanceError:
    return InstanceError(
        f"--against {against}: compares designs with the network of a plan, needs that plan"
        f" (coopt bom INSTANCE PLAN.json --against {against})"
    )


def _plan_bill(
    plan: Plan, instance: Instance | None, beside: str | Path | None, against: str | Path | None
) -> NetworksBill:
    bill, domains = plan_bill(plan, instance), _domains_of(plan)
    file = beside if against is None else against
    if bill.at_worst_prices and instance is None and file is not None:
        raise InstanceError(
            f"{bill.name}: {file}: the plan may have the worst prices of its instance, needs that"
            " instance to price designs alike (coopt bom INSTANCE PLAN.json)"
        )
    factors = {} if instance is None else instance.worst_prices
    return _with_designs(
        _with_comparisons(bill, domains, against, factors), domains, beside, factors
    )


def _with_comparisons(
    bill: NetworksBill, domains: int, file: str | Path | None, factors: Mapping[str, float]
) -> NetworksBill:
    """The bill with each design of a file, at these factors of its prices, beside each network of
    switches; what joins islands has no end points.
    """
    if file is None:
        return bill
    networks = [network for network in bill.networks if network.tier and network.fabric != "core"]
    if not networks:
        raise InstanceError(
            f"{bill.name}: --against {file}: the plan has no network of switches, needs one to"
            " compare designs with"
        )
    designs = [
        design_bill(design.at_prices(factors), Path(file).name)
        for design in read_designs(file, domains)
    ]
    pairs = (compared(network, design) for network in networks for design in designs)
    return bill.model_copy(update={"against": tuple(pairs)})


def _holds_designs(file: Path) -> bool:
    table = read_toml(file, SOURCES)
    return "design" in table and "cluster" not in table


def _designs_bill(file: Path, design: str | None) -> NetworksBill:
    designs = read_designs(file)
    matches = tuple(entry for entry in designs if design in (None, entry.id))
    if not matches:
        names = ", ".join(entry.id for entry in designs)
        raise InstanceError(
            f"{file.name}: --design {design}: no design has this id, needs one of {names}"
        )
    return designs_bill(file.stem, matches, file.name)


def _domains_of(plan: Plan) -> int:
    """HB domains of everything that a plan builds, as it stands in the end."""
    final_parts = {part.slot: part for part in plan.parts}
    designs = [part.design for part in final_parts.values() if part.design is not None]
    return sum(design.hb_domain.count + design.spare_domains for design in designs) + sum(
        [part.links.hb_domain.count for part in final_parts.values() if part.links is not None]
    )


def _with_designs(
    bill: NetworksBill, domains: int, file: str | Path | None, factors: Mapping[str, float]
) -> NetworksBill:
    """The bill with the networks of a file of designs beside it, at these factors of their
    prices.
    """
    if file is None:
        return bill
    designs = [design.at_prices(factors) for design in read_designs(file, domains)]
    networks = tuple(design_bill(design, Path(file).name) for design in designs)
    without = ((not_counted([design.work], [design.spares]), design.id) for design in designs)
    omissions = (f"{item} of {design}" for item, design in without if item not in bill.not_counted)
    items = lines_by_product(
        (*bill.items, *(item for network in networks for item in network.items))
    )
    return bill.model_copy(
        update={
            "networks": (*bill.networks, *networks),
            "items": items,
            "not_counted": (*(item for item in bill.not_counted if item != BESIDE), *omissions),
            "whole_cables": tuple(
                dict.fromkeys(
                    (
                        *bill.whole_cables,
                        *(cable for design in designs for cable in cables_of(design)),
                    )
                )
            ),
            "notes": (
                *bill.notes,
                *(f"{network.name}: {note}" for network in networks for note in network.notes),
            ),
            "usd": math.fsum(item.usd for item in items),
            "w": math.fsum([bill.w, *(network.w for network in networks)]),
        }
    )


def _instance_bill(instance: Instance) -> tuple[NetworksBill, int]:
    """The bill of the only network, and its HB domains; wiring and optics, which have no key, are
    the cheapest.
    """
    require_one_network(
        instance, "bom without a plan", ", or also the plan (coopt bom INSTANCE PLAN.json)"
    )
    if complaints := list(open_design(instance)):
        raise InstanceError(
            f"{instance.place}: {text}, or a plan (coopt bom INSTANCE PLAN.json)"
            for text in complaints
        )
    family, uplinks, cost = cheapest_design(instance, None)
    return network_bill(instance, family, uplinks, cost), family.domains
