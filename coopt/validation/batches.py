"""Batched prediction of iteration times: runs with equal models and software are evaluated
together.

For runs that differ only in their mapping, the order of their times is assessed too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from coopt.instance.base import Table
from coopt.instance.hardware import Gpu
from coopt.instance.texts import grouped
from coopt.instance.transformer import Software
from coopt.instance.workload import Workload
from coopt.perf.collectives import Reciprocals
from coopt.perf.iterations import Iteration, iteration
from coopt.perf.mapping import Floats, Ints, Mappings, Placements
from coopt.validation.published import SHAPE, Measurement
from coopt.validation.runs import MeasuredRun
from coopt.validation.splits import mappings_of

Hardware = Callable[[Gpu], Gpu]
Framework = Callable[[Software], Software]


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Runs that differ only in mapping and network; `position` is their index among all runs."""

    workload: Workload
    gpu: Gpu
    hb_gbyte_s: float
    mappings: Mappings
    placements: Placements
    reciprocals: Reciprocals
    position: Ints

    @classmethod
    def of(
        cls,
        run: MeasuredRun,
        mappings: Mappings,
        inside: Sequence[tuple[int, int, int, int]],
        nic_gbit_s: Sequence[float],
        position: Sequence[int],
    ) -> Batch:
        """Build a batch of mappings on machines like that of a run.

        Parameters
        ----------
        inside
            TP, CP, DP and PP ranks within an HB domain, for each mapping.
        """
        tp, cp, dp, pp = np.array(inside, dtype=np.int64).reshape(-1, 4).T
        return cls(
            workload=run.workload,
            gpu=run.gpu,
            hb_gbyte_s=run.hb_gbyte_s,
            mappings=mappings,
            placements=Placements(tp=tp, cp=cp, dp=dp, pp=pp),
            reciprocals=Reciprocals.everywhere(8e-9 / np.array(nic_gbit_s)),
            position=np.array(position, dtype=np.int64),
        )

    def evaluated(self, gpu: Gpu, software: Software) -> Iteration:
        """Return the iterations of these runs on changed hardware and software."""
        options = self.workload.options.model_copy(update={"software": software})
        workload = self.workload.model_copy(update={"options": options})
        return iteration(workload, gpu, self.hb_gbyte_s, self.mappings, self.placements)


def batches_of(runs: Sequence[MeasuredRun]) -> list[Batch]:
    """Group all runs into batches."""
    members_by_question = grouped((run.question, index) for index, run in enumerate(runs))
    return [
        Batch.of(
            runs[members[0]],
            mappings_of([runs[i].split for i in members]),
            [runs[i].split.inside for i in members],
            [runs[i].nic_gbit_s for i in members],
            members,
        )
        for members in members_by_question.values()
    ]


def predicted_s(batches: Sequence[Batch], hardware: Hardware, framework: Framework) -> Floats:
    """Return the predicted iteration time of every run (s).

    Parameters
    ----------
    hardware, framework
        Functions that change the GPU and the software of a run; identity functions change nothing.
    """
    times = np.empty(sum(len(batch.position) for batch in batches))
    for batch in batches:
        parts = batch.evaluated(hardware(batch.gpu), framework(batch.workload.options.software))
        times[batch.position] = parts.time_s(batch.reciprocals)
    return times


def unchanged_s(batches: Sequence[Batch]) -> Floats:
    """Return the iteration time of every run (s) with the figures of the catalog."""
    return predicted_s(batches, lambda gpu: gpu, lambda software: software)


def breakdowns_s(batches: Sequence[Batch]) -> list[dict[str, float]]:
    """Return the time breakdown of every run (s)."""
    seconds_of_runs: dict[int, dict[str, float]] = {}
    for batch in batches:
        evaluated = batch.evaluated(batch.gpu, batch.workload.options.software)
        parts = evaluated.breakdown_s(batch.reciprocals)
        for row, index in enumerate(batch.position.tolist()):
            seconds_of_runs[index] = {name: float(s[row]) for name, s in parts.items()}
    return [seconds_of_runs[index] for index in range(len(seconds_of_runs))]


