"""How far predictions lie from measurements."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from coopt.instance.base import Part
from coopt.perf.mapping import Floats

CAPPED = 0.6  # a row that is further off than this is one the model has no words for, and pulls at no parameter


class Score(Part):
    """Errors of some rows; an error is predicted / measured - 1."""

    n: Annotated[int, Field(description="rows")]
    mean_abs_error: Annotated[float, Field(description="mean size of the errors")]
    median_abs_error: Annotated[float, Field(description="median size of the errors")]
    max_abs_error: Annotated[float, Field(description="largest size of an error")]
    bias: Annotated[float, Field(description="median error with its sign: below 0 is predicted too fast")]


def score(errors: Floats) -> Score | None:
    """What the errors amount to; None where there are none."""
    if not len(errors):
        return None
    sizes = np.abs(errors)
    return Score(
        n=len(errors),
        mean_abs_error=float(np.mean(sizes)),
        median_abs_error=float(np.median(sizes)),
        max_abs_error=float(np.max(sizes)),
        bias=float(np.median(errors)),
    )


def loss_of(kind: str, predicted_s: Floats, measured_s: Floats) -> float:
    """What a fit makes small: the mean capped size of log(predicted / measured), or the mean square of errors."""
    if kind == "square":
        return float(np.mean((predicted_s / measured_s - 1.0) ** 2))
    return float(np.mean(np.minimum(CAPPED, np.abs(np.log(predicted_s / measured_s)))))
