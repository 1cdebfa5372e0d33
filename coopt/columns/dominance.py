r"""Drop what no optimum needs: rows that another row beats in every respect, and options of a workload.

Another option of the same workload is never worse than one that is dropped, whatever the other workloads choose.

Options of a workload are coupled to the rest by what they use: limited resources, ports of a shared core, products of
which few may be in use, and the quantity of each product, whose bill :math:`B_p` depends on the total over workloads.
For any totals :math:`q' \le q` and prices as `formulations.partition_data.Product` has them,

.. math:: \underline{s}_p (q - q') \le B_p(q) - B_p(q') \le \overline{s}_p (q - q')

with :math:`\overline{s}_p` the first price, and :math:`\underline{s}_p` the last one of an incremental discount, 0 for
all units at several prices: a bill is the least of functions with slopes between those, and continuous.

Option a **dominates** b of the same workload when

1. it uses no more of each resource and of the core, and adds no more to the objective beside capex;
2. each product it uses of a kind with a limit, b uses as well;
3. its capex is no larger for any totals of the others:

   .. math:: k_a - k_b + \sum_{p} \overline{s}_p (q_{ap} - q_{bp})^+ - \underline{s}_p (q_{bp} - q_{ap})^+ \le 0

**Optima are kept.** Take a solution with b and put a in its place. By 1 every limit holds, and the core needs no more
switches, so neither its bill nor its use grows. By 2 no kind has a further product in use. By 3 the bills of all
products together with :math:`k` do not grow, so the budget holds; with 1 and a weight of capex of at least 0 the
objective does not grow. Fewer units of every product at no more capex beside them are the plain case of 3.
The relation is transitive, as increments of bills add up: so what is dropped is dominated by something kept, and
workload by workload the argument leads to a solution of kept options that is no dearer.

Spare units matter: where a discount on all units may not be had by buying more than needed, bills fall at thresholds,
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

    A sieve, exact in what it drops but not in what it keeps: each round takes the undecided row of least sum
    of every class, keeps it and drops every row it dominates; what is undecided after the last round is kept.

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
    scale = values.max(axis=0)
    sums = (values / np.where(scale > 0, scale, 1.0)).sum(axis=1)
    _, position = distinct_rows(*classes)
    undecided = np.lexsort((sums, position))
    for _ in range(rounds):
        if not len(undecided):
            break
        begins = np.diff(position[undecided], prepend=-1) > 0
        best = undecided[begins][np.cumsum(begins) - 1]
        beaten = (values[undecided] >= values[best]).all(axis=1)
        keep[undecided[beaten & ~begins]] = False
        undecided = undecided[~beaten]
    return keep


@dataclass(frozen=True, kw_only=True)
class Slopes:
    """How much the bill of each product rises with a unit at least and at most (USD), both (P,)."""

    least: Floats
    most: Floats


def needed_options(usd: Floats, uses: Floats, quantity: Floats, joins: Bools, slopes: Slopes) -> Ints:
    """Positions of options of one workload that together dominate all others, in the order given.

    Options are swept from the least capex at the dearest prices on: nothing later dominates anything earlier, but for
    ties, of which more than needed may stay.

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
    if not len(usd):
        return np.zeros(0, dtype=np.int64)
    order = np.lexsort((uses.sum(axis=1), usd + quantity @ slopes.most))
    sets = np.unique(joins[order], axis=0, return_inverse=True)[1].reshape(-1)
    kept = [_sweep(order[sets == s], usd, uses, quantity, slopes, None) for s in range(sets.max() + 1)]
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    few = np.concatenate(kept)
    return np.sort(_sweep(few[np.argsort(rank[few])], usd, uses, quantity, slopes, joins))


def beaten_options(
    kept: tuple[Floats, Floats, Bools],
    others: tuple[Floats, Floats, Bools],
    slopes: Slopes,
    *,
    cheaper: bool = False,
) -> Bools:
    """Which of the others some kept option dominates; each as (uses, quantity, joins), without capex beside products.

    What another option uses at least may stand for it: a larger quantity of it only lowers the left side of 3.

    Parameters
    ----------
    cheaper
        Whether an option only counts where that side is below 0.
    """
    mine, of_mine, joined = kept
    uses, quantity, joins = others
    beaten = np.zeros(len(uses), dtype=np.bool_)
    first = 0
    while first < len(mine) and not beaten.all():
        left = np.flatnonzero(~beaten)
        some = slice(first, first + max(1, PAIRS // len(left)))
        maybe = _at_most(mine[some], uses[left]) & _within(joined[some], joins[left])
        option, other = np.nonzero(maybe)
        more = of_mine[some][option] - quantity[left[other]]
        rise = np.where(more > 0, slopes.most * more, slopes.least * more).sum(axis=1)
        beaten[left[other[rise < 0 if cheaper else rise <= 0]]] = True
        first = some.stop
    return beaten


def _at_most(mine: Floats, others: Floats) -> Bools:
    """For each of mine and each of the others: whether no column of mine is larger."""
    found = np.ones((len(mine), len(others)), dtype=np.bool_)
    for my, other in zip(mine.T, others.T, strict=True):
        found &= my[:, None] <= other
    return found


def _within(mine: Bools, others: Bools) -> Bools:
    """For each of mine and each of the others: whether every column that mine has the other has as well."""
    found = np.ones((len(mine), len(others)), dtype=np.bool_)
    for my, other in zip(np.packbits(mine, axis=1).T, np.packbits(~others, axis=1).T, strict=True):
        found &= (my[:, None] & other) == 0
    return found


def _sweep(rows: Ints, usd: Floats, uses: Floats, quantity: Floats, slopes: Slopes, joins: Bools | None) -> Ints:
    """The rows that no earlier kept one dominates; without `joins` all use the same products of limited kinds."""
    held = None if joins is None else joins[rows]
    some = np.flatnonzero(quantity[rows].any(axis=0))
    least, most = slopes.least[some], slopes.most[some]
    table = np.column_stack([uses[rows], usd[rows], quantity[np.ix_(rows, some)]]).T.astype(np.float64)
    r = uses.shape[1]
    kept, left = [], np.arange(len(rows))
    while len(left):
        first, table = table[:, 0], table[:, 1:]
        kept.append(left[0])
        left = left[1:]
        maybe = np.arange(len(left)) if held is None else np.flatnonzero(~(held[kept[-1]] & ~held[left]).any(axis=1))
        for j in range(r):
            maybe = maybe[first[j] <= table[j, maybe]]
        more = first[r + 1 :, None] - table[r + 1 :, maybe]
        rise = first[r] - table[r, maybe] + (np.where(more > 0, most[:, None], least[:, None]) * more).sum(axis=0)
        stays = np.ones(len(left), dtype=bool)
        stays[maybe[rise <= 0]] = False
        if not stays.all():
            left, table = left[stays], table[:, stays]
    return rows[kept]
