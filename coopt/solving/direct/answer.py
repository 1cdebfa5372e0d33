"""Answer an instance that allows direct links: the cheapest of them, against the cheapest switches."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np

from coopt.columns.pools import fitting
from coopt.instance.schema import Instance
from coopt.perf.mapping import Ints
from coopt.plan.couplings import one_network
from coopt.plan.parts import DirectLinks, LinkBundle, LinkPhase
from coopt.plan.schema import HbDomainChoice, NicChoice, ObjectiveClaim, Part, Plan, Rivals
from coopt.solving.arrays import run_of
from coopt.solving.backend import backend_of
from coopt.solving.direct.grid import paces_on
from coopt.solving.direct.rows import Row, every_place, worthwhile
from coopt.solving.direct.search import DirectSearch, LinkedMapping, search_links
from coopt.solving.outcome import answered, claim_of, infeasible, unknown, within_gap
from coopt.solving.runs import Counted, Run
from coopt.solving.shared import shared_plan

NO_LINKS = (
    "no direct links meet the bound, within ports and limits: needs a looser bound, larger HB domains, more "
    "nics_per_gpu, or faster NICs"
)

CROSSING = (
    "{} mappings were left out on direct links: stages of theirs hold the same parameters, a tied embedding or two "
    "copies, and are more than one domain apart"
)


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
