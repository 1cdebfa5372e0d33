"""NICs whose ports lead to one plane or several: one NIC in bills of plans and of designs, lists and verdicts."""

import pytest

import coopt
from coopt.report.csv_files import ranks_csv
from tests.changes import with_part
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


def test_every_port_in_a_plane_has_a_rail():
    instance = _two_ports()
    lines = ranks_csv(instance, coopt.solve(instance)).splitlines()
    rails = [line.split(",")[lines[0].split(",").index("rails")] for line in lines[1:9]]
    assert sorted(rails, key=len) == ["0 1", "2 3", "4 5", "6 7", "8 9", "10 11", "12 13", "14 15"]


@pytest.mark.parametrize(
    ("keys", "aborts"),
    [({"fabric": "clos", "leaf_domains": 2}, True), ({"fabric": "rail-optimized", "rails": 16}, False)],
)
def test_a_leaf_stops_nics_that_have_both_ports_on_it(keys, aborts):
    instance = _two_ports(**{"leaf_domains": None, **keys})
    plan = coopt.solve(instance)
    (leaf,) = (fault for fault in coopt.faults(instance, plan).faults if fault.part == "leaf switch")
    assert (leaf.effect == "stops" or leaf.restarts) is aborts


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
    for ports, per_gpu in ((1, 2), (1, 1), (2, 2)):
        nic = plan.design.fabric.nic.model_copy(update={"ports_in_plane": ports, "per_gpu": per_gpu})
        fabric = plan.design.fabric.model_copy(update={"nic": nic})
        verdict = coopt.verify(instance, with_part(plan, design=plan.design.model_copy(update={"fabric": fabric})))
        assert not verdict.accepted


def test_ports_of_nics_are_counted_alike_by_all(tmp_path):
    seen = [outcome(seed, tmp_path) for seed in range(40)]
    built = [one for one in seen if not isinstance(one, str)]
    assert {ports for _, _, ports, *_ in built} >= {1, 2, 4}
