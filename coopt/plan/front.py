"""A front: the least cost for every pace of training, from the fastest design worth its price to
the cheapest.

Data only. `pace` is the largest iteration time of a workload over its bound: with one workload it
is its iteration time in units of the bound, with several every bound is scaled alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from coopt.instance.tables import Row, frame, html
from coopt.plan.contents import running
from coopt.plan.parts import Record
from coopt.plan.schema import (
    Alternative,
    Cost,
    Design,
    InstanceId,
    ObjectiveClaim,
    Plan,
    WorkloadPlan,
    check_matplotlib,
)

FrontStop = Literal["whole front", "points asked for", "infeasible", "time limit", "interrupted"]


class FrontPoint(Record):
    """No plan costs less at this pace or faster, and none of this cost is faster.

    A point of one network has `best`: its workloads hold the bounds at this pace, its objective the
    proven lower bound on the cost of it; `days` is the time of training where the only bound of the
    question is on days, with what a margin keeps free. Of several workloads, or networks,
    `workload_days` has those of each whose bound is on days, save in phases. Any other point has
    the whole `plan`, which answers the instance at the pace `solved_at`, at least this one; between
    this pace and the next faster point others of its cost may be faster.
    """

    pace: float
    days: float | None = None
    knee: bool
    best: Alternative | None = None
    plan: Plan | None = None
    solved_at: float | None = None
    workload_days: dict[str, float] = Field(default_factory=dict)

    @property
    def cost(self) -> Cost:
        """The bill."""
        answer = self.best or self.plan
        assert answer is not None
        assert answer.cost is not None
        return answer.cost

    @property
    def claim(self) -> ObjectiveClaim:
        """What is proven of the cost."""
        answer = self.best or self.plan
        assert answer is not None
        return answer.objective

    @property
    def designs(self) -> list[Design]:
        """What is built, apart from direct links."""
        networks = (
            [self.best.design]
            if self.best
            else [part.design for part in self.plan.parts]
            if self.plan
            else []
        )
        return [design for design in networks if design is not None]

    @property
    def runs(self) -> list[tuple[str, WorkloadPlan]]:
        """How every workload runs, each with its name and place."""
        if self.best is not None:
            return [(run.name, run) for run in self.best.workloads]
        assert self.plan is not None
        return [(workload.label, workload.run) for workload in running(self.plan)]

    @property
    def times(self) -> Row:
        """Seconds of an iteration, with the workload's name before them where there are several,
        and days.
        """
        runs = self.runs
        seconds = {f"{label}.iteration_time_s": run.iteration_time_s for label, run in runs}
        if len(runs) == 1:
            seconds = {"iteration_time_s": runs[0][1].iteration_time_s}
        days = {f"{name}.days": duration_days for name, duration_days in self.workload_days.items()}
        return {**seconds, **(days if self.days is None else {"days": self.days})}


class Front(Record):
    """Points by rising pace (slower) and falling cost; `stop_reason` says why there are no more.

    `size` counts the points of the whole front, shown or not; `complete` says that all that were
    asked for are proven. `explanation` says, in sentences, why there is no point at all. `over`
    names the workloads whose bounds move with the pace, where these are not all, or how the front
    is read: at dates ("days") or at budgets ("budget"). `tp_across` says that TP groups may extend
    over several HB domains where workloads leave `allow_tp_across` open, since nothing that keeps
    them inside meets the bounds of the instance.
    """

    schema_: Annotated[Literal["coopt-front/1"], Field(alias="schema")] = "coopt-front/1"
    instance: InstanceId
    kind: Literal["capex", "power", "tco"]
    points: tuple[FrontPoint, ...]
    size: int
    complete: bool
    stop_reason: FrontStop
    explanation: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    tp_across: bool = False
    solves: int
    total_s: float

    def __repr__(self) -> str:
        count_text = f"{len(self.points)} of {self.size} point{'' if self.size == 1 else 's'}"
        return f"Front({self.instance.name!r}, {self.kind}, {count_text}, {self.stop_reason})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return html(repr(self), self.explanation, [list(self.rows())])

    def rows(self) -> Iterator[Row]:
        """The points: pace as a multiple of the bounds, times, cost (USD), power (W), and what is
        built.

        Times are those of `FrontPoint.times`; a point without one that another has holds None
        there.
        """
        no_times: Row = dict.fromkeys(name for point in self.points for name in point.times)
        for point in self.points:
            networks_text = "; ".join(
                f"{design.hb_domain.count} x {design.hb_domain.name}, {design.fabric.kind}"
                for design in point.designs
            )
            cost = {
                "capex_usd": point.cost.capex_usd,
                "tco_usd": point.cost.tco_usd,
                "power_w": point.cost.power_w,
            }
            yield {
                "pace": point.pace,
                **no_times,
                **point.times,
                **cost,
                "knee": point.knee,
                "built": networks_text,
            }

    def to_frame(self) -> Any:
        """The points as a data frame (`coopt.instance.tables.frame`)."""
        return frame(self.rows())

    def plot(self) -> Any:
        """A figure of matplotlib: cost over days or seconds where points have one such time, else
        over pace.
        """
        check_matplotlib()
        from coopt.plan.plots import front_plot

        return front_plot(self.kind, list(self.rows()))
