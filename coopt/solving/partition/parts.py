r"""The search cut into parts: one for every set of products that may be in use at the same time.

Of a part it is proven by cases that no choice of it is worth less than a value, without the word of a solver.

Multipliers of a linear program bound each case from below whatever the solver's tolerances. Sums are of floats: every
addend is taken short by more than the rounding of all sums that it is in. That is far less than values of one choice
may differ by when it is billed in another order, so that a bound that only rounding keeps from the best value reaches
it. What multipliers leave open is billed choice by choice, as answers are.

Where few products of a kind may be in use, a choice of islands uses some set of them. For each set the options that
use nothing else are a problem of their own, without products to count, and every choice lies in one of them. They are
small, their quantities vary little, so that few brackets are left, and most have a bound above the best choice known.

Brackets that no choice of islands can reach, left out before the search.

Over all choices the quantity of a product lies between :math:`q^-` and :math:`q^+`, the sums over workloads of the
least and the most that one of their options holds. A bracket b is left out

- below: when the next one begins at :math:`t_{b+1} \le q^-`. Every quantity is in a later bracket, whose bill is no
  more: for prices of all units by the lower price, for incremental ones because the bill is concave. What the later
  bracket's bill has beside its price times its quantity, :math:`g`, is then due in any case;
- above: when :math:`t_b \ge q^+`, for incremental prices; with prices for all units, spare units may make it worth
  reaching, so it is left out only when :math:`p_b t_b` is no less than the bill of :math:`q^+` without it. Bills of
  less are no more, so nobody would buy that many.

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

from coopt.columns.dominance import Slopes, needed_options
from coopt.solving.highs import LARGEST, NEAR
from coopt.solving.proofs.tree import Prover
from formulations.partition_data import Bools, Floats, Ints, LimitedUse, PartitionData, PriceOutlook, Product

SLACK = 1e-9  # of a limit in a program, which a solver may miss by as much; what is found is held to the limit itself

HAIR = 5e-13
"""By which share a choice has to be worth less than a value to be another one's: by less, both round to it."""

ROUNDED = 2.0**-52
"""For each addend: twice what a sum of floats, or of their products, is off by at most, as a share of its addends."""

SPARE = 8
"""Addends that every sum may have besides."""

COSTS = 2.0**-48
"""The same as a share of costs, where a value is a difference of two."""

WORK, FEWEST, MOST = 4_000, 20, 250
"""Cases times the options that each looks at: a few per cent of what it takes to list the options. And how many cases
these are at least, and at most."""

MOST_OPEN, MOST_BILLED = 500, 12
"""Options that are looked at on the way to the choices that a case leaves open, and choices that are billed then."""


def narrowed(data: PartitionData) -> PartitionData:
    """The problem with those brackets only that some choice may buy in; every choice is worth what it was."""
    if data.outlooks:  # their prices belong to the brackets as they are
        return data
    first = data.workload == 0
    usd, products = data.usd, []
    for p, good in enumerate(data.products):
        if len(data.following(p)) + len(data.chain(p)) > 2:  # it may be bought ahead of its phase
            products.append(good)
            continue
        least, most = _range(data, p)
        good, given = _within(good, least, most)
        products.append(good)
        if given:
            usd = usd + given * first  # workload 0 has one option, whichever it is
    return replace(data, usd=usd, products=tuple(products))


def _range(data: PartitionData, p: int) -> tuple[float, float]:
    held = data.quantity[:, p]
    least = sum(held[data.workload == w].min() for w in range(data.workloads))
    return float(least), float(data.most(p).sum())


def _within(product: Product, least: float, most: float) -> tuple[Product, float]:
    """A product whose quantity lies in a range, and what its bill has beside."""
    first = int(np.flatnonzero(product.start <= least)[-1])
    given = float(product.given[first])
    start, usd = np.append(0.0, product.start[first + 1 :]), product.usd[first:]
    last = len(usd)
    while last > 1 and start[last - 1] >= most:
        lower = replace(product, start=start[: last - 1], usd=usd[: last - 1])
        if product.discount == "all-units" and usd[last - 1] * start[last - 1] < lower.bill(most):
            break
        last -= 1
    return replace(product, start=start[:last], usd=usd[:last]), given


MOST_SETS = 2_000  # each is a search of its own; of more sets one search has all options


