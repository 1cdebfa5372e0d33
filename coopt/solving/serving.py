"""The networks that serve all workloads of an instance, and the search among them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from coopt.columns.context import Context, DomainSet, context_of
from coopt.columns.table import Columns, columns
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.optics import measures_of
from coopt.network.parts import Affine, cost_of, price, within_limits
from coopt.network.space import families, unbeaten
from coopt.plan.schema import Plan
from coopt.solving import explain
from coopt.solving.arrays import assemble, viable
from coopt.solving.candidates import Candidate
from coopt.solving.days import in_days
from coopt.solving.driver import Drive
from coopt.solving.loop import search
from coopt.solving.outcome import infeasible, unknown
from coopt.solving.runs import Run

ROUNDING = 1e-9  # of what a network is worth


@dataclass(frozen=True, kw_only=True, eq=False)
class Field:
    """Families that can serve every workload of an instance, at least one, and the mappings on them."""

    instance: Instance
    families: tuple[Family, ...]
    table: Columns


class Cheapest:
    """What the cheapest network found so far is worth, in the unit of the objective: a ceiling of columns."""

    def __init__(self, instance: Instance, every: tuple[Family, ...]):
        self._instance, self._worth = instance, math.inf
        self._of: dict[Context, list[tuple[Family, Affine]]] = {}
        for family in every:
            self._of.setdefault(context_of(family), []).append((family, self._price(family)))

    def _price(self, family: Family) -> Affine:
        return price(self._instance, family, self._instance.objective.minimize)

    def floor(self, context: Context) -> float:
        """What the cheapest network of a context is worth with as few uplinks as it may have."""
        return min(float(worth.at(family, family.uplink_choices[0])) for family, worth in self._of[context])

    def is_below(self, floor: float) -> bool:
        """Whether a network is known that is worth less, by more than sums in another order may differ."""
        return floor > self._worth + ROUNDING * abs(self._worth)

    def lower(self, context: Context, uplinks: int) -> None:
        """Hear that so many uplinks serve all workloads in a context; networks beyond a limit do not count."""
        for family, worth in self._of[context]:
            enough = next((u for u in family.uplink_choices if u >= uplinks), None)
            if enough is not None and worth.at(family, enough) < self._worth:
                cost = cost_of(self._instance, family, enough)
                if within_limits(self._instance, family, cost):
                    self._worth = min(self._worth, cost.of(self._instance.objective.minimize))


def field_of(run: Run, instance: Instance, *, whole: bool = True) -> Field | tuple[str, ...]:
    """The field of an instance, or why nothing is on it; optics are compared by what the run's question depends on.

    Parameters
    ----------
    whole
        Whether every network that serves is on it, or those alone that may be the cheapest.
    """
    before = run.elapsed_s()
    measures = measures_of(run.instance)
    every = tuple(run.in_time(families(instance, measures)))
    if not whole and instance.network.tier_switches == "any":
        every = tuple(unbeaten(instance, every, measures))
    run.log.families, run.log.model_s = len(every), run.log.model_s + run.elapsed_s() - before
    if not every:
        return explain.no_family(instance, may_own_ends=not run.instance.same_ends)
    run.tell("columns", f"{len(every):,} network families")
    # with interruptions the cheapest network that columns find to serve may still be too slow
    all_count = whole or instance.availability is not None
    table = _columns(run, instance, every, None if all_count else Cheapest(instance, every))
    serving = viable(instance, every, table)
    run.tell(
        "build",
        f"{table.enumerated:,} mappings enumerated, {table.kept:,} kept, "
        f"{len(serving):,} families can serve every workload",
    )
    if not serving:
        return (*explain.no_design(instance, every, table), *explain.beyond_limits(instance, every))
    standing = in_days(instance, serving, table, run.check_clock)
    if not standing:
        return explain.interrupted(instance, serving, table)
    return Field(instance=instance, families=standing, table=table)


def _columns(run: Run, instance: Instance, every: tuple[Family, ...], ceiling: Cheapest | None) -> Columns:
    before = run.elapsed_s()

    def on_site(site: DomainSet) -> None:
        run.tell("columns", f"{site.gpus:,} GPUs in {site.hb}, {site.active} active in each")

    table = columns(instance, every, on_site, run.check_clock, ceiling)
    run.log.table, run.log.columns_s = table, run.log.columns_s + run.elapsed_s() - before
    return table


def searched(run: Run, field: Field) -> Drive[Candidate]:
    """Search a field for its cheapest network."""
    problem = assemble(field.instance, field.families, field.table)
    result = search(
        field.instance, problem, field.table, run.backend, deadline=run.deadline, on_standing=run.tell_standing
    )
    run.log.searches.append(result)
    return result


def nothing_found(run: Run, field: Field, result: Drive[Candidate]) -> Plan:
    """The answer when a search of a field found no network."""
    outcome = result.outcome
    if outcome == "infeasible":
        return infeasible(run, explain.over_limits(field.instance, field.families, field.table))
    return unknown(run, outcome, result.bound)
