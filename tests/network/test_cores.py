"""Links into a core take ports of leaves, no more than they need, and the leaves stay within their radix."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coopt.instance.schema import Instance
from coopt.network.cores import core_optic, core_switches, links_to_core
from coopt.network.family import Wiring
from coopt.network.filling import EndPoints, wirings
from coopt.verifier.parts.bills import levels
from coopt.verifier.parts.layouts import chains, core_ports
from coopt.verifier.parts.space import DesignFamily, NicAttachment
from tests.conftest import ask, switch

KINDS = ("rail-only", "rail-optimized", "clos")
CORE = {"switch": "8-port", "gbit_s_per_gpu": 100.0}


def shared(core: dict[str, Any], **changes: Any) -> Instance:
    return ask(sharing={"mode": "partition", "core": core}, **changes)


def planes_of(wiring: Wiring, ends: EndPoints) -> int:
    """The most planes that a leaf switch of one tier holds, one above."""
    return -(-ends.planes // wiring.chassis) if wiring.tiers == 1 else 1


@given(
    st.sampled_from(KINDS),
    st.integers(2, 40),
    st.integers(1, 16),
    st.integers(2, 40),
    st.integers(0, 300),
    st.floats(1, 5),
)
def test_leaves_have_ports_for_everything_and_as_many_links_each(kind, domains, rails, radix, links, ratio) -> None:
    ends = EndPoints(fabric=kind, domains=domains, rails=rails, links=links)
    for wiring in wirings(ends, radix, ask(network__oversubscription=ratio).network):
        assert wiring.chassis * wiring.core_ports >= links > wiring.chassis * (wiring.core_ports - 1)
        down = wiring.down * planes_of(wiring, ends)
        most = wiring.uplink_choices[-1] if wiring.tiers > 1 else 0
        assert down + most + wiring.core_ports <= radix
        assert wiring.leaves * wiring.down >= ends.of_a_plane
        assert (wiring.tiers == 1) == (wiring.leaves == 1)


@given(st.integers(2, 12), st.integers(1, 8), st.integers(2, 24), st.integers(0, 60))
def test_a_single_leaf_keeps_as_few_ports_as_plain_trial_finds(domains, rails, radix, links) -> None:
    ends = EndPoints(fabric="rail-only", domains=domains, rails=rails, links=links)
    fewest = [
        leaves
        for on_one in range(1, rails + 1)
        for leaves in [-(-rails // on_one)]
        if on_one * domains + -(-links // leaves) <= radix
    ]
    (*_, first) = [None, *wirings(ends, radix, ask(network__max_tiers=1).network)]
    assert (first.chassis if first else None) == min(fewest, default=None)


@given(
    st.sampled_from(KINDS),
    st.integers(2, 20),
    st.integers(1, 8),
    st.sampled_from([8, 12, 16]),
    st.integers(0, 90),
    st.sampled_from(["even", "any"]),
    st.sampled_from([1, 1, 2, 4]),
)
def test_solver_and_verifier_find_the_same_wirings(kind, domains, rails, radix, links, bundles, planes) -> None:
    """Links are those of all planes for the verifier, and of one of them for a plane's wirings."""
    instance = ask(
        network__hb_domains=[{"name": "hb", "size": rails, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0}],
        network__switches=[switch(radix, 1000)],
        network__bundles=bundles,
    )
    network = instance.network
    attachment = NicAttachment(kind, network.nics[0], 1, network.switches[0], network.discipline, planes)
    family = DesignFamily(domains * rails, network.hb_domains[0], domains, attachment, links)
    theirs = {
        (
            chain.ports.tiers,
            chain.ports.down,
            chain.uplinks,
            core_ports(family, chain.ports),
            first.switches // planes,
            chain.ports.bundle,
        )
        for chain in chains(family, network)
        for first in levels(family, chain.ports._replace(up=1))[:1]
    }
    ends = EndPoints(fabric=kind, domains=domains, rails=rails, links=-(-links // planes))
    ours = {
        (
            one.tiers,
            one.down,
            one.uplink_choices,
            one.core_ports,
            one.chassis,
            one.pods.bundle if one.pods else one.bundle,
        )
        for one in wirings(ends, radix, network)
        if len(one.uplink_choices)
    }
    assert ours == theirs


def test_links_are_rounded_up_in_decimals_and_core_switches_are_whole() -> None:
    instance = shared({"switch": "8-port", "gbit_s_per_gpu": 0.1})
    assert [links_to_core(instance, gpus) for gpus in (1, 4000, 4001, 12_000)] == [1, 1, 2, 3]
    assert [core_switches(shared(CORE), links) for links in (1, 8, 9, 16, 17)] == [1, 1, 2, 2, 3]
    assert core_switches(ask(), 17) == 0


def test_the_optic_of_the_core_reaches_it_and_is_the_cheapest() -> None:
    optics = [
        {"name": "near", "gbit_s": 400, "reach_m": 100, "usd": 100, "w": 1},
        {"name": "dear", "gbit_s": 400, "reach_m": 900, "usd": 300, "w": 1},
        {"name": "far", "gbit_s": 400, "reach_m": 500, "usd": 200, "w": 9},
    ]
    found = core_optic(shared(CORE, network__optics=optics))
    assert found.name == "far"
    power = core_optic(shared(CORE, network__optics=optics, objective={"minimize": "power"}))
    assert power.name == "dear"
    assert core_optic(ask()) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sharing": {"mode": "partition", "core": {**CORE, "switch": "9-port"}}}, "'9-port'"),
        (
            {"sharing": {"mode": "time", "core": CORE}},
            r"needs sharing.mode = 'partition', or \[\[wan\]\] between sites",
        ),
        ({"network__switches": [switch(8, 1, 800), switch(16, 1)]}, "its ports .*800"),
        (
            {"sharing": {"mode": "partition", "core": {**CORE, "gbit_s_per_gpu": 201.0}}, "network__gpus_per_nic": 2},
            "gbit_s_per_gpu = 201: .* 200 Gbit/s",
        ),
        ({"network__link_reach_m": [50, 100, 9000]}, "reaches 9000 m"),
        (
            {"sharing": {"mode": "partition", "core": {**CORE, "gbit_s_per_gpu": 401.0}}},
            "gbit_s_per_gpu = 401: .* 400 Gbit/s",
        ),
        ({"network__switches": [switch(8, 1), switch(16, 1)], "workload": 9}, "8 ports .* 9"),
        ({"sharing": {"mode": "partition", "core": {"switch": "8-port"}}}, "gbit_s_per_gpu"),
        ({"sharing": {"mode": "partition", "core": CORE | {"optic": []}}}, "least 1 item"),
    ],
)
def test_a_core_that_does_not_go_with_the_rest_is_refused(changes: dict[str, Any], words: str) -> None:
    table: dict[str, Any] = {"sharing": {"mode": "partition", "core": CORE}} | changes
    if table.get("workload"):
        (one,) = ask().workload
        table["workload"] = [
            one.model_dump(by_alias=True, exclude_none=True) | {"name": f"w{w}"} for w in range(table["workload"])
        ]
    with pytest.raises(ValueError, match=words):
        ask(**table)


@pytest.mark.parametrize("optic", [{}, {"optic": "400g-dr4"}])
def test_an_optic_that_no_list_has_is_missed_once(optic: dict[str, str]) -> None:
    table: dict[str, Any] = {"sharing": {"mode": "partition", "core": CORE | optic}}
    with pytest.raises(ValueError, match="reaches 9000 m") as caught:
        ask(**table, network__link_reach_m=[50, 100, 9000])
    assert "sharing.core.optic" not in str(caught.value)
