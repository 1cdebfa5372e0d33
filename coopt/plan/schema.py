"""The plan: what to build, its cost, training times, and proven bounds. Data only.

The plan also provides its contents as rows for data frames and plots. `solving` fills it,
`verifier` checks it, `report` presents it.
"""

import math
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from coopt.instance.errors import InstanceError
from coopt.instance.numerics import EQUAL
from coopt.instance.tables import Row, frame_of, html
from coopt.plan.claims import Alternative as Alternative
from coopt.plan.claims import AlternativesStop as AlternativesStop
from coopt.plan.claims import Answer
from coopt.plan.claims import InstanceId as InstanceId
from coopt.plan.claims import ObjectiveClaim as ObjectiveClaim
from coopt.plan.claims import Overrides as Overrides
from coopt.plan.claims import Rivals as Rivals
from coopt.plan.couplings import Couplings as Couplings
from coopt.plan.couplings import Part as Part
from coopt.plan.parts import Cost as Cost
from coopt.plan.parts import Design as Design
from coopt.plan.parts import Fabric as Fabric
from coopt.plan.parts import HbDomainChoice as HbDomainChoice
from coopt.plan.parts import Item as Item
from coopt.plan.parts import MappingChoice as MappingChoice
from coopt.plan.parts import NicChoice as NicChoice
from coopt.plan.parts import Record as Record
from coopt.plan.parts import SwitchChoice as SwitchChoice
from coopt.plan.parts import Tier as Tier
from coopt.plan.parts import WorkloadPlan as WorkloadPlan

VALUES = {
    **{"capex": (",.0f", "USD"), "power": (",.0f", "W"), "tco": (",.0f", "USD")},
    **{"time": (".4g", "s"), "usd_per_token": (".4g", "USD"), "carbon": (",.0f", "kg")},
}
"""How the value of each objective is written, and its unit."""


SHOWN = (
    "part",
    "workload",
    "gpus",
    "tp",
    "pp",
    "dp",
    "iteration_time_s",
    "bound_s",
    "slack",
    "mfu",
)
"""Columns of the mappings that a notebook shows."""


class Plan(Answer):
    """The answer to an instance.

    `parts` are the networks to build and `couplings` what connects them; `cost` is the total bill.
    All are empty if there is no plan; `explanation` then states the reason in sentences. `design`
    and `workloads` repeat those of a single part, and are empty if there are several. `overrides`
    are the objective and gap of the run if they differ from the instance. `tp_across` states that
    TP groups may extend over several HB domains where workloads leave `allow_tp_across` open, since
    no plan with TP inside domains meets all bounds and limits. `rivals` compares direct links with
    switches if an instance allows both. `alternatives` are the requested runners-up, best first;
    `alternatives_stop` states why there are no more.
    """

    schema_: Annotated[Literal["coopt-plan/2"], Field(alias="schema")] = "coopt-plan/2"
    parts: tuple[Part, ...] = ()
    couplings: Couplings = Couplings()

    @model_validator(mode="before")
    @classmethod
    def _of_this_schema(cls, content: Any) -> Any:
        # report nothing else for another schema
        known = cls.model_fields["schema_"].default
        if isinstance(content, Mapping) and content.get("schema", known) != known:
            raise ValueError(f"schema = {content['schema']!r}: needs {known!r}")
        return content

    def __repr__(self) -> str:
        claim, count = self.objective, len(self.parts)
        form, unit = VALUES[claim.kind]
        value = "" if claim.value is None else f"{claim.kind} {claim.value:{form}} {unit}, "
        return (
            f"Plan({self.instance.name!r}, {self.status}, {value}{count}"
            f" part{'' if count == 1 else 's'})"
        )

    __str__ = __repr__

    def _repr_html_(self) -> str:
        runs = [{key: row[key] for key in SHOWN} for row in mapping_rows(self.parts)]
        return html(repr(self), self.explanation, [list(bill_rows(self.cost)), runs])

    def to_frame(self, table: str = "bill") -> Any:
        """Return a table of the plan as a data frame: "bill", "mappings" or "breakdown" (see
        `coopt.instance.tables.frame`).
        """
        tables = {
            "bill": lambda: bill_rows(self.cost),
            "mappings": lambda: mapping_rows(self.parts),
            "breakdown": lambda: breakdown_rows(self.parts),
        }
        return frame_of(tables, table)

    def plot(self) -> Any:
        """Return a matplotlib figure of the cost by kind and of the time by cause."""
        check_matplotlib()
        from coopt.plan.plots import plan_plot

        return plan_plot(bill_rows(self.cost), breakdown_rows(self.parts))

    @property
    def runs(self) -> tuple[WorkloadPlan, ...]:
        """Results of every workload, part by part."""
        return tuple(run for part in self.parts for run in part.workloads)

    @property
    def at_worst_prices(self) -> bool | None:
        """Whether the bill is at prices worse than those listed; None if the objective is not a
        price.
        """
        list_value, claim = self.couplings.list_value, self.objective
        if list_value is None or claim.value is None:
            return False
        if VALUES[claim.kind][1] != "USD":
            return None
        return not math.isclose(claim.value, list_value, rel_tol=EQUAL)


def bill_rows(cost: Cost | None) -> Iterator[Row]:
    """Yield the lines of the total bill."""
    if cost is not None:
        yield from (item.model_dump() for item in cost.items)


def mapping_rows(parts: tuple[Part, ...]) -> Iterator[Row]:
    """Yield every workload in every part: its mapping, times (s), memory (GiB) and utilisation."""
    for part in parts:
        for run in part.workloads:
            results = run.model_dump(
                exclude={
                    "mapping",
                    "placement",
                    "breakdown_s",
                    "knobs",
                    "collectives",
                    "routes",
                    "name",
                    "gpus",
                }
            )
            whose = {"part": part.name, "workload": run.name, "gpus": run.gpus}
            yield {**whose, **run.mapping.model_dump(), **results, "slack": run.slack}


def breakdown_rows(parts: tuple[Part, ...]) -> Iterator[Row]:
    """Yield the breakdown of the iteration time by cause (s)."""
    for part in parts:
        for run in part.workloads:
            for component, spent_s in run.breakdown_s.items():
                yield {
                    "part": part.name,
                    "workload": run.name,
                    "component": component,
                    "time_s": spent_s,
                }


def check_matplotlib() -> None:
    """Check that matplotlib is installed.

    Raises
    ------
    InstanceError
        If it is not.
    """
    if find_spec("matplotlib") is None:
        raise InstanceError(
            "plot: matplotlib is not installed, needs `pip install 'coopt[jupyter]'`"
        )
