"""NICs whose ports lead to one plane or several: one NIC in bills of plans and of designs, lists and verdicts."""

import math
import random
from itertools import product

import networkx as nx
import pytest

import coopt
from coopt.network.cabling import cables
from coopt.network.failures import losses
from coopt.network.standing import standing_family
from coopt.report.building import leaf_notes
from coopt.report.cabling import WRITERS
from coopt.report.csv_files import ranks_csv
from coopt.report.facts import plan_facts
from tests.changes import with_part
from tests.conftest import example_count
from tests.network.designs.nic_ports import outcome
from tests.network.designs.test_existing import GIVEN

TWO_PORTS = {"name": "two-port", "gbit_s": 800, "ports": [1, 2], "usd": 1500.0, "w": 30.0}


def _two_ports(**keys):
    """256 GPUs below leaves of four servers, each with both ports of its NICs."""
    box = {"ports": 64, "switch": "qm9700", "optic": "400g-sr4", "gbit_s": 400}
    row = {**GIVEN["existing"], "domains": 32, "nic_ports": 2, "nic": TWO_PORTS, "tiers": [box, box]}
    table = {**GIVEN, "cluster": {"gpu": "h100-sxm", "gpus": 256}, "existing": {**row, **keys}}
    return coopt.Instance.model_validate({**table, "workload": {**GIVEN["workload"], "global_batch": 256}})


def test_two_ports_in_one_plane_are_one_nic():
    instance = _two_ports()
    plan = coopt.solve(instance)
    assert {item.item: (item.count, item.w) for item in plan.cost.items}["two-port"] == (256, 256 * 30.0)
    nic = plan.design.fabric.nic
    assert (nic.per_gpu, nic.planes, nic.ports_in_plane) == (1, 1, 2)
    assert coopt.verify(instance, plan).accepted
    lost = {fault.part: fault for fault in coopt.faults(instance, plan).faults}
    assert (lost["NIC"].count, lost["NIC"].restarts) == (256, True)
    assert (lost["link from NIC to leaf"].count, lost["link from NIC to leaf"].restarts) == (512, False)


@pytest.mark.parametrize(("ports", "told"), [(2, "each to its own plane"), (4, "2 to each plane")])
def test_which_ports_of_a_nic_lead_to_each_plane_is_told(ports, told):
    nic = {**TWO_PORTS, "gbit_s": 400 * ports, "ports": [2, 4]}
    instance = _two_ports(nic=nic, nic_ports=ports, planes=2)
    shown = {fact.name: fact.shown for fact in plan_facts(instance, coopt.solve(instance))}
    assert shown["NIC"].endswith(f", {ports} ports of 400 Gbit/s, {told}")


DAYS = {"train_tokens": 1e12, "train_days": 60.0}


@pytest.mark.parametrize(
    ("keys", "on_leaf"),
    [
        ({}, 2),
        ({"fabric": "clos", "leaf_domains": 2}, 2),
        ({"fabric": "clos", "rails": 2, "leaf_domains": 4}, 1),
        ({"fabric": "rail-optimized", "leaf_domains": None, "rails": 16}, 1),
    ],
)
def test_ports_on_other_leaves_go_on_where_one_is_out(keys, on_leaf):
    table = _two_ports(**keys).model_dump(mode="json", by_alias=True, exclude_none=True)
    rates = {"extends": "llama-3", "name": "ours", "flap": {"per_year": 20.0}}
    table |= {"availability": {"rates": rates, "repair_hours": 48.0, "flap_s": 60.0}}
    table["workload"][0] |= DAYS
    instance = coopt.load(table)
    plan = coopt.solve(instance)
    assert coopt.verify(instance, plan).accepted
    year_s, part = 365 * 86400.0, {name: rate.per_year for name, rate in instance.availability.rates.of_part.items()}
    ends = 2 * sum(tier.links for tier in plan.design.fabric.tier)
    of_gpus = 256 * (part["gpu"] + part["hbm"] + part["software"] + part["nic"]) + 32 * part["host"]
    of_links = ends * part["optic"] + plan.design.fabric.switch_count * part["switch"]
    uptime, (leaf, *_) = plan.workloads[0].uptime, plan.design.fabric.tier
    assert uptime.failure_s == pytest.approx(year_s / (of_gpus + (on_leaf - 1) * of_links), rel=1e-12)
    flapping = 1 - math.exp(-2 * leaf.links * 20.0 * 60.0 / year_s)
    up = math.exp(-leaf.switches * part["switch"] * 48 * 3600 / year_s)
    broken = 1 - math.exp(-2 * leaf.links * (20.0 * 60.0 + part["optic"] * 48 * 3600) / year_s)
    assert uptime.port_out == pytest.approx(flapping if on_leaf == 2 else 1 - up + up * broken, rel=1e-9)
    assert plan.design.spare_domains == 0


