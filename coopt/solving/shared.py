"""Answer a question of one network that every workload has in turn.

A formulation is solved for the networks that serve all workloads, what it decided is recomputed,
and what does not hold is cut off.

The next best designs after the best: what was found is taken out, and the rest is searched again.

A design is one family at one number of uplinks, so taking it out splits the uplinks of its family
in two runs, each a family of its own. That is exact, needs no cut in the formulation, and leaves
both formulations as they are.

The networks that may be the cheapest one, listed site by site until no other can be.

A network costs at least what its GPUs, HB domains and NICs do. Sites are gone through by that
floor. Once a network is known that serves all workloads within the limits, sites whose floor is
above what it is worth hold no cheaper one: with `network.domain_fill = "any"` these are nearly all,
as GPUs that stay idle are paid for. Nor does a site on which some workload has no mapping in time
at the full rate of the NICs.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import nsmallest
from typing import Any, Literal, TypeVar

import numpy as np
import pyomo.core as pyo

from coopt.columns.flows import NicLayout
from coopt.columns.grid import Context, context_of, domains_filled
from coopt.columns.table import Columns, columns, feasible_by_size, needs, pools_of
from coopt.instance.hardware import HbDomain
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.texts import counted
from coopt.network.family import Family, NicOption, next_even
from coopt.network.laying import laid_within
from coopt.network.optics import measures_of
from coopt.network.parts import (
    Affine,
    domain_lines,
    included_lines,
    total,
    within_limits,
)
from coopt.network.space import Space, families
from coopt.plan.couplings import one_network
from coopt.plan.parts import line
from coopt.plan.schema import Alternative, AlternativesStop, Plan
from coopt.solving import explain
from coopt.solving.arrays import SharedProblem, assemble, in_units_of, viable
from coopt.solving.days import in_days
from coopt.solving.driver import (
    Candidate,
    Decided,
    Drive,
    Subproblem,
    answered,
    drive,
    ending,
    fastest_of_equal_cost,
    infeasible,
    recomputed,
    unknown,
    written_out,
)
from coopt.solving.families import (
    PricedFamily,
    counted_networks,
    every_family,
    priced,
    repriced,
)
from coopt.solving.highs import OnStanding
from coopt.solving.runs import Backend, Method, NamedPrograms, Program, Run, Why, no_programs
from formulations.network import (
    FORMULATIONS,
    NETWORK,
    add_limit_cut,
    add_uplink_cut,
    build,
    cheapest_design,
    set_design,
)

Listed = TypeVar("Listed")


def recalled_networks(
    run: Run, instance: Instance, of: Hashable, listing: Callable[[], Listed]
) -> Listed:
    """Networks as the run listed them for a question before, or lists them now; which there are,
    and what they cost, depends on neither bounds of workloads nor the numbers of limits.
    """
    return run.listed.networks(instance, of, listing) if run.listed else listing()


class Cheapest:
    """The value of the `count`-th cheapest network found so far, in the unit of the objective: a
    ceiling of columns.
    """

    def __init__(
        self, instance: Instance, families: Iterable[PricedFamily] = (), *, count: int = 1
    ) -> None:
        self._instance, self._count, self._worth = instance, count, math.inf
        self._worth_of: dict[tuple[object, ...], float] = {}
        self._of: dict[Context, list[tuple[Family, Affine]]] = {}
        self._built: dict[tuple[int, int], tuple[Family, float] | None] = {}
        self.add(families)

    def add(self, families: Iterable[PricedFamily]) -> None:
        """Hear of more networks that there may be."""
        for context, family, worth in families:
            self._of.setdefault(context, []).append((family, worth))

    def floor(self, context: Context) -> float:
        """What the cheapest network of a context is worth with as few uplinks as it may have."""
        return min(
            float(worth.at(family, family.uplink_choices[0])) for family, worth in self._of[context]
        )

    def is_below(self, floor: Any) -> Any:
        """Whether a network is known that is worth less, by more than sums in another order may
        differ; of a number, or of each of an array.
        """
        return floor > self._worth + EQUAL * abs(self._worth)

    def lower(self, context: Context, uplinks: int) -> None:
        """Hear that so many uplinks serve all workloads in a context; networks beyond a limit do
        not count.
        """
        for family, worth in self._of[context]:
            enough = next((u for u in family.uplink_choices if u >= uplinks), None)
            # the affine price tells at once which networks cannot lower the ceiling; only others
            # need their bill
            if enough is not None and worth.at(family, enough) < self._worth:
                self._build(family, enough)

    def _build(self, family: Family, uplinks: int) -> tuple[Family, float] | None:
        """A network with its cables, and what it is worth; None where some cable reaches nowhere or
        it is beyond a limit.
        """
        key, kind = (id(family), uplinks), self._instance.objective.minimize
        if key not in self._built:
            [family_now] = repriced(self._instance, [family])
            found, self._built[key] = laid_within(self._instance, family_now, uplinks), None
            if found is not None:
                with_cables, cost = found
                self._built[key] = with_cables, cost.of(kind)
                self._found((*identity(with_cables), uplinks), cost.of(kind))
        return self._built[key]

    def _found(self, design: tuple[object, ...], worth: float) -> None:
        """Count a design among the cheapest if its value is one of the `count` least."""
        if worth < self._worth:
            self._worth_of[design] = min(worth, self._worth_of.get(design, math.inf))
            cheapest = nsmallest(self._count, self._worth_of.values())
            if len(cheapest) == self._count:
                self._worth = cheapest[-1]

    def laid(
        self, listed: Iterable[PricedFamily], table: Columns, check: Callable[[], None]
    ) -> Iterator[Family]:
        """The networks that may be among the cheapest with their cables: those whose bill is no
        more than that of the last of these, each with one number of uplinks.

        They are laid by rising lower bounds, until one is above what is known.
        """
        need = needs(table.columns, len(self._instance.workload))
        floors = list[tuple[float, int, int, Family]]()
        for number, (context, family, worth) in enumerate(listed):
            fewest = need.get(table.numbers[context], math.inf)
            uplinks = np.array([u for u in family.uplink_choices if u >= fewest], dtype=np.int64)
            values = np.broadcast_to(worth.at(family, uplinks), uplinks.shape)
            floors += [
                (float(values[at]), number, int(uplinks[at]), family)
                for at in np.flatnonzero(~self.is_below(values)).tolist()
            ]
        kept = list[tuple[int, int, float, Family]]()
        for floor, number, uplinks_here, family in sorted(floors, key=lambda row: row[:3]):
            if self.is_below(floor):
                break
            check()
            built = self._build(family, uplinks_here)
            if built is not None:
                kept.append((number, uplinks_here, built[1], built[0]))
        kept.sort(key=lambda row: row[:2])
        return (family for *_, value, family in kept if not self.is_below(value))


def up_to_cheapest(
    run: Run, instance: Instance, measures: tuple[ObjectiveKind, ...], ceiling: Cheapest
) -> tuple[list[PricedFamily], Columns]:
    """The networks of sites that may hold the cheapest ones, in the order of the instance's lists,
    and the mappings on them; where none serves all workloads within the limits, all that are in
    time and that no other beats.
    """
    space = Space(instance=instance, measures=measures, unlaid=True)
    networks = counted_networks(space)
    sites = list(space.all_sites())
    floors = [site_floor(space, *site) for site in sites]
    known = recalled_networks(run, instance, ("of sites", measures), dict[int, list[PricedFamily]])
    site_families: dict[int, list[PricedFamily]] = {}
    tables: list[Columns] = []
    for n in sorted(range(len(sites)), key=floors.__getitem__):
        if ceiling.is_below(floors[n]):
            break
        run.check_clock()
        if not _is_quick(instance, space.nic_options, *sites[n]):
            continue
        started_s = run.elapsed_s()
        if n not in known:
            found = tuple(networks.families(space, *sites[n], run.check_clock))
            known[n] = priced(instance, found, measures)
        site_families[n] = known[n]
        ceiling.add(known[n])
        run.log.model_s += run.elapsed_s() - started_s
        of_site = tuple(one.family for one in known[n])
        tables.append(columns_of(run, instance, of_site, ceiling))
    listed = [one for n in sorted(site_families) for one in site_families[n]]
    return listed, _joint_table(tables)


def site_floor(space: Space, gpus: int, hb: HbDomain, domains: int) -> float:
    """What GPUs, HB domains and the cheapest NICs of a site are worth; several domains have all
    their NICs.
    """
    instance, nic_options = space.instance, space.nic_options
    kind, bought = instance.objective.minimize, domains + space.idle_domains(gpus, hb, domains)
    domain_bill = domain_lines(instance.cluster.gpu, hb, gpus, bought * hb.size)
    suitable = (
        [nic_option for nic_option in nic_options if nic_option.fits(hb.size, gpus, domains)]
        if domains > 1
        else []
    )
    # idle GPUs of a domain have their NICs as well: a box is bought with all of them
    nics = (
        (nic_option.nic, bought * (hb.size * nic_option.nics_per_gpu // nic_option.gpus_per_nic))
        for nic_option in suitable
    )
    with_nics = [
        [*domain_bill, line("nic", nic.name, count, nic.usd, nic.w)] for nic, count in nics
    ] or [domain_bill]
    return min(
        total(instance.objective, included_lines(instance, lines)).of(kind) for lines in with_nics
    )


def _is_quick(
    instance: Instance, nic_options: Sequence[NicOption], gpus: int, hb: HbDomain, domains: int
) -> bool:
    """Whether every workload has a mapping that is in time where each GPU has all that NICs can
    give it.
    """
    suitable = [nic_option for nic_option in nic_options if nic_option.fits(hb.size, gpus, domains)]
    for gpus_per_nic in sorted(
        {nic_option.gpus_per_nic for nic_option in suitable} if domains > 1 else {1}
    ):
        site = domains_filled(gpus, hb, domains, gpus_per_nic)
        byte_s = max(
            (
                nic_option.byte_s
                for nic_option in suitable
                if domains == 1 or nic_option.gpus_per_nic == gpus_per_nic
            ),
            default=0.0,
        )
        flat = NicLayout(domains=site.domains, span=site.domains)
        context = Context(
            site=site, byte_s=byte_s, layout=flat, discipline=instance.network.discipline
        )
        if byte_s and all(
            len(pool)
            for pool, _ in pools_of(instance, [context], feasible_by_size(instance, (context,)))
        ):
            return True
    return False


def columns_of(
    run: Run, instance: Instance, families: tuple[Family, ...], ceiling: Cheapest | None
) -> Columns:
    """The mappings on some networks, none on more of them than can hold the cheapest."""
    started_s = run.elapsed_s()
    table = columns(
        instance,
        families,
        lambda site: run.tell("columns", str(site)),
        run.check_clock,
        ceiling,
    )
    run.log.columns_s += run.elapsed_s() - started_s
    return table


def _joint_table(tables: Sequence[Columns]) -> Columns:
    """The mappings on the networks of several sites."""
    offsets = [0]
    for table in tables:
        offsets.append(offsets[-1] + len(table.contexts))
    return Columns(
        contexts=tuple(context for table in tables for context in table.contexts),
        columns=tuple(
            replace(column, context=column.context + start)
            for start, table in zip(offsets, tables, strict=False)
            for column in table.columns
        ),
        pools={site: pool for table in tables for site, pool in table.pools.items()},
        feasible={size: source for table in tables for size, source in table.feasible.items()},
        enumerated=sum(table.enumerated for table in tables),
        kept=sum(table.kept for table in tables),
        gated=dict(sum((Counter(table.gated) for table in tables), Counter[str]())),
    )


def shared_plan(run: Run) -> Plan:
    """One network that every workload has in turn."""
    field = field_of(run, run.instance, whole=run.instance.solver.top > 1)
    if not isinstance(field, Field):
        return infeasible(run, field)
    run.tell("solve", f"solving formulation {run.formulation!r} with {run.backend.name}")
    result = searched(run, field)
    if result.outcome == "infeasible":
        return infeasible(
            run, partial(explain.over_limits, field.instance, field.families, field.table)
        )
    if result.found is None:
        return unknown(run, result.outcome, result.bound)
    best = written_out(run.instance, result.found, result.bound, field.table)
    reason, runners = ending(run, result.outcome, best.objective), dict[str, Any]()
    if run.instance.solver.top > 1 and reason == "optimal":
        alternatives, stop = runners_up(run, field, result.found)
        runners = {"alternatives": alternatives, "alternatives_stop": stop}
    parts = (one_network(best.cost, best.workloads, design=best.design),)
    return answered(run, reason, best.objective, cost=best.cost, parts=parts, **runners)


def runners_up(
    run: Run, field: Field, winner: Candidate
) -> tuple[tuple[Alternative, ...], AlternativesStop]:
    """The `solver.top - 1` best designs after the `winner`, each proven, and why there are no more.

    The family of the `winner` is on the field.
    """
    number, design, found = run.instance.solver.top - 1, winner, list[Alternative]()
    try:
        while len(found) < number:
            remainder = tuple(without(field.families, design.family, design.uplinks))
            field = replace(field, families=viable(field.instance, remainder, field.table))
            run.tell("solve", f"runner-up {len(found) + 1} of {number}")
            result = searched(run, field) if field.families else None
            if result is None or result.outcome == "infeasible":
                return tuple(found), "no other design"
            if result.found is None:
                return tuple(found), _stop_reason(result.outcome)
            alternative = written_out(run.instance, result.found, result.bound, field.table)
            stop = ending(run, result.outcome, alternative.objective)
            if stop != "optimal":
                return tuple(found), _stop_reason(stop)
            found.append(alternative)
            design = result.found
    except KeyboardInterrupt:
        run.on_progress = None
        return tuple(found), "interrupted"
    return tuple(found), "all found"


def _stop_reason(stop: str) -> Literal["time limit", "interrupted", "not proven"]:
    """Why a search ended without a proof."""
    return (
        "time limit"
        if stop == "time limit"
        else "interrupted"
        if stop == "interrupted"
        else "not proven"
    )


def without(families: Iterable[Family], design: Family, uplinks: int) -> Iterator[Family]:
    """The families less one design, under whatever name it goes."""
    network = identity(design)
    for family in families:
        if uplinks not in family.uplink_choices or identity(family) != network:
            yield family
            continue
        choices, taken_at = family.uplink_choices, family.uplink_choices.index(uplinks)
        for part in (choices[:taken_at], choices[taken_at + 1 :]):
            if part:
                yield replace(family, uplink_choices=part)


def identity(family: Family) -> tuple[object, ...]:
    """What two families share that build the same with the same uplinks.

    A single domain buys no network, whatever is named; on one tier fabrics of as many planes are
    one and the same.
    """
    place = (family.gpus, family.hb.name, family.domains)
    if family.tiers == 0:
        return place
    parts = (
        *place,
        family.nic.name,
        family.nics_per_gpu,
        family.gpus_per_nic,
        *(switch.name for switch in family.switches),
        family.planes,
        family.nic_planes,
    )
    return parts if family.tiers == 1 else (*parts, family.fabric, family.down, family.pods)


@dataclass(frozen=True, kw_only=True, eq=False)
class Field:
    """Families that can serve every workload of an instance, at least one, and the mappings on
    them.
    """

    instance: Instance
    families: tuple[Family, ...]
    table: Columns


def field_of(run: Run, instance: Instance, *, whole: bool = True) -> Field | Why:
    """The field of an instance, or why nothing is on it; optics are compared by what the run's
    question depends on.

    Parameters
    ----------
    whole
        Whether every network that serves is on it, or those alone that may be the cheapest; of
        networks whose cables lengths choose those that may be among the `solver.top` cheapest.
    """
    measures = measures_of(run.instance)
    # with interruptions, or in turn, the cheapest network that columns find to serve may still be
    # too slow, and floors of sites know nothing of units that stand
    in_all_days = instance.availability is not None or instance.limits.train_days_total is not None
    network = instance.network
    by_length = network.cables == "hall"
    all_count = in_all_days or instance.stands is not None or (whole and not by_length)
    ceiling = Cheapest(instance, count=instance.solver.top if whole else 1)
    every: list[PricedFamily] = []
    serving: tuple[Family, ...] = ()
    bounded = network.domain_fill != "even" or network.tier_switches == "any"
    if not all_count and (bounded or by_length):
        every, table = up_to_cheapest(run, instance, measures, ceiling)
        candidates = tuple(one.family for one in every)
        serving = viable(instance, candidates, table)
        if not by_length:
            serving = tuple(repriced(instance, serving))
    if not serving:
        started_s = run.elapsed_s()
        if all_count and not by_length:
            candidates = recalled_networks(
                run, instance, measures, lambda: tuple(run.in_time(families(instance, measures)))
            )
        else:
            every = recalled_networks(
                run, instance, ("priced", measures), lambda: _priced_now(run, instance, measures)
            )
            candidates = tuple(one.family for one in every)
        run.log.model_s += run.elapsed_s() - started_s
        if not candidates:
            return partial(explain.no_family, instance, may_own_ends=not run.instance.same_ends)
        run.tell("columns", counted(len(candidates), "network family"))
        known = None if all_count else Cheapest(instance, every)
        table = columns_of(run, instance, candidates, known)
        serving = viable(instance, candidates, table)
    run.log.families, run.log.table = len(candidates), table
    run.tell(
        "build",
        f"{counted(table.enumerated, 'mapping')} enumerated, {table.kept:,} kept,"
        f" {counted(len(serving), 'network family')} within every time bound",
    )
    if not serving:
        return lambda: (
            *explain.no_design(instance, candidates, table, run.check_clock),
            *explain.beyond_limits(instance, candidates),
        )
    timely = in_days(instance, serving, table, run.check_clock)
    if not timely:
        return partial(explain.too_many_days, instance, serving, table, run.check_clock)
    if by_length:
        if in_all_days:
            every = [PricedFamily.of(instance, family) for family in timely]
        with_cables = tuple(ceiling.laid(every, table, run.check_clock))
        if not with_cables:
            return partial(explain.over_limits, instance, timely, table)
        timely = with_cables
    return Field(instance=instance, families=timely, table=table)


def _priced_now(
    run: Run, instance: Instance, measures: tuple[ObjectiveKind, ...]
) -> list[PricedFamily]:
    """Every family, with its products at the prices of an instance."""
    space = Space(instance=instance, measures=measures, unlaid=True)
    listed = list(every_family(space, space.all_sites(), run.check_clock))
    current = repriced(instance, (one.family for one in listed))
    return [one._replace(family=family) for one, family in zip(listed, current, strict=True)]


def searched(run: Run, field: Field) -> Drive[Candidate]:
    """Search a field for its cheapest network."""
    result = search(
        field.instance,
        assemble(field.instance, field.families, field.table),
        field.table,
        run.backend,
        deadline=run.deadline,
        on_standing=run.tell_standing,
    )
    run.log.searches.append(result)
    return result


def search(
    instance: Instance,
    problem: SharedProblem,
    table: Columns,
    backend: Backend,
    *,
    deadline: float,
    on_standing: OnStanding | None = None,
) -> Drive[Candidate]:
    """The cheapest network, by the formulation of the instance; its search starts from what a pass
    over families finds.

    Parameters
    ----------
    deadline
        When to stop, on the clock of `time.perf_counter`.
    on_standing
        Hears how far the search is, in objective units.
    """
    result = drive(
        [subproblem(instance, problem, table)],
        backend,
        gap=instance.solver.gap,
        deadline=deadline,
        on_standing=on_standing,
    )
    if result.found is None or result.outcome != "optimal":
        return result
    with contextlib.suppress(KeyboardInterrupt):  # the one found is as good a proof
        return replace(result, found=fastest_of_equal_cost(instance, problem, table, result.found))
    return result


def subproblem(instance: Instance, problem: SharedProblem, table: Columns) -> Subproblem[Candidate]:
    """The shared network, whose search starts from what a pass over families finds."""
    design = cheapest_design(problem.data)

    def build_network() -> tuple[pyo.ConcreteModel, float]:
        model = build(problem.data, NETWORK)
        if design is not None:
            set_design(model, *design)
        return model, problem.scale

    def read(model: pyo.ConcreteModel) -> Decided[Candidate] | None:
        candidate = _cut_off(instance, problem, table, model)
        if candidate is None:
            return None
        return Decided(choice=candidate, value=candidate.cost.of(instance.objective.minimize))

    def closer(value: float) -> Subproblem[Candidate] | None:
        nearer = in_units_of(problem, value)
        return None if nearer is None else subproblem(instance, nearer, table)

    return Subproblem(build=build_network, read=read, starts=design is not None, closer=closer)


def _cut_off(
    instance: Instance, problem: SharedProblem, table: Columns, model: pyo.ConcreteModel
) -> Candidate | None:
    """What the rounded decisions amount to; None, with cuts added, where they break a bound or a
    limit.
    """
    f = max(model.F, key=lambda i: model.y[i].value)
    family = problem.families[f]
    candidate = recomputed(instance, table, family, family.most_offered(round(model.u[f].value)))
    context = context_of(candidate.family)
    late_workloads = {w for w, share in enumerate(candidate.shares) if share > 1}
    for c, column in enumerate(problem.columns):
        if column.workload in late_workloads and table.contexts[column.context] == context:
            add_uplink_cut(model, c, int(next_even(candidate.uplinks + 1, context.bundle)))
    over = not within_limits(instance, candidate.family, candidate.cost)
    if over:
        add_limit_cut(model, f, candidate.uplinks - 1)
    return None if late_workloads or over else candidate


def field_programs(field: Field | Why) -> NamedPrograms:
    """One program of one network for each formulation of it."""
    if not isinstance(field, Field):
        return no_programs
    problem = assemble(field.instance, field.families, field.table)
    return lambda name: iter(
        [Program(model=build(problem.data, FORMULATIONS[name]), unit=problem.scale)]
    )


IN_TURN = Method(
    plan=shared_plan,
    programs=lambda run: field_programs(field_of(run, run.instance)),
    formulations=lambda _: tuple(FORMULATIONS),
)
