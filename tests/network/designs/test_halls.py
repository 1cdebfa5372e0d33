"""Cables by length from a hall of racks, and spares: all links are there, at the lengths that the hall makes."""

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, given, settings

from coopt.instance.designs import Hall, PublishedDesign
from coopt.instance.texts import InstanceError
from coopt.network.design_bills import design_bill
from coopt.network.design_halls import cable_ends, design_hall
from coopt.network.designs import chain_of
from coopt.network.placing import Lengths, sold_m
from tests.conftest import example_count
from tests.network.designs.design_graphs import design_graph
from tests.network.designs.oracle import tables
from tests.network.hall_oracle import amid

PLAIN: dict[str, Any] = {
    "id": "plain", "domains": 128, "gpus_per_domain": 8, "unit_domains": 32, "fabric": "rail-optimized",
    "tiers": [{"ports": 64}, {"ports": 64}], "hall": {"racks_per_domain": 0.25, "racks_per_row": 16},
}  # fmt: skip


def design(**changes: Any) -> PublishedDesign:
    return PublishedDesign.model_validate({**PLAIN, **changes})


def cable_lengths(drawn: PublishedDesign) -> tuple[Lengths, ...]:
    chain = chain_of(drawn)
    hall = design_hall(drawn, chain, tuple(cable_ends(drawn, chain, "drawn")), "drawn")
    return hall.cables


def test_cables_of_four_units_have_the_lengths_of_the_hall() -> None:
    """Racks 0 to 31 in rows of 16: the leaves of a unit stand in the fourth of its 8, spines with those of unit 2."""
    first, second = cable_lengths(design())
    aside = Counter({0: 1, 1: 2, 2: 2, 3: 2, 4: 1})  # racks of a unit by their distance from the fourth
    expected = Counter[int]()
    for racks, count in aside.items():
        expected[sold_m(2 if racks == 0 else 5 + 0.6 * racks)] += count * 4 * 4 * 8
    assert first == expected
    assert second == Counter({2: 256, 10: 512, 15: 256})  # their own rack; 8 racks or a row away; both


def test_a_leaf_of_one_rack_stands_in_it() -> None:
    racks = design(fabric="clos", gpus_per_domain=72, domains=8, unit_domains=8, leaf_domains=1, hall=_racks(1))
    first, second = cable_lengths(racks.model_copy(update={"tiers": design(tiers=[{"ports": 144}] * 2).tiers}))
    assert first == Counter({2: 576})
    assert set(second) == {2, 7, 10}


def _racks(per_domain: float) -> dict[str, float]:
    return {"racks_per_domain": per_domain}


@settings(max_examples=example_count(100, 40))
@given(table=tables())
def test_every_link_has_a_length_that_is_long_enough(table: dict[str, Any]) -> None:
    """Against the graph: each cable leads from the rack of its lower end to a leaf amid all that it serves."""
    drawn = PublishedDesign.model_validate({**table, "hall": {"racks_per_domain": 0.5, "racks_per_row": 3}})
    try:
        tiers = chain_of(drawn).levels
    except InstanceError:
        assume(False)
    lengths = cable_lengths(drawn)
    assert [sum(each.values()) for each in lengths] == [tier.links for tier in tiers]
    graph = design_graph(drawn)
    below: dict[Any, Counter[int]] = {}
    expected = Counter[int]()
    for low, high, links in graph.edges(data="links"):
        end, leaf = (low, high) if low[0] == "end" else (high, low)
        if end[0] == "end":
            below.setdefault(leaf, Counter())[drawn.hall.rack_of(end[1])] += links
    if len(tiers) > 1:  # one switch of a single tier may hold several networks
        for racks in below.values():
            for rack, cables in racks.items():
                expected[sold_m(drawn.hall.cable_m(rack, amid([*racks.elements()], drawn.hall, 1)))] += cables
        assert lengths[0] == expected


@pytest.mark.parametrize(("length_m", "sold"), [(0.5, 1), (2, 2), (5.6, 7), (20.1, 30), (2000.5, 3000), (3000, 3000)])
def test_cables_are_bought_in_the_next_length_on_sale(length_m: float, sold: int) -> None:
    assert sold_m(length_m) == sold >= length_m


def test_a_hall_measures_along_rows_and_across_them() -> None:
    hall = Hall(racks_per_domain=2, racks_per_row=10, rack_pitch_m=1, row_pitch_m=4, rise_m=3, in_rack_m=1.5)
    assert [hall.rack_of(domain) for domain in range(3)] == [0, 2, 4]
    assert hall.cable_m(7, 7) == 1.5
    assert hall.cable_m(2, 25) == 6 + 3 + 8


def test_an_optic_that_does_not_reach_is_refused() -> None:
    tiers = [{"ports": 64, "optic": "400g-dac"}, {"ports": 64, "optic": "400g-dr4"}]
    with pytest.raises(InstanceError, match=r"'400g-dac': .*3 m, .* 10 m"):
        design_bill(design(tiers=tiers))
    assert design_bill(design(tiers=tiers, hall=None)).items


def test_spares_are_bought_and_draw_nothing() -> None:
    tiers = [{"ports": 64, "switch": "qm9700", "optic": "400g-dr4"}, {"ports": 64, "switch": "qm9700"}]
    bill = design_bill(design(tiers=tiers, nic="cx7-400g", spares={"switch": 0.02, "nic": 0.01}))
    spares = {item.item: item.count for item in bill.items if item.spare}
    assert spares == {"qm9700 (spare)": math.ceil(0.02 * 48), "cx7-400g (spare)": math.ceil(0.01 * 1024)}
    plain = design_bill(design(tiers=tiers, nic="cx7-400g"))
    assert bill.w == plain.w
    assert bill.usd - plain.usd == pytest.approx(36_000 + 11 * 1750)
