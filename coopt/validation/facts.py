"""Facts about published runs beyond their rows, read from `facts.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal, Protocol

from pydantic import BeforeValidator, Field

from coopt.instance.base import Count, Positive, Table, Tag, one_or_many
from coopt.instance.hardware import Precision
from coopt.instance.transformer import Recompute

Words = Annotated[tuple[str, ...], one_or_many]


class WordedRow(Protocol):
    """Interface of rows that rules are matched against."""

    @property
    def model(self) -> str:
        """The model's name."""

    @property
    def text(self) -> str:
        """All text of the row."""


class Fact(Table):
    """A fact that a row does not state; `where` and `model` are patterns to find in the row's text
    and in the name of its model, `printed` are values in its table.
    """

    tag: Tag
    source: str
    where: str = ""
    model: str = ""
    printed: Annotated[dict[str, int], Field(default_factory=dict)]

    def holds_for(self, text: str) -> bool:
        """Whether the fact applies to a row with this text."""
        return re.search(self.where, text, re.IGNORECASE) is not None

    def holds_for_row(self, row: WordedRow) -> bool:
        """Whether the fact applies to this row."""
        named = re.search(self.model, row.model, re.IGNORECASE) is not None
        values = {column: getattr(row, column) for column in self.printed}
        return named and self.holds_for(row.text) and values == self.printed


class Correction(Fact):
    """Corrected columns: the same source, or the recipe that was run, contradicts the table."""

    columns: dict[str, int]


class Release(Fact):
    """Rows of one state of software and machine, which their source says not to compare with
    others.
    """

    name: str


class PublishedGpu(Fact):
    """Catalog entry of a GPU with other published names, and its usual HB domain and network."""

    names: Words
    gpu: str
    hb_domain: str
    hb_gbyte_s: Positive | None = None
    nic_gbit_s: Positive


class SoftwareStack(Fact):
    """The training software of a source."""

    generation: str = ""
    precision: str = ""
    software: str
    changes: dict[str, int | float | bool] | None = None
    attention: Literal["flash", "unfused"]
    dp_mode: Literal["sync", "overlap"]
    sequence_parallel: Literal["with tp", "as published"]
    zero: Literal[0, 1, 2, 3]
    balanced_ring: bool = True


class ShapeFact(Fact):
    """Properties of a model that have no column."""

    gated: bool | None = None
    tied_embeddings: bool | None = None
    head_dim: Count | None = None
    value_dim: int = 0
    q_rank: int = 0
    kv_rank: int = 0
    rope_dim: int = 0
    shared_ffn: int = 0
    dense_layers: int = 0
    dense_every: int = 0
    dense_ffn: int = 0
    window: int = 0
    window_every: int = 0
    expert_groups: int = 0
    top_groups: int = 0
    neighbours: Annotated[bool, Field(description="the experts of a token stand side by side")] = (
        False
    )
    extra_predictions: int = 0


class Interleave(Fact):
    """Model chunks per GPU where the table omits them."""

    chunks: Count


class RecomputeFact(Fact):
    """Recomputation of a recipe where the table omits it, or says `published`."""

    published: str = ""
    kind: Recompute
    offload_percent: Annotated[
        int,
        Field(
            ge=0,
            le=100,
            description="share of the activations that goes to the memory of the host (%)",
        ),
    ] = 0
    offloads: Annotated[bool, Field(description="activations go there, how many is not known")] = (
        False
    )


class Recipe(Fact):
    """Options of a workload and its software that a recipe enables; matching rules are combined."""

    options: Annotated[dict[str, int | float | bool | str], Field(default_factory=dict)]
    changes: Annotated[dict[str, int | float | bool], Field(default_factory=dict)]


class Convention(Fact):
    """FLOP convention of a group; `where` is a pattern to find in the id."""

    counts: str


class Peer(Fact):
    """Accuracy of another model on the same groups."""

    name: str
    groups: Words
    rows: Count
    mean: float
    largest: float
    hfu_points: float
    fitted: Annotated[int, Field(description="of these rows coopt was fitted to so many")] = 0


def _pair(value: object) -> object:
    """Split `hopper 16-bit` into two words."""
    return tuple(value.split()) if isinstance(value, str) else value


class FitSet(Table):
    """A set of parameters fitted to rows by default, with the prior of its values.

    `prior` gives the prior values, or `after` the generation and precision whose fitted values are
    used. `weight` is the strength of the prior: the number of rows with a loss of 1 that equals a
    deviation of one step.
    """

    generation: str = ""
    precision: Literal["16-bit", "fp8", "fp4"] = "16-bit"
    software: str = ""
    parameters: Words
    rows: Words = ("*",)
    loss: Literal["log", "square"] = "log"
    prior: Annotated[dict[str, float], Field(default_factory=dict)]
    after: Annotated[tuple[str, str] | None, BeforeValidator(_pair)] = None
    weight: Annotated[float, Field(ge=0)] = 0.0


class FactFile(Table):
    """All tables of `facts.toml`."""

    precisions: dict[str, Precision]
    recompute: dict[str, Recompute]
    correction: tuple[Correction, ...]
    release: tuple[Release, ...]
    device: tuple[PublishedGpu, ...]
    stack: tuple[SoftwareStack, ...]
    shape: tuple[ShapeFact, ...]
    interleave: tuple[Interleave, ...]
    recomputed: tuple[RecomputeFact, ...]
    recipe: tuple[Recipe, ...]
    convention: tuple[Convention, ...]
    peer: tuple[Peer, ...]
    fit: tuple[FitSet, ...]


@cache
def published_facts() -> FactFile:
    """Return the facts included in coopt; cached."""
    text = files("coopt").joinpath("validation", "facts.toml").read_text("utf-8")
    table = tomllib.loads(text)
    return FactFile.model_validate(
        {key: tuple(rows) if isinstance(rows, list) else rows for key, rows in table.items()}
    )
