r"""Drop what no optimum needs: rows that another row beats in every respect, and options of a
workload.

Another option of the same workload is never worse than one that is dropped, whatever the other
workloads choose.

Options of a workload are coupled to the rest by what they use: limited resources, ports of a shared
core, products of which few may be in use, and the quantity of each product, whose bill :math:`B_p`
depends on the total over workloads. For any totals :math:`q' \le q` and prices as
`formulations.choice_data.Product` has them,

.. math:: \underline{s}_p (q - q') \le B_p(q) - B_p(q') \le \overline{s}_p (q - q')

with :math:`\overline{s}_p` the first price, and :math:`\underline{s}_p` the last one of an
incremental discount, 0 for all units at several prices: a bill is the least of functions with
slopes between those, and continuous.

Option a **dominates** b of the same workload when

1. it uses no more of each resource and of the core, and adds no more to the objective beside capex;
2. each product it uses of a kind with a limit, b uses as well;
3. its capex is no larger for any totals of the others:

   .. math:: k_a - k_b
       + \sum_{p} \overline{s}_p (q_{ap} - q_{bp})^+ - \underline{s}_p (q_{bp} - q_{ap})^+ \le 0

**Optima are kept.** Take a solution with b and put a in its place. By 1 every limit holds, and the
core needs no more switches, so neither its bill nor its use grows. By 2 no kind has a further
product in use. By 3 the bills of all products together with :math:`k` do not grow, so the budget
holds; with 1 and a weight of capex of at least 0 the objective does not grow. Fewer units of every
product at no more capex beside them are the plain case of 3. The relation is transitive, as
increments of bills add up: so what is dropped is dominated by something kept, and workload by
workload the argument leads to a solution of kept options that is no dearer.

Spare units matter: where a discount on all units may not be had by buying more than needed, bills
fall at thresholds,
:math:`\underline{s}_p` is negative without bound and an option with fewer units dominates nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coopt.perf.mapping import Bools, Floats, Ints, distinct_rows

ROUNDS = 40  # exact with any number, since what is undecided after them is kept

PAIRS = 1 << 18  # of options that are compared at once, so that tables stay small


def undominated(values: Floats, *classes: Ints, rounds: int = ROUNDS) -> Bools:
    """Rows to keep: of the dropped ones, each has a kept row of its class that is nowhere larger.

    A sieve, exact in what it drops but not in what it keeps: each round takes the undecided row of
    least sum of every class, keeps it and drops every row it dominates; what is undecided after the
    last round is kept.

    Parameters
    ----------
    values
        Shape (n, k); less is better in every column.
    classes
        Columns of shape (n,); only rows equal in all of them compare.
    rounds
        After how many the rest is kept.
    """
    keep = np.ones(len(values), dtype=np.bool_)
    if not len(values):
        return keep
    # what dominates a row has a sum no larger, so that the row of least sum in its class is beaten
    # by none but equals
    scale = values.max(axis=0)
    sums = (values / np.where(scale > 0, scale, 1.0)).sum(axis=1)
    _, position = distinct_rows(*classes)
    undecided = np.lexsort((sums, position))
    for _ in range(rounds):
        if not len(undecided):
            break
        begins = np.diff(position[undecided], prepend=-1) > 0
        leaders = undecided[begins][np.cumsum(begins) - 1]
        beaten = (values[undecided] >= values[leaders]).all(axis=1)
        keep[undecided[beaten & ~begins]] = False
        undecided = undecided[~beaten]
    return keep


@dataclass(frozen=True, kw_only=True)
class Slopes:
    """How much the bill of each product rises with a unit at least and at most (USD), both (P,)."""

    least_usd: Floats
    most_usd: Floats


def needed_options(
    usd: Floats, uses: Floats, quantity: Floats, joins: Bools, slopes: Slopes
) -> Ints:
    """Positions of options of one workload that together dominate all others, in the order given.

    Options are swept from the least capex at the dearest prices on: nothing later dominates
    anything earlier, but for ties, of which more than needed may stay.

    Parameters
    ----------
    usd
        Capex beside the products (n,).
    uses
        All that must not grow: objective beside capex, resources, core ports (n, r).
    quantity
        Units of each product (n, P).
    joins
        Which products of limited kinds each option uses (n, products of limited kinds).
    """
    remaining = np.lexsort((uses.sum(axis=1), usd + quantity @ slopes.most_usd))
    products = np.flatnonzero(quantity.any(axis=0))
    units, least_usd, most_usd = (
        quantity.T[products],
        slopes.least_usd[products],
        slopes.most_usd[products],
    )
    needed, size = list[int](), 1
    while len(remaining):
        # the first ones drop most others where few are needed; where many are, more and more are
        # compared at once
        heads = remaining[:size]
        dominates = _at_most(uses[heads], uses[remaining]) & _within(joins[heads], joins[remaining])
        number, place = np.nonzero(dominates)
        head, option = heads[number], remaining[place]
        extra_units = units[:, head] - units[:, option]
        unit_usd = np.where(extra_units > 0, most_usd[:, None], least_usd[:, None])
        dominates[number, place] = (
            usd[head] - usd[option] + (unit_usd * extra_units).sum(axis=0) <= 0
        )
        beaten = np.zeros(len(remaining), dtype=np.bool_)
        for head_number, head_dominates in enumerate(dominates):
            if not beaten[head_number]:
                beaten |= head_dominates
                needed.append(int(heads[head_number]))
        remaining = remaining[size:][~beaten[size:]]
        size = max(1, min(2 * size, PAIRS // max(1, len(remaining))))
    return np.sort(np.array(needed, dtype=np.int64))


def beaten_options(
    rivals: tuple[Floats, Floats, Bools],
    options: tuple[Floats, Floats, Bools],
    slopes: Slopes,
    *,
    cheaper: bool = False,
) -> Bools:
    """Which options some kept rival dominates; both as (uses, quantity, joins), without capex
    beside products.

    What another option uses at least may stand for it: a larger quantity of it only lowers the left
    side of 3.

    Parameters
    ----------
    cheaper
        Whether an option only counts where that side is below 0.
    """
    rival_uses, rival_units, rival_joins = rivals
    uses, quantity, joins = options
    beaten = np.zeros(len(uses), dtype=np.bool_)
    start = 0
    while start < len(rival_uses) and not beaten.all():
        unbeaten = np.flatnonzero(~beaten)
        batch = slice(start, start + max(1, PAIRS // len(unbeaten)))
        maybe = _at_most(rival_uses[batch], uses[unbeaten]) & _within(
            rival_joins[batch], joins[unbeaten]
        )
        rival, option = np.nonzero(maybe)
        extra_units = rival_units[batch][rival] - quantity[unbeaten[option]]
        rise = np.where(
            extra_units > 0, slopes.most_usd * extra_units, slopes.least_usd * extra_units
        ).sum(axis=1)
        beaten[unbeaten[option[rise < 0 if cheaper else rise <= 0]]] = True
        start = batch.stop
    return beaten


def _at_most(rivals: Floats, options: Floats) -> Bools:
    """For each rival and each option: whether the rival is larger in no column."""
    no_larger = np.ones((len(rivals), len(options)), dtype=np.bool_)
    for rival_column, option_column in zip(rivals.T, options.T, strict=True):
        no_larger &= rival_column[:, None] <= option_column
    return no_larger


def _within(rivals: Bools, options: Bools) -> Bools:
    """For each rival and each option: whether the option has every column that the rival has."""
    within = np.ones((len(rivals), len(options)), dtype=np.bool_)
    for rival_column, option_column in zip(
        np.packbits(rivals, axis=1).T, np.packbits(~options, axis=1).T, strict=True
    ):
        within &= (rival_column[:, None] & option_column) == 0
    return within
