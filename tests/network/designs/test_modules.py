"""Modules at the ends of cables: twin ports, other products below, built-in optics of switches."""

from pathlib import Path
from typing import Any

import pytest

import coopt
from coopt.instance.designs import PublishedDesign
from coopt.instance.texts import InstanceError
from coopt.network.design_bills import design_bill
from coopt.plan.networks import BilledNetwork

TINY = Path(__file__).parents[3] / "instances" / "tiny-64.toml"


def billed(*tiers: dict[str, Any], **changes: Any) -> BilledNetwork:
    plain = {"id": "plain", "domains": 128, "gpus_per_domain": 8, "unit_domains": 32, "fabric": "rail-optimized"}
    return design_bill(PublishedDesign.model_validate({**plain, "tiers": tiers, **changes}))


def bought(bill: BilledNetwork) -> dict[str, int]:
    return {item.item: item.count for item in bill.items if item.kind == "optics"}


def test_twin_ports_halve_the_modules_of_switches() -> None:
    """1,024 cables on either side of the leaves: 512 modules at each switch end, one for each NIC.

    Of 32 servers 31: each of 8 leaves has 31 cables down, which take 16 twin ports and not 15.5. A NIC of two ports
    fills a twin port.
    """
    twin, plain = (
        {"ports": 64, "switch": "qm9700", "optic": "800g-sr8"},
        {"ports": 64, "gbit_s": 400, "optic": "800g-sr8"},
    )
    bill = billed(twin | {"optic_below": "400g-sr4"}, twin)
    assert bought(bill) == {"800g-sr8": 512 + 2 * 512, "400g-sr4": 1024}
    assert bill.tier[0].optic == "800g-sr8 / 400g-sr4"
    some = billed(plain | {"optic_below": "400g-sr4"}, {"ports": 64}, domains=31)
    assert bought(some) == {"800g-sr8": 8 * 16, "400g-sr4": 248}
    two = billed(plain | {"ports": 128}, {"ports": 128}, nic_ports=2, planes=2, unit_domains=64)
    assert bought(two) == {"800g-sr8": 1024 + 1024}


def test_a_nic_does_not_share_its_module_with_others() -> None:
    tiers = {"ports": 64, "switch": "qm9700", "optic": "800g-sr8"}, {"ports": 64, "switch": "qm9700"}
    with pytest.raises(InstanceError, match=r"tiers\[0\].optic = '800g-sr8': .*2 cable ends.* optic_below"):
        billed(*tiers)
    with pytest.raises(InstanceError, match=r"gpus_per_cage = 3: .* gpus_per_domain = 8"):
        billed(*tiers, gpus_per_cage=3)
    wide = {"name": "4x400g", "gbit_s": 1600.0, "reach_m": 100.0, "breakout": [4], "usd": 1.0, "w": 1.0}
    with pytest.raises(InstanceError, match=r"4 cable ends, .* optic_below"):
        billed(tiers[0] | {"optic": wide}, tiers[1], gpus_per_cage=2)


def test_the_modules_of_127_servers_are_those_of_the_reference_architecture() -> None:
    """RA-11333-001 V11, table 8: 2,040 cables, 1,536 modules in leaves and spines, 508 in servers of four cages."""
    tier = {"ports": 64, "switch": "qm9700", "optic": "800g-sr8"}
    below = {
        **tier,
        "optic_below": {"name": "server", "gbit_s": 800.0, "reach_m": 50.0, "breakout": [2], "usd": 1, "w": 1},
    }
    bill = billed(below, tier, domains=127, gpus_per_cage=2)
    assert sum(level.links for level in bill.tier) == 2040
    assert bought(bill) == {"800g-sr8": 1536, "server": 508}


def test_a_cage_of_a_nic_takes_one_module() -> None:
    tiers = [{"ports": 64, "optic": "400g-sr4", "switch": "qm9700"}, {"ports": 64}]
    (note,) = (one for one in billed(*tiers, nic="cx8-800g", nic_ports=2).notes if "cx8-800g" in one)
    assert ["not 2 x 400g-sr4" in note, "800g-sr8" in note] == [True, True]
    below = [tiers[0] | {"optic_below": "800g-sr8"}, tiers[1]]
    bill = billed(*below, nic="cx8-800g", nic_ports=2)
    assert bought(bill)["800g-sr8"] == 128 * 8
    nic = {"extends": "cx8-800g", "name": "two-cages", "ports": [2], "cages": 2}
    with pytest.raises(InstanceError, match="1 cable end"):
        billed(*below, nic=nic, nic_ports=2)


def test_switches_with_optics_inside_take_no_modules() -> None:
    inside = {"ports": 144, "switch": "144x800g-cpo", "optic": "800g-dr4"}
    plain = {"ports": 144, "switch": "144x800g", "optic": "800g-dr4"}
    sized = {"domains": 144, "unit_domains": 72}
    assert bought(billed(inside, inside, **sized)) == {"800g-dr4": 1152}
    assert bought(billed(plain, plain, **sized)) == {"800g-dr4": 4 * 1152}
    assert bought(billed(plain, inside, **sized)) == {"800g-dr4": 3 * 1152}
    bare = billed(inside, {"ports": 144, "switch": "144x800g-cpo"}, **sized)
    assert bare.unpriced == ("NICs",)


def test_products_of_a_link_that_do_not_mate_are_refused() -> None:
    tier = {"ports": 144, "switch": "144x800g", "optic": "800g-dr8"}
    with pytest.raises(InstanceError, match=r"tiers\[0\]: 800g-dr8, 144x800g "):
        billed(tier, {"ports": 144}, domains=144, unit_domains=72)
    boxes = ({"ports": 64, "switch": "qm9700"}, {"ports": 64, "switch": "128x400g"})
    speak = r"protocol is ethernet \(128x400g\) and infiniband \(qm9700\)"
    with pytest.raises(InstanceError, match=rf"tiers\[1\]: qm9700, 128x400g .*{speak}"):
        billed(*boxes)


def test_the_solver_refuses_switches_with_optics_inside() -> None:
    table = coopt.load(TINY).model_dump(by_alias=True)
    (switch, *_) = table["network"]["switches"]
    table["network"]["switches"] = [{**switch, "optics_inside": True}]
    with pytest.raises(ValueError, match="built-in optics"):
        coopt.Instance.model_validate(table)
