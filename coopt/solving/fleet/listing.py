"""What the islands of a question may be: for each slot and site every island that no other
dominates.

Islands that stand as they are, at known prices, are listed as arrays. Others, which grow, keep
their bounds after losses or stand at doubtful prices, are listed one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from coopt.columns.islands.coupling import Coupling
from coopt.columns.islands.listing import Market
from coopt.columns.islands.options import (
    IslandOptions,
    ListedIslands,
    list_options,
    question_key,
)
from coopt.columns.islands.shapes import Sites
from coopt.instance.schema import Instance, questions_by_gpu
from coopt.instance.variants import as_built, phases_of
from coopt.network.cores import core_links_of_module, core_ports_of, with_core_optics
from coopt.network.family import Family
from coopt.network.parts import racks
from coopt.network.space import Space
from coopt.solving.fleet.arrays import Grid, OptionUses, coupled
from coopt.solving.fleet.cheapest import cheapest_paths, is_separable
from coopt.solving.fleet.paths import (
    Chain,
    IslandPath,
    asked_in,
    served_on,
    sizes_of,
    workloads_named,
)
from coopt.solving.fleet.placed import (
    Placed,
    distinct_networks,
    labour_usd,
    slots_of,
    units_at,
)
from coopt.solving.fleet.standing import list_islands
from coopt.solving.runs import Counted, Run
from formulations.choice_data import ChoiceData, Floats, Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Paths:
    """Islands over the phases, one by one; `begun` are networks in the phases that they serve."""

    placed: tuple[Placed, ...]
    begun: tuple[Chain, ...] = ()

    def __len__(self) -> int:
        return len(self.placed)

    @property
    def slot(self) -> Ints:
        """The slot that each one serves."""
        return np.array([one.slot for one in self.placed], dtype=np.int64)

    def uses(self, grid: Grid) -> OptionUses:
        """What each one uses of whatever couples them."""
        instance = grid.instance

        networks, row = distinct_networks([one.path for one in self.placed], grid.phases)

        def in_phases(taken: Callable[[Family], int]) -> Floats:
            # where none stands the number is -1, that of the nothing at the end
            return np.array([*(taken(family) for family, _ in networks), 0.0])[row]

        return OptionUses(
            slots=len(slots_of(instance)),
            slot=self.slot,
            site=np.array(
                [-1 if one.site is None else one.site for one in self.placed], dtype=np.int64
            ),
            gpus=in_phases(lambda family: family.gpus),
            racks=in_phases(lambda family: racks(family) or 0),
            core_ports=in_phases(lambda family: core_ports_of(instance, family.core_links)),
            units=np.array(
                [*(units_at(grid, *network) for network in networks), np.zeros(len(grid.goods))]
            )[row],
            labour_usd=labour_usd(instance, networks, row),
        )

    def built(self, rows: Ints) -> list[Placed]:
        """The islands of some numbers."""
        return [self.placed[row] for row in rows.tolist()]


@dataclass(frozen=True, kw_only=True, eq=False)
class StandingIslands:
    """Islands of one phase as arrays, each at every site in turn; `begun` is for what grows."""

    market: Market
    listed: IslandOptions
    sites: tuple[int | None, ...]
    begun: tuple[Chain, ...] = ()

    def __len__(self) -> int:
        return len(self.listed.workload) * len(self.sites)

    @property
    def slot(self) -> Ints:
        """The slot that each one serves."""
        return np.repeat(self.listed.workload, len(self.sites))

    def uses(self, grid: Grid) -> OptionUses:
        """What each one uses of whatever couples them."""
        islands, count = self.listed.islands, len(self.listed.workload)
        places = Sites(gpus=islands.gpus, hb=islands.hb, domains=islands.domains)
        filled = Coupling(market=self.market).racks(places.hb, places.domains)
        of_module = core_links_of_module(grid.instance)
        ports = -(-islands.core_links // of_module) * of_module

        units = np.zeros((len(islands), len(grid.goods)))
        units[:, [grid.place[item.key] for item in self.market.products]] = islands.units

        def each(values: Floats | Ints) -> Floats:
            """Of one phase, at every site."""
            return np.repeat(np.asarray(values, dtype=np.float64)[:, None], len(self.sites), axis=0)

        return OptionUses(
            slots=len(slots_of(grid.instance)),
            slot=self.slot,
            site=np.tile([-1 if site is None else site for site in self.sites], count),
            gpus=each(islands.gpus),
            racks=each(filled),
            core_ports=each(ports),
            units=each(units),
            labour_usd=np.zeros(len(self)),
        )

    def built(self, rows: Ints) -> list[Placed]:
        """The islands of some numbers."""
        return [self._placed(row) for row in rows.tolist()]

    def _placed(self, row: int) -> Placed:
        number, site = divmod(row, len(self.sites))
        islands = self.listed.islands
        family, uplinks = self.market.family(islands, number), int(islands.uplinks[number])
        return Placed(
            slot=int(self.listed.workload[number]),
            path=IslandPath(families=(family,), uplinks=(uplinks,)),
            site=self.sites[site],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Together:
    """Islands of several lists, one after the other."""

    lists: tuple[SlotOptions, ...]
    begun: tuple[Chain, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.lists))

    @property
    def slot(self) -> Ints:
        """The slot that each one serves."""
        return np.concatenate([one.slot for one in self.lists])

    def uses(self, grid: Grid) -> OptionUses:
        """What each one uses of whatever couples them."""
        uses = [one.uses(grid) for one in self.lists]
        names = [field.name for field in fields(OptionUses) if field.name != "slots"]
        columns = {name: np.concatenate([getattr(one, name) for one in uses]) for name in names}
        return OptionUses(slots=uses[0].slots, **columns)

    def built(self, rows: Ints) -> list[Placed]:
        """The islands of some numbers."""
        ends = np.cumsum([len(one) for one in self.lists])
        places = np.searchsorted(ends, rows, side="right").tolist()
        return [
            self.lists[n].built(rows[k : k + 1] - (ends[n - 1] if n else 0))[0]
            for k, n in enumerate(places)
        ]


SlotOptions = Paths | StandingIslands | Together
"""The islands that a question may choose from, by their numbers."""


def numbers_of(instance: Instance, options: SlotOptions) -> ChoiceData:
    """The numbers of options over phases and sites, at the prices of an instance."""
    grid = Grid(instance=instance)
    return coupled(grid, options.uses(grid))


Listed = tuple[Instance, SlotOptions]
"""The question with an optic of its core, and every island of it."""


def islands_listed(run: Run, *, beaten_optics: bool = False) -> list[Listed]:
    """The islands that bills count, at the prices of these bills, on request with cores whose optic
    another one beats.
    """
    return listed_at(run, as_built(run.instance), beaten_optics=beaten_optics)


def listed_at(run: Run, billed: Instance, *, beaten_optics: bool = False) -> list[Listed]:
    """Every island by each optic of the core; where any number of optics may be in use, these are
    the same islands.
    """
    asked, listed = (
        list(with_core_optics(billed, beaten=beaten_optics)),
        run.listed or ListedIslands(),
    )
    alike = billed.phase and not billed.network.has_own_ends and not billed.network.keeps_cages
    if alike and billed.sharing.most_products.optics is None:
        options = _options(run, asked[0], listed, everything=beaten_optics)
        return [(one, options) for one in asked]
    return [(one, _options(run, one, listed, everything=beaten_optics)) for one in asked]


def _options(run: Run, billed: Instance, listed: ListedIslands, *, everything: bool) -> SlotOptions:
    """Every island of every workload at every site, and the network that stands where it serves
    one.
    """
    by_gpu = questions_by_gpu(billed)
    lists, gated, kept = list[Paths | StandingIslands](), Counter[str](), 0
    for one in by_gpu:
        options, table = _new_options(run, one, listed, everything=everything)
        lists.append(options)
        gated.update(table.gated)
        kept += table.kept
    run.log.table = Counted(gated=dict(gated), kept=kept)
    lists += [_standing_networks(run, one, listed) for one in by_gpu if one.stands is not None]
    return Together(lists=tuple(lists)) if len(lists) > 1 else lists[0]


def _standing_networks(run: Run, billed: Instance, listed: ListedIslands) -> Paths:
    """The network that stands, as it is, for each workload and number of GPUs that it serves."""
    space, placed = Space(instance=billed), list[Placed]()
    for number, slot in enumerate(slots_of(billed)):
        ((asked),) = asked_in(billed, slot.workloads).values()
        networks = [one for gpus in sizes_of(asked) if (one := space.standing(gpus)) is not None]
        served = served_on(asked, networks, run.instance.losses, listed, run.check_clock, Counter())
        for family in (one for some in served.values() for one in some):
            path = IslandPath(families=(family,), uplinks=(family.uplink_choices[0],))
            placed.append(Placed(slot=number, path=path, site=None))
    return Paths(placed=tuple(placed))


def _new_options(
    run: Run, billed: Instance, listed: ListedIslands, *, everything: bool
) -> tuple[Paths | StandingIslands, Counted]:
    """Every island of every workload at every site, and how many were counted; what was `listed`
    before is not listed again.
    """
    sites = tuple(None if site is None else s for s, site in enumerate(billed.sites))
    original = run.instance
    if as_arrays(original):
        found = list_options(
            billed,
            lambda w: run.tell("columns", f"candidate networks of {w.name}"),
            run.check_clock,
            listed,
        )
        islands = StandingIslands(market=Market(instance=billed), listed=found, sites=sites)
        return islands, Counted(gated=found.gated, kept=len(found.workload))

    def prune(chains: Sequence[Chain]) -> list[IslandPath]:
        return cheapest_paths(billed, chains, run.check_clock)

    pruned = not everything and not original.minimizes_regret and is_separable(billed)
    placed, begun = list[Placed](), list[Chain]()
    gated: Counter[str] = Counter()
    for number, slot in enumerate(slots_of(billed)):
        run.tell("columns", f"candidate networks of {', '.join(slot.workloads)}")
        list_slot = partial(list_islands, billed, slot.workloads, original, run.check_clock, listed)
        if pruned:  # by bills and limits, so that another question has other islands
            listing = list_slot(prune)
        else:
            trained = tuple(
                workloads_named(question, slot.workloads) for question in phases_of(billed)
            )
            listing = listed.of_question(billed, (question_key(original), trained), list_slot)
        begun += listing.begun
        run.log.families += listing.families
        gated.update(listing.gated)
        placed += [
            Placed(slot=number, path=path, site=site) for path in listing.paths for site in sites
        ]
    paths = Paths(placed=tuple(placed), begun=tuple(begun))
    return paths, Counted(gated=dict(gated), kept=len(placed))


def as_arrays(instance: Instance) -> bool:
    """Whether islands stand as they are, each with one workload, and depend on its bound and the
    listed prices alone.
    """
    return instance.sharing.mode == "partition" and not (
        instance.phase
        or instance.robust
        or instance.availability
        or instance.network.varies_further
    )
