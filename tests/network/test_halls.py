"""Racks of a network in rows: every link has a length, as in the graph, and the hall draws what is installed."""

import csv
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.schema import Instance, at_choice, choices_of
from coopt.instance.texts import InstanceError
from coopt.network.family import Family, levels
from coopt.network.growth import lines
from coopt.network.halls import network_hall
from coopt.network.placing import sold_m
from coopt.network.plan_networks import family_of_plan
from coopt.network.space import families
from coopt.plan.store import read_plan
from coopt.report.csv_files import procurement_csv
from coopt.report.networks import bill_report
from coopt.report.words import rendered
from tests.conftest import ask, example_count
from tests.network.hall_oracle import standing
from tests.solving.oracle import instances


def test_the_hall_of_a_plan_holds_all_that_draws_power() -> None:
    everything = ["gpu", "hb", "host", "nic", "switch", "optics"]
    for include in (everything, ["switch"]):
        instance = ask(network__hb_domains="hgx-h100-8", objective={"include": include})
        plan = coopt.solve(instance)
        family, uplinks = family_of_plan(instance, plan)
        found = network_hall(instance, family, uplinks)
        full = coopt.solve(ask(network__hb_domains="hgx-h100-8", objective={"include": everything}))
        assert found.w == pytest.approx(full.cost.power_w)
        assert found.racks == full.design.racks
        assert found.rack_w * found.racks < found.w


@st.composite
def racked(draw: st.DrawFn) -> tuple[Instance, Family, int]:
    """A network in a hall that bounds what a rack holds, whose switches have heights or none."""
    drawn, units = draw(instances()), draw(st.sampled_from([[None], [1.0, 1.5, 2.0]]))
    ways = tuple(
        one.model_copy(update={"rack_units": draw(st.sampled_from(units)), "w": draw(st.sampled_from([0, 700]))})
        for one in drawn.network.switches
    )
    own = {"racks_per_row": 3, "switch_rack_units": draw(st.sampled_from([2, 5, 42]))}
    own["switch_rack_kw"] = draw(st.sampled_from([None, 0.7, 3.0]))
    changed = {"switches": ways, "hall": drawn.network.hall.model_copy(update=own)}
    instance = drawn.model_copy(update={"network": drawn.network.model_copy(update=changed)})
    every = [family for family in families(instance) if family.tiers]
    assume(every)
    family = draw(st.sampled_from(every))
    return instance, family, draw(st.sampled_from(family.uplink_choices))


@settings(max_examples=example_count(60))
@given(racked())
def test_racks_of_switches_hold_every_switch_of_the_graph_and_no_more_than_they_may(drawn) -> None:
    """One switch of the graph after the other, in the order of the racks amid which they stand; cables are the links
    of the graph at lengths of the hall."""
    instance, family, u = drawn
    found = network_hall(instance, family, u)
    assert (found is None) == (family.hb.racks is None)
    if found is None:
        return
    expected = standing(instance, family, u)
    assert (found.switch_racks or 0) == len(expected.drawn_w)
    assert (found.switch_rack_w or 0.0) == pytest.approx(max(expected.drawn_w, default=0.0))
    assert found.all_racks == expected.racks
    assert [cables.total() for cables in found.cables] == [level.links for level in levels(family, u)]
    assert found.amid == expected.switch_spots or not expected.drawn_w
    lengths, graph = Counter[int](), expected.graph
    for a, b, edge in graph.edges(data=True):
        if edge["level"] == 1:
            nic, leaf = (a, b) if graph.nodes[b]["level"] else (b, a)
            spot = expected.domains[found.hall.rack_of(graph.nodes[nic]["domain"])]
            lengths[sold_m(found.hall.cable_m(spot, expected.switches[leaf]))] += edge["links"]
    assert found.cables[0] == lengths


