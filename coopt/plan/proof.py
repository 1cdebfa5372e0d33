"""A proof of a bound of coupled parts or of direct links: `coopt prove` writes it, `coopt certify` checks it.

docs/certificates.md says what it proves.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from coopt.instance.question import ObjectiveKind
from coopt.plan.claims import InstanceId
from coopt.plan.direct_links import Amount, ByPhase, LinkLengths
from coopt.plan.parts import Record


class Leaf(Record):
    """A case that is left whole, and its multipliers, in units of the objective.

    `units` are prices of a unit that stands in a phase, by kind and name of the product. `limits` belong to a GPU, a
    watt or a rack: "gpus", "power_w", "racks", and "power_w of" a site. `budget` belongs to a USD of capex, `links` to
    a link into the core of a site ("" without sites), `outlooks` are weights of the ways prices may turn out. Without
    `costs` nothing but limits and the budget counts.
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
    without: Node
    among: Node


class PurchaseCut(Record):
    """Choices that buy at most so many units of a product in a phase (from 0), and those that buy more."""

    bought: str
    phase: int
    most: int
    up_to: Node
    beyond: Node


class IslandCut(Record):
    """Choices whose island of this name has at most so many units of a product in a phase, and those with more."""

    island: str
    product: str
    phase: int
    most: int
    up_to: Node
    beyond: Node


def _form_of(node: object) -> str:
    """Which form a case has, by the keys that only that form has: trying all of them at every level never ends."""
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
    """Cases that together are all choices, and what proves the bound of each; on direct links, their lengths.

    `bound` is what the cases prove, in the unit of the objective, where that is less than the plan's. `bests` does the
    same for the best plan of every way prices may turn out, where regret is minimised.
    """

    schema_: Annotated[Literal["coopt-proof/1"], Field(alias="schema")]
    instance: InstanceId
    objective: ObjectiveKind
    bound: Amount | None = None
    cases: tuple[Cases, ...] = ()
    bests: tuple[tuple[Cases, ...], ...] = ()
    links: tuple[LinkLengths, ...] = ()
