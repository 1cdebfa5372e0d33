"""Partitions in units near 1, so that one tolerance suits all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coopt.solving.highs import LARGEST
from formulations.partition_data import PartitionData


def scaled(data: PartitionData) -> tuple[PartitionData, float]:
    """The problem in units near 1 - the dearest choice, limits, the most of each product - and the objective's unit."""
    usd = data.usd + data.quantity @ np.array([product.usd[0] for product in data.products])
    capex = max(float(data.largest(usd).sum()), 1.0) / LARGEST
    objective = max(float(data.largest(np.abs(data.weight * usd) + np.abs(data.other)).sum()), 1.0) / LARGEST
    unit = [max(float(data.most(p).sum()), 1.0) for p in range(len(data.products))]
    core = data.core
    if core is not None:
        core = replace(core, quantity=core.quantity / unit[core.product], other=core.other / objective)
    small = replace(
        data,
        usd=data.usd / capex,
        other=data.other / objective,
        quantity=data.quantity / np.array(unit),
        products=tuple(
            replace(p, start=p.start / u, usd=p.usd * u / capex) for p, u in zip(data.products, unit, strict=True)
        ),
        limits=tuple(
            replace(a, use=a.use / a.cap, core=a.core / a.cap, cap=1.0) if a.cap > 0 else a for a in data.limits
        ),
        budget=None if data.budget is None else data.budget / capex,
        weight=data.weight * capex / objective,
        core=core,
    )
    return small, objective
