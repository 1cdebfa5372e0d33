"""Answer an instance with several sites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from coopt.columns.waits import waiting
from coopt.instance.schema import Instance
from coopt.instance.sites import Site
from coopt.network.optics import measures_of
from coopt.network.plan_networks import design_of
from coopt.plan.couplings import Couplings, Exchange, Ring, SitePower, WanPlan, at_site
from coopt.plan.schema import Plan, WorkloadPlan
from coopt.solving.driver import Drive
from coopt.solving.effort import Counted
from coopt.solving.outcome import answered, claim_of, ending, infeasible, unknown
from coopt.solving.runs import Run
from coopt.solving.sites.arrays import may_feed, ring_problems
from coopt.solving.sites.options import Offers, Option, gradient_bytes, local_question, offers
from coopt.solving.sites.reasons import no_option, no_ring
from coopt.solving.sites.search import search_rings
from coopt.solving.sites.worth import Built
from coopt.solving.workloads import workload_plan


def sites_plan(run: Run) -> Plan:
    """Sites, their networks and the channels between them at the least cost, with a proof."""
    instance, run.formulation = run.instance, "ring"
    found = offered(run)
    options = [option for one in found for option in one.options]
    if not options:
        return infeasible(run, no_option(instance, len(found)))
    problems = ring_problems(instance, options)
    run.tell("build", f"{len(options):,} options, {len(problems):,} rings have some for every site")
    result = search_rings(instance, problems, run.backend, deadline=run.deadline)
    run.log.searches.append(result)
    if result.outcome == "infeasible":
        return infeasible(run, no_ring(run, options, lambda: _unfed(run, len(found))))
    if result.found is None:
        return unknown(run, result.outcome, result.bound)
    return _plan(run, result, result.found)


def offered(run: Run) -> list[Offers]:
    """The options of every number of shares that some site can feed."""
    whole = run.instance.cluster.shares
    assert whole is not None
    found, measures = [], measures_of(run.instance)
    for shares in range(1, whole + 1):
        if not _can_be_fed(run.instance, shares):
            break
        found.append(offers(local_question(run.instance, shares), shares, measures, run.check_clock))
        options = len(found[-1].options)
        run.tell("columns", f"{shares} of {whole} shares: {options:,} option{'' if options == 1 else 's'}")
    run.log.families = sum(one.families for one in found)
    run.log.table = Counted(gated=sum((one.gated for one in found), Counter()), kept=sum(one.mappings for one in found))
    run.log.columns_s = run.elapsed_s()
    return found


def _unfed(run: Run, fed: int) -> list[Option]:
    """The options of more shares than the `fed` that some site can feed."""
    whole = run.instance.cluster.shares
    assert whole is not None
    measures, more = measures_of(run.instance), range(fed + 1, whole + 1)
    every = (offers(local_question(run.instance, n), n, measures, run.check_clock) for n in more)
    return [option for one in every for option in one.options]


def _can_be_fed(instance: Instance, shares: int) -> bool:
    """Whether some site can feed the GPUs alone of that many shares."""
    (gpus,) = local_question(instance, shares).cluster.gpus
    least_w = gpus * instance.cluster.gpu.w
    return any(may_feed(instance.objective, site, least_w) for site in instance.site)


def _plan(run: Run, result: Drive[Built], found: Built) -> Plan:
    instance, kind = run.instance, run.instance.objective.minimize
    claim = claim_of(kind, found.whole.of(kind), result.bound)
    reason = ending(run, result.outcome, claim)
    waits_s = [found.exchange_s(gradient_bytes(workload)) for workload in instance.workload]
    sites = _sites(instance, found)
    parts = tuple(
        at_site(site.name, design_of(option.family, option.uplinks), _runs(instance, option, waits_s), cost)
        for site, option, cost in zip(sites, found.options, found.costs, strict=True)
    )
    powers = tuple(
        SitePower(site=site.name, facility_w=fed_w, facility_limit_w=site.power_mw * 1e6)
        for site, fed_w in zip(sites, found.fed_w, strict=True)
    )
    couplings = Couplings(sites=powers, ring=_ring(instance, found, waits_s))
    return answered(run, reason, claim, cost=found.whole, parts=parts, couplings=couplings)


def _sites(instance: Instance, found: Built) -> list[Site]:
    return [instance.site[i] for i in found.problem.ring.sites]


def _ring(instance: Instance, found: Built, waits_s: Sequence[float]) -> Ring:
    """The ring that adds up gradients, the channels lit for it, and how long each workload waits for it."""
    ring, sent = found.problem.ring, [gradient_bytes(workload) for workload in instance.workload]
    assert instance.cluster.shares is not None
    return Ring(
        shares=instance.cluster.shares,
        sites=tuple(site.name for site in _sites(instance, found)),
        site_shares=tuple(option.shares for option in found.options),
        wan=tuple(
            WanPlan(
                between=link.between,
                channels=channels,
                gbit_s=link.gbit_s,
                latency_s=link.latency_ms / 1e3,
                usd=channels * link.usd,
                w=channels * link.w,
            )
            for link, channels in zip(ring.links, found.channels, strict=True)
        ),
        exchanges=tuple(
            Exchange(workload=workload.name, sent_bytes=ring.share * each, exchange_s=wait_s)
            for workload, each, wait_s in zip(instance.workload, sent, waits_s, strict=True)
        ),
    )


def _runs(instance: Instance, option: Option, waits_s: Sequence[float]) -> tuple[WorkloadPlan, ...]:
    return tuple(_running(instance, option, w, wait_s) for w, wait_s in enumerate(waits_s))


def _running(instance: Instance, option: Option, w: int, wait_s: float) -> WorkloadPlan:
    """How a site trains its part of a batch; the wait for others stands beside its own data-parallel traffic."""
    row, _ = option.fastest(w, wait_s)
    pool, seen = option.pools[w], (instance.cluster.gpu, option.context, option.uplinks, row)
    alone, whole = workload_plan(pool, *seen), workload_plan(waiting(pool, wait_s), *seen)
    own_s, all_s = alone.breakdown_s["dp"], whole.breakdown_s["dp"]
    return whole.model_copy(update={"breakdown_s": whole.breakdown_s | {"dp": own_s, "wan": all_s - own_s}})
