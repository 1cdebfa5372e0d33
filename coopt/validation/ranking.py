"""The order of mappings: where runs differ in nothing else, whether the faster one is predicted to be faster."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, median
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from coopt.instance.base import Table
from coopt.perf.mapping import Floats
from coopt.validation.published import Measurement
from coopt.validation.runs import MeasuredRun


class Ranking(Table):
    """How well predictions order the mappings of runs that are alike in everything else."""

    groups: Annotated[int, Field(description="groups of at least two mappings")]
    pairs: Annotated[int, Field(description="pairs of mappings of one group that took different times")]
    in_order: Annotated[float | None, Field(description="share of the pairs that predictions put in order")]
    spearman: Annotated[float | None, Field(description="rank correlation, the mean over the groups")]
    regret_mean: Annotated[
        float | None,
        Field(description="time of the mapping predicted to be fastest over that of the fastest, less 1; mean"),
    ]
    regret_max: Annotated[float | None, Field(description="the largest regret of a group")]


class _Group(NamedTuple):
    """Mappings of one group: their times, the median where a mapping was run more than once."""

    measured_s: list[float]
    predicted_s: list[float]


def ranking_of(rows: Sequence[Measurement], runs: Sequence[MeasuredRun], predicted_s: Floats) -> Ranking:
    """Order and regret.

    Parameters
    ----------
    rows, runs, predicted_s
        The row, the question and the prediction (s) of each run.
    """
    groups = _groups(rows, runs, predicted_s)
    pairs = [
        (group.measured_s[i] - group.measured_s[j], group.predicted_s[i] - group.predicted_s[j])
        for group in groups
        for i, j in combinations(range(len(group.measured_s)), 2)
        if group.measured_s[i] != group.measured_s[j]
    ]
    regrets = [_regret(group) for group in groups]
    return Ranking(
        groups=len(groups),
        pairs=len(pairs),
        in_order=fmean(measured * predicted > 0 for measured, predicted in pairs) if pairs else None,
        spearman=fmean(map(_spearman, groups)) if groups else None,
        regret_mean=fmean(regrets) if regrets else None,
        regret_max=max(regrets, default=None),
    )


def _groups(rows: Sequence[Measurement], runs: Sequence[MeasuredRun], predicted_s: Floats) -> list[_Group]:
    """Groups of at least two mappings whose times are not all the same."""
    alike: dict[object, dict[object, list[int]]] = {}
    for index, (row, run) in enumerate(zip(rows, runs, strict=True)):
        alike.setdefault(_all_but_mapping(row, run), {}).setdefault(run.split, []).append(index)
    found = [
        _Group(
            [median(runs[i].measured_s for i in repeats) for repeats in mappings.values()],
            [float(predicted_s[repeats[0]]) for repeats in mappings.values()],
        )
        for mappings in alike.values()
    ]
    return [group for group in found if len(set(group.measured_s)) > 1]


def _all_but_mapping(row: Measurement, run: MeasuredRun) -> object:
    """Source, model, GPUs, network, batch, sequence, precision, software and its release of a row."""
    model = (row.model, *(getattr(row, name) for name in ("layers", "hidden", "heads", "ffn", "vocab", "seq")))
    hardware = (row.gpu, run.gpus, run.hb_size, run.nic_gbit_s)
    return row.group, model, hardware, row.global_batch, row.precision, run.software.name, row.release


def _regret(group: _Group) -> float:
    preferred = group.predicted_s.index(min(group.predicted_s))
    return group.measured_s[preferred] / min(group.measured_s) - 1.0


def _spearman(group: _Group) -> float:
    """Correlation of ranks, equal times sharing theirs; 0 where the predictions are all the same."""
    ranks = [_ranks(times) for times in group]
    spread = [float(np.std(rank)) for rank in ranks]
    return 0.0 if 0.0 in spread else float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(times: Sequence[float]) -> Floats:
    """The place of each time among all, the mean place of those that are equal."""
    column = np.array(times)
    below, upto = (column[:, None] > column).sum(1), (column[:, None] >= column).sum(1)
    return np.asarray((below + upto + 1) / 2, dtype=np.float64)