def test_racks_of_switches_are_told_and_billed_where_they_have_a_price() -> None:
    changes = {"network__hb_domains": "hgx-h100-8", "cluster__gpus": 512, "network__switches": "qm9700"}
    changes |= {"network__fabrics": "rail-optimized", "workload__0__max_iteration_time_s": 100.0}
    changes |= {"network__nics": "cx7-400g", "network__optics": "400g-dr4", "network__nics_per_gpu": 1}
    hall = {"switch_rack_units": 4, "usd_per_switch_rack": 9000.0}
    instance = ask(**changes, network__hall=hall)
    plan = coopt.solve(instance)
    switches = plan.design.fabric.switch_count
    found = coopt.bom(instance, plan)
    (racks,) = [item for item in found.items if item.kind == "rack"]
    assert racks.count == found.networks[0].switch_racks == -(-switches // 4)
    assert found.usd == pytest.approx(plan.cost.capex_usd + 9000.0 * racks.count)
    assert any("racks" in what and "HB" in what for what in found.not_counted)
    free = coopt.bom(ask(**changes, network__hall={"switch_rack_units": 4}), plan)
    assert any("racks" in what and f" {racks.count} of them" in what for what in free.not_counted)
    assert free.usd == plan.cost.capex_usd
    with pytest.raises(ValueError, match=r"switch_rack_units = 0\.5: .*'qm9700' takes 1"):
        ask(**changes, network__hall={"switch_rack_units": 0.5})
    with pytest.raises(ValueError, match=r"switch_rack_kw = 0\.5: .*'qm9700' draws 0\.747 kW"):
        ask(**changes, network__hall={"switch_rack_kw": 0.5})


def test_caps_on_racks_spread_servers_and_refuse_what_no_rack_holds() -> None:
    """A DGX H100 draws 10.2 kW and weighs 130 kg, an NVL72 132 kW, 1.36 t and needs liquid."""
    racks = {None: 2, 132: 2, 40.8: 2, 40.7: 3, 10.2: 8}  # for eight servers
    for cap, count in racks.items():
        hall = {} if cap is None else {"domain_rack_kw": cap}
        instance = ask(network__hb_domains="hgx-h100-8", network__hall={**hall, "cooling": "air"})
        assert coopt.solve(instance).design.racks == count
        assert type(instance).model_validate_json(instance.model_dump_json(by_alias=True)) == instance
    by_weight = ask(network__hb_domains="hgx-h100-8", network__hall={"domain_rack_kg": 262})
    assert coopt.solve(by_weight).design.racks == 4
    racked = {"cluster__gpu": "gb200", "network__hb_domains": "gb200-nvl72", "cluster__gpus": 72}
    assert ask(**racked, network__hall={"domain_rack_kw": 132, "domain_rack_kg": 1360}).network.hb_domains[0].racks == 1
    refused = {
        "domain_rack_kw = 131: .*'gb200-nvl72' puts 132 kW": {"domain_rack_kw": 131},
        "domain_rack_kg = 1000: .*'gb200-nvl72' puts 1,360 kg": {"domain_rack_kg": 1000},
        "cooling = 'air': .*'gb200-nvl72'": {"cooling": "air"},
    }
    for said, hall in refused.items():
        with pytest.raises(ValueError, match=said):
            ask(**racked, network__hall=hall)
        both = {"cluster__gpu": ["h100-sxm", "gb200"], "network__hb_domains": ["hgx-h100-8", "gb200-nvl72"]}
        with pytest.raises(ValueError, match=said):
            ask(**both, network__hall=hall)
    for key, missing in {"domain_rack_kg": "kg", "cooling": "cooling"}.items():
        with pytest.raises(ValueError, match=f"{key}.*'h100-hb16' .*`{missing}` in its table"):
            ask(network__hb_domains="h100-hb16", network__hall={key: "air" if key == "cooling" else 1.0})
    assert ask(network__hb_domains="h100-hb16", network__hall={"cooling": "liquid"})


def test_servers_of_each_kind_of_gpu_fill_the_racks_that_this_kind_needs() -> None:
    """A B200 draws 1,000 W and an H100 700 W: with 500 W of its host and a NIC three or four servers are 40 kW."""
    server = {"name": "ours", "size": 8, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0, "host_w_per_gpu": 500}
    for gpus in (("b200", "h100-sxm"), ("h100-sxm", "b200")):
        changes = {"cluster__gpu": list(gpus), "network__hb_domains": server | {"racks": 0.25}}
        instance = ask(**changes, network__hall={"domain_rack_kw": 40})
        racks = {choice.gpu: at_choice(instance, choice).network.hb_domains[0].racks for choice in choices_of(instance)}
        assert racks == {"b200": 1 / 3, "h100-sxm": 1 / 4}
        with pytest.raises(
            ValueError, match=r"with b200: network.hall.domain_rack_kw = 12: .*'ours' puts 12.*kW"
        ) as refused:
            ask(**changes, network__hall={"domain_rack_kw": 12})
        assert "with h100-sxm" not in str(refused.value)


def test_no_plan_depends_on_how_racks_stand_or_on_the_height_of_switches() -> None:
    assert ask(network__hall={"racks_per_row": 3}).sha256 == ask().sha256
    named, own = ask(network__switches="qm9700"), ask(network__switches={"extends": "qm9700", "rack_units": 3})
    assert own.network.switches[0].rack_units == 3
    assert ask(network__switches=own.network.switches[0].model_dump(mode="json")).sha256 == own.sha256
    bare = named.network.switches[0].model_copy(update={"rack_units": None})
    network = named.network.model_copy(update={"switches": (bare,)})
    assert named.model_copy(update={"network": network}).sha256 == named.sha256


def test_racks_of_switches_that_stood_in_an_earlier_phase_are_not_bought_again() -> None:
    shipped = Path(__file__).parents[2] / "instances" / "fleet-core-growth.toml"
    plan = read_plan(Path(__file__).parents[2] / "benchmarks" / "library" / "fleet-core-growth.plan.json")
    found = coopt.bom(coopt.load(shipped, {"network.hall.usd_per_switch_rack": 100.0}), plan)
    standing: dict[str, int] = {}
    for network in found.networks:
        if network.switch_racks is not None:
            built = network.name.rpartition(", ")[0]
            standing[built] = max(standing.get(built, 0), network.switch_racks)
    assert len(standing) < sum(network.switch_racks is not None for network in found.networks)
    racks = [item for item in found.items if item.kind == "rack"]
    assert [item.year for item in racks] == [2027, 2028, 2029.5]
    assert sum(item.count for item in racks) == sum(standing.values())
    of_networks = [item for network in found.networks for item in network.items if item.kind == "rack"]
    assert sum(item.usd for item in racks) == sum(item.usd for item in of_networks)


PHASES = [{"year": 2026 + year, "gpus": gpus} for year, gpus in enumerate((64, 192, 512))]
BOX = {"name": "box", "port_gbit_s": 400, "usd": 9000, "w": 300, "rack_units": 4}


@pytest.mark.parametrize("radix", [16, 64])
def test_a_network_that_grows_adds_cables_and_moves_none(radix: int) -> None:
    """Against the hall of the last phase: each phase has the first of its leaves, and cables to no other places."""
    fabrics = ["rail-only", "rail-optimized", "clos"]
    instance = ask(
        cluster__gpus=512, phase=PHASES, network__hb_domains="hgx-h100-8", network__fabrics=fabrics,
        network__switches={**BOX, "radix": radix}, network__hall={"racks_per_row": 4, "switch_rack_units": 16},
    )  # fmt: skip
    tiers = set[int]()
    for line in lines(instance):
        ends = [family.uplink_choices[-1] if family.tiers > 1 else 0 for family in line]
        last = line[-1], ends[-1]
        whole = network_hall(instance, *last)
        assert network_hall(instance, *last, last) == whole
        before: list[Counter[int]] = []
        for family, u in zip(line, ends, strict=True):
            found = network_hall(instance, family, u, last)
            assert [cables.total() for cables in found.cables] == [level.links for level in levels(family, u)]
            assert all(set(now) <= set(end) for now, end in zip(found.cables, whole.cables, strict=False))
            if u == ends[-1]:  # no leaf gets further uplinks
                assert all(now <= end for now, end in zip(found.cables, whole.cables, strict=False))
            assert found.cables[0] >= (before[0] if before else Counter())
            before = list(found.cables)
            tiers.add(family.tiers)
    assert len(tiers) > 1


def test_the_cables_of_all_phases_are_those_of_the_last() -> None:
    instance = ask(
        cluster__gpus=512, phase=PHASES, network__hb_domains="hgx-h100-8", network__fabrics="clos",
        network__switches={**BOX, "radix": 32},
    )  # fmt: skip
    with pytest.raises(InstanceError, match=r"\[\[phase\]\]"):
        coopt.bom(instance)
    found = coopt.bom(instance, coopt.solve(instance))
    assert len(found.networks) == len(PHASES)
    for level in (0, 1):
        standing = [Counter({one.length_m: one.count for one in net.tier[level].cables}) for net in found.networks]
        added = [Counter({one.length_m: one.added for one in net.tier[level].cables}) for net in found.networks]
        assert added[0] == standing[0]
        assert sum(added, Counter()) == standing[-1]
        assert standing[-1].total() == found.networks[-1].tier[level].links
    bought = [row for row in csv.reader(procurement_csv(found).splitlines()) if row[0].startswith("cable ")]
    assert sum(int(row[2]) for row in bought) == sum(tier.links for tier in found.networks[-1].tier)
    assert {row[-1] for row in bought} == {"order"}
    assert "added" in rendered(bill_report(found))
