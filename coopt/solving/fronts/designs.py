r"""Every design of an instance with its pace and its cost, and those of them that no other design
beats in both.

The best one by an objective that weighs its bill by the time of training is found among all of
them.

The time of training, dollars for each token and the carbon of a training are no sums of a bill, and
no linear ones of decisions: they are a sum of the bill times the time that training takes. Both are
known of every design, as for the front of cost against time, so that the least product is read off
the list. With t the seconds of an iteration on the calendar, interruptions included, and T tokens
in each, of which a large batch takes more for the same training,

.. math:: t, \qquad \frac{\mathrm{TCO} \cdot t}{T \cdot \mathrm{years}}, \qquad
    P \cdot \mathrm{PUE} \cdot t \cdot \mathrm{iterations} \cdot \mathrm{kg/kWh}
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from operator import itemgetter, neg
from typing import Any

import highspy
import numpy as np
import pyomo.core as pyo

from coopt.columns.table import Columns
from coopt.columns.times import bound_shares, unbounded
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance
from coopt.instance.texts import counted
from coopt.network.family import Family
from coopt.network.laying import laid_within, least_resources
from coopt.network.parts import HOURS_PER_YEAR, Affine, cost_of, price, within_limits
from coopt.network.space import families
from coopt.perf.mapping import Floats, Ints
from coopt.perf.uptime import HOUR_S
from coopt.plan.couplings import one_network
from coopt.plan.schema import Alternative, Plan
from coopt.solving.arrays import SharedProblem
from coopt.solving.days import ROUNDED, allowed_s, interrupted_paces
from coopt.solving.driver import answered, claim_of, infeasible, recomputed, unknown, written_out
from coopt.solving.highs import linear_program, loaded, options, run_apart
from coopt.solving.runs import Method, Run, no_programs
from coopt.solving.shared import shared_plan
from formulations.choice_data import ChoiceData, Product
from formulations.network import FRONT, build, spines_at

J_PER_KWH = 3.6e6
TIES = 5e-10  # of the least worth: designs this close are worth the same


def weight_of(instance: Instance) -> float:
    """What the objective is of a bill of 1 (USD or W) and an iteration of 1 s on the calendar."""
    objective, (workload,) = instance.objective, instance.workload
    if objective.minimize == "time":
        return 1.0
    if objective.minimize == "usd_per_token":
        return workload.tokens_for_one / (
            workload.tokens_per_iteration * objective.years * HOURS_PER_YEAR * HOUR_S
        )
    assert objective.kg_co2_per_kwh is not None, "the instance refuses carbon without it"
    return objective.pue * workload.iterations * objective.kg_co2_per_kwh / J_PER_KWH


def timed_plan(run: Run) -> Plan:
    """One network for one workload, the best by an objective that counts time."""
    instance, run.formulation = run.instance, "choice"
    objective = instance.objective.model_copy(update={"minimize": instance.objective.billed})
    billed = instance.model_copy(update={"objective": objective})
    all_families = tuple(run.in_time(families(billed, unlaid=True)))
    run.tell("columns", counted(len(all_families), "network family"))
    run.log.families = len(all_families)
    run.log.table = table = unbounded(billed, all_families, lambda site: run.check_clock())
    designs = all_designs(billed, all_families, table, run.check_clock)
    in_bound = () if designs is None else np.flatnonzero(designs.pace <= ROUNDED)
    if designs is None or not len(in_bound):
        return infeasible(run, lambda: shared_plan(replace(run, instance=billed)).explanation)
    run.log.columns_s = run.elapsed_s()
    design = _best_design(run, designs, np.asarray(in_bound))
    if isinstance(design, str):
        return unknown(run, design)
    run.tell("build", f"{counted(len(designs.pace), 'design')} compared")
    answer = designs.written_out(design, billed, float(designs.value[design]), table)
    value = weight_of(instance) * float(designs.pace[design]) * instance.workload[0].bound_s
    value *= (
        1.0 if instance.objective.minimize == "time" else answer.cost.of(instance.objective.billed)
    )
    claim = claim_of(instance.objective.minimize, value, value)
    parts = (one_network(answer.cost, answer.workloads, design=answer.design),)
    return answered(run, "optimal", claim, cost=answer.cost, parts=parts)


def _laid_front(
    instance: Instance, designs: PacedDesigns, check: Callable[[], None]
) -> PacedDesigns | None:
    """The designs that no other may beat, with their cables, each a family of its own; None where
    no cable is long enough.

    They are laid by rising lower bounds on their value: all but those that are worth more than one
    of these that is no slower. `check` is called before each.
    """
    kind = instance.objective.minimize
    # laid designs that no other beats, by rising pace and falling value
    paces, least_values = list[float](), list[float]()
    laid_designs = list[tuple[int, Family, float]]()
    for at in np.argsort(designs.value, kind="stable").tolist():
        pace, uplinks = float(designs.pace[at]), int(designs.uplinks[at])
        first = bisect_right(paces, pace)
        least = least_values[first - 1] if first else math.inf
        if designs.value[at] > least * (1.0 + EQUAL):
            continue
        check()
        found = laid_within(instance, designs.families[designs.family[at]], uplinks)
        if found is None:
            continue
        value = found[1].of(kind)
        laid_designs.append((at, found[0], value))
        if value < least:
            last = bisect_left(least_values, -value, lo=first, key=neg)
            paces[first:last], least_values[first:last] = [pace], [value]
    if not laid_designs:
        return None
    numbers, laid_families, values = zip(*sorted(laid_designs, key=itemgetter(0)), strict=True)
    return PacedDesigns(
        families=laid_families,
        prices=tuple(price(instance, family, kind) for family in laid_families),
        family=np.arange(len(numbers)),
        uplinks=designs.uplinks[list(numbers)],
        pace=designs.pace[list(numbers)],
        value=np.array(values),
    )


def _best_design(run: Run, designs: PacedDesigns, in_bound: Ints) -> int | str:
    """The design of least worth of those within the bound; of equal ones the cheapest, then the
    fastest. Why the search ended where it found none.

    A design that another one beats in pace and value is worth no less, and is no option of the
    program.
    """
    from coopt.solving.fleet.search import search_partition

    pace, value = designs.pace[in_bound], designs.value[in_bound]
    worth = pace if run.instance.objective.minimize == "time" else pace * value
    front = np.intersect1d(in_bound, designs.front(), return_indices=True)[1]
    result = search_partition(
        _one_of(worth[front]), backend=run.backend, deadline=run.deadline, on_standing=None
    )
    run.log.searches.append(result)
    if result.found is None:
        return result.outcome
    ties = np.flatnonzero(worth <= worth[front[result.found[0]]] * (1.0 + TIES))
    return int(in_bound[ties[np.lexsort((pace[ties], value[ties]))[0]]])


def _one_of(worth: Floats) -> ChoiceData:
    """Options for the one network, by what each is worth."""
    nothing = np.zeros(len(worth))
    return ChoiceData(
        workloads=1,
        workload=np.zeros(len(worth), dtype=np.int64),
        usd=nothing,
        opex=worth,
        quantity=nothing[:, None],
        products=(Product(name="network", start=np.zeros(1), usd=np.zeros(1)),),
    )


@dataclass(frozen=True, kw_only=True)
class PacedDesigns:
    """Designs within the limits that run every workload, one entry each, families in turn and
    uplinks rising.

    `families` have only the uplinks that limits leave them, and `prices` what they are worth.
    `value` is the objective (USD or W), up to rounding.
    """

    families: tuple[Family, ...]
    prices: tuple[Affine, ...]
    family: Ints
    uplinks: Ints
    pace: Floats
    value: Floats

    def fewest_uplinks(self, pace: float) -> Ints:
        """The fewest uplinks with which each family keeps a pace, one more than its most where it
        cannot; (F,).
        """
        # pace never rises with uplinks, so that the designs of a family that are too slow come
        # first
        ends = np.searchsorted(self.family, np.arange(len(self.families) + 1))
        first_design = ends[:-1] + np.add.reduceat(self.pace > pace, ends[:-1], dtype=np.int64)
        last_design = ends[1:] - 1
        return np.where(
            first_design > last_design,
            self.uplinks[last_design] + 1,
            self.uplinks[np.minimum(first_design, last_design)],
        )

    def written_out(
        self, design: int, question: Instance, bound: float, table: Columns
    ) -> Alternative:
        """A design with the bounds of a question, and a lower bound on what it asks for."""
        family, uplinks = self.families[self.family[design]], int(self.uplinks[design])
        answer = written_out(question, recomputed(question, table, family, uplinks), bound, table)
        # pools without a bound on time do not know that of the question
        runs = tuple(
            run.model_copy(update={"bound_s": allowed_s(question, family, uplinks, workload, run)})
            for run, workload in zip(answer.workloads, question.workload, strict=True)
        )
        return answer.model_copy(update={"workloads": runs})

    def least_value(self, pace: float) -> float:
        """The least cost of all designs that keep a pace (objective units); one does."""
        return float(self.value[self.pace <= pace].min())

    def front(self) -> Ints:
        """The designs that no other beats, by rising pace: each is clearly cheaper than all that
        are as fast.
        """
        order = np.lexsort((self.value, self.pace))
        least_values = np.minimum.accumulate(self.value[order])
        is_cheaper = np.ones(len(order), dtype=np.bool_)
        is_cheaper[1:] = least_values[1:] < least_values[:-1] * (1.0 - EQUAL)
        candidates = order[is_cheaper]
        # among equal paces the last is the cheapest
        is_slower = np.ones(len(candidates), dtype=np.bool_)
        is_slower[:-1] = self.pace[candidates[1:]] > self.pace[candidates[:-1]] * (1.0 + EQUAL)
        return np.asarray(candidates[is_slower], dtype=np.int64)


def all_designs(
    instance: Instance,
    families: tuple[Family, ...],
    table: Columns,
    check: Callable[[], None],
    over: Collection[str] | None = None,
) -> PacedDesigns | None:
    """The designs of all families, of those whose cables lengths choose the ones that no other may
    beat; None where no design keeps the limits and runs every workload.

    Parameters
    ----------
    check
        Called between families; raises where time is up.
    over
        Names of the workloads whose pace counts, all if left out; the others keep their bounds.
    """
    survivors: list[Family] = []
    prices: list[Affine] = []
    pace: list[Floats] = []
    value: list[Floats] = []
    paced: Iterable[tuple[Family, Floats]]
    if instance.availability:
        paced = interrupted_paces(instance, families, table, check, over)
    else:
        paced = zip(families, bound_shares(instance, families, table, over), strict=True)
    for family, design_paces in paced:
        choices_in_limits = _within_limits(instance, family)
        is_possible = np.isfinite(design_paces[: len(choices_in_limits)])
        choices = tuple(
            uplinks for uplinks, runs in zip(choices_in_limits, is_possible, strict=True) if runs
        )
        if choices:
            check()
            survivors.append(replace(family, uplink_choices=choices))
            pace.append(design_paces[: len(choices_in_limits)][is_possible])
            prices.append(price(instance, survivors[-1], instance.objective.minimize))
            values = prices[-1].at(family, _uplinks(survivors[-1]))
            value.append(np.asarray(values, dtype=np.float64))
    if not survivors:
        return None
    designs = PacedDesigns(
        families=tuple(survivors),
        prices=tuple(prices),
        family=np.repeat(
            np.arange(len(survivors)), [len(family.uplink_choices) for family in survivors]
        ),
        uplinks=np.concatenate([_uplinks(family) for family in survivors]),
        pace=np.concatenate(pace),
        value=np.concatenate(value),
    )
    by_length = instance.network.cables == "hall"
    return _laid_front(instance, designs, check) if by_length else designs


def _within_limits(instance: Instance, family: Family) -> tuple[int, ...]:
    """The uplinks with which a family keeps the limits: use never falls with uplinks, so these are
    the fewest.
    """
    choices, u = family.uplink_choices, _uplinks(family)
    uses = least_resources(instance, family)
    for name, use in uses.items():
        choices = choices[
            : int((use.at(family, u) <= getattr(instance.limits, name) * (1.0 + EQUAL)).sum())
        ]
    # the arrays leave room for rounding, the bill does not: it decides about the last choices
    # where lengths are still to choose cables it is not known
    while (
        uses
        and not family.choices
        and choices
        and not within_limits(instance, family, cost_of(instance, family, choices[-1]))
    ):
        choices = choices[:-1]
    return choices


def _uplinks(family: Family) -> Any:
    """The choices as an array, to be put where counts take a number."""
    return np.array(family.uplink_choices)


class Certifier:
    """The formulation `front` without its whole numbers, which its optimum does not need.

    From pace to pace only the fewest uplinks of families change, and which of them keep the pace at
    all: the simplex method goes on from the last optimum.
    """

    def __init__(self, problem: SharedProblem) -> None:
        self._problem = problem
        model = build(problem.data, FRONT)
        lp, variables = linear_program(model)
        lp.integrality_ = []
        rows = {
            id(row): n
            for n, row in enumerate(model.component_data_objects(pyo.Constraint, active=True))
        }
        columns = {id(variable): n for n, variable in enumerate(variables)}
        self._built = np.array([columns[id(model.y[f])] for f in model.F], dtype=np.int32)
        self._uplink_rows = [rows[id(model.least_uplinks[f])] for f in model.F]
        self._spine_rows = {f: rows[id(row)] for f, row in model.least_spines.items()}
        self._least = problem.data.min_uplinks.copy()
        self._highs = loaded(lp, options(gap=0.0, threads=1))
        self.solves = 0

    def bound(self, fewest: Ints) -> float:
        """The least cost (objective units) of all families, each with at least so many uplinks.

        Parameters
        ----------
        fewest
            Shape (F,); a family that has not as many is not built. One has.
        """
        is_possible = fewest <= self._problem.data.max_uplinks
        moved_families = np.flatnonzero(is_possible & (fewest != self._least))
        for f in moved_families.tolist():
            self._demand(f, int(fewest[f]))
        self._least[moved_families] = fewest[moved_families]
        lower_bounds, upper_bounds = np.zeros(len(is_possible)), is_possible.astype(np.float64)
        self._highs.changeColsBounds(len(is_possible), self._built, lower_bounds, upper_bounds)
        run_apart(self._highs)
        self.solves += 1
        status = self._highs.getModelStatus()
        assert status == highspy.HighsModelStatus.kOptimal, self._highs.modelStatusToString(status)
        return float(self._highs.getInfo().objective_function_value) * self._problem.scale

    def _demand(self, f: int, uplinks: int) -> None:
        """N2 and N6 of one family, which HiGHS holds as `uplinks y - u <= 0` and `spines y - s <=
        0`.
        """
        column = int(self._built[f])
        self._highs.changeCoeff(self._uplink_rows[f], column, float(uplinks))
        if f in self._spine_rows:
            spines = spines_at(self._problem.data, f, uplinks)
            self._highs.changeCoeff(self._spine_rows[f], column, float(spines))


TIMED = Method(plan=timed_plan, programs=lambda _: no_programs, formulations=lambda _: ())
