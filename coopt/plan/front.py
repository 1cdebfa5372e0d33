"""Pareto fronts: minimum cost over training time, from the fastest design worth its price to the
cheapest. Data only.

`pace` is the maximum over workloads of iteration time divided by its bound: for one workload its
iteration time in units of the bound, while for several all bounds are scaled alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from coopt.instance.texts import Row, frame, html
from coopt.plan.contents import running
from coopt.plan.parts import Cost, Design, Record, WorkloadPlan
from coopt.plan.schema import Alternative, InstanceId, ObjectiveClaim, Plan, check_matplotlib

FrontStop = Literal[
    "whole front", "all requested points", "infeasible", "time limit", "interrupted", "not proven"
]


class FrontPoint(Record):
    """A Pareto-optimal point: no plan costs less at this or a smaller pace, and none of this cost
    is faster.

    A point of one network has `best`: its workloads hold the bounds at this pace, and its objective
    the proven lower bound on the cost. `days` is the training time, including the time margin, if
    the only bound of the question is in days. For several workloads or networks, `workload_days`
    has the training time of each workload whose bound is in days, except with phases. Any other
    point has the whole `plan`, which answers the instance at the pace `solved_at`, at least this
    one; between this pace and that of the next faster point there may be faster plans of equal
    cost.
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
        """The proven bound on the cost."""
        answer = self.best or self.plan
        assert answer is not None
        return answer.objective

    @property
    def designs(self) -> list[Design]:
        """The designs built, without direct links."""
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
        """Results of every workload, with its name and place."""
        if self.best is not None:
            return [(run.name, run) for run in self.best.workloads]
        assert self.plan is not None
        return [(workload.label, workload.run) for workload in running(self.plan)]

    @property
    def times(self) -> Row:
        """Seconds per iteration, prefixed by the workload's name if there are several, and days."""
        runs = self.runs
        seconds = {f"{label}.iteration_time_s": run.iteration_time_s for label, run in runs}
        if len(runs) == 1:
            seconds = {"iteration_time_s": runs[0][1].iteration_time_s}
        days = {f"{name}.days": duration_days for name, duration_days in self.workload_days.items()}
        return {**seconds, **(days if self.days is None else {"days": self.days})}


class Front(Record):
    """Points in rising order of pace (slower) and falling order of cost; `stop_reason` states why
    there are no more.

    `size` counts the points of the whole front, shown or not; `complete` states that all required
    points are proven. `explanation` states in sentences why there is no point, or that slower ones
    are left out. `over` names the workloads whose bounds vary, if not all, or how the front is
    read: by dates ("days") or budgets ("budget"). `tp_across` states that TP groups may extend over
    several HB domains where workloads leave `allow_tp_across` open, since no plan with TP inside
    domains meets the bounds of the instance.
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
        """Yield the points: pace as a multiple of the bounds, times, cost (USD), power (W), and
        design.

        Times are those of `FrontPoint.times`; a point without a time that another point has holds
        None there.
        """
        no_times: Row = dict.fromkeys(name for point in self.points for name in point.times)
        for point in self.points:
            networks_text = "; ".join(
                f"{design.hb_domain.count} x {design.hb_domain.name}, {design.fabric.title}"
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
        """Return the points as a data frame (see `coopt.instance.texts.frame`)."""
        return frame(self.rows())

    def plot(self) -> Any:
        """Return a matplotlib figure of cost over days or seconds if points have one such time,
        else over pace.
        """
        check_matplotlib()
        from coopt.plan.plots import front_plot

        return front_plot(self.kind, list(self.rows()))
