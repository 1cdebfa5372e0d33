"""Answer an instance that allows direct links: the cheapest of them, against the cheapest switches.

A bound for every mapping comes first, then mappings one by one while they may be cheaper.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

import numpy as np

from coopt.columns.feasible import feasible_mappings
from coopt.instance.schema import Instance
from coopt.instance.texts import counted
from coopt.plan.couplings import Part, one_network
from coopt.plan.parts import (
    DirectLinks,
    HbDomainChoice,
    LinkBundle,
    LinkLengths,
    LinkPhase,
    NicChoice,
)
from coopt.plan.schema import ObjectiveClaim, Plan, Rivals
from coopt.solving.arrays import run_of
from coopt.solving.direct.climbing import LinkProgress, LinkRouting, bound_links, climb
from coopt.solving.direct.grid import paces_on
from coopt.solving.direct.lengths import Programs
from coopt.solving.direct.rows import Row, every_place, worthwhile
from coopt.solving.driver import answered, bound_of, claim_of, infeasible, unknown, within_gap
from coopt.solving.runs import (
    Backend,
    Counted,
    Method,
    NamedPrograms,
    Program,
    Run,
    SearchStatistics,
    backend_of,
)
from coopt.solving.shared import shared_plan
from formulations.links import FORMULATIONS, build

NO_LINKS = (
    "no network of direct links meets the bound within its ports and the limits: needs a looser"
    " bound or limit, larger HB domains, more nics_per_gpu, or faster NICs"
)
NO_MAPPING = "no mapping meets the bound and the limits on direct links"

CROSSING = (
    "direct links do not cover {} in which pipeline stages more than one domain apart share"
    " parameters (a tied embedding, or two copies of each stage)"
)


@dataclass(frozen=True, kw_only=True)
class LinkedMapping:
    """A mapping with its links; no fewer than `min_links` can do for it."""

    row: Row
    routing: LinkRouting
    min_links: int

    @property
    def value(self) -> float:
        """The objective."""
        return self.row.place.value(self.routing.count)


@dataclass(kw_only=True, eq=False)
class DirectSearch(SearchStatistics):
    """How the search ended; `lengths` prove the bound."""

    incumbent: LinkedMapping | None
    bound: float
    interrupted: bool
    lengths: tuple[LinkLengths, ...]


def direct_plan(run: Run) -> Plan:
    """The cheaper of direct links and switches, with what is known of both."""
    instance, run.formulation = run.instance, "links"
    switched = _switched(run)
    rows = listed_rows(run)
    run.tell("build", f"{counted(len(rows), 'mapping')} may meet the bound with direct links")
    for sentence in _left_out(run):
        run.tell("build", sentence)
    result = search_links(
        rows,
        backend_of(
            instance.solver.model_copy(update={"gap": instance.solver.gap / 2}), run.backend.cancel
        ),
        gap=instance.solver.gap,
        deadline=run.deadline,
        rival=math.inf if switched.objective.value is None else switched.objective.value,
        tell=lambda message: run.tell("solve", message),
    )
    run.log.searches.append(result)
    return _plan(run, result, switched)


def _switched(run: Run) -> Plan:
    """The plan with switches."""
    network = run.instance.network
    switched_network = network.model_copy(update={"fabrics": network.switched, "panels": ()})
    return shared_plan(
        replace(
            run,
            instance=run.instance.model_copy(update={"network": switched_network}),
            formulation="network",
        )
    )


def listed_rows(run: Run) -> list[Row]:
    """The mappings that may be in time at some place."""
    instance, all_rows, gated = run.instance, list[Row](), Counter[str]()
    workload, started_s = instance.workload[0], run.elapsed_s()
    places = [place for place in every_place(instance) if place.most_links() >= 0]
    sources = {
        gpus: feasible_mappings(workload, instance.cluster.gpu, gpus)
        for gpus in {place.gpus for place in places}
    }
    for place in places:
        new_rows, dropped = worthwhile(place, sources[place.gpus])
        all_rows += new_rows
        gated += dropped
    run.log.table = Counted(gated=gated, kept=len(all_rows))
    run.log.columns_s += run.elapsed_s() - started_s
    return all_rows


def search_links(
    rows: Sequence[Row],
    backend: Backend,
    *,
    gap: float,
    deadline: float,
    rival: float,
    tell: Callable[[str], None],
) -> DirectSearch:
    """The cheapest mapping on direct links, if it is cheaper than `rival` (objective units).

    Mappings are taken by rising bound, each with its largest group of symmetries before any has a
    smaller one; those whose bound is not below the best value, within the gap, cannot win.
    """
    incumbent, value, stopped = None, rival, False
    bounds, progress_of, programs = (
        [row.least_value for row in rows],
        dict[int, LinkProgress](),
        Programs(),
    )
    # Ordered by turn, then by bound: all mappings try their largest group before any tries a
    # smaller one.
    waiting = [(0, bound, n) for n, bound in enumerate(bounds)]
    heapify(waiting)
    try:
        while waiting and time.perf_counter() < deadline:
            if any(progress.interrupted for progress in progress_of.values()):
                break
            turn, row_bound, n = heappop(waiting)
            row, progress = rows[n], progress_of.get(n)
            # The value falls while mappings wait, so that a bound is compared again when its turn
            # comes.
            if row_bound >= value * (1 - gap):
                continue
            if progress is None:
                program = programs.of(row.demands)
                if program is not None:
                    # Flow programs take time: a mapping has a bound by lengths only once its cheap
                    # bound is the lowest.
                    progress_of[n] = progress = bound_links(row.demands, program, deadline)
                    bounds[n] = max(_value_bound(row, progress), row_bound)
                    heappush(waiting, (turn, bounds[n], n))
                continue
            further = climb(
                row.demands,
                progress,
                backend,
                deadline,
                _enough(row, progress, gap),
                row.place.most_links(value),
                is_alone=all(other_bound >= value * (1 - gap) for _, other_bound, _ in waiting),
            )
            bounds[n] = max(_value_bound(row, progress), row_bound)
            # A further turn goes behind all mappings that have not had that many.
            if further:
                heappush(waiting, (turn + 1, bounds[n], n))
            if progress.incumbent is not None and row.place.value(progress.incumbent.count) < value:
                incumbent = LinkedMapping(
                    row=row, routing=progress.incumbent, min_links=int(progress.min_links)
                )
                value, count, min_links = (
                    incumbent.value,
                    progress.incumbent.count,
                    progress.min_links,
                )
                tell(
                    f"{counted(count, 'link')} between {row.place.domains} domains, at least"
                    f" {min_links:,.0f} needed"
                )
    except KeyboardInterrupt:
        stopped = True
    return DirectSearch(
        incumbent=incumbent,
        interrupted=stopped or any(progress.interrupted for progress in progress_of.values()),
        lengths=programs.plan_entries(),
        bound=min(bounds, default=math.inf),
        cuts=sum(progress.cuts for progress in progress_of.values()),
        nodes=sum(progress.nodes for progress in progress_of.values()),
        build_s=sum(progress.build_s for progress in progress_of.values()),
        handover_s=sum(progress.handover_s for progress in progress_of.values()),
        solve_s=sum(progress.solve_s for progress in progress_of.values()),
    )


def _value_bound(row: Row, progress: LinkProgress) -> float:
    """The objective is no less; inf beyond ports and limits."""
    return (
        math.inf
        if progress.min_links > row.place.most_links()
        else row.place.value(progress.min_links)
    )


def _enough(row: Row, progress: LinkProgress, gap: float) -> float:
    """The share of links that may be unproven for the whole price to be within the gap."""
    # All of the price but the links is certain, so that links may be off by a larger share than the
    # price.
    base_value, proven_value = row.place.value(0), row.place.value(progress.min_links)
    return (
        gap * proven_value / (proven_value - base_value) if proven_value > base_value else math.inf
    )


def _left_out(run: Run) -> tuple[str, ...]:
    """How many mappings direct links do not carry."""
    count = run.log.table.gated.get("crossing", 0) if run.log.table is not None else 0
    return (CROSSING.format(counted(count, "mapping")),) if count else ()


def _plan(run: Run, result: DirectSearch, switched: Plan) -> Plan:
    kind, found = run.instance.objective.minimize, result.incumbent
    bound = min(result.bound, bound_of(switched))
    value = switched.objective.value if found is None else found.value
    if value is None and bound == math.inf:
        why = NO_LINKS if run.log.table and run.log.table.kept else NO_MAPPING
        return infeasible(run, lambda: (why, *_left_out(run), *switched.explanation))
    if value is None:
        return unknown(run, _reason(run, result), bound)
    if found is None:
        (part,), shown = switched.parts, result.bound if math.isfinite(result.bound) else None
        direct = ObjectiveClaim(kind=kind, value=None, bound=shown, gap=None)
    else:
        part, direct = _part(run.instance, found), claim_of(kind, value, result.bound)
    claim = claim_of(kind, value, bound)
    rivals = Rivals(direct=direct, switched=switched.objective, lengths=result.lengths)
    reason = "optimal" if within_gap(run, claim) else _reason(run, result)
    return answered(run, reason, claim, cost=part.cost, parts=(part,), rivals=rivals)


def _reason(run: Run, result: DirectSearch) -> str:
    """Why the search ended before a proof."""
    if result.interrupted:
        return "interrupted"
    return (
        "time limit"
        if run.elapsed_s() >= run.instance.solver.time_limit_s
        else "only symmetric link layouts are searched"
    )


def _part(instance: Instance, mapping: LinkedMapping) -> Part:
    """Links, bill and workload of a plan on direct links."""
    row, place, routing = mapping.row, mapping.row.place, mapping.routing
    grid, sends = row.demands.grid, row.demands.sends
    paces = np.array(
        [
            paces_on(routing.links, phase_sends, phase_routes)
            for phase_sends, phase_routes in zip(sends, routing.routes, strict=True)
        ]
    )
    direct = DirectLinks(
        gpus=place.gpus,
        spare_gpus=place.domains * place.hb.size - place.gpus,
        hb_domain=HbDomainChoice(
            name=place.hb.name, size=place.hb.size, count=place.domains, active=place.active_gpus
        ),
        racks=place.racks,
        nic=NicChoice(name=place.nic.name, per_gpu=place.nics_per_gpu),
        optic=place.optic.name,
        panel=place.panel.name if place.panel else None,
        ports=place.ports,
        stages=grid.stages,
        replicas=grid.replicas,
        links=routing.count,
        links_bound=mapping.min_links,
        bundles=tuple(
            LinkBundle(between=(i, j), links=int(routing.links[i, j]))
            for i, j in np.argwhere(np.triu(routing.links)).tolist()
        ),
        phases=tuple(
            LinkPhase(name=name, pace_links=float(pace), routes=phase_routes)  # type: ignore[arg-type]
            for name, pace, phase_routes in zip(row.phases, paces, routing.routes, strict=True)
        ),
    )
    workload = run_of(row.pool, instance.cluster.gpu, row.reciprocals(paces), row.row)
    assert workload.iteration_time_s <= workload.bound_s * (1 + 1e-6), "flows are late"
    return one_network(place.cost(routing.count), (workload,), links=direct)


def direct_programs(run: Run) -> NamedPrograms:
    """One program for each mapping on direct links; switches are another problem.

    `links` are alike on the orbits of the smallest group that is tried, which is none on few
    domains, `averages` on those of the largest.
    """
    rows = listed_rows(run)

    def programs(name: str) -> Iterator[Program]:
        for row in rows:
            asked = row.demands
            groups = list(asked.grid.ladder(asked.ports, asked.sends))
            data = asked.on_orbits(groups[0 if name == "averages" else -1])
            bare, one = row.place.value(0), row.place.value(1)
            yield Program(model=build(data, FORMULATIONS[name]), unit=one - bare, base=bare)

    return programs


LINKS = Method(
    plan=direct_plan,
    programs=direct_programs,
    formulations=lambda _: ("links", "averages"),  # `pace` is for links that are given
)
