"""Why a plan is optimal, or why there is none: the answer of `coopt explain`. Data only.

Limits are named by their keys in the instance (`workload[0].max_iteration_time_s`,
`limits.power_mw`). Objective values are in USD, or in W if power is minimised.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from coopt.instance.question import ObjectiveKind
from coopt.instance.texts import Row, frame_of, html
from coopt.plan.parts import Design, Record
from coopt.plan.schema import InstanceId


class SizedModel(Record):
    """What a model reaches by the date: the tokens it is trained on and the loss that follows.

    `status` is that of the search for its fastest cluster, with its purchase (USD) and power (W).
    Tokens (of the whole training) and loss (nats a token) are None where no cluster within the
    limits trains it.
    """

    model: str
    parameters: int
    status: str
    tokens: float | None = None
    loss: float | None = None
    gpu: str | None = None
    gpus: int | None = None
    capex_usd: float | None = None
    power_w: float | None = None


class NextPlan(Record):
    """The plan that becomes optimal when a bound moves to `bound`, and its cost relative to the
    current plan.

    `design` is given if the plan has a single one.
    """

    bound: float
    value: float
    extra: float
    design: Design | None = None


class Bound(Record):
    """A bound on the plan; it binds if relaxing it admits a cheaper plan.

    `used` is the value of the plan, and thus the tightest bound that admits the plan; None if the
    plan has no such number. `tighter` is the cheapest plan with a smaller value, `looser` the first
    plan that a relaxation admits, and `without` the cheapest one without the bound, or with the
    bound `loosest`, if it is cheaper. `step` is the share by which the bound was tightened from the
    value of the plan: 0 just beyond it, more if the plan has no such number; None if not asked.
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
    until: Annotated[
        str | None, Field(description="day by which the plan is trained, of a bound that is a day")
    ] = None


class Rival(Record):
    """The cheapest plan with another choice of one part; without `value` none meets the bounds, for
    the reason in `why`.

    If `excluded`, it is the cheapest plan without the choice. `design` is given if the plan has a
    single one. `gives` states other properties of a different fabric: the GPUs that it connects,
    its times, and the effect of losing a leaf.
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
    def premise(self) -> str:
        """`Without cx7-400g in network.nics`: what the list of choices is then."""
        return f"{'Without' if self.excluded else 'With only'} {self.choice} in {self.part}"

    @property
    def told(self) -> str:
        """Why the rival is worse, and its other properties, without the final full stop."""
        return f"{self.why}. {self.gives}" if self.gives else self.why


class PriceRange(Record):
    """Price range in which the plan stays optimal at otherwise equal prices; no `high` means any
    higher price.

    `below` and `above` are the optimal designs just outside the range, if there is a single one.
    Prices were `tried` from 0 to the highest that an instance may hold, or with which the plan
    keeps its limits.
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
    """The second-best design, or the best of those compared, and its additional cost."""

    value: float
    regret: float
    design: Design | None
    why: str


class Change(Record):
    """A limit and its required new value; `to` is the text to enter, `least` the exact threshold of
    a number.

    If plans have no such number, the threshold was found by bisection, and no number closer to
    `now` than `within`, as a share of `to`, suffices. If numbers were tried in steps, `to` is the
    smallest sufficient multiple of `step`, or the largest one without `least`. With step 1, no
    other number suffices, either below it or up to the one required.
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
    """Limits whose joint change makes a plan feasible, verified by solving the changed instance,
    and the cost of that plan.

    `notes` state which added HB domains are not sold as products, and the spares needed with
    another number of GPUs.
    """

    changes: tuple[Change, ...]
    value: float
    design: Design | None = None
    notes: tuple[str, ...] = ()


class Explanation(Record):
    """What binds a plan and what would change it; without a plan, what must be relaxed.

    Each of `conflicts` is a minimal set of limits that no design satisfies together, even without
    all others; without any one of them some design does. `conflict` is the first. `status` is
    "unknown" if the time limit was reached; `untried` are the keys of the questions left then.
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
        """Return a table as a data frame: "bounds", "rivals" or "prices" (see
        `coopt.instance.texts.frame`).
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
        """Yield limits with their slack, and the change of the objective from moving them."""
        for bound in self.bounds:
            yield {
                **bound.model_dump(include={"limit", "unit", "bound", "used", "slack", "binds"}),
                "tighter": bound.tighter.extra if bound.tighter else None,
                "looser": bound.looser.extra if bound.looser else None,
            }