class Ranking(Table):
    """How well predictions order the mappings of otherwise equal runs."""

    groups: Annotated[int, Field(description="groups of at least two mappings")]
    pairs: Annotated[
        int, Field(description="pairs of mappings of one group that took different times")
    ]
    in_order: Annotated[
        float | None, Field(description="share of the pairs that predictions put in order")
    ]
    spearman: Annotated[
        float | None, Field(description="rank correlation, the mean over the groups")
    ]
    regret_mean: Annotated[
        float | None,
        Field(
            description=(
                "time of the mapping predicted to be fastest over that of the fastest, less 1; mean"
            )
        ),
    ]
    regret_max: Annotated[float | None, Field(description="the largest regret of a group")]


class _RankedGroup(NamedTuple):
    """Mappings of one group with their times; the median if a mapping was run several times."""

    measured_s: list[float]
    predicted_s: list[float]


def ranking_of(
    rows: Sequence[Measurement], runs: Sequence[MeasuredRun], predicted_s: Floats
) -> Ranking:
    """Assess how well predictions order mappings, and the time lost by following them.

    Parameters
    ----------
    rows, runs, predicted_s
        Row, question and prediction (s) of each run.
    """
    groups = _groups(rows, runs, predicted_s)
    pairs = [
        (group.measured_s[i] - group.measured_s[j], group.predicted_s[i] - group.predicted_s[j])
        for group in groups
        for i, j in combinations(range(len(group.measured_s)), 2)
        if group.measured_s[i] != group.measured_s[j]
    ]
    regrets = [
        times[predicted.index(min(predicted))] / min(times) - 1.0 for times, predicted in groups
    ]
    return Ranking(
        groups=len(groups),
        pairs=len(pairs),
        in_order=(
            fmean(measured * predicted > 0 for measured, predicted in pairs) if pairs else None
        ),
        spearman=fmean(map(_spearman, groups)) if groups else None,
        regret_mean=fmean(regrets) if regrets else None,
        regret_max=max(regrets, default=None),
    )


def _groups(
    rows: Sequence[Measurement], runs: Sequence[MeasuredRun], predicted_s: Floats
) -> list[_RankedGroup]:
    """Return groups of at least two mappings with different times."""
    runs_alike = grouped(
        (_all_but_mapping(row, run), (run.split, index))
        for index, (row, run) in enumerate(zip(rows, runs, strict=True))
    )
    groups = [
        _RankedGroup(
            [median(runs[i].measured_s for i in repeats) for repeats in mappings.values()],
            # repeated runs of a mapping have equal predictions
            [float(predicted_s[repeats[0]]) for repeats in mappings.values()],
        )
        for mappings in map(grouped, runs_alike.values())
    ]
    return [group for group in groups if len(set(group.measured_s)) > 1]


def _all_but_mapping(row: Measurement, run: MeasuredRun) -> object:
    """Return source, model, GPUs, network, batch, sequence, precision, software and its release of
    a row.
    """
    trained = ("group", "model", *SHAPE, "gpu", "global_batch", "precision")
    machine = (run.gpus, run.hb_size, run.nic_gbit_s, run.software.name, run.software.release)
    return *(getattr(row, name) for name in trained), *machine


def _spearman(group: _RankedGroup) -> float:
    """Return Spearman's rank correlation, with average ranks for ties; 0 if all predictions are
    equal.
    """
    times = np.array(group)[..., None]
    smaller, not_larger = (times > times.swapaxes(1, 2)), (times >= times.swapaxes(1, 2))
    ranks = smaller.sum(axis=2) + not_larger.sum(axis=2)  # twice the rank, less 1
    return 0.0 if 0.0 in ranks.std(axis=1) else float(np.corrcoef(ranks)[0, 1])
