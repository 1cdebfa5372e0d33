"""How an island can stand and grow: its network in every phase, with the fewest uplinks that serve.

An island is what one workload has to itself, or the one network that all workloads have in turn. In a phase that leaves
its workload out it stands as it did before, or not yet. In others it has any number of GPUs that the phase allows, not
fewer than before, on a network that grows as docs/phased.md says; the one network of all has all GPUs of the phase.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

import numpy as np

from coopt.columns.context import context_of
from coopt.columns.islands.sizes import quick_degrees
from coopt.columns.table import columns
from coopt.instance.robust import Robust
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.variants import of_phase
from coopt.instance.workload import Workload
from coopt.network.cores import links_to_core
from coopt.network.family import Family
from coopt.network.growth import grown, grows, retrofit
from coopt.network.space import families
from coopt.solving.arrays import needs
from coopt.solving.robust.survival import surviving

Check = Callable[[], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class IslandPath:
    """An island over the phases: its network in each, None before its first, and the uplinks of a leaf."""

    families: tuple[Family | None, ...]
    uplinks: tuple[int, ...]

    @property
    def stands(self) -> Iterator[tuple[int, Family, int]]:
        """Number, network and uplinks of every phase in which it stands."""
        for t, (family, uplinks) in enumerate(zip(self.families, self.uplinks, strict=True)):
            if family is not None:
                yield t, family, uplinks

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


@dataclass(kw_only=True)
class Listing:
    """The islands of one workload, and how many networks and mappings were dropped by cause."""

    paths: list[IslandPath] = field(default_factory=list)
    families: int = 0
    gated: Counter[str] = field(default_factory=Counter)


def phase_questions(instance: Instance) -> tuple[Instance, ...]:
    """The question of each phase alone, without the sites it may be built at; one where nothing grows."""
    alone = instance.model_copy(update={"site": ()})
    return tuple(of_phase(alone, t) for t in range(len(instance.phase))) or (alone,)


def list_paths(
    instance: Instance,
    names: Collection[str],
    robust: Robust | None,
    measures: tuple[ObjectiveKind, ...],
    check: Check,
) -> Listing:
    """Every island that meets the bounds of some workloads in all phases, also after each loss.

    Parameters
    ----------
    instance
        The question without intervals, at the least efficiency.
    robust
        The losses to survive, if any.
    measures
        What optics are compared by.
    check
        Called now and then; may raise.
    """
    found = Listing()
    questions = [_of_workloads(question, names) for question in phase_questions(instance)]
    active = [t for t, question in enumerate(questions) if question is not None]
    sizes = {t: _sizes(question) for t, question in enumerate(questions) if question is not None}
    last = [
        family
        for family in families(_sized(questions[active[-1]], sizes[active[-1]]), measures)
        if family.core_links >= links_to_core(instance, family.gpus)
    ]
    found.families = len(last)
    menus = [_menus(instance, family, active, sizes) for family in last]
    served = {}
    for t in active:
        listed = [family for menu in menus for family in menu[t]]
        served[t] = _served(questions[t], listed, robust, check, found.gated)
        starts = iter(np.cumsum([0, *(len(menu[t]) for menu in menus)]).tolist())
        for menu, start in zip(menus, starts, strict=False):
            menu[t] = [one for n in range(start, start + len(menu[t])) if (one := served[t].get(n)) is not None]
    for menu in menus:
        for chosen in product(*(menu[t] for t in active)):
            check()
            found.paths += _paths(instance, dict(zip(active, chosen, strict=True)), len(questions))
    return found


def _of_workloads(question: Instance, names: Collection[str]) -> Instance | None:
    """A phase's question of some workloads; None where the phase leaves them out."""
    mine = tuple(workload for workload in question.workload if workload.name in names)
    return question.model_copy(update={"workload": mine}) if mine else None


def _sizes(question: Instance) -> tuple[int, ...]:
    """GPUs that an island may have in a phase, as far as compute alone can tell."""
    if question.sharing.mode == "time":
        return question.cluster.gpus
    (workload,), (most,) = question.workload, question.cluster.gpus
    table = quick_degrees(workload, question.cluster.gpu, most)
    return tuple(np.unique(table.prod(axis=1)).tolist())


