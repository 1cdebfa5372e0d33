r"""Removes dominated candidates: rows that another row beats in every column, and options of a
workload.

For every removed option another option of the same workload is kept that is never worse, whatever
the other workloads choose.

Options of a workload are coupled to the rest by what they use: limited resources, ports of a shared
core, products of which few may be in use, and the quantity of each product, whose bill :math:`B_p`
depends on the total over workloads. For any totals :math:`q' \le q` and prices as in
`formulations.choice_data.Product`,

.. math:: \underline{s}_p (q - q') \le B_p(q) - B_p(q') \le \overline{s}_p (q - q')

with :math:`\overline{s}_p` the first price, and :math:`\underline{s}_p` the last one of an
incremental discount, or 0 for an all-units discount: a bill is the minimum of functions with slopes
between these, and continuous.

Option a **dominates** b of the same workload when

1. it uses no more of each resource and of the core, and adds no more to the objective besides
   capex;
2. each product that it uses of a kind with a limit is used by b as well;
3. its capex is no larger for any totals of the others:

   .. math:: k_a - k_b
       + \sum_{p} \overline{s}_p (q_{ap} - q_{bp})^+ - \underline{s}_p (q_{bp} - q_{ap})^+ \le 0

**Optima are kept.** In a solution with b, replace b by a. By 1 every limit holds, and the core
needs no more switches, so neither its bill nor its use grows. By 2 no kind has a further product in
use. By 3 the sum of the bills of all products and :math:`k` does not grow, so the budget holds;
with 1 and a non-negative weight of capex the objective does not grow. Fewer units of every product
at no more capex besides them are the simplest case of 3. The relation is transitive, as increments
of bills add up: what is removed is therefore dominated by something kept, and repeating the
argument for each workload leads to a solution of kept options that costs no more.

Spare units matter: where an all-units discount may not be obtained by buying more than needed,
bills fall at thresholds, :math:`\underline{s}_p` is negative without bound and an option with fewer
units dominates nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coopt.perf.mapping import Bools, Floats, Ints, distinct_rows

ROUNDS = 40  # any number is exact, since undecided rows are kept

PAIRS = 1 << 18  # pairs of options compared at once, so that tables stay small


def undominated(values: Floats, *classes: Ints, rounds: int = ROUNDS) -> Bools:
    """Return which rows to keep: every dropped row is dominated by a kept row of its class.

    A sieve that never drops an undominated row but may keep dominated ones: each round keeps the
    undecided row with the smallest sum in every class and drops the rows that it dominates; rows
    undecided after the last round are kept.

    Parameters
    ----------
    values
        Shape (n, k); smaller is better in every column.
    classes
        Columns of shape (n,); only rows equal in all of them are compared.
    rounds
        Number of rounds.
    """
    keep = np.ones(len(values), dtype=np.bool_)
    if not len(values):
        return keep
    # a dominating row has no larger sum, so the row with the smallest sum of its class is
    # dominated by equal rows only
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
    """Minimum and maximum increase of the bill of each product per unit (USD); shape (P,) each."""

    least_usd: Floats
    most_usd: Floats


def needed_options(
    usd: Floats, uses: Floats, quantity: Floats, joins: Bools, slopes: Slopes
) -> Ints:
    """Return the positions of options of one workload that together dominate all others, in the
    order given.

    Options are processed in rising order of their capex at the highest prices: no later option
    dominates an earlier one, except for ties, of which more than needed may be kept.

    Parameters
    ----------
    usd
        Capex besides the products (n,).
    uses
        Everything that must not grow: objective besides capex, resources, core ports (n, r).
    quantity
        Units of each product (n, P).
    joins
        Whether each option uses each product of a limited kind (n, products of limited kinds).
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
        # where few options are needed the first ones drop most others; where many are, more and
        # more are compared at once
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
    """Return which options are dominated by a kept rival; both are (uses, quantity, joins), without
    capex besides products.

    A lower bound on what an option uses may stand for it: a larger quantity only lowers the left
    side of condition 3.

    Parameters
    ----------
    cheaper
        Whether the left side of condition 3 must be below 0.
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
    """For each pair of rival and option: whether the rival is at most as large in every column."""
    no_larger = np.ones((len(rivals), len(options)), dtype=np.bool_)
    for rival_column, option_column in zip(rivals.T, options.T, strict=True):
        no_larger &= rival_column[:, None] <= option_column
    return no_larger


def _within(rivals: Bools, options: Bools) -> Bools:
    """For each pair of rival and option: whether the option has every column that the rival has."""
    within = np.ones((len(rivals), len(options)), dtype=np.bool_)
    for rival_column, option_column in zip(
        np.packbits(rivals, axis=1).T, np.packbits(~options, axis=1).T, strict=True
    ):
        within &= (rival_column[:, None] & option_column) == 0
    return within
