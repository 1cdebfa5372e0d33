"""Batches and numbers of GPUs near those that were typed with which a workload trains clearly
faster, since more divides them, and degrees beyond those that are tried by default.

What was typed is kept by the search. Beside its answer this looks on the network of the answer,
with the model alone: at batches within two percent, at fewer GPUs, the others idle, and at the next
two doublings of CP and micro-batch. Of the batches only those can help that have a factor which a
split can use and the typed one has not; of each such set of factors the largest batch stands for
all. Bounds on compute come first: mappings are timed from the ideal time on, in steps, until one is
found or the typed numbers are no worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np

from coopt.columns.feasible import least_time_s, possibly_in_time
from coopt.columns.grid import (
    Context,
    context_of,
    degrees,
    degrees_up_to,
    domains_filled,
    layout_of,
)
from coopt.columns.islands.shapes import least_compute_s
from coopt.columns.pools import Pool, in_orders, place
from coopt.instance.hardware import Gpu
from coopt.instance.schema import Cluster, Instance
from coopt.instance.variants import within
from coopt.instance.workload import NEAR_BATCH, Workload, batches_within
from coopt.network.family import Family
from coopt.network.plan_networks import family_of_plan
from coopt.perf.mapping import Floats, Ints, Mappings
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import BetterNumber, Plan
from coopt.plan.store import decided, placed_as
from coopt.solving.arrays import fastest_row

SAVED = 0.05
"""Share of the time of a training from which a better number is told."""
CAPPED, FURTHER = ("cp", "micro_batch"), 2
"""Degrees of which a few are tried where none are given, and how often the longest is doubled."""
FEW = 64
"""Mappings that are timed before others, those that take least by their lower bounds."""
STEP = 2.0
"""From one bound to the next, from the ideal time up to what has to be beaten."""


def with_better_numbers(instance: Instance, plan: Plan) -> Plan:
    """The plan with the numbers near those typed that would save clearly more time; of one network
    of switches that all workloads have in turn.
    """
    if plan.design is None or decided(instance, plan)[0].beyond_one_network:
        return plan
    return plan.model_copy(update={"better_numbers": tuple(_better_numbers(instance, plan))})


def _better_numbers(instance: Instance, plan: Plan) -> Iterator[BetterNumber]:
    question, answer = placed_as(*decided(instance, plan))
    network = TrialNetwork(question.cluster, *family_of_plan(question, answer))
    runs = fastest_runs(answer)
    for w, (asked, run) in enumerate(zip(instance.workload, runs, strict=True)):
        tried = {} if asked.batches else {f"workload[{w}].batch_tolerance": _batches}
        if not instance.cluster.idle_gpus and len(instance.workload) == 1:
            tried["cluster.idle_gpus"] = _fewer_gpus
        for degree in CAPPED:
            longest = max(getattr(asked.mapping, degree))
            is_default = degree not in asked.mapping.model_fields_set
            if is_default and getattr(run.mapping, degree) == longest:
                tried[f"workload[{w}].mapping.{degree}"] = partial(_beyond, degree, longest)
        # where nothing inside HB domains will do, other numbers are tried there first, as searched
        open_tp = plan.tp_across and asked.allow_tp_across is None
        places = [{"allow_tp_across": False}, {}] if open_tp else [{}]
        for key, trials_of in tried.items():
            for place_of_tp in places:
                workload = question.workload[w].model_copy(update=place_of_tp)
                better = network.better(key, workload, list(trials_of(workload, network)), run)
                if better is not None:
                    yield better
                    break


def fastest_runs(plan: Plan) -> list[WorkloadPlan]:
    """The fastest mappings of a plan, which it may leave for others that the model cannot tell from
    them.
    """
    ties = {run.name: run for run in plan.ties}
    pairs = [(run, ties.get(run.name, run)) for run in plan.workloads]
    return [min(pair, key=attrgetter("iteration_time_s")) for pair in pairs]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Splits (n, 4) of a workload with another batch or degree or on fewer GPUs, and where these
    lie, by their number. A second of an iteration is worth `scale` of one with the typed batch.
    """

    value: int | None
    workload: Workload
    splits: Ints
    contexts: dict[int, list[Context]]
    scale: float = 1.0

    @classmethod
    def on_all(cls, workload: Workload, family: Family, value: int, scale: float = 1.0) -> Trial:
        """A workload on all GPUs of a network."""
        splits = np.array(list(degrees(workload, family.gpus)), dtype=np.int64).reshape(-1, 4)
        contexts = {family.gpus: [context_of(family)]}
        return cls(value=value, workload=workload, splits=splits, contexts=contexts, scale=scale)


