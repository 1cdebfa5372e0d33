"""Partitions in units near 1, so that one tolerance suits all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coopt.solving.highs import LARGEST
from formulations.partition_data import Limit, Outlook, PartitionData


def scaled(data: PartitionData) -> tuple[PartitionData, float]:
    """The problem in units near 1 - the dearest choice, limits, the most of each product - and the objective's unit."""
    usd = data.usd + data.quantity @ np.array([product.usd[0] for product in data.products])
    capex = max(float(data.largest(usd).sum()), 1.0) / LARGEST
    objective = max(float(data.largest(np.abs(data.weight * usd) + np.abs(data.other)).sum()), 1.0) / LARGEST
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
        budget=None if data.budget is None else data.budget / capex,
        weight=data.weight * capex / objective,
        cores=tuple(
            replace(core, quantity=core.quantity / unit[core.product], other=core.other / objective)
            for core in data.cores
        ),
        outlooks=tuple(_outlook(one, unit, capex, objective) for one in data.outlooks),
    )
    return small, objective


def _units(data: PartitionData) -> list[float]:
    """The most of each product over all phases, which share a unit since purchases of phases add up."""
    most = [float(data.most(p).sum()) for p in range(len(data.products))]
    return [max(sum(most[q] for q in {*data.following(data.chain(p)[-1])}), 1.0) for p in range(len(most))]


def _share(limit: Limit) -> Limit:
    """A limit in units of its cap; a cap of nothing stays as it is."""
    if limit.cap <= 0:
        return limit
    return replace(limit, use=limit.use / limit.cap, core=tuple(use / limit.cap for use in limit.core), cap=1.0)


def _outlook(one: Outlook, unit: list[float], capex: float, objective: float) -> Outlook:
    return replace(
        one,
        usd=one.usd / capex,
        other=one.other / objective,
        prices=tuple(usd * u / capex for usd, u in zip(one.prices, unit, strict=True)),
        core=tuple(other / objective for other in one.core),
        best=one.best / objective,
    )
