"""Where every rank runs, for launchers and schedulers."""

from __future__ import annotations

import csv
import io

from coopt.instance.schema import Instance
from coopt.plan.identity import check_same_question
from coopt.plan.schema import Plan
from coopt.traffic.of_plan import splits
from coopt.traffic.rank_order import rank_table

COLUMNS = ("rank", "tp", "cp", "dp", "pp", "ep", "domain", "local_gpu", "rails", "workload")


def ranks_csv(instance: Instance, plan: Plan, *, workload: str | None = None) -> str:
    """One line for each rank of each workload, or of the one that is named (docs/exports.md).

    Raises
    ------
    InstanceError
        When the plan is of another instance, has no design, or no workload of that name.
    """
    check_same_question(instance, plan)
    family, found = splits(instance, plan, workload=workload)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    per_gpu = family.nics_per_gpu
    rails = [" ".join(str(gpu * per_gpu + nic) for nic in range(per_gpu)) for gpu in range(family.active)]
    for split, chosen in found:
        ranks = rank_table(split)
        places = zip(*(getattr(ranks, name).tolist() for name in ("tp", "cp", "dp", "pp", "ep", "gpu")), strict=True)
        for rank, (*coordinates, gpu) in enumerate(places):
            domain, local = divmod(gpu, family.active)
            table.writerow((rank, *coordinates, domain, local, rails[local], chosen.name))
    return text.getvalue()
