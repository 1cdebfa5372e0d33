"""Plans, routes and fronts as CSV files for spreadsheets and schedulers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, csv_text
from coopt.network.plan_networks import part_named
from coopt.plan.contents import flat_design
from coopt.plan.couplings import network_of
from coopt.plan.front import Front, FrontPoint
from coopt.plan.networks import BilledNetwork, NetworksBill
from coopt.plan.parts import Design, Item, ItemKind
from coopt.plan.schema import Plan
from coopt.plan.store import check_same_question
from coopt.plan.traffic import LinkLoad, Routing
from coopt.traffic.of_plan import workload_splits
from coopt.traffic.ranks import RankGrid, rank_table

PROCUREMENT_COLUMNS = (
    "part",
    "description",
    "quantity",
    "unit_usd",
    "usd",
    "unit_w",
    "w",
    "network",
    "scope",
)
DESCRIPTIONS: dict[ItemKind, str] = {
    "hb": "HB domain, per GPU: interconnect, and servers where the bill counts them",
    "nic": "network adapter",
    "switch": "switch",
    "optics": "transceiver or cable end",
    "fibre": "cable of fibre, metre (m) of it, or splitter",
    "gpu": "GPU",
    "wan": "wide-area channel",
    "labour": "labour or support",
    "rack": "rack of switches",
}
ORDER = "order"
WHOLE = {
    "optics": "cable with the transceivers at both ends",
    "hb": "HB domain of {} GPUs: interconnect, and servers where the bill counts them",
}
"""What is bought whole, of so many pieces."""
NO_PRICE = (0.0, 0.0, 0.0, 0.0)
CABLE = "cable (its price is in other lines)"
RANK_COLUMNS = ("rank", "tp", "cp", "dp", "pp", "ep", "domain", "local_gpu", "rails", "workload")
Cells = dict[str, object]


def bill_csv(instance: Instance, plan: Plan, *, part: str | None = None) -> str:
    """One line for each item of the bill, in USD and W, with the part of the plan that it is of
    (docs/exports.md).

    Lines of everything together have no part and sum to the cost of the plan; those with a part are
    the bill of that network alone. A plan whose only part is all that is bought has lines of that
    part alone.

    Parameters
    ----------
    part
        The name of the part whose lines are asked for.

    Raises
    ------
    InstanceError
        When the plan is of another instance, or builds nothing.
    """
    check_same_question(instance, plan)
    if plan.cost is None:
        raise InstanceError(
            f"{instance.place}: the plan (status {plan.status}) has no bill, needs a plan that"
            " builds something"
        )
    parts = plan.parts if part is None else [part_named(instance, plan, part)]
    bills = [(shown.name, shown.cost.items) for shown in parts]
    if part is None and [shown.cost for shown in parts] != [plan.cost]:
        bills.insert(0, ("", plan.cost.items))
    names = tuple(Item.model_fields)
    return csv_text(
        (*names, "part"),
        (
            (*(getattr(item, name) for name in names), owner)
            for owner, items in bills
            for item in items
        ),
    )


def procurement_csv(bill: NetworksBill) -> str:
    """One line for each thing that is ordered, in the order in which one buys: they add up to the
    whole bill.

    Each has the network that it is for; none where it is for several, or for channels between
    sites. HB domains are bought whole, whatever a plan counts them by. Cables by length follow
    their network, in phases those that each adds, and what is not counted the whole; both at 0, for
    want of a price.
    """
    sizes = {
        network.hb_domain: network.domain_gpus for network in bill.networks if network.domain_gpus
    }
    left, rows = bill.left_over, list[tuple[object, ...]]()
    for network in bill.networks:
        of_items = {item.name: network.domain_gpus for item in network.items if item.kind == "hb"}
        rows += (
            _order_row(item, network, sizes | of_items, bill.whole_cables)
            for item in network.items
            if left is not None
        )
        rows += (
            (
                f"cable {cable.length_m} m",
                f"{CABLE} below tier {tier.level}",
                cable.count if cable.added is None else cable.added,
                *NO_PRICE,
                network.name,
                ORDER,
            )
            for tier in network.tier
            for cable in tier.cables
            if cable.added != 0
        )
    # What networks do not account for is for all of them, such as spare units bought for a price.
    of_all = bill.items if left is None else [unit.of(count) for unit, count in left.items()]
    rows += (_order_row(item, None, sizes, bill.whole_cables) for item in of_all)
    rows += ((omission, "not counted", 0, *NO_PRICE, "", "") for omission in bill.not_counted)
    rows += ((note, "note", 0, *NO_PRICE, "", "") for note in bill.notes)
    return csv_text(PROCUREMENT_COLUMNS, rows)


def _order_row(
    item: Item, network: BilledNetwork | None, sizes: Mapping[str, int], cables: Collection[str]
) -> tuple[object, ...]:
    """A line for a network, or for several (None). What direct links are patched through is bought
    by its ports, and HB domains and cables that come with both of their ends are bought whole.
    """
    size = sizes.get(item.name, 1) if item.kind == "hb" and not item.idle else 1
    size = 2 if item.kind == "optics" and item.name in cables else size
    # A count that does not divide into whole packs is listed by single pieces.
    pack_size = size if item.count % size == 0 else 1
    description = DESCRIPTIONS[item.kind]
    if item.idle:
        description = "GPU that does not train"
    elif pack_size > 1:
        description = WHOLE[item.kind].format(pack_size)
    elif network is not None and network.fabric == "direct" and item.kind == "switch":
        description = "port of a panel or an optical circuit switch"
    # Fifteen digits: 72 x 75.95 is 5468.4, and a product of floats must not show a price that no
    # list has.
    unit_usd, unit_w = (float(f"{x * pack_size:.15g}") for x in (item.unit_usd, item.unit_w))
    return (
        item.item,
        f"{'spare ' if item.spare and not item.idle else ''}{description}",
        item.count // pack_size,
        *(unit_usd, item.usd, unit_w, item.w),
        "" if network is None else network.name,
        ORDER,
    )


def links_csv(routing: Routing) -> str:
    """Every bundle of links with its load, one a line, with a column for each field."""
    names = tuple(LinkLoad.model_fields)
    return csv_text(names, ([getattr(link, name) for name in names] for link in routing.links))


def ranks_csv(
    instance: Instance, plan: Plan, *, workload: str | None = None, part: str | None = None
) -> str:
    """One line for each rank of each workload, or of the one that is named (docs/exports.md).

    Raises
    ------
    InstanceError
        When the plan is of another instance, has no design, or no workload of that name.
    """
    check_same_question(instance, plan)
    _, splits = workload_splits(instance, plan, workload=workload, part=part)
    network = network_of(part_named(instance, plan, part))
    nic = network.fabric.nic if isinstance(network, Design) else network.nic
    # each port of a NIC in a plane has a rail
    counts = network.nics_per_gpu * nic.ports_in_plane, nic.shared_by
    return csv_text(
        RANK_COLUMNS, (row for split, run in splits for row in _ranks(counts, split, run.name))
    )


def front_csv(front: Front) -> str:
    """Pace, days if any, value, bound, gap, cost, design, how each workload runs; a header alone
    without points.
    """
    rows = [_point(point) for point in front.points]
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["pace", "knee"]
    return csv_text(names, ([row.get(name, "") for name in names] for row in rows))


def _ranks(counts: tuple[int, int], split: RankGrid, workload: str) -> Iterator[tuple[object, ...]]:
    """The rows of a workload, with so many rails of a GPU, or GPUs of a NIC."""
    ranks, (per_gpu, gpus_per_nic) = rank_table(split), counts
    firsts = [gpu * per_gpu // gpus_per_nic for gpu in range(split.active)]
    rails = [" ".join(map(str, range(first, first + per_gpu))) for first in firsts]
    columns = (getattr(ranks, name).tolist() for name in ("tp", "cp", "dp", "pp", "ep", "gpu"))
    for rank, (*coordinates, gpu) in enumerate(zip(*columns, strict=True)):
        domain, local = divmod(gpu, split.active)
        yield rank, *coordinates, domain, local, rails[local], workload


def _point(point: FrontPoint) -> Cells:
    """A point, with columns of every workload; its name stands before them where there are
    several.
    """
    claim, cost = point.claim, point.cost
    design = point.best.design if point.best else point.plan.design if point.plan else None
    cells: Cells = {
        "pace": point.pace,
        **({} if point.days is None else {"days": point.days}),
        "knee": point.knee,
        "objective": claim.kind,
        "value": claim.value,
        "bound": claim.bound,
        "gap": claim.gap,
        "capex_usd": cost.capex_usd,
        "power_w": cost.power_w,
        "tco_usd": cost.tco_usd,
        **(flat_design(design) if design else {}),
    }
    for label, run in point.runs:
        prefix = "" if len(point.runs) == 1 else f"{label}."
        figures = ("iteration_time_s", "tokens_per_s", "mfu", "mfu_causal", "memory_gib")
        columns = {name: getattr(run, name) for name in figures} | run.mapping.model_dump()
        cells |= {prefix + name: value for name, value in columns.items()}
    return cells
