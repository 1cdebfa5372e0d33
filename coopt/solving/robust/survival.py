"""Which networks survive the loss of a part, each family with the uplinks that it then needs, and
which loss none does.

A lost NIC, leaf or plane takes the same number of NICs from a domain; traffic that leaves the
domain takes longer, as docs/faults.md says, and nothing else changes. So a network survives exactly
when the same network with NICs slower by that factor meets the longer bounds, by whichever mapping
is fastest then; uplinks only help. The loss does not depend on the uplinks, so the networks of a
family that survive are those from some number of uplinks on. The same holds for a lost domain,
whose GPUs are lost with it: `without_domain`.

What training takes after the loss of an HB domain: restarted from a checkpoint on other domains of
the cluster.

Any number of the domains that are left may train, by any mapping that the instance allows
(docs/robust.md). For each of these places the least uplinks follow as they do for whole clusters; a
network needs the least of any place. Places are tried in the order of what their compute takes at
least, which ends a search early and changes no answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from coopt.columns.feasible import FeasibleMappings, feasible_mappings, recalled
from coopt.columns.grid import DomainSet, context_left, context_of
from coopt.columns.islands.shapes import least_compute_s, quick_degrees
from coopt.columns.pools import pool
from coopt.columns.table import best_rows, columns, from_least, full_bandwidth, needs
from coopt.columns.times import delay_tolerance, waiting
from coopt.instance.couplings import LOST, MAX_SLOWDOWN, Losses, Lost
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.schema import Instance
from coopt.instance.texts import grouped
from coopt.instance.variants import after_a_loss, within
from coopt.instance.workload import Workload
from coopt.network.failures import nics_on
from coopt.network.family import Family, without_nics
from coopt.network.space import domain_counts
from coopt.plan.couplings import Survived
from coopt.plan.parts import WorkloadPlan
from coopt.solving.arrays import fastest_row, workload_plan

Check = Callable[[], None]
FARTHEST = 16.0
"""How many times as long as asked for a bound is looked into."""

HELP: dict[str, str] = {
    "nic": "more NICs for each GPU, or faster ones",
    "leaf": "leaves with fewer NICs of each HB domain (another fabric or smaller switches), or more"
    " NICs for each GPU",
    "plane": "more NICs for each GPU",
    "domain": "more and smaller HB domains",
}
PLANES = "a network of several planes (another fabric, or network.nic_planes)"


def survived(
    instance: Instance, family: Family, uplinks: int, losses: Losses
) -> tuple[Survived, ...]:
    """What each loss does to a network that survives it; nothing to lose without a network."""
    parts = losses.items() if family.tiers else ()
    return tuple(_survived(instance, family, uplinks, part, slower) for part, slower in parts)


def _survived(
    instance: Instance, family: Family, uplinks: int, part: Lost, slower: float
) -> Survived:
    if part != "domain":
        assert part != "channel", "sites that train one model answer for it"
        lost = nics_lost(family, part)
        return Survived(part=part, nics_lost=lost, slower=slower, slowdown=slowdown(family, part))
    runs = Jobs(after_a_loss(instance, slower)).runs(family, uplinks)
    assert runs is not None, "the uplinks are enough"
    return Survived(part=part, nics_lost=family.nics_of_domain, slower=slower, workloads=runs)


def runs_without(
    instance: Instance,
    family: Family,
    uplinks: int,
    part: Lost,
    slower: float,
    waits_s: Mapping[str, float],
) -> tuple[WorkloadPlan, ...] | None:
    """How every workload runs fastest without any one such part; None where one misses its bound,
    that much longer.

    Parameters
    ----------
    waits_s
        How long each workload then waits for gradients of other sites, where there are any.
    """
    longer, gpu = after_a_loss(instance, slower), instance.cluster.gpu
    if part == "domain":
        return Jobs(longer).runs(family, uplinks)
    weak = family if part == "channel" else _weakest(family, [part])
    if weak is None or math.inf in waits_s.values():
        return None
    context, runs = context_of(weak), []
    for workload in longer.workload:
        source = feasible_mappings(workload, gpu, family.gpus)
        place = source, gpu, family.hb, context.site, full_bandwidth([context])
        if workload.name in waits_s:
            found = waiting(delay_tolerance(*place)[0].undelayed, waits_s[workload.name])
        else:
            found = pool(*place)[0]
        row, time_s = fastest_row(found, context, uplinks) if len(found) else (0, math.inf)
        if time_s > workload.bound_s:
            return None
        runs.append(workload_plan(found, gpu, context, uplinks, row))
    return tuple(runs)


def slowdown(family: Family, part: Lost) -> float:
    """How much longer traffic of a domain takes after a loss; infinite where the domain is cut
    off.
    """
    ports = family.nic_planes if part == "nic" else 1
    of_gpu = family.nics_on_leaf if part == "leaf" else None
    return without_nics(family, nics_lost(family, part), ports, of_gpu)[0]


def nics_lost(family: Family, part: Lost) -> int:
    """The most NICs of one domain that hang on such a part, with one of their ports where they have
    several.
    """
    if part == "nic":
        return family.ports_in_plane
    if part == "plane":
        return family.nics_of_domain // family.planes
    return min(family.planes_together, family.planes) * int(
        nics_on(family, np.arange(family.leaves)).max()
    )


def surviving(
    instance: Instance, losses: Losses, families: tuple[Family, ...], check: Check
) -> tuple[Family, ...]:
    """The families with those of their uplinks with which they survive every loss; others are left
    out.
    """
    on_nics = {part: slower for part, slower in losses.items() if part != "domain"}
    for slower in dict.fromkeys(on_nics.values()):
        parts = [part for part in on_nics if on_nics[part] == slower]
        families = _without_nics(after_a_loss(instance, slower), parts, families, check)
    if "domain" in losses:
        families = surviving_domains(after_a_loss(instance, losses["domain"]), families, check)
    return families


def _without_nics(
    longer: Instance, parts: Sequence[Lost], families: tuple[Family, ...], check: Check
) -> tuple[Family, ...]:
    """The families with those of their uplinks with which they meet the longer bounds without any
    of these parts.
    """
    weak = [(family, _weakest(family, parts)) for family in families]
    standing = [(family, one) for family, one in weak if one is not None]
    table = columns(longer, tuple(one for _, one in standing), lambda _: None, check)
    need = needs(table.columns, len(longer.workload))
    return tuple(
        from_least((family, need.get(table.numbers[context_of(one)])) for family, one in standing)
    )


def _weakest(family: Family, parts: Sequence[Lost]) -> Family | None:
    """The family with NICs slowed down by its worst loss; None where a domain is cut off."""
    slower = max((slowdown(family, part) for part in parts), default=1.0) if family.tiers else 1.0
    if math.isinf(slower):
        return None
    return replace(family, nic=family.nic.model_copy(update={"gbit_s": family.nic.gbit_s / slower}))


def surviving_domains(
    instance: Instance, families: tuple[Family, ...], check: Check
) -> tuple[Family, ...]:
    """The families with those of their uplinks with which every workload meets its bound without
    any one domain.
    """
    alike = grouped((_key(family), family) for family in families)
    some = {
        key: replace(
            group[0],
            uplink_choices=tuple(sorted({u for family in group for u in family.uplink_choices})),
        )
        for key, group in alike.items()
    }
    need = dict.fromkeys(some, 0)
    jobs = Jobs(instance)
    for w in range(len(instance.workload)):
        mine = _needs(jobs, w, some, check)
        need = {key: max(uplinks, mine[key]) for key, uplinks in need.items() if key in mine}
        some = {key: some[key] for key in need}
    return tuple(from_least((family, need.get(_key(family))) for family in families))


def _key(family: Family) -> object:
    """Families that are the same to every mapping, before a loss and after it."""
    return context_of(family), family.leaf_span, family.pod_span if family.pods else 0


def _needs(jobs: Jobs, w: int, some: dict[object, Family], check: Check) -> dict[object, int]:
    """The least uplinks with which a workload meets its bound; families where it never does are
    left out.
    """
    need: dict[object, int] = {}
    for hb in jobs.instance.network.hb_domains:
        mine = {
            key: family
            for key, family in some.items()
            if family.hb.name == hb.name and family.domains > 1
        }
        for place in jobs.places(w, hb) if mine else ():
            check()
            mine = {
                key: f for key, f in mine.items() if need.get(key, math.inf) > f.uplink_choices[0]
            }
            contexts = grouped(
                (context_left(family, place.site), key)
                for key, family in mine.items()
                if place.fits(family)
            )
            if contexts:
                numbered = list(enumerate(contexts))
                found, _ = pool(
                    jobs.source(w, place), jobs.gpu, hb, place.site, full_bandwidth(list(contexts))
                )
                for column in best_rows(found, numbered, w, check):
                    keys = contexts[numbered[column.context][1]]
                    need |= {
                        key: min(column.uplinks, need.get(key, column.uplinks)) for key in keys
                    }
    return need


class Jobs:
    """Places and mappings for the workloads of an instance; nothing is enumerated twice."""

    def __init__(self, instance: Instance) -> None:
        self.instance, self.gpu = instance, instance.cluster.gpu
        self._places: dict[tuple[int, str], tuple[JobPlace, ...]] = {}
        self._sources: dict[tuple[int, int], FeasibleMappings] = {}

    def places(self, w: int, hb: HbDomain) -> tuple[JobPlace, ...]:
        """Where a workload could run in time on domains of a kind, the most promising place
        first.
        """
        asked = self.instance.workload[w], self.gpu, hb, self.instance.cluster.most_gpus
        return recalled(self._places, (w, hb.name), partial(places, *asked))

    def source(self, w: int, place: JobPlace) -> FeasibleMappings:
        """The mappings of a workload on the GPUs of a place that fit into memory."""
        asked = self.instance.workload[w], self.gpu, place.site.gpus
        return recalled(self._sources, (w, place.site.gpus), partial(feasible_mappings, *asked))

    def fastest(
        self, w: int, family: Family, uplinks: int, share: float = 1.0
    ) -> WorkloadPlan | None:
        """The fastest mapping of a workload on a network without a domain, within that share of its
        bound.
        """
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

    def runs(
        self, family: Family, uplinks: int, share: float = 1.0
    ) -> tuple[WorkloadPlan, ...] | None:
        """How every workload runs fastest; None where one is not within that share of its bound."""
        runs = []
        for w in range(len(self.instance.workload)):
            run = self.fastest(w, family, uplinks, share)
            if run is None:
                return None
            runs.append(run)
        return tuple(runs)


@dataclass(frozen=True, kw_only=True)
class JobPlace:
    """Some GPUs of some domains, and a time that no mapping undercuts there (s)."""

    least_s: float
    site: DomainSet

    def fits(self, family: Family) -> bool:
        """Whether a family holds them without one of its domains, and trains as many GPUs."""
        return self.site.domains < family.domains and self.site.gpus <= family.gpus


def places(workload: Workload, gpu: Gpu, hb: HbDomain, gpus: int) -> tuple[JobPlace, ...]:
    """Every place of up to that many GPUs where compute alone may be in time, the most promising
    first.

    The sizes are those that some (t, c, p, d) multiplies to; the domains of each follow
    docs/network.md.
    """
    table = quick_degrees(workload, gpu, gpus)
    sizes, position = np.unique(table.prod(axis=1), return_inverse=True)
    least = np.full(len(sizes), np.inf)
    np.minimum.at(least, position.ravel(), least_compute_s(workload, gpu, table))
    found = [
        JobPlace(least_s=least_s, site=DomainSet(gpus=some_gpus, hb=hb.name, domains=domains))
        for some_gpus, least_s in zip(sizes.tolist(), least.tolist(), strict=True)
        for domains in domain_counts(some_gpus, hb)
    ]
    return tuple(sorted(found, key=lambda place: place.least_s))


class Subject(NamedTuple):
    """What has to survive a loss, and the bounds that it meets."""

    noun: str
    bounds: str


NETWORK = Subject("network", "the bounds")


def fatal_loss(part: Lost, slower: float, subject: Subject, enough: float | None) -> str:
    """That none survives a loss, and what helps: `enough` is the least factor that does, None where
    that is not known, and infinite where none up to the farthest does.
    """
    key = f"robust.slower.{part}"
    if enough is None:
        planes = f"{PLANES}, or " if part == "plane" else ""
        help_text = f"a larger {key}, or {planes}{HELP[part]}"
    elif math.isinf(enough):
        helps = PLANES if part == "plane" else HELP[part]
        help_text = f"{helps} (no {key} up to {farthest(slower):g} is enough)"
    else:
        from coopt.solving.explain import rounded_up  # which only sentences need

        help_text = f"{key} of at least {rounded_up(enough)}, or {HELP[part]}"
    eased = f", even with bounds {slower:g} times as long" if slower > 1 else ""
    return (
        f"robust.survive = {part}: no {subject.noun} meets {subject.bounds} after the loss of one"
        f" {LOST[part]}{eased}: needs {help_text}"
    )


def survived_by_none(losses: Losses, subject: Subject) -> str:
    """That some survives each loss, and none all of them."""
    return (
        f"robust.survive = {', '.join(losses)}: for each of these losses some {subject.noun} meets"
        f" {subject.bounds} after it, but no {subject.noun} does for all of them: needs a larger"
        " robust.slower, or fewer losses to survive"
    )


def farthest(slower: float) -> float:
    """The largest factor that is tried in place of one that is not enough."""
    return min(FARTHEST * slower, MAX_SLOWDOWN)
