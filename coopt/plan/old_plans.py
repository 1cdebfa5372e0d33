"""Plans of schema 1, which are read for ever: one design, or a section for every kind of question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from coopt.plan.claims import Answer
from coopt.plan.couplings import (
    CorePlan,
    Couplings,
    Myopic,
    Outlooks,
    Part,
    PhaseSpending,
    Ring,
    SharedCore,
    SitePower,
    at_site,
    one_network,
    one_networks_losses,
    phase_name,
)
from coopt.plan.direct_links import DirectLinks
from coopt.plan.views import Island, PhasePlan, Standing, Together

OLD = "coopt-plan/1"


class OldPlan(Answer):
    """A document of schema 1.

    In place of one design a partition has an island for each workload, and a `core` where they share one; a plan for
    several sites has them in `together`, and one on direct links has these in `direct`. With `phases`, `design` and
    `workloads` are those of the last phase and `cost` holds what all of them buy.
    """

    schema_: Annotated[Literal["coopt-plan/1"], Field(alias="schema")] = "coopt-plan/1"
    islands: tuple[Island, ...] = ()
    core: CorePlan | None = None
    together: Together | None = None
    robust: Standing | None = None
    direct: DirectLinks | None = None
    phases: tuple[PhasePlan, ...] = ()
    myopic: Myopic | None = None


def is_old(content: Any) -> bool:
    """Whether something is a table of schema 1; that is also what a table means that names none and has no parts."""
    if not isinstance(content, Mapping):
        return False
    named = content.get("schema", content.get("schema_"))
    return named == OLD or (named is None and "parts" not in content)


def renewed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The table of schema 2 that says the same.

    Raises
    ------
    ValueError
        When the table is no plan of schema 1, and when its sections contradict each other.
    """
    known = {key: value for key, value in content.items() if key not in ("parts", "couplings")}
    old = OldPlan.model_validate(known)
    contradictions = list(_contradictions(old))
    if contradictions:
        raise ValueError("\n".join(contradictions))
    parts = tuple(_parts(old))
    same: dict[str, Any] = {name: getattr(old, name) for name in Answer.model_fields}
    if len(parts) == 1:
        same |= {"design": parts[0].design, "workloads": parts[0].workloads}
    elif parts:
        same |= {"design": None, "workloads": ()}
    return {**same, "schema": "coopt-plan/2", "parts": parts, "couplings": _couplings(old)}


def _contradictions(old: OldPlan) -> Iterator[str]:
    """What the new form cannot say twice, where it is said differently."""
    given = [name for name in ("islands", "together", "direct", "phases") if getattr(old, name)]
    if len(given) > 1 or (given and old.robust is not None):
        named = ", ".join([*given, *(["robust"] if old.robust is not None else [])])
        yield f"the plan holds {named}, needs the sections of one kind of question"
    if old.phases and (old.design, old.workloads) != (old.phases[-1].design, old.phases[-1].workloads):
        yield "design and workloads are not those of the last phase, needs the same in both"
    if old.islands and [run.name for run in old.workloads] != [island.workload for island in old.islands]:
        yield "workloads are not those of the islands, needs one for each island in the same order"
    if (old.islands or old.together or old.direct) and old.design is not None:
        yield f"the plan holds design beside {given[0]}, needs one of the two"
    if old.together and old.workloads:
        yield "the plan holds workloads beside together, needs those of the sites alone"


def _parts(old: OldPlan) -> Iterator[Part]:
    """The networks; islands and phases have no bills of their own in schema 1."""
    if old.phases:
        for phase in old.phases:
            name, power_w = phase_name(phase.year), phase.power_w
            yield Part(name=name, phase=phase.year, design=phase.design, workloads=phase.workloads, power_w=power_w)
    elif old.together is not None:
        for site in old.together.sites:
            yield at_site(site.name, site.design, site.workloads, site.cost)
    elif old.islands:
        for island, run in zip(old.islands, old.workloads, strict=True):
            yield Part(name=island.workload, design=island.design, workloads=(run,), power_w=island.power_w)
    elif old.cost is not None:
        yield one_network(old.cost, old.workloads, design=old.design, links=old.direct)


def _couplings(old: OldPlan) -> Couplings:
    together, robust = old.together, old.robust
    return Couplings(
        sites=() if together is None else tuple(_fed(together)),
        ring=None if together is None else _ring(together),
        growth=tuple(_spending(phase) for phase in old.phases),
        cores=() if old.core is None else (SharedCore(core=old.core),),
        outlooks=None if robust is None else _outlooks(robust),
        losses=one_networks_losses(() if robust is None else robust.survived),
        myopic=old.myopic,
    )


def _fed(together: Together) -> Iterator[SitePower]:
    for site in together.sites:
        yield SitePower(site=site.name, facility_w=site.facility_w, facility_limit_w=site.facility_limit_w)


def _ring(together: Together) -> Ring:
    return Ring(
        shares=together.shares,
        sites=tuple(site.name for site in together.sites),
        site_shares=tuple(site.shares for site in together.sites),
        wan=together.wan,
        exchanges=together.exchanges,
    )


def _spending(phase: PhasePlan) -> PhaseSpending:
    return PhaseSpending(**{name: getattr(phase, name) for name in PhaseSpending.model_fields})


def _outlooks(robust: Standing) -> Outlooks:
    return Outlooks(**{name: getattr(robust, name) for name in Outlooks.model_fields})
