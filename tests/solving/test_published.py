"""Shipped and published networks: bounds kept under their disciplines, and the cheapest in place of a design."""

from __future__ import annotations

import csv
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

import coopt
from coopt.columns.times import bound_shares, unbounded
from coopt.instance.designs import PublishedDesign, read_designs
from coopt.instance.hardware import HbDomain, Nic, Switch
from coopt.network.designs import chain_of
from coopt.network.space import families
from coopt.plan.networks import ReproducedRow
from coopt.plan.store import read_plan
from coopt.verifier.parts.bills import levels
from coopt.verifier.parts.layouts import chains
from coopt.verifier.parts.space import NO_CHARGE, DesignFamily, NicAttachment
from coopt.verifier.training.iteration import model_flop_per_token
from tests.conftest import SHIPPED, ask

ROOT = Path(__file__).parents[2]
RECORD = list(csv.DictReader((ROOT / "benchmarks" / "disciplines.csv").read_text("utf-8").splitlines()))
QUICK = (
    *("tiny-64", "phased-128", "rail-only-gpt-1t", "megatron-530b", "llama3-405b-16k"),
    *("fleet-core-growth", "direct-64"),
)
"""Instances that are solved, routed and simulated within seconds; the benchmark records others."""


@pytest.mark.parametrize("name", QUICK)
def test_routes_and_simulation_keep_every_bound(name: str, shipped_plan: Callable[[Path], Path]) -> None:
    file = ROOT / "instances" / f"{name}.toml"
    instance, plan = coopt.load(file), read_plan(shipped_plan(file))
    assert plan.parts
    for part in plan.parts:
        if part.design is None:
            continue
        found = coopt.route(instance, plan, part=part.name, with_links=False)
        assert [one.within_bound for one in found.workloads] == [True] * len(part.workloads)
    assert coopt.simulate(instance, plan).met


@pytest.mark.parametrize("row", RECORD, ids=lambda row: row["instance"])
def test_no_bound_is_missed_on_file(row: dict[str, str]) -> None:
    assert row["instance"] in {file.stem for file in SHIPPED}
    assert all(float(row[name]) <= 1 for name in ("routed", "simulated") if row[name])
    assert bool(row["simulated"]) == bool(row["spray"])


def test_every_instance_is_held_to_its_bounds() -> None:
    assert [row["instance"] for row in RECORD] == sorted(file.stem for file in SHIPPED)
    assert {*QUICK} < {row["instance"] for row in RECORD}


@pytest.mark.parametrize("gpus", [16_384, 24_576])
def test_a_network_like_that_of_llama_3_keeps_the_published_time(gpus: int) -> None:
    """Leaves without oversubscription and seven links down for one up above; 400 TFLOP/s a GPU (arXiv 2407.21783)."""
    keys = {
        "cluster.gpus": gpus,
        "workload.0.global_batch": gpus // 8,
        "workload.0.mapping": {"tp": 8, "pp": 16, "interleave": [1, 2, 4, 8], "zero": [1, 2]},
        "workload.0.options": {"dp_mode": "overlap"},
        "network.hb_domains": "hgx-h100-8",
        "network.fabrics": "clos",
        "network.switches": "qm9700",
        "network.oversubscription": 7.0,
    }
    asked = coopt.load(ROOT / "instances" / "llama3-405b-16k.toml", keys)
    (workload,) = asked.workload
    bound_s = model_flop_per_token(workload.model) * workload.tokens_per_iteration / (gpus * 400e12)
    asked = coopt.load(ROOT / "instances" / "llama3-405b-16k.toml", keys | {"workload.0.max_iteration_time_s": bound_s})
    wide = [one for one in families(asked) if one.pods is not None and one.active == one.hb.size]
    like = next(one for one in wide if one.pods.l == 7 * one.pods.w and one.down in one.uplink_choices)
    (pace,) = bound_shares(asked, (like,), unbounded(asked, (like,), lambda site: None))
    assert pace[like.uplink_choices.index(like.down)] <= 1


FILE = Path(__file__).parents[2] / "instances" / "designs" / "published.toml"
DESIGNS = read_designs(FILE)
PORT_USD, END_USD = 694, 199


@pytest.fixture(scope="module")
def rows() -> dict[str, ReproducedRow]:
    """What each design on file costs, with the cheapest network in its place."""
    return {row.id: row for row in coopt.reproduce(FILE, cheapest=True).rows}


