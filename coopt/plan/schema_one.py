"""Schema 1 of plans: its sections as views of parts and couplings, and old plans, which are read
for ever.

A view is empty for a question that it does not belong to.

They show what one kind of question has. What combines several, such as islands at sites that grow,
is in parts and couplings alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from coopt.instance.hardware import IDLE, SPARE
from coopt.plan.claims import Answer
from coopt.plan.couplings import (
    NETWORK,
    CorePlan,
    Couplings,
    Exchange,
    Myopic,
    Outlooks,
    Part,
    PhaseSpending,
    Ring,
    SharedCore,
    SitePower,
    Stored,
    Survived,
    Turn,
    WanPlan,
    at_site,
    one_network,
    one_networks_losses,
    phase_name,
)
from coopt.plan.parts import Cost, Design, DirectLinks, Item, Record, WorkloadPlan

OLD = "coopt-plan/1"


class Island(Record):
    """What one workload has to itself, and what that draws, as far as `include` counts it (W)."""

    workload: str
    design: Design
    power_w: float


class PhasePlan(Record):
    """One phase: the whole network in place, what is bought at its prices, and what runs.

    `bought` ends with the labour for uplinks added to switches of earlier phases. `stored` is
    bought and not in place yet. `power_w` is that of everything in place, which runs for `years`.
    """

    year: float
    years: float
    design: Design
    bought: tuple[Item, ...]
    stored: tuple[Stored, ...]
    capex_usd: float
    power_w: float
    energy_usd: float
    work_usd: float = 0.0
    workloads: tuple[WorkloadPlan, ...]


class Standing(Record):
    """How robust a plan is.

    With the aim "worst-case" the bill and the objective are at the worst prices, and `list_value`
    is the objective at those of the instance. With "regret" the objective is the largest excess
    over the best plan, `turns` hold them all, and the bill is at the prices of the instance.
    """

    aim: Literal["worst-case", "regret"]
    efficiency: tuple[float, float]
    survived: tuple[Survived, ...]
    list_value: float
    turns: tuple[Turn, ...] = ()


class SitePlan(Record):
    """One site: its shares of GPUs and batch, what is built there, and how it trains its part of
    each batch.

    `cost.tco_usd` is at the site's own price of electricity and PUE; `facility_w` is IT power times
    PUE, with its half of the wide-area channels.
    """

    name: str
    shares: int
    design: Design
    cost: Cost
    facility_w: float
    facility_limit_w: float
    workloads: tuple[WorkloadPlan, ...]


class Together(Record):
    """Sites in the order of the ring that adds up their gradients."""

    shares: int
    sites: tuple[SitePlan, ...]
    wan: tuple[WanPlan, ...]
    exchanges: tuple[Exchange, ...]


def _is_island(part: Part) -> bool:
    return part.design is not None and [run.name for run in part.workloads] == [part.name]


class HasParts(Protocol):
    """What consists of parts and couplings."""

    @property
    def parts(self) -> tuple[Part, ...]: ...
    @property
    def couplings(self) -> Couplings: ...


class Sections:
    """The sections that a plan had in schema 1, of its parts and couplings."""

    @property
    def islands(self: HasParts) -> tuple[Island, ...]:
        """What each workload of a partition has to itself."""
        tied = self.couplings.ring or self.couplings.growth
        if tied or not self.parts or not all(_is_island(part) for part in self.parts):
            return ()
        if len(self.parts) == 1 and self.parts[0].name == NETWORK and not self.couplings.cores:
            return ()
        return tuple(
            Island(workload=part.workloads[0].name, design=part.design, power_w=part.power_w)
            for part in self.parts
            if part.design is not None
        )

    @property
    def core(self: HasParts) -> CorePlan | None:
        """The core that all islands share."""
        cores = self.couplings.cores
        return (
            cores[0].core
            if len(cores) == 1 and cores[0].site is None and cores[0].phase is None
            else None
        )

    @property
    def together(self: HasParts) -> Together | None:
        """Sites that train every batch together, in the order of their ring."""
        ring, powers = self.couplings.ring, self.couplings.sites
        site_names = tuple(part.site for part in self.parts)
        if (
            ring is None
            or site_names != ring.sites
            or tuple(site.site for site in powers) != site_names
        ):
            return None
        if len(ring.site_shares) != len(site_names):
            return None
        rows = zip(self.parts, powers, ring.site_shares, strict=True)
        return Together(
            shares=ring.shares,
            sites=tuple(
                SitePlan(
                    name=part.name,
                    shares=shares,
                    design=part.design,
                    cost=part.cost,
                    facility_w=power.facility_w,
                    facility_limit_w=power.facility_limit_w,
                    workloads=part.workloads,
                )
                for part, power, shares in rows
                if part.design is not None and part.cost is not None
            ),
            wan=ring.wan,
            exchanges=ring.exchanges,
        )

    @property
    def robust(self: HasParts) -> Standing | None:
        """What one network stands."""
        outlooks = self.couplings.outlooks
        if outlooks is None or len(self.parts) != 1:
            return None
        losses = [
            loss.survived for loss in self.couplings.losses if loss.part == self.parts[0].name
        ]
        return Standing(
            aim=outlooks.aim,
            efficiency=outlooks.efficiency,
            survived=losses[0] if losses else (),
            list_value=outlooks.list_value,
            turns=outlooks.turns,
        )

    @property
    def phases(self: HasParts) -> tuple[PhasePlan, ...]:
        """How one network grows."""
        growth = self.couplings.growth
        if [part.phase for part in self.parts] != [spending.year for spending in growth]:
            return ()
        return tuple(
            PhasePlan(
                year=spending.year,
                years=spending.years,
                design=part.design,
                bought=spending.bought,
                stored=spending.stored,
                capex_usd=spending.capex_usd,
                power_w=spending.power_w,
                energy_usd=spending.energy_usd,
                work_usd=spending.work_usd,
                workloads=part.workloads,
            )
            for part, spending in zip(self.parts, growth, strict=True)
            if part.design is not None
        )

    @property
    def direct(self: HasParts) -> DirectLinks | None:
        """The direct links between domains."""
        return self.parts[0].links if len(self.parts) == 1 else None

    @property
    def myopic(self: HasParts) -> Myopic | None:
        """What planning phase by phase would have built."""
        return self.couplings.myopic


class OldPlan(Answer):
    """A document of schema 1.

    In place of one design a partition has an island for each workload, and a `core` where they
    share one; a plan for several sites has them in `together`, and one on direct links has these in
    `direct`. With `phases`, `design` and `workloads` are those of the last phase and `cost` holds
    what all of them buy.
    """

    schema_: Annotated[Literal["coopt-plan/1"], Field(alias="schema")] = "coopt-plan/1"
    islands: tuple[Island, ...] = ()
    core: CorePlan | None = None
    together: Together | None = None
    robust: Standing | None = None
    direct: DirectLinks | None = None
    phases: tuple[PhasePlan, ...] = ()
    myopic: Myopic | None = None


BILLS = frozenset(
    {
        "cost",
        "items",
        "parts",
        "couplings",
        "growth",
        "bought",
        "phases",
        "together",
        "sites",
        "alternatives",
    }
    | {"points", "best"}
)
"""The keys under which documents hold lines of bills."""


def with_named_lines(content: Any, years: Iterable[float] = ()) -> Any:
    """A document whose lines of bills say what they are of, and not in words alone, as those before
    2.18 do.

    Lines of a bill of all phases end with one of their `years`.
    """
    if isinstance(content, list | tuple):
        return [with_named_lines(entry, years) for entry in content]
    if not isinstance(content, Mapping):
        return content
    if isinstance(text := content.get("item"), str):
        return (
            content
            if "name" in content
            else {**content, **_line_fields(text, content.get("kind"), years)}
        )
    # only lines of the bill of all phases say their year: those in "cost", beside the phases
    dates = {"cost": [*_years(content)], "items": years}
    return {
        key: with_named_lines(entry, dates.get(key, ())) if key in BILLS else entry
        for key, entry in content.items()
    }


def _years(content: Mapping[str, Any]) -> Iterator[float]:
    """The years of the phases in which what a table holds grows."""
    couplings = content.get("couplings")
    growth = content.get("phases") or (
        couplings.get("growth") if isinstance(couplings, Mapping) else None
    )
    for spending in growth if isinstance(growth, list | tuple) else ():
        year = spending.get("year") if isinstance(spending, Mapping) else None
        if isinstance(year, int | float):
            yield year


def _line_fields(text: str, kind: object, years: Iterable[float]) -> dict[str, Any]:
    """What a line says in words."""
    year = next((year for year in years if text.endswith(f", {year:.10g}")), None)
    undated = text if year is None else text.removesuffix(f", {year:.10g}")
    product = undated.removesuffix(SPARE)
    idle = kind == "hb" and product.endswith(IDLE)
    return {
        "name": product.removesuffix(IDLE) if idle else product,
        "idle": idle,
        "spare": product != undated,
        "year": year,
    }


def is_old(content: Any) -> bool:
    """Whether something is a table of schema 1; that is also what a table means that names none and
    has no parts.
    """
    if not isinstance(content, Mapping):
        return False
    schema = content.get("schema", content.get("schema_"))
    return schema == OLD or (schema is None and "parts" not in content)


def renewed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The table of schema 2 that says the same.

    Raises
    ------
    ValueError
        When the table is no plan of schema 1, and when its sections contradict each other.
    """
    fields = {key: value for key, value in content.items() if key not in ("parts", "couplings")}
    old = OldPlan.model_validate(fields)
    contradictions = list(_contradictions(old))
    if contradictions:
        raise ValueError("\n".join(contradictions))
    parts = tuple(_parts(old))
    answer: dict[str, Any] = {name: getattr(old, name) for name in Answer.model_fields}
    if len(parts) == 1:
        answer |= {"design": parts[0].design, "workloads": parts[0].workloads}
    elif parts:
        answer |= {"design": None, "workloads": ()}
    return {**answer, "schema": "coopt-plan/2", "parts": parts, "couplings": _couplings(old)}


