"""The plan: what to build, its cost, training times, and proven bounds. Data only.

The plan also provides its contents as rows for data frames and plots. `solving` fills it,
`verifier` checks it, `report` presents it.

Parts common to all answers are here too: the question, the objective value and bound, the progress
of a search, and the proof of a bound for coupled parts or direct links that `coopt prove` writes
and `coopt certify` checks (docs/certificates.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from coopt.instance.numerics import EQUAL
from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Chosen
from coopt.instance.texts import InstanceError, Row, frame_of, html, toml_text
from coopt.plan.couplings import Couplings as Couplings
from coopt.plan.couplings import Part as Part
from coopt.plan.parts import Amount, ByPhase, Cost, Design, LinkLengths, Record, WorkloadPlan
from coopt.plan.parts import Fabric as Fabric
from coopt.plan.parts import HbDomainChoice as HbDomainChoice
from coopt.plan.parts import Item as Item
from coopt.plan.parts import MappingChoice as MappingChoice
from coopt.plan.parts import NicChoice as NicChoice
from coopt.plan.parts import SwitchChoice as SwitchChoice
from coopt.plan.parts import Tier as Tier


@dataclass(frozen=True, kw_only=True)
class Progress:
    """One step of a run.

    `stage` is one of "columns", "build", "solve", "explain", "routes", "done". `best` and `bound`
    are in the unit of the objective and `nodes` counts those of the search tree; each is None while
    unknown. `done` is the number of completed and of all steps of this stage, if countable.
    """

    stage: str
    message: str
    elapsed_s: float
    best: float | None = None
    bound: float | None = None
    nodes: int | None = None
    done: tuple[int, int] | None = None

    @property
    def gap(self) -> float | None:
        """(best - bound) / best; None while one of the two is unknown, or if best is 0."""
        return (
            None
            if self.best is None or self.bound is None or not self.best
            else 1.0 - self.bound / self.best
        )


OnProgress = Callable[[Progress], None]


class Witness(Record):
    """Result of a second solver for the same question; it `agrees` if neither answer refutes the
    other.
    """

    name: str
    version: str
    status: Literal["optimal", "feasible", "infeasible", "unknown"]
    value: float | None
    bound: float | None
    agrees: bool


class SolverReport(Record):
    """How the answer was found.

    Columns and families are those that this search listed: a point of a front reuses what points
    before it listed, and does not count that again.
    """

    formulation: str
    name: str
    version: str
    options: dict[str, float | int | str | bool]
    nodes: int
    columns_enumerated: int
    columns_gated: dict[str, int]
    columns_kept: int
    families: int
    cuts: int
    witness: Witness | None = None


class Timing(Record):
    """Wall-clock seconds of each stage."""

    model: float
    columns: float
    build: float
    handover: float
    solve: float
    total: float


class InstanceId(Record):
    """Identity of the question that the plan answers."""

    name: str
    sha256: str


class ObjectiveClaim(Record):
    """The objective, the value of the plan, and the proven lower bound, in the unit of `kind` (USD
    or W).
    """

    kind: ObjectiveKind
    value: float | None
    bound: float | None
    gap: float | None


class Overrides(Record):
    """Settings of a run that replace those of the instance: another objective or relative gap.

    `values` replaced values of the file before validation, by dotted key: `instance` identifies the
    resulting question.
    """

    objective: ObjectiveKind | None = None
    gap: Annotated[float | None, Field(ge=0, lt=1)] = None
    values: dict[str, Any] = Field(default_factory=dict)

    @property
    def replaced(self) -> str:
        """The replaced values in words: `cluster.gpus = 128, network.fabrics = "clos"`; empty if
        there are none.
        """
        return ", ".join(f"{key} = {toml_text(value)}" for key, value in self.values.items())


class Rivals(Record):
    """Value and bound of the cheapest cluster with direct links, and of the cheapest one with
    switches; no value if there is none.

    Each bound and gap refers to its own kind; `lengths` of links prove the bound of direct links
    (docs/certificates.md).
    """

    direct: ObjectiveClaim
    switched: ObjectiveClaim
    lengths: tuple[LinkLengths, ...] = ()


class Alternative(Record):
    """A runner-up: the best design except those listed before it, with a bound on all other
    designs.
    """

    objective: ObjectiveClaim
    design: Design
    cost: Cost
    workloads: tuple[WorkloadPlan, ...]


class BetterNumber(Record):
    """A number with which a workload trains clearly faster on the same network: the `value` of its
    batch where `key` is its tolerance, of a degree beyond those tried by default where it is one of
    its mapping, else the GPUs that train.

    `now` is the number of the plan, `iteration_time_s` what an iteration would take, `saved` the
    share of the time of the same training.
    """

    key: str
    workload: str
    value: int
    now: int
    iteration_time_s: float
    saved: float


class Cliff(Record):
    """A design near the answer that `buys` time for little more money, or money for little more
    time than the bounds allow.

    `pace` is the time over that of the answer, of the workload with the least slack and with its
    interruptions; `value` is the sum of the bill that is minimised, or the purchase where time is.
    """

    buys: Literal["time", "money"]
    pace: float
    value: float
    design: Design
    cost: Cost
    workloads: tuple[WorkloadPlan, ...]


class NextBest(Record):
    """Of the cheapest plans with another GPU, HB domain, fabric, NIC or switch near the answer, the
    one that prices turn soonest.

    Both are worth the same once the price of `product` is `turns_at` times what it is, of which its
    source leaves a share of `doubt` open; none is named where no price near its own does that.
    `close`: prices within what their sources leave open may turn the choice together.

    Of several networks it is the cheapest plan in which one of them does without something that it
    has, of HB domain, fabric, NIC and switches: all its `parts`, with what ties them, and no price.
    """

    chosen: Chosen = Chosen()
    value: float
    design: Design | None = None
    cost: Cost
    workloads: tuple[WorkloadPlan, ...] = ()
    parts: tuple[Part, ...] = ()
    couplings: Couplings = Couplings()
    product: str = ""
    turns_at: float = 1.0
    doubt: float = 0.0
    close: bool = False


class Assumption(Record):
    """Something that a plan takes for granted: `key` has it otherwise, where the training of a
    workload takes `time_ratio` times as long on the same networks, None for hardly ever ending.

    `run` is how it then runs; failures are counted with `spare_domains` that stand by instead.
    """

    key: str
    workload: str
    time_ratio: float | None
    run: WorkloadPlan | None = None
    spare_domains: int = 0


AlternativesStop = Literal[
    "all found", "no other design", "time limit", "interrupted", "not proven"
]


class Answer(Record):
    """Fields common to documents of every schema."""

    instance: InstanceId
    status: Literal["optimal", "feasible", "infeasible", "unknown"]
    stop_reason: str
    explanation: tuple[str, ...] = ()
    objective: ObjectiveClaim
    overrides: Overrides = Overrides()
    chosen: Chosen = Chosen()
    tp_across: bool = False
    design: Design | None = None
    cost: Cost | None = None
    workloads: tuple[WorkloadPlan, ...] = ()
    rivals: Rivals | None = None
    alternatives: tuple[Alternative, ...] = ()
    alternatives_stop: AlternativesStop | None = None
    better_numbers: tuple[BetterNumber, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    ties: Annotated[
        tuple[WorkloadPlan, ...],
        Field(description="mappings that the model cannot tell from those of the plan"),
    ] = ()
    next_best: NextBest | None = None
    cliffs: tuple[Cliff, ...] = ()
    solver: SolverReport
    timing_s: Timing


class Leaf(Record):
    """A leaf of the proof tree with its multipliers, in units of the objective.

    `units` are prices of an installed unit in a phase, by kind and name of the product. `limits`
    are prices per GPU, watt or rack: "gpus", "power_w", "racks", and "power_w of" a site. `budget`
    is the price of a USD of capex, `links` that of a link into the core of a site ("" without
    sites), and `outlooks` are the weights of the price scenarios. Without `costs` only limits and
    the budget count.
    """

    costs: bool = True
    units: ByPhase = Field(default_factory=dict)
    limits: ByPhase = Field(default_factory=dict)
    budget: Amount = "0"
    links: ByPhase = Field(default_factory=dict)
    outlooks: tuple[Amount, ...] = ()


class ProductCut(Record):
    """A branching on whether a product is used."""

    product: str
    without: Node
    among: Node


class PurchaseCut(Record):
    """A branching on the units of a product bought in a phase (numbered from 0): at most this many,
    or more.
    """

    bought: str
    phase: int
    most: int
    up_to: Node
    beyond: Node


class IslandCut(Record):
    """A branching on the units of a product in an island and phase: at most this many, or more."""

    island: str
    product: str
    phase: int
    most: int
    up_to: Node
    beyond: Node


def _form_of(node: object) -> str:
    """Return the type of a node of the proof tree, from the keys that only that type has.

    Trying all types at every level of the tree would take exponential time.
    """
    keys = {"without": ProductCut, "bought": PurchaseCut, "island": IslandCut}
    if isinstance(node, dict):
        return next((form.__name__ for key, form in keys.items() if key in node), Leaf.__name__)
    return type(node).__name__


Node = Annotated[
    Annotated[Leaf, Tag("Leaf")]
    | Annotated[ProductCut, Tag("ProductCut")]
    | Annotated[PurchaseCut, Tag("PurchaseCut")]
    | Annotated[IslandCut, Tag("IslandCut")],
    Discriminator(_form_of),
]


class Cases(Record):
    """The proof tree of a question whose core has this optic; None without a core."""

    optic: str | None = None
    tree: Node


class Proof(Record):
    """Proof trees that together cover all choices, with multipliers that prove the bound of each
    leaf; for direct links, their lengths.

    `bound` is what the trees prove, in the unit of the objective, if that is less than the plan's
    bound. `bests` proves the bounds of the best plan in every price scenario, where regret is
    minimised.
    """

    schema_: Annotated[Literal["coopt-proof/1"], Field(alias="schema")]
    instance: InstanceId
    objective: ObjectiveKind
    bound: Amount | None = None
    cases: tuple[Cases, ...] = ()
    bests: tuple[tuple[Cases, ...], ...] = ()
    links: tuple[LinkLengths, ...] = ()


VALUES = {
    **{"capex": (",.0f", "USD"), "power": (",.0f", "W"), "tco": (",.0f", "USD")},
    **{"time": (".4g", "s"), "usd_per_token": (".4g", "USD"), "carbon": (",.0f", "kg")},
}
"""How the value of each objective is written, and its unit."""


SHOWN = (
    "part",
    "workload",
    "gpus",
    "tp",
    "pp",
    "dp",
    "iteration_time_s",
    "bound_s",
    "slack",
    "mfu",
)
"""Columns of the mappings that a notebook shows."""


class Plan(Answer):
    """The answer to an instance.

    `parts` are the networks to build and `couplings` what connects them; `cost` is the total bill.
    All are empty if there is no plan; `explanation` then states the reason in sentences. `design`
    and `workloads` repeat those of a single part, and are empty if there are several. `overrides`
    are the objective and gap of the run if they differ from the instance. `tp_across` states that
    TP groups may extend over several HB domains where workloads leave `allow_tp_across` open, since
    no plan with TP inside domains meets all bounds and limits. `rivals` compares direct links with
    switches if an instance allows both. `alternatives` are the requested runners-up, best first;
    `alternatives_stop` states why there are no more.
    """

    schema_: Annotated[Literal["coopt-plan/2"], Field(alias="schema")] = "coopt-plan/2"
    parts: tuple[Part, ...] = ()
    couplings: Couplings = Couplings()

    @model_validator(mode="before")
    @classmethod
    def _of_this_schema(cls, content: Any) -> Any:
        # report nothing else for another schema
        known = cls.model_fields["schema_"].default
        if isinstance(content, Mapping) and content.get("schema", known) != known:
            raise ValueError(f"schema = {content['schema']!r}: needs {known!r}")
        return content

    def __repr__(self) -> str:
        claim, count = self.objective, len(self.parts)
        form, unit = VALUES[claim.kind]
        value = "" if claim.value is None else f"{claim.kind} {claim.value:{form}} {unit}, "
        return (
            f"Plan({self.instance.name!r}, {self.status}, {value}{count}"
            f" part{'' if count == 1 else 's'})"
        )

    __str__ = __repr__

    def _repr_html_(self) -> str:
        runs = [{key: row[key] for key in SHOWN} for row in mapping_rows(self.parts)]
        tables = html(repr(self), self.explanation, [list(bill_rows(self.cost)), runs])
        return tables + self._drawn()

    def _drawn(self) -> str:
        """The plot as an image of a page; nothing without a plan or matplotlib."""
        if self.cost is None or find_spec("matplotlib") is None:
            return ""
        from coopt.plan.plots import as_image

        return as_image(self.plot(), f"cost and time of {self.instance.name}")

    def to_frame(self, table: str = "bill") -> Any:
        """Return a table of the plan as a data frame: "bill", "mappings" or "breakdown" (see
        `coopt.instance.texts.frame`).
        """
        tables = {
            "bill": lambda: bill_rows(self.cost),
            "mappings": lambda: mapping_rows(self.parts),
            "breakdown": lambda: breakdown_rows(self.parts),
        }
        return frame_of(tables, table)

    def plot(self) -> Any:
        """Return a matplotlib figure of the cost by kind and of the time by cause."""
        check_matplotlib()
        from coopt.plan.plots import plan_plot

        return plan_plot(bill_rows(self.cost), breakdown_rows(self.parts))

    @property
    def runs(self) -> tuple[WorkloadPlan, ...]:
        """Results of every workload, part by part."""
        return tuple(run for part in self.parts for run in part.workloads)

    @property
    def at_worst_prices(self) -> bool | None:
        """Whether the bill is at prices worse than those listed; None if the objective is not a
        price.
        """
        list_value, claim = self.couplings.list_value, self.objective
        if list_value is None or claim.value is None:
            return False
        if VALUES[claim.kind][1] != "USD":
            return None
        return not math.isclose(claim.value, list_value, rel_tol=EQUAL)


def bill_rows(cost: Cost | None) -> Iterator[Row]:
    """Yield the lines of the total bill."""
    if cost is not None:
        yield from (item.model_dump() for item in cost.items)


def mapping_rows(parts: tuple[Part, ...]) -> Iterator[Row]:
    """Yield every workload in every part: its mapping, times (s), memory (GiB) and utilisation."""
    for part in parts:
        for run in part.workloads:
            results = run.model_dump(
                exclude={
                    "mapping",
                    "placement",
                    "breakdown_s",
                    "knobs",
                    "collectives",
                    "routes",
                    "name",
                    "gpus",
                }
            )
            whose = {"part": part.name, "workload": run.name, "gpus": run.gpus}
            yield {**whose, **run.mapping.model_dump(), **results, "slack": run.slack}


def breakdown_rows(parts: tuple[Part, ...]) -> Iterator[Row]:
    """Yield the breakdown of the iteration time by cause (s)."""
    for part in parts:
        for run in part.workloads:
            for component, spent_s in run.breakdown_s.items():
                yield {
                    "part": part.name,
                    "workload": run.name,
                    "component": component,
                    "time_s": spent_s,
                }


def check_matplotlib() -> None:
    """Check that matplotlib is installed.

    Raises
    ------
    InstanceError
        If it is not.
    """
    if find_spec("matplotlib") is None:
        raise InstanceError(
            "plot: matplotlib is not installed, needs `pip install 'coopt[jupyter]'`"
        )
