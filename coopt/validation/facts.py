"""What is known about published runs beyond their rows, read from `facts.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal, Protocol

from pydantic import BeforeValidator, Field

from coopt.instance.base import Count, Positive, Table, Tag, one_or_many
from coopt.instance.hardware import Precision
from coopt.instance.software import Recompute

Words = Annotated[tuple[str, ...], one_or_many]


class WordedRow(Protocol):
    """What rules ask of a row."""

    @property
    def model(self) -> str:
        """The model's name."""

    @property
    def text(self) -> str:
        """All that is said in words."""


class Fact(Table):
    """Something a row does not say; `where` is a pattern to be found in the row's words."""

    tag: Tag
    source: str
    where: str = ""

    def holds_for(self, text: str) -> bool:
        """Whether a row that says `text` is meant."""
        return re.search(self.where, text, re.IGNORECASE) is not None


class RowFact(Fact):
    """A fact about rows whose table prints certain values."""

    model: str = ""
    printed: Annotated[dict[str, int], Field(default_factory=dict)]

    def holds_for_row(self, row: WordedRow) -> bool:
        """Whether this row is meant."""
        name_fits = (
            self.holds_for(row.text) and re.search(self.model, row.model, re.IGNORECASE) is not None
        )
        return name_fits and all(
            getattr(row, column) == value for column, value in self.printed.items()
        )


class Correction(RowFact):
    """Columns that the same source, or the recipe that was run, contradicts elsewhere."""

    columns: dict[str, int]


class Release(RowFact):
    """Rows of one state of software and machine, which their source says not to compare with
    others.
    """

    name: str


class PublishedGpu(Fact):
    """The catalog entry of a GPU that is published under other names, and what it is usually joined
    by.
    """

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
    """Parts of a model that have no column."""

    model: str
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
    """Model chunks of a GPU where the table itself leaves them out."""

    model: str
    chunks: Count


class RecomputeFact(Fact):
    """What a recipe recomputes where the table itself leaves it out, or says `published`."""

    model: str
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
    """What a recipe switches on, of the options of a workload and of its software; rules that fit
    add up.
    """

    model: str = ""
    options: Annotated[dict[str, int | float | bool | str], Field(default_factory=dict)]
    changes: Annotated[dict[str, int | float | bool], Field(default_factory=dict)]


class Convention(Fact):
    """How a group counts the FLOPs it reports; `where` is looked for in the id."""

    counts: str


class Peer(Fact):
    """What another model reaches on the same groups."""

    name: str
    groups: Words
    rows: Count
    mean: float
    largest: float
    hfu_points: float
    fitted: Annotated[int, Field(description="of these rows coopt was fitted to so many")] = 0


def _pair(value: object) -> object:
    """`hopper 16-bit` as two words."""
    return tuple(value.split()) if isinstance(value, str) else value


class FitSet(Table):
    """Which parameters are fitted to which rows by default, and the values they are held to.

    `prior` gives these values, or `after` the generation and precision whose fitted values they
    are; `weight` says how strongly they hold, in rows that lie a loss of 1 off when a parameter is
    a step away.
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
    """The facts that ship with coopt; read once."""
    text = files("coopt").joinpath("validation", "facts.toml").read_text("utf-8")
    table = tomllib.loads(text)
    return FactFile.model_validate(
        {key: tuple(rows) if isinstance(rows, list) else rows for key, rows in table.items()}
    )