def _rack_tops(gbit_s, **tables):
    """32 servers whose NICs have a port of this rate on each of two leaves."""
    switch = {"name": "box", "radix": 64, "port_gbit_s": gbit_s, "usd": 1.0, "w": 1.0}
    module = {"name": "module", "gbit_s": gbit_s, "reach_m": 50, "usd": 1.0, "w": 1.0}
    row = {"fabric": "clos", "rails": 2, "leaf_domains": 4, "tiers": [{"ports": 64, "switch": switch, "optic": module}]}
    nic = {**TWO_PORTS, "gbit_s": 2 * gbit_s}
    row = {**GIVEN["existing"], "domains": 32, "nic_ports": 2, "nic": nic, **row, "tiers": row["tiers"] * 2}
    workload = {**GIVEN["workload"], "global_batch": 256, **tables.pop("workload", {})}
    table = {**GIVEN, "cluster": {"gpu": "h100-sxm", "gpus": 256}, "workload": workload, "existing": row}
    return coopt.Instance.model_validate({**table, **tables})


def test_what_stands_survives_a_leaf_as_with_nics_of_half_the_rate():
    whole_s, half_s = (coopt.solve(_rack_tops(rate)).objective.value for rate in (400, 200))
    assert whole_s < half_s
    bound_s = (whole_s + half_s) / 2
    for factor, status in ((1 + 1e-6, "optimal"), (1 - 1e-6, "infeasible")):
        robust = {"survive": ["nic", "leaf"], "slower": {"nic": 4.0, "leaf": half_s / bound_s * factor}}
        workload = {"max_iteration_time_s": bound_s}
        instance = _rack_tops(400, workload=workload, robust=robust, objective={"minimize": "power"})
        plan = coopt.solve(instance)
        assert plan.status == status
        assert coopt.verify(instance, plan).accepted
    assert "robust.slower.leaf" in plan.explanation[0]
    with pytest.raises(ValueError, match=r"robust\.efficiency beside network\.given"):
        _rack_tops(400, robust={"prices": {"nic": [0.5, 2.0]}})


def test_every_port_in_a_plane_has_a_rail():
    instance = _two_ports()
    lines = ranks_csv(instance, coopt.solve(instance)).splitlines()
    rails = [line.split(",")[lines[0].split(",").index("rails")] for line in lines[1:9]]
    assert sorted(rails, key=len) == ["0 1", "2 3", "4 5", "6 7", "8 9", "10 11", "12 13", "14 15"]


@pytest.mark.parametrize(
    ("keys", "aborts"),
    [
        ({"fabric": "clos", "leaf_domains": 2}, True),
        ({"fabric": "rail-optimized", "rails": 16}, False),
        ({"fabric": "clos", "leaf_domains": 4, "rails": 2}, False),
    ],
)
def test_a_leaf_stops_nics_that_have_both_ports_on_it(keys, aborts):
    instance = _two_ports(**{"leaf_domains": None, **keys})
    plan = coopt.solve(instance)
    (leaf,) = (fault for fault in coopt.faults(instance, plan).faults if fault.part == "leaf switch")
    assert (leaf.effect == "stops" or leaf.restarts) is aborts
    (said,) = leaf_notes([plan.design])
    assert ("needs no restart" in said) is not aborts