def _batches(workload: Workload, network: TrialNetwork) -> Iterator[Trial]:
    """Batches near the typed one with factors that a split can use and that one has not."""
    usable = network.family.gpus * math.lcm(*workload.mapping.micro_batch)
    best: dict[int, int] = {}
    for batch in batches_within(workload.global_batch, NEAR_BATCH):
        factor = math.gcd(batch, usable)
        best[factor] = max(best.get(factor, 0), batch)
    own = math.gcd(workload.global_batch, usable)
    for factor, batch in best.items():
        is_beaten = any(other != factor and other % factor == 0 for other in best)
        if own % factor and not is_beaten:
            other = workload.model_copy(update={"global_batch": batch})
            scale = _for_the_same(other) / _for_the_same(workload)
            yield Trial.on_all(other, network.family, value=batch, scale=scale)


def _beyond(
    degree: str, longest: int, workload: Workload, network: TrialNetwork
) -> Iterator[Trial]:
    """Degrees beyond the longest that is tried where none are given."""
    for value in (longest * 2**power for power in range(1, FURTHER + 1)):
        limits = workload.mapping.model_copy(update={degree: (value,)})
        other = workload.model_copy(update={"mapping": limits})
        yield Trial.on_all(other, network.family, value=value)


def _for_the_same(workload: Workload) -> float:
    """Iterations that train as much as one token of a small batch."""
    return workload.tokens_for_one / workload.tokens_per_iteration


