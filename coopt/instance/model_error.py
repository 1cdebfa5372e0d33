"""How far predicted iteration times are off on published runs that no fit has seen."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from coopt.instance.base import Count, Entry, Fraction


class ModelError(Entry):
    """Errors of predicted times on runs of one kind of hardware and precision, or of one kind of model."""

    left_out: Annotated[
        Fraction, Field(description="mean size of the error where the source of a run is left out of the fit")
    ]
    runs: Annotated[Count, Field(description="published runs")]