def _sized(question: Instance | None, sizes: tuple[int, ...]) -> Instance:
    assert question is not None
    return question.model_copy(update={"cluster": question.cluster.model_copy(update={"gpus": sizes})})


def _menus(
    instance: Instance, last: Family, active: list[int], sizes: dict[int, tuple[int, ...]]
) -> dict[int, list[Family]]:
    """The networks that a network of the last phase can have been in each phase, and itself."""
    ratio = instance.network.largest_ratio
    menus: dict[int, list[Family]] = {}
    for t in active[:-1]:
        fits = [
            gpus
            for gpus in sizes[t]
            if gpus <= last.gpus and gpus % last.active == 0 and grows(last, (gpus, last.gpus))
        ]
        earlier = [grown(last, gpus, ratio, links_to_core(instance, gpus)) for gpus in fits]
        menus[t] = [family for family in earlier if links_to_core(instance, family.gpus) <= family.core_links]
    return menus | {active[-1]: [last]}


def _served(
    question: Instance | None, listed: list[Family], robust: Robust | None, check: Check, gated: Counter[str]
) -> dict[int, Family]:
    """The networks on which the workload of a question meets its bound, by position, with the uplinks that do."""
    assert question is not None
    numbered = [NumberedFamily(**vars(family), number=n) for n, family in enumerate(listed)]
    table = columns(question, tuple(numbered), lambda _site: check(), check)
    gated.update(table.gated)
    need = needs(question, table)
    kept = []
    for family in numbered:
        least, choices = need.get(table.numbers[context_of(family)]), family.uplink_choices
        if least is not None and least < choices.stop:
            kept.append(replace(family, uplink_choices=range(max(choices.start, least), choices.stop)))
    if robust is not None and robust.survive:
        kept = [one for one in surviving(question, robust, tuple(kept), check) if isinstance(one, NumberedFamily)]
    gated["communication"] += len(numbered) - len(kept)
    return {family.number: family for family in kept}


def _paths(instance: Instance, chosen: dict[int, Family], phases: int) -> Iterator[IslandPath]:
    """The paths over networks of the phases that train, with every number of uplinks that could be worth having.

    More uplinks than the phase and those before it need only pay where links cost labour once leaves stand, and more
    than any phase needs never do: units and labour then fall with them.
    """
    active = sorted(chosen)
    for before, after in pairwise(chosen[t] for t in active):
        if before.gpus > after.gpus or before.core_links > after.core_links:
            return
    labour = any(phase.retrofit_usd_per_link for phase in instance.phase)
    most = max(chosen[t].uplink_choices.start for t in active)
    menus = []
    for t in active:
        choices = chosen[t].uplink_choices
        menus.append(range(choices.start, min(choices.stop, most + 1)))
    for uplinks in _rising(menus, every=labour):
        yield _stretched(dict(zip(active, uplinks, strict=True)), chosen, phases)


def _rising(menus: list[range], *, every: bool) -> Iterator[tuple[int, ...]]:
    """Uplinks that never fall: all of them, or the least of each phase."""

    def from_phase(t: int, least: int) -> Iterator[tuple[int, ...]]:
        if t == len(menus):
            yield ()
            return
        rest = menus[t][max(least - menus[t].start, 0) :]
        for uplinks in rest if every else rest[:1]:
            for later in from_phase(t + 1, uplinks):
                yield uplinks, *later

    yield from from_phase(0, 0)


def _stretched(uplinks: dict[int, int], chosen: dict[int, Family], phases: int) -> IslandPath:
    """A path over all phases: as before where the workload does not train, nothing before its first."""
    networks: list[Family | None] = []
    links: list[int] = []
    for t in range(phases):
        networks.append(chosen[t] if t in chosen else networks[-1] if networks else None)
        links.append(uplinks[t] if t in uplinks else links[-1] if links else 0)
    return IslandPath(families=tuple(networks), uplinks=tuple(links))


def workloads_in(question: Instance, names: Collection[str]) -> tuple[Workload, ...]:
    """Some workloads as a phase asks for them, without those that it leaves out."""
    return tuple(workload for workload in question.workload if workload.name in names)
