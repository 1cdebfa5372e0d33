"""Answer an instance with several sites, or say what must give, each tried.

Options are listed for the numbers of shares that a cheapest ring may have, until no other can. The
cheapest ring is found by a lower bound for every ring first, then ring by ring while one may be
cheaper.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import starmap
from typing import Any

import pyomo.core as pyo
from pyomo.core.plugins.transform.discrete_vars import RelaxIntegerVars

from coopt.columns.feasible import recalled
from coopt.columns.islands.options import ListedIslands
from coopt.columns.table import columns
from coopt.columns.times import waiting
from coopt.instance.couplings import Site, Wan
from coopt.instance.schema import Instance
from coopt.instance.texts import counted
from coopt.instance.variants import local_question
from coopt.network.borders import channel_end
from coopt.network.optics import measures_of
from coopt.network.plan_networks import design_of
from coopt.network.space import families
from coopt.plan.couplings import Couplings, Exchange, Ring, WanPlan, at_site
from coopt.plan.parts import Uptime, WorkloadPlan
from coopt.plan.schema import Plan
from coopt.solving import explain
from coopt.solving.arrays import workload_plan
from coopt.solving.days import with_uptime
from coopt.solving.driver import (
    Decided,
    Drive,
    Subproblem,
    answered,
    claim_of,
    drive,
    ending,
    identity,
    infeasible,
    unknown,
    within_gap,
)
from coopt.solving.runs import (
    Backend,
    Counted,
    Method,
    NamedPrograms,
    Program,
    Run,
    SearchStatistics,
    StoppedError,
)
from coopt.solving.sites.arrays import (
    RingDesign,
    RingProblem,
    design_ring,
    least_sum,
    least_with,
    may_feed,
    promising,
    ring_problems,
)
from coopt.solving.sites.options import (
    Networks,
    Offers,
    Option,
    gpus_w,
    gradient_bytes,
    networks,
    offers,
    with_any_memory,
)
from coopt.solving.sites.outages import (
    iteration_s,
    most_promised,
    uptimes_of,
    within_shares,
)
from formulations.ring import FORMULATIONS, add_choice_cut, build

PLENTY = 10**7  # of MW and channels, more than anyone has

MODEL = FORMULATIONS["ring"]


TOO_OFTEN = (
    "availability: no choice of sites was found that trains within its days with its failures, and"
    " not all are ruled out; more days (train_days or by), more availability.spare_domains or"
    " fewer failures may help"
)
TRIES = 8
"""Searches for networks that are in time with what interrupts them."""


def sites_plan(run: Run) -> Plan:
    """Sites, their networks and the channels between them at the least cost, with a proof."""
    run.formulation, availability = "ring", run.instance.availability
    if availability is None:
        found = _cheapest(run)
        return found if isinstance(found, Plan) else _plan(run, found, {})
    shares, bound = most_promised(run.instance, availability), -math.inf
    for number in range(TRIES):
        found = _cheapest(replace(run, instance=within_shares(run.instance, shares)))
        if isinstance(found, Plan):
            if number == 0:
                return found.model_copy(update={"instance": identity(run.instance)})
            if found.status == "infeasible":
                break
            return unknown(run, found.stop_reason, bound)
        bound = found.bound if number == 0 else bound
        uptimes = uptimes_of(run.instance, availability, chosen(found))
        if all(
            iteration_s(chosen(found), w, gradient_bytes(workload))
            <= workload.bound_s * (uptimes[workload.name].promised if workload.calendar else 1.0)
            for w, workload in enumerate(run.instance.workload)
        ):
            return _plan(run, replace(found, bound=bound), uptimes)
        shares = {name: uptime.promised for name, uptime in uptimes.items()}
    plan = unknown(run, "not proven", bound)
    return plan.model_copy(update={"explanation": (TOO_OFTEN,)})


def chosen(result: Drive[RingDesign]) -> RingDesign:
    """What a search found."""
    assert result.found is not None, "a search without an answer ends in a plan that says so"
    return result.found


def _cheapest(run: Run) -> Drive[RingDesign] | Plan:
    """The cheapest choice where nothing fails, or the plan that says why there is none."""
    instance = run.instance
    networks_of = _networks_by_shares(run)
    floors, offers_of = least_with(instance, list(networks_of.values())), dict[int, Offers]()
    options, value, result = list[Option](), math.inf, None
    while shares := promising(floors, offers_of, value * (1 - instance.solver.gap)):
        options += _options_of(run, [networks_of[n] for n in shares], offers_of)
        problems = ring_problems(instance, options)
        run.tell(
            "build",
            f"{counted(len(options), 'candidate network')} for {counted(len(problems), 'ring')}"
            " of sites",
        )
        result = search_rings(instance, problems, run.backend, deadline=run.deadline)
        run.log.searches.append(result)
        value = result.value
        if result.outcome not in ("optimal", "infeasible"):
            break
    if result is None or not options:
        return infeasible(run, partial(no_option, run, len(networks_of)))
    if result.outcome == "infeasible":
        return infeasible(
            run, partial(no_ring, run, options, lambda: _unfed(run, len(networks_of)))
        )
    # rings with numbers of shares that were never listed are within the gap, and bound the proof as
    # well
    result = replace(
        result,
        bound=min([result.bound, *(floors[n] for n in networks_of.keys() - offers_of.keys())]),
    )
    if result.found is None:
        return unknown(run, result.outcome, result.bound)
    return result


def all_options(run: Run) -> list[Option]:
    """The options of every number of shares that some site can feed."""
    return _options_of(run, list(_networks_by_shares(run).values()), {})


def _networks_by_shares(run: Run) -> dict[int, Networks]:
    """The networks for each number of shares that some site can feed."""
    all_shares = run.instance.cluster.shares
    assert all_shares is not None
    networks_of, measures = dict[int, Networks](), measures_of(run.instance)
    for shares in range(1, all_shares + 1):
        if not any(
            may_feed(run.instance.objective, site, gpus_w(run.instance, shares))
            for site in run.instance.site
        ):  # and none of more shares, whose GPUs draw more
            break
        run.check_clock()
        networks_of[shares] = networks(run.instance, shares, measures, run.listed, run.check_clock)
    run.log.families = sum(len(of_shares.table.networks) for of_shares in networks_of.values())
    run.log.model_s = run.elapsed_s()
    return networks_of


def _options_of(
    run: Run, networks: Sequence[Networks], offers_of: dict[int, Offers]
) -> list[Option]:
    """The options of these networks, which are noted among those found."""
    start_s, listed = run.elapsed_s(), run.listed or ListedIslands()
    measures = measures_of(run.instance)
    for of_shares in networks:
        local = of_shares.local
        offer = offers_of[of_shares.shares] = listed.of_question(
            with_any_memory(local),
            ("offers", measures, of_shares.links, local.workload, local.cluster.gpu),
            partial(offers, of_shares, run.check_clock, listed),
        )
        count = len(offer.options)
        place = f"{of_shares.shares} of {run.instance.cluster.shares} shares"
        run.tell("columns", f"{place}: {count:,} option{'' if count == 1 else 's'}")
    gated = sum((entry.gated for entry in offers_of.values()), Counter[str]())
    run.log.table = Counted(gated=gated, kept=sum(entry.mappings for entry in offers_of.values()))
    run.log.columns_s += run.elapsed_s() - start_s
    return [option for entry in networks for option in offers_of[entry.shares].options]


def _unfed(run: Run, fed_shares: int) -> list[Option]:
    """The options of more shares than the `fed_shares` that some site can feed."""
    all_shares = run.instance.cluster.shares
    assert all_shares is not None
    measures, counts = measures_of(run.instance), range(fed_shares + 1, all_shares + 1)
    unfed_offers = (offers(networks(run.instance, n, measures), run.check_clock) for n in counts)
    return [option for entry in unfed_offers for option in entry.options]


def _plan(run: Run, result: Drive[RingDesign], uptimes: Mapping[str, Uptime]) -> Plan:
    instance, kind, ring_design = run.instance, run.instance.objective.minimize, chosen(result)
    claim = claim_of(kind, ring_design.bill.of(kind), result.bound)
    # what only fails to be in time with its interruptions bounds the answer as well
    proven = within_gap(run, claim) or not uptimes or result.outcome != "optimal"
    reason = ending(run, result.outcome, claim) if proven else "not proven"
    waits_s = [ring_design.exchange_s(gradient_bytes(workload)) for workload in instance.workload]
    sites = _sites(instance, ring_design)
    parts = tuple(
        at_site(
            site.name,
            design_of(option.family, option.uplinks),
            tuple(
                with_uptime(
                    _running(instance, option, w, wait_s), workload, uptimes.get(workload.name)
                )
                for (w, wait_s), workload in zip(enumerate(waits_s), instance.workload, strict=True)
            ),
            cost,
        )
        for site, option, cost in zip(sites, ring_design.options, ring_design.costs, strict=True)
    )
    couplings = Couplings(
        sites=ring_design.site_powers,
        ring=_ring(instance, ring_design, waits_s),
        cores=ring_design.borders,
    )
    return answered(run, reason, claim, cost=ring_design.bill, parts=parts, couplings=couplings)


def _sites(instance: Instance, ring_design: RingDesign) -> list[Site]:
    return [instance.site[i] for i in ring_design.ring.sites]


def _ring(instance: Instance, ring_design: RingDesign, waits_s: Sequence[float]) -> Ring:
    """The ring that adds up gradients, the channels lit for it, and how long each workload waits
    for it.
    """
    ring, gradients = (
        ring_design.ring,
        [gradient_bytes(workload) for workload in instance.workload],
    )
    assert instance.cluster.shares is not None
    return Ring(
        shares=instance.cluster.shares,
        sites=tuple(site.name for site in _sites(instance, ring_design)),
        site_shares=tuple(option.shares for option in ring_design.options),
        wan=tuple(
            WanPlan(
                between=link.between,
                channels=channels,
                gbit_s=link.gbit_s,
                latency_s=link.latency_ms / 1e3,
                usd=channels * link.usd,
                w=channels * link.w,
                **_ends(instance, link, channels),
            )
            for link, channels in zip(ring.links, ring_design.channels, strict=True)
        ),
        exchanges=tuple(
            Exchange(
                workload=workload.name,
                sent_bytes=ring.share * workload_bytes,
                exchange_s=wait_s,
                without_channel_s=ring_design.exchange_s(workload_bytes, 1)
                if "channel" in instance.losses
                else None,
            )
            for workload, workload_bytes, wait_s in zip(
                instance.workload, gradients, waits_s, strict=True
            )
        ),
    )


def _ends(instance: Instance, link: Wan, channels: int) -> dict[str, Any]:
    """The modules of channels that end in borders."""
    end = channel_end(instance, link)
    return {"optic": end.optic.name, "modules": 2 * channels * end.modules} if end else {}


def _running(instance: Instance, option: Option, w: int, wait_s: float) -> WorkloadPlan:
    """How a site trains its part of a batch, which depends on no price; the wait for others stands
    beside its own data-parallel traffic.
    """
    key = option.context, option.uplinks, w, wait_s
    return recalled(option.runs, key, partial(_run, instance, option, w, wait_s))


def _run(instance: Instance, option: Option, w: int, wait_s: float) -> WorkloadPlan:
    row, _ = option.fastest(w, wait_s)
    pool, place = option.pools[w], (instance.cluster.gpu, option.context, option.uplinks, row)
    undelayed, delayed = workload_plan(pool, *place), workload_plan(waiting(pool, wait_s), *place)
    own_dp_s, dp_s = undelayed.breakdown_s["dp"], delayed.breakdown_s["dp"]
    return delayed.model_copy(
        update={"breakdown_s": delayed.breakdown_s | {"dp": own_dp_s, "wan": dp_s - own_dp_s}}
    )


def no_option(run: Run, fed_shares: int) -> tuple[str, ...]:
    """No site trains any shares in time, even without a wait: why `fed_shares`, all that any site
    can feed, are not.
    """
    instance, check_clock = run.instance, run.check_clock
    all_shares = instance.cluster.shares
    assert all_shares is not None
    if fed_shares == 0:
        return (
            (
                f"site: the GPUs of one share ({all_shares} in all) draw"
                f" {gpus_w(instance, 1) / 1e6:.6g} MW before cooling (PUE), more than any site can"
                " feed: needs more power, more and smaller shares, or fewer GPUs"
            ),
        )
    local = local_question(instance, fed_shares)
    all_families = tuple(families(local))
    if all_families:
        table = columns(local, all_families, lambda _: None, check_clock)
        reasons = explain.no_design(local, all_families, table, check_clock)
    else:
        reasons = explain.no_family(local)
    place = f"with {fed_shares} of {all_shares} shares, the most that any site can feed"
    return (
        reasons if fed_shares == all_shares else tuple(f"{place}: {reason}" for reason in reasons)
    )


UNTRIED = (
    "no choice of sites meets all limits at once, and the search stopped before it was known which"
    " limit to loosen"
)

FEW_LINKS = (
    "no choice of sites meets all limits at once: no network has as many links into a border as the"
    " channels have modules, needs channels with more Gbit/s (wan.gbit_s)"
)


def no_ring(
    run: Run, options: Sequence[Option], unfed: Callable[[], Sequence[Option]]
) -> tuple[str, ...]:
    """Every ring breaks a limit: each one without which there is a plan, as far as there is time to
    try.

    `unfed` lists options that no site can feed, which one with more power could.
    """
    instance = run.instance
    shortages = tuple(_power(instance, options))
    if shortages:
        return shortages
    try:
        all_options = [*options, *unfed()]
    except StoppedError:
        return (UNTRIED,)
    eased = [
        (
            f"no choice of sites meets all limits at once, but {text} there is a plan",
            question,
            ring_problems(question, all_options),
        )
        for text, question in _eased(instance)
    ]
    if instance.sharing.core is not None:
        joined = [problem.joined for problem in ring_problems(instance, all_options)]
        eased.append((FEW_LINKS, instance, joined))
    trials = [
        (sentence, search_rings(question, problems, run.backend, deadline=run.deadline))
        for sentence, question, problems in eased
    ]
    remedies = tuple(sentence for sentence, result in trials if result.found is not None)
    if remedies:
        return remedies
    if all(result.outcome == "infeasible" for _, result in trials):
        return (
            (
                "no choice of sites meets all limits at once, and removing any single limit does"
                " not help: needs several looser limits, or looser bounds"
            ),
        )
    return (UNTRIED,)


def _power(instance: Instance, options: Sequence[Option]) -> Iterator[str]:
    """All sites together cannot feed the GPUs."""
    assert instance.cluster.shares is not None
    shares_fed = []
    for site in instance.site:
        shares = [
            option.shares for option in options if may_feed(instance.objective, site, option.w)
        ]
        shares_fed.append(max(shares, default=0))
    fed_sum = sum(shares_fed)
    if fed_sum < instance.cluster.shares:
        site_list = ", ".join(
            f"{site.name} {count}" for site, count in zip(instance.site, shares_fed, strict=True)
        )
        yield (
            f"site: within the time bounds all sites together can feed only {fed_sum} of"
            f" {instance.cluster.shares} shares ({site_list}): needs more power, another site,"
            " looser bounds, more and smaller shares, or fewer GPUs"
        )


def _eased(instance: Instance) -> Iterator[tuple[str, Instance]]:
    """The instance without one limit, with a word on which."""
    for s, site in enumerate(instance.site):
        sites = list(instance.site)
        sites[s] = site.model_copy(update={"power_mw": PLENTY})
        yield f"with more power at {site.name}", instance.model_copy(update={"site": tuple(sites)})
    if instance.losses:
        yield "without robust.survive", instance.model_copy(update={"robust": None})
    wans = tuple(wan.model_copy(update={"most": PLENTY}) for wan in instance.wan)
    if wans:
        yield "with more channels (wan.most)", instance.model_copy(update={"wan": wans})
    for name in type(instance.limits).model_fields:
        if getattr(instance.limits, name) is not None:
            limits = instance.limits.model_copy(update={name: None})
            yield f"without limits.{name}", instance.model_copy(update={"limits": limits})


def search_rings(
    instance: Instance, problems: Sequence[RingProblem], backend: Backend, *, deadline: float
) -> Drive[RingDesign]:
    """The cheapest choice over all rings, by rising bound: of their relaxations where the sums of
    the cheapest options do not rule them out.
    """
    statistics = SearchStatistics()

    def ring(number: int, problem: RingProblem) -> Subproblem[RingDesign]:
        def sharpened() -> Subproblem[RingDesign]:
            relaxed = _relaxed(problem, backend, deadline, statistics)
            return _subproblem(instance, problem, number, max(relaxed, bound))

        bound = least_sum(problem)
        return Subproblem(number=number, bound=bound, sharpened=sharpened)

    rings = list(starmap(ring, enumerate(problems)))
    result = drive(rings, backend, gap=instance.solver.gap, deadline=deadline)
    counts = {name: value + getattr(result, name) for name, value in statistics.taken().items()}
    return replace(result, **counts)


def _relaxed(
    problem: RingProblem, backend: Backend, deadline: float, statistics: SearchStatistics
) -> float:
    """A lower bound of a ring in objective units, by fractions of options and channels; inf where
    not even those do.
    """
    started = time.perf_counter()
    model = build(problem.data, MODEL)
    RelaxIntegerVars().apply_to(model)
    statistics.build_s += time.perf_counter() - started
    answer = backend.solve(model, max(deadline - time.perf_counter(), 0.0))
    statistics.add(answer)
    if answer.outcome == "infeasible":
        return math.inf
    return answer.bound * problem.scale if answer.outcome == "optimal" else -math.inf


def _subproblem(
    instance: Instance, problem: RingProblem, number: int, bound: float
) -> Subproblem[RingDesign]:
    """One ring by its formulation; a choice whose bills exceed a limit is cut off."""

    def read(model: pyo.ConcreteModel) -> Decided[RingDesign] | None:
        choice = tuple(max(options, key=lambda o: model.z[o].value) for options in model.options_of)
        ring_design = design_ring(instance, problem, choice)
        if ring_design.broken_limits:
            add_choice_cut(model, list(choice))
            return None
        return Decided(choice=ring_design, value=ring_design.bill.of(instance.objective.minimize))

    return Subproblem(
        number=number,
        build=lambda: (build(problem.data, MODEL), problem.scale),
        read=read,
        bound=bound,
    )


def sites_programs(run: Run) -> NamedPrograms:
    """One program for each ring."""
    problems = ring_problems(run.instance, all_options(run))
    return lambda name: (
        Program(model=build(problem.data, FORMULATIONS[name]), unit=problem.scale)
        for problem in problems
    )


RING = Method(plan=sites_plan, programs=sites_programs, formulations=lambda _: tuple(FORMULATIONS))
