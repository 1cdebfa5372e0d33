"""Plans, routes and fronts as CSV files for spreadsheets and schedulers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.plan.contents import runs_at
from coopt.plan.flat import flat_design
from coopt.plan.front import Front, FrontPoint
from coopt.plan.parts import Record
from coopt.plan.schema import Item, Plan
from coopt.plan.store import check_same_question
from coopt.plan.traffic import LinkLoad, Routing
from coopt.traffic.of_plan import workload_splits
from coopt.traffic.ranks import RankGrid, rank_table

RANK_COLUMNS = ("rank", "tp", "cp", "dp", "pp", "ep", "domain", "local_gpu", "rails", "workload")
Cells = dict[str, object]


def bill_csv(instance: Instance, plan: Plan) -> str:
    """One line for each item of the bill, in USD and W; lines sum to the cost of the plan.

    Raises
    ------
    InstanceError
        When the plan is of another instance, or builds nothing.
    """
    check_same_question(instance, plan)
    if plan.cost is None:
        raise InstanceError(f"{instance.name}: the plan is {plan.status} and has no bill, needs a plan that builds one")
    return _records_csv(Item, plan.cost.items)


def links_csv(routing: Routing) -> str:
    """Every bundle of links with its load, one a line."""
    return _records_csv(LinkLoad, routing.links)


def ranks_csv(instance: Instance, plan: Plan, *, workload: str | None = None) -> str:
    """One line for each rank of each workload, or of the one that is named (docs/exports.md).

    Raises
    ------
    InstanceError
        When the plan is of another instance, has no design, or no workload of that name.
    """
    check_same_question(instance, plan)
    family, splits = workload_splits(instance, plan, workload=workload)
    return _csv(RANK_COLUMNS, (row for split, run in splits for row in _ranks(family, split, run.name)))


def front_csv(front: Front) -> str:
    """Pace, value, bound and gap, cost, design, and how every workload runs; a header alone without points."""
    rows = [_point(point) | _runs(point) for point in front.points]
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["pace", "knee"]
    return _csv(names, ([row.get(name, "") for name in names] for row in rows))


def _csv(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(header)
    table.writerows(rows)
    return text.getvalue()


def _records_csv(kind: type[Record], records: Iterable[Record]) -> str:
    """A column for each field."""
    names = tuple(kind.model_fields)
    return _csv(names, ([getattr(record, name) for name in names] for record in records))


def _ranks(family: Family, split: RankGrid, workload: str) -> Iterator[tuple[object, ...]]:
    per_gpu, ranks = family.nics_per_gpu, rank_table(split)
    rails = [" ".join(str(gpu * per_gpu + nic) for nic in range(per_gpu)) for gpu in range(family.active)]
    places = zip(*(getattr(ranks, name).tolist() for name in ("tp", "cp", "dp", "pp", "ep", "gpu")), strict=True)
    for rank, (*coordinates, gpu) in enumerate(places):
        domain, local = divmod(gpu, family.active)
        yield rank, *coordinates, domain, local, rails[local], workload


def _point(point: FrontPoint) -> Cells:
    claim, cost = point.claim, point.cost
    design = point.best.design if point.best else point.plan.design if point.plan else None
    return {
        "pace": point.pace,
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


def _runs(point: FrontPoint) -> Cells:
    """Columns of every workload; its name stands before them where there are several."""
    cells: Cells = {}
    runs = runs_at(point)
    for label, run in runs:
        prefix = "" if len(runs) == 1 else f"{label}."
        columns: Cells = {"iteration_time_s": run.iteration_time_s, "tokens_per_s": run.tokens_per_s, "mfu": run.mfu}
        columns |= {"memory_gib": run.memory_gib} | run.mapping.model_dump()
        cells |= {prefix + name: value for name, value in columns.items()}
    return cells
