"""Vocabulary of tables of measured runs, and corrections, read from `facts.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from coopt.instance.base import Count, Positive, Table, Tag, one_or_many
from coopt.instance.hardware import Precision
from coopt.instance.transformer import Recompute

Words = Annotated[tuple[str, ...], one_or_many]


def found(pattern: str, text: str) -> re.Match[str] | None:
    """Return where a pattern is in a text, whatever the case."""
    return re.search(pattern, text, re.IGNORECASE)


class Fact(Table):
    """A fact that is not in a table, and how it is known."""

    tag: Tag
    source: str


class Correction(Fact):
    """Corrected columns of rows that name it, which printed the values `printed`: the same source,
    or the recipe that was run, contradicts the table.
    """

    name: str
    printed: Annotated[dict[str, int], Field(default_factory=dict)]
    columns: dict[str, int]


class PublishedGpu(Fact):
    """Catalog entry of a GPU with other published names, and its usual HB domain and network."""

    names: Words
    where: Annotated[str, Field(description="words of its notes")] = ""
    gpu: str
    hb_domain: str
    hb_gbyte_s: Positive | None = None
    nic_gbit_s: Positive

    def is_named(self, plain_name: str, notes: str) -> bool:
        """Whether the GPU goes by this name, in a row with these notes."""
        return plain_name in map(str.lower, self.names) and found(self.where, notes) is not None


class Framework(Fact):
    """What a framework of the catalog does in rows that do not say otherwise; `where` are words of
    notes and addresses of rows that do not name theirs.
    """

    name: str
    where: str = ""
    attention: Literal["flash", "unfused"] = "flash"
    dp_mode: Literal["sync", "overlap"] = "overlap"
    sequence_parallel: Literal["with tp", "as published"] = "with tp"
    zero: Literal[0, 1, 2, 3]
    zero_in_pipeline: Annotated[
        Literal[1, 2, 3], Field(description="what ZeRO 3 is under a pipeline")
    ] = 3
    balanced_ring: bool = True
    recompute: Annotated[dict[str, Recompute], Field(default_factory=dict)]


class NotedWords(Table):
    """What words of the notes say in a column that is empty, of rows of a framework if given."""

    column: str
    where: str
    value: str
    framework: str = ""


class ShapeFact(Fact):
    """Properties of models with a name, of rows that do not state theirs; of rows of a framework if
    given.
    """

    model: Annotated[str, Field(description="pattern in the name")]
    framework: str = ""
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
    extra_predictions: int = 0


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
    device: tuple[PublishedGpu, ...]
    framework: tuple[Framework, ...]
    words: tuple[NotedWords, ...]
    shape: tuple[ShapeFact, ...]
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