def _taking_turns(seed):
    """A Clos in which the ports of each GPU take turns in leaves, with its family."""
    draw = random.Random(seed)
    ports, domains = draw.choice([2, 4, 8]), draw.choice([4, 8, 12])
    rails, planes = draw.choice([n for n in (2, 4, 8) if ports % n == 0]), draw.choice([1, 2])
    switch = {"name": "s256", "radix": 256, "port_gbit_s": 400, "usd": 1.0, "w": 1.0}
    box = {"ports": 256, "switch": switch, "optic": "400g-sr4"}
    nic = {**TWO_PORTS, "gbit_s": 400 * ports * planes, "ports": [1, ports * planes]}
    row = {**GIVEN["existing"], "fabric": "clos", "domains": domains, "nic": nic, "tiers": [box, box]}
    row |= {"nic_ports": ports * planes, "planes": planes, "rails": rails, "leaf_domains": draw.choice([1, 2, 3])}
    row["tiers"] = [{**box, "down": 8 * ports // rails * row["leaf_domains"], "up": draw.choice([8, 16])}, box]
    table = {**GIVEN, "cluster": {"gpu": "h100-sxm", "gpus": 8 * domains}, "existing": row}
    table["workload"] = {**GIVEN["workload"], "global_batch": 8 * domains}
    instance = coopt.Instance.model_validate(table)
    return instance, standing_family(instance, 8 * domains)


@pytest.mark.parametrize("seed", [0, 4, 5, 7, 8, 10])
def test_a_leaf_takes_only_its_ports_of_each_gpu(seed):
    instance, family = _taking_turns(seed)
    (row,) = instance.existing
    ports = nx.Graph()  # of every GPU and its leaves, as a reader of the designs page wires them
    for domain, gpu, plane in product(range(row.domains), range(8), range(row.planes)):
        for port in range(row.ports_in_plane):
            leaf = "leaf", plane, domain // row.leaf_domains, port % row.rails
            links = ports.get_edge_data((domain, gpu), leaf, {"links": 0})["links"]
            ports.add_edge((domain, gpu), leaf, links=links + 1)
    leaves = [node for node in ports if node[0] == "leaf"]
    (lost,) = (loss for loss in losses(family, family.uplink_choices[0]) if loss.part == "leaf switch")
    worst = max(ports.edges[leaf, gpu]["links"] for leaf in leaves for gpu in ports[leaf])
    assert lost.domain_slowdown == row.nic_ports / (row.nic_ports - worst)
    assert (lost.count, lost.aborts) == (len(leaves), False)
    plan = coopt.solve(instance)
    assert coopt.verify(instance, plan).accepted
    assert plan.design.fabric.tier[0].switches == len(leaves)
    assert all(run.met for run in coopt.simulate(instance, plan).workloads)
    fabric = plan.design.fabric.model_copy(update={"leaf_domains": row.leaf_domains + 1})
    verdict = coopt.verify(instance, with_part(plan, design=plan.design.model_copy(update={"fabric": fabric})))
    assert "leaf-domains" in [check.name for check in verdict.failures]


def test_a_list_of_leaves_that_ports_take_turns_in_is_read_as_it_is_wired(tmp_path):
    for seed in range(8):
        instance, family = _taking_turns(seed)
        if family.nic_planes > 1:
            continue
        file, row = tmp_path / "list.csv", instance.existing[0]
        file.write_text(WRITERS["csv"]([*cables(family, family.uplink_choices[0])]), "utf-8")
        table = instance.model_dump(mode="json", by_alias=True)
        listed = {"cables": str(file), "nic": table["existing"][0]["nic"]}
        found = coopt.load({**table, "existing": [listed]}).existing[0]
        wired = ("fabric", "rails", "leaf_domains", "nic_ports", "domains")
        assert [getattr(found, key) for key in wired] == [getattr(row, key) for key in wired]


@pytest.mark.parametrize(("fabric", "aborts"), [("rail-optimized", True), ("rail-only", False)])
def test_a_spine_stops_nics_that_have_both_ports_below_it(fabric, aborts):
    box = {"ports": 64, "switch": "qm9700", "optic": "400g-sr4", "gbit_s": 400}
    tiers = [{**box, "up": 1}, box] if aborts else [box, box]
    instance = _two_ports(leaf_domains=32, rails=16, fabric=fabric, tiers=tiers)
    plan = coopt.solve(instance)
    spines, links = (
        next(fault for fault in coopt.faults(instance, plan).faults if fault.part == part)
        for part in ("spine switch", "link from leaf to spine")
    )
    assert (spines.restarts or spines.effect == "stops") is aborts
    assert not links.restarts


def test_ports_in_a_plane_that_do_not_stand_are_refused():
    instance = _two_ports()
    plan = coopt.solve(instance)
    for ports, per_gpu, turns in ((1, 2, 0), (1, 1, 0), (2, 2, 0), (2, 1, 4)):
        nic = plan.design.fabric.nic.model_copy(update={"ports_in_plane": ports, "per_gpu": per_gpu})
        fabric = plan.design.fabric.model_copy(update={"nic": nic, "leaf_domains": turns})
        verdict = coopt.verify(instance, with_part(plan, design=plan.design.model_copy(update={"fabric": fabric})))
        assert not verdict.accepted


def test_ports_of_nics_are_counted_alike_by_all(tmp_path):
    seen = [outcome(seed, tmp_path) for seed in range(4, example_count(40, usual=16))]
    built = [one for one in seen if not isinstance(one, str)]
    assert {ports for _, _, ports, *_ in built} >= {1, 2, 4}
