"""The islands each workload could have: all that meet its bound, but for those that no optimum needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from coopt.columns.dominance import Slopes, beaten_options, needed_options
from coopt.columns.islands.listing import Islands, Market
from coopt.columns.islands.needs import Rows, fastest_byte_s, quick_mappings, rows_of, uplinks_needed
from coopt.columns.islands.shapes import Shapes, Sites, quick_degrees, shapes_of, sites_of
from coopt.instance.hardware import Gpu
from coopt.instance.network import Network
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.network.goods import caps_of, goods_of
from coopt.perf.mapping import Bools, Floats, Ints

Kept = TypeVar("Kept")
Taken = tuple[Floats, Floats, Bools]
"""What options use that must not grow (n, uses), units of products (n, P), and limited products in use (n, limited)."""

GROWTH = 1.15  # sizes up to this factor apart are looked into at once
BATCH = 0.1  # share of the networks left that are looked into at once, the cheapest beside those that none dominates
UNKNOWN, NEVER = (
    -2,
    -1,
)  # uplinks not worked out yet, and those of networks that none make fast enough


@dataclass(frozen=True, kw_only=True, eq=False)
class IslandOptions:
    """The islands each workload could have, row by row, and how many there were.

    `gated` counts islands that were dropped, by cause; a site whose networks all were counts as one.
    """

    workload: Ints
    islands: Islands
    enumerated: int
    gated: dict[str, int]

    @property
    def kept(self) -> int:
        """Islands that are left."""
        return len(self.workload)


@dataclass(frozen=True, kw_only=True)
class Coupling:
    """What islands are compared by: prices, those of `outlooks` too, limits and products that count."""

    market: Market
    outlooks: tuple[Instance, ...] = ()

    @cached_property
    def slopes(self) -> Slopes:
        """How much the bill of each product rises with a unit, at the prices of any outlook too; nothing where only
        watts count."""
        instance = self.market.instance
        weight = float(instance.objective.minimize != "power" or "capex" in instance.limits.sums)
        priced = [self.market.goods, *map(goods_of, self.outlooks)]
        least, most = np.array([[good.slopes for good in goods] for goods in priced]).transpose(2, 0, 1)
        return Slopes(least=weight * least.min(axis=0), most=weight * most.max(axis=0))

    @cached_property
    def limited(self) -> Ints:
        """Products of the kinds of which few may be in use."""
        few = self.market.instance.sharing.most_products.given
        return np.array([p for p, good in enumerate(self.market.goods) if good.kind in few], dtype=np.int64)

    def joins(self, units: Floats) -> Bools:
        """Which of the limited products are in use (n, limited); that of the core by every island."""
        core = self.market.core
        ours = -1 if core is None else self.market.place["switch", core.name]
        return np.asarray((units[:, self.limited] > 0) | (self.limited == ours))

    @cached_property
    def summed(self) -> tuple[Floats, ...]:
        """What units of each product take of a sum that matters: of a limit, and of the watts that are paid for."""
        instance, sums = self.market.instance, dict[tuple[float, ...], None]()
        if instance.objective.minimize != "capex" or instance.site:
            sums[tuple(good.w for good in self.market.goods)] = None
        sums |= dict.fromkeys(cap.each for cap in caps_of(instance))
        return tuple(map(np.array, sums))

    def watts(self, units: Floats) -> Floats:
        """Power of each (n,)."""
        return np.asarray(units @ np.array([good.w for good in self.market.goods]))

    def racks(self, hb: Ints, domains: Ints) -> Floats:
        """Racks that HB domains fill (n,); 0 where nobody knows."""
        each = np.array([one.racks or 0.0 for one in self.market.instance.network.hb_domains])
        return np.asarray(np.ceil(domains * each[hb]))

    def taken(self, units: Floats, gpus: Ints, racks: Floats, core_ports: Ints) -> Taken:
        """What options are compared by (n rows): GPUs, core ports, sums and racks as far as they count, and units."""
        instance = self.market.instance
        columns = [gpus.astype(np.float64)]
        if self.market.core is not None:
            columns.append(core_ports.astype(np.float64))
        columns += [np.asarray(units @ each) for each in self.summed]
        if instance.limits.racks is not None:
            columns.append(racks)
        return np.stack(columns, axis=1), units, self.joins(units)

    def of_islands(self, islands: Islands) -> Taken:
        """What islands are compared by."""
        sites = Sites(gpus=islands.gpus, hb=islands.hb, domains=islands.domains)
        return self.taken(islands.units, islands.gpus, self.racks(sites.hb, sites.domains), islands.core_links)

    def undominated(self, taken: Taken) -> Ints:
        """Positions of options that hold an optimum whenever there is one."""
        uses, units, joins = taken
        return needed_options(np.zeros(len(units)), uses, units, joins, self.slopes)

    def dominated(self, kept: Islands, others: Taken) -> Bools:
        """Which options a kept island dominates, by what they use at least.

        Of equal networks those whose rails meet are preferred, so one whose rails do not has to be cheaper.
        """
        rail_only = np.array([kind == "rail-only" for kind in self.market.instance.network.switched])
        apart = rail_only[kept.fabric] & (kept.uplinks > 0)
        alike = beaten_options(self.of_islands(kept.take(~apart)), others, self.slopes)
        return alike | beaten_options(self.of_islands(kept.take(apart)), others, self.slopes, cheaper=True)

    def promising(self, taken: Taken) -> Ints:
        """Positions of options that no other dominates, and of the cheapest."""
        usd = taken[1] @ self.slopes.most
        return np.union1d(self.undominated(taken), np.argsort(usd, kind="stable")[: int(len(usd) * BATCH)])

    def needed(self, islands: Islands) -> Islands:
        """Islands that hold an optimum whenever there is one."""
        return islands.take(self.undominated(self.of_islands(islands)))

    def wholly_beaten(self, sites: Sites, kept: Taken) -> Bools:
        """Sites on which no gear is left (n,)."""
        return np.asarray(self.beaten(sites, kept).all(axis=0))

    def beaten(self, sites: Sites, kept: Taken) -> Bools:
        """Gears with which every network of a site is dominated by an option that is kept already (gears, sites).

        Each is compared by what networks of its gear use at least: an option that dominates this, dominates whatever
        uses more.
        """
        market, found = self.market, np.ones((len(self.market.space.gears), len(sites)), dtype=np.bool_)
        ends = [
            (g, gear, optics)
            for g, gear in enumerate(market.space.gears)
            for optics in market.space.ends(gear) or (None,)
        ]
        if not ends:
            return found
        units = np.concatenate([market.least_units(sites, gear, optics) for _, gear, optics in ends])
        racks, many = np.tile(self.racks(sites.hb, sites.domains), len(ends)), np.tile(sites.gpus, len(ends))
        taken = self.taken(units, many, racks, market.least_links(many))
        beaten = beaten_options(kept, taken, self.slopes)
        for (g, _, optics), of_end in zip(ends, beaten.reshape(len(ends), len(sites)), strict=True):
            found[g] &= of_end | (sites.domains > 1 if optics is None else False)
        return found

    def closed(self, gpus: int, kept: Taken) -> Bools:
        """HB domains on which every site of that many GPUs or more is beaten (HB domains).

        Another such site has no fewer GPUs, no fewer domains and so no fewer units of anything than `gpus` in full
        domains, rounded down. What dominates this dominates them all; where it is two domains or more, for sites of
        one domain have no switch.
        """
        sizes = self.market.sizes
        closed = gpus >= 2 * sizes
        several = np.flatnonzero(closed)
        domains = gpus // sizes[several]
        least = Sites(gpus=domains * sizes[several], hb=several, domains=domains)
        closed[several] = self.wholly_beaten(least, kept)
        return closed


class ListedIslands:
    """Islands of workloads as they were listed, for searches of questions that differ in other workloads alone.

    The islands of one workload depend on all of a question but its other workloads, its names and its solver, and which
    mappings are in time on a site neither on what things cost nor on how many there are. Those asked for last are kept.
    It serves one search at a time.
    """

    MOST = 64

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[Islands, Counter[str]]] = {}
        self._rows: dict[Hashable, Rows | None] = {}

    def of(
        self, instance: Instance, workload: Workload, listing: Callable[[], tuple[Islands, Counter[str]]]
    ) -> tuple[Islands, Counter[str]]:
        """The islands of a workload, listed where they are not known."""
        rest = instance.model_dump_json(exclude={"workload", "name", "description", "solver"})
        key = (rest, workload.model_copy(update={"name": ""}).model_dump_json())
        return self._kept(self._found, key, listing)

    def rows(self, workload: Workload, market: Market, sites: Sites, listing: Callable[[], Rows | None]) -> Rows | None:
        """The mappings of a workload in time on sites, listed where they are not known."""
        gpu, network = market.instance.cluster.gpu, market.instance.network
        wires = tuple(hb.gbyte_s for hb in network.hb_domains), fastest_byte_s(network)
        where = sites.gpus.tobytes(), sites.hb.tobytes(), sites.domains.tobytes()
        asked = workload.model_copy(update={"name": ""}).model_dump_json(), gpu.model_dump_json(exclude={"usd", "w"})
        return self._kept(self._rows, (asked, wires, where), listing)

    def _kept(self, known: dict[Hashable, Kept], key: Hashable, listing: Callable[[], Kept]) -> Kept:
        known[key] = found = known.pop(key) if key in known else listing()
        while len(known) > self.MOST:
            del known[next(iter(known))]
        return found


def list_options(
    instance: Instance,
    on_workload: Callable[[Workload], None],
    on_step: Callable[[], None],
    listed: ListedIslands | None = None,
) -> IslandOptions:
    """The islands of every workload; workloads that differ in name only share theirs.

    Parameters
    ----------
    on_workload, on_step
        Called before each workload, and often.
    listed
        What earlier searches listed, and this one adds to.
    """
    coupling = Coupling(market=Market(instance=instance))
    known = ListedIslands() if listed is None else listed
    found = [coupling.market.none()]
    gated: Counter[str] = Counter()
    for workload in instance.workload:
        on_workload(workload)
        islands, dropped = known.of(instance, workload, partial(islands_of, coupling, workload, on_step, known))
        gated.update(dropped)
        found.append(islands)
    whole = _joined(found)
    return IslandOptions(
        workload=np.repeat(np.arange(len(found) - 1), [len(islands) for islands in found[1:]]),
        islands=whole,
        enumerated=sum(gated.values()) + len(whole),
        gated=dict(gated),
    )


def _joined(parts: list[Islands]) -> Islands:
    first, *rest = parts
    for part in rest:
        first = first.joined(part)
    return first


def islands_of(
    coupling: Coupling, workload: Workload, on_step: Callable[[], None], listed: ListedIslands | None = None
) -> tuple[Islands, Counter[str]]:
    """The islands of one workload, and how many were dropped by cause."""
    gated: Counter[str] = Counter()
    *_, kept = _growing(coupling, workload, on_step, listed or ListedIslands(), gated)
    return kept, gated


def has_island(instance: Instance, workload: Workload, on_step: Callable[[], None]) -> bool:
    """Whether a workload has an island in a question; the smallest ones are looked for first."""
    coupling = Coupling(market=Market(instance=instance))
    return any(len(kept) for kept in _growing(coupling, workload, on_step, ListedIslands(), Counter()))


def _growing(
    coupling: Coupling, workload: Workload, on_step: Callable[[], None], listed: ListedIslands, gated: Counter[str]
) -> Iterator[Islands]:
    """The islands up to some size, none at first and in the end all; sizes that cannot win any more are not looked
    into."""
    market = coupling.market
    network, gpu = market.instance.network, market.instance.cluster.gpu
    degrees = quick_degrees(workload, gpu, market.instance.cluster.gpus[0])
    sizes = degrees.prod(axis=1)
    every, looked_into = sites_of(np.unique(sizes), network.hb_domains), 0
    closed = np.zeros(len(network.hb_domains), dtype=np.bool_)
    yield (kept := market.none())
    for some in windows(np.unique(sizes)):
        rivals = coupling.of_islands(kept)
        closed |= coupling.closed(int(some[0]), rivals)
        if closed.all():
            break
        sites = every.take(np.isin(every.gpus, some) & ~closed[every.hb])
        sites = sites.take(~coupling.wholly_beaten(sites, rivals))
        if len(sites):
            on_step()
            looked_into += len(sites)
            of_size = degrees[np.isin(sizes, sites.gpus)]
            rows = listed.rows(workload, market, sites, partial(_rows, workload, gpu, network, sites, of_size))
            if rows is not None:
                yield (kept := _networks(coupling, sites, rows, kept, gated))
    if len(every):
        gated["dominated"] += len(every) - looked_into


def _rows(workload: Workload, gpu: Gpu, network: Network, sites: Sites, degrees: Ints) -> Rows | None:
    """The mappings in time on some site with all that its NICs can give; None where no list of degrees has any."""
    fast = fastest_byte_s(network)
    mine = quick_mappings(workload, gpu, network, degrees, fast)
    return rows_of(workload, gpu, network, sites, mine, fast) if len(mine) else None


def windows(sizes: Ints) -> Iterator[Ints]:
    """Sizes in rising order, some at a time."""
    while len(sizes):
        near = sizes <= sizes[0] * GROWTH
        yield sizes[near]
        sizes = sizes[~near]


def _networks(coupling: Coupling, sites: Sites, rows: Rows, kept: Islands, gated: Counter[str]) -> Islands:
    """The islands kept and all further networks that might be needed, with the least uplinks that meet the bound.

    To find these takes long. With the fewest uplinks that its switches allow a network uses no more than with those
    that it needs, so it is left out where a kept island dominates even that. Those that no other dominates and the
    cheapest are looked into first, as most others are left out then.
    """
    market, (there, position) = coupling.market, np.unique(rows.site, return_inverse=True)
    few, rows = sites.take(there), replace(rows, site=position.reshape(-1))
    shapes = shapes_of(few, market.sizes[few.hb], market.instance.network, market.least_links(few.gpus), market.wirings)
    builds = market.builds(few, shapes)
    least = coupling.of_islands(market.islands(builds, builds.least_uplinks))
    needed = np.where(_reached(market, rows, shapes), UNKNOWN, NEVER)
    uplinks = needed[builds.nic, builds.shape]
    found, left = kept, np.flatnonzero(uplinks == UNKNOWN)
    while len(left := left[~coupling.dominated(found, _of_rows(least, left))]):
        now = builds.take(left[coupling.promising(_of_rows(least, left))])
        pairs = np.zeros(needed.shape, dtype=np.bool_)
        pairs[now.nic, now.shape] = True
        needed[pairs] = _uplinks(market, rows, shapes, *np.nonzero(pairs))
        uplinks[left] = needed[builds.nic[left], builds.shape[left]]
        left = left[uplinks[left] == UNKNOWN]
        met = np.flatnonzero(uplinks >= 0)
        found = coupling.needed(kept.joined(market.islands(builds.take(met), uplinks[met])))
    late = int((uplinks == NEVER).sum())
    gated["communication"] += late
    gated["dominated"] += len(kept) + len(builds) - late - len(found)
    return found


def _of_rows(taken: Taken, rows: Ints) -> Taken:
    uses, units, joins = taken
    return uses[rows], units[rows], joins[rows]


def _reached(market: Market, rows: Rows, shapes: Shapes) -> Bools:
    """Whether a row is in time on the site of each shape with all that each NIC gives a GPU (NICs, shapes)."""
    nic, shape = np.indices((len(market.optics), len(shapes))).reshape(2, -1)
    byte_s, site = _byte_s(market, shapes, nic, shape), shapes.site[shape]
    reached = np.zeros(len(site), dtype=np.bool_)
    for rate in np.unique(byte_s).tolist():
        reached |= (byte_s == rate) & np.isin(site, rows.site[rows.alone(rate)])
    return reached.reshape(len(market.optics), len(shapes))


def _byte_s(market: Market, shapes: Shapes, nic: Ints, shape: Ints) -> Floats:
    """What a GPU moves between domains with all uplinks, with a NIC in a shape each (bytes/s)."""
    gbit_s = np.array([one.gbit_s for one in market.instance.network.nics])
    return np.asarray(shapes.nics_per_gpu[shape] * gbit_s[nic] * 1e9 / 8)


def _uplinks(market: Market, rows: Rows, shapes: Shapes, nic: Ints, shape: Ints) -> Ints:
    """The least uplinks of every shape with a NIC each (n,); `NEVER` where none is enough."""
    byte_s = _byte_s(market, shapes, nic, shape)
    return uplinks_needed(rows, shapes.take(shape), byte_s, market.instance.network.discipline)
