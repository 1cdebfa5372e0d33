"""The islands that a workload may have, listed by their GPUs and no further than prices ask for.

An island is left out only where another of its workload takes no more of anything: whatever the others are, that one
costs no more and keeps every limit that the island keeps. Multipliers are never below 0, so its price is no higher.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from coopt.instance.hardware import Optic
from coopt.verifier.couplings.fleet import Fleet, FleetIsland, StandingIsland
from coopt.verifier.couplings.fleet_paths import IslandPath, IslandPaths
from coopt.verifier.couplings.prices import ProductKey
from coopt.verifier.couplings.stages import GrowthStage
from coopt.verifier.parts.bills import candidate_optics
from coopt.verifier.parts.space import NetworkGear, gears

Measure = tuple[int, str]
"""A phase, and what is measured there: a product by kind and name, GPUs, racks, links, or labour."""

ROUNDED = 1 - 1e-12
"""What sums of floats are multiplied by that have to be no more than the sums of whole numbers they stand for."""

GPUS, RACKS, LINKS, LABOUR = "gpus", "racks", "links", "labour"


def product_name(product: ProductKey) -> str:
    """A product as proofs name it."""
    return " ".join(product)


class MenuIsland(NamedTuple):
    """An island over the phases: all it takes, and the products that it uses, with and without a price."""

    path: IslandPath
    takes: dict[Measure, int]
    uses: frozenset[str]


class IslandMenu:
    """The islands of a workload, or of the network that all have in turn, with their GPUs in the end ascending."""

    def __init__(self, fleet: Fleet, paths: IslandPaths, name: str) -> None:
        self.name, self.sizes = name, paths.sizes(name)
        self._fleet, self._paths = fleet, paths
        self._grows = len(fleet.training_phases(name)) > 1
        self._listed: dict[int, list[MenuIsland]] = {}
        self._unbeaten: dict[frozenset[str], list[dict[Measure, int]]] = {}

    def of_size(self, gpus: int) -> list[MenuIsland]:
        """The islands with so many GPUs in the end that none of fewer beats; sizes are asked for in their order."""
        if gpus not in self._listed:
            self._listed[gpus] = list(self._list(gpus))
        return self._listed[gpus]

    @property
    def listed(self) -> Iterator[MenuIsland]:
        """The islands that were asked for so far."""
        return (island for islands in self._listed.values() for island in islands)

    @cached_property
    def fewest(self) -> int:
        """GPUs of the smallest island on which compute alone is in time."""
        return next((gpus for gpus in self.sizes if self._paths.fits(self.name, gpus)), self.sizes[-1])

    def _list(self, gpus: int) -> Iterator[MenuIsland]:
        """Cheap networks come first, so that most others need not be timed."""
        last = self._fleet.training_phases(self.name)[-1]
        candidates = [(_fewest_uplinks(one[last][0]), one) for one in self._paths.candidates(self.name, gpus)]
        for standing, stages in sorted(candidates, key=lambda one: self._list_usd(one[0])):
            if not self._grows and self._beaten_anyhow(standing, last):
                continue
            for path in self._paths.grown(self.name, stages):
                island = self._measured(path)
                if not self._beaten(island):
                    self._unbeaten.setdefault(island.uses, []).append(island.takes)
                    yield island

    def _beaten_anyhow(self, standing: StandingIsland, phase: int) -> bool:
        """Whether a network is beaten even with the fewest uplinks, and thus with as many as it takes to be in time."""
        later = len(self._fleet.phases) - phase
        return self._beaten(self._measured((*[None] * phase, *[standing] * later)))

    def _beaten(self, island: MenuIsland) -> bool:
        takes = island.takes
        return any(
            all(count <= takes.get(measure, 0) for measure, count in other.items())
            for uses, others in self._unbeaten.items()
            if uses <= island.uses
            for other in others
        )

    def _list_usd(self, standing: StandingIsland) -> float:
        units = self._fleet.counted(standing.counts)
        return math.fsum(count * self._fleet.prices[product].usd for product, count in units.items())

    def _measured(self, path: IslandPath) -> MenuIsland:
        """All that an island takes in each phase."""
        island, takes = FleetIsland(self.name, None, path), dict[Measure, int]()
        for t, here in enumerate(path):
            if here is not None:
                counts = here.counts
                takes |= {(t, product_name(product)): n for product, n in self._fleet.counted(counts).items() if n}
                others = {GPUS: counts.active, RACKS: here.racks, LINKS: counts.links, LABOUR: island.links_added(t)}
                takes |= {(t, name): n for name, n in others.items() if n}
        last = path[-1]
        assert last is not None, "an island stands from some phase on"
        return MenuIsland(path, takes, frozenset(product_name(p) for p, n in last.counts.products.items() if n))


def _fewest_uplinks(stage: GrowthStage) -> StandingIsland:
    """A network with the fewest uplinks of its leaves, without links into a core."""
    return StandingIsland(stage, stage.uplinks[0] if stage.uplinks else 0, None)


class FloorPrices:
    """The least price of a GPU of an island, whatever its network."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, question = fleet, fleet.question
        self._gears = [(gear, candidate_optics(question, fleet.kind, gear, 1)) for gear in gears(question)]

    def slopes(self, prices: Mapping[Measure, int], barred: frozenset[str]) -> tuple[float, float]:
        """The least price of a GPU that an island has in the end: of its domain alone, and with a network it may have.

        Every GPU has its share of a NIC; every port of a NIC has a link to a leaf, which takes one port there and its
        share of the modules at both ends, or at one where the switch has them inside.
        """
        last, question = self._fleet.phases[-1], self._fleet.question

        def price(kind: str, name: str) -> float:
            return math.inf if f"{kind} {name}" in barred else prices.get((last, f"{kind} {name}"), 0)

        def of_network(gear: NetworkGear, optics: Sequence[Optic]) -> float:
            ends = 1 if gear.switch.optics_inside else 2
            modules = min((price("optics", one.name) / gear.links_of(one) for one in optics), default=math.inf)
            link = price("switch", gear.switch.name) / gear.switch.radix + ends * modules
            return gear.per_gpu / gear.gpus_per_nic * (price("nic", gear.nic.name) + gear.nic_planes * link)

        alone = prices.get((last, GPUS), 0) + min(price("hb", hb.name) for hb in question.network.hb_domains)
        if "gpu" in question.objective.include:
            alone += prices.get((last, f"gpu {question.cluster.gpu.name}"), 0)
        least = min((of_network(gear, optics) for gear, optics in self._gears), default=math.inf)
        return alone * ROUNDED, (alone + least) * ROUNDED
