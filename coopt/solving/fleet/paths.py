"""How an island can stand and grow: its network in every phase, with the fewest uplinks that serve.

An island is what one workload has to itself, or the one network that all workloads have in turn. In
a phase that leaves its workload out it stands as it did before, or not yet. In others it has any
number of GPUs that the phase allows, not fewer than before, on a network that grows as
docs/phased.md says; the one network of all has all GPUs of the phase. Where failures count, each
number of uplinks takes the fewest spare domains with which training is in time, and domains that
stand by in a phase do so from then on.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from coopt.columns.feasible import without_bound
from coopt.columns.grid import Context, context_of
from coopt.columns.islands.options import ListedIslands, question_key
from coopt.columns.islands.shapes import quick_degrees
from coopt.columns.table import columns, from_least, needs
from coopt.columns.times import FastestTimes, uplinks_by_context
from coopt.instance.couplings import Losses
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.texts import grouped
from coopt.instance.variants import phases_of
from coopt.instance.workload import Workload
from coopt.network.cores import links_to_core
from coopt.network.family import Family
from coopt.network.growth import grown, grows, link_labour_usd, retrofit
from coopt.network.laying import laid_lines
from coopt.network.optics import OpticValues, values_of
from coopt.network.placing import Bay, bay_of
from coopt.network.space import families
from coopt.solving.days import counts_days, in_days
from coopt.solving.robust.survival import surviving

Check = Callable[[], None]
Member = TypeVar("Member")
Prune = Callable[[Sequence["Chain"]], list["IslandPath"]]
Stages = dict[int, Family]
"""What a network of the last phase can have been before, and itself, by GPUs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class IslandPath:
    """An island over the phases: its network in each, None before its first, and the uplinks of a
    leaf.
    """

    families: tuple[Family | None, ...]
    uplinks: tuple[int, ...]

    @property
    def stands(self) -> Iterator[tuple[int, Family, int]]:
        """Number, network and uplinks of every phase in which it stands."""
        each = enumerate(zip(self.families, self.uplinks, strict=True))
        return ((t, family, uplinks) for t, (family, uplinks) in each if family is not None)

    def retrofitted(self, phase: int) -> int:
        """Links added in a phase to switches that stood before it."""
        now, before = self.families[phase], self.families[phase - 1] if phase else None
        if now is None or before is None:
            return 0
        return retrofit(before, now).links(self.uplinks[phase - 1], self.uplinks[phase])


@dataclass(frozen=True, kw_only=True)
class NumberedFamily(Family):
    """A family with its position in a list, which stays with it when its uplinks are narrowed."""

    number: int = 0


Chain = dict[int, Family]
"""The networks of one line in the phases that train, each with the uplinks that serve."""


@dataclass(kw_only=True)
class Listing:
    """The islands of one workload, and how many networks and mappings were dropped by cause.

    `begun` are the networks of each line in the phases that they serve, whatever they do in others.
    """

    paths: list[IslandPath] = field(default_factory=list)
    begun: list[Chain] = field(default_factory=list)
    families: int = 0
    gated: Counter[str] = field(default_factory=Counter)


def list_paths(
    instance: Instance,
    names: Collection[str],
    losses: Losses,
    measures: tuple[ObjectiveKind, ...],
    check: Check,
    listed: ListedIslands,
    prune: Prune | None = None,
) -> Listing:
    """Every island that meets the bounds of some workloads in all phases, also after each loss.

    Parameters
    ----------
    instance
        The question without intervals, at the least efficiency.
    losses
        What any one of may be lost.
    measures
        What optics are compared by.
    check
        Called now and then; may raise.
    listed
        What was listed before, and this adds to.
    prune
        The paths that may win of some chains; none where every path may.
    """
    asked = asked_in(instance, names)
    trained = tuple((t, question.workload) for t, question in asked.items())
    key = question_key(instance), trained, tuple(losses.items()), measures
    served = listed.long_list(
        key, lambda: _served(instance, asked, losses, measures, listed, check)
    )
    bay = bay_of(instance, next(iter(names)))
    return _with_paths(instance, served, measures, check, prune, bay)


