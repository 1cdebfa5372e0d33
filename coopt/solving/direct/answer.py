"""Answer an instance that allows direct links: the cheapest of them, against the cheapest switches.

A bound for every mapping comes first, then mappings one by one while they may be cheaper.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

import numpy as np

from coopt.columns.pools import fitting
from coopt.instance.schema import Instance
from coopt.perf.mapping import Ints
from coopt.plan.couplings import one_network
from coopt.plan.parts import DirectLinks, LinkBundle, LinkLengths, LinkPhase
from coopt.plan.schema import HbDomainChoice, NicChoice, ObjectiveClaim, Part, Plan, Rivals
from coopt.solving.arrays import run_of
from coopt.solving.backend import Backend, backend_of
from coopt.solving.direct.climbing import Linked, TriedLinks, bound_links, climb
from coopt.solving.direct.grid import paces_on
from coopt.solving.direct.lengths import Programs
from coopt.solving.direct.rows import Row, every_place, worthwhile
from coopt.solving.outcome import answered, claim_of, infeasible, unknown, within_gap
from coopt.solving.runs import Counted, Effort, Run
from coopt.solving.shared import shared_plan

NO_LINKS = (
    "no direct links meet the bound, within ports and limits: needs a looser bound, larger HB domains, more "
    "nics_per_gpu, or faster NICs"
)

CROSSING = (
    "{} mappings were left out on direct links: stages of theirs hold the same parameters, a tied embedding or two "
    "copies, and are more than one domain apart"
)


@dataclass(frozen=True, kw_only=True)
class LinkedMapping:
    """A mapping with its links; no fewer than `least_links` can do for it."""

    row: Row
    linked: Linked
    least_links: int

    @property
    def value(self) -> float:
        """The objective."""
        return self.row.place.value(self.linked.count)


@dataclass(frozen=True, kw_only=True)
class DirectSearch(Effort):
    """How the search ended; `searched` of the mappings needed links, and `lengths` prove the bound."""

    found: LinkedMapping | None
    interrupted: bool
    searched: int
    lengths: tuple[LinkLengths, ...]


def direct_plan(run: Run) -> Plan:
    """The cheaper of direct links and switches, with what is known of both."""
    instance, run.formulation = run.instance, "links"
    switched = _switched(run)
    found = listed_rows(run)
    run.tell("build", f"{len(found):,} mappings may be in time on direct links")
    for sentence in _left_out(run):
        run.tell("build", sentence)
    rival = math.inf if switched.objective.value is None else switched.objective.value
    result = search_links(
        found,
        backend_of(instance.solver.model_copy(update={"gap": instance.solver.gap / 2}), run.backend.cancel),
        gap=instance.solver.gap,
        deadline=run.deadline,
        rival=rival,
        tell=lambda message: run.tell("solve", message),
    )
    run.log.searches.append(result)
    return _plan(run, result, switched)


def _switched(run: Run) -> Plan:
    """The plan with switches."""
    network = run.instance.network
    alone = network.model_copy(update={"fabrics": network.switched, "panels": ()})
    return shared_plan(replace(run, instance=run.instance.model_copy(update={"network": alone}), formulation=""))


def listed_rows(run: Run) -> list[Row]:
    """The mappings that may be in time at some place."""
    instance, found, gated = run.instance, list[Row](), Counter[str]()
    workload, before = instance.workload[0], run.elapsed_s()
    sources = {gpus: fitting(workload, instance.cluster.gpu, gpus) for gpus in instance.cluster.gpus}
    for where in every_place(instance):
        if where.most_links() >= 0:
            rows, dropped = worthwhile(where, sources[where.gpus])
            found += rows
            gated += dropped
    run.log.table = Counted(gated=gated, kept=len(found))
    run.log.columns_s += run.elapsed_s() - before
    return found


def search_links(
    rows: Sequence[Row], backend: Backend, *, gap: float, deadline: float, rival: float, tell: Callable[[str], None]
) -> DirectSearch:
    """The cheapest mapping on direct links, if it is cheaper than `rival` (objective units).

    Mappings are taken by rising bound, each with its largest group of symmetries before any has a smaller one; those
    whose bound is not below the best value, within the gap, cannot win.
    """
    found, value, stopped = None, rival, False
    bounds, known, programs = [row.least_value for row in rows], dict[int, TriedLinks](), Programs()
    waiting = [(0, bound, n) for n, bound in enumerate(bounds)]
    heapify(waiting)
    try:
        while waiting and not _over(known.values(), deadline):
            turn, low, n = heappop(waiting)
            row, tried = rows[n], known.get(n)
            if low >= value * (1 - gap):
                continue
            if tried is None:
                program = programs.of(row.demands)
                if program is not None:
                    known[n] = tried = bound_links(row.demands, program, deadline)
                    bounds[n] = max(_low(row, tried), low)
                    heappush(waiting, (turn, bounds[n], n))
                continue
            most, alone = row.place.most_links(value), all(other >= value * (1 - gap) for _, other, _ in waiting)
            further = climb(row.demands, tried, backend, deadline, _enough(row, tried, gap), most, alone=alone)
            bounds[n] = max(_low(row, tried), low)
            if further:
                heappush(waiting, (turn + 1, bounds[n], n))
            if tried.found is not None and row.place.value(tried.found.count) < value:
                found = LinkedMapping(row=row, linked=tried.found, least_links=int(tried.least))
                value, count, least = found.value, tried.found.count, tried.least
                tell(f"{count:,} links between {row.place.domains} domains, at least {least:,.0f} needed")
    except KeyboardInterrupt:
        stopped = True
    bound = min(bounds, default=math.inf)
    return _ended(found, bound, known.values(), programs.written(), interrupted=stopped)


def _ended(
    found: LinkedMapping | None,
    bound: float,
    efforts: Collection[TriedLinks],
    lengths: tuple[LinkLengths, ...],
    *,
    interrupted: bool,
) -> DirectSearch:
    """A search that ended, with what all mappings took together."""
    return DirectSearch(
        found=found,
        interrupted=interrupted or any(tried.interrupted for tried in efforts),
        searched=len(efforts),
        lengths=lengths,
        bound=bound,
        cuts=sum(tried.cuts for tried in efforts),
        nodes=sum(tried.nodes for tried in efforts),
        build_s=sum(tried.build_s for tried in efforts),
        handover_s=sum(tried.handover_s for tried in efforts),
        solve_s=sum(tried.solve_s for tried in efforts),
    )


def _over(efforts: Iterable[TriedLinks], deadline: float) -> bool:
    return time.perf_counter() >= deadline or any(tried.interrupted for tried in efforts)


def _low(row: Row, tried: TriedLinks) -> float:
    """The objective is no less; inf beyond ports and limits."""
    return math.inf if tried.least > row.place.most_links() else row.place.value(tried.least)


def _enough(row: Row, tried: TriedLinks, gap: float) -> float:
    """The share of links that may be unproven for the whole price to be within the gap."""
    nothing, some = row.place.value(0), row.place.value(tried.least)
    return gap * some / (some - nothing) if some > nothing else math.inf


def _left_out(run: Run) -> tuple[str, ...]:
    """How many mappings direct links do not carry."""
    count = run.log.table.gated.get("crossing", 0) if run.log.table is not None else 0
    return (CROSSING.format(f"{count:,}"),) if count else ()


def _plan(run: Run, result: DirectSearch, switched: Plan) -> Plan:
    instance, kind = run.instance, run.instance.objective.minimize
    other = switched.objective
    no_claim = ObjectiveClaim(kind=kind, value=None, bound=None, gap=None)
    low = min(result.bound, _bound(switched))
    if result.found is not None:
        claim = claim_of(kind, result.found.value, low)
        rivals = Rivals(direct=claim_of(kind, result.found.value, result.bound), switched=other, lengths=result.lengths)
        part = _part(instance, result.found)
    elif other.value is not None:
        claim = claim_of(kind, other.value, low)
        bound = result.bound if math.isfinite(result.bound) else None
        rivals = Rivals(direct=no_claim.model_copy(update={"bound": bound}), switched=other, lengths=result.lengths)
        (part,) = switched.parts
    elif low == math.inf:
        return infeasible(run, lambda: (NO_LINKS, *_left_out(run), *switched.explanation))
    else:
        return unknown(run, _reason(run, result), low)
    reason = "optimal" if within_gap(run, claim) else _reason(run, result)
    assert part.cost is not None
    return answered(run, reason, claim, cost=part.cost, parts=(part,), rivals=rivals)


def _bound(switched: Plan) -> float:
    """Below every cluster with switches; inf where there is none."""
    if switched.status == "infeasible":
        return math.inf
    bound = switched.objective.bound
    return -math.inf if bound is None else bound


def _reason(run: Run, result: DirectSearch) -> str:
    """Why the search ended before a proof."""
    if result.interrupted:
        return "interrupted"
    return "time limit" if run.elapsed_s() >= run.instance.solver.time_limit_s else "no symmetry left to try"


def _part(instance: Instance, found: LinkedMapping) -> Part:
    """Links, bill and workload of a plan on direct links."""
    row, where, linked = found.row, found.row.place, found.linked
    grid, sends = row.demands.grid, row.demands.sends
    paces = np.array([paces_on(linked.links, sent, each) for sent, each in zip(sends, linked.routes, strict=True)])
    direct = DirectLinks(
        gpus=where.gpus,
        spare_gpus=where.domains * where.hb.size - where.gpus,
        hb_domain=HbDomainChoice(name=where.hb.name, size=where.hb.size, count=where.domains, active=where.active),
        racks=where.racks,
        nic=NicChoice(name=where.nic.name, per_gpu=where.nics_per_gpu),
        optic=where.optic.name,
        panel=where.panel.name if where.panel else None,
        ports=where.ports,
        stages=grid.stages,
        replicas=grid.replicas,
        links=linked.count,
        links_bound=found.least_links,
        bundles=_bundles(linked.links),
        phases=tuple(
            LinkPhase(name=name, pace_links=float(pace), routes=each)  # type: ignore[arg-type]
            for name, pace, each in zip(row.phases, paces, linked.routes, strict=True)
        ),
    )
    workload = run_of(row.pool, instance.cluster.gpu, row.reciprocals(paces), row.row)
    assert workload.iteration_time_s <= workload.bound_s * (1 + 1e-6), "flows are late"
    return one_network(where.cost(linked.count), (workload,), links=direct)


def _bundles(links: Ints) -> tuple[LinkBundle, ...]:
    pairs = zip(*(index.tolist() for index in np.nonzero(np.triu(links))), strict=True)
    return tuple(LinkBundle(between=(i, j), links=int(links[i, j])) for i, j in pairs)
