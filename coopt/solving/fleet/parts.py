r"""The search cut into parts: one for every set of products that may be in use at the same time.

Of a part it is proven by cases that no choice of it is worth less than a value, without the word of
a solver.

Multipliers of a linear program bound each case from below whatever the solver's tolerances. Sums
are of floats: every addend is taken short by more than the rounding of all sums that it is in. That
is far less than values of one choice may differ by when it is billed in another order, so that a
bound that only rounding keeps from the best value reaches it. What multipliers leave open is billed
choice by choice, as answers are.

Where few products of a kind may be in use, a choice of islands uses some set of them. For each set
the options that use nothing else are a problem of their own, without products to count, and every
choice lies in one of them. They are small, their quantities vary little, so that few brackets are
left, and most have a bound above the best choice known.

Brackets that no choice of islands can reach, left out before the search.

Over all choices the quantity of a product lies between :math:`q^-` and :math:`q^+`, the sums over
workloads of the least and the most that one of their options holds. A bracket b is left out

- below: when the next one begins at :math:`t_{b+1} \le q^-`. Every quantity is in a later bracket,
  whose bill is no
  more: for prices of all units by the lower price, for incremental ones because the bill is
  concave. What the later bracket's bill has beside its price times its quantity, :math:`g`, is then
  due in any case;
- above: when :math:`t_b \ge q^+`, for incremental prices; with prices for all units, spare units
  may make it worth
  reaching, so it is left out only when :math:`p_b t_b` is no less than the bill of :math:`q^+`
  without it. Bills of less are no more, so nobody would buy that many.

So the bill of every quantity in between stays the same, and the relaxation gets tighter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, product
from math import comb, prod
from typing import NamedTuple

import numpy as np

from coopt.columns.pools import Slopes, needed_options
from coopt.solving.highs import LARGEST, NEAR
from coopt.solving.proofs.tree import Prover
from formulations.choice_data import (
    Bools,
    ChoiceData,
    Ints,
    LimitedUse,
    Product,
)

# of a limit in a program, which a solver may miss by as much; what is found is held to the limit
# itself
SLACK = 1e-9

HAIR = 5e-13
"""By which share a choice has to be worth less than a value to be another one's: by less, both
round to it.
"""

ROUNDED = 2.0**-52
"""For each addend: twice what a sum of floats, or of their products, is off by at most, as a share
of its addends.
"""

SPARE = 8
"""Addends that every sum may have besides."""

COSTS = 2.0**-48
"""The rounding of an addend as a share of costs, where a value is a difference of two."""

WORK, FEWEST, MOST = 4_000, 20, 250
"""Cases times the options that each looks at: a few per cent of what it takes to list the options.
And how many cases these are at least, and at most.
"""

MOST_OPEN, MOST_BILLED = 500, 12
"""Options that are looked at on the way to the choices that a case leaves open, and choices that
are billed then.
"""


def narrowed(data: ChoiceData) -> ChoiceData:
    """The problem with those brackets only that some choice may buy in; every choice is worth what
    it was.
    """
    if data.scenarios:  # their prices belong to the brackets as they are
        return data
    of_first_workload = data.workload == 0
    usd, products = data.usd, []
    for p, good in enumerate(data.products):
        # The quantity of a chain of phases is no sum of one phase's options, so no range of it is
        # known.
        if len(data.following(p)) + len(data.chain(p)) > 2:  # it may be bought ahead of its phase
            products.append(good)
            continue
        min_units, max_units = _range(data, p)
        good, offset = _within(good, min_units, max_units)
        products.append(good)
        if offset:
            usd = usd + offset * of_first_workload  # workload 0 has one option, whichever it is
    return replace(data, usd=usd, products=tuple(products))


def _range(data: ChoiceData, p: int) -> tuple[float, float]:
    units = data.quantity[:, p]
    min_units = sum(units[data.workload == w].min() for w in range(data.workloads))
    return float(min_units), float(data.max_units(p).sum())


def _within(product: Product, min_units: float, max_units: float) -> tuple[Product, float]:
    """A product whose quantity lies in a range, and what its bill has beside."""
    first_bracket = 0 if product.rises else int(np.flatnonzero(product.start <= min_units)[-1])
    offset = float(product.offsets[first_bracket])
    start, usd = np.append(0.0, product.start[first_bracket + 1 :]), product.usd[first_bracket:]
    brackets = len(usd)
    while brackets > 1 and start[brackets - 1] >= max_units:
        if product.discount == "all-units" and usd[brackets - 1] * start[brackets - 1] < replace(
            product, start=start[: brackets - 1], usd=usd[: brackets - 1]
        ).bill(max_units):
            break
        brackets -= 1
    return replace(product, start=start[:brackets], usd=usd[:brackets]), offset


MOST_SETS = 2_000  # each is a search of its own; of more sets one search has all options


def product_sets(data: ChoiceData) -> list[Ints]:
    """The options of every largest set of products; none that lies within another, and none without
    a choice.

    With too many sets, or nothing to count, all options are the one part, and products are counted
    in the search.
    """
    if data.scenarios:  # bounds of single sets are those of one price, not of the largest regret
        return [np.arange(len(data.workload))]
    uses = np.stack([data.uses(p) for p in range(len(data.products))], axis=1)
    kinds = [(kind, [int(p) for p in kind.products if uses[:, p].any()]) for kind in data.kinds]
    kinds = [(kind, products) for kind, products in kinds if len(products) > kind.max_products]
    if (
        not kinds
        or prod(comb(len(products), kind.max_products) for kind, products in kinds) > MOST_SETS
    ):
        return [np.arange(len(data.workload))]
    sets: list[Bools] = []
    for selection in product(
        *(combinations(products, kind.max_products) for kind, products in kinds)
    ):
        # Fewer than may be used are never a set of their own: the options of a larger set contain
        # theirs.
        barred = [
            p
            for (_, products), members in zip(kinds, selection, strict=True)
            for p in products
            if p not in members
        ]
        sets.append(np.asarray(~uses[:, barred].any(axis=1)))
    complete = [rows for rows in sets if len(np.unique(data.workload[rows])) == data.workloads]
    return [np.flatnonzero(rows) for rows in _maximal(complete)]


def _maximal(sets: list[Bools]) -> Iterator[Bools]:
    """The sets that lie within no other; of equal ones the first."""
    maximal: list[Bools] = []
    for rows in sorted(sets, key=lambda member: -int(member.sum())):
        if not any((rows <= larger).all() for larger in maximal):
            maximal.append(rows)
            yield rows


def part_of(data: ChoiceData, rows: Ints) -> ChoiceData:
    """The problem of some options, with the brackets they may buy in and the kinds that still have
    to be counted.
    """
    part = subset(data, rows)
    is_used = [bool(part.uses(p).any()) for p in range(len(part.products))]
    kinds = tuple(
        kind for kind in part.kinds if sum(is_used[p] for p in kind.products) > kind.max_products
    )
    return narrowed(replace(part, kinds=kinds))


def subset(data: ChoiceData, rows: Ints) -> ChoiceData:
    """The problem with some of its options alone."""
    return replace(
        data,
        workload=data.workload[rows],
        usd=data.usd[rows],
        opex=data.opex[rows],
        quantity=data.quantity[rows],
        limits=tuple(replace(limit, use=limit.use[rows]) for limit in data.limits),
        cores=tuple(replace(core, up=core.up[rows]) for core in data.cores),
        scenarios=tuple(
            replace(scenario, usd=scenario.usd[rows], opex=scenario.opex[rows])
            for scenario in data.scenarios
        ),
    )


def useful(data: ChoiceData) -> Ints:
    """Positions of options that hold an optimum whenever there is one, by
    `coopt.columns.pools`.
    """
    counted_products = sorted({int(p) for kind in data.kinds for p in kind.products})
    slopes = slopes_of(data)
    uses = [data.opex, *(limit.use for limit in data.limits), *(core.up for core in data.cores)]
    # A dominated option has to be no better in any scenario, so each counts as a resource of its
    # own.
    for scenario in data.scenarios:
        uses += [scenario.usd, scenario.opex]
    useful_rows = [np.zeros(0, dtype=np.int64)]
    for w in range(data.workloads):
        rows = np.flatnonzero(data.workload == w)
        if len(rows):
            part = subset(data, rows)
            joins = (
                np.array([part.uses(p) for p in counted_products], dtype=bool)
                .reshape(len(counted_products), len(rows))
                .T
            )
            use_table = np.column_stack([use[rows] for use in uses])
            useful_rows.append(
                rows[needed_options(part.usd, use_table, part.quantity, joins, slopes)]
            )
    return np.concatenate(useful_rows)


def slopes_of(data: ChoiceData) -> Slopes:
    """How much bills rise with a unit of each product, at least and at most, at any prices that
    count: those of every scenario, and the listed ones, at which the budget holds.

    A unit needed in a phase may be bought in it or before, so it adds no more than the least first
    price so far. One less is needed: of the purchases so far the last can be smaller, which saves
    no less than the least last price.

    An option that dominates another one by these slopes may replace it in every choice: condition 3
    of `coopt.columns.pools` holds at each of the prices by itself, so that neither the
    objective of a scenario nor what the budget bounds grows. Slopes of the scenarios alone would
    not do: what is cheapest in one of them may be over the budget at the listed prices, where the
    option that it would have removed is not.
    """
    price_lists = data.products_by_scenario
    if data.budget is not None or not price_lists:
        price_lists = (*price_lists, data.products)
    min_usd, max_usd = np.full(len(data.products), np.inf), np.zeros(len(data.products))
    for products in price_lists:
        for p in range(len(products)):
            chain = data.chain(p)
            min_usd[p] = min(min_usd[p], *(products[q].slopes[0] for q in chain))
            max_usd[p] = max(max_usd[p], min(products[q].slopes[1] for q in chain))
    return Slopes(min_usd=min_usd, max_usd=max_usd)


def scaled(data: ChoiceData, worth: float = math.inf) -> tuple[ChoiceData, float]:
    """The problem in units near 1 - the dearest choice, limits, the most of each product - and the
    objective's unit.

    Where it is known what the best choice is `worth`, that is the unit in place of the dearest
    choice.
    """
    # Solvers have absolute tolerances: in units near 1 they are relative to what counts.
    usd = data.usd + data.quantity @ np.array([product.usd.max() for product in data.products])
    capex = float(data.largest(usd).sum()) / LARGEST or 1.0
    objective = (
        float(data.largest(np.abs(data.weight * usd) + np.abs(data.opex)).sum()) / LARGEST or 1.0
    )
    if math.isfinite(worth):
        objective = worth / LARGEST
        capex = objective / data.weight if data.weight else capex
    unit = _units(data)
    small = replace(
        data,
        usd=data.usd / capex,
        opex=data.opex / objective,
        quantity=data.quantity / np.array(unit),
        products=tuple(
            replace(p, start=p.start / u, usd=p.usd * u / capex)
            for p, u in zip(data.products, unit, strict=True)
        ),
        limits=tuple(_share(limit) for limit in data.limits),
        budget=None if data.budget is None else data.budget / capex * (1 + SLACK),
        weight=data.weight * capex / objective,
        cores=tuple(
            replace(core, quantity=core.quantity / unit[core.product], opex=core.opex / objective)
            for core in data.cores
        ),
        scenarios=tuple(
            replace(
                scenario,
                usd=scenario.usd / capex,
                opex=scenario.opex / objective,
                prices=tuple(usd * u / capex for usd, u in zip(scenario.prices, unit, strict=True)),
                core=tuple(opex / objective for opex in scenario.core),
                min_value=scenario.min_value / objective,
            )
            for scenario in data.scenarios
        ),
    )
    return small, objective


def cut_off(data: ChoiceData, worth: float) -> ChoiceData:
    """The problem with prices cut off far above what a choice is worth.

    Units are whole, so that a choice that pays one of these was no better and still is not;
    discounts keep their order.
    """
    ceiling = NEAR * worth
    opex = np.minimum(data.opex, ceiling)
    cores = tuple(replace(core, opex=min(core.opex, ceiling)) for core in data.cores)
    scenarios = tuple(
        replace(
            scenario,
            usd=np.minimum(scenario.usd, ceiling) if data.weight else scenario.usd,
            opex=np.minimum(scenario.opex, ceiling),
            prices=(
                tuple(np.minimum(usd, ceiling) for usd in scenario.prices)
                if data.weight
                else scenario.prices
            ),
            core=tuple(min(opex, ceiling) for opex in scenario.core),
        )
        for scenario in data.scenarios
    )
    if data.weight == 0 or data.scenarios:  # no price at which limits hold counts in the objective
        return replace(data, opex=opex, cores=cores, scenarios=scenarios)
    products = tuple(
        replace(product, usd=np.minimum(product.usd, ceiling / data.weight))
        for product in data.products
    )
    usd = np.minimum(data.usd, ceiling / data.weight)
    return replace(data, usd=usd, opex=opex, products=products, cores=cores)


def _units(data: ChoiceData) -> list[float]:
    """The most of each product over all phases, which share a unit since purchases of phases add
    up.
    """
    max_units = [float(data.max_units(p).sum()) for p in range(len(data.products))]
    return [
        max(sum(max_units[q] for q in {*data.following(data.chain(p)[-1])}), 1.0)
        for p in range(len(max_units))
    ]


def _share(limit: LimitedUse) -> LimitedUse:
    """A limit in units of its cap; a cap of nothing stays as it is."""
    if limit.cap <= 0:
        return limit
    return replace(
        limit,
        use=limit.use / limit.cap,
        core=tuple(use / limit.cap for use in limit.core),
        cap=1.0 + SLACK,
    )


class PartProof(NamedTuple):
    """A bound below every choice of a part, and a choice that is worth less than was to be shown,
    if one was found.
    """

    bound: float
    better: Ints | None


def prove_part(
    data: ChoiceData, value: float, deadline: float, worth_of: Callable[[Ints, float], float]
) -> PartProof:
    """Show that no choice is worth less than a value, as far as `WORK` and the time do.

    Parameters
    ----------
    value
        In units of the objective.
    deadline
        On the clock of `time.perf_counter`.
    worth_of
        What a choice, the option of each workload, is worth once it is billed; infinite where it is
        worth less than a floor and keeps not all limits, which are not looked at otherwise.
    """
    if data.scenarios and value <= 0:  # no regret is below 0
        return PartProof(bound=value, better=None)
    better: list[Ints] = []
    # A bound has to reach the value but for what one choice's value differs by when it is billed in
    # another order.
    floor = (
        value
        - HAIR * abs(value)
        - COSTS * max((abs(scenario.min_value) for scenario in data.scenarios), default=0.0)
    )
    addends = (
        data.workloads
        + len(data.products)
        + len(data.limits)
        + len(data.cores)
        + len(data.scenarios)
    )

    def settles(rows: list[int]) -> bool:
        choice = np.array(rows)
        if worth_of(choice, floor) >= floor:
            return True
        better.append(choice)
        return False

    # Only what comes in whole units, and of which cores take nothing, can be counted exactly choice
    # by choice.
    unit_limits = [
        n
        for n, limit in enumerate(data.limits)
        if not any(limit.core) and (limit.use == np.floor(limit.use)).all()
    ]
    prover = Prover(
        data,
        floor,
        deadline,
        unit_limits,
        check=settles,
        leeway=(addends + SPARE) * ROUNDED,
        most_cases=max(FEWEST, min(WORK // len(data.usd), MOST)),
        most_open=MOST_OPEN,
        most_billed=MOST_BILLED,
    )
    prover.tree()
    best_choice = min(better, key=lambda choice: worth_of(choice, floor), default=None)
    is_shown = best_choice is None and prover.proven >= floor
    return PartProof(bound=value if is_shown else -math.inf, better=best_choice)
