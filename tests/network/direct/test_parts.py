"""The bill of a fabric."""

import pytest

from coopt.instance.texts import InstanceError
from coopt.network.direct_graphs import catalog_parts, fabric_bill
from coopt.network.direct_shapes import fabric

NAMES = {"nic": "cx7-400g", "optic": "400g-199", "panel": "patch-panel", "switch": None}


def test_a_torus_has_two_transceivers_and_two_panel_ports_a_link_and_a_nic_at_every_end() -> None:
    bill = fabric_bill(fabric("torus:4x4"), **catalog_parts(NAMES))
    assert {line.kind: line.count for line in bill} == {"nic": 64, "optics": 64, "panel": 64}
    assert sum(line.usd for line in bill) == 64 * (1750 + 199 + 100)
    assert sum(line.w for line in bill) == 64 * (22.5 + 9)


def test_an_optical_circuit_switch_costs_520_usd_a_port() -> None:
    (ports,) = fabric_bill(fabric("ring:8"), **catalog_parts({"panel": "ocs"}))
    assert (ports.usd, ports.count) == (16 * 520, 16)
    assert ports.w == pytest.approx(16 * 108 / 136, rel=1e-3)


def test_switches_are_counted_in_switched_fabrics_alone() -> None:
    parts = catalog_parts({"switch": "64x400g", "nic": "cx7-400g"})
    assert [line.count for line in fabric_bill(fabric("clos:4x8"), **parts)] == [32, 12]
    assert [line.kind for line in fabric_bill(fabric("ring:8"), **parts)] == ["nic"]


@pytest.mark.parametrize(
    ("shape", "names", "says"),
    [
        ("ring:8", {"nic": "cx6-200g"}, "'d0' -- 'd1' .* 400 .* 'cx6-200g' at 200"),
        ("clos:2x4", {"switch": "64x800g"}, "400 Gbit/s, .*'64x800g' at 800"),
        ("clos:1x65", {"switch": "64x400g"}, "'leaf0' .*65 .* 64 ports"),
    ],
)
def test_parts_that_do_not_fit_are_refused(shape: str, names: dict[str, str], says: str) -> None:
    with pytest.raises(InstanceError, match=says):
        fabric_bill(fabric(shape), **catalog_parts(names))


def test_an_unknown_part_is_answered_with_the_closest() -> None:
    with pytest.raises(InstanceError, match=r"--panel patch: .*patch-panel"):
        catalog_parts({"panel": "patch"})
