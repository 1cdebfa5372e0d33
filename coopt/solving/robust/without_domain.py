"""What training takes after the loss of an HB domain: restarted from a checkpoint on other domains of the cluster.

Any number of the domains that are left may train, by any mapping that the instance allows (docs/robust.md). For each of
these places the least uplinks follow as they do for whole clusters; a network needs the least of any place. Places are
tried in the order of what their compute takes at least, which ends a search early and changes no answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from coopt.columns.context import Context, context_left, context_of
from coopt.columns.left import Place, places
from coopt.columns.pools import Fitting, fitting, pool
from coopt.columns.table import best_rows, full_bandwidth
from coopt.instance.hardware import HbDomain
from coopt.instance.schema import Instance
from coopt.instance.variants import within
from coopt.network.family import Family
from coopt.plan.schema import WorkloadPlan
from coopt.solving.workloads import fastest_row, workload_plan

Check = Callable[[], None]


def surviving_domains(instance: Instance, families: tuple[Family, ...], check: Check) -> tuple[Family, ...]:
    """The families with those of their uplinks with which every workload meets its bound without any one domain."""
    alike: dict[object, list[Family]] = {}
    for family in families:
        alike.setdefault(_key(family), []).append(family)
    some = {key: _of_most_choices(group) for key, group in alike.items()}
    need = dict.fromkeys(some, 0)
    jobs = Jobs(instance)
    for w in range(len(instance.workload)):
        mine = _needs(jobs, w, some, check)
        need = {key: max(uplinks, mine[key]) for key, uplinks in need.items() if key in mine}
        some = {key: some[key] for key in need}
    return tuple(from_least((family, need.get(_key(family))) for family in families))


def from_least(needed: Iterable[tuple[Family, int | None]]) -> Iterator[Family]:
    """Each family with its uplinks from the least needed on; left out where there are none."""
    for family, least in needed:
        choices = family.uplink_choices
        if least is not None and least < choices.stop:
            yield replace(family, uplink_choices=range(max(choices.start, least), choices.stop))


def _key(family: Family) -> object:
    """Families that are the same to every mapping, before a loss and after it."""
    return context_of(family), family.leaf_span, family.pod_span if family.pods else 0


def _of_most_choices(group: list[Family]) -> Family:
    """One of families that are alike, with the uplinks of all."""
    least = min(family.uplink_choices.start for family in group)
    most = max(family.uplink_choices.stop for family in group)
    return replace(group[0], uplink_choices=range(least, most))


def _needs(jobs: Jobs, w: int, some: dict[object, Family], check: Check) -> dict[object, int]:
    """The least uplinks with which a workload meets its bound; families where it never does are left out."""
    need: dict[object, int] = {}
    for hb in jobs.instance.network.hb_domains:
        mine = {key: family for key, family in some.items() if family.hb.name == hb.name and family.domains > 1}
        for place in jobs.places(w, hb) if mine else ():
            check()
            mine = {key: f for key, f in mine.items() if need.get(key, math.inf) > f.uplink_choices.start}
            contexts: dict[Context, list[object]] = {}
            for key, family in mine.items():
                if place.fits(family):
                    contexts.setdefault(context_left(family, place.site), []).append(key)
            if contexts:
                numbered = list(enumerate(contexts))
                found, _ = pool(jobs.source(w, place), jobs.gpu, hb, place.site, full_bandwidth(list(contexts)))
                for column in best_rows(found, numbered, w, check):
                    keys = contexts[numbered[column.context][1]]
                    need |= {key: min(column.uplinks, need.get(key, column.uplinks)) for key in keys}
    return need


class Jobs:
    """Places and mappings for the workloads of an instance; nothing is enumerated twice."""

    def __init__(self, instance: Instance) -> None:
        self.instance, self.gpu = instance, instance.cluster.gpu
        self._places: dict[tuple[int, str], tuple[Place, ...]] = {}
        self._sources: dict[tuple[int, int], Fitting] = {}

    def places(self, w: int, hb: HbDomain) -> tuple[Place, ...]:
        """Where a workload could run in time on domains of a kind, the most promising place first."""
        if (w, hb.name) not in self._places:
            self._places[w, hb.name] = places(self.instance.workload[w], self.gpu, hb, max(self.instance.cluster.gpus))
        return self._places[w, hb.name]

    def source(self, w: int, place: Place) -> Fitting:
        """The mappings of a workload on the GPUs of a place that fit into memory."""
        key = w, place.site.gpus
        if key not in self._sources:
            self._sources[key] = fitting(self.instance.workload[w], self.gpu, place.site.gpus)
        return self._sources[key]

    def fastest(self, w: int, family: Family, uplinks: int, share: float = 1.0) -> WorkloadPlan | None:
        """The fastest mapping of a workload on a network without a domain, within that share of its bound."""
        workload, best = self.instance.workload[w], None
        within_s = workload.bound_s * share
        for place in self.places(w, family.hb):
            if place.least_s > within_s:
                break
            if not place.fits(family):
                continue
            source, context = self.source(w, place), context_left(family, place.site)
            source = replace(source, workload=within(workload, within_s))
            found, _ = pool(source, self.gpu, family.hb, place.site, full_bandwidth([context]))
            if not len(found):
                continue
            row, time_s = fastest_row(found, context, uplinks)
            if time_s < within_s or (best is None and time_s <= within_s):
                best, within_s = workload_plan(found, self.gpu, context, uplinks, row), time_s
        return best and best.model_copy(update={"bound_s": workload.bound_s})

    def runs(self, family: Family, uplinks: int, share: float = 1.0) -> tuple[WorkloadPlan, ...] | None:
        """How every workload runs fastest; None where one is not within that share of its bound."""
        runs = []
        for w in range(len(self.instance.workload)):
            run = self.fastest(w, family, uplinks, share)
            if run is None:
                return None
            runs.append(run)
        return tuple(runs)