def _served(
    instance: Instance,
    asked: Mapping[int, Instance],
    losses: Losses,
    measures: tuple[ObjectiveKind, ...],
    listed: ListedIslands,
    check: Check,
) -> Served:
    """The networks of all lines that serve in every phase, as `list_paths` has them."""
    sizes = {t: sizes_of(question) for t, question in asked.items()}
    final = max(asked)
    lines = listed.networks(
        instance,
        (tuple(sizes.items()), tuple(map(without_bound, asked[final].workload)), measures),
        lambda: list(_lines(instance, asked[final], sizes, measures, check)),
    )
    trained = {
        t: [trained_on(stages, sizes[t], last=t == final) for stages in lines] for t in asked
    }
    # what is too small or too large for some phase need not be timed in others
    whole = [n for n in range(len(lines)) if all(some[n] for some in trained.values())]
    lines = [lines[n] for n in whole]
    trained = {t: [some[n] for n in whole] for t, some in trained.items()}
    return _served_on_lines(instance, asked, lines, trained, losses, listed, check)


def _lines(
    instance: Instance,
    final: Instance,
    sizes: Mapping[int, Sequence[int]],
    measures: tuple[ObjectiveKind, ...],
    check: Check,
) -> Iterator[Stages]:
    """Every network of the last phase with what it can have been before, at the sizes of phases."""
    *earlier, last_sizes = sizes.values()
    links = {gpus: links_to_core(instance, gpus) for some in sizes.values() for gpus in some}
    before = sorted({gpus for some in earlier for gpus in some})
    cluster = final.cluster.model_copy(update={"gpus": last_sizes})
    question = final.model_copy(update={"cluster": cluster})
    for last in families(question, measures, grow=bool(before), unlaid=True):
        check()
        if last.core_links >= links[last.gpus]:
            yield stages_of(last, before, instance.network.largest_ratio, links)


def paths_on(
    instance: Instance,
    asked: Mapping[int, Instance],
    lines: Sequence[Stages],
    trained: Mapping[int, Sequence[Collection[int]]],
    losses: Losses,
    listed: ListedIslands,
    measures: tuple[ObjectiveKind, ...],
    check: Check,
    bay: Bay,
) -> Listing:
    """The islands on some lines that meet the bounds of all phases, as `list_paths` has them.

    Parameters
    ----------
    asked
        The question of each phase that trains.
    trained
        For each of these phases the numbers of GPUs that may train on each line.
    """
    served = _served_on_lines(instance, asked, lines, trained, losses, listed, check)
    return _with_paths(instance, served, measures, check, None, bay)


def _pays_labour(instance: Instance) -> bool:
    """Whether links that are added later cost labour in some phase."""
    return any(link_labour_usd(instance, t) for t in range(len(instance.years)))


Served = tuple[Listing, list[Chain]]
"""What is known of the islands on some lines but their uplinks, and their networks in the phases
that train.
"""


def _served_on_lines(
    instance: Instance,
    asked: Mapping[int, Instance],
    lines: Sequence[Stages],
    trained: Mapping[int, Sequence[Collection[int]]],
    losses: Losses,
    listed: ListedIslands,
    check: Check,
) -> Served:
    """The networks on some lines that serve in every phase, as `paths_on` has them."""
    found = Listing(families=len(lines))
    served: dict[int, list[list[Family]]] = {}
    for alike in grouped((question.workload, t) for t, question in asked.items()).values():
        keys = list(
            dict.fromkeys(
                (n, gpus) for t in alike for n, some in enumerate(trained[t]) for gpus in some
            )
        )
        networks = [lines[n][gpus] for n, gpus in keys]
        enough = served_on(asked[alike[-1]], networks, losses, listed, check, found.gated)
        by_line = {key: enough[number] for number, key in enumerate(keys) if number in enough}
        for t in alike:
            served[t] = [
                [one for g in some for one in by_line.get((n, g), ())]
                for n, some in enumerate(trained[t])
            ]
    # a larger network whose cables lengths choose may have fewer of some
    by_length = instance.network.cables == "hall"
    every = _pays_labour(instance) or instance.availability is not None or by_length
    found.begun = [{t: served[t][n][0] for t in asked if served[t][n]} for n in range(len(lines))]
    chains = [
        _standing_by(chosen)
        for n in range(len(lines))
        for chosen in _growing({t: served[t][n] for t in asked}, every=every)
    ]
    return found, chains


