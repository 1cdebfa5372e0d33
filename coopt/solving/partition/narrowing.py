r"""Brackets that no choice of islands can reach, left out before the search.

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

from dataclasses import replace

import numpy as np

from formulations.partition_data import PartitionData, Product


def narrowed(data: PartitionData) -> PartitionData:
    """The problem with those brackets only that some choice may buy in; every choice is worth what it was."""
    if data.outlooks:  # their prices belong to the brackets as they are
        return data
    first = data.workload == 0
    usd, products = data.usd, []
    for p, product in enumerate(data.products):
        if len(data.following(p)) + len(data.chain(p)) > 2:  # it may be bought ahead of its phase
            products.append(product)
            continue
        least, most = _range(data, p)
        product, given = _within(product, least, most)
        products.append(product)
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