def _fewer_gpus(workload: Workload, network: TrialNetwork) -> Iterator[Trial]:
    """Numbers of GPUs that leave up to a quarter of those that train idle, on the same network."""
    family, contexts = network.family, dict[int, list[Context]]()
    for gpus, domains in network.cluster.idle_sites(family.gpus, family.hb.size):
        sharers = family.gpus_per_nic if family.tiers else 1
        if (gpus // domains) % sharers == 0 and domains <= family.domains:
            site = domains_filled(gpus, family.hb, domains, sharers)
            context = replace(context_of(family), site=site, layout=layout_of(family, site))
            contexts.setdefault(gpus, []).append(context)
    splits = degrees_up_to(workload, family.gpus - 1)
    splits = splits[np.isin(splits.prod(axis=1), list(contexts))]
    yield Trial(value=None, workload=workload, splits=splits, contexts=contexts)


class FastestTrial(NamedTuple):
    """What an iteration takes (s), with which number, in which trial, and by which row of a
    pool.
    """

    time_s: float
    value: int
    trial: Trial
    pool: Pool
    row: int


@dataclass(frozen=True)
class TrialNetwork:
    """The network of an answer, with the cluster that it was asked for."""

    asked: Cluster
    family: Family
    uplinks: int

    @property
    def gpu(self) -> Gpu:
        """The GPU that trains."""
        return self.asked.gpu

    @property
    def cluster(self) -> Cluster:
        """The GPUs that train, up to a quarter of which may be idle."""
        return self.asked.having(gpus=(self.family.gpus,), idle_gpus=True)

    def better(
        self, key: str, workload: Workload, trials: list[Trial], run: WorkloadPlan
    ) -> BetterNumber | None:
        """The number with which an iteration takes least, where that is clearly less than now."""
        now_s = run.iteration_time_s / (run.uptime.pace if run.uptime else 1.0)
        found = self.fastest(trials, now_s * (1.0 - SAVED))
        if found is None:
            return None
        time_s, value, trial, *_ = found
        own = {"batch_tolerance": workload.global_batch, "idle_gpus": self.family.gpus}
        return BetterNumber(
            key=key,
            workload=workload.name,
            value=value,
            now=(own | run.mapping.model_dump())[key.rpartition(".")[2]],
            iteration_time_s=time_s,
            saved=1.0 - time_s * trial.scale / now_s,
        )

    def fastest(
        self, trials: list[Trial], below_s: float, step: float = STEP
    ) -> FastestTrial | None:
        """What takes least, below a limit (s, of the typed batch) that is neared in steps; None
        where nothing does.
        """
        least = [self._compute_s(trial) * trial.scale for trial in trials]
        bound_s = min((float(times.min(initial=math.inf)) for times in least), default=math.inf)
        while bound_s < below_s:
            bound_s = min(bound_s * step, below_s)
            found = [
                candidate
                for trial, times in zip(trials, least, strict=True)
                for candidate in self._timed(trial, trial.splits[times <= bound_s], bound_s)
            ]
            if found:
                return min(found, key=lambda best: best.time_s * best.trial.scale)
        return None

    def _compute_s(self, trial: Trial) -> Floats:
        """What each split of a trial takes at least; infinite for TP that has to leave a domain."""
        apart = trial.workload.tp_inside & (trial.splits[:, 0] > self.family.hb.size)
        times = least_compute_s(trial.workload, self.gpu, trial.splits)
        return np.where(apart, np.inf, times)

    def _timed(self, trial: Trial, splits: Ints, bound_s: float) -> Iterator[FastestTrial]:
        """Numbers of a trial that are within a bound, each faster than those before it."""
        workload = within(trial.workload, bound_s / trial.scale)
        rates = {"hb_gbyte_s": self.family.hb.gbyte_s, "byte_s": self.family.byte_s}
        rows = possibly_in_time(workload, self.gpu, map(tuple, splits.tolist()), **rates)
        least_s = least_time_s(workload, self.gpu, rows, **rates)
        numbers = rows.tp * rows.cp * rows.pp * rows.dp
        best_s = workload.bound_s
        by_least = {int(n): float(least_s[numbers == n].min()) for n in np.unique(numbers)}
        for gpus in sorted(by_least, key=by_least.__getitem__):
            if by_least[gpus] > best_s:
                break
            some = np.flatnonzero((numbers == gpus) & (least_s <= best_s))
            contexts = trial.contexts[gpus]
            # the fastest of a few says which others may be as fast
            few = np.sort(some[np.argsort(least_s[some], kind="stable")[:FEW]])
            fastest = self._fastest_on(workload, rows.take(few), contexts)
            others = some[least_s[some] <= (best_s if fastest is None else fastest[0])]
            if len(np.setdiff1d(others, few)):
                fastest = self._fastest_on(workload, rows.take(others), contexts)
            if fastest is not None and fastest[0] <= best_s:
                best_s = fastest[0]
                yield FastestTrial(best_s, trial.value or gpus, trial, *fastest[1:])

    def _fastest_on(
        self, workload: Workload, rows: Mappings, contexts: Iterable[Context]
    ) -> tuple[float, Pool, int] | None:
        """The fastest of some mappings, on the first of several sets of domains where it is, with
        its seconds.
        """
        found = list[tuple[float, Pool, int]]()
        for context in contexts:
            placed = place(workload, self.gpu, self.family.hb, context.site, rows)
            pool = in_orders(placed, context.discipline)
            if len(pool):
                row, time_s = fastest_row(pool, context, self.uplinks)
                found.append((time_s, pool, row))
        return min(found, key=itemgetter(0), default=None)
