"""The optimum of a small question by plain enumeration, from docs/fleets.md: every number of GPUs of every phase, every
number of uplinks that never falls, every site, every choice among them, and every way to buy what they need. A network
that all workloads have in turn is a fleet of one island."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import pairwise, product
from operator import le
from typing import Any

import numpy as np

from coopt.columns.grid import Context, DomainSet, context_left, context_of, mappings
from coopt.columns.pools import Pool
from coopt.instance.couplings import Robust
from coopt.instance.hardware import Gpu
from coopt.instance.schema import Instance
from coopt.instance.variants import of_phase
from coopt.network.cores import links_to_core
from coopt.network.failures import losses
from coopt.network.family import CableRun, Family, LinkEnds, without_nics
from coopt.network.fibres import FibreUnits
from coopt.network.growth import grown, grows
from coopt.network.part_bills import units_of
from coopt.network.parts import racks
from coopt.network.plan_networks import design_of
from coopt.network.space import families, one_by_one
from coopt.perf.collectives import Reciprocals
from coopt.perf.mapping import Floats, Ints
from coopt.plan.schema import Design
from tests.network.hall_oracle import cables_as_it_grows, cables_into_core
from tests.solving.every_optic import cages
from tests.solving.every_optic import choices as optic_choices
from tests.solving.fleet_bills import Book, Way
from tests.solving.interrupted import in_time
from tests.solving.oracle import every_mapping, least_over, least_s

KINDS = ("hb", "nic", "switch", "optics", "gpu")
LISTED = dict.fromkeys(KINDS, 1.0)
MOST_CHOICES = 400_000
MOST_CABLINGS = 4000

Stands = tuple[tuple[Family | None, ...], tuple[int, ...]]
"""The network of an island in each phase, None where nothing stands, and the uplinks of a leaf."""


class TooManyError(Exception):
    """There are more choices than can be tried in a moment."""


def enumerated(instance: Instance) -> float:
    """The least objective, or the least of the largest regrets, over all fleets within limits; infinity without one."""
    robust, terms = instance.robust or Robust(), instance.objective
    if not (instance.beyond_one_network or instance.availability or terms.labour_share or terms.support_share):
        job = Job(instance, 1.0)
        networks = (family for gpus in job.sizes for family in job.laid(gpus))
        return least_over(instance, ((family, u) for family in networks for u in family.uplink_choices))
    if robust.aim == "regret":
        return max(0.0, least_excess(instance, least_costs(instance)))
    worst = {kind: getattr(robust.prices, kind)[1] for kind in KINDS}
    books = (Book(instance=one) for one in with_every_core_optic(instance))
    return min(
        (_least(one, menus_of(one, robust.efficiency[0]), [worst], at=worst)[0] for one in books), default=math.inf
    )


def with_every_core_optic(instance: Instance) -> Iterator[Instance]:
    """The instance with each optic named that fits the upper ends of links into its core, or all that carry as many
    links where lengths choose; itself without a core."""
    core, network = instance.sharing.core, instance.network
    if core is None:
        yield instance
        return
    box, like = next(switch for switch in network.switches if switch.name == core.switch), dict[Any, list[str]]()
    for optic in network.optics:
        links = optic.gbit_s / box.port_gbit_s
        fits = links == 1
        if network.link_ends == "any" and links in optic.breakout:
            cages = box.cages or box.radix
            modules = min(cages, box.radix // links) if network.switch_cages == "kept" else box.radix // links
            in_box = box.radix % links == 0 and optic.gbit_s <= box.cage_gbit_s
            fits = fits or (in_box and modules >= len(instance.workload))
        if fits and (optic.reach_m >= network.link_reach_m[-1] or network.cables == "hall"):
            like.setdefault(links if network.cables == "hall" else optic.name, []).append(optic.name)
    for names in like.values():
        named = names[0] if len(names) == 1 else tuple(names)
        sharing = instance.sharing.model_copy(update={"core": core.model_copy(update={"optic": named})})
        yield instance.model_copy(update={"sharing": sharing})


def outcomes(robust: Robust) -> list[Way]:
    """Every way prices may turn out, each at an end of its interval."""
    ends = (dict.fromkeys(getattr(robust.prices, kind)) for kind in KINDS)
    return [dict(zip(KINDS, factors, strict=True)) for factors in product(*ends)]


def least_costs(instance: Instance) -> list[float]:
    """The least objective however prices turn out, at the best efficiency, within limits at the listed prices."""
    robust = instance.robust or Robust()
    books, ways = (Book(instance=one) for one in with_every_core_optic(instance)), outcomes(robust)
    costs = [_least(book, menus_of(book, robust.efficiency[1]), ways, at=LISTED) for book in books]
    return [min(column) for column in zip(*costs, strict=True)]


def least_excess(instance: Instance, costs: list[float]) -> float:
    """The least of what fleets cost beyond these costs, each at the worst of all outcomes; it may be below 0."""
    robust = instance.robust or Robust()
    excess = (
        np.max([some.objective(way) - cost for way, cost in zip(outcomes(robust), costs, strict=True)], axis=0).min()
        for book in (Book(instance=one) for one in with_every_core_optic(instance))
        for some in fleets_of(book, menus_of(book, robust.efficiency[0]), LISTED)
    )
    return float(min(excess, default=math.inf))


def _least(book: Book, menus: list[Menu], ways: list[Way], at: Way) -> list[float]:
    """The least objective at some prices each of all fleets that keep the limits at others."""
    least = [[float(fleets.objective(way).min()) for way in ways] for fleets in fleets_of(book, menus, at)]
    return [min(column) for column in zip(*least, strict=True)] or [math.inf] * len(ways)


@dataclass(frozen=True, kw_only=True, eq=False)
class Menu:
    """Ways in which an island can stand and grow: what stands in each phase (n, T), by product (n, T, G); labour."""

    units: Ints
    gpus: Ints
    racks: Ints
    links: Ints
    labour_usd: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Fleets:
    """Choices of an island for each workload: what stands in each phase at each site (n, T, S, G), and labour (n,)."""

    book: Book
    units: Ints
    labour_usd: Floats

    def objective(self, way: Way) -> Floats:
        """The objective of each at some prices."""
        kind, watts = self.book.instance.objective.minimize, self.watts
        if kind == "power":
            return np.asarray(watts.sum(axis=(1, 2)))
        usd = self.capex_usd(way)
        if kind == "tco":
            _, phases, sites = watts.shape
            rates = [[self.book.usd_per_w(t, s) for s in range(sites)] for t in range(phases)]
            usd = usd + (watts * np.array(rates)).sum(axis=(1, 2))
            usd = usd + self.book.work_usd(self.units.sum(axis=2), way)
        return usd

    def capex_usd(self, way: Way) -> Floats:
        """Purchases over all phases, and labour."""
        return self.book.capex_usd(self.units.sum(axis=2), way) + self.labour_usd

    @property
    def watts(self) -> Floats:
        """What each site feeds in each phase (n, T, S)."""
        return np.asarray(self.units @ self.book.watts)

    @property
    def powered(self) -> Any:
        """Whether power is enough in every phase, at every site and for all together."""
        instance, watts = self.book.instance, self.watts
        most_mw = instance.limits.power_mw
        enough = (watts.sum(axis=2) / 1e6 <= (math.inf if most_mw is None else most_mw)).all(axis=1)
        for s, site in enumerate(instance.site):
            pue = instance.objective.pue if site.pue is None else site.pue
            enough &= (watts[:, :, s] * pue <= site.power_mw * 1e6).all(axis=1)
        return enough

    @property
    def uniform(self) -> Any:
        """Whether few enough products of each kind stand in the end, when nothing that ever stood is gone."""
        used = self.units[:, -1].sum(axis=1) > 0
        enough = np.ones(len(used), dtype=bool)
        kinds = [kind for kind, _ in self.book.products]
        for kind, most in self.book.instance.sharing.most_products.model_dump().items():
            if most is not None:
                enough &= used[:, [one == kind for one in kinds]].sum(axis=1) <= most
        return enough


def fleets_of(book: Book, menus: list[Menu], at: Way) -> Iterator[Fleets]:
    """Every choice of islands within all limits at some prices, one choice of sites after the other."""
    instance, shape = book.instance, tuple(len(menu.gpus) for menu in menus)
    if math.prod(shape) > MOST_CHOICES:
        raise TooManyError(shape)
    chosen = [axis.reshape(-1) for axis in np.indices(shape)]
    caps = [phase.gpus for phase in instance.phase] or [max(instance.cluster.gpus)]
    most = math.inf if instance.limits.racks is None else instance.limits.racks
    gpus = np.sum([menu.gpus[rows] for menu, rows in zip(menus, chosen, strict=True)], axis=0)
    filled = np.sum([menu.racks[rows] for menu, rows in zip(menus, chosen, strict=True)], axis=0)
    fit = ((gpus <= np.array(caps)) & (filled <= most)).all(axis=1)
    for sites in product(range(max(len(instance.site), 1)), repeat=len(menus)):
        fleets = _placed(book, menus, [rows[fit] for rows in chosen], sites)
        within = fleets.powered & fleets.uniform
        if instance.limits.capex_usd is not None:
            within &= fleets.capex_usd(at) <= instance.limits.capex_usd
        if within.any():
            yield replace(fleets, units=fleets.units[within], labour_usd=fleets.labour_usd[within])


def _placed(book: Book, menus: list[Menu], chosen: list[Ints], sites: tuple[int, ...]) -> Fleets:
    """Islands at their sites, with a core at each site that has a port for every link."""
    core, network = book.instance.sharing.core, book.instance.network
    _, phases, products = menus[0].units.shape
    units = np.zeros((len(chosen[0]), phases, max(len(book.instance.site), 1), products), dtype=np.int64)
    links = np.zeros(units.shape[:-1], dtype=np.int64)
    for menu, rows, site in zip(menus, chosen, sites, strict=True):
        units[:, :, site] += menu.units[rows]
        links[:, :, site] += menu.links[rows]
    if core is not None:
        switch = next(switch for switch in network.switches if switch.name == core.switch)
        kept = network.switch_cages == "kept"  # where a module has a cage of its own
        cages = switch.cages or switch.radix
        radix = min(cages * book.links_of_core_module, switch.radix) if kept else switch.radix
        units[:, :, :, book.products.index(("switch", core.switch))] += -(-links // radix)
    labour = np.sum([menu.labour_usd[rows] for menu, rows in zip(menus, chosen, strict=True)], axis=0)
    return Fleets(book=book, units=units, labour_usd=labour)


def menus_of(book: Book, efficiency: float) -> list[Menu]:
    """The ways in which each island can stand and grow, without those that take more of everything: that of a workload,
    or of all that have it in turn."""
    names, listed = [one.name for one in book.instance.workload], dict[int, Any]()
    slots = [names] if book.instance.sharing.mode == "time" else [[name] for name in names]
    return [_menu(book, list(_islands(book.instance, slot, efficiency, listed))) for slot in slots]


def _menu(book: Book, islands: list[Stands]) -> Menu:
    phases = max(len(book.instance.phase), 1)
    tables = [
        [
            [0] * (len(book.products) + 3)
            if family is None
            else [*_units(book, family, u), family.gpus, racks(family) or 0, book.core_ports(family.core_links)]
            for family, u in zip(*island, strict=True)
        ]
        for island in islands
    ]
    table = np.array(tables, dtype=np.int64).reshape(len(islands), phases, len(book.products) + 3)
    labour = np.array([_labour_usd(book.instance, island) for island in islands])
    rows = _fewest(np.column_stack([table.reshape(len(islands), phases * (len(book.products) + 3)), labour]))
    table = table[rows]
    return Menu(
        units=table[..., :-3], gpus=table[..., -3], racks=table[..., -2], links=table[..., -1], labour_usd=labour[rows]
    )


def _fewest(table: Floats) -> list[int]:
    """Rows without those that are no less anywhere than another; less of everything never costs more."""
    _, first = np.unique(table, axis=0, return_index=True)
    kept: list[int] = []
    for row in first[np.argsort(table[first].sum(axis=1), kind="stable")].tolist():
        if not kept or not (table[kept] <= table[row]).all(axis=1).any():
            kept.append(row)
    return kept


@lru_cache(2**16)
def _units(book: Book, family: Family, uplinks: int) -> list[int]:
    """Units of each product in an island, with both ends of its links into a core; an idle GPU is a GPU, or apart."""
    include, counted = book.instance.objective.include, units_of(book.instance, family, uplinks)
    idle = family.installed_gpus - family.gpus
    fibre = [*family.fibre(uplinks), *_fibre_into_core(book, family)]
    counted["fibre", "USD"] = round(sum(one.units * one.usd for one in fibre))
    units = [*(counted[product] for product in book.products[:-1]), family.gpus * ("gpu" in include)]  # type: ignore[index]
    units[-2 if book.idle_apart else -1] += idle * ("hb" in include)
    return units


def _fibre_into_core(book: Book, family: Family) -> Iterator[FibreUnits]:
    """The fibre of links into the core that a question names, as long as these have to reach or are in the hall."""
    core, network = book.instance.sharing.core, book.instance.network
    if network.cables == "hall":
        yield from (one for run in family.core_cables for one in run.fibre)
        return
    if core is None or not network.fibre:
        return
    box = next(switch for switch in network.switches if switch.name == core.switch)
    above, links = next(optic for optic in network.optics if optic.name == core.optic), family.core_links
    below = family.core_end or above
    of_lower, of_upper = round(below.gbit_s / box.port_gbit_s), round(above.gbit_s / box.port_gbit_s)
    leaves = links // family.core_ports if family.tiers else links
    lower = leaves * math.ceil(links / leaves / of_lower) if leaves else 0
    run = Counter(links=links, below=lower, above=math.ceil(links / of_upper))
    ends = LinkEnds(below, above)
    yield from fibre_of(book.instance, ends, box.port_gbit_s, run, math.ceil(network.link_reach_m[-1]))


def _labour_usd(instance: Instance, island: Stands) -> float:
    """Labour for links added to switches that stood before."""
    built = zip(*island, strict=True) if any(phase.retrofit_usd_per_link for phase in instance.phase[1:]) else ()
    designs = [None if family is None else design_of(family, u) for family, u in built]
    return sum(
        links_added(before, now) * instance.phase[t].retrofit_usd_per_link
        for t, (before, now) in enumerate(pairwise(designs), start=1)
        if before is not None and now is not None
    )


def links_added(before: Design, now: Design) -> int:
    """Links up that switches which stood before have now and had not."""
    was, is_now = before.fabric.tier, now.fabric.tier
    return sum(
        old.switches * (new.uplinks_per_switch - old.uplinks_per_switch)
        for old, new in zip(was, is_now, strict=False)
        if new.uplinks_per_switch
    )


def _islands(instance: Instance, names: list[str], efficiency: float, listed: dict[int, Any]) -> Iterator[Stands]:
    """Every network and every number of GPUs and uplinks that never fall, with which workloads meet their bounds; what
    networks a phase may have is `listed` once for all islands."""
    alone = instance.model_copy(update={"site": ()})
    asked = [of_phase(alone, t) for t in range(len(instance.phase))] or [alone]
    parted, every = instance.sharing.mode == "partition", [workload.name for workload in instance.workload]
    bay = (every.index(names[0]), len(every)) if parted else (0, 1)
    jobs = {
        t: Job(question.model_copy(update={"workload": mine}), efficiency)
        for t, question in enumerate(asked)
        if (mine := tuple(workload for workload in question.workload if workload.name in names))
    }
    for t, job in jobs.items():
        job.networks = listed.setdefault(t, job.networks)
    active = list(jobs)
    for counts in product(*(job.sizes for job in jobs.values())):
        if list(counts) == sorted(counts):
            links = [links_to_core(instance, gpus) for gpus in counts]
            for last in jobs[active[-1]].networks(counts[-1]):
                for stages in _stages(instance, last, counts, links):
                    bare = zip(active, stages, (replace(family, optics=()) for family in stages), strict=True)
                    served = [[u for u in one.uplink_choices if jobs[t].meets(bared, u)] for t, one, bared in bare]
                    for uplinks in product(*served):
                        if list(uplinks) == sorted(uplinks):
                            standing = dict(zip(active, zip(stages, uplinks, strict=True), strict=True))
                            if with_spares := _with_spares(jobs, standing):
                                for laid in every_line(instance, list(with_spares.values()), bay):
                                    yield _over_phases(dict(zip(with_spares, laid, strict=True)), len(asked))


def _with_spares(jobs: dict[int, Job], standing: dict[int, tuple[Family, int]]) -> dict[int, tuple[Family, int]]:
    """The networks with the fewest domains standing by that are in time, no fewer than before; empty if one is not."""
    if all(jobs[t].question.availability is None for t in standing):
        return standing
    found: dict[int, tuple[Family, int]] = {}
    so_far = 0
    for t, (family, uplinks) in standing.items():
        spares = jobs[t].spares(replace(family, optics=()), uplinks, so_far)
        if spares is None:
            return {}
        found[t], so_far = (replace(family, spare_domains=spares), uplinks), spares
    return found


def _stages(instance: Instance, last: Family, counts: tuple[int, ...], links: list[int]) -> Iterator[list[Family]]:
    """The network of the last phase in every phase that trains, where it can have grown so, with the links that each
    needs into a core."""
    if any(gpus % last.active for gpus in counts[:-1]) or not grows(last, counts):
        return
    earlier = zip(counts[:-1], links, strict=False)
    stages = [*(grown(last, gpus, instance.network.largest_ratio, least) for gpus, least in earlier), last]
    joined = [family.core_links for family in stages]
    if all(have >= least for have, least in zip(joined, links, strict=True)) and joined == sorted(joined):
        yield stages


def _has_room(family: Family) -> bool:
    """Whether modules of the switch of a single tier leave ports for links into a core."""
    if family.tiers != 1 or not family.core_ports:
        return True
    links = min(family.planes_together, family.planes) * family.down
    each, of_core = family.per_module[0][1], 1
    if family.core_end is not None:
        of_core = round(family.core_end.gbit_s / family.link_gbit_s)
    taken = each * math.ceil(links / each) + of_core * math.ceil(family.core_ports / of_core)
    return taken <= family.switch.radix


def _over_phases(trained: dict[int, tuple[Family, int]], phases: int) -> Stands:
    """What stands in every phase: as before where the workload does not train, and nothing before it does."""
    built: list[tuple[Family | None, int]] = []
    for t in range(phases):
        built.append(trained.get(t, built[-1] if t else (None, 0)))
    return tuple(family for family, _ in built), tuple(uplinks for _, uplinks in built)


def every_cabling(question: Instance, family: Family) -> Iterator[Family]:
    """A network with any ends that reach for each length of its cables; of those with the same modules one."""
    return (laid for u in family.uplink_choices for ((laid, _),) in every_line(question, [(family, u)]))


def every_line(
    question: Instance, line: list[tuple[Family, int]], bay: tuple[int, int] = (0, 1)
) -> Iterator[list[tuple[Family, int]]]:
    """A network in each stage of its growth, with its uplinks, with any ends that reach for each length of its cables
    in the end; of those with the same modules in all stages those with the cheapest fibre in some."""
    end, _ = line[-1]
    if not end.choices and not end.core_choices:
        yield line
        return
    counted, choices = cables_as_it_grows(question, line) if end.tiers else [[] for _ in line], [*end.choices]
    if end.core_choices:
        both = zip(counted, cables_into_core(question, line, bay), strict=True)
        counted = [[*of, *({} for _ in range(end.tiers - len(of))), core] for of, core in both]
        choices = [*choices, end.core_choices]
    chosen: dict[Any, dict[tuple[float, ...], dict[tuple[int, int], LinkEnds]]] = {(): {(0.0,) * len(line): {}}}
    for level, length_m in ((level, m) for level, of in enumerate(counted[-1]) for m in of):
        longer = defaultdict[Any, dict[tuple[float, ...], dict[tuple[int, int], LinkEnds]]](dict)
        runs = [stage[level].get(length_m, Counter()) if stage[level:] else Counter() for stage in counted]
        for ends in (pair for pair in choices[level] if pair.reach_m >= length_m):
            of_stages = (fibre_of(question, ends, end.link_gbit_s, run, length_m) for run in runs)
            usd = [sum(one.units * one.usd for one in of) for of in of_stages]
            for modules, priced in chosen.items():
                counts = Counter(dict(modules))
                for (t, run), (optic, key) in product(enumerate(runs), zip(ends, ("below", "above"), strict=True)):
                    counts[t, optic.name] += run[key]
                of_counts = longer[tuple(sorted(counts.items()))]
                for so_far, taken in priced.items():
                    of_counts.setdefault(
                        tuple(a + b for a, b in zip(so_far, usd, strict=True)), taken | {(level, length_m): ends}
                    )
        chosen = {modules: _cheapest(priced) for modules, priced in longer.items()}
        if sum(map(len, chosen.values())) > MOST_CABLINGS:
            raise TooManyError
    for taken in (taken for priced in chosen.values() for taken in priced.values()):
        laid = []
        for (family, uplinks), stage in zip(line, counted, strict=True):
            cables = tuple(
                tuple(
                    CableRun(m, ends, run["links"], run["below"], run["above"], tuple(fibre))
                    for m, run in sorted(of.items())
                    for ends in [taken[level, m]]
                    for fibre in [fibre_of(question, ends, end.link_gbit_s, run, m)]
                )
                for level, of in enumerate(stage)
            )
            core, cables = cables[-1] if end.core_choices else (), cables[: family.tiers]
            optics = tuple(level[-1].ends for level in cables)
            bare = replace(family, uplink_choices=(uplinks,), choices=(), core_choices=(), core_cables=core)
            laid.append((replace(bare, optics=optics, cables=cables), uplinks))
        yield laid


def _cheapest(priced: dict[tuple[float, ...], Any]) -> dict[tuple[float, ...], Any]:
    """The choices that no other costs less than in every stage."""
    kept: dict[tuple[float, ...], Any] = {}
    for usd in sorted(priced):
        if not any(all(map(le, other, usd)) for other in kept):
            kept[usd] = priced[usd]
    return kept


def fibre_of(
    question: Instance, ends: LinkEnds, gbit_s: float, run: Counter[str], length_m: int
) -> Iterator[FibreUnits]:
    """The cheapest fibre between the modules of some cables, none for cables that come with both ends."""
    kind = ends.below.fibre
    listed = [one for one in question.network.fibre if kind in one.carries]
    if not listed:
        return
    lane = re.match("[0-9]+", kind)
    pairs, both = math.ceil(gbit_s / int(lane[0])) if lane else 1, zip(ends, (run["below"], run["above"]), strict=True)
    links = [(optic, modules, round(optic.gbit_s / gbit_s)) for optic, modules in both]
    plug = math.ceil(pairs / max(1, ends.below.connectors // links[0][2]))
    cables = [one for one in listed if one.links == 1 and one.pairs >= plug]
    each = [math.ceil(pairs / one.pairs) for one in cables]
    n = min(range(len(cables)), key=lambda n: each[n] * (cables[n].usd + cables[n].usd_per_m * length_m))
    yield FibreUnits(cables[n].name, each[n] * run["links"], cables[n].usd)
    yield FibreUnits(f"{cables[n].name} (m)", each[n] * run["links"] * length_m, cables[n].usd_per_m)
    for optic, modules, count in links:
        legs = math.ceil(count / optic.connectors)
        if legs > 1:
            splitters = [one for one in listed if one.links == legs and one.pairs >= legs * pairs]
            one = min(splitters, key=lambda one: one.usd)
            yield FibreUnits(one.name, modules * optic.connectors, one.usd)


class Job:
    """What an island trains in a phase, on a GPU that reaches so much: what to try, and whether it will do."""

    def __init__(self, question: Instance, efficiency: float) -> None:
        self.question, self.efficiency = question, efficiency
        self.gpu = at_efficiency(question.cluster.gpu, efficiency)
        self.networks = cache(self._networks)
        self.in_time = cache(self._in_time)
        self.meets = cache(self._meets)
        self.spares = cache(self._spares)

    @property
    def sizes(self) -> list[int]:
        """Numbers of GPUs that an island may have."""
        asked = self.question
        if asked.sharing.mode == "time":
            return sorted(set(asked.cluster.gpus))
        (workload,), every = asked.workload, range(1, asked.cluster.gpus[0] + 1)
        allowed = every if workload.gpus is None else [n for n in every if n in workload.gpus]
        return [n for n in allowed if len(mappings(workload, n)[0])]

    def _networks(self, gpus: int) -> list[Family]:
        """Every network of so many GPUs with every choice of optics, alone for each number of uplinks where modules
        break out."""
        cluster = self.question.cluster.model_copy(update={"gpus": (gpus,)})
        question = self.question.model_copy(update={"cluster": cluster})
        network = question.network
        if network.cables == "hall":
            unlaid = (one for one in families(question, unlaid=True) if _has_room(one))
            each = (one for family in unlaid for one in (one_by_one(family) if family.breaks_out else [family]))
            return list(each)
        own_ends = network.link_ends != "same" and network.switch_cages != "kept"
        split: Callable[[Any], Any] = cages if own_ends else tuple
        alike = {(replace(one, optics=()), split(one.per_module)): one for one in families(question)}
        found: dict[Family, None] = {}
        for (bare, ports), one in alike.items():
            for family in (replace(bare, optics=optics) for optics in optic_choices(question, one)):
                if split(family.per_module) == ports and _has_room(family):
                    every = family.uplink_choices
                    runs = [(u,) for u in every] if family.breaks_out else [every]
                    found |= dict.fromkeys(replace(family, uplink_choices=run) for run in runs)
        return [one for family in found for one in self._with_every_core_end(family)]

    def laid(self, gpus: int) -> list[Family]:
        """The same with every choice of cables, where their lengths choose these."""
        listed = self.networks(gpus)
        by_length = self.question.network.cables == "hall"
        return [one for family in listed for one in every_cabling(self.question, family)] if by_length else listed

    def _with_every_core_end(self, family: Family) -> Iterator[Family]:
        """The network with every product at the lower ends of its links into a core that carries as many of them."""
        core, network = self.question.sharing.core, self.question.network
        if family.core_end is None or core is None or core.optic is None:
            yield family
            return
        of_core = next(optic for optic in network.optics if optic.name == core.optic)
        for optic in network.optics:
            meets = optic == of_core or (optic.fibre is not None and optic.fibre == of_core.fibre)
            if meets and optic.gbit_s == family.core_end.gbit_s and optic.reach_m >= network.link_reach_m[-1]:
                yield replace(family, core_end=optic)

    def _meets(self, family: Family, uplinks: int) -> bool:
        """Whether the bound is met, and the longer ones after each loss."""
        robust = self.question.robust or Robust()
        return self.in_time(context_of(family), uplinks, 1.0) and all(
            self._survives(family, uplinks, part, getattr(robust.slower, part)) for part in robust.survive
        )

    def _spares(self, family: Family, uplinks: int, least: int) -> int | None:
        """The fewest domains standing by, of those offered, with which days are kept; None where no number does."""
        asked = self.question.availability
        if asked is None:
            return 0
        few = list(asked.spares)[:40] + list(asked.spares)[-1:]
        built = ((spares, replace(family, spare_domains=spares)) for spares in few if spares >= least)
        return next((spares for spares, one in built if in_time(self.question, one, uplinks, self.gpu)), None)

    def _survives(self, family: Family, uplinks: int, part: str, longer: float) -> bool:
        if part == "domain":
            return restarts(self.question, family, uplinks, self.efficiency, longer)
        slower = worst_loss(family, uplinks, part) if family.tiers else 1.0
        if math.isinf(slower):
            return False
        weak = replace(family, nic=family.nic.model_copy(update={"gbit_s": family.nic.gbit_s / slower}))
        return self.in_time(context_of(weak), uplinks, longer)

    def _in_time(self, context: Context, uplinks: int, longer: float) -> bool:
        hb = next(hb for hb in self.question.network.hb_domains if hb.name == context.site.hb)
        times_s = (least_s(one, self.gpu, hb, context, uplinks) for one in self.question.workload)
        return all(s <= one.bound_s * longer for s, one in zip(times_s, self.question.workload, strict=True))


def worst_loss(family: Family, uplinks: int, part: str) -> float:
    """How much the worst such loss slows what leaves a domain, by going through the parts of the network."""
    if part == "plane":
        return without_nics(family, family.hb.size * family.nics_per_gpu // family.planes)[0]
    named = {"nic": "NIC", "leaf": "leaf switch"}[part]
    return max(loss.domain_slowdown for loss in losses(family, uplinks) if loss.part.startswith(named))


def at_efficiency(gpu: Gpu, efficiency: float) -> Gpu:
    """A GPU that reaches so many times what it is said to reach."""
    old = gpu.efficiency
    shares = {name: getattr(old, name) * efficiency for name in ("gemm", "hbm", "attention")}
    return gpu.model_copy(update={"efficiency": old.model_copy(update=shares | {"fp8": None, "fp4": None})})


def restarts(instance: Instance, family: Family, uplinks: int, efficiency: float, longer: float) -> bool:
    """Whether every workload meets its longer bound on some GPUs of the domains that are left, whichever is lost."""
    gpu = at_efficiency(instance.cluster.gpu, efficiency)
    every = partial(every_mapping, discipline=family.discipline)
    return all(
        any(
            (left_s(every(workload, gpu, family.hb, site), family, uplinks) <= workload.bound_s * longer).any()
            for gpus in range(1, family.gpus + 1)
            for active in range(1, family.hb.size + 1)
            if gpus % active == 0 and (2 * active > family.hb.size or active == gpus)
            if gpus // active < family.domains
            for site in [DomainSet(gpus=gpus, hb=family.hb.name, domains=gpus // active)]
        )
        for workload in instance.workload
    )


def left_s(job: Pool, family: Family, uplinks: int) -> Floats:
    """The iteration times of a job that goes without one domain: blocks without it are whole, and used as a whole."""
    if family.discipline.charge == "loads":
        return job.time_s(context_left(family, job.site), max(uplinks, 1))
    domains, slow, routing = job.site.domains, family.slowdown(uplinks), float(family.discipline.routing)

    def rate(block: int, whole: int) -> float:
        def stays(span: int) -> bool:
            enough = (family.domains // whole - 1) * whole >= domains
            return span > domains or (span > 0 and span % block == 0 and enough)

        if family.tiers == 1 or stays(family.leaf_span):
            return 1 / family.byte_s
        near = family.pods is None or stays(family.pod_span)
        return slow * routing * (1.0 if near else family.pod_ratio) / family.byte_s

    own = job.groups
    rows = [tuple(map(int, row)) for row in zip(own.tp, own.stage, own.experts * own.apart, strict=True)]
    blocks = [(tp, tp) for tp, _, _ in rows], [(dp, dp) for _, dp, _ in rows]
    experts, line = [(ep, math.lcm(tp, ep)) for tp, _, ep in rows], [(domains, domains)] * len(rows)
    tp, dp, ep, pp = (np.array([rate(*pair) for pair in pairs]) for pairs in (*blocks, experts, line))
    r = Reciprocals(tp=tp, cp=dp, dp=dp, ep=ep, edp=dp, pp=pp, tied=pp)
    return job.pieces.at(r)
