"""What a calibration found: values, and errors on rows that were used and on rows that were not."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from coopt.instance.base import Part
from coopt.validation.scores import Score


class Parameter(Part):
    """A parameter before and after."""

    name: str
    before: float
    after: float


class Fit(Part):
    """One set of fitted parameters with its errors on rows that were used and on rows that were not."""

    name: str
    generation: str
    precision: str
    software: str
    parameters: tuple[Parameter, ...]
    rows: tuple[str, ...]
    groups: tuple[str, ...]
    before: Annotated[Score, Field(description="the rows with the catalog's values")]
    fitted: Annotated[Score, Field(description="the rows with the fitted values")]
    held_out: Annotated[Score | None, Field(description="rows of this generation and precision no fit used")]
    leave_one_group_out: Annotated[Score | None, Field(description="each group by a fit without it")]


class Kind(Part):
    """The rows that were used and have one kind of model."""

    name: str
    fitted: Score
    leave_one_group_out: Score | None


class Calibration(Part):
    """All fits, in the order they were made."""

    fits: tuple[Fit, ...]
    before: Annotated[Score, Field(description="all rows that were used, with the catalog's values")]
    fitted: Annotated[Score, Field(description="the same rows with the fitted values")]
    leave_one_group_out: Annotated[
        Score | None, Field(description="the same rows, each group by fits without it; none where nothing can say")
    ]
    architecture: Annotated[tuple[Kind, ...], Field(description="the same rows: dense models, mixtures of experts")]
    left_out: Annotated[tuple[str, ...], Field(description="sets without enough rows")]