def least_usd(design: PublishedDesign) -> float:
    """The least price of all networks that are allowed, by the verifier's list of them and its counts."""
    chain = chain_of(design)
    leaf = max(Fraction(chain.fill, chain.uplinks), Fraction(1)) if chain.uplinks else Fraction(1)
    pods = chain.pods if chain.cores else ()
    whole = leaf * max([Fraction(1), *(Fraction(pod.down, pod.up) for pod in pods)])
    rails, found = design.rails or design.gpus_per_domain, []
    kinds = [("rail-only", rails)] if design.fabric == "rail-only" else []
    kinds += [(kind, size) for kind in ("rail-optimized", "clos") for size in {rails, design.gpus_per_domain}]
    network = ask(
        network__oversubscription=float(whole) * (1 + 1e-12) if whole > 1 else 1.0,
        network__leaf_fill="any",
        network__bundles=design.bundles,
    ).network
    for kind, size in kinds:
        for stack in product({tier.ports for tier in design.tiers}, repeat=3):
            nic = Nic(name="n", gbit_s=400, usd=0, w=0)
            box, *above = (Switch(name=f"{radix}", radix=radix, port_gbit_s=400, usd=0, w=0) for radix in stack)
            gear = NicAttachment(kind, nic, design.nic_ports // design.planes, box, NO_CHARGE)  # type: ignore[arg-type]
            gear = gear._replace(above=tuple(above))
            hb = HbDomain(name="h", size=size, gbyte_s=1, usd_per_gpu=0, w_per_gpu=0)
            family = DesignFamily(design.gpus, hb, -(-design.gpus // size), gear)
            for one in chains(family, network):
                for up in one.uplinks:
                    ports = one.with_up(up)
                    in_leaf = Fraction(ports.down, up) if up else Fraction(1)
                    in_pod = Fraction(ports.pod_down, ports.pod_up) if ports.pod_up else Fraction(1)
                    if in_leaf <= leaf and in_leaf * in_pod <= whole:
                        tiers = levels(family, ports)
                        switch_ports = sum(tier.switches * radix for tier, radix in zip(tiers, stack, strict=False))
                        links = sum(tier.links for tier in tiers)
                        found.append(design.planes * (switch_ports * PORT_USD + 2 * links * END_USD))
    return min(found)


@pytest.mark.parametrize("design", [one for one in DESIGNS if one.gpus <= 4608], ids=lambda design: design.id)
def test_no_network_of_the_space_is_cheaper(design: PublishedDesign, rows: dict[str, ReproducedRow]) -> None:
    found = rows[design.id].cheapest
    if found.usd is None:
        assert "rate" in found.why
        return
    assert found.usd == pytest.approx(min(found.published_usd, least_usd(design)), rel=1e-12)
    assert (found.counted is None) == (found.usd == found.published_usd)
    assert bool(found.why) == (found.counted is not None)


@pytest.mark.parametrize(
    ("design", "words"),
    [
        ("juniper-evpn-2-stripes", "one tier of 128 ports; 1 fewer tier, 19 fewer switches, 128 fewer cables"),
        ("lenovo-289-4su", "rails apart on one tier of 128 ports; 2 fewer switches"),
        ("s110-b300-out-of-band", "clos, 43 end points and 6 uplinks to a leaf"),
    ],
)
def test_the_words_of_a_rival_say_what_it_joins(rows: dict[str, ReproducedRow], design: str, words: str) -> None:
    """Nothing is rail-optimized on one tier, nor where a domain has one rail."""
    row = rows[design]
    assert row.cheapest.why.startswith(words)


def test_racks_with_a_leaf_of_each_rail_keep_ports_free_and_rails_apart_stay_joined_within(
    rows: dict[str, ReproducedRow],
) -> None:
    # 8 racks of 72 GPUs: 32 leaves of 18 end points below 24 spines of 24 ports, where 18 leaves of 32 and 16 spines do
    row = rows["dgx-gb200-1su"]
    assert row.cheapest.counted.switches == (18, 16)
    assert row.cheapest.counted.links == (576, 576) == row.counted.links
    assert row.cheapest.published_usd == 56 * 64 * PORT_USD + 2 * 1152 * END_USD
    assert row.cheapest.usd == 34 * 64 * PORT_USD + 2 * 1152 * END_USD
    assert "the design fixes rails, unit_domains, leaf_domains, pod" in row.cheapest.why
    # two rails of a domain of eight join four GPUs of it each, which a network for each GPU would not
    apart = rows["lenovo-289-4su"].cheapest.counted
    assert (apart.links, sum(apart.switches)) == ((256,), 2)