def _contradictions(old: OldPlan) -> Iterator[str]:
    """What the new form cannot say twice, where it is said differently."""
    sections = [name for name in ("islands", "together", "direct", "phases") if getattr(old, name)]
    if len(sections) > 1 or (sections and old.robust is not None):
        names = ", ".join([*sections, *(["robust"] if old.robust is not None else [])])
        yield f"the plan holds {names}, needs the sections of one kind of question"
    if old.phases and (old.design, old.workloads) != (
        old.phases[-1].design,
        old.phases[-1].workloads,
    ):
        yield "design and workloads are not those of the last phase, needs the same in both"
    if old.islands and [run.name for run in old.workloads] != [
        island.workload for island in old.islands
    ]:
        yield "workloads are not those of the islands, needs one for each island in the same order"
    if (old.islands or old.together or old.direct) and old.design is not None:
        yield f"the plan holds design beside {sections[0]}, needs one of the two"
    if old.together and old.workloads:
        yield "the plan holds workloads beside together, needs those of the sites alone"


def _parts(old: OldPlan) -> Iterator[Part]:
    """The networks; islands and phases have no bills of their own in schema 1."""
    if old.phases:
        for phase in old.phases:
            name, power_w = phase_name(phase.year), phase.power_w
            yield Part(
                name=name,
                phase=phase.year,
                design=phase.design,
                workloads=phase.workloads,
                power_w=power_w,
            )
    elif old.together is not None:
        for site in old.together.sites:
            yield at_site(site.name, site.design, site.workloads, site.cost)
    elif old.islands:
        for island, run in zip(old.islands, old.workloads, strict=True):
            yield Part(
                name=island.workload, design=island.design, workloads=(run,), power_w=island.power_w
            )
    elif old.cost is not None:
        yield one_network(old.cost, old.workloads, design=old.design, links=old.direct)


