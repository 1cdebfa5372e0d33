"""A network of an instance and the same one written as a design stand alike: as many racks, and the same cables."""

from typing import Any

import pytest

import coopt
from coopt.instance.designs import PublishedDesign
from coopt.network.design_bills import compared, design_bill
from coopt.plan.networks import BilledNetwork
from tests.conftest import ask

PARTS: dict[str, Any] = {
    "network__hb_domains": "hgx-h100-8",
    "network__nics": "cx7-400g",
    "network__oversubscription": 1.0,
    "network__leaf_fill": "ratio",
    "network__domain_fill": "even",
    "network__link_ends": "same",
    "network__optics": ["400g-sr4", "400g-dr4"],
}
HALL = {"racks_per_row": 7, "switch_rack_units": 11, "switch_rack_kw": 9.0, "usd_per_switch_rack": 4000.0}
WAYS = [
    ("rail-optimized", "qm9700", 512, 2),
    ("rail-optimized", "qm9700", 5120, 3),
    ("rail-only", "qm9700", 1024, 2),
    ("clos", "qm9700", 1024, 2),
    ("clos", "128x400g", 64, 1),
    ("rail-only", "128x400g", 128, 1),
    ("rail-optimized", "144x800g", 1024, 2),
]


@pytest.mark.parametrize(("fabric", "switch", "gpus", "tiers"), WAYS)
def test_a_network_stands_as_the_same_one_written_as_a_design(fabric: str, switch: str, gpus: int, tiers: int) -> None:
    xdr = switch == "144x800g"
    asked = PARTS | ({"network__nics": "cx8-800g", "network__optics": ["800g-dr4"]} if xdr else {})
    instance = ask(
        **asked, cluster__gpus=gpus, network__fabrics=fabric, network__switches=switch, network__hall=HALL,
        network__link_reach_m=[50, 500, 500],
    )  # fmt: skip
    (network,) = coopt.bom(instance).networks
    assert len(network.tier) == tiers
    design = PublishedDesign.model_validate(_written(network, fabric, asked["network__nics"], gpus))
    bill = design_bill(design)
    assert [tier.switches for tier in bill.tier] == [tier.switches for tier in network.tier]
    assert [tier.down_ports for tier in bill.tier] == [tier.down_ports for tier in network.tier]
    assert [tier.cables for tier in bill.tier] == [tier.cables for tier in network.tier]
    assert bill.switch_racks == network.switch_racks
    goods = {item.item: item.count for item in network.items if item.kind not in ("hb", "gpu")}
    assert {item.item: item.count for item in bill.items} == goods
    pair = compared(network, bill)
    assert (pair.more_usd, pair.design.w) == (0.0, pair.network.w)
    assert (bill.oversubscription, bill.pair_share) == (network.oversubscription, network.pair_share)


@pytest.mark.parametrize("gpus", [1408, 1984])
@pytest.mark.parametrize("fabric", ["rail-only", "rail-optimized", "clos"])
def test_uneven_bundles_leave_the_worst_leaves_as_much_as_those_of_the_design(fabric: str, gpus: int) -> None:
    asked = PARTS | {"network__oversubscription": [2.0], "network__bundles": "any", "network__optics": ["400g-sr4"]}
    instance = ask(
        **asked, cluster__gpus=gpus, network__fabrics=fabric, network__switches="qm9700",
        network__link_reach_m=[50, 50, 50],
    )  # fmt: skip
    (network,) = coopt.bom(instance).networks
    bill = design_bill(PublishedDesign.model_validate(_written(network, fabric, "cx7-400g", gpus) | {"bundles": "any"}))
    assert (bill.oversubscription, bill.pair_share) == (network.oversubscription, network.pair_share)
    assert bill.pair_share < 1


def _written(network: BilledNetwork, fabric: str, nic: str, gpus: int) -> dict[str, Any]:
    """The network as a design: its tiers with their ports in use and their products."""
    tiers = [
        {"ports": 144 if tier.switch == "144x800g" else 128 if tier.switch == "128x400g" else 64, "switch": tier.switch}
        | {"optic": tier.optic, "down": tier.down_ports}
        | ({"up": tier.uplinks_per_switch} if tier.uplinks_per_switch else {})
        for tier in network.tier
    ]
    hall = {"racks_per_domain": 0.25, **HALL}
    return {
        "id": "same", "domains": gpus // 8, "gpus_per_domain": 8, "fabric": fabric, "nic": nic, "tiers": tiers,
        "hall": hall,
    }  # fmt: skip