def _with_paths(
    instance: Instance,
    served: Served,
    measures: tuple[ObjectiveKind, ...],
    check: Check,
    prune: Prune | None,
    bay: Bay,
) -> Listing:
    """The islands on networks that serve, each with its uplinks over the phases."""
    known, chains = served
    found = replace(known, gated=known.gated.copy(), paths=prune(chains) if prune else [])
    labour, uninterrupted = _pays_labour(instance), instance.availability is None
    for chosen in chains if not found.paths else ():
        check()
        for laid in with_cables(instance, chosen, values_of(instance, measures), check, bay):
            found.paths += _paths(laid, len(instance.years), every=labour, from_least=uninterrupted)
    return found


def with_cables(
    instance: Instance, chain: Chain, values: OpticValues, check: Check, bay: Bay
) -> Iterator[Chain]:
    """The networks of a line with each choice of cables, for each number of uplinks in the end,
    that no other beats in some phase by the `values` of a module; as they are where lengths do not
    choose cables.
    """
    last = chain[max(chain)]
    for uplinks in last.uplink_choices if last.unlaid else ():
        for stages in laid_lines(instance, list(chain.values()), uplinks, values, check, bay):
            yield dict(zip(chain, stages, strict=True))
    if not last.unlaid:
        yield chain


def asked_in(instance: Instance, names: Collection[str]) -> dict[int, Instance]:
    """The question of some workloads in each phase in which they train."""
    return {
        t: question.model_copy(update={"workload": asked})
        for t, question in enumerate(phases_of(instance))
        if (asked := workloads_named(question, names))
    }


def sizes_of(question: Instance) -> tuple[int, ...]:
    """GPUs that an island may have in a phase, as far as compute alone can tell."""
    if question.sharing.mode == "time":
        return tuple(sorted(set(question.cluster.gpus)))
    (workload,) = question.workload
    table = quick_degrees(workload, question.cluster.gpu, question.cluster.most_gpus)
    return tuple(np.unique(table.prod(axis=1)).tolist())


def stages_of(
    last: Family, before: Collection[int], ratio: float, links: Mapping[int, int]
) -> Stages:
    """A network of the last phase with every smaller number of GPUs that has the links it needs
    into a core.
    """
    smaller = [
        gpus
        for gpus in before
        if gpus < last.gpus and gpus % last.active == 0 and grows(last, (gpus, last.gpus))
    ]
    every = (*(grown(last, gpus, ratio, links[gpus]) for gpus in smaller), last)
    return {
        one.gpus: one for one in every if one.uplink_choices and links[one.gpus] <= one.core_links
    }


def trained_on(stages: Stages, sizes: Collection[int], *, last: bool) -> list[int]:
    """The numbers of GPUs that train in a phase; those of the network itself in its last one."""
    return [max(stages)] if last else [gpus for gpus in sizes if gpus in stages]


def served_on(
    question: Instance,
    networks: list[Family],
    losses: Losses,
    listed: ListedIslands,
    check: Check,
    gated: Counter[str],
) -> dict[int, list[Family]]:
    """The networks on which the workload of a question meets its bound, by position, with the
    uplinks that do.

    There are several of one network where failures count: one for each number of spare domains that
    some uplinks take.
    """
    numbered = tuple(NumberedFamily(**vars(family), number=n) for n, family in enumerate(networks))
    fastest = None if counts_days(question) else listed.fastest(question)
    if fastest is None:
        table = columns(question, numbered, lambda _site: check(), check)
        gated.update(table.gated)
        needed = needs(table.columns, len(question.workload))
        need = {context: needed[n] for context, n in table.numbers.items() if n in needed}
        kept = list(from_least((family, need.get(context_of(family))) for family in numbered))
        kept = list(in_days(question, tuple(kept), table, check))
    else:
        need = _needed(question, numbered, fastest, check)
        kept = list(from_least((family, need.get(context_of(family))) for family in numbered))
    if losses:
        kept = list(surviving(question, losses, tuple(kept), check))
    found: dict[int, list[Family]] = {}
    for family in kept:
        assert isinstance(family, NumberedFamily), "narrowing keeps the number"
        found.setdefault(family.number, []).append(family)
    gated["communication"] += len(numbered) - len(found)
    return found


