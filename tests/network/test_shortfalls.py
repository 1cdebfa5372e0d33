"""A network that cannot be wired says which switch would take how many ports, and with one fewer it still could not."""

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.network.filling import EndPoints, wirings
from coopt.network.shortfalls import nearest_shortfall
from coopt.network.space import Wiring, families
from coopt.solving.explain import EASED
from tests.conftest import ask, example_count, switch

PINNED = {
    "network__hb_domains": "hgx-h100-8",
    "network__oversubscription": 1.0,
    "network__leaf_fill": "ratio",
    "network__domain_fill": "even",
}


@settings(max_examples=example_count(300, 60))
@given(
    st.sampled_from(["rail-only", "rail-optimized", "clos"]),
    st.integers(2, 24),
    st.sampled_from([4, 6, 8]),
    st.integers(1, 3),
    st.sampled_from([1.0, 2.0, 3.0]),
)
def test_with_the_ports_it_would_take_the_nearest_network_is_wired_and_with_one_fewer_not(
    fabric: str, domains: int, radix: int, tiers: int, ratio: float
) -> None:
    """Its last tier is given switches of another size alone, on which it then ends."""
    alone = {"name": "hb", "size": 1, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0}
    instance = ask(
        **PINNED | {"network__oversubscription": ratio, "network__hb_domains": [alone]}, cluster__gpus=domains,
        network__fabrics=fabric, network__switches=switch(radix, 5000), network__max_tiers=tiers,
        network__nics_per_gpu=8,
    )  # fmt: skip
    found = nearest_shortfall(instance)
    assert (found is None) == (next(families(instance), None) is not None)
    assume(found is not None)
    assert (found.fabric, found.tier, found.has) == (fabric, tiers, radix)
    assert found.takes > radix
    ends = EndPoints(fabric=found.fabric, domains=domains, rails=8)

    def wired(ports: int) -> list[Wiring]:
        last = {1: (ports, (ports, ports)), 2: (radix, (ports, ports)), 3: (radix, (radix, ports))}[tiers]
        return [one for one in wirings(ends, last[0], instance.network, above=last[1]) if one.tiers == tiers]

    assert wired(found.takes)
    assert not wired(found.takes - 1)


def wide(tiers: int) -> Instance:
    return ask(
        **PINNED, cluster__gpus=64, network__fabrics="clos", network__switches=switch(4, 5000),
        network__max_tiers=tiers, network__nics_per_gpu=1,
    )  # fmt: skip


@pytest.mark.parametrize(("tiers", "ports", "below"), [(1, 64, "end point"), (2, 32, "leaf"), (3, 16, "pod")])
def test_bills_and_plans_that_cannot_be_wired_name_the_tier_and_its_ports(tiers: int, ports: int, below: str) -> None:
    says = f" {ports} ports on a tier-{tiers} switch, one for each {below}, but 4-port has only 4"
    instance = wide(tiers)
    with pytest.raises(InstanceError, match=says):
        coopt.bom(instance)
    plan = coopt.solve(instance)
    assert plan.status == "infeasible"
    assert re.search(says, " ".join(plan.explanation))


@pytest.mark.parametrize(
    ("changes", "helps"),
    [
        ({"network__max_tiers": 1}, ["more tiers"]),
        ({"network__max_tiers": 2, "cluster__gpus": 256}, []),
        ({"network__max_tiers": 2, "cluster__gpus": 40}, ["network.oversubscription", "more tiers"]),
        ({"network__gpus_per_nic": 2, "cluster__gpus": 5}, ["network.gpus_per_nic"]),
        ({"network__fabrics": "rail-only", "network__max_networks": 1}, ["network.max_networks"]),
    ],
)
def test_only_what_joins_the_gpus_is_asked_for(changes: dict[str, object], helps: list[str]) -> None:
    usual = {"cluster__gpus": 16, "network__fabrics": "clos", "network__switches": switch(8, 5000)}
    (sentence,) = coopt.solve(ask(**PINNED | usual | changes)).explanation
    assert [text for text in EASED if text in sentence] == [text for text in EASED if any(key in text for key in helps)]


def test_cages_that_are_kept_leave_the_ports_that_their_modules_serve() -> None:
    box = switch(64, 5000) | {"cages": 2}
    instance = ask(**PINNED, cluster__gpus=64, network__switches=box, network__switch_cages="kept")
    found = nearest_shortfall(instance)
    assert found.has == 2
    assert "only 2 of" in str(found)
