"""Properties of every family an instance can ask for, and counts as published (arXiv 2307.12169; docs/network.md)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.instance.schema import Instance
from coopt.network.family import Family, levels
from coopt.network.parts import bill, cost_of, price, total
from coopt.network.plan_networks import any_to_any
from coopt.network.space import domain_counts, families
from coopt.solving.answer import solve
from tests.conftest import ask, example_count, switch


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    """Networks of one to three tiers for clusters of up to a thousand GPUs."""
    size = draw(st.sampled_from([1, 2, 6, 8, 12]))
    gpus = size * draw(st.integers(1, 80))
    domain = {"name": "hb", "size": size, "gbyte_s": 450, "usd_per_gpu": 7, "w_per_gpu": 3}
    ratio = draw(
        st.one_of(
            st.floats(1, 5).map(lambda x: round(x, 2)), st.lists(st.sampled_from([1.0, 1.5, 2.0, 3.0]), min_size=1)
        )
    )
    return ask(
        cluster__gpus=gpus,
        network__hb_domains=[domain],
        network__switches=[switch(draw(st.integers(4, 40)), 1000)],
        network__nics_per_gpu=draw(st.integers(1, 2)),
        network__oversubscription=ratio,
    )


@settings(max_examples=example_count(150))
@given(instances())
def test_price_is_affine_in_uplinks_and_spines(instance: Instance) -> None:
    for family in families(instance):
        affine = price(instance, family, "capex")
        for uplinks in family.uplink_choices:
            exact = total(instance.objective, bill(instance, family, uplinks)).capex_usd
            assert affine.at(family, uplinks) == pytest.approx(exact, rel=1e-12)


@settings(max_examples=example_count(100))
@given(instances())
def test_uplinks_stay_within_the_ratio_and_never_cost_less(instance: Instance) -> None:
    for family in families(instance):
        prices = [price(instance, family, "capex").at(family, u) for u in family.uplink_choices]
        assert prices == sorted(prices)
        for uplinks in family.uplink_choices:
            if family.tiers > 1:
                assert 1.0 <= family.slowdown(uplinks) <= instance.network.largest_ratio * (1 + 1e-12)


def test_partial_domains_pay_for_idle_gpus() -> None:
    """More than half of a domain is active, or all GPUs that there are; one domain needs no network."""
    instance = ask(cluster__gpus=512, network__hb_domains="gb200-nvl72", cluster__gpu="gb200")
    assert {family.active for family in families(instance)} == {64}
    family = next(families(instance))
    assert family.installed_gpus - family.gpus == 64
    idle = [item for item in bill(instance, family, family.uplink_choices[0]) if "idle" in item.item]
    assert (idle[0].count, idle[0].unit_usd) == (64, instance.cluster.gpu.usd)
    (domain,) = instance.network.hb_domains
    assert [domain_counts(gpus, domain) for gpus in (2240, 24)] == [(56, 40, 35, 32), (1,)]
    alone = next(families(ask(cluster__gpus=8)))
    assert (alone.tiers, alone.nic_count, levels(alone, 0)) == (0, 0, ())


def test_power_objective_takes_the_optic_of_least_power() -> None:
    optics = [
        {"name": "cheap", "gbit_s": 400, "reach_m": 500, "usd": 1, "w": 9},
        {"name": "cool", "gbit_s": 400, "reach_m": 500, "usd": 9, "w": 1},
    ]
    for kind, name in (("capex", "cheap"), ("power", "cool")):
        instance = ask(network__optics=optics, objective={"minimize": kind})
        assert {end.name for family in families(instance) for ends in family.optics for end in ends} == {name}


def test_links_that_no_optic_reaches_rule_a_tier_out() -> None:
    short = {"name": "short", "gbit_s": 400, "reach_m": 60, "usd": 1, "w": 1}
    assert {family.tiers for family in families(ask(network__optics=[short]))} == {1}


def test_baseline_is_the_cheapest_full_bisection_clos() -> None:
    instance = ask(network__oversubscription=3.0)
    plan = solve(instance)
    found = any_to_any(instance, plan)
    assert found is not None
    design, cost = found
    whole = ask(network__oversubscription=1.0, network__fabrics="clos")
    rivals = [
        cost_of(whole, family, uplinks).capex_usd
        for family in families(whole)
        for uplinks in family.uplink_choices
        if family.hb.name == plan.design.hb_domain.name
    ]
    assert cost.capex_usd == min(rivals)
    assert design.fabric.kind == "clos"
    assert design.fabric.oversubscription == 1.0
    assert cost.capex_usd >= plan.cost.capex_usd


def paper(gpus: int, hb_size: int, radix: int, fabric: str) -> tuple[Instance, Family]:
    """The paper's setting: non-blocking, 694 USD a port, 199 USD a transceiver; switches and optics counted."""
    domain = {"name": "hb", "size": hb_size, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0}
    instance = ask(
        cluster__gpus=gpus,
        network__hb_domains=[domain],
        network__fabrics=fabric,
        network__switches=f"{radix}x400g",
        network__oversubscription=1.0,
        objective={"include": ["switch", "optics"]},
    )
    (family,) = families(instance)
    return instance, family


def counted(gpus: int, hb_size: int, radix: int, fabric: str) -> tuple[int, int, float]:
    instance, family = paper(gpus, hb_size, radix, fabric)
    uplinks = family.uplink_choices[-1]
    tiers = levels(family, uplinks)
    cost = total(instance.objective, bill(instance, family, uplinks))
    return sum(t.switches for t in tiers), 2 * sum(t.links for t in tiers), cost.capex_usd


@pytest.mark.parametrize(
    ("gpus", "radix", "fabric", "switches", "transceivers", "usd"),
    [
        (32_768, 64, "clos", 2560, 196_608, 152_829_952),
        (32_768, 64, "rail-only", 1536, 131_072, 94_306_304),
        (32_768, 128, "clos", 1280, 196_608, 152_829_952),
        (32_768, 128, "rail-only", 256, 65_536, 35_782_656),
        (32_768, 256, "clos", 384, 131_072, 384 * 256 * 694 + 131_072 * 199),
        (32_768, 256, "rail-only", 128, 65_536, 128 * 256 * 694 + 65_536 * 199),
        (65_536, 64, "clos", 5120, 393_216, None),
        (65_536, 64, "rail-only", 3072, 262_144, None),
        (65_536, 128, "clos", 2560, 393_216, None),
        (65_536, 128, "rail-only", 1536, 262_144, None),
        (65_536, 256, "clos", 1280, 393_216, None),
        (65_536, 256, "rail-only", 256, 131_072, None),
    ],
)
def test_published_counts(gpus, radix, fabric, switches, transceivers, usd) -> None:
    found = counted(gpus, 256, radix, fabric)
    assert found == (switches, transceivers, found[2] if usd is None else usd)


@pytest.mark.parametrize(
    ("gpus", "fabric", "switches"),
    [
        (512, "rail-only", 8),
        (1024, "rail-optimized", 48),
        (1024, "clos", 48),
        (8192, "rail-only", 384),
        (32768, "rail-optimized", 2560),
        (32768, "clos", 2560),
    ],
)
def test_switches_of_a_published_h100_sheet(gpus: int, fabric: str, switches: int) -> None:
    """HGX clusters on 64-port switches; 512 and 8,192 GPUs are built there as separate rails."""
    assert counted(gpus, 8, 64, fabric)[0] == switches
