"""Leaves that hold any number of NICs: as few as each number of leaves takes, up to the largest ratio."""

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.schema import Instance, SwitchedKind
from coopt.network.filling import EndPoints, wirings
from coopt.network.space import families
from coopt.verifier.parts.layouts import chains
from tests.conftest import ask, example_count, switch
from tests.verifier.test_layouts import family


def filled(instance: Instance, leaf_fill: str) -> Instance:
    """The instance with leaves filled that way."""
    return instance.model_copy(update={"network": instance.network.model_copy(update={"leaf_fill": leaf_fill})})


def test_a_leaf_between_two_ratios_saves_a_tier() -> None:
    # 288 servers of 8 on 64 ports, 1.5:1 at most: 32 ports down take 72 leaves and three tiers, 36 take 64 and two.
    changes = {"network__fabrics": "rail-optimized", "network__switches": switch(64, 44_416)}
    changes |= {"network__hb_domains": "hgx-h100-8", "network__oversubscription": 1.5, "cluster__gpus": 2304}
    instance = ask(**changes, workload__0__global_batch=2304)
    values = {}
    for leaf_fill, tiers in (("ratio", 3), ("any", 2)):
        plan = coopt.solve(filled(instance, leaf_fill))
        assert plan.design.fabric.tiers == tiers
        values[leaf_fill] = plan.objective.value
    assert plan.design.fabric.tier[0].down_ports == 36
    assert plan.design.fabric.tier[0].uplinks_per_switch == 24
    assert values["any"] < 0.7 * values["ratio"]


@pytest.mark.parametrize("kind", ["rail-only", "rail-optimized", "clos"])
@given(domains=st.integers(9, 60), rails=st.integers(1, 6), ratio=st.sampled_from([1.0, 1.5, 2.5]))
@example(domains=9, rails=5, ratio=2.5)  # four ports hold no domain of five rails whole
@settings(max_examples=example_count(30))
def test_every_number_of_leaves_is_offered(kind: SwitchedKind, domains: int, rails: int, ratio: float) -> None:
    ends, radix = EndPoints(fabric=kind, domains=domains, rails=rails), 8
    network = ask(network__oversubscription=ratio, network__bundles="any", network__leaf_fill="any").network
    offered = {(wiring.leaves, wiring.down) for wiring in wirings(ends, radix, network) if wiring.tiers > 1}
    most = max(down for down in range(1, radix) if down + math.ceil(down / ratio) <= radix)
    assert all(down <= most for _, down in offered)
    if kind == "rail-only" and domains > radix:
        assert {leaves for leaves, _ in offered} == {math.ceil(domains / down) for down in range(4, most + 1)}
        for leaves in {leaves for leaves, _ in offered}:
            assert min(down for of, down in offered if of == leaves) == math.ceil(domains / leaves)
    if kind == "clos" and rails <= most and domains * rails > radix:
        assert {down for _, down in offered if down >= rails and down % rails} == set()
    joined = family(kind, domains * rails, rails, radix)
    assert {down for _, down in offered} == {one.ports.down for one in chains(joined, network) if one.ports.tiers > 1}


def test_ratios_are_filled_as_before() -> None:
    instance = ask(network__switches=[switch(8, 1), switch(16, 1)], cluster__gpus=512)
    before, after = (
        {(one.fabric, one.active, one.switch.radix, one.down) for one in families(filled(instance, fill))}
        for fill in ("ratio", "any")
    )
    assert before < after
