"""What every answer says, whatever it builds: which question it answers, what it is worth, and how
it was found.

While a search runs, it tells its caller how far it is. A proof of a bound of coupled parts or of
direct links is what `coopt prove` writes and `coopt certify` checks.

docs/certificates.md says what it proves.
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

    `stage` is one of "columns", "build", "solve", "explain", "routes", "done"; `best` and `bound`
    are in the objective's unit and `nodes` counts those of the search tree, each None while
    unknown. `done` is how many of how many steps of this stage are over, where they can be counted.
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
        """(best - bound) / best; None while one of the two is unknown or best is 0."""
        return (
            None
            if self.best is None or self.bound is None or not self.best
            else 1.0 - self.bound / self.best
        )


OnProgress = Callable[[Progress], None]


class Witness(Record):
    """What a second solver found of the same question; it `agrees` where neither answer refutes the
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
    """Wall seconds of each stage."""

    model: float
    columns: float
    build: float
    handover: float
    solve: float
    total: float


class InstanceId(Record):
    """Which question the plan answers."""

    name: str
    sha256: str


class ObjectiveClaim(Record):
    """What is minimised, the plan's value, and the proven lower bound; units follow `kind` (USD or
    W).
    """

    kind: ObjectiveKind
    value: float | None
    bound: float | None
    gap: float | None


class Overrides(Record):
    """What a run was asked in place of what the instance says: another objective, another relative
    gap.

    `values` are those that replaced values of the file before it was read, by dotted key:
    `instance` names the question that they make.
    """

    objective: ObjectiveKind | None = None
    gap: Annotated[float | None, Field(ge=0, lt=1)] = None
    values: dict[str, Any] = Field(default_factory=dict)

    @property
    def replaced(self) -> str:
        """`cluster.gpus = 128, network.fabrics = "clos"`; empty where nothing of the file was
        replaced.
        """
        return ", ".join(f"{key} = {toml_text(value)}" for key, value in self.values.items())


class Rivals(Record):
    """What is known of the cheapest cluster with direct links, and of the cheapest with switches;
    no value without one.

    Bounds and gaps are those of each by itself; `lengths` of links prove the bound of direct ones
    (docs/certificates.md).
    """

    direct: ObjectiveClaim
    switched: ObjectiveClaim
    lengths: tuple[LinkLengths, ...] = ()


class Alternative(Record):
    """A runner-up: the best design besides those listed before it, with a bound on all of those
    besides.
    """

    objective: ObjectiveClaim
    design: Design
    cost: Cost
    workloads: tuple[WorkloadPlan, ...]


AlternativesStop = Literal[
    "all found", "no other design", "time limit", "interrupted", "not proven"
]


class Answer(Record):
    """What documents of every schema have."""

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
    """A case that is left whole, and its multipliers, in units of the objective.

    `units` are prices of a unit that stands in a phase, by kind and name of the product. `limits`
    belong to a GPU, a watt or a rack: "gpus", "power_w", "racks", and "power_w of" a site. `budget`
    belongs to a USD of capex, `links` to a link into the core of a site ("" without sites),
    `outlooks` are weights of the ways prices may turn out. Without `costs` nothing but limits and
    the budget counts.
    """

    costs: bool = True
    units: ByPhase = Field(default_factory=dict)
    limits: ByPhase = Field(default_factory=dict)
    budget: Amount = "0"
    links: ByPhase = Field(default_factory=dict)
    outlooks: tuple[Amount, ...] = ()


class ProductCut(Record):
    """Choices that do not use a product, and those that may."""

    product: str
    without: "Node"
    among: "Node"


class PurchaseCut(Record):
    """Choices that buy at most so many units of a product in a phase (from 0), and those that buy
    more.
    """

    bought: str
    phase: int
    most: int
    up_to: "Node"
    beyond: "Node"


class IslandCut(Record):
    """Choices whose island of this name has at most so many units of a product in a phase, and
    those with more.
    """

    island: str
    product: str
    phase: int
    most: int
    up_to: "Node"
    beyond: "Node"


def _form_of(node: object) -> str:
    """Which form a case has, by the keys that only that form has: trying all of them at every level
    never ends.
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
    """The cases of a question whose core has this optic; None without a core."""

    optic: str | None = None
    tree: Node


class Proof(Record):
    """Cases that together are all choices, and what proves the bound of each; on direct links,
    their lengths.

    `bound` is what the cases prove, in the unit of the objective, where that is less than the
    plan's. `bests` does the same for the best plan of every way prices may turn out, where regret
    is minimised.
    """

    schema_: Annotated[Literal["coopt-proof/1"], Field(alias="schema")]
    instance: InstanceId
    objective: ObjectiveKind
    bound: Amount | None = None
    cases: tuple[Cases, ...] = ()
    bests: tuple[tuple[Cases, ...], ...] = ()
    links: tuple[LinkLengths, ...] = ()