def _couplings(old: OldPlan) -> Couplings:
    ring, robust = old.together, old.robust
    return Couplings(
        sites=() if ring is None else tuple(_fed(ring)),
        ring=None if ring is None else _ring(ring),
        growth=tuple(_spending(phase) for phase in old.phases),
        cores=() if old.core is None else (SharedCore(core=old.core),),
        outlooks=None if robust is None else _outlooks(robust),
        losses=one_networks_losses(() if robust is None else robust.survived),
        myopic=old.myopic,
    )


def _fed(ring: Together) -> Iterator[SitePower]:
    for site in ring.sites:
        yield SitePower(
            site=site.name, facility_w=site.facility_w, facility_limit_w=site.facility_limit_w
        )


def _ring(ring: Together) -> Ring:
    return Ring(
        shares=ring.shares,
        sites=tuple(site.name for site in ring.sites),
        site_shares=tuple(site.shares for site in ring.sites),
        wan=ring.wan,
        exchanges=ring.exchanges,
    )


def _spending(phase: PhasePlan) -> PhaseSpending:
    return PhaseSpending(**{name: getattr(phase, name) for name in PhaseSpending.model_fields})


def _outlooks(robust: Standing) -> Outlooks:
    return Outlooks(**{name: getattr(robust, name) for name in Outlooks.model_fields})
