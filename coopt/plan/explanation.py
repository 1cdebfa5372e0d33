"""Why a plan is as it is, or why there is none: what `coopt explain` answers. Data only.

Limits go by their keys in the instance (`workload[0].max_iteration_time_s`, `limits.power_mw`).
Values of the objective are in USD, or in W where power is minimised.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from coopt.instance.question import ObjectiveKind
from coopt.instance.tables import Row, frame_of, html
from coopt.plan.parts import Record
from coopt.plan.schema import Design, InstanceId


class NextPlan(Record):
    """The plan that takes over when a bound moves to `bound`, and what it costs more than the plan
    (or less).

    `design` is there where it has a single one.
    """

    bound: float
    value: float
    extra: float
    design: Design | None = None


class Bound(Record):
    """A bound on the plan; it binds where a cheaper plan waits beyond it.

    `used` is what the plan takes of it, and so the tightest bound that keeps the plan; None where
    that is not a number of the plan. `tighter` is the cheapest plan that takes less, `looser` the
    one that comes in first as the bound gives way. With a `step` the bound was moved by this share
    (by one, where it counts) and the question solved again: `tighter` from what the plan takes,
    `looser` from the bound. `without` is then the cheapest plan when it is gone, or as loose as
    `loosest`, where that is cheaper.
    """

    limit: str
    unit: str
    bound: float
    used: float | None
    slack: Annotated[
        float | None, Field(description="distance from `used` to `bound`, as a share of `bound`")
    ]
    binds: bool
    tighter: NextPlan | None
    looser: NextPlan | None
    step: float | None = None
    without: NextPlan | None = None
    loosest: float | None = None


class Rival(Record):
    """The cheapest plan with another choice of one part; without `value` none meets the bounds, and
    `why` says so.

    Where `excluded`, it is the cheapest plan that does without the choice. `design` is there where
    it has a single one. `gives` is what else sets another fabric apart: whom it joins, its times,
    and the loss of a leaf.
    """

    part: str
    choice: str
    value: float | None
    extra: float | None
    design: Design | None
    why: str
    excluded: bool = False
    gives: str = ""

    @property
    def told(self) -> str:
        """Why it loses, and what it gives; without the last full stop."""
        return f"{self.why}. {self.gives}" if self.gives else self.why


class PriceRange(Record):
    """Between `low` and `high` the plan stays optimal while every other price stays; no `high`
    means however dear.

    `below` and `above` are the designs that take over just outside. Where prices were only `tried`
    from one to another, an end there says that the plan is still optimal, and no `high` that it is
    so at the dearest tried.
    """

    item: str
    unit: Annotated[str, Field(description="USD, W (where power is minimised) or USD/kWh")]
    now: float
    low: float
    high: float | None
    below: Design | None
    above: Design | None
    tried: tuple[float, float] | None = None


class RunnerUp(Record):
    """The best design besides the plan, and what choosing it instead costs."""

    value: float
    regret: float
    design: Design | None
    why: str


class Change(Record):
    """One limit and what it has to become; `to` is text as one types it, `least` the exact
    threshold of a number.

    Where a threshold was searched by halving, no number nearer to `now` than `within`, as a share
    of `to`, would do. Where numbers were tried in steps, `to` is the least multiple of `step` that
    is enough; without `least`, the most. No other number is, below it or up to what was asked for,
    where the step is 1.
    """

    limit: str
    now: str
    to: str
    least: float | None
    share: Annotated[
        float | None, Field(description="how far a number moves, as a share of what it is now")
    ]
    within: float | None = None
    step: int | None = None


class Relaxation(Record):
    """Limits that, moved together, let a plan in: found by solving the changed instance, with what
    it then costs.

    `notes` say of the HB domains that it adds which are nobody's product, and of another number of
    GPUs which spares come on top.
    """

    changes: tuple[Change, ...]
    value: float
    design: Design | None = None
    notes: tuple[str, ...] = ()


class Explanation(Record):
    """What binds a plan and what would change it; without a plan, what has to give.

    Each of `conflicts` is a set of limits that no design keeps together, even without all others;
    without any one of them some design does. `conflict` is the first. `status` is "unknown" where
    time ran out. `untried` are the questions that were left when it did, by their keys.
    """

    schema_: Annotated[Literal["coopt-explanation/1"], Field(alias="schema")] = (
        "coopt-explanation/1"
    )
    instance: InstanceId
    status: Literal["optimal", "feasible", "infeasible", "unknown"]
    kind: ObjectiveKind
    value: float | None = None
    design: Design | None = None
    sentences: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()
    rivals: tuple[Rival, ...] = ()
    prices: tuple[PriceRange, ...] = ()
    runner_up: RunnerUp | None = None
    relaxations: tuple[Relaxation, ...] = ()
    conflict: tuple[str, ...] = ()
    conflicts: tuple[tuple[str, ...], ...] = ()
    untried: tuple[str, ...] = ()
    workloads: Annotated[
        tuple[str, ...], Field(description="names, in the order that keys count them in")
    ] = ()
    rows: Annotated[
        dict[str, tuple[str, ...]],
        Field(
            default_factory=dict,
            description="names of the rows of tables, in the order that keys count them in",
        ),
    ]

    def __repr__(self) -> str:
        return (
            f"Explanation({self.instance.name!r}, {self.status}, {len(self.sentences)} sentences)"
        )

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return html(repr(self), self.sentences, [list(self._bound_rows())])

    def to_frame(self, table: str = "bounds") -> Any:
        """A table as a data frame: "bounds", "rivals" or "prices"
        (`coopt.instance.tables.frame`).
        """
        tables: dict[str, Callable[[], Iterable[Row]]] = {
            "bounds": self._bound_rows,
            "rivals": lambda: (rival.model_dump(exclude={"design"}) for rival in self.rivals),
            "prices": lambda: (
                price.model_dump(include={"item", "unit", "low", "now", "high"})
                for price in self.prices
            ),
        }
        return frame_of(tables, table)

    def _bound_rows(self) -> Iterator[Row]:
        """Limits with what they leave, and what the objective would gain or lose by moving them."""
        for bound in self.bounds:
            yield {
                **bound.model_dump(include={"limit", "unit", "bound", "used", "slack", "binds"}),
                "tighter": bound.tighter.extra if bound.tighter else None,
                "looser": bound.looser.extra if bound.looser else None,
            }
