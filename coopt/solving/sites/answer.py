"""Answer an instance with several sites, or say what must give, each tried.

Options are listed for the numbers of shares that a cheapest ring may have, until no other can. The cheapest ring is
found by a lower bound for every ring first, then ring by ring while one may be cheaper.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyomo.core as pyo
from pyomo.core.plugins.transform.discrete_vars import RelaxIntegerVars

from coopt.columns.pace import waiting
from coopt.columns.table import columns
from coopt.instance.couplings import Site
from coopt.instance.schema import Instance
from coopt.instance.variants import local_question
from coopt.network.optics import measures_of
from coopt.network.plan_networks import design_of
from coopt.network.space import families
from coopt.plan.couplings import Couplings, Exchange, Ring, WanPlan, at_site
from coopt.plan.schema import Plan, WorkloadPlan
from coopt.solving import explain
from coopt.solving.arrays import workload_plan
from coopt.solving.backend import Backend
from coopt.solving.driver import Decided, Drive, Subproblem, drive
from coopt.solving.outcome import answered, claim_of, ending, infeasible, unknown
from coopt.solving.runs import Counted, Method, NamedPrograms, Program, Run, StoppedError, Toll
from coopt.solving.sites.arrays import Built, RingProblem, built, least_with, may_feed, promising, ring_problems
from coopt.solving.sites.options import (
    Networks,
    Offers,
    Option,
    gpus_w,
    gradient_bytes,
    networks,
    offers,
)
from formulations.sites import FORMULATIONS, add_choice_cut, build

PLENTY = 10**7  # of MW and channels, more than anyone has

MODEL = FORMULATIONS["ring"]


def sites_plan(run: Run) -> Plan:
    """Sites, their networks and the channels between them at the least cost, with a proof."""
    instance, run.formulation = run.instance, "ring"
    listed = _fed(run)
    least, found = least_with(instance, list(listed.values())), dict[int, Offers]()
    options, value, result = list[Option](), math.inf, None
    while shares := promising(least, found, value * (1 - instance.solver.gap)):
        options += _offered(run, [listed[n] for n in shares], found)
        problems = ring_problems(instance, options)
        run.tell("build", f"{len(options):,} options, {len(problems):,} rings have some for every site")
        result = search_rings(instance, problems, run.backend, deadline=run.deadline)
        run.log.searches.append(result)
        value = result.value
        if result.outcome not in ("optimal", "infeasible"):
            break
    if result is None or not options:
        return infeasible(run, partial(no_option, instance, len(listed)))
    if result.outcome == "infeasible":
        return infeasible(run, partial(no_ring, run, options, lambda: _unfed(run, len(listed))))
    result = replace(result, bound=min([result.bound, *(least[n] for n in listed.keys() - found.keys())]))
    if result.found is None:
        return unknown(run, result.outcome, result.bound)
    return _plan(run, result, result.found)


def offered(run: Run) -> list[Option]:
    """The options of every number of shares that some site can feed."""
    return _offered(run, list(_fed(run).values()), {})


def _fed(run: Run) -> dict[int, Networks]:
    """The networks for each number of shares that some site can feed."""
    whole = run.instance.cluster.shares
    assert whole is not None
    found, measures = dict[int, Networks](), measures_of(run.instance)
    for shares in range(1, whole + 1):
        if not _can_be_fed(run.instance, shares):
            break
        run.check_clock()
        found[shares] = networks(run.instance, shares, measures)
    run.log.families = sum(len(one.families) for one in found.values())
    run.log.model_s = run.elapsed_s()
    return found


def _offered(run: Run, listed: Sequence[Networks], found: dict[int, Offers]) -> list[Option]:
    """The options of these networks, which are noted among those found."""
    before = run.elapsed_s()
    for networks_of_n in listed:
        offer = found[networks_of_n.shares] = offers(networks_of_n, run.check_clock)
        count = len(offer.options)
        whole = f"{networks_of_n.shares} of {run.instance.cluster.shares} shares"
        run.tell("columns", f"{whole}: {count:,} option{'' if count == 1 else 's'}")
    gated = sum((one.gated for one in found.values()), Counter[str]())
    run.log.table = Counted(gated=gated, kept=sum(one.mappings for one in found.values()))
    run.log.columns_s += run.elapsed_s() - before
    return [option for one in listed for option in found[one.shares].options]


def _unfed(run: Run, fed: int) -> list[Option]:
    """The options of more shares than the `fed` that some site can feed."""
    whole = run.instance.cluster.shares
    assert whole is not None
    measures, more = measures_of(run.instance), range(fed + 1, whole + 1)
    every = (offers(networks(run.instance, n, measures), run.check_clock) for n in more)
    return [option for one in every for option in one.options]


def _can_be_fed(instance: Instance, shares: int) -> bool:
    """Whether some site can feed the GPUs alone of that many shares."""
    return any(may_feed(instance.objective, site, gpus_w(instance, shares)) for site in instance.site)


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
    couplings = Couplings(sites=found.fed, ring=_ring(instance, found, waits_s))
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


def no_option(instance: Instance, most: int) -> tuple[str, ...]:
    """No site trains any shares in time, even without a wait: why `most`, all that any site can feed, are not."""
    whole = instance.cluster.shares
    assert whole is not None
    if most == 0:
        return (
            f"site: no site can feed the GPUs of one of {whole} shares, which take {gpus_w(instance, 1) / 1e6:.6g} MW "
            "times its PUE: needs more power, more shares of less power each, or fewer GPUs",
        )
    local = local_question(instance, most)
    every = tuple(families(local))
    if every:
        why = explain.no_design(local, every, columns(local, every, lambda _: None, lambda: None))
    else:
        why = explain.no_family(local)
    return (
        why if most == whole else tuple(f"{most} of {whole} shares, all that any site can feed: {one}" for one in why)
    )


UNTRIED = "no sites keep all limits at once, and there was no time to find out which of them must give"


def no_ring(run: Run, options: Sequence[Option], unfed: Callable[[], Sequence[Option]]) -> tuple[str, ...]:
    """Every ring breaks a limit: each one without which there is a plan, as far as there is time to try.

    `unfed` lists options that no site can feed, which one with more power could.
    """
    instance = run.instance
    short = tuple(_power(instance, options))
    if short:
        return short
    try:
        every = [*options, *unfed()]
    except StoppedError:
        return (UNTRIED,)
    tried = [
        (text, search_rings(eased, ring_problems(eased, every), run.backend, deadline=run.deadline))
        for text, eased in _eased(instance)
    ]
    enough = [text for text, result in tried if result.found is not None]
    if enough:
        return tuple(f"no sites keep all limits at once; {text} there is a plan" for text in enough)
    if all(result.outcome == "infeasible" for _, result in tried):
        return ("no sites keep all limits at once, nor without any one of them: needs several of them looser",)
    return (UNTRIED,)


def _power(instance: Instance, options: Sequence[Option]) -> Iterator[str]:
    """All sites together cannot feed the GPUs."""
    assert instance.cluster.shares is not None
    most = []
    for site in instance.site:
        fed = [option.shares for option in options if may_feed(instance.objective, site, option.w)]
        most.append(max(fed, default=0))
    if sum(most) < instance.cluster.shares:
        listed = ", ".join(f"{site.name} {count}" for site, count in zip(instance.site, most, strict=True))
        yield (
            f"site: power_mw of all sites feeds {sum(most)} of {instance.cluster.shares} shares within the time bounds "
            f"({listed}): needs more power, another site, looser bounds, more shares of less power each, or fewer GPUs"
        )


def _eased(instance: Instance) -> Iterator[tuple[str, Instance]]:
    """The instance without one limit, with a word on which."""
    for s, site in enumerate(instance.site):
        sites = list(instance.site)
        sites[s] = site.model_copy(update={"power_mw": PLENTY})
        yield f"with more power at {site.name}", instance.model_copy(update={"site": tuple(sites)})
    wide = tuple(wan.model_copy(update={"most": PLENTY}) for wan in instance.wan)
    if wide:
        yield "with more channels (wan.most)", instance.model_copy(update={"wan": wide})
    for name in type(instance.limits).model_fields:
        if getattr(instance.limits, name) is not None:
            limits = instance.limits.model_copy(update={name: None})
            yield f"without limits.{name}", instance.model_copy(update={"limits": limits})


def search_rings(
    instance: Instance, problems: Sequence[RingProblem], backend: Backend, *, deadline: float
) -> Drive[Built]:
    """The cheapest choice over all rings, by rising bound of their relaxations."""
    toll = Toll()
    rings = [_subproblem(instance, problem, _relaxed(problem, backend, deadline, toll)) for problem in problems]
    found = drive(rings, backend, gap=instance.solver.gap, deadline=deadline)
    taken = {name: value + getattr(found, name) for name, value in toll.taken().items()}
    return replace(found, **taken)


def _relaxed(problem: RingProblem, backend: Backend, deadline: float, toll: Toll) -> float:
    """A lower bound of a ring in objective units, by fractions of options and channels; inf where not even those do."""
    started = time.perf_counter()
    model = build(problem.data, MODEL)
    RelaxIntegerVars().apply_to(model)
    toll.build_s += time.perf_counter() - started
    answer = backend.solve(model, max(deadline - time.perf_counter(), 0.0))
    toll.add(answer)
    if answer.outcome == "infeasible":
        return math.inf
    return answer.bound * problem.scale if answer.outcome == "optimal" else -math.inf


def _subproblem(instance: Instance, problem: RingProblem, bound: float) -> Subproblem[Built]:
    """One ring by its formulation; a choice whose bills exceed a limit is cut off."""

    def read(model: pyo.ConcreteModel) -> Decided[Built] | None:
        chosen = tuple(max(options, key=lambda o: model.z[o].value) for options in model.options_of)
        whole = built(instance, problem, chosen)
        if whole.over:
            add_choice_cut(model, list(chosen))
            return None
        return Decided(choice=whole, value=whole.whole.of(instance.objective.minimize))

    return Subproblem(build=lambda: (build(problem.data, MODEL), problem.scale), read=read, bound=bound)


def sites_programs(run: Run) -> NamedPrograms:
    """One program for each ring."""
    problems = ring_problems(run.instance, offered(run))
    return lambda name: (Program(model=build(one.data, FORMULATIONS[name]), unit=one.scale) for one in problems)


SITES = Method(plan=sites_plan, programs=sites_programs, formulations=lambda _: tuple(FORMULATIONS))