def product_sets(data: PartitionData) -> list[Ints]:
    """The options of every largest set of products; none that lies within another, and none without a choice.

    With too many sets, or nothing to count, all options are the one part, and products are counted in the search.
    """
    if data.outlooks:  # bounds of single sets are those of one price, not of the largest regret
        return [np.arange(len(data.workload))]
    used = np.stack([data.uses(p) for p in range(len(data.products))], axis=1)
    kinds = [(kind, [int(p) for p in kind.products if used[:, p].any()]) for kind in data.kinds]
    kinds = [(kind, there) for kind, there in kinds if len(there) > kind.most]
    if not kinds or prod(comb(len(there), kind.most) for kind, there in kinds) > MOST_SETS:
        return [np.arange(len(data.workload))]
    found: list[Bools] = []
    for chosen in product(*(combinations(there, kind.most) for kind, there in kinds)):
        barred = [p for (_, there), few in zip(kinds, chosen, strict=True) for p in there if p not in few]
        found.append(np.asarray(~used[:, barred].any(axis=1)))
    whole = [rows for rows in found if len(np.unique(data.workload[rows])) == data.workloads]
    return [np.flatnonzero(rows) for rows in _largest(whole)]


def _largest(sets: list[Bools]) -> Iterator[Bools]:
    """Those that lie within no other; of equal ones the first."""
    kept: list[Bools] = []
    for rows in sorted(sets, key=lambda one: -int(one.sum())):
        if not any((rows <= other).all() for other in kept):
            kept.append(rows)
            yield rows


def part_of(data: PartitionData, rows: Ints) -> PartitionData:
    """The problem of some options, with the brackets they may buy in and the kinds that still have to be counted."""
    few = subset(data, rows)
    used = [bool(few.uses(p).any()) for p in range(len(few.products))]
    kinds = tuple(kind for kind in few.kinds if sum(used[p] for p in kind.products) > kind.most)
    return narrowed(replace(few, kinds=kinds))


def subset(data: PartitionData, kept: Ints) -> PartitionData:
    """The same problem with some of its options."""
    return replace(
        data,
        workload=data.workload[kept],
        usd=data.usd[kept],
        other=data.other[kept],
        quantity=data.quantity[kept],
        limits=tuple(replace(limit, use=limit.use[kept]) for limit in data.limits),
        cores=tuple(replace(core, up=core.up[kept]) for core in data.cores),
        outlooks=tuple(replace(one, usd=one.usd[kept], other=one.other[kept]) for one in data.outlooks),
    )


def useful(data: PartitionData) -> Ints:
    """Positions of options that hold an optimum whenever there is one, by `coopt.columns.dominance`."""
    counted = sorted({int(p) for kind in data.kinds for p in kind.products})
    slopes = slopes_of(data)
    uses = [data.other, *(limit.use for limit in data.limits), *(core.up for core in data.cores)]
    for one in data.outlooks:
        uses += [one.usd, one.other]
    kept = [np.zeros(0, dtype=np.int64)]
    for w in range(data.workloads):
        mine = np.flatnonzero(data.workload == w)
        if len(mine):
            few = subset(data, mine)
            joins = np.array([few.uses(p) for p in counted], dtype=bool).reshape(len(counted), len(mine)).T
            shown = np.column_stack([use[mine] for use in uses])
            kept.append(mine[needed_options(few.usd, shown, few.quantity, joins, slopes)])
    return np.concatenate(kept)


def slopes_of(data: PartitionData) -> Slopes:
    """How much bills rise with a unit of each product, at least and at most, in whichever outlook.

    A unit needed in a phase may be bought in it or before, so it adds no more than the least first price so far. One
    less is needed: of the purchases so far the last can be smaller, which saves no less than the least last price.
    """
    prices = [one.prices for one in data.outlooks] or [tuple(product.usd for product in data.products)]
    least, most = np.full(len(data.products), np.inf), np.zeros(len(data.products))
    for usd in prices:
        for p in range(len(data.products)):
            chain = data.chain(p)
            least[p] = min(least[p], *(_least(data, q, usd[q]) for q in chain))
            most[p] = max(most[p], min(float(usd[q][0]) for q in chain))
    return Slopes(least_usd=least, most_usd=most)


def _least(data: PartitionData, p: int, usd: Floats) -> float:
    spare = data.products[p].discount == "all-units" and len(usd) > 1
    return 0.0 if spare else float(usd[-1])


