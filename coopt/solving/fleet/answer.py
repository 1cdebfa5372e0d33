"""Answer a fleet: an island for each workload, at sites and in phases, at the least cost or regret
of all together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from coopt.instance.couplings import Losses
from coopt.instance.schema import Instance, question_on, questions_by_gpu
from coopt.instance.texts import counted
from coopt.instance.variants import at_max_efficiency, at_prices, phases_of
from coopt.network.cores import IslandsAt, cores_of, with_core_of
from coopt.network.growth import grows_alone
from coopt.network.part_bills import part_cost
from coopt.network.parts import electricity_of, standing_units
from coopt.network.plan_networks import design_of
from coopt.plan.couplings import (
    NETWORK,
    Couplings,
    Outlooks,
    Part,
    PartLosses,
    PriceScenario,
    largest_regret,
)
from coopt.plan.parts import Cost
from coopt.plan.schema import Plan
from coopt.solving.days import fastest_on
from coopt.solving.driver import Drive, answered, claim_of, ending, infeasible, unknown
from coopt.solving.fleet.cheapest import without_foresight
from coopt.solving.fleet.listing import Listed, SlotOptions, islands_listed, listed_at, numbers_of
from coopt.solving.fleet.parts import scaled, subset, useful
from coopt.solving.fleet.paths import workloads_named
from coopt.solving.fleet.placed import Placed, Slot, fleet_bill, scenario_at, slots_of
from coopt.solving.fleet.search import search_partition
from coopt.solving.highs import Outcome
from coopt.solving.robust.survival import survived
from coopt.solving.runs import Method, NamedPrograms, Program, Run, backend_of, no_programs
from formulations.choice import FORMULATIONS, REGRET, build
from formulations.choice_data import ChoiceData, Ints

Outcomes = tuple[tuple[dict[str, float], Instance, float], ...]
"""Factors on prices, the question at these prices, and its least objective."""


GPU_FACTOR = 4
"""Times the GPUs there are, within which the least number that would do is looked for."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Offer:
    """What a fleet may be built from once the optic of its core is chosen, at the prices of its
    bill.
    """

    instance: Instance
    options: SlotOptions
    data: ChoiceData

    def built(self, rows: Ints) -> list[Placed]:
        """The islands of chosen options."""
        return self.options.built(rows)

    def allowed(self, rows: Ints) -> bool:
        """Whether islands keep all limits when they are written out."""
        return fleet_bill(self.instance, self.built(rows)).within


def offered(run: Run) -> tuple[tuple[Offer, ...], Outcomes] | Plan:
    """Everything a fleet may be built from, by each optic that its core may have, and the ways
    prices may turn out; a plan that says why where there is no answer.
    """
    run.formulation = "choice"
    placed = islands_listed(run)
    served = {slot for _, options in placed for slot in np.unique(options.slot).tolist()}
    missing = [slot for number, slot in enumerate(slots_of(run.instance)) if number not in served]
    if missing:
        return infeasible(run, partial(_no_island, run, missing))
    scenarios = outcomes_of(run, placed)
    if scenarios == "infeasible":
        return infeasible(run, partial(_over_limits, run, offers_of(placed, ())))
    if isinstance(scenarios, str):
        return unknown(run, scenarios)
    return offers_of(placed, scenarios), scenarios


def offers_of(placed: Sequence[Listed], scenarios: Outcomes) -> tuple[Offer, ...]:
    """What islands offer by each optic of the core, in every scenario."""
    at = [(then, best) for _, then, best in scenarios]
    return tuple(_offer(asked, some, at) for asked, some in placed)


def fleet_plan(run: Run) -> Plan:
    """The plan of a run whose instance is a fleet at sites, in phases or in doubt."""
    found = offered(run)
    if isinstance(found, Plan):
        return found
    offers, scenarios = found
    run.log.columns_s = run.elapsed_s()
    run.tell(
        "build",
        f"{counted(sum(len(offer.options) for offer in offers), 'candidate network')}, over all"
        " phases and sites",
    )
    searches = [
        search_partition(
            offer.data,
            gap=run.instance.solver.gap,
            backend=run.backend,
            deadline=run.deadline,
            is_allowed=offer.allowed,
            on_standing=run.tell_standing,
        )
        for offer in offers
    ]
    run.log.searches += searches
    possible = [ended for ended in searches if ended.outcome != "infeasible"]
    if not possible:
        return infeasible(run, partial(_over_limits, run, offers))
    # proven only as a whole: one search that stopped early leaves the choice among all offers open
    outcome: Outcome = next(
        (ended.outcome for ended in possible if ended.outcome != "optimal"), "optimal"
    )
    bound = min(ended.bound for ended in possible)
    offer, best = min(zip(offers, searches, strict=True), key=lambda pair: pair[1].value)
    if best.found is None:
        return unknown(run, outcome, bound)
    return _plan(run, offer, replace(best, outcome=outcome, bound=bound), scenarios)


