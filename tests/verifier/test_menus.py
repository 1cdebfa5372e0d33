"""Menus of islands that proofs look through: what is wanted is listed, and no floor is above what there is."""

import math
from itertools import product
from typing import Any

import pytest

from coopt.instance.schema import Instance
from coopt.verifier.checks.verdict import LENIENT
from coopt.verifier.couplings.fleet import Fleet
from coopt.verifier.couplings.fleet_paths import IslandPaths
from coopt.verifier.proofs.leaves import UnitRange, least_excess
from coopt.verifier.proofs.menus import FloorPrices, IslandMenu, OpenDomains
from coopt.verifier.proofs.rivals import GPUS, UnbeatenIslands, Usage, product_name
from tests.verifier.cases import ask, switch
from tests.verifier.fleets import FLEETS, ISLANDS


class Every:
    """Every island is wanted."""

    def __call__(self, least: Usage) -> bool:
        return True

    def attachments(self, domains: OpenDomains) -> list[int]:
        return list(domains.families)


class FewNics(Every):
    """Islands with few NICs are wanted, of networks on every NIC attachment."""

    def __call__(self, least: Usage) -> bool:
        return least.amounts.get((0, "nic nic400"), 0) <= 16


GEARS = ISLANDS | {"network__nics_per_gpu": [1, 2], "network__gpus_per_nic": [1, 2], "sharing": {"mode": "partition"}}


def menu_of(instance: Instance, name: str) -> tuple[IslandMenu, UnbeatenIslands]:
    fleet = Fleet(instance, "tco")
    rivals = UnbeatenIslands(fleet, by_bill=False)
    return IslandMenu(fleet, IslandPaths(fleet, LENIENT, math.inf), name, rivals), rivals


def test_what_nobody_wanted_before_is_listed_once_somebody_does() -> None:
    """Of networks of the same products some were in time and the others not looked at."""
    instance = ask(**GEARS | {"network__fabrics": "clos", "network__switches": [switch(8)]})
    (fresh, _), (asked, rivals) = menu_of(instance, "first"), menu_of(instance, "first")
    few = sum(1 for gpus in asked.sizes for _ in asked.of_size(gpus, FewNics()))
    for gpus in asked.sizes:
        list(asked.of_size(gpus, Every()))
    every = [island.usage for gpus in fresh.sizes for island in fresh.of_size(gpus, Every())]
    assert 0 < few < len(every)
    assert all(rivals.beat(taken) for taken in every)


def test_no_network_takes_less_than_its_family_is_known_to() -> None:
    (menu, _), seen = menu_of(ask(**GEARS), "first"), set[tuple[int, int]]()
    for family in (one for gpus in menu.sizes for one in menu.paths.families(gpus) if one.attachment):
        least = menu._least_of(family, family.attachment)
        seen.add((family.attachment.per_gpu, family.attachment.gpus_per_nic))
        for kind in menu.paths.kinds(family):
            of_kind = menu._least_of_kind(kind)
            for stages in menu.paths.candidates("first", kind):
                taken = menu._network(stages).usage
                assert least.uses <= of_kind.uses <= taken.uses
                for lower, upper in ((least, of_kind), (of_kind, taken)):
                    assert all(upper.amounts[measure] >= count for measure, count in lower.amounts.items())
                for same in ("nic nic400", GPUS):
                    assert taken.amounts[0, same] == least.amounts[0, same]
    assert seen == {(1, 1), (2, 1), (1, 2)}


SINGLE = {"name": "single", "gbit_s": 400, "fibre": "f", "reach_m": 600, "usd": 200, "w": 5}
OWN_ENDS = {"link_ends": "any", "optics": [SINGLE, SINGLE | {"name": "twin", "gbit_s": 800, "breakout": 2}]}


@pytest.mark.parametrize("changes", [{}, OWN_ENDS], ids=["one module", "twin ports above"])
def test_no_island_costs_less_than_the_floor_of_its_gpus(changes: dict[str, Any]) -> None:
    whole = FLEETS["sites"]().model_dump(by_alias=True)
    boxes = [one | ({"cages": one["radix"] // 2} if changes else {}) for one in whole["network"]["switches"]]
    instance = Instance.model_validate(whole | {"network": whole["network"] | changes | {"switches": boxes}})
    fleet = Fleet(instance, "tco")
    paths = IslandPaths(fleet, LENIENT, math.inf)
    prices = {(0, product_name(product)): 7 + n for n, product in enumerate(fleet.prices)} | {(0, "gpus"): 3}
    largest = max(hb.size for hb in instance.network.hb_domains)
    menus = [IslandMenu(fleet, paths, name, UnbeatenIslands(fleet, by_bill=False)) for name in fleet.islands]
    listed = [island.usage.amounts for menu in menus for gpus in menu.sizes for island in menu.of_size(gpus, Every())]
    worth = [(taken[0, "gpus"], sum(n * prices.get(key, 0) for key, n in taken.items())) for taken in listed]
    floors = FloorPrices(paths).floors([prices], frozenset())
    slopes = floors.domain, floors.with_network
    ratios = [price / (gpus * slopes[gpus > largest]) for gpus, price in worth]
    assert 1 <= min(ratios) < 1.5
    assert any(gpus > largest for gpus, _ in worth)
    assert slopes[0] < slopes[1]


def test_units_are_not_worth_more_than_they_cost() -> None:
    """A whole bill less the worth of its units is least at an end of a piece."""
    begins = [0, 10, 20]
    for usd, worth in product(([10, 8, 5], [5, 9, 7]), range(8)):
        for low, high in ((0, 30), (3, 9), (10, 10), (9, 21)):
            bills = [n * next(p for b, p in reversed([*zip(begins, usd, strict=True)]) if n >= b) for n in range(40)]
            least = min(bills[n] - worth * n for n in range(low, high + 1))
            assert least_excess(begins, usd, worth, UnitRange(low, high), all_units=True) == least  # type: ignore[arg-type]