def scaled(data: PartitionData, worth: float = math.inf) -> tuple[PartitionData, float]:
    """The problem in units near 1 - the dearest choice, limits, the most of each product - and the objective's unit.

    Where it is known what the best choice is `worth`, that is the unit in place of the dearest choice.
    """
    usd = data.usd + data.quantity @ np.array([product.usd[0] for product in data.products])
    capex = float(data.largest(usd).sum()) / LARGEST or 1.0
    objective = float(data.largest(np.abs(data.weight * usd) + np.abs(data.other)).sum()) / LARGEST or 1.0
    if math.isfinite(worth):
        objective = worth / LARGEST
        capex = objective / data.weight if data.weight else capex
    unit = _units(data)
    small = replace(
        data,
        usd=data.usd / capex,
        other=data.other / objective,
        quantity=data.quantity / np.array(unit),
        products=tuple(
            replace(p, start=p.start / u, usd=p.usd * u / capex) for p, u in zip(data.products, unit, strict=True)
        ),
        limits=tuple(_share(limit) for limit in data.limits),
        budget=None if data.budget is None else data.budget / capex * (1 + SLACK),
        weight=data.weight * capex / objective,
        cores=tuple(
            replace(core, quantity=core.quantity / unit[core.product], other=core.other / objective)
            for core in data.cores
        ),
        outlooks=tuple(_outlook(one, unit, capex, objective) for one in data.outlooks),
    )
    return small, objective


def cut_off(data: PartitionData, worth: float) -> PartitionData:
    """The problem with prices cut off far above what a choice is worth.

    Units are whole, so that a choice that pays one of these was no better and still is not; discounts keep their order.
    """
    most = NEAR * worth
    other = np.minimum(data.other, most)
    cores = tuple(replace(core, other=min(core.other, most)) for core in data.cores)
    outlooks = tuple(
        replace(
            one,
            usd=np.minimum(one.usd, most) if data.weight else one.usd,
            other=np.minimum(one.other, most),
            prices=tuple(np.minimum(usd, most) for usd in one.prices) if data.weight else one.prices,
            core=tuple(min(other, most) for other in one.core),
        )
        for one in data.outlooks
    )
    if data.weight == 0 or data.outlooks:  # no price at which limits hold counts in the objective
        return replace(data, other=other, cores=cores, outlooks=outlooks)
    products = tuple(replace(product, usd=np.minimum(product.usd, most / data.weight)) for product in data.products)
    usd = np.minimum(data.usd, most / data.weight)
    return replace(data, usd=usd, other=other, products=products, cores=cores)


def _units(data: PartitionData) -> list[float]:
    """The most of each product over all phases, which share a unit since purchases of phases add up."""
    most = [float(data.most(p).sum()) for p in range(len(data.products))]
    return [max(sum(most[q] for q in {*data.following(data.chain(p)[-1])}), 1.0) for p in range(len(most))]


def _share(limit: LimitedUse) -> LimitedUse:
    """A limit in units of its cap; a cap of nothing stays as it is."""
    if limit.cap <= 0:
        return limit
    return replace(limit, use=limit.use / limit.cap, core=tuple(use / limit.cap for use in limit.core), cap=1.0 + SLACK)


def _outlook(one: PriceOutlook, unit: list[float], capex: float, objective: float) -> PriceOutlook:
    return replace(
        one,
        usd=one.usd / capex,
        other=one.other / objective,
        prices=tuple(usd * u / capex for usd, u in zip(one.prices, unit, strict=True)),
        core=tuple(other / objective for other in one.core),
        best=one.best / objective,
    )


class Closed(NamedTuple):
    """A bound below every choice of a part, and a choice that is worth less than was to be shown, if one was found."""

    bound: float
    better: Ints | None


def closed(data: PartitionData, value: float, deadline: float, worth_of: Callable[[Ints, float], float]) -> Closed:
    """Show that no choice is worth less than a value, as far as `WORK` and the time do.

    Parameters
    ----------
    value
        In units of the objective.
    deadline
        On the clock of `time.perf_counter`.
    worth_of
        What a choice, the option of each workload, is worth once it is billed; infinite where it is worth less than a
        floor and keeps not all limits, which are not looked at otherwise.
    """
    if data.outlooks and value <= 0:  # no regret is below 0
        return Closed(bound=value, better=None)
    better: list[Ints] = []
    floor = value - HAIR * abs(value) - COSTS * max((abs(one.best) for one in data.outlooks), default=0.0)
    addends = data.workloads + len(data.products) + len(data.limits) + len(data.cores) + len(data.outlooks)

    def settled(chosen: list[int]) -> bool:
        choice = np.array(chosen)
        if worth_of(choice, floor) >= floor:
            return True
        better.append(choice)
        return False

    whole = [n for n, one in enumerate(data.limits) if not any(one.core) and (one.use == np.floor(one.use)).all()]
    prover = Prover(
        data,
        floor,
        deadline,
        whole,
        check=settled,
        leeway=(addends + SPARE) * ROUNDED,
        most_cases=max(FEWEST, min(WORK // len(data.usd), MOST)),
        most_open=MOST_OPEN,
        most_billed=MOST_BILLED,
    )
    prover.tree()
    found = min(better, key=lambda choice: worth_of(choice, floor), default=None)
    shown = found is None and prover.proven >= floor
    return Closed(bound=value if shown else -math.inf, better=found)
