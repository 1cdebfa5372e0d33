"""A question: what is known of a cluster and what it has to train."""

from __future__ import annotations

from pydantic import model_validator

from coopt.instance.choices import choice_complaints
from coopt.instance.listings import alternatives
from coopt.instance.network import FabricKind as FabricKind
from coopt.instance.network import Network as Network
from coopt.instance.network import SwitchedKind as SwitchedKind
from coopt.instance.question import BillKind as BillKind
from coopt.instance.question import Cluster as Cluster
from coopt.instance.question import CostKind as CostKind
from coopt.instance.question import Limits as Limits
from coopt.instance.question import Objective as Objective
from coopt.instance.question import ObjectiveKind as ObjectiveKind
from coopt.instance.question import Problem as Problem
from coopt.instance.question import Question
from coopt.instance.question import Solver as Solver
from coopt.instance.rules.agreement import disagreements, missing_bounds
from coopt.instance.tables import html


class Instance(Question):
    """A question coopt can answer; see docs/network.md for the designs it ranges over."""

    def __repr__(self) -> str:
        gpus = alternatives(f"{count:,}" for count in self.cluster.gpus)
        named = ", ".join(workload.name for workload in self.workload)
        return f"Instance({self.name!r}, {gpus} x {self.cluster.gpu.name} for {named})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        keys = ("name", "model", "global_batch", "precision", "bound_s")
        bounds = [one.bound_s if one.bounded else "none" for one in self.workload]
        rows = [
            dict(zip(keys, (one.name, one.model.name, one.global_batch, one.precision, bound_s), strict=True))
            for one, bound_s in zip(self.workload, bounds, strict=True)
        ]
        return html(repr(self), [self.description] if self.description else [], [rows])

    @model_validator(mode="after")
    def _fits_together(self) -> Instance:
        open_lists = self.problem == "choice"
        complaints = list(missing_bounds(self) if open_lists else disagreements(self))
        if open_lists and not complaints:
            complaints = list(choice_complaints(self))
        if complaints:
            raise ValueError("\n".join(complaints))
        return self

    @model_validator(mode="after")
    def _hosts_stand_with_domains(self) -> Instance:
        """Hosts that count are part of the price and power of HB domains, for all that reads them."""
        if "host" in self.objective.include:
            domains = tuple(domain.with_hosts() for domain in self.network.hb_domains)
            self.__dict__["network"] = self.network.model_copy(update={"hb_domains": domains})
        return self