def _needed(
    question: Instance,
    networks: Sequence[Family],
    fastest: Sequence[FastestTimes],
    check: Check,
) -> dict[Context, int]:
    """The fewest uplinks with which a context serves all workloads; contexts that cannot are left
    out.
    """
    choices = uplinks_by_context(networks)
    domains = {domain.name: domain for domain in question.network.hb_domains}
    need = dict.fromkeys(choices, 0)
    for workload, times in zip(question.workload, fastest, strict=True):
        open_choices = {context: choices[context] for context in need}
        fewest = times.fewest_uplinks(workload.bound_s, open_choices, domains, check)
        need = {context: max(need[context], uplinks) for context, uplinks in fewest.items()}
    return need


def _growing(menus: Mapping[int, list[Family]], *, every: bool) -> Iterator[dict[int, Family]]:
    """The ways to grow through networks of one line, without those that are never better than
    another.

    Where links added later cost no labour, of two networks that may follow the same one the smaller
    is never the worse one if no fewer uplinks serve on the larger: all that may follow the larger
    may follow the smaller one, so that no less of anything stands in any phase with the larger, and
    purchases for more do for less. With labour all are kept.
    """

    def follow(before: Family | None, menu: Sequence[Family]) -> Iterable[Family]:
        larger = [
            family
            for family in menu
            if before is None
            or (before.gpus <= family.gpus and before.core_links <= family.core_links)
        ]
        return larger if every else _fewest(larger)

    return (
        dict(zip(menus, ways, strict=True)) for ways in _sequences(list(menus.values()), follow)
    )


def _sequences(
    menus: Sequence[Sequence[Member]],
    follow: Callable[[Member | None, Sequence[Member]], Iterable[Member]],
    before: Member | None = None,
) -> Iterator[tuple[Member, ...]]:
    """One member of each menu, of those that may follow the one before."""
    if not menus:
        yield ()
    for member in follow(before, menus[0]) if menus else ():
        for later in _sequences(menus[1:], follow, member):
            yield member, *later


def _fewest(follow: list[Family]) -> Iterator[Family]:
    """The networks of one line on which fewer uplinks serve than on every smaller one."""
    least = math.inf
    for family in sorted(follow, key=lambda family: family.gpus):
        if family.uplink_choices[0] < least:
            least = family.uplink_choices[0]
            yield family


def _standing_by(chosen: dict[int, Family]) -> dict[int, Family]:
    """The networks of the phases with domains that stand by from when they first do."""
    found, most = {}, 0
    for t, family in chosen.items():
        most = max(most, family.spare_domains)
        found[t] = family if family.spare_domains == most else replace(family, spare_domains=most)
    return found


def _paths(
    chosen: dict[int, Family], phases: int, *, every: bool, from_least: bool
) -> Iterator[IslandPath]:
    """The paths over networks of the phases that train, with every number of uplinks that could be
    worth having.

    More uplinks than the phase and those before it need only pay where links cost labour once
    leaves stand, and more than any phase needs never do: units and labour then fall with them. That
    holds where all uplinks from the least on serve (`from_least`).
    """
    most = max(family.uplink_choices[0] for family in chosen.values()) if from_least else math.inf
    menus = [tuple(u for u in family.uplink_choices if u <= most) for family in chosen.values()]

    def rising(before: int | None, menu: Sequence[int]) -> Sequence[int]:
        rest = menu[bisect_left(menu, before or 0) :]
        return rest if every else rest[:1]

    for uplinks in _sequences(menus, rising):
        yield stretched(dict(zip(chosen, uplinks, strict=True)), chosen, phases)


def stretched(uplinks: dict[int, int], chosen: dict[int, Family], phases: int) -> IslandPath:
    """A path over all phases: as before where the workload does not train, nothing before its
    first.
    """
    networks: list[Family | None] = []
    links: list[int] = []
    for t in range(phases):
        networks.append(chosen[t] if t in chosen else networks[-1] if networks else None)
        links.append(uplinks[t] if t in uplinks else links[-1] if links else 0)
    return IslandPath(families=tuple(networks), uplinks=tuple(links))


def workloads_named(question: Instance, names: Collection[str]) -> tuple[Workload, ...]:
    """Some workloads as a phase asks for them, without those that it leaves out."""
    return tuple(workload for workload in question.workload if workload.name in names)
