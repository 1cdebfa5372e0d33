"""A front: the least cost for every pace of training, from the fastest design worth its price to the cheapest.

Data only. `pace` is the largest iteration time of a workload over its bound: with one workload it is its iteration time
in units of the bound, with several every bound is scaled alike.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coopt.plan.record import Record
from coopt.plan.schema import Alternative, InstanceId

FrontStop = Literal["whole front", "points asked for", "infeasible", "time limit", "interrupted"]


class FrontPoint(Record):
    """No design costs less at this pace or faster, and none of this cost is faster.

    `best.workloads` hold the bounds at this pace, `best.objective` the proven lower bound on the cost of it.
    """

    pace: float
    knee: bool
    best: Alternative


class Front(Record):
    """Points by rising pace (slower) and falling cost; `stop_reason` says why there are no more.

    `size` counts the points of the whole front, shown or not; `complete` says that all that were asked for are proven.
    `explanation` says, in sentences, why there is no point at all.
    """

    schema_: Annotated[Literal["coopt-front/1"], Field(alias="schema")] = "coopt-front/1"
    instance: InstanceId
    kind: Literal["capex", "power", "tco"]
    points: tuple[FrontPoint, ...]
    size: int
    complete: bool
    stop_reason: FrontStop
    explanation: tuple[str, ...] = ()
    solves: int
    total_s: float