def _no_island(run: Run, missing: Sequence[Slot]) -> tuple[str, ...]:
    """Why slots have no island."""
    from coopt.solving.fleet.unserved import no_island  # loaded only where it is asked

    by_gpu = questions_by_gpu(run.instance)
    if len(by_gpu) == 1:
        return no_island(run, missing)
    reasons = [(one, no_island(replace(run, instance=one), missing)) for one in by_gpu]
    return tuple(f"On {one.cluster.gpu.name}: {text}" for one, texts in reasons for text in texts)


def _over_limits(run: Run, offers: Sequence[Offer]) -> tuple[str, ...]:
    """What each limit alone would have to be; of GPUs, of which islands may have more than there
    are, where that widens what they may be.
    """

    def with_more_gpus() -> list[ChoiceData]:
        cluster = run.instance.cluster
        more = cluster.model_copy(update={"gpus": (GPU_FACTOR * cluster.most_gpus,)})
        wider = replace(run, instance=run.instance.model_copy(update={"cluster": more}))
        return [one.data for one in offers_of(islands_listed(wider), ())]

    from coopt.solving.fleet.least_limits import over_limits  # loaded only where it is asked

    parted = run.instance.sharing.mode == "partition" and not run.instance.phase
    return over_limits(run, [one.data for one in offers], with_more_gpus if parted else None)


def _offer(
    asked: Instance, options: SlotOptions, scenarios: Sequence[tuple[Instance, float]]
) -> Offer:
    """The numbers of a fleet whose core has the optic that `asked` names, in every scenario."""
    offer = Offer(instance=asked, options=options, data=numbers_of(asked, options))
    return _in_scenarios(offer, scenarios)


def _in_scenarios(offer: Offer, scenarios: Sequence[tuple[Instance, float]]) -> Offer:
    """An offer at these ways prices may turn out, with the least objective of each."""
    at = tuple(
        scenario_at(offer.data, offer.instance, with_core_of(then, offer.instance), best)
        for then, best in scenarios
    )
    return replace(offer, data=replace(offer.data, scenarios=at))


def outcomes_of(run: Run, placed: Sequence[Listed]) -> Outcomes | str:
    """The question at every way prices may turn out, with the least objective at the best
    efficiency then; none where no regret is minimised.

    These optima are exact, whatever gap the instance allows: regret is measured from them. Where
    one of them stayed open the reason is returned, and "infeasible" where limits leave nothing.
    `placed` are islands at the least efficiency, which are those at the best one where the two are
    the same. A run that was told what to measure from searches none of them.
    """
    if not run.instance.price_scenarios:
        return ()
    if run.least_costs is not None:
        hopeful = at_max_efficiency(run.instance)
        told = zip(run.instance.price_scenarios, run.least_costs, strict=True)
        return tuple((factors, at_prices(hopeful, factors), least) for factors, least in told)
    hopeful, plain = at_max_efficiency(run.instance), hopeful_offers(run, placed)
    backend = backend_of(run.instance.solver.model_copy(update={"gap": 0.0}), run.backend.cancel)
    found, total = [], len(run.instance.price_scenarios)
    for factors in run.instance.price_scenarios:
        then, least = at_prices(hopeful, factors), math.inf
        for offer in offers_then(plain, then):
            ended = search_partition(
                offer.data, backend=backend, deadline=run.deadline, is_allowed=offer.allowed
            )
            run.log.searches.append(ended)
            if ended.outcome not in ("optimal", "infeasible"):
                return ended.outcome
            if ended.found is not None:
                least = min(
                    least, _value(with_core_of(then, offer.instance), offer.built(ended.found))
                )
        if math.isinf(least):  # limits do not depend on the scenario
            return "infeasible"
        found.append((factors, then, least))
        run.tell(
            "solve",
            f"{len(found)} of {counted(total, 'price scenario')}",
            done=(len(found), total),
        )
    return tuple(found)


def hopeful_offers(
    run: Run, placed: Sequence[Listed], *, beaten_optics: bool = False
) -> list[Offer]:
    """What a fleet may be built from at the best efficiency, given the islands at the least."""
    low, high = run.instance.efficiencies
    listed = (
        placed
        if low == high
        else listed_at(run, at_max_efficiency(run.instance), beaten_optics=beaten_optics)
    )
    return [_offer(asked, some, ()) for asked, some in listed]


def offers_then(plain: Sequence[Offer], then: Instance) -> list[Offer]:
    """Offers at one way prices may turn out, where nothing counts as lost; limits hold at those of
    the instance.
    """
    return [_in_scenarios(base, [(then, 0.0)]) for base in plain]


def _value(instance: Instance, built: Sequence[Placed]) -> float:
    """The objective of islands at the prices of an instance."""
    return fleet_bill(instance, built).cost.of(instance.objective.minimize)


