"""Parts common to all answers: the question, the objective value and bound, and the search.

This includes the progress of a running search, and the proof of a bound for coupled parts or direct
links that `coopt prove` writes and `coopt certify` checks (docs/certificates.md).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Chosen
from coopt.instance.texts import toml_text
from coopt.plan.parts import Amount, ByPhase, Cost, Design, LinkLengths, Record, WorkloadPlan


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
    """How the answer was found."""

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
    without: "Node"
    among: "Node"


class PurchaseCut(Record):
    """A branching on the units of a product bought in a phase (numbered from 0): at most this many,
    or more.
    """

    bought: str
    phase: int
    most: int
    up_to: "Node"
    beyond: "Node"


class IslandCut(Record):
    """A branching on the units of a product in an island and phase: at most this many, or more."""

    island: str
    product: str
    phase: int
    most: int
    up_to: "Node"
    beyond: "Node"


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
