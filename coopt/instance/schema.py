"""A question: what is known of a cluster and what it has to train."""

from __future__ import annotations

from pydantic import model_validator

from coopt.instance.question import Cluster as Cluster
from coopt.instance.question import CostKind as CostKind
from coopt.instance.question import FabricKind as FabricKind
from coopt.instance.question import Limits as Limits
from coopt.instance.question import Network as Network
from coopt.instance.question import Objective as Objective
from coopt.instance.question import ObjectiveKind as ObjectiveKind
from coopt.instance.question import Problem as Problem
from coopt.instance.question import Question
from coopt.instance.question import Solver as Solver
from coopt.instance.question import SwitchedKind as SwitchedKind
from coopt.instance.rules.agreement import disagreements


class Instance(Question):
    """A question coopt can answer; see docs/network.md for the designs it ranges over."""

    @model_validator(mode="after")
    def _fits_together(self) -> Instance:
        complaints = list(disagreements(self))
        if complaints:
            raise ValueError("\n".join(complaints))
        return self