def _plan(run: Run, offer: Offer, choice: Drive[Ints], scenarios: Outcomes) -> Plan:
    assert choice.found is not None, "without a choice there is no plan"
    instance, robust, built = offer.instance, run.instance.robust, offer.built(choice.found)
    parts, cost, couplings = written(offer, choice.found, run.instance.losses)
    kind = instance.objective.minimize
    turns = tuple(
        PriceScenario(factors=factors, value=_value(with_core_of(then, instance), built), best=best)
        for factors, then, best in scenarios
    )
    value = largest_regret(turns) if turns else cost.of(kind)
    claim = claim_of(kind, value, choice.bound)
    at_list = _value(
        with_core_of(run.instance.model_copy(update={"robust": None}), instance), built
    )
    myopic = doubt = None
    if grows_alone(run.instance):
        myopic = without_foresight(instance, offer.options.begun, value)
    if robust is not None:
        doubt = Outlooks(
            aim=robust.aim, efficiency=robust.efficiency, list_value=at_list, turns=turns
        )
    return answered(
        run,
        ending(run, choice.outcome, claim),
        claim,
        cost=cost,
        parts=parts,
        couplings=couplings.model_copy(update={"outlooks": doubt, "myopic": myopic}),
    )


def written(offer: Offer, rows: Ints, losses: Losses) -> tuple[tuple[Part, ...], Cost, Couplings]:
    """Chosen islands as networks, with what they cost and what ties them."""
    instance, built = offer.instance, offer.built(rows)
    bill, stock = fleet_bill(instance, built), standing_units(instance)
    parts = tuple(part for one in built for part in _parts(instance, one, stock))
    # the bill of one network is that of everything
    cost = parts[0].cost if [part.name for part in parts] == [NETWORK] else bill.cost
    update = {
        "cores": cores_of(instance, _standing(instance, built)),
        "losses": tuple(_losses(instance, built, losses)),
    }
    return parts, cost, bill.couplings.model_copy(update=update)


def part_name(slot: Slot, year: float | None) -> str:
    """What a part is called: its workload, with the year of its phase where the fleet grows."""
    return slot.name if year is None else f"{slot.name}, {year:.10g}"


def _parts(instance: Instance, one: Placed, stock: Counter[tuple[str, str]]) -> Iterator[Part]:
    """The networks of an island, phase by phase; `stock` is what stands and no island has yet."""
    site, slot = instance.sites[one.site or 0], slots_of(instance)[one.slot]
    for t, family, uplinks in one.path.stands:
        question = question_on(instance, family.hb.name)
        asked = workloads_named(phases_of(question)[t], slot.workloads)
        year, terms = instance.years[t], electricity_of(instance.objective, site)
        cost = part_cost(question, terms, family, uplinks, stock)
        yield Part(
            name=part_name(slot, year),
            site=None if site is None else site.name,
            phase=year,
            design=design_of(family, uplinks),
            workloads=tuple(fastest_on(question, family, uplinks, workload) for workload in asked),
            cost=cost,
            power_w=cost.power_w,
        )


def _standing(instance: Instance, built: Sequence[Placed]) -> Iterator[IslandsAt]:
    """The islands of each site in each phase, where some stand."""
    slots = slots_of(instance)
    for t, year in enumerate(instance.years):
        for s, site in enumerate(instance.sites):
            there = [
                (slots[one.slot].name, one.path.families[t])
                for one in built
                if (one.site or 0) == s
            ]
            islands = {name: family for name, family in there if family is not None}
            if islands:
                yield None if site is None else site.name, year, islands


def _losses(instance: Instance, built: Sequence[Placed], losses: Losses) -> Iterator[PartLosses]:
    """What each loss does to each part on which a workload trains."""
    questions = phases_of(instance)
    for one in built:
        slot = slots_of(instance)[one.slot]
        for t, family, uplinks in one.path.stands:
            asked = workloads_named(questions[t], slot.workloads)
            if asked and losses:
                alone = questions[t].model_copy(update={"workload": asked})
                name = part_name(slot, instance.years[t])
                yield PartLosses(part=name, survived=survived(alone, family, uplinks, losses))


def fleet_programs(run: Run) -> NamedPrograms:
    """The useful islands of a fleet at sites and in phases, in a program for each optic that a core
    may have.
    """
    choice = offered(run)
    if isinstance(choice, Plan):
        return no_programs
    offers = [subset(offer.data, useful(offer.data)) for offer in choice[0]]
    # An optic with which some workload has no option has no answer, and no program.
    small = [scaled(data) for data in offers if len(np.unique(data.workload)) == data.workloads]
    known = {"choice": REGRET} if run.instance.minimizes_regret else FORMULATIONS
    return lambda name: (Program(model=build(data, known[name]), unit=unit) for data, unit in small)


CHOICE = Method(
    plan=fleet_plan,
    programs=fleet_programs,
    # `shares` is for products of one phase at known prices
    formulations=lambda instance: (
        ("choice",) if instance.minimizes_regret or instance.phase else tuple(FORMULATIONS)
    ),
)
